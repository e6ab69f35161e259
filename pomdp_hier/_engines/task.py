"""Input and output of an engine: the task with its stopping rule, and where the searches stop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints, check_choice, is_integer, unexpected
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.affinity import Affinity
from pomdp_hier.hierarchy.arrays import min_below
from pomdp_hier.hierarchy.tree import Hierarchy

Tie: TypeAlias = Literal["descend", "search"]


TIE = 2.0**-41
"""The relative tolerance of a tie between gain and loss: the rounding of sums over 10,000 children."""


def descends(margin: Floats, loss: Floats, tie: Tie) -> Bools:
    """Return whether to descend, if that changes the value by ``margin``, a gain minus the ``loss`` ``[n]``.

    Gain and loss tie if they are equal up to rounding, relative to the loss. So the smallest strict loss is a loss, and
    an exact tie is a tie for any number of children. `on_numba` has the same definition, compiled.

    Example:
        >>> import numpy as np
        >>> margin, loss = np.array([-0.1, 1e-15, 0.0, -1e-20, 0.1]), np.array([1.0, 1.0, 0.0, 1e-20, 1.0])
        >>> descends(margin, loss, "descend").tolist()
        [False, True, True, False, True]
        >>> descends(margin, loss, "search").tolist()
        [False, False, False, False, True]
    """
    return margin >= -TIE * loss if tie == "descend" else margin > TIE * loss


def check_tie(tie: object) -> None:
    """Raise `ParameterError` unless the value is a tie rule."""
    check_choice("tie", tie, ("descend", "search"))


@runtime_checkable
class StoppingRule(Protocol):
    """Protocol of a custom stopping rule.

    ``descend`` is called once for all items at one node.

    Example:
        >>> from pomdp_hier import Hierarchy, hqs_score
        >>> class Bold:
        ...     def descend(self, eta, sizes, rewards, level):
        ...         return eta.max(axis=1) > 0.6
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> round(hqs_score([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], tree, delta=0.1, policy=Bold()), 4)
        0.6222
    """

    def descend(self, eta: Floats, sizes: Ints, rewards: Floats, level: int) -> Bools:
        """Return whether each item continues to a child, ``bool [m]``.

        Args:
            eta: The guidance ``[m, children]``.
            sizes: The sizes of the children ``[children]``; their sum is the node's size.
            rewards: The rewards of searching each child ``[children]``.
            level: The node's level; the root's is 0.
        """


@dataclass(frozen=True)
class LookAhead:
    """Stopping rule that plans ``depth`` steps ahead: RTBSS with the value of searching as leaf value.

    It descends if ``sum over c' of eta**2 W(c')`` is larger than ``r(c) + 1``, with ``W = max(r + 1, sum of eta**2 W)``
    above the depth and ``W = r + 1`` there. Depth 1 is the paper's one-step policy: it compares searching here with
    searching one level down. None is the optimal policy of the agent's model.

    Attributes:
        depth: Steps to plan ahead, at least 1; None for all.
        tie: The action if both have the same value.

    Raises:
        ParameterError: The depth is below 1.

    Example:
        >>> LookAhead(2)
        LookAhead(depth=2, tie='descend')
    """

    depth: int | None = 1
    tie: Tie = "descend"

    def __post_init__(self) -> None:
        if self.depth is not None and not (is_integer(self.depth) and self.depth >= 1):
            raise unexpected("depth", self.depth, "an integer of at least 1, or None for all")
        check_tie(self.tie)


@dataclass(frozen=True)
class AlwaysDescend:
    """Always descend to a leaf cluster."""


@dataclass(frozen=True)
class SearchRoot:
    """Always search at the root."""


@dataclass(frozen=True)
class HindsightRule:
    """Stop where the oracle value along the true path is largest, an upper bound for every policy.

    Attributes:
        tie: Among nodes of equal value, the deepest ("descend") or the first ("search").
    """

    tie: Tie = "descend"

    def __post_init__(self) -> None:
        check_tie(self.tie)


Rule: TypeAlias = LookAhead | AlwaysDescend | SearchRoot | HindsightRule | StoppingRule


def as_rule(policy: Any, tie: Tie) -> Rule | None:
    """Return the stopping rule of a policy's name, a rule unchanged, and None for any other policy.

    Example:
        >>> as_rule("optimal", "search")
        LookAhead(depth=None, tie='search')
    """
    check_tie(tie)
    names: dict[str, Rule] = {
        "one-step": LookAhead(1, tie),
        "optimal": LookAhead(None, tie),
        "search-root": SearchRoot(),
        "descend": AlwaysDescend(),
        "hindsight": HindsightRule(tie),
    }
    if isinstance(policy, str):
        if policy not in names:
            expected = ", ".join(repr(name) for name in names)
            raise unexpected("policy", policy, f"{expected}, a StoppingRule or a Policy")
        return names[policy]
    if isinstance(policy, LookAhead | AlwaysDescend | SearchRoot | HindsightRule | StoppingRule):
        return policy
    return None


def ask(rule: StoppingRule, eta: Floats, sizes: Ints, rewards: Floats, level: int) -> Bools:
    """Return the decisions of a custom stopping rule for the items at one node, ``bool [m]``."""
    answer = rule.descend(eta, sizes, rewards, level)
    try:
        checked = np.asarray(answer)
    except ValueError:  # lists of unequal lengths
        checked = np.asarray(None)
    if checked.dtype != np.bool_ or checked.shape != (len(eta),):
        raise ParameterError(
            f"policy: got {checked.dtype} of shape {checked.shape} from {brief(rule)} at level {level}; expected "
            "an array "
            f"of bool of shape ({len(eta)},), one per item. Let descend() return one, such as eta.max(axis=1) > 0.6."
        )
    return checked


Advance = Callable[[int], object]
"""Called with the number of items that were finished since the last call."""


@dataclass(frozen=True)
class NodeRewards:
    """Rewards of the nodes.

    Attributes:
        reward: ``r(node)`` ``[n_nodes]``.
        rise: ``r(node) - r(parent)`` without cancellation ``[n_nodes]``; 0 at the root.
    """

    reward: Floats
    rise: Floats


@dataclass(frozen=True)
class Task:
    """One scoring task.

    Attributes:
        affinity: Similarities of items to clusters.
        rewards: Rewards of the nodes.
        temperatures: ``delta_t`` per level, ``[height + 1]``.
        rule: The stopping rule.
        enter_own_singleton: Whether the search may step into the cluster of the item alone.
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
    def ends(self) -> Ints:
        """The deepest cluster that the search for each item may enter ``[N]``."""
        tree = self.hierarchy
        leaf = tree.leaf_of_item
        if self.enter_own_singleton:
            return leaf
        own = (leaf == np.arange(tree.n_items)) & (tree.parent[leaf] >= 0)
        return np.where(own, tree.parent[leaf], leaf)

    @cached_property
    def potential(self) -> Floats:
        """Largest reward below each node minus its own ``[n_nodes]``, a bound for planning."""
        tree, reward = self.hierarchy, self.rewards.reward
        smallest = min_below(tree.parent, np.where(tree.is_leaf, tree.sizes, tree.n_items))
        sizes, examples = np.unique(tree.sizes, return_index=True)
        best = reward[examples[np.searchsorted(sizes, smallest)]]
        return np.where(tree.is_leaf, 0.0, best - reward)


@dataclass(frozen=True)
class Stops:
    """Stop nodes of the searches.

    Attributes:
        nodes: The searched node ``[m]``.
        probabilities: The probability of following the true path to it ``[m]``.
    """

    nodes: Ints
    probabilities: Floats
