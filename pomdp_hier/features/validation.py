"""Features as the rest of the package takes them: checked once where they enter, and trusted from there on."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pomdp_hier.errors import DataWarning, FeatureError
from pomdp_hier.hierarchy.wording import listed, warn_user

__all__ = ["Features", "check_features", "check_similarity_matrix", "row_pieces", "warn_degenerate_rows"]

Features: TypeAlias = Any
"""A dense ``[N, D]`` array (possibly memory-mapped) or a canonical CSR matrix, float32 or float64."""

PIECE_BYTES = 1 << 24
_NAMED = 5


def row_pieces(n_rows: int, row_bytes: int) -> list[tuple[int, int]]:
    """Return the bounds of consecutive row pieces of about 16 MiB, so that a memory map is never read whole."""
    step = max(1, PIECE_BYTES // max(1, row_bytes))
    return [(low, min(low + step, n_rows)) for low in range(0, n_rows, step)]


def named_rows(rows: npt.NDArray[np.intp]) -> str:
    """Return the first few row numbers as text, and how many more there are."""
    head = ", ".join(str(row) for row in rows[:_NAMED])
    return head if len(rows) <= _NAMED else f"{head} and {len(rows) - _NAMED} more"


def check_features(X: Any, n_items: int) -> Features:
    """Return ``X`` as a float array or canonical CSR matrix of ``n_items`` rows; the caller's object is not changed.

    float32 and float64 are kept, integers, booleans and float16 become float64 (for arithmetic is done in float64), and
    a memory map stays one.

    Args:
        X: Features ``[N, D]``: an array, anything numpy can read as one, or a scipy sparse matrix.
        n_items: Number of items of the hierarchy, N.

    Raises:
        FeatureError: For another number of rows, no column, something else than real numbers, NaN or infinity.

    Example:
        >>> check_features([[1, 2], [3, 4]], 2)
        array([[1., 2.],
               [3., 4.]])
    """
    table = _as_csr(X) if sp.issparse(X) else _as_dense(X)
    rows, columns = table.shape
    if rows != n_items:
        raise FeatureError(
            f"the features have {rows} rows, but the hierarchy has {n_items} items; "
            "give one row per item, in item order"
        )
    if columns == 0:
        raise FeatureError(f"the features have shape ({rows}, 0); at least one column is needed")
    bad = _non_finite_rows(table)
    if len(bad):
        raise FeatureError(
            f"NaN or infinite values in {len(bad)} row(s): {named_rows(bad)}; drop these items from features and tree, "
            "or fill the values in"
        )
    return table


def check_similarity_matrix(matrix: Any, n_items: int) -> Features:
    """Return a precomputed similarity matrix ``[N, N]``, checked; its diagonal is never read and may hold anything.

    Raises:
        FeatureError: For another shape, or a value off the diagonal that is not finite.

    Example:
        >>> check_similarity_matrix([[float("nan"), 0.5], [0.5, float("nan")]], 2).shape
        (2, 2)
    """
    table = _as_csr(matrix) if sp.issparse(matrix) else _as_dense(matrix)
    if table.shape != (n_items, n_items):
        raise FeatureError(
            f"a precomputed similarity must have shape ({n_items}, {n_items}), one row and one column per item, "
            f"but has {table.shape}; give features with another similarity, or the full matrix"
        )
    bad = _non_finite_rows(table, skip_diagonal=True)
    if len(bad):
        raise FeatureError(f"NaN or infinite similarities off the diagonal in {len(bad)} row(s): {named_rows(bad)}")
    return table


def warn_degenerate_rows(
    zero_rows: npt.NDArray[np.intp], n_columns: int, ids: Sequence[Hashable] | None = None
) -> None:
    """Warns of what the cosine cannot tell apart: rows of zeros (0 to everything), and a single column (signs).

    Args:
        zero_rows: The items with a row of zeros.
        n_columns: D.
        ids: What the items are called; None to name them by their rows' numbers.
    """
    if n_columns == 1:
        note = (
            "the features have one column, where every cosine is 1, 0 or -1; use a distance instead, such as "
            "similarity='negative_euclidean'"
        )
        warn_user([note], DataWarning)
    if len(zero_rows):
        named = named_rows(zero_rows) if ids is None else listed([ids[row] for row in zero_rows[:_NAMED]])
        more = f" and {len(zero_rows) - _NAMED} more" if ids is not None and len(zero_rows) > _NAMED else ""
        warn_user([f"{len(zero_rows)} row(s) of zeros have cosine 0 to everything: {named}{more}"], DataWarning)


def _as_dense(X: Any) -> Features:
    try:
        table = X if isinstance(X, np.ndarray) and type(X) is not np.matrix else np.asarray(X)
    except ValueError as error:
        raise FeatureError("the rows of the features differ in length; give each item the same columns") from error
    if table.ndim == 0:
        raise FeatureError(
            f"features must be a table with one row per item, but are a {type(X).__name__}; give the rows of a dict as "
            "list(X.values()), and read a file with load_features(path)"
        )
    if table.ndim != 2:
        raise FeatureError(
            f"features must be a table with one row per item, but have {table.ndim} dimension(s), shape {table.shape}; "
            "reshape one column of numbers with X.reshape(-1, 1), and turn texts into numbers (--text-column does)"
        )
    return table.astype(_float_type(table.dtype), copy=False)


def _as_csr(X: Any) -> Features:
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
        f"features must be real numbers, but have dtype {dtype}; leave columns of names out, and convert the others "
        "with astype(float)"
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
        wrong = ~np.isfinite(table[low:high])
        if skip_diagonal:
            np.fill_diagonal(wrong[:, low:], False)
        found.append(low + np.flatnonzero(wrong.any(axis=1)))
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)
