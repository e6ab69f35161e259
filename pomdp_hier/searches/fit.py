"""`fit_delta`: the temperature of the guidance that best explains the choices in recorded searches."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints, check_integer, check_level, generator, is_one_of
from pomdp_hier._imports import as_frame
from pomdp_hier._intervals import bootstrap_interval, resampled
from pomdp_hier._progress import slow_work
from pomdp_hier._text import counted
from pomdp_hier.errors import DataWarning, ParameterError, warn_user
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import BOUNDS, ChoiceLikelihood, check_bounds
from pomdp_hier.hqs.inputs import Settings, prepare
from pomdp_hier.searches.choices import Choices, Searches, choices_of, require_searches

FITTED = "fitted"
_NU_BOUNDS = (0.1, 10.0)
_NEAR, _WIDE = 33, 65  # temperatures at which the slopes of every item are known, around the estimate and over all
_REACH = 8.0  # standard errors around the estimate
_NAN = (math.nan, math.nan)

COLUMNS = (
    *("part", "n_choices", "n_items", "delta", "delta_low", "delta_high", "at_bound", "times_root"),
    *("times_root_low", "times_root_high", "gain_over_uniform", "gain_over_uniform_low", "gain_over_uniform_high"),
    *("gain_over_sizes", "gain_over_sizes_low", "gain_over_sizes_high"),
)
"""The columns of `DeltaFit.to_rows`."""


@dataclass(frozen=True)
class Gain:
    """Gain in log likelihood per choice, in nats, on held-out items, with its interval.

    Attributes:
        value: The mean; NaN with fewer than two items.
        low, high: The interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:z.3f} [{self.low:z.3f}, {self.high:z.3f}]"


@dataclass(frozen=True)
class PartFit:
    """The maximum-likelihood temperature of a subset of the choices.

    Attributes:
        part: The subset: ``"all"``, ``"level 0"`` and so on, ``"on path"``, ``"off path"``, ``"first"`` or
            ``"repeated"``.
        n_choices: The number of its choices.
        n_items: The number of items searched for in these choices.
        delta: The maximum-likelihood temperature at the root; that at level t is ``delta * nu**t``. It is a bound of
            the search interval if the likelihood still rises there.
        interval: The confidence interval of ``delta``, by bootstrap over items.
        at_bound: The bound that ``delta`` is at: ``"lower"``, ``"upper"``, or ``""`` for neither.
        times_root: For a level: its temperature divided by that of the first level; NaN for other subsets.
        times_root_interval: The confidence interval of ``times_root``.
        over_uniform: The gain over uniformly random choices, in nats per choice.
        over_sizes: The gain over choices with probabilities proportional to the number of items below each child, or of
            links that lead there.
    """

    part: str
    n_choices: int
    n_items: int
    delta: float
    interval: tuple[float, float]
    at_bound: str
    times_root: float
    times_root_interval: tuple[float, float]
    over_uniform: Gain
    over_sizes: Gain


@dataclass(frozen=True, eq=False)
class DeltaFit:
    """The temperature that best explains recorded searches, and whether the guidance explains them.

    Attributes:
        nu: The factor of the temperature per level: the given one, or the fitted one.
        prior: The distribution of choices at infinite temperature, ``"uniform"`` or ``"sizes"``.
        parts: The fit of all choices, and of subsets of them.
        confidence: The level of the intervals.
        choices: The choices.

    Example:
        >>> from pomdp_hier import read_searches
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> clicks = [(k, k % 4, 1, 4 if (k % 4 < 2) != (k > 7) else 5) for k in range(10)]
        >>> fit = fit_delta(X, tree, read_searches(clicks, tree))
        >>> round(fit.delta, 3), fit.verdict
        (0.639, 'inconclusive')
    """

    nu: float
    prior: str
    parts: tuple[PartFit, ...]
    confidence: float
    choices: Choices = field(repr=False)

    @property
    def delta(self) -> float:
        """The temperature at the root, for all choices."""
        return self.parts[0].delta

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of delta, by bootstrap over items."""
        return self.parts[0].interval

    @property
    def settings(self) -> dict[str, float]:
        """``delta`` and ``nu``, as arguments of every function that takes them."""
        return {"delta": self.delta, "nu": self.nu}

    @property
    def levels(self) -> tuple[PartFit, ...]:
        """The fit of each level that has choices."""
        return tuple(part for part in self.parts if part.part.startswith("level"))

    @property
    def verdict(self) -> Literal["described", "inconclusive", "not described"]:
        """Whether the guidance explains the choices better than uniform ones and than the numbers of items."""
        gains = (self.parts[0].over_uniform, self.parts[0].over_sizes)
        if all(gain.low > 0 for gain in gains):
            return "described"
        return "not described" if any(gain.value <= 0 for gain in gains) else "inconclusive"

    def gain_at(self, delta: float) -> tuple[float, float]:
        """Return the gain per choice, in nats, of a given temperature over uniform choices and over sizes.

        Args:
            delta: The temperature at the root, such as the paper's 0.01.
        """
        Settings(delta=delta)
        logs = self.choices.likelihood(self.nu, self.prior).logs(float(delta))
        uniform, sizes = _rivals(self.choices)
        return float((logs - uniform).mean()), float((logs - sizes).mean())

    def sentences(self) -> list[str]:
        """Return the temperature, the gains, the verdict and what was left out, one sentence each."""
        whole, percent = self.parts[0], f"{100 * self.confidence:g} %"
        low, high = whole.interval
        lines = [
            f"delta {whole.delta:z#.3g} ({percent} interval {low:z#.3g} to {high:z#.3g}) at nu {self.nu:z.3g}, from "
            f"{counted(whole.n_choices, 'choice')} in searches for {counted(whole.n_items, 'item')}",
            f"gain on held-out items, nats per choice: {whole.over_uniform} over uniform choices, "
            f"{whole.over_sizes} over choices by size",
        ]
        if whole.at_bound:
            lines.append(f"The likelihood still rises at the {whole.at_bound} bound of delta, and has no maximum.")
        said = {
            "described": "The guidance describes these searchers better than uniform choices and than sizes.",
            "inconclusive": "The gain of the guidance is not distinguishable from 0: more searches are needed.",
            "not described": f"This guidance does not describe these searchers: no gain over {self._winner()}.",
        }
        lines.append(said[self.verdict])
        left_out = self.choices.left_out_lines()
        return [
            *lines,
            *([f"not counted as choices: {', '.join(left_out)}"] if left_out else []),
            *self.choices.searches.notes,
        ]

    def _winner(self) -> str:
        whole = self.parts[0]
        won = [
            name
            for name, gain in (("uniform choices", whole.over_uniform), ("choices by size", whole.over_sizes))
            if gain.value <= 0
        ]
        return " and over ".join(won)

    def summary(self) -> str:
        """Return the sentences, and one line per part."""
        rows = [f"{'part':<10} {'choices':>9} {'delta':>7} {'interval':>18} {'over uniform':>22} {'over sizes':>22}"]
        for part in self.parts:
            low, high = part.interval
            rows.append(
                f"{part.part:<10} {part.n_choices:>9,} {part.delta:>z#7.3g} {f'{low:z#.3g} to {high:z#.3g}':>18} "
                f"{part.over_uniform!s:>22} {part.over_sizes!s:>22}"
            )
        return "\n".join([*self.sentences(), *rows])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row per part, `COLUMNS`."""
        return [
            dict(
                zip(
                    COLUMNS,
                    (
                        *(part.part, part.n_choices, part.n_items, part.delta, *part.interval, part.at_bound),
                        *(part.times_root, *part.times_root_interval),
                        *(part.over_uniform.value, part.over_uniform.low, part.over_uniform.high),
                        *(part.over_sizes.value, part.over_sizes.low, part.over_sizes.high),
                    ),
                    strict=True,
                )
            )
            for part in self.parts
        ]

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return `to_rows` as a data frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

        Raises:
            MissingExtraError: The data frame library or narwhals is not installed.
        """
        rows = self.to_rows()
        return as_frame({name: [row[name] for row in rows] for name in COLUMNS}, backend)


def fit_delta(
    X: Any,
    hierarchy: Hierarchy,
    searches: Searches,
    *,
    similarity: Any = "cosine",
    nu: float | Literal["fitted"] = 1.0,
    prior: Literal["uniform", "sizes"] | None = None,
    bounds: tuple[float, float] = BOUNDS,
    folds: int = 10,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> DeltaFit:
    """Fit the temperature of the guidance to recorded searches, by maximum likelihood of the chosen children.

    At a node of level t the temperature is ``delta_t = delta * nu**t``. With ``s`` the similarities of the item to the
    alternatives, and ``s*`` to the chosen child, a choice adds ``s*/delta_t - log sum exp(s/delta_t)`` to the log
    likelihood. It is concave in 1/delta. This is the likelihood of `pomdp_hier.hqs.calibrate_delta` with the chosen
    child in place of the correct one: a temperature of searchers, not of a tree.

    Choices at nodes outside the item's path count too. Returns to a higher node do not count, and children known to be
    exhausted are not alternatives. A choice where one alternative is the item alone is left out: the similarity of an
    item to itself is a convention.

    Intervals are by bootstrap over items, since choices for one item are not independent (percentiles, expanded for
    few items). The gains are on held-out items: each item's choices under the temperature fitted to the others.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        searches: The result of `read_searches` for this tree.
        similarity: As for `evaluate`.
        nu: Factor of the temperature per level, or ``"fitted"``. The intervals take a fitted one as given.
        prior: The probability of a child at infinite temperature: ``"uniform"``, as in the model of the score, or in
            proportion to its ``"sizes"``. A size is the number of items below it, or of links that lead there. Default:
            uniform, or sizes where the searches have links, since each link is then an alternative.
        bounds: The search interval of delta. If the likelihood still rises at a bound, the result is that bound.
        folds: The number of folds of items, for the gains.
        n_bootstrap: The number of bootstrap samples.
        confidence: The level of the intervals.
        random_state: Seed of the folds and the bootstrap.

    Returns:
        The fit. Pass ``fit.delta``, or delta and nu as ``**fit.settings``, to any function that takes them.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: A setting is out of range, or the searches are of another tree or have no choices.

    Example:
        >>> from pomdp_hier import read_searches
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> right = [(person, item, 1, 4 + item // 2) for person in range(5) for item in range(4)]
        >>> wrong = [("x", item, 1, 5 - item // 2) for item in range(4)]
        >>> fit = fit_delta(X, tree, read_searches(right + wrong, tree))
        >>> round(fit.delta, 3), fit.settings["nu"], fit.verdict
        (0.55, 1.0, 'described')

    References:
        McFadden (1974), Conditional logit analysis of qualitative choice behavior. Hesterberg (2015), What teachers
        should know about the bootstrap, The American Statistician 69 (expanded percentiles).
    """
    low, high = check_bounds(bounds)
    check_integer("folds", folds, 2)
    check_integer("n_bootstrap", n_bootstrap, 20)
    check_level("confidence", confidence)
    fitted = is_one_of(nu, FITTED)
    settings = Settings(similarity=similarity, nu=1.0 if fitted else nu)  # type: ignore[arg-type]
    prepared = prepare(X, hierarchy, settings)
    choices = choices_of(prepared.affinity, require_searches(searches, hierarchy))
    if not len(choices):
        left_out = ", ".join(choices.left_out_lines()) or "no clicks"
        raise ParameterError(f"searches: got {left_out}; expected a choice between children. Read other searches.")
    used = choices.prior(prior)
    likely = _likely_nu(choices, used, (low, high)) if fitted else settings.nu
    return _Fitting(choices, likely, used, (low, high), folds, n_bootstrap, confidence, random_state).result()


def _likely_nu(choices: Choices, prior: str, bounds: tuple[float, float]) -> float:
    """Return the maximum-likelihood nu, each with its own delta; 1 if all choices are at one level."""
    if len(np.unique(choices.level)) < 2:
        warn_user(["nu: all choices are at one level, which says nothing about nu; it is 1"], DataWarning)
        return 1.0
    from scipy.optimize import minimize_scalar  # slow to import, and not needed by a score

    def loss(log_nu: float) -> float:
        likelihood = choices.likelihood(math.exp(log_nu), prior)
        return -float(likelihood.logs(likelihood.maximum(*bounds)[0]).sum())

    found = minimize_scalar(loss, bounds=tuple(map(math.log, _NU_BOUNDS)), method="bounded", options={"xatol": 1e-6})
    return math.exp(found.x)


def _rivals(choices: Choices) -> tuple[Floats, Floats]:
    """Return the log probability of each choice uniformly at random, and in proportion to the sizes ``[choices]``."""
    total = np.add.reduceat(choices.sizes, choices.firsts)
    return -np.log(choices.counts), np.log(choices.sizes[choices.chosen_at] / total)


class _Fitting:
    """The fit of all choices and of parts of them, with one bootstrap and one set of folds."""

    def __init__(
        self,
        choices: Choices,
        nu: float,
        prior: str,
        bounds: tuple[float, float],
        folds: int,
        n_bootstrap: int,
        confidence: float,
        random_state: Any,
    ) -> None:
        self._choices, self._nu, self._prior = choices, nu, prior
        self._bounds, self._confidence = bounds, confidence
        items, self._owner = np.unique(choices.item, return_inverse=True)
        rng = generator("random_state", random_state)
        self._weights = resampled(len(items), n_bootstrap, rng)
        self._fold = rng.permutation(len(items)) % min(folds, len(items))
        self._uniform, self._sizes = _rivals(choices)

    def result(self) -> DeltaFit:
        choices, on_path = self._choices, self._choices.on_path
        levels = {f"level {level}": choices.level == level for level in np.unique(choices.level).tolist()}
        halves = {"on path": on_path, "off path": ~on_path, "first": ~choices.repeated, "repeated": choices.repeated}
        masks = {"all": np.ones(len(choices), dtype=bool), **levels}
        masks |= {name: chosen for name, chosen in halves.items() if chosen.any() and not chosen.all()}
        parts: list[PartFit] = []
        root: tuple[int, float, Floats] | None = None
        with slow_work("fitting delta to searches", "parts", len(masks)) as bar:
            for name, chosen in masks.items():
                part, deltas = self._part(name, chosen)
                if name in levels:
                    level = int(choices.level[chosen][0])
                    root = (level, part.delta, deltas) if root is None else root
                    factor = self._nu ** (level - root[0])
                    interval = bootstrap_interval(factor * deltas / root[2], part.n_items, self._confidence)
                    part = replace(part, times_root=factor * part.delta / root[1], times_root_interval=interval)
                parts.append(part)
                bar.update()
        return DeltaFit(float(self._nu), self._prior, tuple(parts), self._confidence, choices)

    def _part(self, name: str, chosen: Bools) -> tuple[PartFit, Floats]:
        likelihood, owner = self._choices.likelihood(self._nu, self._prior, chosen), self._owner[chosen]
        delta, at_bound = likelihood.maximum(*self._bounds)
        n_items = len(np.unique(owner))
        curve = _Slopes(likelihood, owner, self._weights.shape[1], delta, at_bound, self._bounds)
        deltas = curve.roots(self._weights)
        logs = self._held_out(chosen, curve) if n_items > 1 else np.full(len(owner), np.nan)
        return (
            PartFit(
                part=name,
                n_choices=len(owner),
                n_items=n_items,
                delta=delta,
                interval=bootstrap_interval(deltas, n_items, self._confidence),
                at_bound=at_bound,
                times_root=math.nan,
                times_root_interval=_NAN,
                over_uniform=self._gain(logs - self._uniform[chosen], owner, n_items),
                over_sizes=self._gain(logs - self._sizes[chosen], owner, n_items),
            ),
            deltas,
        )

    def _held_out(self, chosen: Bools, curve: "_Slopes") -> Floats:
        """Return the log probability of each choice under the temperature of the items of the other folds."""
        logs = np.full(len(chosen), np.nan)
        fold_of = self._fold[self._owner]
        deltas = curve.roots((self._fold != np.arange(self._fold.max() + 1)[:, None]).astype(np.float64))
        for fold, delta in enumerate(deltas.tolist()):
            held = chosen & (fold_of == fold)
            if held.any() and not math.isnan(delta):
                logs[held] = self._choices.likelihood(self._nu, self._prior, held).logs(delta)
        return logs[chosen]

    def _gain(self, gains: Floats, owner: Ints, n_items: int) -> Gain:
        known = ~np.isnan(gains)
        if not known.any():
            return Gain(math.nan, *_NAN)
        width = self._weights.shape[1]
        sums = np.bincount(owner[known], weights=gains[known], minlength=width)
        numbers = np.bincount(owner[known], minlength=width)
        drawn = self._weights @ numbers
        means = np.divide(self._weights @ sums, drawn, out=np.full(len(drawn), np.nan), where=drawn > 0)
        return Gain(float(gains[known].mean()), *bootstrap_interval(means, n_items, self._confidence))


class _Slopes:
    """Slopes of the log likelihood of each item at some temperatures, from which those of any weights follow."""

    def __init__(
        self,
        likelihood: ChoiceLikelihood,
        owner: Ints,
        n_items: int,
        delta: float,
        at_bound: str,
        bounds: tuple[float, float],
    ) -> None:
        self._bounds = bounds

        def of_items(log_beta: float) -> Floats:
            slopes = likelihood.slopes(math.exp(-log_beta))
            sums: Floats = np.bincount(owner, weights=slopes, minlength=n_items).astype(np.float64)
            return sums

        least, most = -math.log(bounds[1]), -math.log(bounds[0])
        centre, step = -math.log(delta), 0.01
        low, high, points = least, most, _WIDE
        if not at_bound:
            score = of_items(centre)
            fall = -float((of_items(centre + step) - of_items(centre - step)).sum()) / (2 * step)
            reach = _REACH * math.sqrt(float(score @ score)) / fall if fall > 0 else math.inf
            if reach < most - least:
                reach = max(reach, step)
                low, high, points = max(least, centre - reach), min(most, centre + reach), _NEAR
        self._log_beta = np.linspace(low, high, points)
        self._slopes = np.array([of_items(float(at)) for at in self._log_beta])
        self._numbers = np.bincount(owner, minlength=n_items)

    def roots(self, weights: Floats) -> Floats:
        """Return the most likely temperature of each row of item weights ``[rows]``; NaN if a row has no choices."""
        slopes = weights @ self._slopes.T
        above = slopes > 0
        last = above.shape[1] - 1
        # Slopes fall with 1/delta: the first point at which one is not positive is behind the root.
        behind = np.where(above.all(axis=1), last, np.argmin(above, axis=1))
        before = np.maximum(behind - 1, 0)
        rows = np.arange(len(slopes))
        rise, fall = slopes[rows, before], slopes[rows, behind]
        span = rise - fall
        share = np.divide(rise, span, out=np.zeros_like(rise), where=(span > 0) & (rise > 0))
        share = np.where(above.all(axis=1), 1.0, share)
        log_beta = self._log_beta[before] + share * (self._log_beta[behind] - self._log_beta[before])
        deltas = np.clip(np.exp(-log_beta), *self._bounds)  # which rounding would pass
        return np.where(weights @ self._numbers > 0, deltas, np.nan).astype(np.float64)
