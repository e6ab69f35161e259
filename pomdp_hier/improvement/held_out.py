"""Gains on items that had no say: the edits are chosen on a part of the items and measured on the rest, in turn.

The items are dealt out to F folds. For each fold, edits are searched for the sake of the other items alone: an edit is
chosen by what it gains them, and an item of the fold is not moved by itself, because it speaks for its own move. What
the fold's items gain is then the gain on items that had no say. Over all folds every item is measured once. An edit of
the final list is measured where the search without a fold found it again, by what that fold's items gained by it.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.improvement.result import HeldOutGain
from pomdp_hier.improvement.search import Made, Proposal


def fold_of(starts: Ints, folds: int, random_state: int) -> Ints:
    """Return the fold of each item ``[N]``: items that follow one another in the tree go to different ones.

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


@dataclass(eq=False)
class Rest:
    """What the folds' items gained: all of them by all edits, and by each edit.

    Attributes:
        confidence: The level of the intervals.
    """

    confidence: float
    _rises: list[Floats] = field(default_factory=list)
    _edits: dict[tuple[object, ...], list[tuple[float, float, int]]] = field(default_factory=dict)

    def add(self, held: Ints, rise: Floats, made: list[Made]) -> None:
        """Count a fold.

        Args:
            held: Its items ``[h]``.
            rise: What each of them gained by all edits chosen without them ``[h]``.
            made: These edits.
        """
        self._rises.append(rise)
        for one in made:
            mine = one.rise[np.isin(one.items, held)]
            entry = (float(mine.sum()), float((mine**2).sum()), len(held))
            self._edits.setdefault(_key(one.proposal), []).append(entry)

    def all(self) -> HeldOutGain:
        """Return the gain of all edits."""
        if not self._rises:
            return HeldOutGain()
        rise = np.concatenate(self._rises)
        return measured(float(rise.sum()), float((rise**2).sum()), len(rise), self.confidence)

    def of(self, proposal: Proposal) -> HeldOutGain:
        """Return the gain of one edit, over the folds in which it was found again."""
        entries = self._edits.get(_key(proposal))
        if not entries:
            return HeldOutGain()
        total, squares, n = (sum(column) for column in zip(*entries, strict=True))
        return measured(float(total), float(squares), int(n), self.confidence)


def measured(total: float, squares: float, n: int, confidence: float) -> HeldOutGain:
    """Return the mean of n numbers with its t interval, given their sum and their sum of squares.

    Example:
        >>> measured(3.0, 5.0, 3, 0.95)
        HeldOutGain(gain=1.0, interval=(-1.4841..., 3.4841...), n_items=3)

    References:
        Student (1908).
    """
    mean = total / n
    if n < 2:
        return HeldOutGain(mean, (-math.inf, math.inf), n)
    variance = max(0.0, (squares - total * mean) / (n - 1))
    half = float(stdtrit(n - 1, (1 + float(confidence)) / 2)) * math.sqrt(variance / n)
    return HeldOutGain(mean, (mean - half, mean + half), n)


def _key(proposal: Proposal) -> tuple[object, ...]:
    """Return what is the same for one edit, whatever the numbers of clusters that edits before it made."""
    target = None if proposal.kind == "split" else proposal.target
    return proposal.kind, proposal.nodes, proposal.source, target
