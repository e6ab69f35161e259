"""Edges ``(parent, child)`` between ids of any hashable kind: pairs, tables of them, and networkx graphs."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.arguments import check_flag, dense, is_row
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.roles import header_note, links_of
from pomdp_hier.hierarchy.readers.tables import is_missing, is_table, read_table, require_header
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import shown, warn_user

__all__ = ["link_pairs", "read_edges", "read_networkx"]


def link_pairs(pairs: Iterable[object], where: str = "edge", start: int = 0) -> LinkedNodes:
    """Return the linked nodes of ``(parent, child)`` pairs, numbered as they first appear; errors count from ``start``.

    Raises:
        ReaderError: For a pair that is none, an id that is missing (``None``, NaN) or not hashable.
    """
    if not hasattr(pairs, "__iter__") or isinstance(pairs, (str, bytes, dict)):
        raise ReaderError(f"the {where}s are {shown(pairs)}, expected [parent, child] pairs")
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
        raise ReaderError(f"{where} {place} is {shown(pair)}, expected a [parent, child] pair")
    return tuple(pair)  # type: ignore[arg-type]


def _check_pair(pair: Sequence[object], place: int, where: str) -> None:
    """Raise if the pair is not two ids."""
    if len(pair) != 2:
        raise ReaderError(f"{where} {place} is {shown(pair)}, expected a [parent, child] pair of two ids")
    if any(is_missing(name) for name in pair):
        raise ReaderError(f"{where} {place} is {shown(pair)}: an id is missing")
    try:
        hash(tuple(pair))
    except TypeError:
        raise ReaderError(f"{where} {place} is {shown(pair)}: ids are strings or numbers") from None


def read_edges(
    edges: Any,
    join: Join,
    *,
    parent: str | None = None,
    child: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> TreeArrays:
    """Return the tree arrays of ``(parent, child)`` pairs, or of a table of them.

    Example:
        >>> read_edges([("r", "a"), ("r", "b")], Join()).labels
        ['a', 'b', 'r']
    """
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
    """Return the tree arrays of a directed graph; a node without edges is a node all the same.

    Example:
        >>> read_networkx(nx.DiGraph([("r", "a"), ("r", "b")]), Join()).labels
        ['a', 'b', 'r']
    """
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise ReaderError(
            f"from_networkx got {type(graph).__name__}, expected a DiGraph whose edges run from parent to child "
            "(nx.bfs_tree(graph, root) directs an undirected tree)"
        )
    position = {node: place for place, node in enumerate(graph.nodes)}
    nodes = LinkedNodes(
        list(position), [position[above] for above, _ in graph.edges()], [position[below] for _, below in graph.edges()]
    )
    return tree_of_links(nodes, join)


def _cell(cell: object) -> object:
    """Return the cell of a table as an id: outer spaces dropped, blank as missing."""
    return (cell.strip() or None) if isinstance(cell, str) else cell
