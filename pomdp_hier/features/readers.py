"""Readers of ``.npy``, ``.npz``, delimited text and Parquet, whose errors name the array, line or column.

Declared sizes are checked against the file and the available memory.
"""

import io
import math
import os
import warnings
import zipfile
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from pomdp_hier._arguments import Floats
from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import decoding, open_csv, require_memory
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.features.validation import check_compressed

_SPARSE_PARTS = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords")
_AGAIN = "Copy or write the file again"
_WHOLE = "a whole .npy array of numbers"
_MOST_DIMENSIONS = 32  # of any numpy
_quietly = partial(warnings.catch_warnings, action="ignore")  # headers of Python 2, or with odd escape sequences, warn


def read_npy(stream: IO[bytes], name: str, limit: int) -> Any:
    """Return the array in a ``.npy`` stream, memory-mapped if it needs more than half of ``limit`` bytes."""
    length = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    if isinstance(stream, io.BufferedReader) and length > limit // 2:
        shape, fortran_order, dtype = _read_header(stream, name)
        _check_length(shape, dtype, length - stream.tell(), name)
        with decoding(name, FeatureError, _WHOLE):
            return np.memmap(stream, dtype, "r", stream.tell(), shape, "F" if fortran_order else "C")
    return _read_array(stream, length, name, limit)


def read_npz(stream: IO[bytes], name: str, key: str | None, limit: int) -> Any:
    """Return the matrix in a ``.npz`` stream: CSR, or the array ``key``, ``X`` or the only one."""
    with decoding(name, FeatureError, "a whole .npz archive"), zipfile.ZipFile(stream) as archive:
        return _matrix(archive, name, key, limit)


def _matrix(archive: zipfile.ZipFile, name: str, key: str | None, limit: int) -> Any:
    files = archive.namelist()
    if files and not any(file.endswith(".npy") for file in files):
        raise FeatureError(f"{name}: got a zip archive of {listed(files, limit=3)}; expected .npy arrays. Unpack it.")
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if key is None and {"format", "shape", "data"} <= members.keys():
        wanted = [part for part in _SPARSE_PARTS if part in members]
    else:
        wanted = [_chosen(list(members), name, key)]
    require_memory(sum(members[part].file_size for part in wanted), limit, name)
    arrays = {}
    for part in wanted:
        with archive.open(members[part]) as stream:
            arrays[part] = _read_array(stream, members[part].file_size, f"{name}, array {part}", limit)
    return _sparse(arrays, name, limit) if "format" in arrays else arrays[wanted[0]]


def _chosen(names: list[str], name: str, key: str | None) -> str:
    """Return the name of the array of a dense archive."""
    if key is None:
        key = "X" if "X" in names or len(names) != 1 else names[0]
    if key in names:
        return key
    held = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    raise FeatureError(
        f"{name}: got no array {brief(key)}; expected one of {held or 'an archive with arrays'}. Name it: ",
        Setting("key"),
        ".",
    )


def _read_array(stream: IO[bytes], length: int, what: str, limit: int) -> Any:
    """Return the array in a ``.npy`` stream of ``length`` bytes, after checking the size in its header."""
    shape, _, dtype = _read_header(stream, what)
    require_memory(math.prod(shape) * dtype.itemsize, limit, what)
    _check_length(shape, dtype, length - stream.tell(), what)
    stream.seek(0)
    with decoding(what, FeatureError, _WHOLE), _quietly():
        return npy.read_array(stream, allow_pickle=False)


def _check_length(shape: tuple[int, ...], dtype: np.dtype[Any], length: int, what: str) -> None:
    """Raise if an array needs more bytes than the file has."""
    needed = math.prod(shape) * dtype.itemsize
    if needed > length:
        raise FeatureError(
            f"{what}: got {length} bytes; expected {needed}, {dtype} in shape {shape}, as the header says. {_AGAIN}."
        )


def _read_header(stream: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and dtype of a header of version 1 or 2, checked."""
    with decoding(what, FeatureError, _WHOLE, "Write it again with numpy.save"), _quietly():
        version = npy.read_magic(stream)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, fortran_order, dtype = reader(stream)
    if dtype.hasobject:
        raise FeatureError(
            f"{what}: got Python objects, which could run code; expected numbers. Write it again: "
            "numpy.save(path, X.astype(float))."
        )
    lengths_are_numbers = all(type(length) is int and 0 <= length < 2**63 for length in shape)
    if not lengths_are_numbers or len(shape) > _MOST_DIMENSIONS or not dtype.itemsize or dtype.subdtype is not None:
        raise FeatureError(
            f"{what}: got {str(dtype)[:40]} in shape {str(shape)[:60]}; expected an array of numbers. {_AGAIN} with "
            "numpy.save."
        )
    return shape, fortran_order, dtype


def _sparse(arrays: dict[str, Any], name: str, limit: int) -> csr_array:
    """Return the CSR matrix in an archive of ``scipy.sparse.save_npz``, with all indices checked."""
    layout = arrays["format"].item() if arrays["format"].size == 1 else None
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else layout
    lengths = arrays["shape"]
    if lengths.dtype.kind not in "iu" or lengths.size != 2 or lengths.min() < 0 or lengths.max() >= 2**63:
        raise FeatureError(
            f"{name}: got a sparse array of shape {lengths.ravel()[:4].tolist()}; expected a matrix, one row per item."
        )
    shape = (int(lengths.ravel()[0]), int(lengths.ravel()[1]))
    require_memory(8 * (shape[0] + 1), limit, name)
    if layout == "csc":
        require_memory(8 * (shape[1] + 1), limit, name)
    try:
        data = arrays["data"]
        if data.ndim != 1 and layout in {"csr", "csc", "coo"}:
            raise FeatureError(f"data: got shape {data.shape}; expected a list of numbers. {_AGAIN}.")
        missing = [part for part in _parts_of(layout, arrays) if part not in arrays]
        if missing:
            raise FeatureError(
                f"got no array {brief(missing[0])}; expected one in layout {layout}. Write "
                "scipy.sparse.save_npz(path, X)."
            )
        if layout in {"csr", "csc"}:
            compressed = csr_array if layout == "csr" else csc_array
            parts = arrays["data"], arrays["indices"], arrays["indptr"]
            check_compressed(parts[2], parts[1], parts[0].size, shape if layout == "csr" else shape[::-1])
            matrix = compressed(parts, shape=shape)
        elif layout == "coo":
            places = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
            matrix = coo_array((data, tuple(places)), shape=shape)
        else:
            raise FeatureError(
                f"got sparse layout {brief(layout)}; expected csr. Write scipy.sparse.save_npz(path, X.tocsr())."
            )
        matrix = matrix.tocsr()
        matrix.sum_duplicates()
    except FeatureError as error:
        raise FeatureError(f"{name}: {error}") from error
    return matrix


def _parts_of(layout: Any, arrays: dict[str, Any]) -> tuple[str, ...]:
    if layout == "coo":
        return ("coords",) if "coords" in arrays else ("row", "col")
    return ("indices", "indptr") if layout in ("csr", "csc") else ()


ID_NAMES = frozenset({"id", "item", "item_id", "__index_level_0__"})  # the last is what pandas calls an index


def read_delimited(
    stream: IO[bytes], name: str, id_column: str | None
) -> tuple[Floats, tuple[str, ...] | None, tuple[str, ...]]:
    """Return the matrix, the ids if there is an id column, and the names of the other columns."""
    table = open_csv(stream, FeatureError, name=name)
    columns = table.columns
    if all(_is_number(cell) for cell in columns):
        raise FeatureError(
            f"{name}, line {table.header_end}: got numbers only; expected a header. Put the columns' names on top."
        )
    position = id_position(columns, name, id_column)
    numbers = array("d")
    ids: list[str] = []
    for line, cells in table.rows:
        if position is not None:
            ids.append(cells.pop(position))
        try:
            numbers.extend(map(_number, cells))
        except ValueError as error:
            raise _bad_cell(name, line, cells, columns, position) from error
    names = tuple(column for index, column in enumerate(columns) if index != position)
    matrix = np.frombuffer(numbers, dtype=np.float64).reshape(-1, len(names)) if numbers else np.empty((0, len(names)))
    return matrix, tuple(ids) if position is not None else None, names


def id_position(columns: list[str], name: str, id_column: str | None) -> int | None:
    """Return the position of the column of ids: the named one, or the first with a usual name."""
    if id_column is None:
        return next((k for k, column in enumerate(columns) if column.strip().lower() in ID_NAMES), None)
    return column_position(columns, name, id_column)


def column_position(columns: list[str], name: str, column: str) -> int:
    """Return the position of a column."""
    if columns.count(column) == 1:
        return columns.index(column)
    listed = ", ".join(columns[:10]) + (" and more" if len(columns) > 10 else "")
    how_many = "no column" if column not in columns else f"{columns.count(column)} columns"
    raise FeatureError(f"{name}: got {how_many} {brief(column)}; expected one of {listed}.")


def read_weights(stream: IO[bytes], kind: str, name: str, column: str, limit: int) -> Floats:
    """Return a column of a table, or an array of a ``.npz``, as the weights of its rows ``[N]``."""
    expected = "expected a number of searches for each row"
    if kind == "npy":
        raise FeatureError(
            f"{name}: got a bare array; expected named columns. Leave this out: ", Setting("weight_column", column), "."
        )
    if kind == "text":
        table = open_csv(stream, FeatureError, name=name)
        position = column_position(table.columns, name, column)
        weights = array("d")
        for line, cells in table.rows:
            try:
                weights.append(_number(cells[position]))
            except ValueError as error:
                cell = brief(cells[position], 40)
                raise FeatureError(f"{name}, line {line}, column {brief(column)}: got {cell}; {expected}.") from error
        return np.array(weights)
    if kind == "npz":
        values = read_npz(stream, name, column, limit)
    else:
        told = open_table(stream, name, None, limit, [column])
        values = told.column(column_position(told.column_names, name, column)).to_numpy()
    if np.ndim(values) != 1 or values.dtype.kind not in "fiub":
        raise FeatureError(f"{name}, column {brief(column)}: got {values.dtype} {np.shape(values)}; {expected}.")
    return np.asarray(values, dtype=np.float64)


def _number(cell: str) -> float:
    if "_" in cell:  # Python reads 1_000 as a number, no other program does
        raise ValueError(cell)
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _bad_cell(name: str, line: int, cells: list[str], columns: list[str], position: int | None) -> FeatureError:
    """Return the error for the first cell of a line that is not a number."""
    names = [column for index, column in enumerate(columns) if index != position]
    column, cell = next((column, cell) for column, cell in zip(names, cells, strict=True) if not _is_number(cell))
    where = f"{name}, line {line}, column {brief(column)}"
    if not cell.strip():
        remedy = "Fill it in, or remove the line and its item."
        return FeatureError(f"{where}: got an empty cell; expected a number. {remedy}")
    got = brief(cell, 40)
    if _is_number(cell.replace(",", ".").replace("_", "")):
        remedy = "Write it with a decimal point, without marks between thousands."
        return FeatureError(f"{where}: got {got}; expected a number. {remedy}")
    ids: tuple[str | Setting, ...] = () if position is not None else (", or as the ids: ", Setting("id_column", column))
    text = Setting("text", column)
    advice = "Remove the column, or take it as text: "
    return FeatureError(f"{where}: got {got}; expected a number. {advice}", text, *ids, ".")


def read_parquet(
    stream: IO[bytes], name: str, id_column: str | None, limit: int
) -> tuple[NDArray[np.generic], tuple[Hashable, ...] | None, tuple[str, ...]]:
    """Return the matrix, the ids if there is an id column, and the names of the other columns."""
    return from_table(open_table(stream, name, id_column, limit), name, id_column)


def open_table(stream: IO[bytes], name: str, id_column: str | None, limit: int, wanted: Sequence[str] = ()) -> Any:
    """Return the file as a pyarrow table: all columns, or the ids and the wanted ones."""
    pq = from_extra("frames", "pyarrow.parquet", f"{name} is a Parquet file, which needs pyarrow")
    with decoding(name, FeatureError, "a whole Parquet file"):
        file = pq.ParquetFile(stream)
        columns = list(file.schema_arrow.names)
        refuse_doubled(columns, name)
        position = id_position(columns, name, id_column)
        if wanted:
            columns = [column for at, column in enumerate(columns) if at == position or column in wanted]
        require_memory(8 * file.metadata.num_rows * max(1, len(columns)), limit, name)
        return file.read(columns=columns)


def refuse_doubled(columns: Sequence[str], name: str) -> None:
    """Raise if two columns have the same name."""
    for column, count in Counter(columns).items():
        if count > 1:
            raise FeatureError(
                f"{name}: got {count} columns named {brief(column)}; expected distinct names. Rename them."
            )


def id_cells(column: Any, name: str, label: str) -> tuple[Hashable, ...]:
    """Return the ids in a column of a pyarrow table."""
    what, expected = f"{name}, column {brief(label)} of {column.type}", "ids"
    with decoding(what, FeatureError, expected, "Write the ids as text or integers"):
        ids = tuple(column.to_pylist())
        hash(ids)
    return ids


def from_table(
    table: Any, name: str, id_column: str | None
) -> tuple[NDArray[np.generic], tuple[Hashable, ...] | None, tuple[str, ...]]:
    """Return the same as `read_parquet` for a pyarrow table."""
    position = id_position(table.column_names, name, id_column)
    ids = None
    if position is not None:
        ids = id_cells(table.column(position), name, table.column_names[position])
        table = table.remove_column(position)
    matrix = np.empty((table.num_rows, table.num_columns), dtype=_common_type(table, name))
    for index in range(table.num_columns):
        matrix[:, index] = table.column(index).to_numpy()
    return matrix, ids, tuple(table.column_names)


def _common_type(table: Any, name: str) -> np.dtype[Any]:
    """Return float32 if every column is, else float64, for numeric columns without missing values."""
    import pyarrow.types as kinds

    for field, column in zip(table.schema, table.columns, strict=True):
        if not (kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_boolean(field.type)):
            raise FeatureError(
                f"{name}, column {brief(field.name)}: got {field.type}; expected numbers. Remove it, or name it as "
                "the column of ids, ",
                Setting("id_column", field.name),
                ", of text, ",
                Setting("text"),
                ", or of vectors, ",
                Setting("embedding"),
                ".",
            )
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise FeatureError(
                f"{name}, row {row}, column {brief(field.name)}: got no value; expected a number. Fill it in, or "
                "remove the row."
            )
    single = all(kinds.is_float32(field.type) for field in table.schema)
    return np.dtype(np.float32 if single and table.num_columns else np.float64)
