"""Similarities over dense features, from per-cluster sums: O(D) per item and cluster, in cache-sized pieces.

Rows are prepared in float64 as they are read: unit rows for the cosine, rows less the overall mean for the distances.
With ``S`` the sum of a cluster's prepared rows and ``n`` its size, the mean cosine is ``<u, S> / n`` and the squared
distance ``||x||**2 - 2 <x, S> / n + ||S / n||**2``. An item is left out of its own cluster by subtraction of
``<u, u>``, or, for the distance, by the factor ``(n / (n - 1))**2``.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pomdp_hier.errors import FeatureError
from pomdp_hier.features.members import Floats, Ints, child_counts, children_of, contains, pieces
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean
from pomdp_hier.features.sums import RUN, cluster_sums
from pomdp_hier.features.validation import Features, row_pieces
from pomdp_hier.files.memory import room_for
from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["DenseAffinity", "DenseBatch", "DenseKind", "finish", "multiply", "multiply_each"]

DenseKind = Cosine | InverseSquaredEuclidean | NegativeEuclidean

_CANCELLED = 1e-3  # of its terms, below which a squared distance is made anew; numba's paths take a tenth
LARGEST = 1e140  # times itself, the number of columns and twice that of the items, all of which must stay finite
PIECE_PAIRS = 256
MANY_VALUES = 1 << 17  # features from which compiled code saves more than loading numba takes
PIECE_VALUES = 1 << 20
FEW = 1 << 16  # work at one node, in multiplications, up to which a product of its own costs more than it saves
ROW_WORK = 2048  # what a row is in that, besides its own multiplications
GEMM_PAIRS = 2048
UNSHARED = 1 << 18  # multiplications up to which OpenBLAS stays on the calling thread
TILE_ROWS, TILE_COLUMNS = 64, 256


class DenseAffinity:
    """Dense features ``[N, D]`` with the sums of their prepared rows over each inner node.

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
        from pomdp_hier.features import compiled

        cosine = isinstance(self.kind, Cosine)
        prepared = (_read_only(self.features), self.largest, self.lengths, self.centre, cosine, tree.topological_order)
        shape = (tree.child_offsets, tree.child_nodes, tree.item_order, tree.starts, tree.sizes)
        compiled.add_clusters(*prepared, *shape, RUN, np.asarray(sums))
        return sums

    def _compiles(self) -> bool:
        """Whether to take the compiled passes, which give the same bits."""
        if not self._compiled or sys.modules.get("numba") is not None:
            return self._compiled
        return bool(self.features.size >= MANY_VALUES and importlib.util.find_spec("numba") is not None)

    def _measure_rows(self) -> None:
        features = self.features
        if self._compiles():
            from pomdp_hier.features import compiled

            compiled.measure_rows(_read_only(features), self.largest, self.lengths)
        else:
            for low, high in row_pieces(len(features), 8 * features.shape[1]):
                self.largest[low:high], self.lengths[low:high] = _measured(features[low:high])
        zero = self.lengths == 0
        self.lengths[zero] = 1.0
        self.zero_rows = np.flatnonzero(zero)

    def _find_centre(self) -> None:
        features = self.features
        for low, high in row_pieces(len(features), 8 * features.shape[1]):
            piece = np.ascontiguousarray(features[low:high])  # columns would be added up in another order
            if (large := float(np.abs(piece).max(initial=0.0))) > LARGEST:
                raise FeatureError(
                    f"features hold {large:.3g} in absolute value, whose square overflows; rescale them for a distance"
                )
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

    def rows(self, items: Ints) -> Floats:
        """Return the prepared float64 rows ``[m, D]`` of these items."""
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
        self._row_at, self._first = np.full(1, -1), 0
        if len(items):
            self._first = int(self.positions.min())
            self._row_at = np.full(int(self.positions.max()) - self._first + 1, -1)
            self._row_at[self.positions - self._first] = np.arange(len(items))

    def expand(self, rows: Ints, parents: Ints) -> Floats:
        """Return the similarities of item ``rows[j]`` of the batch to the children of ``parents[j]``, row by row."""
        nodes, counts = children_of(self._tree, parents)
        large = self.multiplies(parents)
        if not large.any():
            return self._pairs(np.repeat(rows, counts), nodes)
        values = np.empty(len(nodes))
        small = np.repeat(~large, counts)
        values[small] = self._pairs(np.repeat(rows, counts)[small], nodes[small])
        firsts, order = np.cumsum(counts) - counts, np.flatnonzero(large)
        order = order[np.argsort(parents[order], kind="stable")]
        ends = np.append(np.flatnonzero(np.diff(parents[order])) + 1, len(order))
        heights = np.diff(ends, prepend=0)
        few = heights * (ROW_WORK + counts[order[ends - 1]] * self.rows.shape[1]) <= FEW
        self._expand_few(rows, nodes, firsts, counts, order[np.repeat(few, heights)], values)
        for low, high in zip((ends - heights)[~few].tolist(), ends[~few].tolist(), strict=True):
            here = order[low:high]
            where = firsts[here][:, None] + np.arange(counts[here[0]])
            values[where] = self.table(nodes[where[0]], rows[here]).T
        return values

    def _expand_few(self, rows: Ints, nodes: Ints, firsts: Ints, counts: Ints, at: Ints, values: Floats) -> None:
        """Write what `expand` returns for the j in ``at``: a small product for each, all of one width in a stack."""
        n_columns = self.rows.shape[1]
        for width in np.unique(counts[at]).tolist():
            chosen = at[counts[at] == width]
            for part in pieces(np.full(len(chosen), width * n_columns), PIECE_VALUES):
                here = rows[chosen[part]]
                where = firsts[chosen[part]][:, None] + np.arange(width)
                vectors = self.vectors(nodes[where].ravel()).reshape(len(here), width, n_columns)
                values[where] = self._finish(multiply_each(vectors, self.rows[here]), here[:, None], nodes[where])

    def multiplies(self, parents: Ints) -> npt.NDArray[np.bool_]:
        """Return whether similarities to the children of these nodes are matrix products ``[len(parents)]``.

        Whether it pays depends on how many of the items are here. The two ways differ in the last bit, though, so the
        tree decides: a value does not depend on which other items are asked about.
        """
        large: npt.NDArray[np.bool_] = child_counts(self._tree, parents) * self._tree.sizes[parents] >= GEMM_PAIRS
        return large

    def table(self, nodes: Ints, rows: Ints) -> Floats:
        """Return the similarities ``[len(nodes), m]`` of these rows of the batch to the nodes: one matrix product."""
        dots = multiply(self.vectors(nodes), self.rows[rows], np.empty((len(nodes), len(rows))))
        return self._finish(dots, rows, nodes[:, None])

    def _finish(self, dots: Floats, rows: Ints, nodes: Ints) -> Floats:
        """Return the similarities that the products of rows with nodes' sums stand for; both broadcast to them."""
        return finish(
            self._parent.kind,
            dots,
            self._tree.sizes[nodes],
            contains(self._tree, nodes, self.positions[rows]),
            self.squares[rows],
            self._parent.squares[nodes],
            self.rows.shape[1],
            partial(self._gaps_at, rows, nodes),
        )

    def _gaps_at(self, rows: Ints, nodes: Ints, at: tuple[Any, ...]) -> Floats:
        """Return row less centroid ``[j, D]`` at the places of an index into what both broadcast to."""
        rows, nodes = (values[at] for values in np.broadcast_arrays(rows, nodes))
        gaps: Floats = self.rows[rows] - self.vectors(nodes) / self._tree.sizes[nodes][:, None]
        return gaps

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
        """Return which row of the batch each item is, or -1."""
        near = self._tree.starts[items] - self._first
        known = (near >= 0) & (near < len(self._row_at))
        return np.where(known, self._row_at[np.where(known, near, 0)], -1)

    def consecutive(self, rows: Ints) -> Floats:
        """Return the prepared rows at these ascending numbers, uncopied where they follow one another."""
        low, high = int(rows[0]), int(rows[-1]) + 1
        return self.rows[low:high] if high - low == len(rows) else self.rows[rows]

    def similarities(
        self, products: Floats, rows: Ints, nodes: Ints, inside: bool, spread: Callable[[Any], Any]
    ) -> Floats:
        """Return the similarities that products of rows with nodes' sums stand for; uses up the products.

        Args:
            products: ``[..., m]``.
            rows: The rows ``[m]``.
            nodes: The nodes.
            inside: Whether each row's item lies in its node, for all of them.
            spread: Lays an array like ``nodes`` out like ``products``, or so that it broadcasts to them.
        """
        kind, sizes = self._parent.kind, self._tree.sizes
        # Only distances are ever made anew.
        laid_out = nodes if isinstance(kind, Cosine) else np.broadcast_to(spread(nodes), products.shape)
        return finish(
            kind,
            products,
            sizes[nodes],
            inside,
            self.squares[rows],
            self._parent.squares[nodes],
            self.rows.shape[1],
            partial(self._gaps_at, rows, laid_out),
            spread,
        )

    def _pairs(self, rows: Ints, nodes: Ints) -> Floats:
        tree = self._tree
        n_items = tree.n_items
        dots = np.empty(len(nodes))
        inner = nodes >= n_items
        _pair_dots(self.rows, rows, self._parent.sums, nodes - n_items, np.flatnonzero(inner), dots)
        single = np.flatnonzero(~inner)
        if len(single):
            near = self._rows_of(nodes[single])
            if (near >= 0).all():
                table, index = self.rows, near
            else:
                unique, index = np.unique(nodes[single], return_inverse=True)
                table = self._parent.rows(unique)
            where = np.zeros(len(nodes), dtype=np.int64)
            where[single] = index
            _pair_dots(self.rows, rows, table, where, single, dots)
        return self._finish(dots, rows, nodes)


def _read_only(features: Features) -> Features:
    """Return a plain read-only view, so that one compiled version serves writable arrays and memory maps as well."""
    view = np.asarray(features)[...]
    view.setflags(write=False)
    return view


def _measured(rows: Features) -> tuple[Floats, Floats]:
    """Return each row's largest absolute value (1 for zeros), and its length over that."""
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


def multiply(left: Floats, right: Floats, out: Floats) -> Floats:
    """Write ``left @ right.T`` to ``out``, each number with the same bits whatever the rows around it; returns it.

    How BLAS adds up depends on more than the numbers, and here none of it is left to chance. Tiles are too small for
    it to share among threads: with as many as the machine happens to have, it would add up in another order. So it does
    for a single row, and, in kernels for AVX2, for the last of an odd number of rows on the left, which takes a call of
    its own here; and, in kernels for AVX-512, for small matrices unless the left one lies in columns.
    """
    shape = len(left), len(right), left.shape[1]
    even = shape[0] - shape[0] % 2
    if shape[0] == even and shape[1] > 1 and shape[2] <= TILE_COLUMNS and shape[0] * shape[1] * shape[2] <= UNSHARED:
        return np.matmul(_in_columns(left), right.T, out=out)
    width = max(min(even, TILE_ROWS), 2)
    height = max(1, UNSHARED // (min(shape[2], TILE_COLUMNS) * width))
    for tile in _even_tiles(shape[0], width):
        for first in range(0, shape[2], TILE_COLUMNS):
            columns = slice(first, first + TILE_COLUMNS)
            one = _in_columns(left[tile, columns])
            for low in range(0, shape[1], height):
                _multiply_tile(one, right[low : low + height, columns], out[tile, low : low + height], add=first > 0)
    return out


def _multiply_tile(left: Floats, right: Floats, out: Floats, add: bool) -> None:
    if len(right) > 1 and len(left) == len(out) and not add:
        np.matmul(left, right.T, out=out)
        return
    other = np.repeat(right, 2, axis=0) if len(right) == 1 else right
    product = (left @ other.T)[: len(out), : len(right)]
    out[:] = out + product if add else product


def multiply_each(lefts: Floats, rights: Floats) -> Floats:
    """Return ``lefts[j] @ rights[j]``, ``[n, m]`` of ``[n, m, D]`` and ``[n, D]``, to the bits of `multiply`."""
    n, width, n_columns = lefts.shape
    out = np.zeros((n, width))
    twice = np.repeat(rights[:, None, :], 2, axis=1)
    for tile in _even_tiles(width, TILE_ROWS):
        for first in range(0, n_columns, TILE_COLUMNS):
            columns = slice(first, first + TILE_COLUMNS)
            product = _in_columns(lefts[:, tile, columns]) @ twice[:, :, columns].swapaxes(1, 2)
            out[:, tile] += product[:, : out[:, tile].shape[1], 0]
    return out


def _even_tiles(count: int, most: int) -> Iterator[slice]:
    """Yield slices of that many rows, ``most`` at the most and each of an even number, then an odd last one alone."""
    even = count - count % 2
    for top in range(0, even, most):
        yield slice(top, min(top + most, even))
    if count > even:
        yield slice(even, count)


def _in_columns(rows: Floats) -> Floats:
    """Return rows ``[..., m, D]`` that lie in columns; a single one, which BLAS would take for a vector, twice."""
    several = np.repeat(rows, 2, axis=-2) if rows.shape[-2] == 1 else rows
    return np.ascontiguousarray(several.swapaxes(-1, -2)).swapaxes(-1, -2)


def _pair_dots(left: Floats, left_at: Ints, right: Floats, right_at: Ints, chosen: Ints, out: Floats) -> None:
    """Write ``<left[left_at[j]], right[right_at[j]]>`` to ``out[j]`` for the chosen j, through two small buffers."""
    step = min(PIECE_PAIRS, len(chosen))
    first = np.empty((step, left.shape[1]))
    second = np.empty_like(first)
    for low in range(0, len(chosen), max(step, 1)):
        piece = chosen[low : low + step]
        size = len(piece)
        # mode="clip" spares take() the copy that it makes to leave `out` whole when an index is out of range.
        np.take(left, left_at[piece], axis=0, out=first[:size], mode="clip")
        np.take(right, right_at[piece], axis=0, out=second[:size], mode="clip")
        out[piece] = np.einsum("ij,ij->i", first[:size], second[:size])


def finish(
    kind: DenseKind,
    dots: Floats,
    sizes: Any,
    inside: Any,
    row_squares: Any,
    node_squares: Any,
    n_columns: int,
    difference: Callable[[tuple[Any, ...]], Floats],
    spread: Callable[[Any], Any] = np.asarray,
) -> Floats:
    """Return the similarities that dot products of items with clusters' sums stand for; ``dots`` is used up.

    Args:
        kind: The similarity.
        dots: ``<row, S>``, of any shape; the arrays below broadcast to it, those of clusters once they are spread.
        sizes: The clusters' sizes.
        inside: Whether the item lies in the cluster; where arrays are spread, one answer for all items of a cluster.
        row_squares: The rows' squared lengths.
        node_squares: The squared lengths of the clusters' centroids; not read for the cosine.
        n_columns: D.
        difference: Gives row less centroid, ``[j, D]``, at the places of an index into ``dots``.
        spread: Lays an array of clusters out like ``dots``, where several items share each of them.
    """
    left_out = inside & (kind.leave_out & (sizes > 1))
    own = inside & (sizes == 1)
    if isinstance(kind, Cosine):
        if left_out.any():
            dots -= row_squares if left_out.all() else spread(left_out) * row_squares
        dots /= spread(sizes - left_out)
        if own.any():
            dots[np.broadcast_to(spread(own), dots.shape)] = kind.own_singleton
        return dots
    sizes, node_squares, left_out = spread(sizes), spread(node_squares), spread(left_out)
    own = np.broadcast_to(spread(own), dots.shape)
    dots *= -2.0 / sizes
    scale = row_squares + node_squares
    dots += scale
    _recompute(dots, dots < _CANCELLED * scale, difference)
    dots[own] = 0.0
    if kind.leave_out:
        dots *= np.where(left_out, (sizes / np.maximum(sizes - 1, 1)) ** 2, 1.0)
    if kind.mean:
        dots /= n_columns
    values = -np.sqrt(dots) if isinstance(kind, NegativeEuclidean) else 1.0 / (dots + kind.epsilon)
    if kind.own_singleton is not None:
        values[own] = kind.own_singleton
    return values


def _recompute(squares: Floats, near: npt.NDArray[np.bool_], difference: Callable[[tuple[Any, ...]], Floats]) -> None:
    """Replace squared distances that came out of a cancellation by sums of squared differences."""
    where = np.nonzero(near)
    for low in range(0, len(where[0]), PIECE_PAIRS):
        piece = tuple(axis[low : low + PIECE_PAIRS] for axis in where)
        gap = difference(piece)
        squares[piece] = np.einsum("ij,ij->i", gap, gap)
