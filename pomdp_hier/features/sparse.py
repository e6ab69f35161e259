"""Similarities over CSR features, without a dense copy.

The sums of the children asked about are sparse products of the membership matrix and the features. An item's row then
has to meet only the children of the node where it stands, so the two are joined on the pair (node, column): one sparse
product gives all dot products of a level, and only terms that an item shares with a child cost anything.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.features.dense import DenseKind, finish, refuse_large
from pomdp_hier.features.membership import Children, at_children, children_of, membership, own_ranks, ranges
from pomdp_hier.features.similarity import Cosine
from pomdp_hier.features.validation import Features
from pomdp_hier.hierarchy.tree import Hierarchy


class SparseAffinity:
    """CSR features ``[N, D]``: float64 unit rows for the cosine, unchanged rows for distances.

    Attributes:
        features: The prepared rows, CSR float64; where there are more columns than values, only the columns in use.
        n_columns: D, with the columns that nobody uses.
        hierarchy: The tree.
        kind: The similarity.
        squares: The squared lengths of the prepared rows ``[N]``.
        batch_items: Sums are formed per level, so one batch holds all items.
    """

    def __init__(self, features: Features, hierarchy: Hierarchy, kind: DenseKind) -> None:
        self.hierarchy = hierarchy
        self.kind = kind
        self.batch_items = hierarchy.n_items
        values = features.data.astype(np.float64)
        counts = np.diff(features.indptr)
        filled = np.flatnonzero(counts)
        starts = features.indptr[:-1][filled]
        largest = np.maximum.reduceat(np.abs(values), starts) if len(filled) else np.zeros(0)
        if isinstance(kind, Cosine):
            nonzero = largest > 0
            self.zero_rows = np.setdiff1d(np.arange(hierarchy.n_items), filled[nonzero])
            values /= np.repeat(np.where(nonzero, largest, 1.0), counts[filled])
            if len(filled):
                lengths = np.sqrt(np.add.reduceat(values**2, starts))
                values /= np.repeat(np.where(nonzero, lengths, 1.0), counts[filled])
        else:
            refuse_large(float(largest.max(initial=0.0)))
        self.squares = np.zeros(hierarchy.n_items)
        if len(filled):
            self.squares[filled] = np.add.reduceat(values**2, starts)
        self.n_columns, used, indices = features.shape[1], features.shape[1], features.indices
        if self.n_columns > len(values):  # scipy's products take room for every column
            unique, indices = np.unique(indices, return_inverse=True)
            used = max(1, len(unique))
        self.features = sp.csr_matrix((values, indices, features.indptr), shape=(len(counts), used))

    def batch(self, items: Ints) -> "_SparseBatch":
        """Return the batch of these items."""
        return _SparseBatch(self, items)


class _Join:
    """The children of some nodes: their sums, and the sums' entries keyed by (node, column)."""

    def __init__(self, parent: SparseAffinity, parents: Ints) -> None:
        tree = parent.hierarchy
        self.n_columns = parent.features.shape[1]
        self.parents = parents
        self.children, counts = children_of(tree, parents)
        self.firsts = np.cumsum(counts) - counts
        self.sums = membership(tree, self.children) @ parent.features
        self.squares = np.asarray(self.sums.multiply(self.sums).sum(axis=1)).reshape(-1)
        self.squares /= tree.sizes[self.children].astype(np.float64) ** 2
        if len(parents) == 1:  # its columns are the keys, and nothing has to be looked up
            self.entries = self.sums.T.tocsr()
            return
        nodes = np.repeat(np.arange(len(self.children)), np.diff(self.sums.indptr))
        keys = np.repeat(np.arange(len(parents)), counts)[nodes] * self.n_columns + self.sums.indices
        order = np.argsort(keys, kind="stable")
        keys, nodes = keys[order], nodes[order]
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
        self.keys = keys[first]
        bounds = np.concatenate([first, [len(keys)]])
        self.entries = sp.csr_matrix((self.sums.data[order], nodes, bounds), shape=(len(self.keys), len(self.children)))

    def dots(self, features: Any, at: Ints) -> Any:
        """Return the sparse ``[m, children]`` dot products of rows with the children of ``parents[at]``."""
        if len(self.parents) == 1:
            return features @ self.entries
        lengths = np.diff(features.indptr)
        keys = np.repeat(at * self.n_columns, lengths) + features.indices
        found = np.searchsorted(self.keys, keys)
        found[found == len(self.keys)] = 0
        shared = self.keys[found] == keys if len(self.keys) else np.zeros(len(keys), dtype=bool)
        indptr = np.concatenate([[0], np.cumsum(shared)])[features.indptr]
        rows = sp.csr_matrix((features.data[shared], found[shared], indptr), shape=(len(at), len(self.keys)))
        return rows @ self.entries


class _SparseBatch:
    def __init__(self, parent: SparseAffinity, items: Ints) -> None:
        self._parent = parent
        self._items = items
        self._join: _Join | None = None

    def _joined(self, parents: Ints) -> tuple[_Join, Ints]:
        unique = np.unique(parents)
        join = self._join
        if join is not None:
            at = np.minimum(np.searchsorted(join.parents, unique), len(join.parents) - 1)
            if not (join.parents[at] == unique).all():
                join = None
        if join is None:
            # Pieces of one level come one after another, and a large node's items lie in several of them.
            join = self._join = _Join(self._parent, unique)
        return join, np.searchsorted(join.parents, parents)

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        """Return the similarities of item ``rows[j]`` of the batch to the children of ``parents[j]``, row by row."""
        affinity, tree = self._parent, self._parent.hierarchy
        join, at = self._joined(parents)
        nodes, counts = children_of(tree, parents) if children is None else children
        firsts = np.cumsum(counts) - counts
        items = self._items[rows]
        product = join.dots(affinity.features[items], at)
        values = np.zeros(len(nodes))
        row = np.repeat(np.arange(len(items)), np.diff(product.indptr))
        values[firsts[row] + product.indices - join.firsts[at[row]]] = product.data
        ranks = own_ranks(tree, parents, tree.starts[items])
        holds = np.flatnonzero(ranks >= 0)

        def difference(where: Ints) -> Floats:
            row = np.searchsorted(firsts, where, side="right") - 1
            return self._difference(items[row], join, where - firsts[row] + join.firsts[at[row]])

        return finish(
            affinity.kind,
            values,
            at_children(tree.sizes, parents, nodes),
            firsts[holds] + ranks[holds],
            affinity.squares[items[holds]],
            lambda: np.repeat(affinity.squares[items], counts) + join.squares[ranges(join.firsts[at], counts)],
            affinity.n_columns,
            difference,
        )

    def _difference(self, items: Ints, join: _Join, columns: Ints) -> Floats:
        sizes = self._parent.hierarchy.sizes[join.children[columns]]
        gap = self._parent.features[items] - sp.diags(1.0 / sizes) @ join.sums[columns]
        length = np.sqrt(np.asarray(gap.multiply(gap).sum(axis=1)).reshape(-1, 1))
        return np.asarray(length)
