"""Trees on the command line: recognition of the format of a file, their options, reading, and writing back."""

import argparse
import codecs
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pomdp_hier._io.formats import check_kind, decoding, file_ending, kind_of, open_csv, text_of, without_sheet
from pomdp_hier._io.workbooks import is_workbook, unpacked_table
from pomdp_hier._io.writing import write_file
from pomdp_hier.cli.console import input_file
from pomdp_hier.errors import FeatureError, HierarchyError, ParameterError, ReaderError, Setting

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy


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
        first, *rest = error.parts
        first = first.removeprefix("the text: ") if isinstance(first, str) else first  # whose name is known here
        raise type(error)(f"{name}: ", first, *rest) from error
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


_SHARED = {"singletons": "singletons", "on_multiple_parents": "on_multiple_parents", "items_at_inner": "internal_items"}
_NUMBERED = _SHARED | {"n_items": "n_items", "add_root": "add_root"}
_DELIMITED = {"header": "header", "delimiter": "delimiter"}
# The arguments of each format's reader, and the options that they are given by.
_FORMATS = {
    "json": _NUMBERED,
    "children": _NUMBERED,
    "edges": _NUMBERED | _DELIMITED | {"child": "item_column", "parent": "parent_column"},
    "nested": _NUMBERED,
    "linkage": {"singletons": "singletons"},
    "newick": _SHARED,
    "parents": _NUMBERED | _DELIMITED | {"id": "item_column", "parent": "parent_column"},
    "paths": _SHARED
    | _DELIMITED
    | {name: name for name in ("sep", "blank_levels", "levels")}
    | {"ends_in": "path_ends_in", "item": "item_column", "path": "path_column"},
    "outline": _SHARED,
    "bertopic": {"singletons": "singletons"},
}
OF_TREES = ("tree_key", *dict.fromkeys(option for options in _FORMATS.values() for option in options.values()))


def add_tree_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads a tree file."""
    add = parser.add_argument_group("reading TREE").add_argument
    add(
        "--tree-format",
        choices=("auto", *_FORMATS),
        default="auto",
        metavar="FORMAT",
        help=f"one of {', '.join(_FORMATS)}; json tells edges, children lists, nested objects and "
        "linkages apart; linkage is SciPy's, in .npy, .npz or JSON; edges also a table with parent and child, parents "
        "one with id and parent, paths lines or a table with an item and its path or one column per level, outline one "
        "name per line, its level shown by indentation, bullets or drawn branches (default: by the ending and the "
        "content)",
    )
    _add_column_options(add)
    _add_shape_options(add)
    names = "a table (also .xlsx) with a column of ids and one of names, to show names instead of ids"
    add("--names", type=input_file, metavar="CSV", help=names)
    what = "those two columns (default: the ones that are called so, such as code and title, or the only two)"
    add("--name-columns", type=lambda text: [name.strip() for name in text.split(",")], metavar="ID,NAME", help=what)


def _add_column_options(add: Callable[..., object]) -> None:
    """Add the options for the columns of a table and the syntax of paths."""
    add("--tree-key", metavar="NAME", help="the array of an .npz that holds the linkage")
    add("--item-column", metavar="NAME", help="the table's column of ids (default: by its name)")
    add("--parent-column", metavar="NAME", help="the table's column of parents (default: parent)")
    add("--path-column", metavar="NAME", help="the table's column of paths (default: path, category)")
    what = "the table's columns of levels, with commas between: --levels l1,l2,l3"
    add("--levels", type=lambda text: [name.strip() for name in text.split(",")], metavar="NAMES", help=what)
    what = (
        "whether the first line of a table names its columns; if not, they are named 1, 2 and so on (default: --header)"
    )
    add("--header", action=argparse.BooleanOptionalAction, default=True, help=what)
    add("--delimiter", metavar="CHARACTER", help="the character between a table's cells (default: comma, ; or tab)")
    what = "the text between the categories of a path (default: the one of > | / ; \\ :: tab, arrows in most)"
    add("--sep", metavar="TEXT", help=what)
    what = "a blank level before a filled one: raise an error, or skip it (default: error)"
    add("--blank-levels", choices=("error", "skip"), default="error", help=what)
    what = "whether a path ends in the item (default without a column of items) or in its category"
    add("--path-ends-in", choices=("item", "category"), help=what)


def _add_shape_options(add: Callable[..., object]) -> None:
    """Add the options for the items, and for links that are not a tree."""
    add("--n-items", type=int, metavar="N", help="the numbers below N are the items (default: the leaves)")
    what = "whether the items of a pure item list are leaf clusters of their own (default: for a linkage)"
    add("--singletons", action=argparse.BooleanOptionalAction, default=None, help=what)
    add("--add-root", action="store_true", help="place several roots under a new one (default: raise an error)")
    what = (
        "a node with several parents: raise an error, keep it under the first, or copy it under each (default: error)"
    )
    add("--on-multiple-parents", choices=("error", "first", "duplicate"), default="error", help=what)
    what = "an item with nodes below: make it a leaf below itself, or raise an error (default: leaf)"
    add("--internal-items", choices=("leaf", "error"), default="leaf", help=what)


@dataclass(frozen=True)
class TreeFile:
    """A tree, and whether its file orders the items.

    Attributes:
        tree: The tree.
        ordered: Whether the format gives the feature row of each item, so that rows are joined by position.
    """

    tree: "Hierarchy"
    ordered: bool


def read_tree(options: argparse.Namespace) -> "Hierarchy":
    """Return the hierarchy in the file ``options.tree``; ``-`` is standard input."""
    return read_tree_file(options).tree


def read_tree_file(options: argparse.Namespace, n_rows: int | None = None) -> TreeFile:
    """Return the tree file of ``options.tree``."""
    content = tree_bytes(options)
    kind, form = recognised(content, options)
    with named(source_name(options.tree)):
        return _read_as(content, kind, form, options, n_rows)


def _read_as(content: bytes, kind: str, form: str, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    if kind in ("npy", "npz"):
        return TreeFile(_from_array(content, options, form), True)
    if kind == "text" and form in JSON_FORMS and (form != "edges" or starts_with(content, b"[", b"{")):
        return _from_json(content, options, form, n_rows)
    source = parquet_columns(content, options) if kind == "parquet" else content
    return _from_text(source, options, form, n_rows)


def written_endings(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the endings that a changed tree may be written with: JSON, and that of the tree's file (workbook: CSV)."""
    from pomdp_hier.hierarchy.writing_back import FORMATS

    given = file_ending(options.tree) if options.tree != "-" else ""
    given = ".csv" if is_workbook(options.tree) else given
    if given in ("", ".json", ".npy", ".npz", ".parquet"):
        return (".json",)
    if options.out is not None and file_ending(options.out) == given:
        _, form = recognised(tree_bytes(options), options)
        if form not in (*FORMATS, *JSON_FORMS):
            raise ReaderError(
                f"{options.tree}: got the format {form}, which cannot be written back; expected one of "
                f"{', '.join(FORMATS)}, json. Give --out a name that ends in .json."
            )
    return (".json", given)


def write_like_source(tree: "Hierarchy", options: argparse.Namespace) -> None:
    """Write a changed tree to ``--out``: in the format of its source for the same ending, else as JSON."""
    write_file(options.out, _written_like_source(tree, options, options.out), replace=options.force)


def _written_like_source(tree: "Hierarchy", options: argparse.Namespace, target: str) -> str:
    from pomdp_hier.hierarchy.writing_back import written_like

    if options.tree == "-" or file_ending(target) == ".json":
        return tree.to_json()
    name, content = source_name(options.tree), tree_bytes(options)
    _, form = recognised(content, options)
    if form in JSON_FORMS and starts_with(content, b"[", b"{"):
        return tree.to_json()
    known = ("sep", "blank_levels", "ends_in", "levels", "item", "path", "id", "parent", "child", "header", "delimiter")
    chosen = {name: value for name, value in _arguments(options, form).items() if name in known}
    if form == "paths":
        chosen["form"] = _path_form(options)
    mark = "\ufeff" if content.startswith(codecs.BOM_UTF8) else ""

    def read(text: str) -> "Hierarchy":
        content = text.encode()
        return _read_as(content, *recognised(content, options), options, tree.n_items).tree

    with named(target):
        return written_like(tree, mark + text_of(content, name, ReaderError), form, read, **chosen)


# ---- reading each


def _arguments(options: argparse.Namespace, form: str, *others: str, without: Sequence[str] = ()) -> dict[str, Any]:
    used = {argument: option for argument, option in _FORMATS[form].items() if argument not in without}
    given = {option for option in OF_TREES if getattr(options, option) != options.default(option)}
    unused = next((option for option in OF_TREES if option in given - {*used.values(), *others}), None)
    if unused is not None:
        raise ParameterError(
            f"--{unused.replace('_', '-')}: got a value for {source_name(options.tree)}, read as {form}; expected none."
            " Leave it out, or name the format of the file with --tree-format."
        )
    return {argument: getattr(options, option) for argument, option in used.items() if option in given}


def _from_array(content: bytes, options: argparse.Namespace, form: str) -> "Hierarchy":
    from scipy.sparse import issparse

    from pomdp_hier.features.loading import load_features
    from pomdp_hier.hierarchy.tree import Hierarchy

    stream = io.BytesIO(content)
    stream.name = source_name(options.tree)
    rows = load_features(stream, key=options.tree_key).matrix
    if form not in ("linkage", "children", "edges"):
        raise ReaderError(
            f"--tree-format: got {form} for an array; expected linkage, children or edges. Choose one, or leave it out."
        )
    if issparse(rows):
        raise ReaderError("array: got a sparse one; expected a dense linkage, children or edges.")
    if form == "linkage":
        return Hierarchy.from_linkage(rows, **_arguments(options, form, "tree_key"))
    whole = rows.astype("int64")
    if (whole != rows).any():
        raise ReaderError(f"array: got fractions in {rows.dtype}; expected the integers of {form}.")
    if form == "edges":
        chosen = _arguments(options, form, "tree_key", without=("child", "parent"))
        return Hierarchy.from_edges(whole, **chosen)
    return Hierarchy.from_children(whole, **_arguments(options, form, "tree_key", without=("items_at_inner",)))


def _from_json(content: bytes, options: argparse.Namespace, form: str, n_rows: int | None) -> TreeFile:
    from pomdp_hier.hierarchy.readers.notations import json_form, parse_json
    from pomdp_hier.hierarchy.tree import Hierarchy

    value = parse_json(content)
    if form == "linkage" or (options.tree_format == "auto" and _is_linkage(value)):
        return TreeFile(Hierarchy.from_linkage(value, **_arguments(options, "linkage")), True)
    named = isinstance(value, dict) and not value.keys().isdisjoint(("items", "labels", "n_items", "n_leaves"))
    layout: Any = "auto" if form == "json" else form
    chosen = _arguments(options, form, without=("child", "parent"))

    def read(**more: Any) -> "Hierarchy":
        source = value if isinstance(value, (list, dict)) else content
        return Hierarchy.from_json(source, form=layout, **chosen, **more)

    is_edges = (json_form(value) if layout == "auto" else layout) == "edges"
    n_rows = n_rows if is_edges and not named and options.n_items is None else None
    return TreeFile(_with_known_items(read, n_rows), named or not is_edges)


def _from_text(source: Any, options: argparse.Namespace, form: str, n_rows: int | None) -> TreeFile:
    from pomdp_hier.hierarchy.tree import Hierarchy

    if isinstance(source, dict) and form not in ("edges", "parents", "paths", "bertopic"):
        raise ReaderError(
            f"--tree-format: got {form} for Parquet; expected edges, parents or paths. Choose one, or leave it out."
        )
    chosen = _arguments(options, form)
    if form in ("edges", "parents"):
        constructor: Callable[..., Hierarchy] = Hierarchy.from_edges if form == "edges" else Hierarchy.from_parents

        def read(**more: Any) -> "Hierarchy":
            return constructor(source, **chosen, **more)

        return TreeFile(_with_known_items(read, n_rows if options.n_items is None else None), False)
    if form in ("paths", "outline"):
        layout: Any = "outline" if form == "outline" else _path_form(options)
        return TreeFile(Hierarchy.from_paths(source, form=layout, **chosen), False)
    constructor = Hierarchy.from_newick if form == "newick" else Hierarchy.from_bertopic
    return TreeFile(constructor(source, **chosen), False)


def _path_form(options: argparse.Namespace) -> Literal["auto", "table"]:
    """Return ``"table"`` if the options or the ending of the file say that paths are in a table."""
    told = any((options.item_column, options.path_column, options.levels, options.delimiter, not options.header))
    return "table" if told or file_ending(options.tree) in TABLE_ENDINGS else "auto"


def _is_linkage(value: Any) -> bool:
    """Return whether rows of four numbers are merges; children lists have each integer once."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and len(row) == 4 for row in value):
        return False
    cells = [cell for row in value for cell in row]
    if not all(isinstance(cell, (int, float)) for cell in cells):
        return False
    return any(isinstance(cell, float) for cell in cells) or len(set(cells)) < len(cells)


# ---- which numbers are items


def _with_known_items(read: "Callable[..., Hierarchy]", n_rows: int | None) -> "Hierarchy":
    """Return the tree; if it has other leaves than ``0..n_rows - 1``, read it with these as its items.

    Leaves that are numbered from 0 without a gap stay the items, so that a missing feature row is not taken for an
    empty category.
    """
    if n_rows is None:
        return read()
    import warnings

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tree = read()
    from pomdp_hier.hierarchy.arrays import number_of

    numbers = map(number_of, range(tree.n_nodes) if tree.labels is None else tree.labels)
    items = set(map(number_of, tree.item_labels))
    if items == set(range(len(items))) or None in items or not set(range(n_rows)) <= set(numbers):
        for warning in told:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return tree
    return read(n_items=n_rows)
