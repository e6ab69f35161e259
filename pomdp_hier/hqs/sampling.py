"""Samples of items: simple and stratified sampling, sequential sample sizes, standard errors and intervals.

Every item gets one random rank. A simple sample of n has the n lowest ranks. A stratified one cuts the leaf order into
about ``n / 3`` equal strata and takes the lowest ranks of each. A larger sample contains most of a smaller one, so that
sequential sampling scores few items twice. Three items per stratum have an error within a few percent of that of two,
and a more stable estimate of it.

Compared trees, policies and shuffles are scored on one sample. Weighted samples are described in `draw_weighted`.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import stdtrit

from pomdp_hier._arguments import Floats, Ints, check_level, generator, is_integer, is_one_of, is_real, unexpected
from pomdp_hier._intervals import relative_weights, unseen, weighted_mean
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy

Method: TypeAlias = Literal["simple", "stratified"]
Name = TypeVar("Name", bound=Hashable)


class Scored(Protocol):
    """A result for some items: a dataclass with one column of numbers per field, and its settings."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def config(self) -> Mapping[str, Any]: ...

    @property
    def value_range(self) -> tuple[float, float]: ...

    def columns(self) -> dict[str, npt.NDArray[Any]]: ...


Result = TypeVar("Result", bound=Scored)
Score: TypeAlias = Callable[[Ints], Mapping[Name, Result]]
"""Function from an array of items to results by name."""

_PER_STRATUM = 3
_FIRST = 96
_MARGIN = 1.05


@dataclass(frozen=True, eq=False)
class Sample:
    """Items sampled without replacement, per stratum; a simple sample has one stratum.

    Stratum h has the weight ``W_h = N_h / N``, the sampled fraction ``f_h = n_h / N_h`` and the sample variance
    ``s_h**2``. The estimate is ``sum of W_h * mean_h``, and its squared standard error
    ``sum of W_h**2 * (1 - f_h) * s_h**2 / n_h``. For one stratum that is ``(1 - n/N) * s**2 / n``.

    References:
        Cochran, 1977, *Sampling Techniques*, chapters 2 and 5.

    Attributes:
        items: The sampled items, ascending ``[n]``.
        strata: The stratum of each ``[n]``.
        stratum_sizes: The number of items of each stratum, sampled or not ``[H]``.
        method: ``"simple"`` or ``"stratified"``.
        half_width: The half-width of the 95 % interval at which sampling stopped; None for a fixed size. The coverage
            of an interval after sequential stopping is nominal.
        shares: With weights: the share of each sampled item in the sum of the weights ``[n]``.
        groups: With weights: the number and the share of the items that each sampled item stands for ``[2, n]``.
        n_weightless: The number of items of weight 0, which are never sampled.
    """

    items: Ints
    strata: Ints
    stratum_sizes: Ints
    method: Method
    half_width: float | None = None
    shares: Floats | None = None
    groups: Floats | None = None
    n_weightless: int = 0

    @property
    def n_items(self) -> int:
        """N, the number of items of the population."""
        return self._n_counted + self.n_weightless

    @property
    def _n_counted(self) -> int:
        return int(self.stratum_sizes.sum())

    @property
    def _represented(self) -> Floats:
        """The number of items, or the share of the weights, that each sampled item stands for ``[n]``."""
        if self.groups is not None:
            shares: Floats = self.groups[1]
            return shares
        represented: Floats = (self.stratum_sizes / np.maximum(self._drawn(), 1))[self.strata]
        return represented

    def estimate(self, values: Floats) -> float:
        """Return the unbiased estimate of the mean over all items from the sampled values ``[n]``."""
        return weighted_mean(values, self._represented)  # ones in a simple sample: the mean of one value is that value

    def standard_error(self, values: Floats) -> float:
        """Return the standard error of the estimate, 0 if every item was sampled.

        It is NaN if a stratum of several items has one sampled item, whose variance is unknown.
        """
        return math.sqrt(self._variances(values).sum())

    def interval(
        self, values: Floats, level: float = 0.95, *, low: float = -1.0, high: float = 1.0
    ) -> tuple[float, float]:
        """Return the confidence interval of the mean over all items, given the sampled values ``[n]``.

        It is the t interval, extended for rare values that the sample lacks (`pomdp_hier._intervals.unseen`). A t
        interval of 30 items is too short if one item of 30 is lost, and has width 0 if none is.

        The degrees of freedom are Satterthwaite's, corrected for the upward bias of the squared variances. They are ``n
        - 1`` for one stratum, and about ``n - H`` for strata of similar variance. The extension treats the items as one
        stratum. It falls with the sampled fraction f as ``-f / log(1 - f)``, as a sample lacks all of K items with
        probability at most ``(1 - f)**K``. The ends are clipped to the range that the other items allow.

        Args:
            values: The sampled items' values ``[n]``.
            level: The confidence, in (0, 1).
            low: The smallest possible value of an item.
            high: The largest.

        Raises:
            ParameterError: The level is not in (0, 1).

        Example:
            >>> sample = Sample(np.arange(30), np.zeros(30, dtype=int), np.array([1000]), "simple")
            >>> [round(end, 3) for end in sample.interval(np.full(30, 0.6))]  # none is lost, but 11 % of all may be
            [0.417, 0.646]
        """
        check_level("level", level)
        mean, n, size = self.estimate(values), len(values), self._n_counted
        if n == size:
            return mean, mean
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        shares = np.full(n, 1 / size) if self.shares is None else self.shares
        total, rest = math.fsum(values * shares), 1 - math.fsum(shares)
        least, most = min(mean, total + rest * low), max(mean, total + rest * high)
        t, below, above = self._margins(values, level, low, high)
        return max(least, mean - t - below), min(most, mean + t + above)

    def margin_of_error(self, values: Floats, level: float = 0.95, *, low: float = -1.0, high: float = 1.0) -> float:
        """Return the longer side of the interval at this level, measured from the estimate."""
        (lower, upper), mean = self.interval(values, level, low=low, high=high), self.estimate(values)
        return max(mean - lower, upper - mean)

    def size_for(self, target: float, values: Floats, *, low: float = -1.0, high: float = 1.0) -> float:
        """Return the sample size at which the 95 % interval is expected to have the target half-width."""
        t, below, above = self._margins(values, 0.95, min(low, float(values.min())), max(high, float(values.max())))
        n, size = len(values), self._n_counted

        def excess(wanted: float) -> float:
            spread = math.sqrt((1 / wanted - 1 / size) / (1 / n - 1 / size))
            return t * spread + max(below, above) * math.log1p(-n / size) / math.log1p(-wanted / size) - target

        last = size - 0.5
        if not math.isfinite(t) or excess(last) > 0:
            return size
        return n if excess(n) <= 0 else float(brentq(excess, n, last))

    def _margins(self, values: Floats, level: float, low: float, high: float) -> tuple[float, float, float]:
        """Return the half-width of the t interval (infinite if the standard error is NaN), and its two extensions."""
        variances, drawn = self._variances(values), self._drawn()
        total = float(variances.sum())
        if math.isnan(total):
            return math.inf, 0.0, 0.0
        t = 0.0
        if total:
            share = variances / total
            freedom = max(1.0 / float((share**2 / (drawn + 1)).sum()) - 2.0, 1.0)
            t = float(stdtrit(freedom, 0.5 + level / 2)) * math.sqrt(total)
        fraction = float((drawn / self.stratum_sizes).min())
        if fraction == 1:
            return t, 0.0, 0.0
        if self.groups is None:
            below, above = unseen(values, level, low, high)
            lacking = -fraction / math.log1p(-fraction)
        else:  # an item of little weight is seldom sampled, so that the sampled fraction is of no help
            open_ = (drawn < self.stratum_sizes)[self.strata]
            below, above = unseen(values[open_], level, low, high)
            lacking = float(self.groups[1, open_].sum())
        return t, lacking * below, lacking * above

    def _drawn(self) -> Ints:
        return np.bincount(self.strata, minlength=len(self.stratum_sizes))

    def _variances(self, values: Floats) -> Floats:
        """Return the term of each stratum in the squared standard error ``[H]``."""
        drawn, sizes = self._drawn(), self.stratum_sizes
        if self.groups is not None:
            return self._group_variances(values, drawn, *self.groups)
        means = np.bincount(self.strata, values, len(sizes)) / np.maximum(drawn, 1)
        squares = np.bincount(self.strata, (values - means[self.strata]) ** 2, len(sizes))
        spread = np.where(drawn > 1, squares / np.maximum(drawn - 1, 1), np.nan)
        spread[drawn == sizes] = 0.0
        part = (sizes - drawn) / sizes
        variances: Floats = (sizes / self._n_counted) ** 2 * part * spread / np.maximum(drawn, 1)
        return variances

    def _group_variances(self, values: Floats, drawn: Ints, numbers: Floats, represented: Floats) -> Floats:
        """Return the terms of a weighted sample: one item per random group, by the weights.

        With groups of N_g items and weight W_g in a stratum of N items and weight W, the term is
        ``(sum of N_g**2 - N) / (N**2 - sum of N_g**2) W sum of W_g (v_g - mean)**2``.
        """
        sizes = self.stratum_sizes.astype(np.float64)
        weights = np.bincount(self.strata, represented, len(sizes))
        means = np.bincount(self.strata, represented * values, len(sizes)) / weights
        spread = weights * np.bincount(self.strata, represented * (values - means[self.strata]) ** 2, len(sizes))
        squares = np.bincount(self.strata, numbers**2, len(sizes))
        factor = np.full(len(sizes), np.nan)
        np.divide(squares - sizes, sizes**2 - squares, out=factor, where=sizes**2 > squares)
        variances: Floats = np.where(drawn == sizes, 0.0, factor * spread)
        return variances


@dataclass(frozen=True)
class Sampling:
    """Settings of the sample; `evaluate` documents them."""

    sample_size: float | None = None
    sampling: Method = "stratified"
    random_state: int | np.random.Generator | None = None
    half_width: float | None = None

    def __post_init__(self) -> None:
        if not is_one_of(self.sampling, "simple", "stratified"):
            raise ParameterError(f"sampling: got {brief(self.sampling)}; expected 'simple' or 'stratified'.")
        target, size = self.half_width, self.sample_size
        if not self.asked and not is_one_of(self.sampling, "stratified"):
            raise ParameterError(
                f"sampling: got {brief(self.sampling)}, which only a sample uses. Pass sample_size or half_width, or "
                "leave it out."
            )
        if size is not None and target is not None:
            raise ParameterError(
                Argument("sample_size"),
                f": got {brief(size)} beside ",
                Argument("half_width"),
                f" {brief(target)}; expected one of them. Leave the other out; it follows.",
            )
        if target is not None and not (is_real(target) and 0 < target < math.inf):
            raise unexpected("half_width", target, "a positive half-width, such as 0.01")
        if size is not None and not (is_real(size) and 0 < size < math.inf):
            raise unexpected("sample_size", size, "a number of items, or a fraction of them")
        generator("random_state", self.random_state)

    @property
    def asked(self) -> bool:
        """Whether a sample was requested."""
        return self.sample_size is not None or self.half_width is not None

    def seeded(self, random_state: Any) -> "Sampling":
        """Return the same settings with this random state, if a sample was requested."""
        return replace(self, random_state=random_state) if self.asked else self

    def run(
        self, hierarchy: Hierarchy, score: "Score[Name, Result]", weights: Floats | None = None
    ) -> dict[Name, Result]:
        """Return results by name, all on one sample, or on every item if no sample was requested.

        With ``half_width``, the sample grows to the size that follows from the variance, until no interval is wider.

        Args:
            weights: The weight of each item ``[N]``; None for equal ones.
        """
        n_items = hierarchy.n_items
        if not self.asked:
            return dict(score(np.arange(n_items)))
        seed: Any = np.random.SeedSequence().entropy if self.random_state is None else self.random_state
        size = min(_FIRST, n_items) if self.sample_size is None else _number(self.sample_size, n_items)
        random = generator("random_state", seed)
        ranks = random.permutation(n_items)
        clocks = None if weights is None else random.exponential(size=n_items)
        known = np.empty(0, dtype=np.int64)
        columns: dict[Name, dict[str, npt.NDArray[Any]]] = {}
        results: dict[Name, Result] = {}
        while True:
            if weights is None or clocks is None:
                sample = draw(hierarchy, size, self.sampling, ranks, self.half_width)
            else:
                sample = draw_weighted(hierarchy, size, self.sampling, ranks, clocks, weights, self.half_width)
            new = np.setdiff1d(sample.items, known)
            if len(new):
                results = dict(score(new))
                known = np.concatenate([known, new])
                order = np.argsort(known)
                known = known[order]
                for name, result in results.items():
                    have = columns.setdefault(name, {})
                    for field, column in result.columns().items():
                        have[field] = np.concatenate([have.get(field, column[:0]), column])[order]
            at = np.searchsorted(known, sample.items)
            if self.half_width is None:
                break
            scored = [(have["values"][at], *results[name].value_range) for name, have in columns.items()]
            if (
                max(sample.margin_of_error(values, low=low, high=high) for values, low, high in scored)
                <= self.half_width
            ):
                break
            needed = max(sample.size_for(self.half_width, values, low=low, high=high) for values, low, high in scored)
            size = min(n_items, max(math.ceil(_MARGIN * needed), size + 1 + size // 8))
        config = {**self._record(), "random_state": int(seed) if isinstance(seed, int | np.integer) else repr(seed)}
        return {
            name: replace(
                result,
                **{field: column[at] for field, column in columns[name].items()},
                sample=sample,
                config={**result.config, **config},
            )
            for name, result in results.items()
        }

    def _record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"sample_size": self.sample_size, "sampling": self.sampling}
        if self.half_width is not None:
            record |= {"half_width": float(self.half_width), "coverage": "nominal"}
        return record


def draw(hierarchy: Hierarchy, size: int, method: Method, ranks: Ints, half_width: float | None = None) -> Sample:
    """Return a sample of ``size`` items, given random ranks ``[N]``."""
    n_items = hierarchy.n_items
    n_strata = max(1, size // _PER_STRATUM) if method == "stratified" else 1
    last = np.arange(n_strata + 1) * size // n_strata
    # Strata in proportion to their sample, so that all items have equal weight, up to rounding.
    cuts = last * n_items // size
    drawn, sizes = np.diff(last), np.diff(cuts)
    stratum = np.repeat(np.arange(n_strata), sizes)
    order = hierarchy.item_order[np.lexsort((ranks[hierarchy.item_order], stratum))]
    chosen = np.arange(n_items) - np.repeat(cuts[:-1], sizes) < np.repeat(drawn, sizes)
    items, strata = order[chosen], stratum[chosen]
    ascending = np.argsort(items)
    return Sample(items[ascending], strata[ascending], sizes, method, half_width)


def draw_weighted(
    hierarchy: Hierarchy,
    size: int,
    method: Method,
    ranks: Ints,
    clocks: Floats,
    weights: Floats,
    half_width: float | None = None,
) -> Sample:
    """Return a sample of ``size`` items for a weighted mean, of all items with a weight if there are fewer.

    Items of at least ``1 / size`` of the weights are in it, then of the rest. The others form strata of equal weight
    along the leaf order. Each stratum is divided into random groups, as many as items to sample. A group gives one item
    with a probability in proportion to its weight, which stands for the whole group. The estimate is unbiased for any
    weights, and so is that of its variance (Rao, Hartley and Cochran).

    Args:
        ranks: Random ranks ``[N]``, which form the groups.
        clocks: Exponential random numbers ``[N]``: a group gives the item with the lowest number over its weight.
        weights: The weight of each item ``[N]``.

    References:
        Rao, Hartley, Cochran (1962), On a simple procedure of unequal probability sampling without replacement, JRSS B.
    """
    shares = relative_weights(weights) / len(weights)
    falling = np.argsort(-shares, kind="stable")
    falling = falling[shares[falling] > 0]
    size = min(size, len(falling))
    left = shares[falling][::-1].cumsum()[::-1]
    places = np.arange(len(falling))
    small = np.flatnonzero((shares[falling] * (size - places) < left) & (places < size))
    certain = falling[: len(falling) if size == len(falling) else int(small[0])]
    is_open = shares > 0
    is_open[certain] = False
    order = hierarchy.item_order[is_open[hierarchy.item_order]]
    n_open = size - len(certain)
    n_strata = max(1, n_open // _PER_STRATUM) if method == "stratified" else 1
    last = np.arange(n_strata + 1) * n_open // n_strata
    running = shares[order].cumsum()
    cuts = np.searchsorted(running, running[-1:].sum() * last / max(n_open, 1))
    cuts[[0, -1]] = 0, len(order)
    # A stratum has at least as many items as are sampled from it.
    cuts = np.minimum(np.maximum.accumulate(cuts - last) + last, len(order) - (n_open - last))
    drawn, sizes = np.diff(last), np.diff(cuts)
    stratum = np.repeat(np.arange(n_strata), sizes)
    order = order[np.lexsort((ranks[order], stratum))]
    position = np.arange(len(order)) - np.repeat(cuts[:-1], sizes)
    group = last[stratum] + position * drawn[stratum] // np.maximum(sizes, 1)[stratum]
    firsts = np.searchsorted(group, np.arange(n_open))
    chosen = order[np.lexsort((clocks[order] / shares[order], group))][firsts]
    numbers = np.diff(np.append(firsts, len(order)))
    represented = np.add.reduceat(shares[order], firsts) if n_open else shares[:0]
    items = np.concatenate([chosen, certain])
    alone = np.arange(len(certain))
    strata = np.concatenate([stratum[firsts], n_strata + alone]) if n_open else alone
    ascending = np.argsort(items)
    return Sample(
        items[ascending],
        strata[ascending],
        np.concatenate([sizes if n_open else sizes[:0], np.ones(len(certain), dtype=np.int64)]),
        method,
        half_width,
        shares[items[ascending]],
        np.stack(
            [
                np.concatenate([numbers, np.ones(len(certain))])[ascending],
                np.concatenate([represented, shares[certain]])[ascending],
            ]
        ),
        n_weightless=len(shares) - len(falling),
    )


def _number(sample_size: float, n_items: int) -> int:
    """Return the sample size from a number or a fraction of the items."""
    if is_integer(sample_size):
        if 1 <= sample_size <= n_items:
            return int(sample_size)
    elif isinstance(sample_size, float | np.floating) and 0 < sample_size <= 1:
        return min(n_items, max(2, round(sample_size * n_items)))  # one item has no standard error
    raise ParameterError(
        Argument("sample_size"),
        f": got {brief(sample_size)}; expected an integer from 1 to {n_items}, or a fraction of the items as a float "
        "above 0 and up to 1.0.",
    )
