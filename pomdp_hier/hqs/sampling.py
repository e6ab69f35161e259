"""Scoring a sample of the items instead of all: how it is drawn, when it is large enough, what it says of all.

Every item gets a rank at random, once. A simple sample of n takes the n lowest ranks; a stratified one cuts the leaf
order into about ``n / 3`` equal pieces and takes the lowest ranks of each. A larger sample then holds most of a smaller
one, so that sampling until the error is small enough scores few items in vain. Three items a stratum, because the error
is within a few percent of that of two, and its own estimate is steadier.

A sample belongs to the items: whatever is compared (trees, policies, shuffles) is scored on the same ones.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import stdtrit

from pomdp_hier._arguments import check_level, generator, is_integer, is_one_of, is_real
from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._intervals import unseen
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy

Method: TypeAlias = Literal["simple", "stratified"]
Name = TypeVar("Name", bound=Hashable)


class Scored(Protocol):
    """A result of scoring some items: a dataclass with a column of numbers per field, and its settings."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def config(self) -> Mapping[str, Any]: ...

    def columns(self) -> dict[str, npt.NDArray[Any]]: ...


Result = TypeVar("Result", bound=Scored)
Score: TypeAlias = Callable[[Ints], Mapping[Name, Result]]
"""The results by name for an array of items."""

_PER_STRATUM = 3
_FIRST = 96
_MARGIN = 1.05


@dataclass(frozen=True, eq=False)
class Sample:
    """Items drawn without replacement, each stratum of the items on its own; a simple sample has one stratum.

    With ``W_h = N_h / N`` the weight of stratum h, ``f_h = n_h / N_h`` the part of it that was drawn and ``s_h**2`` the
    variance of its drawn values, the estimate is ``sum of W_h * mean_h`` and its squared standard error
    ``sum of W_h**2 * (1 - f_h) * s_h**2 / n_h``: for one stratum, ``(1 - n/N) * s**2 / n``.

    References:
        Cochran, 1977, *Sampling Techniques*, chapters 2 and 5.

    Attributes:
        items: The drawn items, ascending ``[n]``.
        strata: The stratum of each ``[n]``.
        stratum_sizes: The number of items of each stratum, drawn or not ``[H]``.
        method: How they were drawn.
        half_width: The half-width of the 95 % interval at which drawing ended; None for a size fixed beforehand. The
            interval of a sample that ended by its own width has its coverage in name only.

    Example:
        >>> sample = Sample(np.array([0, 2]), np.array([0, 0]), np.array([4]), "simple")
        >>> round(sample.standard_error(np.array([0.0, 1.0])) ** 2, 9)  # (1 - 2/4) * 0.5 / 2
        0.125
    """

    items: Ints
    strata: Ints
    stratum_sizes: Ints
    method: Method
    half_width: float | None = None

    @property
    def n_items(self) -> int:
        """N, the number of items that the sample stands for."""
        return int(self.stratum_sizes.sum())

    def estimate(self, values: Floats) -> float:
        """Return the estimated mean over all items from the drawn items' values ``[n]``; unbiased."""
        stands_for = (self.stratum_sizes / np.maximum(self._drawn(), 1))[self.strata]
        weights = stands_for / stands_for.max()  # ones in a simple sample, so that the mean of one value is that value
        return math.fsum(values * weights) / math.fsum(weights)

    def standard_error(self, values: Floats) -> float:
        """Return the standard error of the estimate, 0 when everything was drawn.

        NaN when a stratum of several items gave only one: one value says nothing about its spread.
        """
        return math.sqrt(self._variances(values).sum())

    def interval(
        self, values: Floats, level: float = 0.95, *, low: float = -1.0, high: float = 1.0
    ) -> tuple[float, float]:
        """Return the interval at this level of the mean over all items, given the sampled items' values ``[n]``.

        It is the t interval, extended by what rare values can add (`pomdp_hier._intervals.unseen`): a t
        interval of 30 items is too short where one item of 30 is lost, and has no width where none of them is. The
        degrees of freedom are Satterthwaite's, with the upward bias of the strata's squared variances taken out:
        ``n - 1`` for one stratum, about ``n - H`` for strata of like spread. The extension counts the items as one
        stratum, and falls with the fraction sampled, f, as ``-f / log(1 - f)``: the probability that a sample lacks all
        of K items is at most ``(1 - f)**K``. No end lies beyond what the items that were not sampled can add.

        Args:
            values: The sampled items' values ``[n]``.
            level: The confidence, in (0, 1).
            low: The least value that an item can have.
            high: The greatest.

        Raises:
            ParameterError: The level is not in (0, 1).

        Example:
            >>> sample = Sample(np.arange(30), np.zeros(30, dtype=int), np.array([1000]), "simple")
            >>> [round(end, 3) for end in sample.interval(np.full(30, 0.6))]  # none is lost: 11 % of all may be
            [0.417, 0.646]
        """
        check_level("level", level)
        mean, n, size = self.estimate(values), len(values), self.n_items
        if n == size:
            return mean, mean
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        total, rest = math.fsum(values), size - n
        least, most = min(mean, (total + rest * low) / size), max(mean, (total + rest * high) / size)
        t, below, above = self._margins(values, level, low, high)
        return max(least, mean - t - below), min(most, mean + t + above)

    def margin_of_error(self, values: Floats, level: float = 0.95) -> float:
        """Return how far the interval at this level reaches from the estimate: the longer of its two sides."""
        (low, high), mean = self.interval(values, level), self.estimate(values)
        return max(mean - low, high - mean)

    def size_for(self, target: float, values: Floats) -> float:
        """Return the size at which the half-width of the 95 % interval should be the target, by its parts' rates."""
        t, below, above = self._margins(values, 0.95, min(-1.0, float(values.min())), max(1.0, float(values.max())))
        n, size = len(values), self.n_items

        def excess(wanted: float) -> float:
            spread = math.sqrt((1 / wanted - 1 / size) / (1 / n - 1 / size))
            return t * spread + max(below, above) * math.log1p(-n / size) / math.log1p(-wanted / size) - target

        last = size - 0.5
        if not math.isfinite(t) or excess(last) > 0:
            return size
        return n if excess(n) <= 0 else float(brentq(excess, n, last))

    def _margins(self, values: Floats, level: float, low: float, high: float) -> tuple[float, float, float]:
        """Return half the width of the t interval, infinite where the standard error is NaN, and its extensions."""
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
        below, above = unseen(values, level, low, high) if fraction < 1 else (0.0, 0.0)
        lacking = -fraction / math.log1p(-fraction) if fraction < 1 else 0.0
        return t, lacking * below, lacking * above

    def _drawn(self) -> Ints:
        return np.bincount(self.strata, minlength=len(self.stratum_sizes))

    def _variances(self, values: Floats) -> Floats:
        """Return what each stratum adds to the squared standard error ``[H]``."""
        drawn, sizes = self._drawn(), self.stratum_sizes
        means = np.bincount(self.strata, values, len(sizes)) / np.maximum(drawn, 1)
        squares = np.bincount(self.strata, (values - means[self.strata]) ** 2, len(sizes))
        spread = np.where(drawn > 1, squares / np.maximum(drawn - 1, 1), np.nan)
        spread[drawn == sizes] = 0.0
        part = (sizes - drawn) / sizes
        variances: Floats = (sizes / self.n_items) ** 2 * part * spread / np.maximum(drawn, 1)
        return variances


@dataclass(frozen=True)
class Sampling:
    """How to sample; `evaluate` says what each setting means.

    Raises:
        ParameterError: For a size, an error, a method or a random state that cannot be, or that nothing would use.

    Example:
        >>> Sampling(sample_size=0.1).asked, Sampling().asked
        (True, False)
    """

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
                f" {brief(target)}; expected one of them. Leave the other out: it follows.",
            )
        if target is not None and not (is_real(target) and 0 < target < math.inf):
            raise ParameterError(
                Argument("half_width"), f": got {brief(target)}; expected a positive half-width, such as 0.01."
            )
        if size is not None and not (is_real(size) and 0 < size < math.inf):
            raise ParameterError(
                Argument("sample_size"), f": got {brief(size)}; expected a number of items, or a fraction of them."
            )
        generator("random_state", self.random_state)

    @property
    def asked(self) -> bool:
        """Whether a sample is asked for, instead of every item."""
        return self.sample_size is not None or self.half_width is not None

    def seeded(self, random_state: Any) -> "Sampling":
        """Return the same with this random state, for functions that take one for more than the draw."""
        return replace(self, random_state=random_state) if self.asked else self

    def run(self, hierarchy: Hierarchy, score: "Score[Name, Result]") -> dict[Name, Result]:
        """Return the results of one or more searches, all on one sample, or on every item if none is asked for.

        With a target error, the size that the spread so far calls for is drawn until every interval is narrow enough.

        Args:
            hierarchy: The tree along whose leaf order a stratified sample is drawn.
            score: Gives the results by name for an array of items, which are all it is asked for.
        """
        n_items = hierarchy.n_items
        if not self.asked:
            return dict(score(np.arange(n_items)))
        seed: Any = np.random.SeedSequence().entropy if self.random_state is None else self.random_state
        size = min(_FIRST, n_items) if self.sample_size is None else _number(self.sample_size, n_items)
        ranks = generator("random_state", seed).permutation(n_items)
        known = np.empty(0, dtype=np.int64)
        columns: dict[Name, dict[str, npt.NDArray[Any]]] = {}
        results: dict[Name, Result] = {}
        while True:
            sample = draw(hierarchy, size, self.sampling, ranks, self.half_width)
            fresh = np.setdiff1d(sample.items, known)
            if len(fresh):
                results = dict(score(fresh))
                known = np.concatenate([known, fresh])
                order = np.argsort(known)
                known = known[order]
                for name, result in results.items():
                    have = columns.setdefault(name, {})
                    for field, column in result.columns().items():
                        have[field] = np.concatenate([have.get(field, column[:0]), column])[order]
            at = np.searchsorted(known, sample.items)
            if self.half_width is None:
                break
            scored = [have["values"][at] for have in columns.values()]
            if max(map(sample.margin_of_error, scored)) <= self.half_width:
                break
            needed = max(sample.size_for(self.half_width, values) for values in scored)
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
    """Return a sample of ``size`` items by their random ranks ``[N]``.

    Example:
        >>> tree = Hierarchy.from_children([range(8)], 8)
        >>> draw(tree, 3, "simple", np.array([7, 6, 5, 4, 3, 2, 1, 0])).items
        array([5, 6, 7])
    """
    n_items = hierarchy.n_items
    n_strata = max(1, size // _PER_STRATUM) if method == "stratified" else 1
    last = np.arange(n_strata + 1) * size // n_strata
    # Strata as large as what is drawn from them asks for, so that every item counts the same, but for rounding.
    cuts = last * n_items // size
    drawn, sizes = np.diff(last), np.diff(cuts)
    stratum = np.repeat(np.arange(n_strata), sizes)
    order = hierarchy.item_order[np.lexsort((ranks[hierarchy.item_order], stratum))]
    chosen = np.arange(n_items) - np.repeat(cuts[:-1], sizes) < np.repeat(drawn, sizes)
    items, strata = order[chosen], stratum[chosen]
    ascending = np.argsort(items)
    return Sample(items[ascending], strata[ascending], sizes, method, half_width)


def _number(sample_size: float, n_items: int) -> int:
    """Return the number of items that a number or a fraction of them asks for."""
    if is_integer(sample_size):
        if 1 <= sample_size <= n_items:
            return int(sample_size)
    elif isinstance(sample_size, float | np.floating) and 0 < sample_size <= 1:
        return min(n_items, max(2, round(sample_size * n_items)))  # one item would say nothing about the error
    raise ParameterError(
        Argument("sample_size"),
        f": got {brief(sample_size)}; expected an integer from 1 to {n_items}, or a fraction of the items as a float "
        "above 0 and up to 1.0.",
    )
