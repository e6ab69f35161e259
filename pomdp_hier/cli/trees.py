"""Trees on the command line: their options, reading by format, names of nodes, and writing back."""

import argparse
import codecs
import io
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from pomdp_hier._io.formats import file_ending, open_csv, text_of
from pomdp_hier._io.workbooks import is_workbook, unpacked_table
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.cli.files import input_file
from pomdp_hier.cli.tree_formats import (
    JSON_FORMS,
    TABLE_ENDINGS,
    named,
    parquet_columns,
    read_bytes,
    recognised,
    source_name,
    starts_with,
    tree_bytes,
)
from pomdp_hier.errors import ParameterError, ReaderError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy


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

_ID_COLUMNS = ("id", "code", "item", "key", "sku", "uri", "concept", "node", "notation", "identifier")
_NAME_COLUMNS = ("name", "title", "label", "preflabel", "description", "text")


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


def read_names(path: str | None, columns: Sequence[str] | None = None) -> dict[str, str]:
    """Return the names by id of a table; none without a path."""
    if path is None:
        if columns is not None:
            raise ParameterError(
                "--name-columns: got columns without --names; expected both. Leave it out, or add --names."
            )
        return {}
    content = unpacked_table(read_bytes(path, "a table of names"), path, ReaderError)
    table = open_csv(text_of(content, path, ReaderError), ReaderError, name=path)
    id_at, name_at = _name_columns(table.columns, path, columns)
    return {row[id_at]: row[name_at] for _, row in table.rows}


def _name_columns(header: Sequence[str], path: str, columns: Sequence[str] | None) -> tuple[int, int]:
    """Return the positions of the columns of ids and names: the given ones, by their names, or the only two."""
    if columns is not None:
        if len(columns) != 2:
            raise ParameterError(f"--name-columns: got {', '.join(columns)}; expected two columns, ID,NAME.")
        for name in columns:
            if header.count(name) != 1:
                raise ReaderError(
                    f"{path}: got {header.count(name)} columns {brief(name)} in {', '.join(header)}; expected one."
                )
        return header.index(columns[0]), header.index(columns[1])
    from pomdp_hier.hierarchy.readers.tables import column_name

    called = [column_name(cell) for cell in header]
    found = [
        next((called.index(name) for name in names if called.count(name) == 1), None)
        for names in (_ID_COLUMNS, _NAME_COLUMNS)
    ]
    if None in found and len(header) == 2 and len(set(called)) == 2:
        return 0, 1
    if found[0] is None or found[1] is None:
        raise ReaderError(
            f"{path}: got the columns {', '.join(header)}; expected id and name. Name them with --name-columns ID,NAME."
        )
    return found[0], found[1]


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
    from pomdp_hier.hierarchy.readers.links import number_of

    numbers = map(number_of, range(tree.n_nodes) if tree.labels is None else tree.labels)
    items = set(map(number_of, tree.item_labels))
    if items == set(range(len(items))) or None in items or not set(range(n_rows)) <= set(numbers):
        for warning in told:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return tree
    return read(n_items=n_rows)


def label_of(tree: "Hierarchy", text: str, option: str) -> Hashable:
    """Return the label of the node that a text names."""
    from pomdp_hier._text import listed
    from pomdp_hier.hierarchy.node_names import label_text

    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    found = [label for label in labels if label is not None and text in (label_text(label), str(label))]
    if not found and any(isinstance(label, tuple) for label in labels):
        found = [label for label in labels if isinstance(label, tuple) and label and str(label[-1]) == text]
    if len(found) > 1:
        shown = listed([label_text(label) for label in found])
        raise ParameterError(f"{option}: got {brief(text)}, which names {shown}; expected one. Give its whole path.")
    if not found:
        known = [label_text(label) for label in labels if label is not None]
        near = listed(get_close_matches(text, known) or known[:3])
        raise ParameterError(f"{option}: got {brief(text)}; expected the id of a node. Nearest are {near}.")
    return found[0]
