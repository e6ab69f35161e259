"""Readers of edges, networkx graphs and parent tables."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np

from pomdp_hier._arguments import check_flag
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import HierarchyError, ReaderError
from pomdp_hier.hierarchy.arrays import dense, is_row
from pomdp_hier.hierarchy.node_names import Note, warn_user
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.tables import (
    Table,
    TreeArrays,
    header_note,
    is_missing,
    is_table,
    links_of,
    marks_of_no_parent,
    parent_roles,
    read_table,
    require_header,
)


def link_pairs(pairs: Iterable[object], where: str = "edge", start: int = 0) -> LinkedNodes:
    """Return the linked nodes of ``(parent, child)`` pairs, in order of appearance; errors count from ``start``."""
    if not hasattr(pairs, "__iter__") or isinstance(pairs, (str, bytes, dict)):
        raise ReaderError(f"{where}s: got {brief(pairs)}; expected pairs (parent, child). Give a list of pairs.")
    rows = [
        pair if isinstance(pair, (list, tuple)) else _as_pair(pair, place, where)
        for place, pair in enumerate(pairs, start)
    ]
    position: dict[Hashable, int] = {}
    try:
        flat: list[Hashable] = list(chain.from_iterable(rows))
        position = {name: number for number, name in enumerate(dict.fromkeys(flat))}
        sound = len(flat) == 2 * len(rows) == 2 * sum(len(row) == 2 for row in rows)
    except TypeError:
        sound = False
    if not sound or any(is_missing(name) for name in position):
        for place, pair in enumerate(rows, start):
            _check_pair(pair, place, where)
    ends = np.fromiter(map(position.__getitem__, flat), dtype=np.int64, count=len(flat)).reshape(-1, 2)
    return LinkedNodes(list(position), ends[:, 0], ends[:, 1], where, range(start, start + len(rows)))


def _as_pair(pair: object, place: int, where: str) -> Sequence[object]:
    if not is_row(pair):
        raise ReaderError(f"{where} {place}: got {brief(pair)}; expected a pair (parent, child).")
    return tuple(pair)  # type: ignore[arg-type]


def _check_pair(pair: Sequence[object], place: int, where: str) -> None:
    """Raise an error if the pair is not two ids."""
    if len(pair) != 2:
        raise ReaderError(f"{where} {place}: got {brief(pair)}; expected a pair (parent, child).")
    if any(is_missing(name) for name in pair):
        raise ReaderError(
            f"{where} {place}: got {brief(pair)}; expected two ids. Add the missing id or remove the {where}."
        )
    try:
        hash(tuple(pair))
    except TypeError:
        raise ReaderError(f"{where} {place}: got {brief(pair)}; expected ids of text or numbers.") from None


def read_edges(
    edges: Any,
    join: Join,
    *,
    parent: str | None = None,
    child: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> TreeArrays:
    """Return the tree arrays of ``(parent, child)`` pairs, or of a table of them."""
    check_flag("header", header)
    edges = dense("the edges", edges)
    if is_table(edges):
        table = read_table(edges, delimiter=delimiter, header=header)
        rows, parent_at, child_at = links_of(table, parent, child)
        pairs = [[_cell(table.rows[row][parent_at]), _cell(table.rows[row][child_at])] for row in rows]
        nodes = link_pairs(pairs, "row", 1)
        warn_user(header_note(table, parent, child))
        join = text_ids(join) if table.is_text else join
    else:
        require_header(header, edges)
        tolist = getattr(edges, "tolist", None)
        nodes = link_pairs(tolist() if tolist is not None else edges)
    if not nodes.ids and join.items is not None:
        nodes.ids = list(join.items)
    elif not nodes.ids and join.n_items == 1:
        nodes.ids = ["0" if join.as_text else 0]
    return tree_of_links(nodes, join)


def read_networkx(graph: "nx.DiGraph[Any]", join: Join) -> TreeArrays:
    """Return the tree arrays of a directed graph, including nodes without edges."""
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise ReaderError(
            f"graph: got {type(graph).__name__}; expected a DiGraph with edges from parent to child. Direct an "
            "undirected tree with nx.bfs_tree(graph, root)."
        )
    position = {node: place for place, node in enumerate(graph.nodes)}
    nodes = LinkedNodes(
        list(position), [position[above] for above, _ in graph.edges()], [position[below] for _, below in graph.edges()]
    )
    return tree_of_links(nodes, join)


def _cell(cell: object) -> object:
    """Return the cell of a table as an id, without outer spaces; ``None`` if it is blank."""
    return (cell.strip() or None) if isinstance(cell, str) else cell


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
            f"source: got {brief(source)}; expected rows of two cells, 'id' and 'parent'. Give an array with the "
            "parent of each node, -1 at the root, to Hierarchy(parents, n_items)."
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
            raise ReaderError(f"row {row}: got no id, with the parent {brief(above)}; expected an id per row.")
        try:
            place = position.setdefault(node, len(position))
            above = no_parent.get(above, above)
        except TypeError:
            raise ReaderError(f"row {row}: got {brief(cells)}; expected ids of text or numbers.") from None
        if is_missing(above) or (isinstance(above, str) and not above):
            root_rows.setdefault(place, row)
        else:
            if node == above:
                own.append(len(links))
            links.append((place, above))
            link_rows.append(row)
    notes = list[Note]()
    if own:  # as the root in NCBI's taxonomy, and some roots in IAB's
        for at in reversed(own):
            place, name = links.pop(at)
            root_rows.setdefault(place, link_rows.pop(at))
        count = f" (the first of {len(own):,} such rows)" if len(own) > 1 else ""
        notes.append(f"row {root_rows[place]}: {brief(name)} is its own parent{count}; taken as a root")
    undefined = list(dict.fromkeys(above for _, above in links if above not in position))
    if not root_rows:  # then the parents without a row are the roots; a misspelt parent gives a second root
        position.update({above: place for place, above in enumerate(undefined, len(position))})
    elif undefined:
        place = next(node for node, above in links if above not in position)
        raise HierarchyError(
            f"parents: got {counted(len(undefined), 'parent')} without a row, {listed(undefined)} (first as the parent "
            f"of {brief(list(position)[place])}); expected a row per parent. Add the rows, or correct the ids.",
            _nearest(undefined, position),
        )
    both = next((place for place, _ in links if place in root_rows), None)
    if both is not None:
        raise HierarchyError(
            f"row {root_rows[both]}: got {brief(list(position)[both])} without a parent, and with one in another row; "
            "expected one row per id. Remove one."
        )
    above_places, below_places = [position[above] for _, above in links], [place for place, _ in links]
    nodes = LinkedNodes(list(position), above_places, below_places, "row", link_rows)
    arrays = tree_of_links(nodes, text_ids(join) if table.is_text else join)
    arrays.notes[:0] = notes
    return arrays


def _nearest(names: Sequence[Hashable], known: Mapping[Hashable, int]) -> str:
    """Return a hint at ids that differ from a name only in case or blanks."""
    wanted = {name.strip().casefold() for name in names if isinstance(name, str)}
    similar = [name for name in known if isinstance(name, str) and name.strip().casefold() in wanted]
    return f" A similar id is {listed(similar)}." if similar else ""


def _one_parent_per_row(table: Table, parent_at: int) -> Table:
    """Return the table with one row per parent, for cells that are lists of parents."""
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
