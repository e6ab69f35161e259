"""Hierarchies on the command line: built-in ones by name, files by their format."""

import argparse
import csv
import sys
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier.errors import HierarchyError, ReaderError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["add_tree_options", "item_ids", "read_names", "read_tree"]

_FORMATS = ("auto", "json", "edges", "children", "linkage")
_BY_SUFFIX = {".npy": "linkage", ".npz": "linkage"}


def add_tree_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that reads a tree file."""
    parser.add_argument(
        "--tree-format",
        choices=_FORMATS,
        default="auto",
        help="how to read the tree: json tells edges from children lists by itself, linkage is a SciPy linkage "
        "matrix in .npy or .npz (default: linkage for those two, else json)",
    )
    parser.add_argument("--tree-key", metavar="NAME", help="the array of an .npz that holds the linkage")
    parser.add_argument(
        "--singletons",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the items of a pure item list are leaf clusters of their own (default: for a linkage)",
    )
    parser.add_argument(
        "--add-root", action="store_true", help="hang several roots under a new one instead of refusing them"
    )
    parser.add_argument(
        "--on-multiple-parents",
        choices=("error", "first", "duplicate"),
        default="error",
        help="what to do with a node under several parents: refuse it, keep it under the first, or copy it under "
        "each (default: error)",
    )
    parser.add_argument(
        "--names",
        metavar="CSV",
        help="a table with the columns id and name, to show names instead of ids",
    )


def read_tree(options: argparse.Namespace) -> "Hierarchy":
    """The hierarchy in the file ``options.tree``; ``-`` is standard input.

    Raises:
        HierarchyError: The file cannot be read or is no tree; the message starts with its name.
    """
    form = options.tree_format
    if form == "auto":
        form = _BY_SUFFIX.get(Path(options.tree).suffix.lower(), "json")
    chosen: dict[str, Any] = {} if options.singletons is None else {"singletons": options.singletons}
    if form == "linkage":
        return _from_linkage(options, chosen)
    content = _read_bytes(options.tree)
    with _named(options.tree):
        from pomdp_hier.hierarchy.tree import Hierarchy

        return Hierarchy.from_json(
            content,
            form="auto" if form == "json" else form,
            add_root=options.add_root,
            on_multiple_parents=options.on_multiple_parents,
            **chosen,
        )


def _from_linkage(options: argparse.Namespace, chosen: dict[str, Any]) -> "Hierarchy":
    from pomdp_hier.features.loading import load_features
    from pomdp_hier.hierarchy.tree import Hierarchy

    linkage = load_features(options.tree, key=options.tree_key).matrix
    with _named(options.tree):
        return Hierarchy.from_linkage(linkage, **chosen)


def item_ids(hierarchy: "Hierarchy") -> tuple[Hashable, ...]:
    """The id of each item: what the tree's file calls it, or its number."""
    if hierarchy.labels is None:
        return tuple(range(hierarchy.n_items))
    return hierarchy.labels[: hierarchy.n_items]


def read_names(path: str | None) -> dict[str, str]:
    """The names by id of a table with the columns ``id`` and ``name``; none without a path.

    Raises:
        ReaderError: The file cannot be read, or has no such columns.
    """
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text)
            if not {"id", "name"} <= set(rows.fieldnames or ()):
                raise ReaderError(f"{path}: no columns id and name in its first line; give a table that has both")
            return {row["id"]: row["name"] or "" for row in rows}
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}); give a table of names") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReaderError(f"{path}: not a CSV table in UTF-8 ({error})") from error


def _read_bytes(path: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise ReaderError("standard input is closed; give a path instead of -")
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}); give the path of a tree file") from error


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Puts the file's name before what is wrong with its tree."""
    try:
        yield
    except HierarchyError as error:
        raise type(error)(f"{'standard input' if path == '-' else path}: {error}") from error
