"""Similarities over dense features from per-cluster sums, in O(D) per item and cluster.

Rows are prepared in float64 as they are read: unit rows for the cosine, rows less the overall mean for the distances.
With ``S`` the sum of a cluster's prepared rows and ``n`` its size, the mean cosine is ``<u, S> / n`` and the squared
distance ``||x||**2 - 2 <x, S> / n + ||S / n||**2``. An item is left out of its own cluster by subtraction of
``<u, u>``, or, for the distance, by the factor ``(n / (n - 1))**2``.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._imports import pays
from pomdp_hier._io.formats import room_for
from pomdp_hier.errors import FeatureError
from pomdp_hier.features.membership import (
    RUN,
    Children,
    at_children,
    children_of,
    cluster_sums,
    own_ranks,
    pieces,
    ranges,
)
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean
from pomdp_hier.features.validation import PIECE_BYTES, Features, require_whole, row_pieces
from pomdp_hier.hierarchy.tree import Hierarchy

DenseKind = Cosine | InverseSquaredEuclidean | NegativeEuclidean

_CANCELLED = 1e-3  # of its terms, below which a squared distance is made anew; numba's paths take a tenth
LARGEST = 1e140  # times itself, the number of columns and twice that of the items, all of which must stay finite
PIECE_VALUES = 1 << 14  # of two buffers that stay in the cache
VALUE_SECONDS = 3e-8  # CPU seconds per feature that numpy takes to prepare the rows and add up the clusters
COMPILATION = {"add_clusters": 0.7, "measure_rows": 0.3}  # CPU seconds, of the passes in `on_numba`
TILE = 512  # rows of a product, so that they stay in the cache: twice as fast
MANY = 1 << 13  # multiplications at one node from which a matrix product of its own pays


class DenseAffinity:
    """Dense features ``[N, D]`` with the sums of their prepared rows over each internal node.

    Where they are a part of larger features, the ``centre`` and the ``sums`` of the whole are given. ``compiled`` is
    whether numba may make the sums, to the same bits, where it is installed.

    Attributes:
        features: The features, float32 or float64.
        hierarchy: The tree.
        kind: The similarity.
        largest: Per item, the largest absolute value of its row, and 1 for a row of zeros (cosine).
        lengths: Per item, the length of its row over ``largest``, and 1 for a row of zeros (cosine).
        centre: What is taken off each row ``[D]`` (distances; zeros for the cosine).
        sums: The sums of the prepared rows ``[K, D]``.
        batch_items: How many items are prepared at once.
    """

    batch_items = 1 << 14

    def __init__(
        self,
        features: Features,
        hierarchy: Hierarchy,
        kind: DenseKind,
        centre: Floats | None = None,
        sums: Floats | None = None,
        compiled: bool = True,
    ) -> None:
        self.features = features
        self._compiled = compiled
        self.hierarchy = hierarchy
        self.kind = kind
        n_items, n_columns = features.shape
        self.batch_items = min(self.batch_items, max(1024, (1 << 21) // n_columns))
        self.centre = np.zeros(n_columns)
        self.largest = np.ones(n_items)
        self.lengths = np.ones(n_items)
        if isinstance(kind, Cosine):
            self._measure_rows()
        elif centre is None:
            self._find_centre()
        else:
            self.centre = centre
        self.sums = self._add_clusters() if sums is None else sums

    def _add_clusters(self) -> Floats:
        tree, n_columns = self.hierarchy, self.features.shape[1]
        sums = room_for((tree.n_nodes - tree.n_items, n_columns), isinstance(self.features, np.memmap))
        if not len(sums) or not self._compiles():
            return cluster_sums(tree, self.rows, n_columns, out=sums)
        from pomdp_hier.features import on_numba

        cosine = isinstance(self.kind, Cosine)
        prepared = (_read_only(self.features), self.largest, self.lengths, self.centre, cosine)
        shape = (tree.child_offsets, tree.child_nodes, tree.item_order, tree.starts, tree.sizes)
        order, held = tree.topological_order, np.diff(tree.child_offsets)
        work = np.where(tree.is_leaf, tree.sizes, held)[order] + 1
        for piece in reversed(list(pieces(work, max(1, PIECE_BYTES // (8 * n_columns))))):  # children before parents
            require_whole(self.features)
            on_numba.add_clusters(*prepared, order[piece], *shape, RUN, np.asarray(sums))
        return sums

    def _compiles(self) -> bool:
        """Return whether to use the compiled passes, which are bit-for-bit identical."""
        seconds = VALUE_SECONDS * self.features.size
        return self._compiled and pays(seconds, Path(__file__).with_name("on_numba.py"), COMPILATION)

    def _measure_rows(self) -> None:
        features, compiles = self.features, self._compiles()
        for low, high in row_pieces(len(features), 8 * features.shape[1]):
            require_whole(features)
            if compiles:
                from pomdp_hier.features import on_numba

                on_numba.measure_rows(_read_only(features[low:high]), self.largest[low:high], self.lengths[low:high])
            else:
                self.largest[low:high], self.lengths[low:high] = _measured(features[low:high])
        zero = self.lengths == 0
        self.lengths[zero] = 1.0
        self.zero_rows = np.flatnonzero(zero)

    def _find_centre(self) -> None:
        features = self.features
        for low, high in row_pieces(len(features), 8 * features.shape[1]):
            require_whole(features)
            piece = np.ascontiguousarray(features[low:high])  # columns would be added up in another order
            refuse_large(float(np.abs(piece).max(initial=0.0)))
            self.centre += piece.sum(axis=0, dtype=np.float64) / len(features)

    @cached_property
    def squares(self) -> Floats:
        """The squared length of each node's centroid ``[N + K]`` (distances; zeros for the cosine)."""
        squares = np.zeros(self.hierarchy.n_nodes)
        if isinstance(self.kind, Cosine):
            return squares
        n_items, n_columns = self.features.shape
        for low, high in row_pieces(n_items, 8 * n_columns):
            piece = self.rows(np.arange(low, high))
            squares[low:high] = np.einsum("ij,ij->i", piece, piece)
        lengths = np.einsum("ij,ij->i", self.sums, self.sums)
        squares[n_items:] = lengths / self.hierarchy.sizes[n_items:].astype(np.float64) ** 2
        return squares

    @property
    def n_columns(self) -> int:
        """D."""
        return int(self.features.shape[1])

    def rows(self, items: Ints) -> Floats:
        """Return the prepared float64 rows ``[m, D]`` of these items."""
        require_whole(self.features)
        table: Floats = self.features[items].astype(np.float64, order="C", copy=False)
        if isinstance(self.kind, Cosine):
            table /= self.largest[items, None]
            table /= self.lengths[items, None]
        else:
            table -= self.centre
        return table

    def batch(self, items: Ints) -> "DenseBatch":
        """Return these items with their prepared rows."""
        return DenseBatch(self, items)


class DenseBatch:
    """Items with their prepared rows.

    Attributes:
        items: Their numbers ``[m]``.
        positions: Their positions in the tree's leaf order ``[m]``.
        rows: Their prepared rows ``[m, D]``.
        squares: The squared lengths of the rows ``[m]``.
    """

    def __init__(self, parent: DenseAffinity, items: Ints) -> None:
        self._parent = parent
        self._tree = parent.hierarchy
        self.items = items
        self.positions = self._tree.starts[items]
        self.rows = parent.rows(items)
        self.squares = np.einsum("ij,ij->i", self.rows, self.rows)
        self._first = int(self.positions.min()) if len(items) else 0
        self._row_at = np.full(int(self.positions.max(initial=self._first)) - self._first + 1, -1)
        self._row_at[self.positions - self._first] = np.arange(len(items))

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        """Return the similarities of item ``rows[j]`` of the batch to the children of ``parents[j]``, row by row."""
        tree, n_columns = self._tree, self.rows.shape[1]
        nodes, counts = children_of(tree, parents) if children is None else children
        firsts = np.cumsum(counts) - counts
        dots = np.empty(len(nodes))
        begins = np.flatnonzero(np.append(True, parents[1:] != parents[:-1])[: len(parents)])
        ends = np.append(begins[1:], len(parents))
        many = (ends - begins) * counts[begins] * n_columns >= MANY
        self._dots_at_one_node(rows, nodes, firsts, counts, begins[many], ends[many], dots)
        alone = np.repeat(~many, ends - begins)
        chosen = ranges(firsts[alone], counts[alone])
        self._dots_one_by_one(np.repeat(rows[alone], counts[alone]), nodes, chosen, dots)
        ranks = own_ranks(tree, parents, self.positions[rows])
        holds = np.flatnonzero(ranks >= 0)

        def difference(at: Ints) -> Floats:
            row = rows[np.searchsorted(firsts, at, side="right") - 1]
            return self.rows[row] - self.vectors(nodes[at]) / tree.sizes[nodes[at]][:, None]

        return finish(
            self._parent.kind,
            dots,
            at_children(tree.sizes, parents, nodes),
            firsts[holds] + ranks[holds],
            self.squares[rows[holds]],
            lambda: np.repeat(self.squares[rows], counts) + self._parent.squares[nodes],
            n_columns,
            difference,
        )

    def _dots_at_one_node(
        self, rows: Ints, nodes: Ints, firsts: Ints, counts: Ints, begins: Ints, ends: Ints, dots: Floats
    ) -> None:
        """Write the products of consecutive rows at one node, by one matrix product per node."""
        widths = counts[begins]
        vectors, low = self.vectors(nodes[ranges(firsts[begins], widths)]), 0
        gaps = np.cumsum(np.diff(rows, prepend=0) != 1)
        together = gaps[begins] == gaps[ends - 1]  # rows that need no copy
        for begin, end, width, whole in zip(
            begins.tolist(), ends.tolist(), widths.tolist(), together.tolist(), strict=True
        ):
            mine = self.rows[rows[begin] : rows[begin] + end - begin] if whole else self.rows[rows[begin:end]]
            out = dots[firsts[begin] : firsts[begin] + (end - begin) * width].reshape(end - begin, width)
            for top in range(0, end - begin, TILE):
                np.matmul(mine[top : top + TILE], vectors[low : low + width].T, out=out[top : top + TILE])
            low += width

    def vectors(self, nodes: Ints) -> Floats:
        """Return the sums of the nodes' prepared rows ``[len(nodes), D]``."""
        n_items = self._tree.n_items
        # mode="clip" writes straight to the table, unbuffered. An item's number is negative here and takes the first
        # sum, until its own row replaces that below.
        table = np.empty((len(nodes), self.rows.shape[1]))
        np.take(self._parent.sums, nodes - n_items, axis=0, out=table, mode="clip")
        single = np.flatnonzero(nodes < n_items)
        near = self._rows_of(nodes[single])
        table[single] = self.rows[near]
        if len(far := single[near < 0]):
            table[far] = self._parent.rows(nodes[far])
        return table

    def _rows_of(self, items: Ints) -> Ints:
        near = self._tree.starts[items] - self._first
        known = (near >= 0) & (near < len(self._row_at))
        return np.where(known, self._row_at[np.where(known, near, 0)], -1)

    def _dots_one_by_one(self, rows: Ints, nodes: Ints, chosen: Ints, dots: Floats) -> None:
        """Write the product of each row with the sum of ``nodes[j]`` to ``dots[j]``, for each chosen j."""
        inner = nodes[chosen] >= self._tree.n_items
        at = chosen[inner]
        dots[at] = _pair_dots(self.rows, rows[inner], self._parent.sums, nodes[at] - self._tree.n_items)
        at = chosen[~inner]
        table, single = self.rows, self._rows_of(nodes[at])
        if (single < 0).any():
            unique, single = np.unique(nodes[at], return_inverse=True)
            table = self._parent.rows(unique)
        dots[at] = _pair_dots(self.rows, rows[~inner], table, single)


def refuse_large(largest: float) -> None:
    """Raise if the largest absolute value of the features is too large for distances."""
    if largest > LARGEST:
        raise FeatureError(
            f"the features: got {largest:.3g} in absolute value, whose square overflows; expected smaller values. "
            "Rescale them."
        )


def _read_only(features: Features) -> Features:
    """Return a read-only view, so that one compiled version serves arrays and memory maps."""
    view = np.asarray(features)[...]
    view.setflags(write=False)
    return view


def _measured(rows: Features) -> tuple[Floats, Floats]:
    """Return the largest absolute value of each row (1 for zeros), and the row's length divided by it."""
    # Scaled before squaring, so that rows of 1e-200 or 1e200 keep their directions.
    largest = np.abs(rows).max(axis=1).astype(np.float64)
    largest[largest == 0] = 1.0
    squares: Floats = rows / largest[:, None]
    squares *= squares
    # Halves onto halves: an order of addition that does not depend on the machine.
    width = squares.shape[1]
    while width > 1:
        half = (width + 1) // 2
        squares[:, : width - half] += squares[:, half:width]
        width = half
    return largest, np.sqrt(squares[:, 0])


def _pair_dots(left: Floats, left_at: Ints, right: Floats, right_at: Ints) -> Floats:
    """Return ``<left[left_at[j]], right[right_at[j]]>`` for each j, through two small buffers."""
    n_pairs, step = len(left_at), max(16, PIECE_VALUES // left.shape[1])
    dots, first = np.empty(n_pairs), np.empty((min(step, n_pairs), left.shape[1]))
    second = np.empty_like(first)
    for low in range(0, n_pairs, step):
        size = min(step, n_pairs - low)
        # mode="clip" spares take() the copy that it makes to leave `out` whole when an index is out of range.
        np.take(left, left_at[low : low + size], axis=0, out=first[:size], mode="clip")
        np.take(right, right_at[low : low + size], axis=0, out=second[:size], mode="clip")
        np.einsum("ij,ij->i", first[:size], second[:size], out=dots[low : low + size])
    return dots


def finish(
    kind: DenseKind,
    dots: Floats,
    sizes: Ints,
    own: Ints,
    own_squares: Floats,
    scale: Callable[[], Floats],
    n_columns: int,
    difference: Callable[[Ints], Floats],
) -> Floats:
    """Return the similarities from the dot products of items with clusters' sums; ``dots`` is overwritten.

    Args:
        dots: ``<row, S>`` ``[pairs]``.
        sizes: The clusters' sizes ``[pairs]``.
        scale: Gives the squared lengths of row and centroid, added up ``[pairs]``; not asked for the cosine.
        difference: Gives row less centroid, ``[j, D]``, of some of the pairs.
    """
    if isinstance(kind, Cosine):
        own_dots, others = dots[own], sizes[own]
        if kind.leave_out:
            own_dots -= own_squares
            others = np.maximum(others - 1, 1)
        dots /= sizes
        dots[own] = np.where(sizes[own] == 1, kind.own_singleton, own_dots / others)
        return dots
    alone = own[sizes[own] == 1]
    dots *= -2.0 / sizes
    terms = scale()
    dots += terms
    near = np.flatnonzero(dots < _CANCELLED * terms)
    step = max(16, PIECE_VALUES // n_columns)
    for low in range(0, len(near), step):
        piece = near[low : low + step]
        gap = difference(piece)
        dots[piece] = np.einsum("ij,ij->i", gap, gap)
    dots[alone] = 0.0
    if kind.leave_out:
        dots[own] *= (sizes[own] / np.maximum(sizes[own] - 1, 1)) ** 2
    if kind.mean:
        dots /= n_columns
    values = -np.sqrt(dots) if isinstance(kind, NegativeEuclidean) else 1.0 / (dots + kind.epsilon)
    if kind.own_singleton is not None:
        values[alone] = kind.own_singleton
    return values
