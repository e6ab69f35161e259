"""A table in delimited text whose cells are changed in place: all else stays letter for letter."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pomdp_hier.errors import ReaderError
from pomdp_hier.files.csv_text import open_csv
from pomdp_hier.hierarchy.readers.tables import Table, table_of_csv

__all__ = ["Sheet"]


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table in delimited text: its cells, and the lines of each row as they stand there."""

    table: Table
    delimiter: str
    head: str
    lines: list[str]
    rest: str

    @classmethod
    def of(cls, text: str, delimiter: str | None = None, comment: str | None = None, header: bool = True) -> "Sheet":
        found = open_csv(text, ReaderError, delimiter=delimiter, comment=comment)
        rows = list(found.rows)
        table = table_of_csv(found.columns, [row for _, row in rows], header)
        lines = list(io.StringIO(text, newline=""))
        ends = [found.header_end, *(end for end, _ in rows)]
        if not header:
            ends.insert(0, 0)
        return cls(
            table,
            found.delimiter,
            "".join(lines[: ends[0]]),
            ["".join(lines[start:end]) for start, end in pairwise(ends)],
            "".join(lines[ends[-1] :]),
        )

    def changed(self, row: int, cells: dict[int, str]) -> str:
        """Return a row's lines with other cells, in quotes where the old ones are or where they have to be."""
        line = self.lines[row]
        blank = re.match(r"(?:[^\S\r\n]*(?:\r\n|\n|\r))*", line)
        position = 0 if blank is None else blank.end()
        cell = re.compile(rf'"(?:[^"]|"")*+"|[^{re.escape(self.delimiter)}\r\n]*+')
        written = [line[:position]]
        for at in range(len(self.table.columns)):
            found = cell.match(line, position)
            end = position if found is None else found.end()
            old = line[position:end]
            if at in cells:
                new = self._quoted(cells[at], always=old.startswith('"'))
                bare = old.strip()
                old = old.replace(bare, new, 1) if bare and not old.startswith('"') else new
            written.append(old + line[end : end + 1] if at + 1 < len(self.table.columns) else old + line[end:])
            position = end + 1
        return "".join(written)

    def _quoted(self, cell: str, always: bool = False) -> str:
        if always or any(mark in cell for mark in (self.delimiter, '"', "\r", "\n")):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    def text(self, lines: Sequence[str], new: Sequence[dict[int, str]] = ()) -> str:
        """Return the table with these rows, and new ones at its end."""
        end = "\r\n" if "\r\n" in self.head else "\n"
        body = self.head + "".join(lines)
        if not new:
            return body + self.rest
        rows = [[cells.get(at, "") for at in range(len(self.table.columns))] for cells in new]
        stream = io.StringIO()
        csv.writer(stream, delimiter=self.delimiter, lineterminator=end).writerows(rows)
        if body.endswith(("\n", "\r")):
            return body + stream.getvalue() + self.rest
        return body + end + stream.getvalue().removesuffix(end)
