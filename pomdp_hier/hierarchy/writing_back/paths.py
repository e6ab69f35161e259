"""Paths of categories after a tree has changed: in a column, in one column a level, or in lines."""

from collections.abc import Callable, Hashable, Sequence

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.readers.paths import (
    PathFormat,
    PathRows,
    content_lines,
    ids_first,
    path_columns,
    rows_of_bare_lines,
    rows_of_table,
    separator,
    source_kind,
)
from pomdp_hier.hierarchy.readers.tables import is_missing
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import NodeNames, label_text, shown
from pomdp_hier.hierarchy.writing_back.links import ids_of
from pomdp_hier.hierarchy.writing_back.sheet import Sheet

__all__ = ["paths_like"]


def paths_like(tree: Hierarchy, text: str, how: PathFormat) -> str:
    """Return a tree as a table or lines of paths, with the cells and lines that its source has.

    Args:
        tree: The tree.
        text: The source.
        how: What the reader was told of the paths.

    Raises:
        HierarchyError: Paths cannot hold the tree.
    """
    kind = source_kind(text, how)
    if kind == "table":
        sheet = Sheet.of(text, how.delimiter, how.comment, how.header)
        _, path_at, levels = path_columns(sheet.table, how)
        rows = rows_of_table(sheet.table, how)
        joined = _joiner([row[path_at] for row in sheet.table.rows], how) if path_at is not None else None
        lines = list(sheet.lines)
        for row, names in _new_paths(tree, rows, how).items():
            if names is None:
                lines[row] = ""
            elif joined is not None and path_at is not None:
                lines[row] = sheet.changed(row, {path_at: joined(names)})
            elif len(names) > len(levels):
                item = rows.paths[row][-1] if rows.items is None else rows.items[row]
                raise HierarchyError(
                    f"item {shown(item)} has {len(names)} levels now, and the table {len(levels)}; write .json"
                )
            else:
                cells = sheet.table.rows[row]
                filled = [place for place in levels if not is_missing(cells[place]) and cells[place].strip()]
                filled = filled if len(filled) == len(names) else levels  # where a level was skipped, it still is
                lines[row] = sheet.changed(row, dict.fromkeys(levels, "") | dict(zip(filled, names, strict=False)))
        return sheet.text(lines)
    lines = text.splitlines(keepends=True)
    content = content_lines(text, how.comment)
    paths = [path for _, path in ids_first(content)] or content
    changes, joined = _new_paths(tree, rows_of_bare_lines(content, how), how), _joiner(paths, how)
    places = iter([at for at, line in enumerate(lines) if content_lines(line, how.comment)])
    for row, (place, line, path) in enumerate(zip(places, content, paths, strict=True)):
        if row in changes:
            names = changes[row]
            start = line[: len(line) - len(path)]
            lines[place] = "" if names is None else start + joined(names) + lines[place][len(line) :]
    return "".join(lines)


def _new_paths(tree: Hierarchy, rows: PathRows, how: PathFormat) -> dict[int, list[str] | None]:
    """Return the new path of each row whose item or category hangs elsewhere, ``None`` for one that is gone.

    Raises:
        HierarchyError: Two categories would have one path, or an item none.
    """
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    in_category = rows.end_in_category(how)
    if in_category:
        ids_of(tree, "a table of paths", items=True)
    node_of = {label: node for node, label in reversed(list(enumerate(labels)))}
    names = list[str](NodeNames(tree, last_part=True))
    keys: Sequence[Hashable] = range(len(rows.paths)) if in_category else rows.paths
    if rows.items is not None:
        keys = [item if item in node_of else path for item, path in zip(rows.items, rows.paths, strict=True)]
        for key, path in zip(keys, rows.paths, strict=True):
            if not in_category and key in node_of:
                names[node_of[key]] = path[-1]
    paths = list[tuple[str, ...]]([()] * tree.n_nodes)
    seen: dict[tuple[str, ...], int] = {}
    for node in tree._reading_order().tolist():
        above, is_item = int(tree.parent[node]), node < tree.n_items
        if above >= 0:
            paths[node] = paths[above] if in_category and is_item else (*paths[above], names[node])
        if not (in_category and is_item) and seen.setdefault(paths[node], node) != node:
            raise HierarchyError(
                f"two categories would have the path {shown(label_text(paths[node]))}, which paths cannot hold; "
                "write .json"
            )
    changes: dict[int, list[str] | None] = {}
    told: dict[Hashable, tuple[str, ...]] = {}
    for row, (key, old) in enumerate(zip(keys, rows.paths, strict=True)):
        node = node_of.get(key)
        if node is not None and not paths[node]:
            raise HierarchyError(f"item {shown(key)} hangs under no category now, which paths cannot hold; write .json")
        if told.setdefault(key, old) == old and (node is None or paths[node] != old):
            changes[row] = None if node is None else list(paths[node])
    return changes


def _joiner(paths: Sequence[str], how: PathFormat) -> Callable[[Sequence[str]], str]:
    """Return a function from names to a path as these are written: their separator, spaces around it, and escape."""
    sep = separator(paths, how)
    bare = sep.strip() or sep
    spaced = f" {bare} " if any(f" {bare} " in path for path in paths) else bare

    def joined(names: Sequence[str]) -> str:
        if how.escape and how.escape != bare:
            names = [name.replace(how.escape, how.escape * 2).replace(bare, how.escape + bare) for name in names]
        return spaced.join(names)

    return joined
