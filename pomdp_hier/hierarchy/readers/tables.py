"""Text and tables as people have them: files, CSV, data frames, dictionaries of columns, lists of rows."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from pomdp_hier._extras import from_extra
from pomdp_hier.errors import Argument, ParameterError, ReaderError, Setting
from pomdp_hier.files.csv_text import open_csv
from pomdp_hier.files.kinds import Kind, kind_of, text_of
from pomdp_hier.hierarchy.arguments import as_text, dense, is_row
from pomdp_hier.hierarchy.readers.structure import NO_HEADER, refuse_other_formats
from pomdp_hier.hierarchy.wording import listed, shown

__all__ = [
    "Table",
    "TextSource",
    "column_name",
    "first_line_is_row",
    "is_missing",
    "is_table",
    "is_text_source",
    "read_csv",
    "read_table",
    "read_text",
    "require_header",
    "table_of_csv",
]


TextSource: TypeAlias = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]


@dataclass(frozen=True)
class Table:
    """Named columns and rows of cells. ``is_text`` tells that all cells are text (from CSV)."""

    columns: list[str]
    rows: list[Sequence[Any]]
    is_text: bool = False
    has_header: bool = True

    def column(self, given: str | None, known: Sequence[str]) -> int | None:
        """Return the place of the column the caller names, else of the first one called by a known name, else ``None``.

        Raises:
            ParameterError: If the named column does not exist.
        """
        if given is not None:
            if not isinstance(given, str) or given not in self.columns:
                raise ParameterError(f"no column {shown(given)}: the table has {listed(self.columns, limit=10)}")
            return self.columns.index(given)
        names = self.names
        return next((names.index(name) for name in known if name in names), None)

    @property
    def names(self) -> list[str]:
        """What the columns are called, as `column_name` reads it."""
        return [column_name(name) for name in self.columns]


def column_name(name: object) -> str:
    """Return what a column is called, whatever its case: of an IRI what follows its last # or /, of ``skos:x`` the x.

    Example:
        >>> names = ("Parent ID ", "http://www.w3.org/2004/02/skos/core#broader", "skos:broader")
        >>> [column_name(name) for name in names]
        ['parent id', 'broader', 'broader']
    """
    text = str(name).strip().casefold()
    if "://" in text:
        return re.split(r"[#/]", text.strip("<>").rstrip("#/"))[-1]
    return text.removeprefix("skos:")


def is_text_source(source: Any) -> bool:
    """Whether a source is text, bytes, a path or an open file."""
    return isinstance(source, (str, bytes, bytearray, os.PathLike)) or hasattr(source, "read")


def is_table(source: Any) -> bool:
    """Whether a source is CSV, a dictionary or a data frame, and not a list of rows."""
    return is_text_source(source) or isinstance(source, Mapping) or _is_frame(source)


def _is_frame(source: Any) -> bool:
    return hasattr(source, "columns") and hasattr(source, "shape")


def read_table(source: Any, names: Sequence[str] = (), delimiter: str | None = None, header: bool = True) -> Table:
    """Return the table of CSV, a data frame, a dictionary of columns, or a list of rows.

    Args:
        source: A string with a line break is CSV text, another string a path.
        names: The column names of rows that are plain tuples.
        delimiter: Of CSV; by default what the header has most of, comma, semicolon or tab.
        header: Of CSV; whether its first line names the columns.
    """
    if is_text_source(source):
        text = read_text(source, is_text=lambda text: "\n" in text or "\r" in text)
        return read_csv(text, delimiter, header=header)
    require_header(header, source)
    if _is_frame(source):
        return _read_frame(source)
    if isinstance(source, Mapping):
        columns = {as_text("a column's name", name): list(column) for name, column in source.items() if is_row(column)}
        if len(columns) != len(source) or len({len(column) for column in columns.values()}) > 1:
            raise ReaderError("the columns of the dictionary are not lists of one length")
        return Table(list(columns), list(zip(*columns.values(), strict=True)))
    source = dense("the table", source)
    if not isinstance(source, Iterable):
        raise ReaderError(f"got {shown(source)}, expected CSV, a data frame, a dictionary of columns or a list of rows")
    rows = list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        keys = list(dict.fromkeys(as_text("a column's name", key) for row in rows for key in row))
        return Table(keys, [[row.get(key) for key in keys] for row in rows])
    for number, row in enumerate(rows, 1):
        if not is_row(row) or (names and len(row) != len(names)):
            raise ReaderError(f"row {number} is {shown(row)}, expected {len(names)} cells: {listed(names)}")
    return Table(list(names), rows)


def require_header(header: bool, source: Any) -> None:
    """Raise `ParameterError` unless a source that is not text is said to have a header, as by default."""
    if not header:
        raise ParameterError(
            Argument("header"), f": got False for {shown(source)}; expected a file or text. Leave it out."
        )


def _read_frame(source: Any) -> Table:
    nw = from_extra("frames", "narwhals", "a data frame needs narwhals (or give a dictionary of columns)")
    columns = [as_text("a column's name", name) for name in source.columns]
    _check_columns(columns, "the data frame")
    try:
        frame = nw.from_native(source, eager_only=True)
    except TypeError:
        raise ReaderError(
            f"{type(source).__name__} is no data frame that narwhals knows (collect a lazy one)"
        ) from None
    return Table(columns, list(zip(*(frame[name].to_list() for name in frame.columns), strict=True)))


def read_csv(text: str, delimiter: str | None = None, comment: str | None = None, header: bool = True) -> Table:
    """Return the table of CSV text, all cells as text; rows are counted from 1 below the header.

    Without a header the columns are called by their numbers, "1" the first.

    Raises:
        ReaderError: For text of another format, and a header that names a column twice.

    Example:
        >>> read_csv("id,parent\\n1,\\n2,1\\n").rows
        [['1', ''], ['2', '1']]
        >>> read_csv("2,1\\n3,1\\n", header=False).columns
        ['1', '2']
    """
    refuse_other_formats(text)
    found = open_csv(text, ReaderError, delimiter=delimiter, comment=comment)
    return table_of_csv(found.columns, [row for _, row in found.rows], header)


def table_of_csv(first: list[str], rows: list[Sequence[Any]], header: bool) -> Table:
    """Return the table of the first line's cells and the other rows: the first line is a header, or a row."""
    if not header:
        return Table([str(at) for at in range(1, len(first) + 1)], [first, *rows], is_text=True, has_header=False)
    _check_columns(first, "the CSV header", *NO_HEADER)
    return Table(first, rows, is_text=True)


def first_line_is_row(table: Table) -> bool:
    """Whether the names of columns are no names: blank, numbers, or a value of their column as well."""
    return (
        table.is_text
        and table.has_header
        and any(
            not name or name.replace(".", "").isdecimal() or any(row[at].strip() == name for row in table.rows)
            for at, name in enumerate(table.columns)
        )
    )


def _check_columns(columns: Sequence[str], what: str, *advice: str | Setting) -> None:
    twice = list(dict.fromkeys(name for name, count in Counter(columns).items() if count > 1))
    if twice:
        raise ReaderError(f"{what} names a column twice: {listed(twice)}; rename one", *advice)


def is_missing(name: object) -> bool:
    """Whether a cell holds no id: ``None``, NaN, or the missing values of data frames, which equal nothing.

    Example:
        >>> is_missing(None), is_missing(float("nan")), is_missing("")
        (True, True, False)
    """
    return name is None or (isinstance(name, float) and name != name) or type(name).__name__ in ("NAType", "NaTType")


def read_text(source: TextSource | Any, is_text: Callable[[str], bool]) -> str:
    """Return text of a source, without a byte order mark; a string is a path unless ``is_text`` says that it is text.

    Raises:
        ReaderError: If the file cannot be read, is something else than text, or is not UTF-8.
    """
    name = "the text"
    source = source.removeprefix("\ufeff") if isinstance(source, str) else source
    content: object = source
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_text(source) and not _foreign(source)):
        name = shown(os.fspath(source))
        try:
            content = Path(source).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReaderError(f"{name} cannot be read as a file: {reason}") from None
    elif hasattr(source, "read"):
        name = shown(getattr(source, "name", "the open file"))
        try:
            content = source.read()
        except UnicodeDecodeError as error:
            known = kind_of(error.object)
            what = "is not UTF-8; save it as UTF-8" if known.name == "text" else f"is {known.what}; {known.remedy}"
            raise ReaderError(f"{name} {what} (open it as a file of bytes)") from None
        except (OSError, ValueError) as error:
            raise ReaderError(f"{name} cannot be read: {error}") from None
    if isinstance(content, (bytes, bytearray, memoryview)):
        return text_of(bytes(content), name, ReaderError)
    if not isinstance(content, str):
        raise ReaderError(f"got {shown(source)}, expected a path, an open file, or text")
    if kind := _foreign(content):
        raise ReaderError(f"{name} is {kind.what}; {kind.remedy}")
    return content.removeprefix("\ufeff")


def _foreign(text: str) -> Kind | None:
    """Return what a text is that is no text of a tree, such as a NEXUS file or an HTML page."""
    kind = kind_of(text[:4096].encode("utf-8", "replace"))
    return None if kind.name in ("text", "binary") else kind  # decoded text may hold any character
