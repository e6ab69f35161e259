"""Tables with a tree in them: the roles of their columns, and their rows."""

import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import numpy as np

from pomdp_hier._arguments import Ints
from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import Kind, check_kind, decoding, kind_of, open_csv, text_of, without_sheet
from pomdp_hier._io.workbooks import unpacked_table
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import Argument, Note, ParameterError, ReaderError, Setting
from pomdp_hier.hierarchy.arrays import as_text, dense, is_row
from pomdp_hier.hierarchy.readers.text_layout import NO_HEADER, refuse_other_formats

TextSource: TypeAlias = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]


@dataclass(frozen=True)
class Table:
    """Named columns and rows of cells; with ``is_text``, all cells are text, as from CSV."""

    columns: list[str]
    rows: list[Sequence[Any]]
    is_text: bool = False
    has_header: bool = True

    def column(self, given: str | None, known: Sequence[str]) -> int | None:
        """Return the position of the given column, else of the first known name, else ``None``."""
        if given is not None:
            if not isinstance(given, str) or given not in self.columns:
                raise ParameterError(f"column: got {brief(given)}; expected one of {listed(self.columns, limit=10)}.")
            return self.columns.index(given)
        names = self.names
        return next((names.index(name) for name in known if name in names), None)

    @property
    def names(self) -> list[str]:
        """The names of the columns in the form of `column_name`."""
        return [column_name(name) for name in self.columns]


def column_name(name: object) -> str:
    """Return the name of a column in lower case: the last part of an IRI, and ``x`` of ``skos:x``.

    Example:
        >>> names = ("Parent ID ", "http://www.w3.org/2004/02/skos/core#broader", "skos:broader")
        >>> [column_name(name) for name in names]
        ['parent id', 'broader', 'broader']
    """
    text = str(name).strip().lstrip("#").casefold()
    if "://" in text:
        return re.split(r"[#/]", text.strip("<>").rstrip("#/"))[-1]
    return text.removeprefix("skos:")


def is_text_source(source: Any) -> bool:
    """Return whether a source is text, bytes, a path or an open file."""
    return isinstance(source, (str, bytes, bytearray, os.PathLike)) or hasattr(source, "read")


def is_table(source: Any) -> bool:
    """Return whether a source is CSV, a dictionary or a data frame, and not a list of rows."""
    return is_text_source(source) or isinstance(source, Mapping) or _is_frame(source)


def _is_frame(source: Any) -> bool:
    if hasattr(source, "collect_schema"):  # of polars: a lazy frame warns when it is asked for its columns
        return True
    return hasattr(source, "columns") and hasattr(source, "shape")


def read_table(source: Any, names: Sequence[str] = (), delimiter: str | None = None, header: bool = True) -> Table:
    """Return the table of CSV, a data frame, a dictionary of columns, or a list of rows."""
    if is_text_source(source):
        text = read_text(source, is_text=lambda text: "\n" in text or "\r" in text, workbooks=True)
        return read_csv(text, delimiter, header=header)
    require_header(header, source)
    if _is_frame(source):
        return _read_frame(source)
    if isinstance(source, Mapping):
        columns = {as_text("a column's name", name): list(column) for name, column in source.items() if is_row(column)}
        if len(columns) != len(source) or len({len(column) for column in columns.values()}) > 1:
            raise ReaderError("source: got a dictionary of columns that are not lists of one length; expected lists.")
        return Table(list(columns), list(zip(*columns.values(), strict=True)))
    source = dense("the table", source)
    if not isinstance(source, Iterable):
        raise ReaderError(f"source: got {brief(source)}; expected CSV, a data frame, a dictionary of columns, or rows.")
    rows = list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        keys = list(dict.fromkeys(as_text("a column's name", key) for row in rows for key in row))
        return Table(keys, [[row.get(key) for key in keys] for row in rows])
    for number, row in enumerate(rows, 1):
        if not is_row(row) or (names and len(row) != len(names)):
            raise ReaderError(f"row {number}: got {brief(row)}; expected {len(names)} cells, {listed(names)}.")
    return Table(list(names), rows)


def require_header(header: bool, source: Any) -> None:
    """Raise `ParameterError` if ``header`` is false for a source that is not text."""
    if not header:
        raise ParameterError(
            Argument("header"), f": got False for {brief(source)}; expected a file or text. Leave it out."
        )


def _read_frame(source: Any) -> Table:
    nw = from_extra("frames", "narwhals", "a data frame needs narwhals (or give a dictionary of columns)")
    what = f"source ({type(source).__name__})"
    with decoding(what, ReaderError, "a data frame that narwhals supports", "Collect a lazy one"):
        if hasattr(source, "collect"):  # which may compute, or warn, when it is asked for its columns
            nw.from_native(source, eager_only=True)
        columns = [as_text("a column's name", name) for name in source.columns]
        _check_columns(columns, "the data frame")
        frame = nw.from_native(source, eager_only=True)
        return Table(columns, list(zip(*(column.to_list() for column in frame.iter_columns()), strict=True)))


def comment_mark(text: str, comment: str | None = "#") -> str | None:
    """Return the mark of comment lines above a table, ``None`` if its header or first row starts with the mark.

    Example:
        >>> comment_mark("# made today\\nid,parent\\n"), comment_mark("#id,parent\\nr,\\n")
        ('#', None)
    """
    if not comment or not text.lstrip("\ufeff\r\n ").startswith(comment):
        return comment
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    first = next((line for line in lines if not line.lstrip().startswith(comment)), None)
    named = lines[0].lstrip().removeprefix(comment)
    fits = first is not None and any(0 < first.count(mark) == named.count(mark) for mark in ",;\t")
    return None if first is None or (fits and not named[:1].isspace()) else comment


def read_csv(text: str, delimiter: str | None = None, comment: str | None = "#", header: bool = True) -> Table:
    """Return the table of CSV text, all cells as text; rows are counted from 1 below the header.

    Without a header the columns are called by their numbers, "1" the first.
    """
    refuse_other_formats(text)
    found = open_csv(text, ReaderError, delimiter=delimiter, comment=comment_mark(text, comment))
    return table_of_csv(found.columns, [row for _, row in found.rows], header)


def table_of_csv(first: list[str], rows: list[Sequence[Any]], header: bool) -> Table:
    """Return the table of the first line, which is a header or a row, and the other rows."""
    if not header:
        return Table([str(at) for at in range(1, len(first) + 1)], [first, *rows], is_text=True, has_header=False)
    _check_columns(first, "the CSV header", *NO_HEADER)
    return Table(first, rows, is_text=True)


def first_line_is_row(table: Table) -> bool:
    """Return whether the header looks like a row: a blank, a number, or a value of its own column."""
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
    if "" in twice:
        raise ReaderError(
            f"{what}: got {columns.count('')} columns without a name; expected one distinct name per column. Remove "
            "lines above the names, or name each column",
            *advice,
            ".",
        )
    if twice:
        raise ReaderError(f"{what}: got {listed(twice)} twice; expected distinct names. Rename one", *advice, ".")


def is_missing(name: object) -> bool:
    """Return whether a cell is missing: ``None``, NaN, or a missing value of a data frame.

    Example:
        >>> is_missing(None), is_missing(float("nan")), is_missing("")
        (True, True, False)
    """
    return name is None or (isinstance(name, float) and name != name) or type(name).__name__ in ("NAType", "NaTType")


def read_text(source: TextSource | Any, is_text: Callable[[str], bool], *, workbooks: bool = False) -> str:
    """Return the text of a source, without a byte order mark; a string is a path unless ``is_text`` accepts it.

    With ``workbooks``, a sheet of a workbook is returned as CSV.
    """
    name, path = "the text", "the workbook"
    source = source.removeprefix("\ufeff") if isinstance(source, str) else source
    content: object = source
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_text(source) and not _foreign(source)):
        path = os.fspath(source)
        name = brief(path)
        try:
            content = Path(without_sheet(path)[0] if workbooks else path).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReaderError(
                f"source: got {name}, which cannot be read as a file ({reason}). Correct the path."
            ) from None
    elif hasattr(source, "read"):
        path = str(getattr(source, "name", "the open file"))
        name = brief(getattr(source, "name", "the open file"))
        with decoding(name, ReaderError, "an open file of text or bytes", "Open it again as a file of bytes"):
            try:
                content = source.read()
            except UnicodeDecodeError as error:
                known = kind_of(error.object)
                if known.name not in ("text", "binary"):
                    remedy = f"got {known.what}; expected text. Open it as a file of bytes, or give its path."
                else:
                    remedy = "got text in another encoding; expected UTF-8. Open it with its encoding."
                raise ReaderError(f"{name}: {remedy}") from None
    if isinstance(content, (bytes, bytearray, memoryview)):
        content = unpacked_table(bytes(content), path, ReaderError) if workbooks else bytes(content)
        return text_of(content, name, ReaderError)
    if not isinstance(content, str):
        raise ReaderError(f"source: got {brief(source)}; expected a path, an open file, or text.")
    if kind := _foreign(content):
        check_kind(kind, name, ReaderError, ())
    return content.removeprefix("\ufeff")


def _foreign(text: str) -> Kind | None:
    """Return the kind of text that cannot be a tree, such as a NEXUS file or an HTML page."""
    kind = kind_of(text[:4096].encode("utf-8", "replace"))
    return None if kind.name in ("text", "binary") else kind  # decoded text may hold any character


PARENTS = ("parent", "parent_id", "parentid", "parent id", "parent_uid", "broader")
CHILDREN = ("child", "child_id", "narrower")
SOURCES, TARGETS = ("source", "from"), ("target", "to")
NODES = ("id", "unique id", "uid", "node", "node_id", "child", "child_id", "concept", "uri", "item", "code", "name")
TRIPLE = ("subject", "predicate", "object")
_NO_PARENT = frozenset({"0", "0.0", "-1", "-1.0", "null", "none", "nan", "na", "n/a", "-"})


def links_of(table: Table, parent: str | None = None, child: str | None = None) -> tuple[Sequence[int], int, int]:
    """Return the rows that are links, and the columns of their parents and children.

    If only one of the two columns exists, the column of node ids takes the role of the other. In triples,
    ``broader`` names the parent of its subject; ``narrower``, the inverse, is used only without ``broader``.

    Example:
        >>> links_of(Table(["concept", "skos:narrower"], []))[1:], links_of(Table(["concept", "skos:broader"], []))[1:]
        ((0, 1), (1, 0))
    """
    if parent is None and child is None and set(TRIPLE) <= set(table.names):
        return _links_of_triples(table)
    rows = range(len(table.rows))
    if not table.has_header and len(table.columns) == 2 and parent is None and child is None:
        return rows, 0, 1
    parent_at, child_at = table.column(parent, (*PARENTS, *SOURCES)), table.column(child, (*CHILDREN, *TARGETS))
    if parent_at is not None and child_at is None and child is None:
        child_at = parent_roles(table, None, table.columns[parent_at], "child")[0]
    elif parent_at is None and child_at is not None:
        parent_at = table.column(None, NODES)
    if parent_at is None or child_at is None or parent_at == child_at:
        raise _unknown(table, "parent", "child")
    return rows, parent_at, child_at


def _links_of_triples(table: Table) -> tuple[Sequence[int], int, int]:
    subject, predicate, other = (table.names.index(name) for name in TRIPLE)
    meant = [column_name(row[predicate]) for row in table.rows]
    for word, parent_at, child_at in (("broader", other, subject), ("narrower", subject, other)):
        rows = [row for row, name in enumerate(meant) if name == word]
        if rows:
            return rows, parent_at, child_at
    raise ReaderError(
        f"predicate: got {listed(dict.fromkeys(meant))}; expected broader or narrower. "
        "Remove the column, and name those of parents and children."
    )


def parent_roles(table: Table, id: str | None, parent: str | None, what: str = "id") -> tuple[int, int]:
    """Return the columns of ids and of parents: by name, checked by whether each parent has a row."""
    if not table.has_header and len(table.columns) == 2 and id is None and parent is None:
        return (0, 1) if what == "id" else (1, 0)
    parent_at = table.column(parent, PARENTS)
    if parent_at is None:
        called = [place for place, name in enumerate(table.names) if "parent" in name]
        parent_at = called[0] if len(called) == 1 else None
    id_at = table.column(id, NODES)
    if parent_at is not None and id is None:
        held = {place: _parents_held(table, place, parent_at, place != id_at) for place in range(len(table.columns))}
        named, held[parent_at] = held.get(id_at, 0), 0  # type: ignore[arg-type]
        most = max(held.values())
        best = [place for place, count in held.items() if count == most]
        id_at = best[0] if len(best) == 1 and most > 2 * named else id_at
    if id_at is None or parent_at is None or id_at == parent_at:
        raise _unknown(table, *((what, "parent") if what == "id" else ("parent", what)))
    return id_at, parent_at


def _parents_held(table: Table, id_at: int, parent_at: int, unique: bool) -> int:
    """Return the number of parents that have a row, for a column of ids."""
    try:
        ids = {_stripped(row[id_at]) for row in table.rows}
        is_listed = not table.is_text and any(isinstance(row[parent_at], list | tuple) for row in table.rows)
        parents = (
            {name for row in table.rows if isinstance(row[parent_at], list | tuple) for name in row[parent_at]}
            if is_listed
            else {_stripped(row[parent_at]) for row in table.rows}
        )
    except TypeError:  # lists
        return 0
    if unique and len(ids) < len(table.rows):
        return 0
    marks = marks_of_no_parent(table, id_at, parent_at)
    return len(({marks.get(name, name) for name in parents if not is_missing(name)} - {"", None}) & ids)


def marks_of_no_parent(table: Table, id_at: int, parent_at: int) -> dict[Hashable, Hashable]:
    """Return the ids meant by other spellings of parents: ``None`` for 0, -1 or "null", "1" for "1.0"."""
    try:
        ids = {_stripped(row[id_at]) for row in table.rows}
        parents = {_stripped(row[parent_at]) for row in table.rows}
    except TypeError:
        return {}
    meant: dict[Hashable, Hashable] = {}
    for name in parents - ids:
        if (name.casefold() in _NO_PARENT) if isinstance(name, str) else name in (0, -1):
            meant[name] = None
        elif isinstance(name, str) and name.endswith(".0") and name[:-2] in ids:  # numbers with blanks, out of a frame
            meant[name] = name[:-2]
    return meant


def _unknown(table: Table, first: str, second: str) -> ReaderError:
    return ReaderError(
        f"columns: got {listed(table.columns, limit=10)}; expected {brief(first)} and {brief(second)}. Name them with ",
        Setting(first),
        " and ",
        Setting(second),
        *((", and the character between the cells with ", Setting("delimiter")) if len(table.columns) == 1 else ()),
        *(NO_HEADER if table.is_text and table.has_header else ()),
        ".",
    )


def header_note(table: Table, *named: str | None) -> list[Note]:
    """Return a warning if a column that the caller names has its name as a value, too."""
    for name in named:
        if name is not None and table.is_text and table.has_header:
            at = table.columns.index(name)
            if any(row[at].strip() == name for row in table.rows):
                return [(f"header: the column {brief(name)} has the value {brief(name)} as well", *NO_HEADER)]
    return []


def _stripped(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


OnMultipleParents = Literal["error", "first", "duplicate"]
ItemsAtInner = Literal["leaf", "error"]


@dataclass
class TreeArrays:
    """The output of a reader: items first, then internal nodes, not yet checked for cycles or several roots.

    Attributes:
        parent: The parent of every node ``[N + K]``, -1 at a root.
        n_items: ``N``.
        order: All nodes in reading order, or ``None`` for that of their numbers.
        labels: One id per node, one per item, or ``None``.
        notes: The warnings.
        singletons: The setting of the source or its format, or ``None``.
        one_child_notes: Whether to warn of a node with one child, as in formats that people write.
    """

    parent: Ints
    n_items: int
    order: Ints | None = None
    labels: Sequence[Hashable] | None = None
    notes: list[Note] = field(default_factory=list)
    singletons: bool | None = None
    one_child_notes: bool = False


def with_added_root(arrays: TreeArrays) -> TreeArrays:
    """Return the tree with one new node, labelled ``None``, above its roots; unchanged if there is one root."""
    roots = np.flatnonzero(arrays.parent < 0)
    if roots.size < 2:
        return arrays
    n_nodes = arrays.parent.size
    parent = np.append(arrays.parent, -1)
    parent[roots] = n_nodes
    labels = arrays.labels
    if labels is not None:
        labels = (*labels, *range(len(labels), n_nodes), None)
    order = None if arrays.order is None else np.append(arrays.order, n_nodes)
    return replace(arrays, parent=parent, order=order, labels=labels)


def one_parent_per_row(table: Table, parent_at: int) -> Table:
    """Return the table with one row per parent, for cells that are lists of parents."""
    if not any(isinstance(row[parent_at], list | tuple) for row in table.rows):
        return table
    rows = list[Sequence[Any]]()
    for row in table.rows:
        above = row[parent_at]
        for parent in (above or [None]) if isinstance(above, list | tuple) else [above]:
            rows.append([parent if at == parent_at else cell for at, cell in enumerate(row)])
    return replace(table, rows=rows)


def is_row_of_numbers(source: Any) -> bool:
    """Return whether a source is one row of numbers, and not rows of cells."""
    if isinstance(source, np.ndarray):
        return source.ndim == 1 and source.dtype.kind in "iuf"
    return isinstance(source, list | tuple) and all(cell is None or isinstance(cell, int | float) for cell in source)
