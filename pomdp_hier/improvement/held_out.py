"""Gains of held-out items: folds of the items, and the mean of their gains with its interval."""

import math

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._intervals import mean_interval, weighted_mean
from pomdp_hier.improvement.result import HeldOutGain


def fold_of(starts: Ints, folds: int, random_state: int) -> Ints:
    """Return the fold of each item ``[N]``; neighbours in the leaf order are in different folds.

    Example:
        >>> sorted(np.bincount(fold_of(np.arange(10), 3, 0)).tolist())
        [3, 3, 4]
    """
    rng = np.random.default_rng(random_state)
    order = np.argsort(starts)
    fold = np.empty(len(order), dtype=np.int64)
    blocks = -(-len(order) // folds)
    fold[order] = np.concatenate([rng.permutation(folds) for _ in range(blocks)])[: len(order)]
    return fold


def measured(rise: Floats, confidence: float, weights: Floats | None = None, further: float = 0.0) -> HeldOutGain:
    """Return the mean gain of held-out items with its t interval, by their weights.

    Args:
        rise: The gain of each item.
        confidence: The confidence level.
        weights: The weight of each item; None for equal ones.
        further: A standard error from another source.

    Example:
        >>> measured(np.array([0.0, 1.0, 2.0]), 0.95)
        HeldOutGain(gain=1.0, interval=(-1.4841..., 3.4841...), n_items=3)
    """
    if weights is not None and not weights.any():
        rise, weights = rise[:0], None
    mean = math.nan if not len(rise) else float(rise.mean()) if weights is None else weighted_mean(rise, weights)
    ends = mean_interval(rise, confidence, weights=weights, further=further) if len(rise) else (math.nan, math.nan)
    return HeldOutGain(mean, (-math.inf, math.inf) if math.isnan(ends[0]) else ends, len(rise))


class FoldGains:
    """The gains of items by the edits of each fold, which were chosen without the items of the fold.

    Args:
        n_items: The number of items of the tree.

    Example:
        >>> folds = FoldGains(4)
        >>> folds.add(np.array([0, 1]), np.array([0.0, 0.2, 0.3, np.nan]))
        >>> folds.add(np.array([2, 3]), np.array([0.0, 0.0, 0.1, 0.1]))
        >>> folds.measured(np.array([0.0, np.nan, 0.2, 0.2]), 0.95)
        HeldOutGain(gain=0.1, interval=(-0.0299..., 0.2299...), n_items=4)
    """

    def __init__(self, n_items: int) -> None:
        self._count, self._sum = 0, np.zeros(n_items)
        self._held: list[tuple[Ints, Floats]] = []

    def add(self, held: Ints, rise: Floats) -> None:
        """Add a fold.

        Args:
            held: The items of the fold.
            rise: The gain of each item of the tree ``[N]``; NaN where it is moved by itself.
        """
        self._held.append((held, rise[held]))
        self._count += 1
        self._sum += rise

    def measured(self, made: Floats, confidence: float, weights: Floats | None = None) -> HeldOutGain:
        """Return the mean gain of the held-out items; its interval is for the edits that were made.

        The squared standard error is that of the items plus ``d ** 2``. d is how much more the edits made gain than
        those of the folds, on the items that neither moves by itself. These items helped to choose the edits made, so
        that d is rather too high than too low.

        Args:
            made: The gain of each item by the edits that were made ``[N]``; NaN where it is moved by itself.
            confidence: The confidence level.
            weights: The weight of each item ``[N]``; None for equal ones.
        """
        if not self._held:
            return HeldOutGain()
        items, rises = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
        more = made - self._sum / self._count
        known = ~np.isnan(more)
        differs = measured(more[known], confidence, None if weights is None else weights[known]).gain
        further = 0.0 if math.isnan(differs) else abs(differs)
        return measured(rises, confidence, None if weights is None else weights[items], further)
