"""Scoring a sample of the items instead of all: how it is drawn, and when it is large enough.

Every item gets a rank at random, once. A simple sample of n takes the n lowest ranks; a stratified one cuts the leaf
order into about ``n / 3`` equal pieces and takes the lowest ranks of each. A larger sample then holds most of a smaller
one, so that sampling until the error is small enough scores few items in vain. Three items a stratum, because the error
is within a few percent of that of two, and its own estimate is steadier.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pomdp_hier.errors import ParameterError
from pomdp_hier.features.members import Ints
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.sample import Sample, Sampling

if TYPE_CHECKING:
    from pomdp_hier.hqs.result import HQSResult

__all__ = ["SamplingPlan", "draw", "sampling_plan"]

_PER_STRATUM = 3
_FIRST = 96
_MARGIN = 1.05


@dataclass(frozen=True)
class SamplingPlan:
    """What to sample.

    Attributes:
        size: The number of items; None to go on until ``target_error``.
        target_error: The half-width of the 95 % interval to reach; None for a fixed size.
        method: How to draw.
        ranks: The items' random ranks ``[N]``.
        config: The settings that led to it, for the result.
    """

    size: int | None
    target_error: float | None
    method: Sampling
    ranks: Ints
    config: dict[str, Any]

    def run(self, hierarchy: Hierarchy, score: Callable[[Ints], "HQSResult"]) -> "HQSResult":
        """Return the result of the sample; ``score`` gives that of an array of items, which are all it is asked for.

        With a target error, the size that the spread so far calls for is drawn until the interval is narrow enough.
        """
        n_items = hierarchy.n_items
        size = min(_FIRST, n_items) if self.size is None else self.size
        known = np.empty(0, dtype=np.int64)
        columns: dict[str, npt.NDArray[Any]] = {}
        while True:
            sample = draw(hierarchy, size, self.method, self.ranks, self.target_error)
            fresh = np.setdiff1d(sample.items, known)
            if len(fresh):
                result = score(fresh)
                known = np.concatenate([known, fresh])
                order = np.argsort(known)
                known = known[order]
                for name, column in result.columns().items():
                    columns[name] = np.concatenate([columns.get(name, column[:0]), column])[order]
            at = np.searchsorted(known, sample.items)
            if self.target_error is None:
                break
            width = sample.half_width(columns["values"][at])
            if width <= self.target_error:
                break
            # SE**2 = (1 - n/N) S**2 / n, solved for the n at which the width is what was asked for.
            needed = n_items / (1.0 + (self.target_error / width) ** 2 * (n_items - size) / size)
            size = min(n_items, max(math.ceil(_MARGIN * needed), size + 1 + size // 8))
        drawn = {name: column[at] for name, column in columns.items()}
        return replace(result, **drawn, sample=sample, config={**result.config, **self.config})


def sampling_plan(
    hierarchy: Hierarchy,
    sample_size: float | None,
    sampling: Sampling,
    random_state: int | np.random.Generator | None,
    target_error: float | None,
) -> SamplingPlan | None:
    """Return what these settings of :func:`~pomdp_hier.hqs.score.evaluate` ask to sample; None for every item.

    Raises:
        ParameterError: For a size, an error, a method or a random state that cannot be.

    Example:
        >>> tree = Hierarchy.from_children([range(200)], 200)
        >>> sampling_plan(tree, 0.1, "simple", 0, None).size
        20
    """
    if sampling not in ("simple", "stratified"):
        raise ParameterError(f"sampling is {sampling!r}; expected 'simple' or 'stratified'")
    if sample_size is None and target_error is None:
        return None
    if sample_size is not None and target_error is not None:
        raise ParameterError(
            f"sample_size is {sample_size} and target_error {target_error}; give one, the other follows from it"
        )
    number = isinstance(target_error, int | float | np.number) and not isinstance(target_error, bool)
    if target_error is not None and not (number and 0 < target_error < math.inf):
        raise ParameterError(f"target_error is {target_error!r}; expected a positive half-width, such as 0.01")
    seed: Any = np.random.SeedSequence().entropy if random_state is None else random_state
    try:
        random = np.random.default_rng(seed)
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"random_state is {random_state!r} ({error}); expected a number of at least 0, a numpy Generator, or None"
        ) from error
    config = {
        "sample_size": sample_size,
        "sampling": sampling,
        "random_state": int(seed) if isinstance(seed, int | np.integer) else repr(seed),
    }
    if target_error is not None:
        config["target_error"] = float(target_error)
        config["coverage"] = "nominal"
    size = None if sample_size is None else _number(sample_size, hierarchy.n_items)
    return SamplingPlan(size, target_error, sampling, random.permutation(hierarchy.n_items), config)


def draw(
    hierarchy: Hierarchy, size: int, method: Sampling, ranks: npt.NDArray[np.int64], target_error: float | None = None
) -> Sample:
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
    return Sample(items[ascending], strata[ascending], sizes, method, target_error)


def _number(sample_size: float, n_items: int) -> int:
    """Return the number of items that a number or a fraction of them asks for."""
    if isinstance(sample_size, int | np.integer) and not isinstance(sample_size, bool):
        if 1 <= sample_size <= n_items:
            return int(sample_size)
    elif isinstance(sample_size, float | np.floating) and 0 < sample_size <= 1:
        return min(n_items, max(2, round(sample_size * n_items)))  # one item would say nothing about the error
    raise ParameterError(
        f"sample_size is {sample_size!r}; expected a whole number of items from 1 to {n_items}, or a fraction of them "
        "as a float above 0 and up to 1.0"
    )
