"""Checked input of a score: features, trees, weights, settings and the calibrated temperature."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from pomdp_hier._arguments import Floats, Ints, as_floats, check_integer, unexpected
from pomdp_hier._engines.task import LookAhead, NodeRewards, Task
from pomdp_hier._intervals import relative_weights
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, DataWarning, ParameterError
from pomdp_hier.features.affinity import Affinity, affinity, warn_about
from pomdp_hier.features.items import ItemFeatures, item_features, match_ids
from pomdp_hier.hierarchy.flat import FlatTree, require_hierarchy
from pomdp_hier.hierarchy.node_names import warn_user
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import (
    BOUNDS,
    ENTRIES,
    Calibration,
    check_bounds,
    most_likely_delta,
    node_rewards,
    temperatures,
)
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.settings import Run, Settings, read_settings
from pomdp_hier.measures.tree_distances import item_numbers

Weights: TypeAlias = Sequence[float] | Floats | Mapping[Any, float]
"""One number per feature row, or numbers by the ids of the items."""

_ADVICE = " Give every item a number of searches, 0 for an item that nobody looks for."


def check_weights(sample_weight: Any, hierarchy: FlatTree, rows: Ints | None = None) -> Floats | None:
    """Return the weight of each item ``[N]``; None without weights, and for equal ones, which change nothing.

    Args:
        rows: The feature row of each item ``[N]``, where rows were joined to items by id.

    Example:
        >>> from pomdp_hier import Hierarchy
        >>> tree = Hierarchy.from_paths({"boots": "shoes", "parka": "coats"})
        >>> check_weights({"parka": 3, "boots": 1}, tree)
        array([1., 3.])
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Mapping):
        match = match_ids(list(sample_weight), hierarchy.item_labels)
        if faults := [fault.replace("feature row", "weight") for fault in match.faults()]:
            raise ParameterError(
                Argument("sample_weight"), f": got {'; '.join(faults)}; expected one weight per item.{_ADVICE}"
            )
        values, rows = list(sample_weight.values()), match.rows
    else:
        values = sample_weight
    n_rows = hierarchy.n_items if rows is None else int(rows.max()) + 1
    weights = _as_numbers(values, n_rows)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        place = _place(int(wrong[0]), hierarchy, rows, isinstance(sample_weight, Mapping))
        raise ParameterError(
            Argument("sample_weight"),
            f": got {weights[wrong[0]]} in {place}; expected a finite number of at least 0.{_ADVICE}",
        )
    if not weights.any():
        raise unexpected("sample_weight", "zeros", "at least one weight above 0", _ADVICE)
    weights = weights if rows is None else weights[rows]
    return None if (weights == weights[0]).all() else weights


def _place(row: int, hierarchy: FlatTree, rows: Ints | None, by_id: bool) -> str:
    """Return where a weight is: its row, or its item, or both where rows were joined to items."""
    item = row if rows is None else int(np.flatnonzero(rows == row)[0])
    if hierarchy.labels is None:
        return f"row {row}" if not by_id else f"item {item}"
    name = f"item {brief(hierarchy.labels[item])}"
    return name if rows is None or by_id else f"row {row} ({name})"


def _as_numbers(values: Any, n_rows: int) -> Floats:
    if isinstance(values, range) and len(values) != n_rows:  # which may be longer than memory
        values = ()
    try:
        weights = as_floats(values).copy()
    except (TypeError, ValueError, OverflowError):
        raise unexpected("sample_weight", values, f"{n_rows} numbers, one per item", _ADVICE) from None
    if weights.shape != (n_rows,):
        raise ParameterError(
            Argument("sample_weight"),
            f": got an array of shape {weights.shape}; expected ({n_rows},), one number per item.",
            _ADVICE,
        )
    return weights


@dataclass(frozen=True, eq=False)
class Prepared:
    """Checked features, tree and settings of a score.

    Attributes:
        features: The features of the items, or their similarities, the result of `affinity`.
        hierarchy: The tree over the rows.
        settings: Settings of the model, with a number for delta.
        compiled: Whether numba may sum dense features.
        calibration: The calibration of delta, if requested.
        weights: The weight of each item in the mean ``[N]``; None for equal ones.
    """

    features: ItemFeatures | Affinity
    hierarchy: Hierarchy
    settings: Settings
    compiled: bool = True
    calibration: Calibration | None = None
    weights: Floats | None = None

    @cached_property
    def affinity(self) -> Affinity:
        """Similarities of items to clusters."""
        if not isinstance(self.features, ItemFeatures):
            return self.features
        return affinity(self.features, self.hierarchy, self.settings.similarity, compiled=self.compiled)

    @cached_property
    def rewards(self) -> NodeRewards:
        """Rewards of the nodes."""
        return node_rewards(self.hierarchy, self.settings.reward)

    @cached_property
    def _relative(self) -> Floats | None:
        return None if self.weights is None else relative_weights(self.weights)

    def total(self, numbers: Floats, items: Ints) -> float:
        """Return the sum of one number per given item, by the weights over their mean."""
        return float((numbers if self._relative is None else numbers * self._relative[items]).sum())

    def task(self, threads: int | None = None) -> Task:
        """Return the task of an engine; a policy that is not a stopping rule is replaced by the one-step policy."""
        settings = self.settings
        return Task(
            affinity=self.affinity,
            rewards=self.rewards,
            temperatures=temperatures(np.arange(int(self.hierarchy.height) + 1), float(settings.delta), settings.nu),
            rule=settings.rule or LookAhead(1, settings.tie),
            enter_own_singleton=settings.enter_own_singleton,
            threads=threads,
        )

    def tasks(self, trees: Mapping[str, Hierarchy]) -> Iterator[tuple[str, Task]]:
        """Yield one task per tree over the same items, at the default temperature."""
        for name, tree in trees.items():
            yield name, self.on(tree).under(delta=Settings.delta).task()

    def on(self, hierarchy: Hierarchy) -> "Prepared":
        """Return the same input with another tree over the same items."""
        return self if hierarchy is self.hierarchy else replace(self, hierarchy=hierarchy)

    def under(self, *, calibration: Calibration | None = None, **changes: Any) -> "Prepared":
        """Return the same input with other settings (not the similarity), and reuse sums and rewards."""
        known = self.calibration if calibration is None else calibration
        other = replace(self, settings=replace(self.settings, **changes), calibration=known)
        other.__dict__["affinity"] = self.affinity
        if "reward" not in changes:
            other.__dict__["rewards"] = self.rewards
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; derived values are computed again when needed."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def prepare(
    X: Any,
    hierarchy: Hierarchy,
    settings: Settings,
    *,
    trees: Mapping[str, Hierarchy] | None = None,
    compiled: bool = True,
    warn: bool = True,
    sample_weight: Any = None,
) -> Prepared:
    """Check features, tree and settings, warn of degenerate features, and calibrate delta if requested.

    Args:
        X: Features ``[N, D]``, similarities ``[N, N]``, or the result of `item_features`.
    """
    features = item_features(X, hierarchy, settings.similarity)
    weights = check_weights(sample_weight, hierarchy, features.rows)
    prepared = Prepared(features, hierarchy, settings, compiled, weights=weights)
    if warn and features is not X:
        warn_about(prepared.affinity)
    if isinstance(settings.delta, str):
        prepared = _calibrated(prepared, {"tree": hierarchy} if trees is None else trees)
    return prepared


def _calibrated(prepared: Prepared, trees: Mapping[str, Hierarchy]) -> Prepared:
    """Return the input with the calibrated temperature of these trees; warn of a temperature at a bound."""
    found = most_likely_delta(prepared.tasks(trees))
    notes = [
        f"the calibrated temperature of {brief(name)} is at the {tree.at_bound} bound, {tree.delta:g}; the likelihood "
        "rises beyond it. Pass delta as a number."
        for name, tree in found.trees.items()
        if tree.at_bound
    ]
    warn_user(notes, DataWarning)
    return prepared.under(delta=found.delta, calibration=found)


def opened(
    X: Any,
    hierarchy: Hierarchy,
    given: Mapping[str, Any],
    refused: Mapping[str, str] | None = None,
    *,
    trees: Mapping[str, Hierarchy] | None = None,
    warn: bool = True,
) -> tuple[Prepared, Run, Sampling]:
    """Return the checked input, run and sample of keyword arguments of `evaluate`."""
    request = read_settings(given, **(refused or {}))
    request.check_used()
    compiled = request.run.engine != "numpy"
    prepared = prepare(
        *(X, hierarchy, request.settings),
        trees=trees,
        compiled=compiled,
        warn=warn,
        sample_weight=request.sample_weight,
    )
    return prepared, request.run, request.sampling


def as_trees(hierarchy: Hierarchy | Mapping[str, Hierarchy]) -> dict[str, Hierarchy]:
    """Return trees by name; a single one is called "tree"."""
    trees = dict(hierarchy) if isinstance(hierarchy, Mapping) else {"tree": hierarchy}
    if not trees:
        raise ParameterError("hierarchy: got an empty dict; expected a Hierarchy, or a dict of hierarchies by name.")
    for name, tree in trees.items():
        require_hierarchy(tree)
        if not isinstance(name, str):
            raise ParameterError(
                f"hierarchy: got {brief(name)} as the name of a tree; expected text. Use {brief(str(name))}."
            )
    for (first, one), (name, other) in combinations(trees.items(), 2):
        called = f"tree {brief(first)}", f"tree {brief(name)}"
        numbers = item_numbers(one, other, "the comparison", names=called, error=ParameterError)
        if numbers is not None:
            at = int(np.flatnonzero(numbers != np.arange(len(numbers)))[0])
            raise ParameterError(
                f"trees: got {brief(one.item_labels[at])} as item {at} of {called[0]}, and "
                f"{brief(other.item_labels[at])} of {called[1]}; expected the items in the order of the feature rows. "
                "Pass other.permuted(other.rows(first.item_labels), with_labels=True)."
            )
    return trees


def calibrate_delta(
    X: Any,
    hierarchy: Hierarchy | Mapping[str, Hierarchy],
    *,
    bounds: tuple[float, float] = BOUNDS,
    similarity: Any = "cosine",
    nu: float = 1.0,
    enter_own_singleton: bool = True,
    max_entries: int = ENTRIES,
    random_state: int = 0,
) -> Calibration:
    """Return the maximum-likelihood temperature of the correct children on all true paths.

    With similarities ``s`` at a node and ``s*`` to the correct child, each step adds ``s*/delta_t - log sum
    exp(s/delta_t)`` to the log likelihood. It is concave in 1/delta, with its maximum at the root of its slope, the sum
    of ``(s* - mean of s under eta) / nu**t``. Steps into singletons are excluded, as the similarity of an item to
    itself is a convention. Steps to a child without siblings are excluded too. For several trees, it is the mean.

    The fit is to the tree, not to the choices of people. It does not maximise HQS, which may fall.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: A tree, or trees by name.
        bounds: The search interval. If the likelihood still rises at a bound, the result is that bound (``at_bound``).
        similarity, nu, enter_own_singleton: As for `evaluate`.
        max_entries: The maximum number of similarities in memory; larger trees are fitted on a random sample of items.
        random_state: Seed of that sample.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: The bounds are not two increasing positive numbers, or the dict of trees is empty.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], 6)
        >>> X = [[2.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 2.0], [1.0, 3.0], [2.0, 2.0]]
        >>> found = calibrate_delta(X, tree)
        >>> round(found.delta, 4), found.at_bound
        (0.2786, False)

    References:
        Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML (temperature scaling).
    """
    low, high = check_bounds(bounds)
    check_integer("max_entries", max_entries, 1)
    settings = Settings(similarity=similarity, nu=nu, enter_own_singleton=enter_own_singleton)
    trees = as_trees(hierarchy)
    prepared = prepare(X, next(iter(trees.values())), settings)
    return most_likely_delta(prepared.tasks(trees), (low, high), max_entries, random_state)
