"""What an engine is given and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._engines.rules import Rule
from pomdp_hier.features.affinity import Affinity
from pomdp_hier.hierarchy.arrays import min_below
from pomdp_hier.hierarchy.tree import Hierarchy

Advance = Callable[[int], object]
"""Told how many more items are done."""


@dataclass(frozen=True)
class NodeRewards:
    """What each node is worth.

    Attributes:
        reward: ``r`` of each node ``[n_nodes]``.
        rise: ``r(node) - r(parent)`` without cancellation ``[n_nodes]``; 0 at the root.
    """

    reward: Floats
    rise: Floats


@dataclass(frozen=True)
class Task:
    """One scoring task.

    Attributes:
        affinity: Similarities of items to clusters.
        rewards: The nodes' rewards.
        temperatures: ``delta_t`` of each level, ``[height + 1]``.
        rule: When to stop.
        enter_own_singleton: Whether an item's search may step into the cluster that holds this item alone.
        threads: Threads for the numba engine; None for one per usable CPU. The result does not depend on it.
    """

    affinity: Affinity
    rewards: NodeRewards
    temperatures: Floats
    rule: Rule
    enter_own_singleton: bool
    threads: int | None = None

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        return self.affinity.hierarchy

    @cached_property
    def potential(self) -> Floats:
        """How much more than the node itself the best cluster below it is worth ``[n_nodes]``: a bound for planning."""
        tree, reward = self.hierarchy, self.rewards.reward
        smallest = min_below(tree.parent, np.where(tree.is_leaf, tree.sizes, tree.n_items))
        sizes, examples = np.unique(tree.sizes, return_index=True)
        best = reward[examples[np.searchsorted(sizes, smallest)]]
        return np.where(tree.is_leaf, 0.0, best - reward)


@dataclass(frozen=True)
class Stops:
    """Where each search ends.

    Attributes:
        nodes: The node searched ``[m]``.
        probabilities: The probability of having come down the target's own path to there ``[m]``.
    """

    nodes: Ints
    probabilities: Floats
