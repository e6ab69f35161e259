"""Similarities of many items to many clusters at once, for each kind of features.

An :class:`Affinity` knows the features and the tree. It hands out a :class:`Batch` of items, whose one verb is
``expand``: the similarities of items to all children of given nodes. Dense features are in
:mod:`~pomdp_hier.features.dense`, CSR in :mod:`~pomdp_hier.features.sparse`; here are the two plain ones.
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier.errors import FeatureError
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.features.items import item_features
from pomdp_hier.features.membership import Children, children_of, cluster_sums, contains
from pomdp_hier.features.similarity import (
    BuiltIn,
    ClusterView,
    Cosine,
    CustomSimilarity,
    Precomputed,
    Similarity,
    as_similarity,
)
from pomdp_hier.features.sparse import SparseAffinity
from pomdp_hier.features.validation import Features, require_whole, warn_degenerate_rows, warn_of_distances
from pomdp_hier.hierarchy.tree import Hierarchy

_TABLE_FLOATS = 1 << 23


class Batch(Protocol):
    """Items, with the data for their similarities."""

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        """Return the similarities of item ``rows[j]`` of the batch to the children of node ``parents[j]``.

        All children of one row follow one another, in child order; rows follow in the order given.

        Args:
            rows: Rows of the batch ``[m]``.
            parents: Nodes with children ``[m]``.
            children: What `children_of` says of the parents, where that is known.
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

    Raises:
        FeatureError: For features that cannot be used; the message names rows.
        ParameterError: For an unknown similarity.

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
        """Return the similarities of the items to one cluster ``[m]``.

        Raises:
            FeatureError: It returns anything but one finite number per item.
        """
        require_whole(self.features)
        view = ClusterView(node, members, inside, self.features)
        answer = np.asarray(self.similarity(self.features[items], view), dtype=np.float64)
        if answer.shape != items.shape:
            raise FeatureError(
                f"similarity: got shape {answer.shape} for {len(items)} item(s) and node {node}; expected shape "
                f"({len(items)},), one number per item"
            )
        wrong = items[~np.isfinite(answer)]
        if len(wrong):
            raise FeatureError(
                f"the similarity of item {wrong[0]} to node {node} is not finite; expected a finite number"
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
