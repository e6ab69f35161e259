"""Leave-one-out cosines between items and the shrunk centroids of a tree's clusters, block by block.

The centroid of cluster c below p is ``m_c = S_c + S_p / n_p``: S is the sum of the items' unit rows, n their number.
The centroid of the root is its sum. An item is left out of both where it is in them. One product of a block with the
sums gives the cosines with all clusters. Those of the item's own path, and of the path's children, are then corrected.
"""

from collections.abc import Iterator
from copy import copy
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.features.membership import ranges
from pomdp_hier.features.validation import Features, require_whole, row_pieces
from pomdp_hier.hierarchy.tree import Hierarchy

_BLOCK_VALUES = 1 << 18  # items x clusters of one block, which stays in the cache
_CANCELLED = 1e-13  # of the squared number of items, below which a squared length is rounding


class UnitRows:
    """The rows of the features divided by their length; rows of zeros stay.

    Attributes:
        n_terms: The number of nonzero values per row ``[N]``.
        is_zero: Whether a row holds nothing but zeros ``[N]``.
        sparse: Whether the features are sparse.
    """

    def __init__(self, features: Features) -> None:
        self.features, self.sparse = features, bool(sp.issparse(features))
        n_items = features.shape[0]
        self._largest, self._length = np.ones(n_items), np.ones(n_items)
        self.n_terms = np.zeros(n_items, dtype=np.int64)
        for low, high in row_pieces(n_items, 8 * (1 if self.sparse else features.shape[1])):
            rows = self._rows(np.arange(low, high))
            values, owner = self._values(rows)
            size = np.zeros(high - low)
            np.maximum.at(size, owner, np.abs(values))
            size[size == 0] = 1.0
            self._largest[low:high] = size
            squares = np.bincount(owner, (values / size[owner]) ** 2, minlength=high - low)
            self.n_terms[low:high] = np.bincount(owner, values != 0, minlength=high - low).astype(np.int64)
            self._length[low:high] = np.where(squares > 0, np.sqrt(squares), 1.0)
        self.is_zero = self.n_terms == 0

    def _rows(self, items: Ints) -> Features:
        require_whole(self.features)
        return self.features[items].astype(np.float64)

    def _values(self, rows: Features) -> tuple[Floats, Ints]:
        if self.sparse:
            return rows.data, np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        return rows.ravel(), np.repeat(np.arange(rows.shape[0]), rows.shape[1])

    def __call__(self, items: Ints) -> Features:
        """Return the unit rows of these items in float64, dense or CSR."""
        rows = self._rows(items)
        if not self.sparse:
            return rows / self._largest[items, None] / self._length[items, None]
        rows.data /= np.repeat(self._largest[items], np.diff(rows.indptr))
        rows.data /= np.repeat(self._length[items], np.diff(rows.indptr))
        return rows


class Centroids:
    """The clusters of a tree by their positions ``0..K-1``, level by level, with the sums of their items' unit rows.

    The children of a cluster stand side by side. A *home* is a cluster that items are filed under directly.

    Attributes:
        nodes: The node of each position ``[K]``.
        homes: The positions of the homes ``[L]``, in increasing order.
        home: The place in ``homes`` of each item's own home ``[N]``.
        depths: The level of each position ``[K]``; the root's is 0.
        units: The unit rows of the items.
        mass: The weight of each item in the sums ``[N]``.
        sizes: The number of items below each position ``[K]``.
    """

    def __init__(self, features: Features, tree: Hierarchy) -> None:
        inner = np.arange(tree.n_items, tree.n_nodes)
        self.nodes = inner[np.lexsort((tree.starts[inner], tree.levels[inner]))]
        position = np.zeros(tree.n_nodes, dtype=np.int64)
        position[self.nodes] = np.arange(len(self.nodes))
        self.parent = position[np.maximum(tree.parent[self.nodes], 0)]
        self.parent[0] = 0
        self.depths = tree.levels[self.nodes]
        self.sizes = tree.sizes[self.nodes].astype(np.float64)
        self.mass = np.ones(tree.n_items)
        self._level_bounds = np.searchsorted(self.depths, np.arange(self.depths[-1] + 2))
        self._n_children = np.bincount(self.parent[1:], minlength=len(self.nodes))
        self._first_child = 1 + np.cumsum(self._n_children) - self._n_children
        self.homes, self.home = np.unique(position[tree.parent[: tree.n_items]], return_inverse=True)
        self.units = UnitRows(features)
        self._sum()

    def reweighted(self, mass: Floats) -> "Centroids":
        """Return the same clusters, with the items weighted in the sums of their unit rows."""
        new = copy(self)
        new.mass = mass
        new._sum()
        return new

    def _sum(self) -> None:
        """Set the sums of the clusters and what is derived from them."""
        self._sizes = np.zeros(len(self.nodes))
        np.add.at(self._sizes, self.homes[self.home], self.mass)
        for low, high in [*self._levels()][:0:-1]:
            np.add.at(self._sizes, self.parent[low:high], self._sizes[low:high])
        sums = self._sums()
        self._columns = sums.T.tocsr() if sp.issparse(sums) else np.ascontiguousarray(sums.T)
        self._measure(sums)

    @property
    def block_items(self) -> int:
        """The number of items per block."""
        return max(1, _BLOCK_VALUES // len(self.nodes))

    def blocks(self) -> Iterator[Ints]:
        """Yield all items, those of one home together, in blocks."""
        order = np.argsort(self.home, kind="stable")
        for low in range(0, len(order), self.block_items):
            yield order[low : low + self.block_items]

    def _sums(self) -> Features:
        """Return the sum of the unit rows of each cluster's items ``[K, D]``."""
        n_items, n_columns = self.units.features.shape
        where = self.homes[self.home]
        if self.units.sparse:
            direct = sp.csr_matrix((self.mass, (where, np.arange(n_items))), shape=(len(self.nodes), n_items))
            direct = direct @ sp.csr_matrix(self.units(np.arange(n_items)))
            levels = [direct[low:high] for low, high in self._levels()]
            for depth in range(len(levels) - 1, 0, -1):
                low, high = self._level_bounds[depth : depth + 2].tolist()
                above = self.parent[low:high] - self._level_bounds[depth - 1]
                up = sp.csr_matrix(
                    (np.ones(high - low), (above, np.arange(high - low))),
                    shape=(levels[depth - 1].shape[0], high - low),
                )
                levels[depth - 1] = levels[depth - 1] + up @ levels[depth]
            return sp.csr_matrix(sp.vstack(levels, format="csr"))
        sums = np.zeros((len(self.nodes), n_columns))
        order = np.argsort(where, kind="stable")
        for low, high in row_pieces(n_items, 8 * n_columns):
            items = order[low:high]
            first = np.flatnonzero(np.diff(where[items], prepend=-1))
            sums[where[items[first]]] += np.add.reduceat(self.mass[items, None] * self.units(items), first, axis=0)
        for low, high in [*self._levels()][:0:-1]:
            first = np.flatnonzero(np.diff(self.parent[low:high], prepend=-1))
            sums[self.parent[low + first]] += np.add.reduceat(sums[low:high], first, axis=0)
        return sums

    def _levels(self) -> Iterator[tuple[int, int]]:
        bounds = self._level_bounds.tolist()
        return pairwise(bounds)

    def _measure(self, sums: Features) -> None:
        """Set the squared lengths of the sums, their products with the parents' sums, and the centroids' lengths."""
        count = len(self.nodes)
        self._squares, self._with_parent = np.empty(count), np.empty(count)
        if self.units.sparse:
            self._squares[:] = np.asarray(sums.multiply(sums).sum(axis=1)).ravel()
            row = np.zeros(sums.shape[1])
            for node in range(count):
                low, high = int(self._first_child[node]), int(self._first_child[node] + self._n_children[node])
                if low < high:
                    columns = sums.indices[sums.indptr[node] : sums.indptr[node + 1]]
                    row[columns] = sums.data[sums.indptr[node] : sums.indptr[node + 1]]
                    self._with_parent[low:high] = sums[low:high] @ row
                    row[columns] = 0.0
        else:
            self._squares[:] = np.einsum("ij,ij->i", sums, sums)
            for low, high in row_pieces(count, 8 * sums.shape[1]):
                self._with_parent[low:high] = np.einsum("ij,ij->i", sums[low:high], sums[self.parent[low:high]])
        self._with_parent[0] = self._squares[0]
        self._share = 1.0 / self._sizes[self.parent]  # kappa / n_p
        self._share[0] = 0.0
        squares = self._squares + self._share * (2 * self._with_parent + self._share * self._squares[self.parent])
        self._inverse = _inverse_root(squares, (self._sizes + 1) ** 2)

    def cosines(self, items: Ints) -> Floats:
        """Return the cosine of each item with each cluster's centroid, the item left out ``[m, K]``."""
        rows = self.units(items)
        products = (rows @ self._columns).toarray() if self.units.sparse else rows @ self._columns
        cosines: Floats = np.take(products, self.parent, axis=1)  # in rows, where indexing would give columns
        cosines *= self._share
        cosines += products
        cosines *= self._inverse
        self._leave_out(cosines, products, self.homes[self.home[items]], items)
        return np.clip(cosines, -1.0, 1.0, out=cosines)

    def _leave_out(self, cosines: Floats, products: Floats, home: Ints, items: Ints) -> None:
        """Correct the cosines with the clusters of each item's path and with these clusters' children."""
        rows, on_path = np.arange(len(home)), home
        below = np.full(len(home), -1)
        while len(rows):
            counts = self._n_children[on_path]
            columns = ranges(self._first_child[on_path], counts)
            inside = columns == np.repeat(below, counts)
            self._correct(cosines, products, np.repeat(rows, counts), columns, inside, items)
            at_root = on_path == 0
            top = rows[at_root]
            self._correct(cosines, products, top, np.zeros_like(top), np.ones(len(top), dtype=bool), items)
            rows, below, on_path = rows[~at_root], on_path[~at_root], self.parent[on_path[~at_root]]

    def _correct(
        self,
        cosines: Floats,
        products: Floats,
        rows: Ints,
        columns: Ints,
        inside: "np.typing.NDArray[np.bool_]",
        items: Ints,
    ) -> None:
        """Leave each row's item out of the column's parent, and out of the column's cluster where it is inside."""
        above = self.parent[columns]
        mass = self.mass[items[rows]]
        weight = np.where(self.units.is_zero[items[rows]], 0.0, mass)  # of its unit row in the sums
        inner = weight * inside
        with_cluster, with_parent = products[rows, columns], products[rows, above]
        rest = self._sizes[above] - mass
        share = np.divide(1.0, rest, out=np.zeros_like(rest), where=(self.sizes[above] > 1) & (columns > 0))
        filled = self.sizes[columns] > inside
        product = np.where(filled, with_cluster - inner, 0.0)
        squares = np.where(filled, self._squares[columns] - 2 * inner * with_cluster + inner * inner, 0.0)
        cross = self._with_parent[columns] - weight * with_cluster - inner * (with_parent - weight)
        cross = np.where(filled, cross, 0.0)
        parent_squares = self._squares[above] - 2 * weight * with_parent + weight * weight
        product += share * (with_parent - weight)
        squares += share * (2 * cross + share * parent_squares)
        left = self._sizes[columns] - inner
        cosines[rows, columns] = product * _inverse_root(squares, (left + 1) ** 2)

    def along_paths(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the value at each home, and the mean over its ancestors below the root, 0 without any ``[m, L]``.

        Args:
            values: One value per item and cluster ``[m, K]``; changed to the sums along the paths.
        """
        at_home = np.take(values, self.homes, axis=1)
        values[:, 0] = 0.0
        for low, high in [*self._levels()][2:]:
            values[:, low:high] += np.take(values, self.parent[low:high], axis=1)
        above = np.take(values, self.parent[self.homes], axis=1)
        above /= np.maximum(self.depths[self.homes] - 1, 1)
        return at_home, above


def _inverse_root(squares: Floats, scale: Floats) -> Floats:
    """Return ``1 / sqrt(squares)``, and 0 where the squares are no more than rounding."""
    return np.divide(1.0, np.sqrt(np.abs(squares)), out=np.zeros_like(squares), where=squares > _CANCELLED * scale)
