"""Reader of a table of numbers from delimited text; errors name the line and column."""

from array import array
from typing import IO

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier._io.formats import open_csv
from pomdp_hier._text import brief
from pomdp_hier.errors import FeatureError, Setting

ID_NAMES = frozenset({"id", "item", "item_id", "__index_level_0__"})  # the last is what pandas calls an index


def read(stream: IO[bytes], name: str, id_column: str | None) -> tuple[Floats, tuple[str, ...] | None, tuple[str, ...]]:
    """Return the matrix, the ids if there is an id column, and the names of the other columns.

    Raises:
        FeatureError: The text is not UTF-8 or not a table of numbers under a header; the message names the
            line.
    """
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
    """Return the position of the column of ids: the named one, or the first with a usual name.

    Raises:
        FeatureError: The named column is missing, or there are several.
    """
    if id_column is None:
        return next((k for k, column in enumerate(columns) if column.strip().lower() in ID_NAMES), None)
    return column_position(columns, name, id_column)


def column_position(columns: list[str], name: str, column: str) -> int:
    """Return the position of a column.

    Raises:
        FeatureError: There is none, or there are several.
    """
    if columns.count(column) == 1:
        return columns.index(column)
    listed = ", ".join(columns[:10]) + (" and more" if len(columns) > 10 else "")
    how_many = "no column" if column not in columns else f"{columns.count(column)} columns"
    raise FeatureError(f"{name}: got {how_many} {brief(column)}; expected one of {listed}")


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
    message = f"{name}, line {line}, column {brief(column)}: got "
    if not cell.strip():
        return FeatureError(f"{message}an empty cell; expected a number. Fill it in, or remove the line and its item.")
    message += f"{brief(cell, 40)}; expected a number. "
    if _is_number(cell.replace(",", ".").replace("_", "")):
        return FeatureError(f"{message}Write it with a decimal point, without marks between thousands.")
    ids: tuple[str | Setting, ...] = () if position is not None else (", or as the ids: ", Setting("id_column", column))
    text = Setting("text", column)
    return FeatureError(message, "Remove the column, or take it as text: ", text, *ids)
