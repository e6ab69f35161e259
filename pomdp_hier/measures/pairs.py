"""Sums over pairs of items, by the closest common ancestor of the pair: what several measures are made of.

A *pair* is two different items, counted once. Its *ancestor* is the smallest inner node that holds both; two items of
one leaf cluster have that cluster. No measure here looks at an item together with itself.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arrays import Floats
from pomdp_hier._messages import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.affinity import PrecomputedAffinity, affinity
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.features.members import item_sums, membership
from pomdp_hier.features.similarity import Cosine, Precomputed, as_similarity
from pomdp_hier.features.sparse import SparseAffinity
from pomdp_hier.features.validation import row_pieces
from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["PairSums", "at_ancestor", "pair_counts", "standardised"]

_BLOCK = 512
_SAME = 1e-12  # of the numbers: less apart, they are one


def at_ancestor(hierarchy: Hierarchy, below: Floats) -> Floats:
    """Return the sums over pairs that meet at each inner node ``[K]``, given the sums ``[K]`` over all pairs below.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
        >>> at_ancestor(tree, np.array([1.0, 5.0]))
        array([1., 4.])
    """
    n_items = hierarchy.n_items
    parents = hierarchy.parent[n_items:] - n_items
    inside = parents >= 0
    return below - np.bincount(parents[inside], weights=below[inside], minlength=len(below))


def pair_counts(hierarchy: Hierarchy) -> Floats:
    """Return the number of pairs whose ancestor is each inner node, ``[K]``.

    Example:
        >>> pair_counts(Hierarchy.from_children([[0, 1], [3, 2]], 3))
        array([1., 2.])
    """
    sizes = hierarchy.sizes[hierarchy.n_items :].astype(np.float64)
    return at_ancestor(hierarchy, sizes * (sizes - 1) / 2)


def standardised(hierarchy: Hierarchy, values: Floats) -> Floats:
    """Return numbers of the inner nodes with mean 0 and variance 1 over the pairs that meet there, whatever their unit.

    They are all NaN where these pairs have one number, to rounding; a node where no pair meets gets a 0.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> standardised(tree, np.array([1e-200, 1e-200, 4e-200])).round(3)
        array([-1.414, -1.414,  0.707])
    """
    counts = pair_counts(hierarchy)
    halves = np.where(counts > 0, values / 2, np.nan)  # the difference of two floats may be none, that of halves is
    low, high = np.nanmin(halves), np.nanmax(halves)
    if high - low <= _SAME * max(abs(low), abs(high)):
        return np.full(len(values), np.nan)
    share = np.where(counts > 0, (halves - low) / (high - low), 0.0)
    share -= counts @ share / counts.sum()
    scaled: Floats = np.where(counts > 0, share / np.sqrt(counts @ share**2 / counts.sum()), 0.0)
    return scaled


class PairSums:
    """Pairwise similarities of the items, summed by cluster without forming the ``[N, N]`` matrix.

    For the cosine, with ``u`` the unit rows and ``S`` their sum over a cluster, the pairs inside the cluster add up to
    ``(||S||**2 - sum ||u||**2) / 2``, so that every cluster of a tree costs O(N D) in all, whatever the fan-out.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]``, whose diagonal is never read.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``. A matrix that is not symmetric counts by the mean of its halves.

    Raises:
        FeatureError: For features that do not fit the items.
        ParameterError: For another similarity.
    """

    def __init__(self, X: Any, hierarchy: Hierarchy, similarity: object = "cosine") -> None:
        kind = as_similarity(similarity)  # type: ignore[arg-type]
        if not isinstance(kind, Cosine | Precomputed):
            raise ParameterError(
                f"similarity: got {brief(similarity)}; expected 'cosine', or 'precomputed' with a matrix. For a "
                "distance, give a matrix of similarities made from it"
            )
        self.hierarchy = hierarchy
        self._of: Any = affinity(X, hierarchy, kind)
        self._nonzero = np.ones(hierarchy.n_items)
        if isinstance(self._of, SparseAffinity):
            self._nonzero = (self._of.squares > 0).astype(np.float64)
        elif isinstance(self._of, DenseAffinity):
            self._nonzero[self._of.zero_rows] = 0.0

    def inside(self) -> Floats:
        """Return the sum over the pairs inside each inner node, ``[K]``."""
        if self.hierarchy.n_nodes == self.hierarchy.n_items:
            return np.zeros(0)
        if isinstance(self._of, PrecomputedAffinity):
            return self._inside_matrix()
        squares = _row_squares(self._of.sums) if isinstance(self._of, DenseAffinity) else self._squares_sparse()
        inner = np.arange(self.hierarchy.n_items, self.hierarchy.n_nodes)
        inside: Floats = (squares - item_sums(self.hierarchy, self._nonzero, inner)) / 2
        return inside

    def degrees(self) -> Floats:
        """Return the sum of each item's similarities to all others, ``[N]``."""
        if isinstance(self._of, PrecomputedAffinity):
            return np.concatenate([block.sum(axis=1) for _, block in self.blocks()])
        total = np.asarray(sum(rows.sum(axis=0) for rows in self._pieces())).reshape(-1)
        degrees = np.concatenate([np.asarray(rows @ total).reshape(-1) for rows in self._pieces()])
        degrees -= self._nonzero
        return degrees

    def sum_of_squares(self) -> float:
        """Return the sum of squared similarities over all pairs; for the cosine by the smaller Gram matrix."""
        n_items, n_columns = self.hierarchy.n_items, self._n_columns()
        if n_items <= n_columns:
            return sum(float(np.vdot(block, block)) for _, block in self.blocks()) / 2
        gram = sum((rows.T @ rows for rows in self._pieces()), start=np.zeros((n_columns, n_columns)))
        return (float(np.vdot(np.asarray(gram), np.asarray(gram))) - float(self._nonzero.sum())) / 2

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield the first row and the block ``[b, N]`` dense with the diagonal 0 of the symmetric matrix."""
        n_items = self.hierarchy.n_items
        table = self._of.matrix if isinstance(self._of, PrecomputedAffinity) else self._rows(0, n_items)
        for low in range(0, n_items, _BLOCK):
            high = min(low + _BLOCK, n_items)
            if isinstance(self._of, PrecomputedAffinity):
                block = _dense(table[low:high]).astype(np.float64)
                block = (block + _dense(table[:, low:high]).T) / 2
            else:
                block = _dense(table[low:high] @ table.T)
            block[np.arange(high - low), np.arange(low, high)] = 0.0
            yield low, block

    def _n_columns(self) -> int:
        table = self._of.matrix if isinstance(self._of, PrecomputedAffinity) else self._of.features
        return int(table.shape[1])

    def _rows(self, low: int, high: int) -> Any:
        """Return unit rows of consecutive items, float64."""
        if isinstance(self._of, SparseAffinity):
            return self._of.features[low:high]
        return self._of.rows(np.arange(low, high))

    def _pieces(self) -> Iterator[Any]:
        for low, high in row_pieces(self.hierarchy.n_items, 8 * self._n_columns()):
            yield self._rows(low, high)

    def _squares_sparse(self) -> Floats:
        """Return the squared lengths of the clusters' sums, formed level by level so that they stay sparse."""
        tree, n_items = self.hierarchy, self.hierarchy.n_items
        squares = np.zeros(tree.n_nodes - n_items)
        inner = np.arange(n_items, tree.n_nodes)
        by_level = inner[np.argsort(tree.levels[inner], kind="stable")]
        for nodes in np.split(by_level, np.cumsum(np.bincount(tree.levels[inner]))[:-1]):
            squares[nodes - n_items] = _row_squares(membership(tree, nodes) @ self._of.features)
        return squares

    def _inside_matrix(self) -> Floats:
        tree, n_items = self.hierarchy, self.hierarchy.n_items
        inside = np.zeros(tree.n_nodes)
        for low, block in self.blocks():
            running = np.zeros((len(block), n_items + 1))
            np.cumsum(block[:, tree.item_order], axis=1, out=running[:, 1:])
            row = np.arange(len(block))
            node = tree.parent[low : low + len(block)]
            while len(row):
                start = tree.starts[node]
                own = running[row, start + tree.sizes[node]] - running[row, start]
                inside += np.bincount(node, weights=own, minlength=tree.n_nodes)
                node = tree.parent[node]
                row, node = row[node >= 0], node[node >= 0]
        return inside[n_items:] / 2


def _dense(block: Any) -> Any:
    return block.toarray() if sp.issparse(block) else np.asarray(block)


def _row_squares(rows: Any) -> Floats:
    """Return the squared length of each row, ``[m]``."""
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).reshape(-1)
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    return squares
