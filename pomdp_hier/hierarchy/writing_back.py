"""A changed tree in the format that it came in: the rows, ids and columns of its source, with new places."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from pomdp_hier.errors import HierarchyError, ReaderError
from pomdp_hier.hierarchy.readers.paths import PathFormat, path_columns, separator, source_kind
from pomdp_hier.hierarchy.readers.roles import links_of, parent_roles
from pomdp_hier.hierarchy.readers.tables import Table, read_csv
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import label_text, shown

__all__ = ["FORMATS", "written_like"]

FORMATS = ("json", "children", "nested", "newick", "parents", "edges", "paths")


def written_like(tree: Hierarchy, source: str, form: str, **columns: Any) -> str:
    """Return a tree as text of the format that it came in, with the ids, columns and rows of its source.

    A row stays what it was but for where it says that its node hangs. Nodes that are gone lose their rows; new ones
    get one, with blanks in the other columns. JSON of any kind is written as `Hierarchy.to_json` does.

    Args:
        tree: The tree, whose labels are those of the source.
        source: The text that it was read from.
        form: One of ``json``, ``children``, ``nested``, ``newick``, ``parents``, ``edges`` and ``paths``.
        **columns: What the reader was told of the table: ``id`` or ``item``, ``parent``, ``child``, ``path``,
            ``levels``, ``sep``.

    Raises:
        ReaderError: For another format.
        HierarchyError: The format cannot hold the tree: two nodes of one id, or more levels than the table has columns.

    Example:
        >>> text = "id,parent,price\\nall,0,\\ntea,all,\\nsalt,tea,2\\nmint,tea,3\\noat,all,4\\n"
        >>> labels = Hierarchy.from_parents(text).labels
        >>> labels
        ('salt', 'mint', 'oat', 'all', 'tea')
        >>> moved = Hierarchy([3, 4, 4, -1, 3], 3, labels=labels)
        >>> print(written_like(moved, text, "parents"), end="")
        id,parent,price
        all,0,
        tea,all,
        salt,all,2
        mint,tea,3
        oat,tea,4
    """
    if form in ("json", "children", "nested"):
        return tree.to_json() + "\n"
    if form == "newick":
        return tree.to_newick() + "\n"
    if form == "parents":
        return _parents(tree, read_csv(source), source, **columns)
    if form == "edges":
        return _edges(tree, read_csv(source), source, **columns)
    if form == "paths":
        how = PathFormat(**columns)
        kind = source_kind(source, how)
        if kind == "ids" or (kind == "lines" and how.ends_in == "category"):
            raise HierarchyError("lines of paths whose items stand elsewhere cannot be written back; write .json")
        return _path_lines(tree, source, how) if kind == "lines" else _path_table(tree, read_csv(source), source, how)
    raise ReaderError(f"form is {form!r}; a tree can be written back as {', '.join(FORMATS)}")


def _parents(tree: Hierarchy, table: Table, source: str, **columns: Any) -> str:
    """Return a parent table: a row a node."""
    id_at, parent_at = parent_roles(table, columns.get("id"), columns.get("parent"))
    ids = _ids(tree, "a parent table")
    above = {name: _id_above(tree, ids, node) for node, name in enumerate(ids) if name is not None}
    known = {row[id_at].strip(): row for row in table.rows}
    # What stands in place of a root's parent: nothing, 0, -1 or a word.
    none = next((row[parent_at] for row in table.rows if row[parent_at].strip() not in known), "")
    rows = [_placed(row, parent_at, above[name] or none) for name, row in known.items() if name in above]
    rows += [
        _new_row(table, {id_at: name, parent_at: parent})
        for name, parent in above.items()
        if name not in known and parent is not None
    ]
    return _csv(table.columns, rows, source)


def _edges(tree: Hierarchy, table: Table, source: str, **columns: Any) -> str:
    """Return a table of edges: a row a node that has one above."""
    _, parent_at, child_at = links_of(table, columns.get("parent"), columns.get("child"))
    ids = _ids(tree, "a table of edges")
    above = {name: _id_above(tree, ids, node) for node, name in enumerate(ids) if name is not None}
    known = {row[child_at].strip(): row for row in table.rows}
    rows = [_placed(row, parent_at, above[name]) for name, row in known.items() if above.get(name) is not None]
    rows += [
        _new_row(table, {child_at: name, parent_at: parent})
        for name, parent in above.items()
        if name not in known and parent is not None
    ]
    return _csv(table.columns, rows, source)


def _path_table(tree: Hierarchy, table: Table, source: str, how: PathFormat) -> str:
    """Return a table with an item and its path, or one column a level, a row."""
    item_at, path_at, levels = path_columns(table, how)
    if item_at is None or how.ends_in == "item":
        raise HierarchyError("a table of paths without a column of items cannot be written back; write .json")
    ids = _ids(tree, "a table of paths", items=True)
    paths = {name: _names_above(tree, node) for node, name in enumerate(ids[: tree.n_items])}
    if path_at is not None:
        joined = _joiner([row[path_at] for row in table.rows], how)
        rows = [_placed(row, path_at, joined(paths[row[item_at].strip()])) for row in table.rows]
        return _csv(table.columns, rows, source)
    rows = []
    for row in table.rows:
        names = paths[row[item_at].strip()]
        if len(names) > len(levels):
            raise HierarchyError(f"item {shown(row[item_at])} has {len(names)} levels now, and the table {len(levels)}")
        cells = list(row)
        for at, name in zip(levels, [*names, *[""] * (len(levels) - len(names))], strict=True):
            cells[at] = name
        rows.append(cells)
    return _csv(table.columns, rows, source)


def _path_lines(tree: Hierarchy, source: str, how: PathFormat) -> str:
    """Return a line a leaf, each a path that ends in it."""
    lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith(how.comment or "\0")]
    joined, end = _joiner(lines, how), "\r\n" if "\r\n" in source else "\n"
    names = [_last(label) for label in tree.item_labels]
    return "".join(joined([*_names_above(tree, item), name]) + end for item, name in enumerate(names))


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


def _id_above(tree: Hierarchy, ids: Sequence[str | None], node: int) -> str | None:
    above = int(tree.parent[node])
    return None if above < 0 else ids[above]


def _last(label: Hashable) -> str:
    """Return what a category is called among its siblings."""
    return str(label[-1]) if isinstance(label, tuple) and label else str(label)


def _names_above(tree: Hierarchy, item: int) -> list[str]:
    """Return the names of the nodes from below the root to the one that holds an item."""
    names = []
    node = int(tree.parent[item])
    while tree.parent[node] >= 0:
        names.append(_last(node if tree.labels is None else tree.labels[node]))
        node = int(tree.parent[node])
    return names[::-1]


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


def _placed(row: Sequence[str], at: int, value: str | None) -> list[str]:
    """Return a row with another cell at one place; the old one where it says the same but for spaces."""
    cells = list(row)
    if cells[at].strip() != (value or "").strip():
        cells[at] = value or ""
    return cells


def _new_row(table: Table, cells: dict[int, str]) -> list[str]:
    """Return a row of a node that the source does not have."""
    return [cells.get(at, "") for at in range(len(table.columns))]


def _csv(columns: Sequence[str], rows: Sequence[Sequence[str]], source: str) -> str:
    """Return CSV with the delimiter and the line ends of the source."""
    header = source.lstrip("\ufeff").splitlines()[0]
    delimiter = max(",;\t", key=header.count)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\r\n" if "\r\n" in source else "\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()
