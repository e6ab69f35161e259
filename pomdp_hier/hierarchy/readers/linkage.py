"""Linkage matrices of SciPy and its kin: row ``k`` merges two nodes into node ``N + k``."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arrays import Ints
from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.arguments import dense, is_row
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import Note, counted, listed, shown

__all__ = ["read_linkage"]


def read_linkage(Z: ArrayLike, *, labels: Sequence[Hashable] | None = None) -> TreeArrays:
    """Return the tree arrays of a linkage matrix ``[N - 1, 2 to 4]``: two node numbers, height, number of items.

    Example:
        >>> read_linkage([[0, 1, 0.5, 2], [3, 2, 0.7, 3]]).parent
        array([ 3,  3,  4,  4, -1])
    """
    if hasattr(Z, "get_left"):
        Z = _merges_of(Z)
    Z = dense("the linkage", Z)
    try:
        table = np.asarray(_number_lists(Z) if isinstance(Z, list | tuple) else Z)
        if table.dtype.kind == "c":
            raise TypeError
        rows = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ReaderError(f"the linkage is {shown(Z)}, expected a matrix of numbers [N - 1, 4]") from None
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= 4:
        raise ReaderError(f"the linkage has shape {rows.shape}, expected [N - 1, 4] (or 2 or 3 columns)")
    if np.isnan(rows).any():
        raise ReaderError(f"the linkage has NaN in row {np.flatnonzero(np.isnan(rows).any(axis=1))[0]}")
    n_items = rows.shape[0] + 1
    merged = _merged_nodes(rows[:, :2], n_items)
    notes = list[Note]()
    parent = np.full(n_items + rows.shape[0], -1, dtype=np.int64)
    parent[merged.ravel()] = np.repeat(np.arange(n_items, parent.size), 2)
    if rows.shape[1] > 2:
        given = getattr(Z, "dtype", rows.dtype)
        precision = np.finfo(given).eps if given.kind == "f" else np.finfo(np.float64).eps
        notes = _height_notes(rows[:, 2], merged, n_items, 8 * float(precision))
    if rows.shape[1] == 4:
        _check_counts(rows[:, 3], merged, n_items)
    return TreeArrays(parent, n_items, np.append(merged.ravel(), parent.size - 1), labels, notes, singletons=True)


def _merges_of(root: Any) -> list[list[float]]:
    """Return the linkage that SciPy's ``to_tree`` made a root of: its inner nodes by number, each a merge."""
    merges, stack = {}, [root]
    while stack:
        node = stack.pop()
        left, right = node.get_left(), node.get_right()
        if left is not None and right is not None:
            merges[node.get_id()] = [left.get_id(), right.get_id(), node.dist, node.get_count()]
            stack += [left, right]
    numbers = sorted(merges)
    if numbers != list(range(len(numbers) + 1, 2 * len(numbers) + 1)):
        raise ReaderError(
            f"the ClusterNode has inner nodes numbered {listed(numbers)}, expected those of to_tree(Z), from "
            f"{len(numbers) + 1} to {2 * len(numbers)}; give the root of the whole tree"
        )
    return [merges[number] for number in numbers]


def _number_lists(rows: Sequence[Any]) -> list[Any]:
    """Return rows with each cell as a float; numpy would list whatever a cell holds, such as a long range."""
    return [[_as_float(cell) for cell in row] if is_row(row) else _as_float(row) for row in rows]


def _as_float(cell: Any) -> float:
    if isinstance(cell, np.ndarray | np.complexfloating):  # a masked cell, too
        raise TypeError
    return float(cell)


def _merged_nodes(pairs: np.ndarray[tuple[int, ...], np.dtype[np.float64]], n_items: int) -> Ints:
    """Return the two columns as integers: each an earlier node, each used once."""
    bad = np.flatnonzero((pairs != np.floor(pairs)).any(axis=1) | np.isinf(pairs).any(axis=1))
    if bad.size:
        raise ReaderError(f"row {bad[0]} of the linkage merges {pairs[bad[0]].tolist()}: node numbers are integers")
    limit = n_items + np.arange(pairs.shape[0])[:, np.newaxis]
    bad = np.flatnonzero(((pairs < 0) | (pairs >= limit)).any(axis=1))
    if bad.size:
        row = int(bad[0])
        raise ReaderError(
            f"row {row} of the linkage merges {[int(node) for node in pairs[row]]}, but only nodes "
            f"0..{n_items + row - 1} exist there ({n_items} items and the {row} rows before)"
        )
    merged = pairs.astype(np.int64)
    flat = merged.ravel()
    first = np.full(2 * n_items, -1, dtype=np.int64)
    first[flat[::-1]] = np.arange(flat.size)[::-1]  # the earliest use of a node wins
    again = np.flatnonzero(first[flat] != np.arange(flat.size))
    if again.size:
        node = int(flat[again[0]])
        raise ReaderError(
            f"cluster {node} is used twice in the linkage, in row {first[node] // 2} and in row {again[0] // 2}; "
            "a node is merged once"
        )
    return merged


def _height_notes(
    heights: np.ndarray[tuple[int, ...], np.dtype[np.float64]], merged: Ints, n_items: int, precision: float
) -> list[Note]:
    """Return what to say of negative heights and inversions beyond rounding: the tree is read all the same.

    Heights that are rounded differ by no more than the precision of their type times the largest of them.
    """
    finite = np.abs(heights[np.isfinite(heights)])
    rounding = precision * float(finite.max(initial=0.0))
    notes = list[Note]()
    below = np.where(merged >= n_items, heights[np.maximum(merged - n_items, 0)], -np.inf).max(axis=1)
    inverted = np.flatnonzero(heights < below - rounding)
    if inverted.size:
        notes.append(
            f"the linkage is not monotone: {counted(inverted.size, 'inversion')}, the first in row {inverted[0]}; "
            "only the topology is used"
        )
    negative = np.flatnonzero(heights < -rounding)
    if negative.size:
        notes.append(
            f"the linkage has {counted(negative.size, 'negative height')}, the first in row {negative[0]}; "
            "only the topology is used"
        )
    return notes


def _check_counts(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], merged: Ints, n_items: int) -> None:
    """Raise where column 4 is not the number of items merged so far."""
    with np.errstate(over="ignore", invalid="ignore"):  # of wrong counts, and the first row that is wrong is told
        below = np.where(merged >= n_items, counts[np.maximum(merged - n_items, 0)], 1).sum(axis=1)
    wrong = np.flatnonzero(counts != below)
    if wrong.size:
        row = int(wrong[0])
        raise ReaderError(
            f"row {row} of the linkage says {counts[row]:g} items, but merges {below[row]:g}; "
            "correct column 4 or leave it out"
        )
