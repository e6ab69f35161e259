"""Input of a score, checked once on entry: settings of model, run and sample; features, trees, weights and temperature.

A setting without effect raises an error that names the engine or setting that would use it.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pomdp_hier._arguments import Floats, Ints, as_floats, check_flag, check_integer, generator, is_integer, unexpected
from pomdp_hier._engines.task import (
    AlwaysDescend,
    HindsightRule,
    LookAhead,
    NodeRewards,
    Rule,
    SearchRoot,
    Task,
    Tie,
    as_rule,
)
from pomdp_hier._intervals import relative_weights
from pomdp_hier._progress import check_jobs
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, DataWarning, ParameterError, Setting, warn_user
from pomdp_hier.features.affinity import Affinity, affinity, warn_about
from pomdp_hier.features.items import ItemFeatures, item_features, match_ids
from pomdp_hier.features.similarity import Similarity, as_similarity
from pomdp_hier.hierarchy.flat import FlatTree, require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import (
    BOUNDS,
    ENTRIES,
    Calibration,
    Reward,
    check_bounds,
    check_temperature,
    most_likely_delta,
    node_rewards,
    temperatures,
)
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.measures.tree_distances import item_numbers

if TYPE_CHECKING:
    from pomdp_hier.pomdp.problem import POMDP


CALIBRATED = "calibrated"
_ENGINES = ("auto", "numpy", "numba", "generic")


@dataclass(frozen=True)
class Settings:
    """Settings of the model; `evaluate` documents them."""

    similarity: Similarity = "cosine"
    delta: float | Literal["calibrated"] = 0.01
    nu: float = 1.0
    tie: Tie = "descend"
    policy: Any = "one-step"
    reward: Reward | None = None
    enter_own_singleton: bool = True

    def __post_init__(self) -> None:
        as_similarity(self.similarity)
        if isinstance(self.delta, str) and self.delta != CALIBRATED:
            raise unexpected("delta", self.delta, f"a positive number or '{CALIBRATED}'")
        check_temperature(1.0 if isinstance(self.delta, str) else self.delta, self.nu)
        as_rule(self.policy, self.tie)
        if self.reward is not None and not callable(self.reward):
            raise unexpected("reward", self.reward, "a function, reward(size, n_items), or None for the paper's")
        check_flag("enter_own_singleton", self.enter_own_singleton)

    @property
    def rule(self) -> Rule | None:
        """The stopping rule of the policy; None for a policy of the generic engine."""
        return as_rule(self.policy, self.tie)

    def check_tie(self) -> None:
        """Raise for a tie rule that the policy ignores."""
        if self.tie == "descend" or isinstance(self.policy, str):
            return
        if getattr(self.policy, "tie", None) != self.tie:
            raise ParameterError(
                Argument("tie"),
                f": got {brief(self.tie)}, which policy {named(self.policy)} does not use. "
                "Leave it out, or pass a policy by name: ",
                Setting("policy", "one-step"),
                ".",
            )

    def record(self) -> dict[str, Any]:
        """Return the settings for the ``config`` of a result."""
        return {
            "similarity": named(self.similarity),
            "delta": float(self.delta),
            "nu": float(self.nu),
            "tie": self.tie,
            "policy": named(self.policy),
            "reward": "paper" if self.reward is None else named(self.reward),
            "enter_own_singleton": self.enter_own_singleton,
        }


@dataclass(frozen=True)
class Run:
    """Settings of the run; `evaluate` documents them."""

    engine: str = "auto"
    threads: int | None = None
    progress: bool = False
    updater: "Callable[[POMDP], Any] | None" = None
    random_state: int | np.random.Generator | None = None
    n_jobs: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    policy_version: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.engine, str) or self.engine not in _ENGINES:
            raise ParameterError(f"engine: got {brief(self.engine)}; expected {', '.join(map(repr, _ENGINES))}.")
        if self.threads is not None and not (is_integer(self.threads) and self.threads >= 1):
            raise unexpected("threads", self.threads, "an integer of at least 1, or None for one per usable CPU")
        check_flag("progress", self.progress)
        if self.updater is not None and not callable(self.updater):
            raise unexpected("updater", self.updater, "a function from a problem to an updater, such as BayesUpdater")
        generator("random_state", self.random_state)
        check_jobs(self.n_jobs)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise ParameterError(f"checkpoint: got {brief(self.checkpoint)}; expected the path of a file.")
        if self.policy_version is not None and not isinstance(self.policy_version, str):
            raise ParameterError(f"policy_version: got {brief(self.policy_version)}; expected text, such as 'bold 2'.")
        if self.policy_version is not None and self.checkpoint is None:
            raise ParameterError(
                f"policy_version: got {brief(self.policy_version)}, which only a checkpoint uses. Pass checkpoint= and "
                "engine='generic', or leave it out."
            )

    @property
    def policy_seed(self) -> int:
        """The seed of the policies of the generic engine: the integer that was given, otherwise 0."""
        return int(self.random_state) if is_integer(self.random_state) else 0

    def seeded(self, random_state: Any) -> "Run":
        """Return the same run with this random state, for functions that take one for shuffles as well."""
        return replace(self, random_state=random_state)

    def is_generic(self, settings: Settings) -> bool:
        """Return whether these settings need the generic engine."""
        generic = self.engine == "generic" or settings.rule is None
        if generic and self.engine not in ("auto", "generic"):
            raise unexpected(
                "engine", self.engine, f"'generic', as policy {named(settings.policy)} is not a stopping rule"
            )
        return generic

    def check_used(self, *settings: Settings) -> None:
        """Raise for a setting that none of these searches uses."""
        generic = [self.is_generic(each) for each in settings]
        if all(generic) or self.engine == "numpy":
            rules = [each.rule for each in settings]
            compiled = all(isinstance(rule, LookAhead | AlwaysDescend | SearchRoot | HindsightRule) for rule in rules)
            self._refuse(
                ("threads",),
                "engine='numba'",
                "Pass that for dense features, or leave it out." if compiled else "Leave it out.",
            )
        if not any(generic):
            self._refuse(("updater", "n_jobs", "checkpoint", "policy_version"), "engine='generic'")

    def _refuse(self, names: tuple[str, ...], user: str, remedy: str = "Pass that, or leave it out.") -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in names and value != field.default:
                raise ParameterError(f"{field.name}: got {brief(value)}, which only {user} uses. {remedy}")


@dataclass(frozen=True)
class Request:
    """The keyword arguments of `evaluate`."""

    settings: Settings
    run: Run
    sampling: Sampling
    sample_weight: Any = None

    def check_used(self) -> None:
        """Raise for a setting without effect on the score of one tree under one policy."""
        self.settings.check_tie()
        self.run.check_used(self.settings)
        self.check_random_state(self.settings)

    def check_random_state(self, *settings: Settings) -> None:
        """Raise for a random state that neither a sample nor a policy of these searches uses."""
        given, whole = self.run.random_state, is_integer(self.run.random_state)
        if given is None or self.sampling.asked or (whole and any(self.run.is_generic(each) for each in settings)):
            return
        raise ParameterError(
            f"random_state: got {brief(given)}, which only a sample or an integer with engine='generic' uses. Pass "
            "sample_size or half_width, or leave it out."
        )


def read_settings(given: Mapping[str, Any], **refused: str) -> Request:
    """Return the records of keyword arguments of `evaluate`."""
    if "checkpoint" in refused:
        refused.setdefault("policy_version", refused["checkpoint"])
    for name, reason in refused.items():
        if name in given:
            raise ParameterError(f"{name}: got {brief(given[name])}; expected none, as {reason}")
    kinds = (Settings, Run, Sampling)
    known = [{field.name for field in fields(kind)} for kind in kinds]
    unknown = [name for name in given if name != "sample_weight" and not any(name in names for names in known)]
    if unknown:
        names = [*(field.name for kind in kinds for field in fields(kind)), "sample_weight"]
        expected = ", ".join(name for name in dict.fromkeys(names) if name not in refused)
        raise ParameterError(f"{unknown[0]}: got an unknown setting; expected one of {expected}.")
    parts = [{name: value for name, value in given.items() if name in names} for names in known]
    return Request(Settings(**parts[0]), Run(**parts[1]), Sampling(**parts[2]), given.get("sample_weight"))


def named(setting: Any) -> str:
    """Return the name of a setting, or its repr."""
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or brief(setting, 1000)


Weights: TypeAlias = Sequence[float] | Floats | Mapping[Any, float]
"""One number per feature row, or numbers by the ids of the items."""

_ADVICE = " Give every item a number of searches, 0 for an item that nobody looks for."


def check_weights(
    sample_weight: Any, hierarchy: FlatTree, rows: Ints | None = None, name: str = "sample_weight"
) -> Floats | None:
    """Return the weight of each item ``[N]``; None without weights, and for equal ones, which change nothing.

    With ``rows``, the feature row of each item ``[N]``, rows were joined to items by id.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Mapping):
        match = match_ids(list(sample_weight), hierarchy.item_labels)
        if faults := [fault.replace("feature row", "weight") for fault in match.faults()]:
            raise ParameterError(Argument(name), f": got {'; '.join(faults)}; expected one weight per item.{_ADVICE}")
        values, rows = list(sample_weight.values()), match.rows
    else:
        values = sample_weight
    n_rows = hierarchy.n_items if rows is None else int(rows.max()) + 1
    weights = _as_numbers(values, n_rows, name)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        place = _place(int(wrong[0]), hierarchy, rows, isinstance(sample_weight, Mapping))
        raise ParameterError(
            Argument(name),
            f": got {weights[wrong[0]]} in {place}; expected a finite number of at least 0.{_ADVICE}",
        )
    if not weights.any():
        raise unexpected(name, "zeros", "at least one weight above 0", _ADVICE)
    weights = weights if rows is None else weights[rows]
    return None if (weights == weights[0]).all() else weights


def _place(row: int, hierarchy: FlatTree, rows: Ints | None, by_id: bool) -> str:
    """Return where a weight is: its row, or its item, or both where rows were joined to items."""
    item = row if rows is None else int(np.flatnonzero(rows == row)[0])
    if hierarchy.labels is None:
        return f"row {row}" if not by_id else f"item {item}"
    name = f"item {brief(hierarchy.labels[item])}"
    return name if rows is None or by_id else f"row {row} ({name})"


def _as_numbers(values: Any, n_rows: int, name: str) -> Floats:
    if isinstance(values, range) and len(values) != n_rows:  # which may be longer than memory
        values = ()
    try:
        weights = as_floats(values).copy()
    except (TypeError, ValueError, OverflowError):
        raise unexpected(name, values, f"{n_rows} numbers, one per item", _ADVICE) from None
    if weights.shape != (n_rows,):
        raise ParameterError(
            Argument(name),
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
    options: Any = {"trees": trees, "warn": warn, "sample_weight": request.sample_weight}
    prepared = prepare(X, hierarchy, request.settings, compiled=request.run.engine != "numpy", **options)
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
