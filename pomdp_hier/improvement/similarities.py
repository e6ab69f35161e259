"""Similarities of items and clusters that are lists of items, without a tree.

Rows are prepared and products become similarities in the code that scores a tree. Only the clusters differ: they change
with each edit, so that their sums are computed on demand.
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier.features.affinity import Affinity, CustomAffinity, PrecomputedAffinity, SparseAffinity
from pomdp_hier.features.dense import DenseAffinity, finish
from pomdp_hier.features.similarity import Cosine

Cluster = tuple[int, Ints]
"""The number of a node, for custom similarities, and its items."""


class Similarities(Protocol):
    """Features and a similarity."""

    @property
    def own_singleton(self) -> float | None:
        """The similarity of an item to its singleton, if similarity to a cluster is the mean over other members."""

    def pairs(self, items: Ints, item: int) -> tuple[Floats, Floats]:
        """Return the similarities of items to one item, and of that one to each ``[m]``; 0 for itself."""

    def columns(self, items: Ints, clusters: Sequence[Cluster], inside: Bools) -> Floats:
        """Return the similarity of each cluster and each item ``[k, m]``.

        Args:
            items: The items ``[m]``.
            clusters: The clusters ``[k]``.
            inside: Whether the item is in the cluster ``[k, m]``.
        """


def without_tree(affinity: Affinity) -> Similarities:
    """Return the features and similarity without the tree."""
    if isinstance(affinity, DenseAffinity):
        return _Dense(affinity)
    if isinstance(affinity, SparseAffinity):
        return _Sparse(affinity)
    if isinstance(affinity, PrecomputedAffinity):
        return _Precomputed(affinity)
    return _Custom(cast(CustomAffinity, affinity))


class _Products:
    """Similarities computed from products of rows with sums of clusters."""

    _rows: Any
    _squares: Floats

    def __init__(self, affinity: DenseAffinity | SparseAffinity) -> None:
        self._kind, self._n_columns = affinity.kind, affinity.n_columns
        by_members = isinstance(affinity.kind, Cosine) and affinity.kind.leave_out
        self.own_singleton = affinity.kind.own_singleton if by_members else None

    def pairs(self, items: Ints, item: int) -> tuple[Floats, Floats]:
        every = len(self._squares)
        products = (self._rows if len(items) == every else self._rows[items]) @ self._rows[item].T
        similar = products.toarray().reshape(-1) if sp.issparse(products) else products
        similar[items == item] = 0.0
        return similar, similar

    def columns(self, items: Ints, clusters: Sequence[Cluster], inside: Bools) -> Floats:
        m, k = len(items), len(clusters)
        if not m or not k:
            return np.empty((k, m))
        every = len(self._squares)
        mine = self._rows if m == every else self._rows[items]
        squares = self._squares if m == every else self._squares[items]
        sizes = np.array([len(members) for _, members in clusters])
        dots, sums, node_squares = self._products(mine, [members for _, members in clusters], sizes)
        own = np.flatnonzero(inside)
        values = finish(
            self._kind,
            dots.reshape(-1),
            np.repeat(sizes, m),
            own,
            squares[own % m],
            lambda: np.tile(squares, k) + np.repeat(node_squares, m),
            self._n_columns,
            lambda at: self._difference(mine, at % m, sums, at // m, sizes),
        )
        return values.reshape(k, m)

    def _products(self, mine: Any, clusters: Sequence[Ints], sizes: Ints) -> tuple[Floats, Any, Floats]:
        """Return the products ``[k, m]``, the sums of clusters, and the squared lengths of their centroids ``[k]``."""
        raise NotImplementedError

    def _difference(self, mine: Any, rows: Ints, sums: Any, clusters: Ints, sizes: Ints) -> Floats:
        """Return differences of rows and centroids; only their lengths are used."""
        raise NotImplementedError


class _Dense(_Products):
    def __init__(self, affinity: DenseAffinity) -> None:
        super().__init__(affinity)
        self._rows = affinity.rows(np.arange(len(affinity.features)))
        self._squares = np.einsum("ij,ij->i", self._rows, self._rows)

    def _products(self, mine: Any, clusters: Sequence[Ints], sizes: Ints) -> tuple[Floats, Any, Floats]:
        if len(sizes) and (sizes == 1).all():
            sums = self._rows[np.concatenate(clusters)]
        else:
            sums = np.stack([self._rows[members].sum(axis=0) for members in clusters])
        squares = np.zeros(len(sizes))
        if not isinstance(self._kind, Cosine):
            squares = np.einsum("ij,ij->i", sums, sums) / sizes.astype(np.float64) ** 2
        return sums @ mine.T, sums, squares

    def _difference(self, mine: Any, rows: Ints, sums: Any, clusters: Ints, sizes: Ints) -> Floats:
        gap: Floats = mine[rows] - sums[clusters] / sizes[clusters, None]
        return gap


class _Sparse(_Products):
    def __init__(self, affinity: SparseAffinity) -> None:
        super().__init__(affinity)
        self._rows, self._squares = affinity.features, affinity.squares

    def _products(self, mine: Any, clusters: Sequence[Ints], sizes: Ints) -> tuple[Floats, Any, Floats]:
        ends = np.concatenate([[0], np.cumsum(sizes)])
        ones = sp.csr_matrix((np.ones(ends[-1]), np.concatenate(clusters), ends), (len(sizes), len(self._squares)))
        sums = ones @ self._rows
        squares = np.asarray(sums.multiply(sums).sum(axis=1)).reshape(-1) / sizes.astype(np.float64) ** 2
        return np.ascontiguousarray((mine @ sums.T).toarray().T), sums, squares

    def _difference(self, mine: Any, rows: Ints, sums: Any, clusters: Ints, sizes: Ints) -> Floats:
        gap = mine[rows] - sp.diags(1.0 / sizes[clusters]) @ sums[clusters]
        length: Floats = np.sqrt(np.asarray(gap.multiply(gap).sum(axis=1)).reshape(-1, 1))
        return length


class _Precomputed:
    def __init__(self, affinity: PrecomputedAffinity) -> None:
        self._matrix, self.own_singleton = affinity.matrix, affinity.kind.own_singleton

    def pairs(self, items: Ints, item: int) -> tuple[Floats, Floats]:
        others = items[items != item]
        both = []
        for part in (self._matrix[others][:, [item]], self._matrix[[item]][:, others]):
            similar = np.zeros(len(items))
            similar[items != item] = (part.toarray() if sp.issparse(part) else part).reshape(-1)
            both.append(similar)
        return both[0], both[1]

    def columns(self, items: Ints, clusters: Sequence[Cluster], inside: Bools) -> Floats:
        values = np.empty((len(clusters), len(items)))
        for row, (_, members) in enumerate(clusters):
            block = self._matrix[items][:, members]
            block = block.toarray() if sp.issparse(block) else block
            itself = items[:, None] == members  # never read, as it may be NaN
            total = np.where(itself, 0.0, block).sum(axis=1, dtype=np.float64)
            others = len(members) - inside[row]
            values[row] = np.where(others == 0, self.own_singleton, total / np.maximum(others, 1))
        return values


class _Custom:
    own_singleton = None

    def __init__(self, affinity: CustomAffinity) -> None:
        self._affinity = affinity

    def pairs(self, items: Ints, item: int) -> tuple[Floats, Floats]:
        raise NotImplementedError  # a custom function may differ from a mean over members

    def columns(self, items: Ints, clusters: Sequence[Cluster], inside: Bools) -> Floats:
        values = np.empty((len(clusters), len(items)))
        for row, (node, members) in enumerate(clusters):
            values[row] = self._affinity.ask(items, node, members, inside[row])
        return values
