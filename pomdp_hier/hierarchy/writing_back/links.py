"""Links, a child and its parent a row, after a tree has changed."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.readers.roles import links_of, marks_of_no_parent, parent_roles
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import label_text, shown
from pomdp_hier.hierarchy.writing_back.sheet import Sheet

__all__ = ["GONE", "KEPT", "ids_of", "link_changes", "links_like"]

KEPT = object()
"""Stands for the parent of a row that stays as it is."""
GONE = object()
"""Stands for the parent of a row that goes."""


def link_changes(
    tree: Hierarchy,
    ids: Sequence[Hashable],
    links: Sequence[tuple[Hashable, Hashable]],
    ids_before: Sequence[Hashable],
) -> tuple[list[Any], list[tuple[Hashable, Hashable]]]:
    """Return the new parent of each link's child, `KEPT` or `GONE`, and the links of nodes that are new.

    Args:
        tree: The tree.
        ids: The id of each node, ``None`` for a root that has none.
        links: The child and the parent of each row, whose parent is ``None`` or empty at a root.
        ids_before: The ids of the tree that was read. What only the links have, as categories without items, stays.
    """
    above = {
        name: None if parent < 0 else ids[parent]
        for name, parent in zip(ids, tree.parent.tolist(), strict=True)
        if name is not None
    }
    gone = set(ids_before) - set(ids)
    below: dict[Hashable, list[Hashable]] = {}
    for child, parent in links:
        if child not in above:
            below.setdefault(parent, []).append(child)
    stack = list(gone)
    while stack:
        empty = below.pop(stack.pop(), [])
        gone.update(empty)
        stack += empty
    first: dict[Hashable, Hashable] = {}
    changes: list[Any] = []
    for child, parent in links:
        is_first = first.setdefault(child, parent) == parent
        if child in above and is_first and (above[child] or "") != (parent or ""):
            changes.append(above[child])
        elif child in gone or (parent in gone and not is_first):
            changes.append(GONE)
        else:  # also a further parent, of which the reader keeps the first
            changes.append(KEPT)
    return changes, [(child, parent) for child, parent in above.items() if child not in first and parent is not None]


def links_like(tree: Hierarchy, source: str, form: str, columns: dict[str, Any], before: Hierarchy) -> str:
    """Return a tree as a table of nodes with their parents or of edges, with the cells that its source has.

    Args:
        tree: The tree.
        source: The text.
        form: ``"parents"`` or ``"edges"``.
        columns: What the reader was told of the columns.
        before: The tree that was read.

    Raises:
        HierarchyError: Such a table cannot hold the tree.
    """
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


def ids_of(tree: Hierarchy, what: str, items: bool = False) -> list[str | None]:
    """Return each node's id as text, None for a root that has none.

    Raises:
        HierarchyError: Two nodes have one id.
    """
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    ids = [None if label is None else label_text(label) for label in labels]
    told = [name for name in (ids[: tree.n_items] if items else ids) if name is not None]
    twice = next((name for name, times in Counter(told).items() if times > 1), None)
    if twice is not None:
        raise HierarchyError(f"two nodes have the id {shown(twice)}, which {what} cannot hold; write .json")
    return ids
