"""Edges ``(parent, child)`` between ids of any hashable kind."""

from collections.abc import Hashable, Iterable

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.graph import Join, LinkedNodes, plain_tree
from pomdp_hier.hierarchy.readers.plain import PlainTree
from pomdp_hier.hierarchy.wording import shown

__all__ = ["link_pairs", "read_edges"]


def link_pairs(pairs: Iterable[object], where: str = "edge") -> LinkedNodes:
    """The linked nodes of ``(parent, child)`` pairs.

    Raises:
        ReaderError: For a pair that is none, an id that is missing (``None``, NaN) or not hashable.
    """
    position: dict[Hashable, int] = {}
    nodes = LinkedNodes([], [], [], where)
    for place, pair in enumerate(pairs):
        if isinstance(pair, (str, bytes, dict)) or not hasattr(pair, "__iter__"):
            raise ReaderError(f"{where} {place} is {shown(pair)}, expected a [parent, child] pair")
        ends = tuple(pair)
        if len(ends) != 2:
            raise ReaderError(f"{where} {place} is {shown(pair)}, expected a [parent, child] pair of two ids")
        above, below = ends
        if above is None or below is None or above != above or below != below:
            raise ReaderError(f"{where} {place} is {shown(pair)}: an id is missing")
        try:
            nodes.parents.append(position.setdefault(above, len(position)))
            nodes.children.append(position.setdefault(below, len(position)))
        except TypeError:
            raise ReaderError(f"{where} {place} is {shown(pair)}: ids are strings or numbers") from None
    nodes.ids = list(position)
    return nodes


def read_edges(edges: Iterable[object], join: Join) -> PlainTree:
    """The plain tree of ``(parent, child)`` pairs; a sole item given without any edge is a tree of one node.

    >>> read_edges([("r", "a"), ("r", "b")], Join()).labels
    ['a', 'b', 'r']
    """
    tolist = getattr(edges, "tolist", None)
    nodes = link_pairs(tolist() if tolist is not None else edges)
    if not nodes.ids:
        nodes.ids = list(range(join.n_items or 0)) if join.items is None else list(dict.fromkeys(join.items))
    return plain_tree(nodes, join)
