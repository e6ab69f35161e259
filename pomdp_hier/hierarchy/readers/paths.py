"""Trees of category paths.

A category is identified by its whole path, not by its name. All paths start at an implicit root, labelled ``()``.
A bare path ends in its item (``Birds > Hawk``); beside an item id, or under ``ends_in="category"``, it ends in the
category that holds the item.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import HierarchyError, Note, ReaderError, Setting
from pomdp_hier.hierarchy.arrays import as_text
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.path_rows import Path, PathFormat, PathRows, path_rows, separator, splitter
from pomdp_hier.hierarchy.readers.tables import TreeArrays, is_missing

_MOST_LEVELS = 1_000


def read_paths(source: Any, join: Join, how: PathFormat) -> TreeArrays:
    """Return the tree arrays of category paths."""
    rows = path_rows(source, how)
    if not rows.paths:
        raise ReaderError("paths: got none; expected one per row. Give at least one.")
    rows.notes += _in_one_spelling(rows, rows.end_in_category(how))
    arrays = _tree_of_items(rows, join) if rows.end_in_category(how) else _tree_of_paths(rows, join, how)
    arrays.notes[:0] = rows.notes
    if rows.n_blank:
        arrays.notes.insert(0, f"empty segments dropped from {counted(rows.n_blank, 'path')}")
    return arrays


def _in_one_spelling(rows: PathRows, in_category: bool) -> list[Note]:
    """Write categories that differ only in case in the first spelling; return the warning."""
    distinct = dict.fromkeys(rows.paths)
    end = None if in_category else -1
    names = {name for path in distinct for name in path[:end]}
    if not in_category:  # a category may be a line of its own
        names |= {path[-1] for path in distinct if path[-1] not in names and path[-1].casefold() in names}
    if len({name.casefold() for name in names}) == len(names):
        return []
    first: dict[Path, str] = {}
    for path in distinct:
        for level, name in enumerate(path[:end]):
            first.setdefault(tuple(map(str.casefold, path[: level + 1])), name)
    written = {
        path: tuple(first.get(tuple(map(str.casefold, path[: level + 1])), name) for level, name in enumerate(path))
        for path in distinct
    }
    changed = [
        (old, new) for path, spelt in written.items() for old, new in zip(path, spelt, strict=True) if old != new
    ]
    if not changed:
        return []
    rows.paths = [written[path] for path in rows.paths]
    pairs = [f"{brief(old)} as {brief(new)}" for old, new in dict.fromkeys(changed)]
    some = ", ".join(pairs[:3]) + (", ..." if len(pairs) > 3 else "")
    return [f"{counted(len(pairs), 'category', 'categories')} written in one spelling: {some}"]


class _Categories:
    """Nodes of a tree of paths; every prefix is a node, and node 0 is the implicit root."""

    def __init__(self) -> None:
        self.ids: list[Hashable] = [()]
        self.paths: list[Path] = [()]
        self.below: dict[tuple[int, str], int] = {}
        self.items: dict[Hashable, int] = {}
        self.links: list[tuple[int, int]] = []

    def place(self, path: Path) -> int:
        """Return the node of a path; a new node is added with the nodes above it."""
        if len(path) > _MOST_LEVELS:
            raise ReaderError(
                f"paths: got one of {len(path):,} levels, {brief(path[:3])} and so on; expected at most "
                f"{_MOST_LEVELS:,}. Choose another separator with ",
                Setting("sep"),
                ", or give the tree as edges.",
            )
        node = 0
        for segment in path:
            child = self.below.get((node, segment))
            if child is None:
                child = self.below[node, segment] = len(self.ids)
                self.paths.append((*self.paths[node], segment))
                self.ids.append(self.paths[-1])
                self.links.append((node, child))
            node = child
        return node

    def add_item(self, item: Hashable, category: int) -> None:
        node = self.items.setdefault(item, len(self.ids))
        if node == len(self.ids):
            self.ids.append(item)
            self.paths.append(())
        self.links.append((category, node))

    def tree(self, join: Join) -> TreeArrays:
        above, below = zip(*self.links, strict=True)
        return tree_of_links(LinkedNodes(self.ids, list(above), list(below), "row"), join)


def _tree_of_items(rows: PathRows, join: Join) -> TreeArrays:
    """Return the tree of one item per row, in the category of its path."""
    categories = _Categories()
    items = list(range(len(rows.paths))) if rows.items is None else rows.items
    for row, (path, item) in enumerate(zip(rows.paths, items, strict=True), 1):
        if is_missing(item) or (isinstance(item, str) and not item):
            raise ReaderError(f"row {row}: got no item id, with the path {brief(path)}; expected one per row.")
        try:
            categories.add_item(item, categories.place(path))
        except TypeError:
            raise ReaderError(f"row {row}: got the item id {brief(item)}; expected text or a number.") from None
    if join.items_at_inner == "error":
        divided = {path[:end] for path in set(rows.paths) for end in range(len(path))}
        at_inner = [item for path, item in zip(rows.paths, items, strict=True) if path in divided]
        if at_inner:
            raise HierarchyError(
                f"items: got {counted(len(at_inner), 'item')} in divided categories, {listed(at_inner)}; expected "
                "undivided ones. To make each a leaf of its own there, pass ",
                Setting("items_at_inner", "leaf"),
                ".",
            )
    if join.items is None and join.n_items is None:
        join = replace(join, items=list(dict.fromkeys(items)))
    elif rows.items is not None and rows.is_text:
        join = text_ids(join)
    return categories.tree(replace(join, empty_leaves=False))


def _tree_of_paths(rows: PathRows, join: Join, how: PathFormat) -> TreeArrays:
    """Return the tree in which each path is a node; paths that no other path extends are items."""
    if len(set(rows.paths)) < len(rows.paths):
        seen: dict[Path, int] = {}
        row, first = next((row, seen[p]) for row, p in enumerate(rows.paths, 1) if seen.setdefault(p, row) != row)
        if join.on_multiple_parents == "error":
            raise HierarchyError(
                f"row {row}: got the path of row {first} again, {brief(' / '.join(rows.paths[row - 1]))}; expected "
                "distinct items. If paths name the category of one item per row, pass ",
                Setting("ends_in", "category"),
                ".",
            )
    categories = _Categories()
    for path in rows.paths:
        categories.place(path)
    names: dict[Hashable, Hashable] = {}
    if rows.items is not None:
        names = dict(zip(rows.paths, rows.items, strict=True))
    if join.items is not None and rows.items is None:
        split = splitter(separator([name for name in join.items if isinstance(name, str)], how), how)
        join = replace(join, items=[split(name)[0] if isinstance(name, str) else _as_path(name) for name in join.items])
    elif join.items is not None:
        by_id = {as_text("an item", item): path for path, item in names.items()}
        join = replace(join, items=[by_id.get(as_text("items", item), item) for item in join.items])
    arrays = categories.tree(replace(join, empty_leaves=False))
    if names and arrays.labels is not None:
        n_items = arrays.n_items
        arrays.labels = [
            names.get(label, label) if node < n_items else label for node, label in enumerate(arrays.labels)
        ]
    return arrays


def _as_path(name: object) -> Hashable:
    return tuple(name) if isinstance(name, (list, tuple)) else name
