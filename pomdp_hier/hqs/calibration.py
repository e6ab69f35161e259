"""The temperature under which the guidance explains best where the items are: a maximum of likelihood."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from pomdp_hier._arguments import check_whole, generator
from pomdp_hier._arrays import Floats
from pomdp_hier._engines.true_path import own_steps
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.features.members import ranges
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import shown, warn_user
from pomdp_hier.hqs.inputs import Prepared, as_trees, prepare
from pomdp_hier.hqs.settings import Settings

__all__ = ["Calibration", "TreeCalibration", "calibrate_delta", "calibrated"]

_ENTRIES = 1 << 25
_BOUNDS = (1e-4, 10.0)


@dataclass(frozen=True)
class TreeCalibration:
    """The most likely temperature of one tree.

    Attributes:
        delta: The temperature; a bound where the likelihood still rises there.
        at_bound: ``""``, ``"lower"`` or ``"upper"``.
        log_likelihood: The mean of ``log eta`` of the right child over the steps at that temperature, in nats; NaN
            without steps.
        n_steps: How many steps counted: with a choice, and not into a singleton.
        n_items: How many items they are of; less than all where the tree is so large that a sample had to do.
    """

    delta: float
    at_bound: str
    log_likelihood: float
    n_steps: int
    n_items: int


@dataclass(frozen=True)
class Calibration:
    """The temperature for a set of trees that are compared.

    Attributes:
        delta: The mean of the trees' temperatures.
        trees: Each tree's own.
        bounds: Where it was looked for.
    """

    delta: float
    trees: Mapping[str, TreeCalibration]
    bounds: tuple[float, float]

    @property
    def at_bound(self) -> bool:
        """Whether a tree's temperature stands at a bound, so that it is no maximum."""
        return any(tree.at_bound for tree in self.trees.values())

    def summary(self) -> str:
        """Return the temperature in words, and where it came from."""
        lines = [f"delta {self.delta:.6g}, calibrated: the mean over {len(self.trees)} tree(s)"]
        for name, tree in self.trees.items():
            note = f", at the {tree.at_bound} bound: no maximum within {self.bounds}" if tree.at_bound else ""
            lines.append(f"  {name}: {tree.delta:.6g} from {tree.n_steps:,} steps of {tree.n_items:,} items{note}")
        return "\n".join(lines)


def calibrate_delta(
    X: Any,
    hierarchy: Hierarchy | Mapping[str, Hierarchy],
    *,
    bounds: tuple[float, float] = _BOUNDS,
    similarity: Any = "cosine",
    nu: float = 1.0,
    enter_own_singleton: bool = True,
    max_entries: int = _ENTRIES,
    random_state: int = 0,
) -> Calibration:
    """Return the temperature that maximises the sum of ``log eta`` of the right children over all true paths.

    With ``s`` the similarities at a node and ``s*`` that to the right child, each step adds
    ``s*/delta_t - log sum exp(s/delta_t)``, which is concave in 1/delta, so that there is one maximum, found where the
    slope, the sum of ``(s* - mean of s under eta) / nu**t``, crosses 0. Steps into singletons are left out, for the
    similarity of an item to itself is a convention, and so are steps without a choice. For several trees, the mean over
    the trees.

    It fits the guidance to where the items are, not to the choices of people. It does not maximise HQS, which may fall.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: A tree, or trees by name.
        bounds: Where to look; where the likelihood still rises at a bound, the result is the bound, and says so.
        similarity, nu, enter_own_singleton: As for `evaluate`.
        max_entries: How many similarities to keep at most; if a tree has more, a random sample of its items is taken.
        random_state: The seed of that sample.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For bounds that are not two rising positive numbers, or no tree.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], 6)
        >>> X = [[2.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 2.0], [1.0, 3.0], [2.0, 2.0]]
        >>> found = calibrate_delta(X, tree)
        >>> round(found.delta, 4), found.at_bound
        (0.2786, False)

    References:
        Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML (temperature scaling).
    """
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = 0.0
    if not 0 < low < high < np.inf:
        raise ParameterError(
            f"bounds are {shown(bounds)}; give two positive numbers, the smaller first, such as {_BOUNDS}"
        )
    check_whole("max_entries", max_entries, 1)
    settings = Settings(similarity=similarity, nu=nu, enter_own_singleton=enter_own_singleton)
    trees = as_trees(hierarchy)
    prepared = prepare(X, next(iter(trees.values())), settings)
    return _calibration(prepared, trees, (low, high), max_entries, random_state)


def calibrated(prepared: Prepared, trees: Mapping[str, Hierarchy]) -> Prepared:
    """Return the same with ``delta="calibrated"`` replaced by the temperature for these trees.

    A temperature at a bound gives a `DataWarning`.
    """
    found = _calibration(prepared, trees, _BOUNDS, _ENTRIES, 0)
    notes = [
        f"the calibrated temperature of {shown(name)} stands at the {tree.at_bound} bound, {tree.delta:g}: "
        "beyond it the guidance would fit still better; give delta as a number"
        for name, tree in found.trees.items()
        if tree.at_bound
    ]
    warn_user(notes, DataWarning)
    return prepared.under(delta=found.delta, calibration=found)


def _calibration(
    prepared: Prepared,
    trees: Mapping[str, Hierarchy],
    bounds: tuple[float, float],
    max_entries: int,
    random_state: int,
) -> Calibration:
    found = {
        name: _Likelihood(prepared.on(tree), max_entries, random_state).maximum(*bounds) for name, tree in trees.items()
    }
    return Calibration(float(np.mean([tree.delta for tree in found.values()])), found, bounds)


class _Likelihood:
    """The similarities met on the true paths of one tree, less that to the right child and over ``nu**level``."""

    def __init__(self, prepared: Prepared, max_entries: int, random_state: int) -> None:
        tree, task = prepared.hierarchy, prepared.under(delta=Settings.delta).task()  # any serves: it is divided out
        items = _sampled(tree, max_entries, random_state)
        gaps: list[Floats] = [np.empty(0)]
        counts = [np.empty(0, dtype=np.int64)]
        for step in own_steps(task, items):
            chosen = np.flatnonzero((step.counts > 1) & (tree.sizes[step.own] > 1))
            at = ranges(step.firsts[chosen], step.counts[chosen])
            right = np.repeat(step.similarities[step.own_at[chosen]], step.counts[chosen])
            gaps.append((step.similarities[at] - right) / task.temperatures[step.level] * task.temperatures[0])
            counts.append(step.counts[chosen])
        self.n_items = len(items)
        self.gaps = np.concatenate(gaps)
        self.counts = np.concatenate(counts)
        self.firsts = np.cumsum(self.counts) - self.counts

    def maximum(self, low: float, high: float) -> TreeCalibration:
        """Return the maximum between the bounds; where all temperatures are alike, the upper bound."""
        if not len(self.counts):
            return TreeCalibration(high, "upper", float("nan"), 0, self.n_items)
        # In log delta; the slope in 1/delta is positive where the guidance should be surer, that is delta smaller.
        if self._slope(np.log(low)) >= 0:
            delta, at_bound = low, "lower"
        elif self._slope(np.log(high)) <= 0:
            delta, at_bound = high, "upper"
        else:
            root = brentq(self._slope, np.log(low), np.log(high), xtol=1e-10)
            delta, at_bound = float(np.exp(root)), ""
        top, weights = self._weights(delta)
        logs = -(top + np.log(np.add.reduceat(weights, self.firsts)))
        return TreeCalibration(delta, at_bound, float(logs.mean()), len(self.counts), self.n_items)

    def _slope(self, log_delta: float) -> float:
        """Return the derivative of the log likelihood by 1/delta: right less expected similarity, over all steps."""
        _, weights = self._weights(np.exp(log_delta))
        total = np.add.reduceat(weights, self.firsts)
        weights *= self.gaps
        return -float((np.add.reduceat(weights, self.firsts) / total).sum())

    def _weights(self, delta: float) -> tuple[Floats, Floats]:
        scaled = self.gaps / delta
        top = np.maximum.reduceat(scaled, self.firsts)
        scaled -= np.repeat(top, self.counts)
        return top, np.exp(scaled, out=scaled)


def _sampled(tree: Hierarchy, max_entries: int, random_state: int) -> Any:
    """All items, or so many at random that their similarities are about ``max_entries``."""
    children = np.diff(tree.child_offsets)
    entries = float(children @ tree.sizes)
    if entries <= max_entries:
        return np.arange(tree.n_items)
    n_chosen = max(1, int(tree.n_items * max_entries / entries))
    return np.sort(generator("random_state", random_state).choice(tree.n_items, n_chosen, replace=False))
