"""An edited tree in the format of its source: tables keep their other columns and their row order."""

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pomdp_hier._io.formats import open_csv
from pomdp_hier._text import brief
from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy.node_names import NodeNames, label_text
from pomdp_hier.hierarchy.readers.path_rows import (
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
from pomdp_hier.hierarchy.readers.tables import (
    Table,
    comment_mark,
    is_missing,
    links_of,
    marks_of_no_parent,
    parent_roles,
    table_of_csv,
)
from pomdp_hier.hierarchy.tree import Hierarchy

FORMATS = ("newick", "parents", "edges", "paths")
_MARK = "\ufeff"


def written_like(tree: Hierarchy, source: str, form: str, read: Callable[[str], Hierarchy], /, **columns: Any) -> str:
    """Return a tree as text in the format of its source: a table with its other cells, or canonical Newick.

    Only the parent or path cells of moved nodes change. Removed nodes lose their row; a new node gets one, with blanks
    in the other columns. The text is read again and compared with the tree before it is returned.
    """
    if form not in FORMATS:
        raise ReaderError(f"form: got {brief(form)}; expected one of {', '.join(FORMATS)}. Write the tree as JSON.")
    text = source.removeprefix(_MARK)
    mark = source[: len(source) - len(text)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HierarchyWarning)  # the first reading of the source has given them
        if form == "newick":
            written = _newick(tree)
        elif form == "paths":
            written = paths_like(tree, text, PathFormat(**columns))
        else:
            written = links_like(tree, text, form, columns, read(text))
        _check_same(tree, mark + written, read)
    return mark + written


def _newick(tree: Hierarchy) -> str:
    try:
        return tree.to_newick() + "\n"
    except ParameterError:
        raise HierarchyError(
            "target: got a tree whose items share names, or have none; expected one distinct name per item in Newick. "
            "Write .json."
        ) from None


def _check_same(tree: Hierarchy, written: str, read: Callable[[str], Hierarchy]) -> None:
    """Raise HierarchyError unless the text reads as the same items below the same clusters, in any order."""
    try:
        again = read(written)
    except HierarchyError as error:
        raise HierarchyError(
            "target: got a tree, which cannot be read again from this format (", *error.parts, "). Write .json."
        ) from error
    found = []
    for one in (tree, again):
        names = NodeNames(one, last_part=True)
        below = [hash(names[item]) for item in range(one.n_items)] + [0] * (one.n_nodes - one.n_items)
        for node in reversed(one._reading_order().tolist()):
            if node != one.root:
                below[one.parent[node]] += below[node]
        found.append(Counter(below))
    if found[0] != found[1]:
        raise HierarchyError("target: got a tree, which would be read as another one from this format. Write .json.")


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table in delimited text: its cells, and the original lines of each row."""

    table: Table
    delimiter: str
    head: str
    lines: list[str]
    rest: str

    @classmethod
    def of(cls, text: str, delimiter: str | None = None, comment: str | None = "#", header: bool = True) -> "Sheet":
        found = open_csv(text, ReaderError, delimiter=delimiter, comment=comment_mark(text, comment))
        rows = list(found.rows)
        table = table_of_csv(found.columns, [row for _, row in rows], header)
        lines = list(io.StringIO(text, newline=""))
        ends = [found.header_end, *(end for end, _ in rows)]
        if not header:
            ends.insert(0, 0)
        return cls(
            table,
            found.delimiter,
            "".join(lines[: ends[0]]),
            ["".join(lines[start:end]) for start, end in pairwise(ends)],
            "".join(lines[ends[-1] :]),
        )

    def changed(self, row: int, cells: dict[int, str]) -> str:
        """Return a row's lines with other cells, quoted as before or where necessary."""
        line = self.lines[row]
        blank = re.match(r"(?:[^\S\r\n]*(?:\r\n|\n|\r))*", line)
        position = 0 if blank is None else blank.end()
        cell = re.compile(rf'"(?:[^"]|"")*+"|[^{re.escape(self.delimiter)}\r\n]*+')
        written = [line[:position]]
        for at in range(len(self.table.columns)):
            found = cell.match(line, position)
            end = position if found is None else found.end()
            old = line[position:end]
            if at in cells:
                new = self._quoted(cells[at], always=old.startswith('"'))
                bare = old.strip()
                old = old.replace(bare, new, 1) if bare and not old.startswith('"') else new
            written.append(old + line[end : end + 1] if at + 1 < len(self.table.columns) else old + line[end:])
            position = end + 1
        return "".join(written)

    def _quoted(self, cell: str, always: bool = False) -> str:
        if always or any(mark in cell for mark in (self.delimiter, '"', "\r", "\n")):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    def text(self, lines: Sequence[str], new: Sequence[dict[int, str]] = ()) -> str:
        """Return the table with these lines and the new rows at its end."""
        end = "\r\n" if "\r\n" in self.head else "\n"
        body = self.head + "".join(lines)
        if not new:
            return body + self.rest
        rows = [[cells.get(at, "") for at in range(len(self.table.columns))] for cells in new]
        stream = io.StringIO()
        csv.writer(stream, delimiter=self.delimiter, lineterminator=end).writerows(rows)
        if body.endswith(("\n", "\r")):
            return body + stream.getvalue() + self.rest
        return body + end + stream.getvalue().removesuffix(end)


KEPT = object()
"""The change of a row that stays unchanged."""
REMOVED = object()
"""The change of a row that is removed."""


def link_changes(
    tree: Hierarchy, ids: Sequence[Hashable], links: Sequence[tuple[Hashable, Hashable]], ids_before: Sequence[Hashable]
) -> tuple[list[Any], list[tuple[Hashable, Hashable]]]:
    """Return the new parent of each link's child, `KEPT` or `REMOVED`, and the links of new nodes."""
    above = {
        name: None if parent < 0 else ids[parent]
        for name, parent in zip(ids, tree.parent.tolist(), strict=True)
        if name is not None
    }
    removed = set(ids_before) - set(ids)
    below: dict[Hashable, list[Hashable]] = {}
    for child, parent in links:
        if child not in above:
            below.setdefault(parent, []).append(child)
    stack = list(removed)
    while stack:
        empty = below.pop(stack.pop(), [])
        removed.update(empty)
        stack += empty
    first: dict[Hashable, Hashable] = {}
    changes: list[Any] = []
    for child, parent in links:
        is_first = first.setdefault(child, parent) == parent
        if child in above and is_first and (above[child] or "") != (parent or ""):
            changes.append(above[child])
        elif child in removed or (parent in removed and not is_first):
            changes.append(REMOVED)
        else:  # also a further parent, of which the reader keeps the first
            changes.append(KEPT)
    return changes, [(child, parent) for child, parent in above.items() if child not in first and parent is not None]


def links_like(tree: Hierarchy, source: str, form: str, columns: dict[str, Any], before: Hierarchy) -> str:
    """Return a tree as a table of parents or of edges, with the other cells of its source."""
    sheet = Sheet.of(source, columns.get("delimiter"), header=columns.get("header", True))
    table = sheet.table
    rows: Sequence[int] = range(len(table.rows))
    if form == "parents":
        child_at, parent_at = parent_roles(table, columns.get("id"), columns.get("parent"))
        marks = marks_of_no_parent(table, child_at, parent_at)
    else:
        rows, parent_at, child_at = links_of(table, columns.get("parent"), columns.get("child"))
        marks = {}
    ids, ids_before = (ids_of(one, f"a table of {form}") for one in (tree, before))
    cells = [(table.rows[row][child_at].strip(), table.rows[row][parent_at].strip()) for row in rows]
    links = [(child, marks.get(parent, parent)) for child, parent in cells]
    if form == "parents":  # a root may have itself as parent
        links = [(child, None if parent == child else parent) for child, parent in links]
    changes, new = link_changes(tree, ids, links, ids_before)
    # The mark of a root's parent: nothing, 0, -1 or a word.
    none = next((parent for _, parent in cells if not marks.get(parent, parent)), "")
    if None in changes and form == "edges":
        raise HierarchyError("target: got a node below a root without an id; expected an id in edges. Write .json.")
    lines = list(sheet.lines)
    for row, change in zip(rows, changes, strict=True):
        if change is REMOVED:
            lines[row] = ""
        elif change is not KEPT:
            lines[row] = sheet.changed(row, {parent_at: none if change is None else change})
    if new and len(rows) < len(lines):
        raise HierarchyError("target: got new clusters; expected none in triples. Write .json.")
    return sheet.text(lines, [{child_at: str(child), parent_at: str(parent)} for child, parent in new])


def ids_of(tree: Hierarchy, what: str, items: bool = False) -> list[str | None]:
    """Return each node's id as text, None for a root that has none."""
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    ids = [None if label is None else label_text(label) for label in labels]
    known = [name for name in (ids[: tree.n_items] if items else ids) if name is not None]
    duplicate = next((name for name, times in Counter(known).items() if times > 1), None)
    if duplicate is not None:
        raise HierarchyError(
            f"target: got two nodes with the id {brief(duplicate)}; expected distinct ids in {what}. Write .json."
        )
    return ids


def paths_like(tree: Hierarchy, text: str, how: PathFormat) -> str:
    """Return a tree as a table or lines of paths, with the other cells and lines of its source."""
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
                    f"target: got {len(names)} levels for item {brief(item)}; expected at most {len(levels)}. "
                    "Write .json."
                )
            else:
                cells = sheet.table.rows[row]
                filled = [place for place in levels if not is_missing(cells[place]) and cells[place].strip()]
                filled = filled if len(filled) == len(names) else levels  # keeps a skipped level
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
    """Return the new path of each row whose item or category has moved, ``None`` for a removed one."""
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
                f"target: got two categories with the path {brief(label_text(paths[node]))}; expected distinct paths. "
                "Write .json."
            )
    changes: dict[int, list[str] | None] = {}
    first_paths: dict[Hashable, tuple[str, ...]] = {}
    for row, (key, old) in enumerate(zip(keys, rows.paths, strict=True)):
        node = node_of.get(key)
        if node is not None and not paths[node]:
            raise HierarchyError(
                f"target: got item {brief(key)} below no category; expected one in paths. Write .json."
            )
        if first_paths.setdefault(key, old) == old and (node is None or paths[node] != old):
            changes[row] = None if node is None else list(paths[node])
    return changes


def _joiner(paths: Sequence[str], how: PathFormat) -> Callable[[Sequence[str]], str]:
    """Return a function from names to a path in the syntax of the given paths."""
    sep = separator(paths, how)
    bare = sep.strip() or sep
    spaced = f" {bare} " if any(f" {bare} " in path for path in paths) else bare

    def joined(names: Sequence[str]) -> str:
        if how.escape and how.escape != bare:
            names = [name.replace(how.escape, how.escape * 2).replace(bare, how.escape + bare) for name in names]
        return spaced.join(names)

    return joined
