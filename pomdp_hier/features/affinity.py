"""Similarities of many items to many clusters at once, for each kind of features.

An :class:`Affinity` knows the features and the tree. It hands out a :class:`Batch` of items, whose one verb is
``expand``: the similarities of items to all children of given nodes. Dense features are in
:mod:`~pomdp_hier.features.dense`, CSR in :mod:`~pomdp_hier.features.affinity`; here are the two plain ones.
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Bools, Floats, Ints, as_floats
from pomdp_hier._text import brief
from pomdp_hier.errors import FeatureError
from pomdp_hier.features.dense import DenseAffinity, DenseKind, finish, refuse_large
from pomdp_hier.features.items import item_features
from pomdp_hier.features.membership import (
    Children,
    at_children,
    children_of,
    cluster_sums,
    contains,
    membership,
    own_ranks,
    ranges,
)
from pomdp_hier.features.similarity import (
    BuiltIn,
    ClusterView,
    Cosine,
    CustomSimilarity,
    Precomputed,
    Similarity,
    as_similarity,
)
from pomdp_hier.features.validation import Features, require_whole, warn_degenerate_rows, warn_of_distances
from pomdp_hier.hierarchy.tree import Hierarchy


class SparseAffinity:
    """CSR features ``[N, D]`` without a dense copy: float64 unit rows for the cosine, unchanged rows for distances.

    The sums of the children are sparse products of the membership matrix and the features. An item's row has to meet
    only the children of its node, so the two are joined on the pair (node, column). One sparse product gives all dot
    products of a level, and only terms that an item shares with a child cost anything.

    Attributes:
        features: The prepared rows, CSR float64; where there are more columns than values, only the columns in use.
        n_columns: D, with the columns that nobody uses.
        hierarchy: The tree.
        kind: The similarity.
        squares: The squared lengths of the prepared rows ``[N]``.
        batch_items: Sums are formed per level, so one batch holds all items.

    Args:
        features, hierarchy, kind: As in the attributes, the rows as they were given.
        sums: The sums of the prepared rows of all nodes after the items, CSR, where the tree is an excerpt; with
            all columns.
        all_columns: Whether the prepared rows keep columns that nobody uses.
    """

    def __init__(
        self,
        features: Features,
        hierarchy: Hierarchy,
        kind: DenseKind,
        sums: Features | None = None,
        *,
        all_columns: bool = False,
    ) -> None:
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
        if (
            self.n_columns > len(values) and not all_columns and sums is None
        ):  # scipy's products take room for every column
            unique, indices = np.unique(indices, return_inverse=True)
            used = max(1, len(unique))
        self.features = sp.csr_matrix((values, indices, features.indptr), shape=(len(counts), used))
        self._sums = None if sums is None else sp.vstack([self.features, sums], format="csr")

    def sums_of(self, nodes: Ints) -> Any:
        """Return the sums of the prepared rows over each of these nodes, CSR."""
        return membership(self.hierarchy, nodes) @ self.features if self._sums is None else self._sums[nodes]

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
        self.sums = parent.sums_of(self.children)
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


_TABLE_FLOATS = 1 << 23


class Batch(Protocol):
    """Items, with the data for their similarities."""

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        """Return the similarities of item ``rows[j]`` of the batch to the children of node ``parents[j]``.

        All children of one row follow one another, in child order; rows follow in the order given.

        Args:
            rows: Rows of the batch ``[m]``.
            parents: Nodes with children ``[m]``.
        """


class Affinity(Protocol):
    """Features, a tree over their rows, and a similarity."""

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""

    @property
    def batch_items(self) -> int:
        """The maximum number of items per batch, for memory."""

    def batch(self, items: Ints) -> Batch:
        """Return the batch of these items."""


def affinity(
    X: Any, hierarchy: Hierarchy, similarity: Similarity = "cosine", *, compiled: bool = True
) -> DenseAffinity | SparseAffinity | Affinity:
    """Return the similarities between the items and the clusters of a hierarchy, computed on demand.

    Args:
        X: Features ``[N, D]``, dense or sparse, or similarities ``[N, N]`` with ``"precomputed"``; or the
            result of `item_features`, which is not checked again.
        hierarchy: The tree over the N items.
        similarity: A name, a record with options, or a function of the items' rows and a
            :class:`~pomdp_hier.features.similarity.ClusterView`.
        compiled: Whether numba may compute the sums over dense features, with bit-for-bit identical results.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [3, 2]], 3, singletons=True)
        >>> close = affinity([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]], tree)
        >>> close.batch(np.array([0])).expand(np.array([0]), np.array([4]))
        array([1., 0.])
    """
    features = item_features(X, hierarchy, similarity)
    known = _built(features.table, hierarchy, as_similarity(similarity), compiled)
    if features is not X and not features.precomputed:
        warn_about(known)
    return known


def _built(
    table: Features, hierarchy: Hierarchy, kind: BuiltIn | CustomSimilarity, compiled: bool
) -> DenseAffinity | SparseAffinity | Affinity:
    if isinstance(kind, Precomputed):
        return PrecomputedAffinity(table, hierarchy, kind)
    if callable(kind):
        return CustomAffinity(table, hierarchy, kind)
    if sp.issparse(table):
        return SparseAffinity(table, hierarchy, kind)
    return DenseAffinity(table, hierarchy, kind, compiled=compiled)


def warn_about(known: Affinity) -> None:
    """Warn about rows of zeros, a single column, and distances in place of similarities."""
    if isinstance(known, PrecomputedAffinity):
        warn_of_distances(known.matrix, known.hierarchy)
    elif isinstance(known, DenseAffinity | SparseAffinity) and isinstance(known.kind, Cosine):
        ids = None if known.hierarchy.labels is None else known.hierarchy.item_labels
        warn_degenerate_rows(known.zero_rows, known.n_columns, ids)


class PrecomputedAffinity:
    """Mean similarities from an ``[N, N]`` matrix, in O(N + K) per item."""

    def __init__(self, matrix: Features, hierarchy: Hierarchy, kind: Precomputed) -> None:
        self.matrix = matrix
        self.hierarchy = hierarchy
        self.kind = kind
        self.batch_items = max(16, min(1024, _TABLE_FLOATS // hierarchy.n_nodes))

    def batch(self, items: Ints) -> Batch:
        """Return the batch of these items, with the sums of their rows over every cluster."""
        return _PrecomputedBatch(self, items)


class _PrecomputedBatch:
    def __init__(self, parent: PrecomputedAffinity, items: Ints) -> None:
        tree = parent.hierarchy
        require_whole(parent.matrix)
        block = parent.matrix[items]
        block = block.toarray() if sp.issparse(block) else block
        block = block.astype(np.float64)
        # An item's similarity to itself is left out of every mean, and may be NaN: it is never read.
        block[np.arange(len(items)), items] = 0.0
        sums = cluster_sums(tree, lambda members: block[:, members].T, len(items))
        self._sums = np.concatenate([block.T, sums])
        self._items = items
        self._positions = tree.starts[items]
        self._parent = parent

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        tree = self._parent.hierarchy
        nodes, counts = children_of(tree, parents) if children is None else children
        rows = np.repeat(rows, counts)
        inside = contains(tree, nodes, self._positions[rows])
        others = tree.sizes[nodes] - inside
        values: Floats = self._sums[nodes, rows] / np.maximum(others, 1)
        values[others == 0] = self._parent.kind.own_singleton
        return values


class CustomAffinity:
    """A custom similarity, called per cluster with all its items."""

    batch_items = 1 << 14

    def __init__(self, features: Features, hierarchy: Hierarchy, similarity: CustomSimilarity) -> None:
        self.features = features
        self.hierarchy = hierarchy
        self.similarity = similarity

    def batch(self, items: Ints) -> Batch:
        """Return the batch of these items."""
        return _CustomBatch(self, items)

    def ask(self, items: Ints, node: int, members: Ints, inside: Bools) -> Floats:
        """Return the similarities of the items to one cluster ``[m]``."""
        require_whole(self.features)
        view = ClusterView(node, members, inside, self.features)
        given = self.similarity(self.features[items], view)
        try:
            answer = as_floats(given)
        except (TypeError, ValueError):
            raise FeatureError(
                f"similarity: got {brief(given)} for node {node}; expected shape ({len(items)},), one number per item. "
                "Return an array of floats."
            ) from None
        if answer.shape != items.shape:
            raise FeatureError(
                f"similarity: got shape {answer.shape} for node {node}; expected shape ({len(items)},), one number per "
                "item. Compare each row with the cluster, such as rows @ cluster.centroid."
            )
        wrong = ~np.isfinite(answer)
        if wrong.any():
            raise FeatureError(
                f"similarity: got {answer[wrong][0]} for item {items[wrong][0]} and node {node}; expected a finite "
                "number. Return a large or small one instead."
            )
        return answer


class _CustomBatch:
    def __init__(self, parent: CustomAffinity, items: Ints) -> None:
        self._parent = parent
        self._items = items

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        tree = self._parent.hierarchy
        _, counts = children_of(tree, parents) if children is None else children
        firsts = np.cumsum(counts) - counts
        values = np.empty(int(counts.sum()))
        for parent in np.unique(parents):
            asked = np.flatnonzero(parents == parent)
            for rank, node in enumerate(tree.children(parent)):
                values[firsts[asked] + rank] = self._ask(self._items[rows[asked]], int(node))
        return values

    def _ask(self, items: Ints, node: int) -> Floats:
        tree = self._parent.hierarchy
        return self._parent.ask(items, node, tree.items(node), contains(tree, node, tree.starts[items]))
