"""Reading a table of numbers from delimited text, every fault named by line and column."""

import csv
import io
from array import array
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.errors import FeatureError

__all__ = ["ID_NAMES", "id_position", "read"]

ID_NAMES = frozenset({"id", "item", "item_id", "__index_level_0__"})  # the last is what pandas calls an index
_DELIMITERS = ",\t;"


def read(
    stream: IO[bytes], name: str, id_column: str | None
) -> tuple[NDArray[np.float64], tuple[str, ...] | None, tuple[str, ...]]:
    """Return the matrix, the ids if there is an id column, and the names of the other columns.

    Raises:
        FeatureError: The text is not UTF-8 or not a table of numbers under a header; the message names the
            line.
    """
    try:
        with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            return _table(text, name, id_column)
    except UnicodeDecodeError as error:
        raise FeatureError(
            f"{name}: neither .npz, .npy, Parquet nor UTF-8 text (byte {error.object[error.start]:#04x} cannot be "
            "decoded); give a feature file of one of these kinds"
        ) from error
    except csv.Error as error:
        raise FeatureError(f"{name}: not delimited text ({error}); give a header and one line an item") from error


def id_position(columns: list[str], name: str, id_column: str | None) -> int | None:
    """Which column holds the ids: the one asked for, or the first that is called like one.

    Raises:
        FeatureError: There is no column of the name asked for.
    """
    if id_column is None:
        return next((k for k, column in enumerate(columns) if column.strip().lower() in ID_NAMES), None)
    if id_column in columns:
        return columns.index(id_column)
    listed = ", ".join(columns[:10]) + (" and more" if len(columns) > 10 else "")
    raise FeatureError(f"{name}: no column {id_column!r}; the columns are {listed}")


def _table(
    text: io.TextIOWrapper, name: str, id_column: str | None
) -> tuple[NDArray[np.float64], tuple[str, ...] | None, tuple[str, ...]]:
    first = text.readline()
    delimiter = max(_DELIMITERS, key=first.count)
    rows = csv.reader(_chain(first, text), delimiter=delimiter, strict=True)
    columns = next(rows)
    if columns and all(_is_number(cell) for cell in columns):
        raise FeatureError(f"{name}: line 1 is all numbers, but a header is expected; put the columns' names on top")
    position = id_position(columns, name, id_column)
    numbers = array("d")
    ids: list[str] = []
    for cells in rows:
        if not cells:
            continue
        if len(cells) != len(columns):
            raise FeatureError(
                f"{name}, line {rows.line_num}: {len(cells)} cells where the header has {len(columns)}; "
                "give every line as many cells as the header"
            )
        if position is not None:
            ids.append(cells.pop(position))
        try:
            numbers.extend(map(_number, cells))
        except ValueError as error:
            raise _bad_cell(name, rows.line_num, cells, columns, position) from error
    names = tuple(column for index, column in enumerate(columns) if index != position)
    matrix = np.frombuffer(numbers, dtype=np.float64).reshape(-1, len(names)) if numbers else np.empty((0, len(names)))
    return matrix, tuple(ids) if position is not None else None, names


def _chain(first: str, rest: io.TextIOWrapper) -> Iterator[str]:
    yield first
    yield from rest


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
    shown = "an empty cell" if not cell.strip() else repr(cell[:40])
    remedy = "write a number with a decimal point"
    if position is None and column == columns[0]:
        remedy += f", or name the column of ids (id_column=, --id-column {column!r})"
    return FeatureError(f"{name}, line {line}: {shown} in column {column!r} is not a number; {remedy}")
