"""Recognition of the format of a tree file, by its ending and then by its content."""

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pomdp_hier._io.formats import check_kind, decoding, file_ending, kind_of, open_csv, without_sheet
from pomdp_hier._io.workbooks import unpacked_table
from pomdp_hier.errors import FeatureError, HierarchyError, ReaderError, Setting

JSON_FORMS = ("json", "children", "nested", "edges", "linkage")
_NEWICK_ENDINGS = frozenset({".nwk", ".newick", ".tree", ".tre", ".nh"})
TABLE_ENDINGS = frozenset({".csv", ".tsv", ".xlsx", ".xlsm"})


def source_name(path: str) -> str:
    """Return what error texts call a file."""
    return "standard input" if path == "-" else path


def read_bytes(path: str, expected: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise ReaderError("standard input: got a closed stream; expected a tree. Give a path.")
        return sys.stdin.buffer.read()
    try:
        return Path(without_sheet(path)[0]).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReaderError(f"{path}: got a path that cannot be read ({reason}); expected {expected}.") from error


@contextmanager
def named(name: str) -> Iterator[None]:
    """Put the file's name before the message of an error in its tree."""
    try:
        yield
    except HierarchyError as error:
        raise type(error)(f"{name}: ", *error.parts) from error
    except FeatureError as error:  # of an array, whose reader names the file
        parts = (Setting("tree_key") if part == Setting("key") else part for part in error.parts)
        raise ReaderError(*parts) from error


def tree_bytes(options: argparse.Namespace) -> bytes:
    """Return the content of the tree's file, decompressed from gzip; a sheet of a workbook as CSV."""
    known: dict[str, bytes] = vars(options).setdefault("tree_contents", {})  # read once, so that warnings come once
    if options.tree not in known:
        content = read_bytes(options.tree, "the path of a tree file")
        known[options.tree] = unpacked_table(content, source_name(options.tree), ReaderError)
    return known[options.tree]


def recognised(content: bytes, options: argparse.Namespace) -> tuple[str, str]:
    """Return the file type and the format of the tree's file."""
    name, kind = source_name(options.tree), kind_of(content)
    check_kind(kind, name, ReaderError, ("text", "npy", "npz", "parquet"))
    if options.tree_format != "auto":
        return kind.name, options.tree_format
    with named(name):
        return kind.name, _guessed(content, kind.name, options)


def _guessed(content: bytes, kind: str, options: argparse.Namespace) -> str:
    """Return the likely format; its reader raises an error if it is another one."""
    ending = file_ending(options.tree)
    if kind in ("npy", "npz"):
        return "linkage"
    if ending in _NEWICK_ENDINGS:
        return "newick"
    if ending == ".json":
        return "json"
    if kind == "parquet" or ending in TABLE_ENDINGS:
        return _table_form(content, kind, options)
    if starts_with(content, b"(") or (starts_with(content, b"[") and content.rstrip().endswith(b";")):
        return "newick"
    return "json" if starts_with(content, b"[", b"{") else _table_form(content, kind, options)


def starts_with(content: bytes, *marks: bytes) -> bool:
    return content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(marks)


def _table_form(content: bytes, kind: str, options: argparse.Namespace) -> str:
    """Return whether the header is that of edges, parents or BERTopic topics; other tables are paths."""
    from pomdp_hier.hierarchy.readers import tables
    from pomdp_hier.hierarchy.readers.tables import Table

    rows = _rows(content, kind, options)
    head = Table(list(next(rows, [])), [])
    if "child_left_id" in head.names:
        return "bertopic"
    if set(tables.TRIPLE) <= set(head.names):
        return "edges"
    given = [options.parent_column] if options.parent_column in head.columns else []
    parent_at = head.columns.index(given[0]) if given else head.column(None, tables.PARENTS)
    child_at = head.column(None, (*tables.CHILDREN, *tables.TARGETS))
    if parent_at is not None and child_at is not None:  # one row a node, whose root has no parent, or one row an edge
        return "parents" if _has_root(rows, child_at, parent_at) else "edges"
    is_edges = child_at is not None and head.column(None, tables.SOURCES) is not None
    is_edges |= "narrower" in head.names and head.column(None, tables.NODES) is not None
    return "edges" if is_edges else "paths" if parent_at is None else "parents"


def _has_root(rows: Iterator[Sequence[str]], id_at: int, parent_at: int) -> bool:
    """Return whether a row has no parent: a blank, or a mark such as 0, unless several rows have it."""
    from pomdp_hier.hierarchy.readers.tables import Table, marks_of_no_parent

    table = Table([], list(rows))
    marks = marks_of_no_parent(table, id_at, parent_at)
    above = [row[parent_at].strip() for row in table.rows]
    return any(
        not name or (marks.get(name, name) is None and (name not in ("0", "0.0") or above.count(name) == 1))
        for name in above
    )


def _rows(content: bytes, kind: str, options: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Yield the rows of a table up to its first error, which the reader reports."""
    from pomdp_hier.hierarchy.readers.tables import comment_mark

    if kind == "parquet":
        columns = parquet_columns(content, options)
        yield list(columns)
        cells = ([("" if cell is None else str(cell)) for cell in column] for column in columns.values())
        yield from zip(*cells, strict=True)
        return
    try:
        text = content.decode("utf-8-sig", "replace")
        table = open_csv(text, ReaderError, comment=comment_mark(text), delimiter=options.delimiter)
        if not options.header:
            yield [str(at) for at in range(1, len(table.columns) + 1)]
        yield table.columns
        yield from (row for _, row in table.rows)
    except ReaderError:
        return


def parquet_columns(content: bytes, options: argparse.Namespace) -> dict[str, list[Any]]:
    from pomdp_hier._io.formats import memory_available
    from pomdp_hier.features.readers import open_table

    table = open_table(io.BytesIO(content), source_name(options.tree), None, memory_available())
    with decoding(source_name(options.tree), ReaderError, "a whole Parquet file"):
        return {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}
