"""networkx directed graphs whose edges run from parent to child."""

from typing import Any

import networkx as nx

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.graph import Join, LinkedNodes, plain_tree
from pomdp_hier.hierarchy.readers.plain import PlainTree

__all__ = ["read_networkx"]


def read_networkx(graph: "nx.DiGraph[Any]", join: Join) -> PlainTree:
    """Return the plain tree of a directed graph; a node without edges is a node all the same.

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
    return plain_tree(nodes, join)
