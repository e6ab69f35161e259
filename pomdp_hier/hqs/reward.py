"""Rewards of finding the target in a cluster, by cluster size."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import is_real
from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._engines.task import NodeRewards
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy

Reward: TypeAlias = Callable[[int, int], float]
"""``reward(size, n_items)``: above -1, the reward of a failed search, and not growing with the size."""

LARGEST = 1e100  # its square, and its sum over all items, are finite


def paper_reward(size: npt.ArrayLike, n_items: int) -> Floats:
    """Return the paper's reward ``r(c) = 1 - (exp(|c|/N) - 1) / (e - 1)`` of clusters of these sizes.

    It is 0 at the root and near 1 for a single item.

    References:
        Huang, Piao, Moreno and Hurley, definition of the reward.
    """
    share = np.asarray(size, dtype=np.float64) / n_items
    # (e - exp(s)) / (e - 1) by expm1: exactly 0 at the root, full precision near it
    reward: Floats = np.exp(share) * np.expm1(1.0 - share) / np.expm1(1.0)
    return reward


def node_rewards(hierarchy: Hierarchy, reward: Reward | None = None) -> NodeRewards:
    """Return the reward of every node, and its rise over the parent's.

    References:
        Huang, Piao, Moreno and Hurley, reward model.
    """
    require_hierarchy(hierarchy)
    sizes, n_items = hierarchy.sizes, hierarchy.n_items
    above = sizes[np.maximum(hierarchy.parent, 0)]
    above[hierarchy.root] = n_items
    by_size = SizeRewards(np.unique(sizes), n_items, reward)
    return NodeRewards(by_size.of(sizes), by_size.rise(sizes, above))


class SizeRewards:
    """Rewards by cluster size, computed once per size.

    Args:
        sizes: The sizes that occur, ascending ``[S]``.
        n_items: N.
        reward: ``reward(size, n_items)``; None for the paper's.

    Example:
        >>> rewards = SizeRewards(np.array([1, 4]), 4, lambda size, n_items: 1 - size / n_items)
        >>> rewards.rise(np.array([1]), np.array([4]))
        array([0.75])
    """

    def __init__(self, sizes: Ints, n_items: int, reward: Reward | None) -> None:
        self._sizes, self._n_items, self._paper = sizes, n_items, reward is None
        if reward is None:
            return
        if not callable(reward):
            raise ParameterError(f"reward: got {brief(reward)}; expected a function, reward(size, n_items), or None.")
        self._values = np.array([_number(reward(int(size), n_items), int(size)) for size in sizes])
        _check_decreasing(sizes, self._values)

    def of(self, sizes: Ints) -> Floats:
        """Return the rewards of clusters of these sizes."""
        if self._paper:
            return paper_reward(sizes, self._n_items)
        values: Floats = self._values[np.searchsorted(self._sizes, sizes)]
        return values

    def rise(self, sizes: Ints, above: Ints) -> Floats:
        """Return the rise of the reward over that of the parent's size, without cancellation."""
        if self._paper:
            gap = np.expm1((above - sizes) / self._n_items)
            return np.asarray(np.exp(sizes / self._n_items) * gap / np.expm1(1.0))
        return self.of(sizes) - self.of(above)


def _number(value: object, size: int) -> float:
    """Return the value of a reward function for a cluster of this size, as a float."""
    if not is_real(value):
        raise ParameterError(
            f"reward: got {brief(value)} for {size} item(s); expected a number. Return one from reward(size, n_items)."
        )
    return float(value)


def _check_decreasing(sizes: Ints, rewards: Floats) -> None:
    wrong = np.flatnonzero(~((rewards <= LARGEST) & (rewards > -1)))
    if len(wrong):
        raise ParameterError(
            f"reward: got {rewards[wrong[0]]} for {sizes[wrong[0]]} item(s); expected "
            f"a number above -1, the reward of a miss, and at most {LARGEST:g}. Change the reward function."
        )
    wrong = np.flatnonzero(np.diff(rewards) > 0)
    if len(wrong):
        low = int(wrong[0])
        raise ParameterError(
            f"reward: got {rewards[low]} for {sizes[low]} item(s) and {rewards[low + 1]} for {sizes[low + 1]}; "
            "expected a reward that does not increase with the cluster size. Change the reward function."
        )
