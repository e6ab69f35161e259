"""Checks of feature matrices and of precomputed similarities and distances."""

import mmap
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pomdp_hier._text import counted, listed
from pomdp_hier.errors import Argument, DataWarning, FeatureError, Setting, warn_user
from pomdp_hier.hierarchy.tree import Hierarchy

Features: TypeAlias = Any
"""A dense ``[N, D]`` array (possibly memory-mapped) or a canonical CSR matrix, float32 or float64."""

PIECE_BYTES = 1 << 24


def row_pieces(n_rows: int, row_bytes: int) -> list[tuple[int, int]]:
    """Return the bounds of consecutive row pieces of about 16 MiB, so that a memory map is never read whole."""
    step = max(1, PIECE_BYTES // max(1, row_bytes))
    return [(low, min(low + step, n_rows)) for low in range(0, n_rows, step)]


def require_whole(table: Features) -> None:
    """Raise if the file of a memory map was truncated, as reading it would end the process.

    Asked before each piece that is read. A file that is truncated within those milliseconds still ends the process.
    Write features to a new file, and do not change the one that is being read.
    """
    whole, below = None, table
    while isinstance(below, np.ndarray):
        whole, below = below, below.base
    if whole is None or not isinstance(below, mmap.mmap):
        return
    try:
        length = below.size()  # of the file that is open, also if another one has its name by now
    except (OSError, ValueError):  # shared memory without a file
        return
    if length < getattr(whole, "offset", 0) + whole.nbytes:
        raise FeatureError(
            f"{getattr(whole, 'filename', 'memory map')}: got a file truncated to {length} bytes while being read; "
            "expected a complete one. Write it again, and do not modify it during scoring."
        )


def check_features(
    X: Any, n_items: int, *, name: str = "the features", ids: Sequence[Hashable] | None = None
) -> Features:
    """Return ``X`` as a float array or canonical CSR matrix of ``n_items`` rows, without changing it.

    float32 and float64 are kept, integers, booleans and float16 become float64 (for arithmetic is done in float64), and
    a memory map stays one.

    Args:
        X: Features ``[N, D]``: an array, anything numpy can read as one, or a scipy sparse matrix.
    """
    table = _as_csr(X) if sp.issparse(X) else _as_dense(X)
    check_shape(table.shape, n_items)
    refuse_non_finite(_non_finite_rows(table), name, ids)
    return table


def check_shape(shape: tuple[int, int], n_items: int) -> None:
    """Raise unless features of this shape have one row per item, and a column."""
    rows, columns = shape
    if rows != n_items:
        raise FeatureError(
            f"the features: got {counted(rows, 'row')}; expected {n_items:,}, one per item of the hierarchy. "
            "Give them in the order of the items."
        )
    if columns == 0:
        raise FeatureError(f"the features: got shape ({rows}, 0); expected at least one column.")


def refuse_non_finite(
    rows: npt.NDArray[np.intp], name: str = "the features", ids: Sequence[Hashable] | None = None, what: str = "numbers"
) -> None:
    """Raise if rows with non-finite values are given."""
    if len(rows):
        counting = "" if ids is not None else ", counted from 0"
        raise FeatureError(
            f"{name}: got NaN or infinite values in {counted(len(rows), 'row')} ({_listed(rows, ids)}{counting}); "
            f"expected finite {what}. Fill them in, or remove these rows, and their items from the tree."
        )


def check_similarity_matrix(
    matrix: Any, n_items: int, *, name: str = "the features", ids: Sequence[Hashable] | None = None
) -> Features:
    """Return a checked precomputed similarity matrix ``[N, N]``; its diagonal is not used."""
    table = _as_csr(matrix) if sp.issparse(matrix) else _as_dense(matrix)
    if table.shape != (n_items, n_items):
        raise FeatureError(
            f"{name}: got shape {table.shape}; expected the matrix of similarities, ({n_items}, {n_items}), one row "
            "and one column per item. For features as they are, choose another ",
            Argument("similarity"),
            ".",
        )
    refuse_non_finite(_non_finite_rows(table, skip_diagonal=True), name, ids, "similarities off the diagonal")
    return table


def warn_degenerate_rows(
    zero_rows: npt.NDArray[np.intp], n_columns: int, ids: Sequence[Hashable] | None = None
) -> None:
    """Warn about rows of zeros and a single column, which the cosine cannot distinguish."""
    if n_columns == 1:
        note = "the features have one column, where every cosine is 1, 0 or -1; use a distance instead, such as "
        warn_user([(note, Setting("similarity", "negative_euclidean"))], DataWarning)
    if len(zero_rows):
        named = _listed(zero_rows, ids)
        warn_user([f"{len(zero_rows)} row(s) of zeros have cosine 0 to everything: {named}"], DataWarning)


def _listed(rows: npt.NDArray[np.intp], ids: Sequence[Hashable] | None = None) -> str:
    """Return the first rows as text, by id if known, and their number."""
    return listed((row if ids is None else ids[row] for row in rows.tolist()), count=len(rows))


def check_compressed(indptr: Any, indices: Any, n_values: int, shape: tuple[int, int]) -> None:
    """Raise unless these arrays are a valid CSR matrix of the shape, as compiled loops do not check them.

    Args:
        indptr: Where each row begins ``[N + 1]``.

    Example:
        >>> check_compressed([0, 2, 1, 2], [0, 1], 2, (3, 2))
        Traceback (most recent call last):
            ...
        pomdp_hier.errors.FeatureError: features: got a damaged sparse matrix (indptr falls from 2 to 1 at ...
    """
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    n_rows, n_columns = shape
    fault = ""
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu" or indptr.ndim != 1 or indices.ndim != 1:
        fault = f"indptr and indices are {indptr.dtype} and {indices.dtype}, not lists of integers"
    elif len(indptr) != n_rows + 1:
        fault = f"indptr has {len(indptr)} entries for {n_rows} rows, one more is needed"
    elif len(indices) != n_values:
        fault = f"there are {len(indices)} indices for {n_values} values"
    elif int(indptr[0]) != 0 or int(indptr[-1]) != n_values:
        fault = f"indptr runs from {indptr[0]} to {indptr[-1]}, not from 0 to {n_values}, the number of values"
    elif len(falls := np.flatnonzero(indptr[1:] < indptr[:-1])):
        row = int(falls[0])
        fault = f"indptr falls from {indptr[row]} to {indptr[row + 1]} at row {row}"
    elif n_values and not (int(indices.min()) >= 0 and int(indices.max()) < n_columns):
        at = int(np.flatnonzero((indices < 0) | (indices >= n_columns))[0])
        fault = f"value {at} stands in column {indices[at]}, of {n_columns}"
    if fault:
        raise FeatureError(
            f"features: got a damaged sparse matrix ({fault}); expected a sound one. "
            "Build it again with scipy.sparse.csr_array(table)."
        )


def _refuse_masked(X: Any) -> None:
    """Raise if an array, or a list of rows, has masked values."""
    rows = [X] if isinstance(X, np.ma.MaskedArray) else X if isinstance(X, list | tuple) else ()
    masked: list[Any] = [row for row in rows if isinstance(row, np.ma.MaskedArray)]
    count = sum(int(np.ma.getmaskarray(row).sum()) for row in masked)
    if count:
        raise FeatureError(
            f"the features: got {counted(count, 'masked value')}; expected numbers. Remove these items from "
            "features and tree, "
            "or fill the values in with X.filled(0.0)."
        )


def _as_dense(X: Any) -> Features:
    _refuse_masked(X)
    if isinstance(X, np.ma.MaskedArray):
        X = X.data
    if isinstance(X, range):  # which may be longer than any array
        raise FeatureError("features: got a range; expected a table, one row per item.")
    try:
        table = X if isinstance(X, np.ndarray) and type(X) is not np.matrix else np.asarray(X)
    except ValueError as error:
        raise FeatureError("features: got rows of several lengths; expected the same columns for each item.") from error
    if table.dtype.names:
        raise FeatureError(
            f"features: got records of {listed(table.dtype.names, limit=3)}; expected a table, one row per item. Pass "
            "numpy.lib.recfunctions.structured_to_unstructured(X)."
        )
    if table.ndim == 0:
        lazy = hasattr(X, "collect")  # a query of polars
        raise FeatureError(
            f"features: got a {type(X).__name__}; expected a table, one row per item. "
            + ("Pass X.collect()." if lazy else "Give the rows of a dict as list(X.values()), and read a file with ")
            + ("" if lazy else "load_features(path).")
        )
    if table.ndim != 2:
        raise FeatureError(
            f"features: got an array of shape {table.shape}; expected a table, one row per item. Reshape one column of "
            "numbers with X.reshape(-1, 1), and turn texts into numbers with text_features(X)."
        )
    return table.astype(_float_type(table.dtype), copy=False)


def _as_csr(X: Any) -> Features:
    if X.ndim != 2:
        raise FeatureError(f"features: got a sparse array of shape {X.shape}; expected a table, one row per item.")
    if X.format in ("csr", "csc"):
        check_compressed(X.indptr, X.indices, len(X.data), X.shape if X.format == "csr" else X.shape[::-1])
    elif X.format == "coo" and len(X.data):
        for axis, (places, length) in enumerate(zip((X.row, X.col), X.shape, strict=True)):
            if len(places) != len(X.data) or not (int(places.min()) >= 0 and int(places.max()) < length):
                raise FeatureError(
                    f"features: got a damaged sparse matrix; expected one coordinate of axis {axis} per value, "
                    f"from 0 to {length - 1}. Build it again."
                )
    table = X.tocsr()
    wanted = _float_type(table.dtype)
    if table.dtype != wanted:
        table = table.astype(wanted)
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _float_type(dtype: np.dtype[Any]) -> Any:
    if dtype in (np.float32, np.float64):
        return dtype.newbyteorder("=")
    if dtype.kind in "biuf":
        return np.dtype(np.float64)
    raise FeatureError(
        f"features: got dtype {dtype}; expected real numbers. Leave columns of names out, turn texts into numbers with "
        "text_features(X), and convert the others with astype(float)."
    )


def _non_finite_rows(table: Features, skip_diagonal: bool = False) -> npt.NDArray[np.intp]:
    if sp.issparse(table):
        wrong = ~np.isfinite(table.data)
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        if skip_diagonal:
            wrong &= rows != table.indices
        return np.unique(rows[wrong])
    found = []
    for low, high in row_pieces(table.shape[0], table.shape[1] * table.itemsize):
        require_whole(table)
        wrong = ~np.isfinite(table[low:high])
        if skip_diagonal:
            np.fill_diagonal(wrong[:, low:], False)
        found.append(low + np.flatnonzero(wrong.any(axis=1)))
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)


_MOST_ITEMS = 64  # how many items are looked at
_ROUNDINGS = 4  # how many of them still count as 0
_MOST_APART = 0.9  # the least share of pairs above 0: distances are 0 between equals only, similarities often


def warn_of_distances(matrix: Features, hierarchy: Hierarchy) -> None:
    """Warn if a precomputed matrix looks like distances: 0 on the diagonal, and larger values across branches.

    What differs from 0 by rounding, for the matrix's type and the size of its entries, counts as 0.

    Args:
        matrix: ``[N, N]``; up to 64 items of it are looked at.
    """
    items = np.unique(np.linspace(0, hierarchy.n_items - 1, _MOST_ITEMS).astype(np.int64))
    square = matrix[items][:, items]
    square = square.toarray() if sp.issparse(square) else np.asarray(square)
    others = ~np.eye(len(items), dtype=bool)
    # A root of a difference of squares errs by the root of a rounding, of the type that it was computed in.
    kind = square.dtype if square.dtype.kind == "f" else np.dtype(np.float64)
    nothing = _ROUNDINGS * float(np.sqrt(np.finfo(kind).eps)) * float(np.abs(square).max(initial=0.0))
    if len(hierarchy.children(hierarchy.root)) < 2 or not (np.abs(square.diagonal()) <= nothing).all():
        return
    if not (square >= -nothing).all() or (square[others] > nothing).mean() < _MOST_APART:
        return
    branches = hierarchy.starts[hierarchy.children(hierarchy.root)]
    branch = np.searchsorted(branches, hierarchy.starts[items], side="right")
    apart = branch[:, None] != branch
    together = ~apart & others
    if apart.any() and together.any() and square[together].mean() < square[apart].mean():
        note = (
            "the precomputed matrix looks like distances, not similarities: its diagonal is 0, and items of one branch "
            "have smaller entries than others; give 1 - D or -D for distances D, or the features"
        )
        warn_user([note], DataWarning)
