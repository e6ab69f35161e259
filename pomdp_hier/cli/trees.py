"""Hierarchies on the command line: built-in ones by name, files by their format."""

import argparse
import sys
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pomdp_hier.cli import tree_formats
from pomdp_hier.errors import HierarchyError, ReaderError
from pomdp_hier.files.csv_text import open_csv
from pomdp_hier.files.kinds import text_of

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = [
    "add_tree_options",
    "item_ids",
    "plain_label",
    "read_names",
    "read_tree",
    "read_tree_file",
]


def add_tree_options(parser: argparse.ArgumentParser) -> None:
    """Return the options of every command that reads a tree file."""
    add = parser.add_argument_group("how to read the tree").add_argument
    add(
        "--tree-format",
        choices=tree_formats.FORMATS,
        default="auto",
        metavar="FORMAT",
        help=f"one of {', '.join(tree_formats.FORMATS[1:])}; json tells edges, children lists, nested objects and "
        "linkages apart; linkage is SciPy's, in .npy, .npz or JSON; edges also a table with parent and child, parents "
        "one with id and parent, paths lines or a table with an item and its path or one column a level (default: "
        "told by the ending and the content)",
    )
    add("--tree-key", metavar="NAME", help="the array of an .npz that holds the linkage")
    add("--item-column", metavar="NAME", help="the table's column of ids (default: one that is called so)")
    add("--parent-column", metavar="NAME", help="the table's column of parents (default: parent)")
    add("--path-column", metavar="NAME", help="the table's column of paths (default: path, category)")
    add("--levels", metavar="NAMES", help="the table's columns of levels, with commas between: --levels l1,l2,l3")
    add("--sep", metavar="TEXT", help="what parts the categories of a path (default: > or | or /)")
    add(
        "--blank-levels",
        choices=("error", "skip"),
        default="error",
        help="a blank level before a filled one: refuse it, or skip it (default: error)",
    )
    add(
        "--ends-in",
        choices=("item", "category"),
        help="whether a path ends in the item itself (default where items have no column) or in its category",
    )
    add("--n-items", type=int, metavar="N", help="the numbers below N are the items (default: the leaves)")
    add(
        "--singletons",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the items of a pure item list are leaf clusters of their own (default: for a linkage)",
    )
    add("--add-root", action="store_true", help="hang several roots under a new one instead of refusing them")
    add(
        "--on-multiple-parents",
        choices=("error", "first", "duplicate"),
        default="error",
        help="what to do with a node under several parents: refuse it, keep it under the first, or copy it under "
        "each (default: error)",
    )
    add(
        "--items-at-inner",
        choices=("leaf", "error"),
        default="leaf",
        help="an item that has nodes below: make it a leaf of its own there, or refuse it (default: leaf)",
    )
    add("--names", metavar="CSV", help="a table with the columns id and name, to show names instead of ids")


def read_tree(options: argparse.Namespace) -> "Hierarchy":
    """Return the hierarchy in the file ``options.tree``; ``-`` is standard input.

    Raises:
        HierarchyError: The file cannot be read or is no tree; the message starts with its name.
    """
    return read_tree_file(options).tree


def read_tree_file(options: argparse.Namespace, n_rows: int | None = None) -> "tree_formats.TreeFile":
    """Return the same, with what the file says about the items; ``n_rows`` is the number of feature rows if known.

    Raises:
        HierarchyError: As `read_tree`.
    """
    content = _read_bytes(options.tree)
    with _named(options.tree):
        return tree_formats.read_content(content, options, n_rows)


def item_ids(hierarchy: "Hierarchy") -> tuple[Hashable, ...]:
    """Return the id of each item: what the tree's file calls it, or its number."""
    return hierarchy.item_labels


def plain_label(label: Hashable) -> str:
    """Return what a node is called in a table: a path in one string.

    Example:
        >>> plain_label(("Home", "Bath")), plain_label(7)
        ('Home / Bath', '7')
    """
    return " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def read_names(path: str | None) -> dict[str, str]:
    """Return the names by id of a table with the columns ``id`` and ``name``; none without a path.

    Raises:
        ReaderError: The file cannot be read, or has no such columns.
    """
    if path is None:
        return {}
    table = open_csv(text_of(_read_bytes(path, "a table of names"), path, ReaderError), ReaderError, name=path)
    if not {"id", "name"} <= set(table.columns):
        raise ReaderError(f"{path}: no columns id and name in its first line; give a table that has both")
    id_at, name_at = table.columns.index("id"), table.columns.index("name")
    return {row[id_at]: row[name_at] for _, row in table.rows}


def _read_bytes(path: str, what: str = "the path of a tree file") -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise ReaderError("standard input is closed; give a path instead of -")
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}); give {what}") from error


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Put the file's name before what is wrong with its tree."""
    try:
        yield
    except HierarchyError as error:
        raise type(error)(f"{'standard input' if path == '-' else path}: ", *error.parts) from error
