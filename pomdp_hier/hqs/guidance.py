"""Guidance, a softmax over child similarities, with its maximum-likelihood temperature; and the rewards of clusters."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Floats, Ints, generator, is_real, unexpected
from pomdp_hier._engines.on_numpy import own_steps
from pomdp_hier._engines.task import NodeRewards, Task
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.features.membership import ranges
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy

BOUNDS = (1e-4, 10.0)
ENTRIES = 1 << 25
_LEAST = float(np.finfo(np.float64).tiny)


def check_temperature(delta: float, nu: float) -> None:
    """Raise unless delta and nu are positive and finite."""
    if not (_is_finite(delta) and delta > 0):
        raise ParameterError(Argument("delta"), f": got {brief(delta)}; expected a positive number, such as 0.01.")
    if not (_is_finite(nu) and nu > 0):
        raise unexpected("nu", nu, "a positive number, the factor of the temperature per level, such as 1")


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return the bounds of a search for delta as two floats.

    Example:
        >>> check_bounds([1e-3, 1])
        (0.001, 1.0)
    """
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = 0.0
    if not 0 < low < high < np.inf:
        raise unexpected("bounds", bounds, "two positive numbers, the smaller first", f" Pass, for example, {BOUNDS}.")
    return low, high


def _is_finite(value: object) -> bool:
    return is_real(value) and math.isfinite(value)


def temperatures(levels: npt.ArrayLike, delta: float, nu: float = 1.0) -> Any:
    """Return ``delta_t = delta * nu**t`` per level t (root 0); infinity, the uniform limit, on overflow.

    Temperatures that underflow, for nu below 1, are the smallest positive float: the most similar child is certain.

    References:
        Huang, Piao, Moreno and Hurley, equation of guidance.
    """
    with np.errstate(over="ignore", under="ignore"):
        found = delta * np.power(float(nu), np.asarray(levels, dtype=np.float64))
    return np.maximum(found, min(delta, _LEAST))


def guidance(similarities: npt.ArrayLike, delta: float, nu: float = 1.0, level: int = 0) -> Floats:
    """Return ``eta``, the probability of stepping to each child, along the last axis.

    ``eta(c, c') = softmax of sim(x, c') / delta_t``. The largest similarity is subtracted first, to avoid overflow. An
    only child has probability exactly 1. Source: Huang, Piao, Moreno and Hurley, equation of guidance.

    Args:
        similarities: ``[..., children]``.
    """
    check_temperature(delta, nu)
    values = np.asarray(similarities, dtype=np.float64)
    with np.errstate(over="ignore"):  # near temperature 0 the other exponents are -inf
        weights = np.exp((values - values.max(axis=-1, keepdims=True)) / temperatures(level, delta, nu))
    eta: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return eta


@dataclass(frozen=True)
class TreeCalibration:
    """The most likely temperature of one tree.

    Attributes:
        delta: The temperature; a bound if the likelihood still rises there.
        at_bound: ``""``, ``"lower"`` or ``"upper"``.
        log_likelihood: The mean of ``log eta`` of the correct child over the steps at that temperature, in nats; NaN
            without steps.
        n_steps: The number of steps with more than one child and not into a singleton.
        n_items: The number of their items; in large trees a sample.
    """

    delta: float
    at_bound: str
    log_likelihood: float
    n_steps: int
    n_items: int


@dataclass(frozen=True)
class Calibration:
    """The common temperature of several trees.

    Attributes:
        delta: The mean of the trees' temperatures.
        trees: The calibration of each tree.
        bounds: The search interval.
    """

    delta: float
    trees: Mapping[str, TreeCalibration]
    bounds: tuple[float, float]

    @property
    def at_bound(self) -> bool:
        """Whether a temperature is at a bound, and is therefore not a maximum."""
        return any(tree.at_bound for tree in self.trees.values())

    def summary(self) -> str:
        """Return the temperature and its origin as text."""
        lines = [f"delta {self.delta:.6g}, calibrated: the mean over {len(self.trees)} tree(s)"]
        for name, tree in self.trees.items():
            note = f", at the {tree.at_bound} bound: no maximum within {self.bounds}" if tree.at_bound else ""
            lines.append(f"  {name}: {tree.delta:.6g} from {tree.n_steps:,} steps of {tree.n_items:,} items{note}")
        return "\n".join(lines)


def most_likely_delta(
    tasks: Iterable[tuple[str, Task]],
    bounds: tuple[float, float] = BOUNDS,
    max_entries: int = ENTRIES,
    random_state: int = 0,
) -> Calibration:
    """Return the temperature that `calibrate_delta` describes."""
    found = {name: _calibrated_tree(task, bounds, max_entries, random_state) for name, task in tasks}
    return Calibration(float(np.mean([tree.delta for tree in found.values()])), found, bounds)


def _calibrated_tree(task: Task, bounds: tuple[float, float], max_entries: int, random_state: int) -> TreeCalibration:
    items = _sampled(task.hierarchy, max_entries, random_state)
    choices = _true_choices(task, items)
    delta, at_bound = choices.maximum(*bounds)
    logs = choices.logs(delta)
    mean = float(logs.mean()) if len(logs) else float("nan")
    return TreeCalibration(delta, at_bound, mean, len(logs), len(items))


class ChoiceLikelihood:
    """Log likelihood of choices among children under guidance, as a function of delta; concave in 1/delta.

    Args:
        gaps: The similarity of each child minus that of the chosen one, over ``nu**level`` ``[pairs]``.
        counts: The number of children of each choice ``[choices]``.
        prior_odds: The log probability of each child minus that of the chosen one at infinite temperature ``[pairs]``;
            uniform by default.
    """

    def __init__(self, gaps: Floats, counts: Ints, prior_odds: Floats | None = None) -> None:
        self.gaps, self.counts, self._prior_odds = gaps, counts, prior_odds
        self._firsts = np.cumsum(counts) - counts

    def maximum(self, low: float, high: float) -> tuple[float, str]:
        """Return the maximum between the bounds and ``""``, or a bound and its name; the upper one if constant."""
        if not len(self.counts):
            return high, "upper"
        # In log delta. A positive slope in 1/delta means a smaller delta.
        if self._slope(np.log(low)) >= 0:
            return low, "lower"
        if self._slope(np.log(high)) <= 0:
            return high, "upper"
        from scipy.optimize import brentq  # slow to import, and not needed by a score

        return float(np.exp(brentq(self._slope, np.log(low), np.log(high), xtol=1e-10))), ""

    def logs(self, delta: float) -> Floats:
        """Return the log probability of each choice, in nats ``[choices]``."""
        top, weights = self._weights(delta)
        logs: Floats = -(top + np.log(np.add.reduceat(weights, self._firsts))) if len(self.counts) else np.empty(0)
        return logs

    def slopes(self, delta: float) -> Floats:
        """Return the derivative of each log probability in 1/delta: chosen minus expected similarity ``[choices]``."""
        _, weights = self._weights(delta)
        total = np.add.reduceat(weights, self._firsts)
        weights *= self.gaps
        slopes: Floats = -np.add.reduceat(weights, self._firsts) / total
        return slopes

    def log_odds(self, delta: float) -> Floats:
        """Return the log probability of each child minus that of the chosen one ``[pairs]``."""
        odds = self.gaps / delta
        if self._prior_odds is not None:
            odds += self._prior_odds
        return odds

    def _slope(self, log_delta: float) -> float:
        return float(self.slopes(float(np.exp(log_delta))).sum())

    def _weights(self, delta: float) -> tuple[Floats, Floats]:
        if not len(self.counts):
            return np.empty(0), np.empty(0)
        scaled = self.log_odds(delta)
        top = np.maximum.reduceat(scaled, self._firsts)
        scaled -= np.repeat(top, self.counts)
        return top, np.exp(scaled, out=scaled)


def _true_choices(task: Task, items: Ints) -> ChoiceLikelihood:
    """Return the likelihood of the correct children on the true paths of a tree."""
    tree = task.hierarchy
    gaps: list[Floats] = [np.empty(0)]
    counts = [np.empty(0, dtype=np.int64)]
    for step in own_steps(task, items):
        chosen = np.flatnonzero((step.counts > 1) & (tree.sizes[step.own] > 1))
        at = ranges(step.firsts[chosen], step.counts[chosen])
        correct = np.repeat(step.similarities[step.own_at[chosen]], step.counts[chosen])
        gaps.append((step.similarities[at] - correct) / task.temperatures[step.level] * task.temperatures[0])
        counts.append(step.counts[chosen])
    return ChoiceLikelihood(np.concatenate(gaps), np.concatenate(counts))


def _sampled(tree: Hierarchy, max_entries: int, random_state: int) -> Any:
    """Return all items, or a random sample with about ``max_entries`` similarities."""
    children = np.diff(tree.child_offsets)
    entries = float(children @ tree.sizes)
    if entries <= max_entries:
        return np.arange(tree.n_items)
    n_chosen = max(1, int(tree.n_items * max_entries / entries))
    return np.sort(generator("random_state", random_state).choice(tree.n_items, n_chosen, replace=False))


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
        self._values = np.array([_as_reward(reward(int(size), n_items), int(size)) for size in sizes])
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


def _as_reward(value: object, size: int) -> float:
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
