"""Sparse rows that grow at their end, with a few numbers beside each: the pool of beliefs, and the points."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arrays import Floats, Ints

__all__ = ["Beliefs", "Points", "Rows"]


class Rows:
    """Sparse rows, as CSR arrays with room to spare.

    Attributes:
        indptr: ``[count + 1]`` and more, where each row begins.
        index, weight: Positions and weights of the entries.
        count: How many rows there are.
        n_entries: How many entries they have.
    """

    _beside: ClassVar[dict[str, type]] = {}

    def __init__(self) -> None:
        self.indptr: Ints = np.zeros(17, dtype=np.int64)
        self.index: Ints = np.zeros(64, dtype=np.int64)
        self.weight: Floats = np.zeros(64)
        self.count = self.n_entries = 0
        for name, kind in self._beside.items():
            setattr(self, name, np.zeros(16, dtype=kind))

    def append(self, offsets: Ints, index: Ints, weight: Floats) -> slice:
        """Append rows, and return which they are.

        Args:
            offsets: ``[n + 1]``, where each of the new rows begins in the entries given.
            index: The positions of the entries.
            weight: Their weights.
        """
        n = len(offsets) - 1
        if self.count + n >= len(self.indptr):
            self.indptr = _longer(self.indptr, self.count + n + 1)
            for name in self._beside:  # one entry less is used of each
                setattr(self, name, _longer(getattr(self, name), len(self.indptr)))
        if self.n_entries + len(index) > len(self.index):
            self.index = _longer(self.index, self.n_entries + len(index))
            self.weight = _longer(self.weight, self.n_entries + len(index))
        rows = slice(self.count, self.count + n)
        held = slice(self.n_entries, self.n_entries + len(index))
        self.index[held], self.weight[held] = index, weight
        self.indptr[self.count : self.count + n + 1] = self.n_entries + offsets
        self.count += n
        self.n_entries += len(index)
        return rows

    def row(self, at: int) -> tuple[Ints, Floats]:
        """Return positions and weights of one row."""
        span = slice(self.indptr[at], self.indptr[at + 1])
        return self.index[span], self.weight[span]

    def keep(self, kept: Ints) -> None:
        """Keep some of the rows, in their order."""
        sizes = np.diff(self.indptr[: self.count + 1])[kept]
        offsets = np.append(0, np.cumsum(sizes))
        entries = np.repeat(self.indptr[kept] - offsets[:-1], sizes) + np.arange(offsets[-1])
        index, weight = self.index[entries], self.weight[entries]
        beside = {name: getattr(self, name)[kept] for name in self._beside}
        self.count = self.n_entries = 0
        rows = self.append(offsets, index, weight)
        for name, values in beside.items():
            getattr(self, name)[rows] = values

    @property
    def csr(self) -> tuple[Ints, Ints, Floats]:
        """The arrays as the inner loops take them."""
        return self.indptr, self.index, self.weight

    @property
    def n_bytes(self) -> int:
        """How much memory the arrays take."""
        names = ("indptr", "index", "weight", *self._beside)
        return sum(int(getattr(self, name).nbytes) for name in names)


def _longer(array: NDArray[Any], least: int) -> NDArray[Any]:
    longer = np.zeros(max(least, len(array) + len(array) // 2), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


class Beliefs(Rows):
    """Beliefs with their bounds.

    Attributes:
        upper, lower: The bounds of the value.
        source: What gave the upper one: the belief of a point, -1 for the corners, -2 for the informed bound.
        best: Which alpha vector gave the lower one, -1 for none.
        met, seen: The last point and the last vector that were looked at.
    """

    _beside: ClassVar[dict[str, type]] = {
        "upper": np.float64,
        "lower": np.float64,
        "source": np.int64,
        "best": np.int64,
        "met": np.int64,
        "seen": np.int64,
    }
    upper: Floats
    lower: Floats
    source: Ints
    best: Ints
    met: Ints
    seen: Ints


class Points(Rows):
    """The points of the bound above.

    Attributes:
        gap: How far the value lies below the interpolation between the corners, negative.
        node: Which belief it is.
        number: In the order of their coming.
    """

    _beside: ClassVar[dict[str, type]] = {"gap": np.float64, "node": np.int64, "number": np.int64}
    gap: Floats
    node: Ints
    number: Ints
