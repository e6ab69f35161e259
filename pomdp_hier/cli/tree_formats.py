"""Which format a tree file has, by its ending and then by its content, and how each is read."""

import argparse
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pomdp_hier.errors import ReaderError
from pomdp_hier.files.csv_text import open_csv
from pomdp_hier.files.kinds import file_ending, kind_of, unpacked

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["FORMATS", "TreeFile", "read_content"]

FORMATS = ("auto", "json", "children", "edges", "nested", "linkage", "newick", "parents", "paths", "bertopic")

_NEWICK_ENDINGS = frozenset({".nwk", ".newick", ".tree", ".tre", ".nh"})
_TABLE_ENDINGS = frozenset({".csv", ".tsv"})
_PARENTS = frozenset({"parent", "parent_id", "parentid", "parent id"})
_ENDS = (frozenset({"parent", "parent_id", "source", "from"}), frozenset({"child", "child_id", "target", "to"}))
_ARRAYS = (b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06")
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class TreeFile:
    """A tree, and what its file says about the items.

    Attributes:
        tree: The tree.
        ordered: Whether the format says which feature row each item belongs to, so that a join by position is meant.
    """

    tree: "Hierarchy"
    ordered: bool


def read_content(content: bytes, options: argparse.Namespace, n_rows: int | None = None) -> TreeFile:
    """Return the tree in the content of a file.

    Args:
        content: All of the file.
        options: Those of `pomdp_hier.cli.trees.add_tree_options`.
        n_rows: How many feature rows there are, if that is known: edges and parents between the numbers of items and
            categories do not say by themselves whether a number without children is an item or an empty category.

    Raises:
        HierarchyError: It is no tree.
    """
    content = unpacked(content, "the file", ReaderError)
    kind = kind_of(content)
    if kind.name not in ("text", "npy", "npz", "parquet"):
        raise ReaderError(f"the file is {kind.what}; {kind.remedy}")
    form = options.tree_format
    if form == "auto":
        form = _guessed(content, options)
    if content.startswith(_ARRAYS):
        return TreeFile(_from_array(content, options, form), True)
    return _READERS[form](content, options, n_rows)


# ---- which format


def _guessed(content: bytes, options: argparse.Namespace) -> str:
    """Return the format; a wrong guess ends in an error of the format guessed, never in another tree without a word."""
    ending = file_ending(options.tree)
    if content.startswith(_ARRAYS):
        return "linkage"
    if ending in _NEWICK_ENDINGS:
        return "newick"
    if ending == ".json":
        return "json"
    text = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if content.startswith(_PARQUET) or ending in _TABLE_ENDINGS:
        return _table_form(content, options) or "paths"
    if text.startswith(b"(") or (text.startswith(b"[") and text.rstrip().endswith(b";")):
        return "newick"
    if text.startswith((b"[", b"{")):
        return "json"
    return _table_form(content, options) or "paths"


def _table_form(content: bytes, options: argparse.Namespace) -> str | None:
    """Whether the header is that of edges, parents or BERTopic's topics; all else is left to the reader of paths."""
    rows = _rows(content, options)
    header = [cell.strip().casefold() for cell in next(rows, [])]
    if "child_left_id" in header:
        return "bertopic"
    given = (options.parent_column or "").strip().casefold()
    is_parent = [cell in _PARENTS or (bool(given) and cell == given) for cell in header]
    is_edges = any(cell in _ENDS[1] for cell in header) and (any(is_parent) or any(cell in _ENDS[0] for cell in header))
    if any(is_parent) and is_edges:  # one row a node, whose root has no parent, or one row an edge
        at = is_parent.index(True)
        return "parents" if any(len(row) > at and not row[at].strip() for row in rows) else "edges"
    return "edges" if is_edges else "parents" if any(is_parent) else None


def _rows(content: bytes, options: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Yield the rows of a table as far as they can be told; what is wrong with it is the reader's to say."""
    if content.startswith(_PARQUET):
        columns = _parquet_columns(content, options)
        yield list(columns)
        yield from zip(
            *([("" if cell is None else str(cell)) for cell in cells] for cells in columns.values()), strict=True
        )
        return
    text = "\n".join(line for line in content.decode("utf-8-sig", "replace").splitlines() if line[:1] != "#")
    try:
        table = open_csv(text, ReaderError)
        yield table.columns
        yield from (row for _, row in table.rows)
    except ReaderError:
        return


# ---- reading each


def _shared(options: argparse.Namespace, *, add_root: bool = True) -> dict[str, Any]:
    chosen: dict[str, Any] = {} if options.singletons is None else {"singletons": options.singletons}
    if add_root:
        chosen["add_root"] = options.add_root
    return chosen | {"on_multiple_parents": options.on_multiple_parents, "items_at_inner": options.items_at_inner}


def _from_array(content: bytes, options: argparse.Namespace, form: str) -> "Hierarchy":
    from pomdp_hier.features.loading import load_features
    from pomdp_hier.hierarchy.tree import Hierarchy

    stream = io.BytesIO(content)
    stream.name = _name(options)
    rows = load_features(stream, key=options.tree_key).matrix
    if form not in ("linkage", "children", "edges"):
        raise ReaderError(f"an array holds no {form}; say linkage, children or edges, or leave --tree-format out")
    chosen = _shared(options)
    if form == "linkage":
        return Hierarchy.from_linkage(rows, **{k: v for k, v in chosen.items() if k == "singletons"})
    whole = rows.astype("int64")
    if (whole != rows).any():
        raise ReaderError(f"the array holds {rows.dtype} numbers that are no integers, expected {form}")
    if form == "edges":
        return Hierarchy.from_edges(whole, options.n_items, **chosen)
    del chosen["items_at_inner"]
    return Hierarchy.from_children(whole, options.n_items, **chosen)


def _from_json(content: bytes, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    from pomdp_hier.hierarchy.readers.json_text import parse_json
    from pomdp_hier.hierarchy.tree import Hierarchy

    value = parse_json(content)
    form = options.tree_format
    if form == "linkage" or (form == "auto" and _is_linkage(value)):
        chosen = {} if options.singletons is None else {"singletons": options.singletons}
        return TreeFile(Hierarchy.from_linkage(value, **chosen), True)
    named = isinstance(value, dict) and not value.keys().isdisjoint(("items", "labels", "n_items", "n_leaves"))
    layout: Any = "auto" if form == "json" else form

    def read(n_items: int | None) -> "Hierarchy":
        source = value if isinstance(value, (list, dict)) else content
        return Hierarchy.from_json(source, n_items, form=layout, **_shared(options))

    is_edges = layout == "edges" or (layout == "auto" and _is_edges(value))
    n_rows = n_rows if is_edges and not named else None
    return TreeFile(_with_known_items(read, options.n_items, n_rows), named or not is_edges)


def _from_table(content: bytes, options: argparse.Namespace, n_rows: int | None, form: str) -> TreeFile:
    from pomdp_hier.hierarchy.tree import Hierarchy

    source = _table_source(content, options)

    def read(n_items: int | None) -> "Hierarchy":
        if form == "edges":
            columns = {"child": options.item_column, "parent": options.parent_column}
            return Hierarchy.from_edges(source, n_items, **columns, **_shared(options))
        columns = {"id": options.item_column, "parent": options.parent_column}
        return Hierarchy.from_parents(source, n_items, **columns, **_shared(options))

    return TreeFile(_with_known_items(read, options.n_items, n_rows), False)


def _from_edges(content: bytes, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    is_json = content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"[", b"{"))
    return _from_json(content, options, n_rows) if is_json else _from_table(content, options, n_rows, "edges")


def _from_parents(content: bytes, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    return _from_table(content, options, n_rows, "parents")


def _from_paths(content: bytes, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    from pomdp_hier.hierarchy.tree import Hierarchy

    is_table = (
        file_ending(options.tree) in _TABLE_ENDINGS
        or content.startswith(_PARQUET)
        or any((options.item_column, options.path_column, options.levels))
    )
    tree = Hierarchy.from_paths(
        _table_source(content, options),
        sep=options.sep,
        blank_levels=options.blank_levels,
        form="table" if is_table else "auto",
        ends_in=options.ends_in,
        item=options.item_column,
        path=options.path_column,
        levels=None if options.levels is None else [name.strip() for name in options.levels.split(",")],
        **_shared(options, add_root=False),
    )
    return TreeFile(tree, False)


def _from_newick(content: bytes, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    from pomdp_hier.hierarchy.tree import Hierarchy

    return TreeFile(Hierarchy.from_newick(content, **_shared(options, add_root=False)), False)


def _from_bertopic(content: bytes, options: argparse.Namespace, n_rows: int | None) -> TreeFile:
    from pomdp_hier.hierarchy.tree import Hierarchy

    tree = Hierarchy.from_bertopic(_table_source(content, options), singletons=bool(options.singletons))
    return TreeFile(tree, False)


def _table_source(content: bytes, options: argparse.Namespace) -> Any:
    return _parquet_columns(content, options) if content.startswith(_PARQUET) else content


def _parquet_columns(content: bytes, options: argparse.Namespace) -> dict[str, list[Any]]:
    from pomdp_hier.features._parquet import open_table
    from pomdp_hier.files.memory import memory_available

    columns: dict[str, list[Any]] = open_table(
        io.BytesIO(content), _name(options), None, memory_available()
    ).to_pydict()
    return columns


def _name(options: argparse.Namespace) -> str:
    return "standard input" if options.tree == "-" else str(options.tree)


_READERS: dict[str, Callable[[bytes, argparse.Namespace, int | None], TreeFile]] = {
    "json": _from_json,
    "children": _from_json,
    "nested": _from_json,
    "linkage": _from_json,
    "edges": _from_edges,
    "parents": _from_parents,
    "paths": _from_paths,
    "newick": _from_newick,
    "bertopic": _from_bertopic,
}


def _is_linkage(value: Any) -> bool:
    """Whether rows of four numbers are merges: children lists hold integers, each once."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and len(row) == 4 for row in value):
        return False
    cells = [cell for row in value for cell in row]
    if not all(isinstance(cell, (int, float)) for cell in cells):
        return False
    return any(isinstance(cell, float) for cell in cells) or len(set(cells)) < len(cells)


def _is_edges(value: Any) -> bool:
    """Whether JSON that says no more is taken for edges by `Hierarchy.from_json`."""
    if isinstance(value, dict):
        return "edges" in value
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == 2 for row in value):
        return False
    cells = [cell for row in value for cell in row]
    return not all(type(cell) is int for cell in cells) or len(set(cells)) < len(cells)


# ---- which numbers are items


def _with_known_items(
    read: "Callable[[int | None], Hierarchy]", n_items: int | None, n_rows: int | None
) -> "Hierarchy":
    """Return the tree; read again with the items ``0..n_rows - 1`` alone if its leaves are more than these.

    Leaves that are numbered from 0 on without a gap stay the items, however many rows there are: a row that is missing
    is not to pass for a category that is empty.
    """
    if n_items is not None or n_rows is None:
        return read(n_items)
    import warnings

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tree = read(None)
    numbers = _numbers(range(tree.n_nodes) if tree.labels is None else tree.labels)
    items = set(_numbers(tree.item_labels))
    if items == set(range(len(items))) or None in items or not set(range(n_rows)) <= set(numbers):
        for warning in told:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return tree
    return read(n_rows)


def _numbers(labels: Any) -> list[int | None]:
    """Return the number that each id is or writes, None for one that is none."""
    return [
        label
        if type(label) is int
        else int(label)
        if isinstance(label, str) and label.isascii() and label.isdigit() and str(int(label)) == label
        else None
        for label in labels
    ]
