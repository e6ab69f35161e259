"""Lists of children: ``children[k]`` are the children of node ``n_items + k``."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.arrays import IntArray
from pomdp_hier.hierarchy.readers.graph import Join, LinkedNodes, plain_tree
from pomdp_hier.hierarchy.readers.plain import OnMultipleParents, PlainTree, checked_choice, integer_ids
from pomdp_hier.hierarchy.wording import counted, listed, shown

__all__ = ["read_children"]


def read_children(
    children: Sequence[Sequence[int]] | ArrayLike,
    n_items: int | None = None,
    *,
    labels: Sequence[Hashable] | None = None,
    add_root: bool = False,
    on_multiple_parents: OnMultipleParents = "error",
) -> PlainTree:
    """Return the plain tree of children lists; without ``n_items`` it is taken to have one root.

    Example:
        >>> read_children([[0, 1], [2, 3]]).parent
        array([ 3,  3,  4,  4, -1])
    """
    checked_choice("on_multiple_parents", on_multiple_parents, ("error", "first", "duplicate"))
    if isinstance(children, np.ndarray):
        if children.dtype.kind == "f" and (children == np.floor(children)).all():
            children = children.astype(np.int64)
        children = children.tolist()
    if isinstance(children, (str, bytes, dict)) or not hasattr(children, "__iter__"):
        raise HierarchyError(f"children is {shown(children)}, expected a list of lists of node numbers")
    flat, lengths = integer_ids(children, "children")  # type: ignore[arg-type]
    if n_items is None:
        if not flat.size:
            raise HierarchyError("the children lists name no node: give n_items=1 for a tree of one item")
        n_items = max(np.unique(flat).size + 1 - lengths.size, 0)
    if n_items > flat.size + lengths.size + 1 and not add_root:
        raise HierarchyError(
            f"{n_items} items, but the lists name {np.unique(flat).size} nodes: "
            f"items {listed(islice(_missing(flat, n_items), 5), n_items - flat.size)} are in none of them"
        )
    n_nodes = n_items + lengths.size
    above = np.repeat(np.arange(n_items, n_nodes), lengths)
    outside = np.flatnonzero((flat < 0) | (flat >= n_nodes))
    if outside.size:
        raise HierarchyError(
            f"children[{above[outside[0]] - n_items}] lists {flat[outside[0]]}, but the nodes are 0..{n_nodes - 1} "
            f"({counted(n_items, 'item')} and {counted(lengths.size, 'list')})"
        )
    own = np.flatnonzero(flat == above)
    if own.size:
        raise HierarchyError(f"children[{flat[own[0]] - n_items}]: node {flat[own[0]]} is its own child (a self-loop)")
    times = np.bincount(flat, minlength=n_nodes)
    if (times > 1).any():
        twice = np.flatnonzero(times > 1)
        if on_multiple_parents != "error":
            ids = list(range(n_nodes)) if labels is None else list(chain(labels, range(len(labels), n_nodes)))
            nodes = LinkedNodes(list(range(n_nodes)), above.tolist(), flat.tolist(), "child")
            plain = plain_tree(nodes, Join(n_items, on_multiple_parents=on_multiple_parents))
            if labels is not None and plain.labels is not None:
                plain.labels = [ids[node] for node in plain.labels]  # type: ignore[call-overload]
            elif labels is not None:
                plain.labels = ids
            return plain
        where = above[flat == twice[0]] - n_items
        raise HierarchyError(
            f"{counted(twice.size, 'node')} with several parents: {listed(twice[:5].tolist(), twice.size)}; node "
            f"{twice[0]} stands in lists {listed(where.tolist())}; a node has one parent: remove it from the others, "
            'or pass on_multiple_parents="first" or "duplicate"'
        )
    parent = np.full(n_nodes, -1, dtype=np.int64)
    parent[flat] = above
    order = np.concatenate((flat, np.flatnonzero(times == 0)))
    return PlainTree(parent, int(n_items), order, labels)


def _missing(flat: IntArray, n_items: int) -> Iterator[int]:
    """Return the items that stand in no list, in order, without building an array as long as a wrong ``n_items``."""
    present = set(flat.tolist())
    return (item for item in range(n_items) if item not in present)
