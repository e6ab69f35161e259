"""Parent tables: one row a node, its id and its parent's id; no parent at the root."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from pomdp_hier.errors import HierarchyError, ReaderError, Setting
from pomdp_hier.hierarchy.arguments import dense
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.tables import Table, is_missing, read_table
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import counted, listed, shown

__all__ = ["PARENT_COLUMNS", "marks_of_no_parent", "parent_roles", "read_parents"]

_IDS = ("id", "node", "node_id", "child", "child_id", "concept", "skos:concept", "uri", "item", "code", "name")
PARENT_COLUMNS = ("parent", "parent_id", "parentid", "parent id", "broader", "skos:broader")
_NO_PARENT = frozenset({"0", "0.0", "-1", "-1.0", "null", "none", "nan", "na", "n/a", "-"})


def read_parents(
    source: Any, join: Join, *, id: str | None = None, parent: str | None = None, delimiter: str | None = None
) -> TreeArrays:
    """Return the tree arrays of a parent table, or of a dictionary from ids to parents.

    Example:
        >>> read_parents({"r": None, "a": "r", "b": "r"}, Join()).labels
        ['a', 'b', 'r']
    """
    source = dense("the table", source)
    if hasattr(source, "to_dict") and not hasattr(source, "columns"):  # a series from ids to parents
        source = source.to_dict()
    if isinstance(source, Mapping) and not any(isinstance(value, (list, tuple)) for value in source.values()):
        source = list(source.items())
    if _is_row_of_numbers(source):
        raise ReaderError(
            f"got {shown(source)}, expected rows of two cells, 'id' and 'parent'; an array with the parent of each "
            "node, -1 at the root, goes to Hierarchy(parents, n_items)"
        )
    table = read_table(source, names=("id", "parent"), delimiter=delimiter)
    id_at, parent_at = parent_roles(table, id, parent)
    no_parent = marks_of_no_parent(table, id_at, parent_at)
    position: dict[Hashable, int] = {}
    links: list[tuple[int, Hashable]] = []
    link_rows: list[int] = []
    root_rows: dict[int, int] = {}
    for row, cells in enumerate(table.rows, 1):
        node, above = (cell.strip() if isinstance(cell, str) else cell for cell in (cells[id_at], cells[parent_at]))
        if is_missing(node) or (isinstance(node, str) and not node):
            raise ReaderError(f"row {row} has no id (its parent is {shown(above)}); every row needs one")
        try:
            place = position.setdefault(node, len(position))
            above = no_parent.get(above, above)
        except TypeError:
            raise ReaderError(f"row {row} is {shown(cells)}: ids are strings or numbers") from None
        if is_missing(above) or (isinstance(above, str) and not above):
            root_rows.setdefault(place, row)
        else:
            links.append((place, above))
            link_rows.append(row)
    undefined = list(dict.fromkeys(above for _, above in links if above not in position))
    if undefined:
        place = next(node for node, above in links if above not in position)
        raise HierarchyError(
            f"{counted(len(undefined), 'parent')} without a row: {listed(undefined)} (first as the parent of "
            f"{shown(list(position)[place])}); give each a row, a root's with an empty parent"
        )
    both = next((place for place, _ in links if place in root_rows), None)
    if both is not None:
        raise HierarchyError(
            f"{shown(list(position)[both])} has no parent in row {root_rows[both]}, but one in another row; remove one"
        )
    above_places, below_places = [position[above] for _, above in links], [place for place, _ in links]
    nodes = LinkedNodes(list(position), above_places, below_places, "row", link_rows)
    return tree_of_links(nodes, text_ids(join) if table.is_text else join)


def parent_roles(table: Table, id: str | None, parent: str | None) -> tuple[int, int]:
    """Return the columns of ids and of parents: by name, held against whether each parent then has a row."""
    parent_at = table.column(parent, PARENT_COLUMNS)
    if parent_at is None:
        called = [place for place, name in enumerate(table.columns) if "parent" in name.casefold()]
        parent_at = called[0] if len(called) == 1 else None
    id_at = table.column(id, _IDS)
    if parent_at is not None and id is None and (id_at is None or not _holds_parents(table, id_at, parent_at)):
        others = [place for place in range(len(table.columns)) if place not in (id_at, parent_at)]
        fitting = [place for place in others if _holds_parents(table, place, parent_at, unique=True)]
        id_at = fitting[0] if len(fitting) == 1 else id_at
    if id_at is None or parent_at is None or id_at == parent_at:
        raise ReaderError(
            f"the table has the columns {listed(table.columns, limit=10)}, expected 'id' and 'parent': "
            "say which they are with ",
            Setting("id"),
            " and ",
            Setting("parent"),
        )
    return id_at, parent_at


def _holds_parents(table: Table, id_at: int, parent_at: int, unique: bool = False) -> bool:
    """Whether each parent has a row, of those that are ids and no mark of a root."""
    try:
        ids = {_stripped(row[id_at]) for row in table.rows}
        parents = {_stripped(row[parent_at]) for row in table.rows}
    except TypeError:  # lists
        return False
    marks = marks_of_no_parent(table, id_at, parent_at)
    known = {marks.get(name, name) for name in parents if not is_missing(name)} - {"", None}
    return known <= ids and (not unique or (len(ids) == len(table.rows) and bool(known)))


def marks_of_no_parent(table: Table, id_at: int, parent_at: int) -> dict[Hashable, Hashable]:
    """Return parents that are written otherwise than ids: 0, -1 or "null" for none, "1.0" for the row of "1"."""
    try:
        ids = {_stripped(row[id_at]) for row in table.rows}
        parents = {_stripped(row[parent_at]) for row in table.rows}
    except TypeError:
        return {}
    meant: dict[Hashable, Hashable] = {}
    for name in parents - ids:
        if (name.casefold() in _NO_PARENT) if isinstance(name, str) else name in (0, -1):
            meant[name] = None
        elif isinstance(name, str) and name.endswith(".0") and name[:-2] in ids:  # numbers with blanks, out of a frame
            meant[name] = name[:-2]
    return meant


def _stripped(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


def _is_row_of_numbers(source: Any) -> bool:
    if isinstance(source, np.ndarray):
        return source.ndim == 1 and source.dtype.kind in "iuf"
    return isinstance(source, list | tuple) and all(cell is None or isinstance(cell, int | float) for cell in source)
