"""A changed tree in the format that it came in: the rows, ids and columns of its source, with new places."""

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ReaderError
from pomdp_hier.files.csv_text import open_csv
from pomdp_hier.hierarchy.json_like import GONE, KEPT, NotHeldError, json_like, link_changes
from pomdp_hier.hierarchy.readers.paths import (
    PathFormat,
    PathRows,
    content_lines,
    ids_first,
    path_columns,
    rows_of_lines,
    rows_of_table,
    separator,
    source_kind,
)
from pomdp_hier.hierarchy.readers.roles import links_of, marks_of_no_parent, parent_roles
from pomdp_hier.hierarchy.readers.tables import Table
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.twigs import newick_like
from pomdp_hier.hierarchy.wording import label_text, shown

__all__ = ["FORMATS", "written_like"]

FORMATS = ("json", "children", "nested", "newick", "parents", "edges", "paths")
_MARK = "\ufeff"


def written_like(tree: Hierarchy, source: str, form: str, read: Callable[[str], Hierarchy], /, **columns: Any) -> str:
    """Return a tree as text of the format that it came in: of a tree that is as it was, the same text.

    A row, an object or a length stays what it was but for where it says that its node hangs. Nodes that are gone lose
    theirs; new ones get one, with blanks in the other columns. What is returned has been read again and is this tree;
    JSON whose form cannot hold it is written as `Hierarchy.to_json` does.

    Args:
        tree: The tree, whose labels are those of the source.
        source: The text that it was read from.
        form: One of ``json``, ``children``, ``nested``, ``newick``, ``parents``, ``edges`` and ``paths``.
        read: Reads such a text, with the options that the source was read with.
        **columns: What the reader was told of the table: ``id`` or ``item``, ``parent``, ``child``, ``path``,
            ``levels``, ``sep``, and whether paths are in a table, as ``form="table"``.

    Raises:
        ReaderError: For another format.
        HierarchyError: The format cannot hold the tree: two nodes of one id, or more levels than the table has columns.

    Example:
        >>> text = "id,parent,price\\nall,0,\\ntea,all,\\nsalt,tea,2\\nmint,tea,3\\noat,all,4\\n"
        >>> labels = Hierarchy.from_parents(text).labels
        >>> labels
        ('salt', 'mint', 'oat', 'all', 'tea')
        >>> moved = Hierarchy([3, 4, 4, -1, 3], 3, labels=labels)
        >>> print(written_like(moved, text, "parents", Hierarchy.from_parents), end="")
        id,parent,price
        all,0,
        tea,all,
        salt,all,2
        mint,tea,3
        oat,tea,4
    """
    if form not in FORMATS:
        raise ReaderError(f"form is {form!r}; a tree can be written back as {', '.join(FORMATS)}")
    text = source.removeprefix(_MARK)
    mark = source[: len(source) - len(text)]
    is_json = form in ("json", "children", "nested") or (form == "edges" and text.lstrip().startswith(("[", "{")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HierarchyWarning)  # what the reader says of the source has been said
        try:
            if is_json:
                written = json_like(tree, text, form, read)
            elif form == "newick":
                written = newick_like(tree, text)
            elif form == "paths":
                written = _paths(tree, text, PathFormat(**columns))
            else:
                written = _links(tree, _Sheet.of(text), form, columns, read(text))
            _check_same(tree, mark + written, read)
        except (NotHeldError, HierarchyError):
            if not is_json:
                raise
            written = text if tree == read(text) else tree.to_json() + "\n"
    return mark + written


def _check_same(tree: Hierarchy, written: str, read: Callable[[str], Hierarchy]) -> None:
    """Raise HierarchyError if what is written has not the same items below the same clusters, in any order."""
    try:
        again = read(written)
    except HierarchyError as error:
        raise HierarchyError(f"what would be written could not be read again ({error}); write .json") from error
    found = []
    for one in (tree, again):
        labels: Sequence[Hashable] = range(one.n_nodes) if one.labels is None else one.labels
        below = [hash((_last(label),)) for label in labels[: one.n_items]] + [0] * (one.n_nodes - one.n_items)
        for node in reversed(one._reading_order().tolist()):
            if node != one.root:
                below[one.parent[node]] += below[node]
        found.append(Counter(below))
    if found[0] != found[1]:
        raise HierarchyError("what would be written would be read as another tree; write .json")


@dataclass(frozen=True, eq=False)
class _Sheet:
    """A table in delimited text: its cells, and the lines of each row as they stand there."""

    table: Table
    delimiter: str
    head: str
    lines: list[str]
    rest: str

    @classmethod
    def of(cls, text: str, delimiter: str | None = None, comment: str | None = None) -> "_Sheet":
        found = open_csv(text, ReaderError, delimiter=delimiter, comment=comment)
        rows = list(found.rows)
        lines = list(io.StringIO(text, newline=""))
        ends = [found.header_end, *(end for end, _ in rows)]
        return cls(
            Table(found.columns, [row for _, row in rows], is_text=True),
            found.delimiter,
            "".join(lines[: ends[0]]),
            ["".join(lines[start:end]) for start, end in pairwise(ends)],
            "".join(lines[ends[-1] :]),
        )

    def changed(self, row: int, cells: dict[int, str]) -> str:
        """Return a row's lines with other cells, in quotes where the old ones are or where they have to be."""
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
        """Return the table with these rows, and new ones at its end."""
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


def _links(tree: Hierarchy, sheet: _Sheet, form: str, columns: dict[str, Any], before: Hierarchy) -> str:
    """Return a table of nodes with their parents, or of edges."""
    table = sheet.table
    rows: Sequence[int] = range(len(table.rows))
    if form == "parents":
        child_at, parent_at = parent_roles(table, columns.get("id"), columns.get("parent"))
        marks = marks_of_no_parent(table, child_at, parent_at)
    else:
        rows, parent_at, child_at = links_of(table, columns.get("parent"), columns.get("child"))
        marks = {}
    ids, ids_before = (_ids(one, f"a table of {form}") for one in (tree, before))
    cells = [(table.rows[row][child_at].strip(), table.rows[row][parent_at].strip()) for row in rows]
    links = [(child, marks.get(parent, parent)) for child, parent in cells]
    changes, new = link_changes(tree, ids, links, ids_before)
    # What stands in place of a root's parent: nothing, 0, -1 or a word.
    none = next((parent for _, parent in cells if not marks.get(parent, parent)), "")
    if None in changes and form == "edges":
        raise HierarchyError("a node hangs under a root that has no id, which edges cannot hold; write .json")
    lines = list(sheet.lines)
    for row, change in zip(rows, changes, strict=True):
        if change is GONE:
            lines[row] = ""
        elif change is not KEPT:
            lines[row] = sheet.changed(row, {parent_at: none if change is None else change})
    if new and len(rows) < len(lines):
        raise HierarchyError("triples cannot be written back with clusters that are new; write .json")
    return sheet.text(lines, [{child_at: str(child), parent_at: str(parent)} for child, parent in new])


def _paths(tree: Hierarchy, text: str, how: PathFormat) -> str:
    """Return a table or lines of paths."""
    kind = source_kind(text, how)
    if kind == "table":
        sheet = _Sheet.of(text, how.delimiter, how.comment)
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
                raise HierarchyError(f"item {shown(item)} has {len(names)} levels now, and the table {len(levels)}")
            else:
                blanks = [""] * (len(levels) - len(names))
                lines[row] = sheet.changed(row, dict(zip(levels, [*names, *blanks], strict=True)))
        return sheet.text(lines)
    lines = text.splitlines(keepends=True)
    content = content_lines(text, how.comment)
    paths = [path for _, path in ids_first(content)] or content
    changes, joined = _new_paths(tree, rows_of_lines(content, how, may_have_ids=True), how), _joiner(paths, how)
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
        _ids(tree, "a table of paths", items=True)
    node_of = {label: node for node, label in reversed(list(enumerate(labels)))}
    names = [_last(label) for label in labels]
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


def _ids(tree: Hierarchy, what: str, items: bool = False) -> list[str | None]:
    """Return each node's id as text, None for a root that has none.

    Raises:
        HierarchyError: Two nodes have one id.
    """
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    ids = [None if label is None else label_text(label) if isinstance(label, tuple) else str(label) for label in labels]
    told = [name for name in (ids[: tree.n_items] if items else ids) if name is not None]
    twice = next((name for name, times in Counter(told).items() if times > 1), None)
    if twice is not None:
        raise HierarchyError(f"two nodes have the id {shown(twice)}, which {what} cannot hold; write .json")
    return ids


def _last(label: Hashable) -> str:
    """Return what a category is called among its siblings."""
    return str(label[-1]) if isinstance(label, tuple) and label else str(label)


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
