"""CSV, read for everybody: features, trees, names. What the cells mean is for the reader of each to say."""

import contextlib
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from pomdp_hier._messages import brief
from pomdp_hier.errors import ParameterError, PomdpHierError

__all__ = ["CsvTable", "open_csv"]

_DELIMITERS = ",;\t"
_QUOTED = re.compile(r'"[^"]*+"')


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A table in delimited text, read as far as one asks for its rows.

    Attributes:
        columns: The cells of the header, without spaces around them.
        delimiter: What parts the cells.
        header_end: The number of the line where the header ends, counted from 1.
        rows: The other rows, once: the number of the line where each ends, counted from 1, and its cells, as many as
            there are columns.
    """

    columns: list[str]
    delimiter: str
    header_end: int
    rows: Iterator[tuple[int, list[str]]]


def open_csv(
    source: str | IO[bytes],
    error: type[PomdpHierError],
    *,
    name: str = "the CSV",
    delimiter: str | None = None,
    comment: str | None = None,
) -> CsvTable:
    """Return the table in text, or in a stream of UTF-8, which starts with a header; blank lines are skipped.

    Args:
        source: The text, or a binary stream of it, with or without a byte order mark; a stream is read as it is needed.
        error: What to raise for text that is no such table.
        name: What error texts call the source.
        delimiter: What parts the cells; by default what the header has most of, comma, semicolon or tab.
        comment: Lines before the header that start so are skipped.

    Raises:
        PomdpHierError: As ``error``, here or while the rows are read: no header, a row with more or fewer cells than
            the header, a quote that is not closed, a cell of more than 131,072 characters, bytes that are no UTF-8.
        ParameterError: The delimiter is not one character.

    Example:
        >>> from pomdp_hier.errors import ReaderError
        >>> table = open_csv("id;name\\n1;Tom, Dick\\n\\n2;Harry\\n", ReaderError)
        >>> table.columns, list(table.rows)
        (['id', 'name'], [(2, ['1', 'Tom, Dick']), (4, ['2', 'Harry'])])
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        raise ParameterError(f"delimiter={brief(delimiter)}, expected one character")
    lines = _lines(source, name, error)
    skipped = 0
    for first in lines:
        if first.strip() and not (comment and first.lstrip().startswith(comment)):
            break
        skipped += 1
    else:
        raise error(f"{name}: the table is empty; expected a header and one row an item")
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=_QUOTED.sub("", first).count)
    rows = _rows(csv.reader(chain([first], lines), delimiter=delimiter, strict=True), skipped, name, error)
    end, header = next(rows)
    columns = [cell.strip() for cell in header]
    return CsvTable(columns, delimiter, end, _of_one_length(rows, header, delimiter, name, error))


def _lines(source: str | IO[bytes], name: str, error: type[PomdpHierError]) -> Iterator[str]:
    """Yield the lines with their ends, which may stand in quoted cells."""
    if isinstance(source, str):
        yield from io.StringIO(source.removeprefix("\ufeff"), newline="")
        return
    text = io.TextIOWrapper(source, encoding="utf-8-sig", newline="")
    try:
        yield from text
    except UnicodeDecodeError as wrong:
        raise error(
            f"{name}: not UTF-8 text (byte {wrong.object[wrong.start]:#04x} cannot be decoded); save it as UTF-8"
        ) from wrong
    finally:
        with contextlib.suppress(ValueError):  # the stream is closed by now
            text.detach()


def _rows(reader: Any, skipped: int, name: str, error: type[PomdpHierError]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row that is not blank; a cell that is quoted and empty is a cell."""
    try:
        for row in reader:
            if row and (len(row) > 1 or not row[0].isspace()):
                yield skipped + reader.line_num, row
    except csv.Error as wrong:
        raise error(
            f"{name}, line {skipped + reader.line_num}: not delimited text ({wrong}); is a quote not closed? Give a "
            "header and one line an item"
        ) from wrong


def _of_one_length(
    rows: Iterator[tuple[int, list[str]]], header: list[str], delimiter: str, name: str, error: type[PomdpHierError]
) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != len(header):
            raise error(
                f"{name}, line {line}: {len(row)} cells where the header has {len(header)}; give every line as many "
                f"cells as the header, and quote a cell that contains {brief(delimiter)}"
            )
        yield line, row
