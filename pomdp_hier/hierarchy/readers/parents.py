"""Parent tables: one row a node, its id and its parent's id; no parent at the root, or no row for it."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pomdp_hier.errors import HierarchyError, ReaderError
from pomdp_hier.hierarchy.arguments import check_flag, dense
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.roles import header_note, marks_of_no_parent, parent_roles
from pomdp_hier.hierarchy.readers.tables import Table, is_missing, read_table
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import Note, counted, listed, shown, warn_user

__all__ = ["read_parents"]


def read_parents(
    source: Any,
    join: Join,
    *,
    id: str | None = None,
    parent: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> TreeArrays:
    """Return the tree arrays of a parent table, or of a dictionary from ids to parents.

    Example:
        >>> read_parents({"r": None, "a": "r", "b": "r"}, Join()).labels
        ['a', 'b', 'r']
    """
    check_flag("header", header)
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
    table = read_table(source, names=("id", "parent"), delimiter=delimiter, header=header)
    id_at, parent_at = parent_roles(table, id, parent)
    warn_user(header_note(table, id, parent))
    table = table if table.is_text else _one_parent_per_row(table, parent_at)
    no_parent = marks_of_no_parent(table, id_at, parent_at)
    position: dict[Hashable, int] = {}
    links: list[tuple[int, Hashable]] = []
    link_rows: list[int] = []
    root_rows: dict[int, int] = {}
    own: list[int] = []
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
            if node == above:
                own.append(len(links))
            links.append((place, above))
            link_rows.append(row)
    notes = list[Note]()
    if own and not root_rows and all(above in position for _, above in links):  # as in NCBI's taxonomy
        for at in reversed(own):
            place, name = links.pop(at)
            root_rows[place] = link_rows.pop(at)
        more = f", as {len(own) - 1:,} more are" if len(own) > 1 else ""
        notes.append(f"row {root_rows[place]}: {shown(name)} is its own parent{more}, and taken for a root")
    undefined = list(dict.fromkeys(above for _, above in links if above not in position))
    if not root_rows:  # then the roots are what no row is about: of one that is a typing error there are two
        position.update({above: place for place, above in enumerate(undefined, len(position))})
    elif undefined:
        place = next(node for node, above in links if above not in position)
        raise HierarchyError(
            f"{counted(len(undefined), 'parent')} without a row: {listed(undefined)} (first as the parent of "
            f"{shown(list(position)[place])}); give each a row, a root's with an empty parent",
            _nearest(undefined, position),
        )
    both = next((place for place, _ in links if place in root_rows), None)
    if both is not None:
        raise HierarchyError(
            f"{shown(list(position)[both])} has no parent in row {root_rows[both]}, but one in another row; remove one"
        )
    above_places, below_places = [position[above] for _, above in links], [place for place, _ in links]
    nodes = LinkedNodes(list(position), above_places, below_places, "row", link_rows)
    arrays = tree_of_links(nodes, text_ids(join) if table.is_text else join)
    arrays.notes[:0] = notes
    return arrays


def _nearest(names: Sequence[Hashable], known: Mapping[Hashable, int]) -> str:
    """Return the ids that differ from a name in case or blanks alone, as advice."""
    wanted = {name.strip().casefold() for name in names if isinstance(name, str)}
    alike = [name for name in known if isinstance(name, str) and name.strip().casefold() in wanted]
    return f". Spelt otherwise, there is {listed(alike)}" if alike else ""


def _one_parent_per_row(table: Table, parent_at: int) -> Table:
    """Return the table with a row for each parent, where cells are lists of them."""
    if not any(isinstance(row[parent_at], list | tuple) for row in table.rows):
        return table
    rows = list[Sequence[Any]]()
    for row in table.rows:
        above = row[parent_at]
        for parent in (above or [None]) if isinstance(above, list | tuple) else [above]:
            rows.append([parent if at == parent_at else cell for at, cell in enumerate(row)])
    return replace(table, rows=rows)


def _is_row_of_numbers(source: Any) -> bool:
    if isinstance(source, np.ndarray):
        return source.ndim == 1 and source.dtype.kind in "iuf"
    return isinstance(source, list | tuple) and all(cell is None or isinstance(cell, int | float) for cell in source)
