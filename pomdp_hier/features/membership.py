"""Members of clusters and sums of their feature rows."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.hierarchy.tree import Hierarchy

Children: TypeAlias = tuple[Ints, Ints]
"""The children of some nodes, one list after another, and how many each has."""


def ranges(starts: npt.ArrayLike, counts: npt.ArrayLike) -> Ints:
    """Return the concatenated ranges of ``count`` numbers from each ``start``."""
    starts, counts = np.asarray(starts, dtype=np.int64), np.asarray(counts, dtype=np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return numbers


def pieces(work: Ints, most: int) -> Iterator[slice]:
    """Yield slices of a list of jobs, each of at most ``most`` work or of one job.

    Example:
        >>> list(pieces(np.array([3, 3, 9, 1]), 6))
        [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    done, low = np.cumsum(work), 0
    while low < len(work):
        high = max(low + 1, int(np.searchsorted(done, done[low] - work[low] + most, side="right")))
        yield slice(low, high)
        low = high


def membership(hierarchy: Hierarchy, nodes: Ints) -> sp.csr_matrix:
    """Return the sparse 0/1 membership matrix ``[len(nodes), N]``, items in leaf order.

    Times a table of rows it gives the sums over the nodes; it holds as many ones as the nodes hold items.
    """
    sizes = hierarchy.sizes[nodes]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = hierarchy.item_order[ranges(hierarchy.starts[nodes], sizes)]
    return sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(nodes), hierarchy.n_items))


def item_sums(hierarchy: Hierarchy, values: npt.NDArray[Any], nodes: Ints) -> Floats:
    """Return the sum of the items' values ``[N]`` over each of the nodes.

    Example:
        >>> tree = Hierarchy.from_children([[0, 2], [3, 1]], 3)
        >>> item_sums(tree, np.array([1.0, 10.0, 100.0]), np.array([3, 4]))
        array([101., 111.])
    """
    running = np.concatenate(([0.0], np.cumsum(values[hierarchy.item_order])))
    starts = hierarchy.starts[nodes]
    sums: Floats = running[starts + hierarchy.sizes[nodes]] - running[starts]
    return sums


def node_sums(hierarchy: Hierarchy, values: Floats) -> Floats:
    """Return the sum of the items' values ``[N]`` over every node ``[n_nodes]``, exact for zeros.

    Example:
        >>> tree = Hierarchy.from_children([[0, 2], [3, 1]], 3)
        >>> node_sums(tree, np.array([1.0, 10.0, 100.0]))
        array([  1.,  10., 100., 101., 111.])
    """
    sums = np.zeros(hierarchy.n_nodes)
    sums[: hierarchy.n_items] = values
    deepest = np.argsort(-hierarchy.levels, kind="stable")
    cuts = np.flatnonzero(np.diff(hierarchy.levels[deepest])) + 1
    for nodes in np.split(deepest, cuts)[:-1]:
        np.add.at(sums, hierarchy.parent[nodes], sums[nodes])
    return sums


def at_one_node(nodes: Ints) -> bool:
    """Return whether all items are at one node.

    Example:
        >>> at_one_node(np.array([7, 7])), at_one_node(np.array([7, 8])), at_one_node(np.array([], dtype=int))
        (True, False, False)
    """
    return bool(len(nodes)) and bool((nodes == nodes[0]).all())


def children_of(hierarchy: Hierarchy, parents: Ints) -> Children:
    """Return the concatenated children of the nodes, and the number per node."""
    if at_one_node(parents):
        children = hierarchy.children(int(parents[0]))
        return np.tile(children, len(parents)), np.full(len(parents), len(children))
    firsts = hierarchy.child_offsets[parents]
    counts: Ints = hierarchy.child_offsets[parents + 1] - firsts
    width = int(counts[0]) if len(counts) else 0
    if (counts == width).all():  # a dendrogram's pairs
        return hierarchy.child_nodes[(firsts[:, None] + np.arange(width)).ravel()], counts
    return hierarchy.child_nodes[ranges(firsts, counts)], counts


def at_children(values: npt.NDArray[Any], parents: Ints, children: Ints) -> npt.NDArray[Any]:
    """Return the value of each child ``[len(children)]``, as a new array.

    Args:
        values: Of every node ``[n_nodes]``.
        parents: The nodes whose children they are ``[m]``.
    """
    if at_one_node(parents):
        return np.tile(values[children[: len(children) // len(parents)]], len(parents))
    return values[children]


def child_counts(hierarchy: Hierarchy, parents: Ints) -> Ints:
    """Return the number of children of each node."""
    counts: Ints = hierarchy.child_offsets[parents + 1] - hierarchy.child_offsets[parents]
    return counts


def own_ranks(hierarchy: Hierarchy, parents: Ints, positions: Ints) -> Ints:
    """Return the child of each node that contains the item at this position in leaf order, or -1 ``[m]``.

    Children are in leaf order, and are found by binary search.
    """
    if at_one_node(parents):
        inside = contains(hierarchy, parents, positions)
        starts = hierarchy.starts[hierarchy.children(int(parents[0]))]
        return np.where(inside, np.searchsorted(starts, positions, side="right") - 1, -1)
    firsts, low = hierarchy.child_offsets[parents], np.zeros(len(parents), dtype=np.int64)
    high = child_counts(hierarchy, parents) - 1
    while (low < high).any():
        middle = (low + high + 1) // 2
        after = hierarchy.starts[hierarchy.child_nodes[firsts + middle]] <= positions
        low, high = np.where(after, middle, low), np.where(after, high, middle - 1)
    return np.where(contains(hierarchy, parents, positions) & (high >= 0), low, -1)


def contains(hierarchy: Hierarchy, nodes: Any, positions: Any) -> Any:
    """Return whether the items at these positions of the leaf order lie in the nodes, elementwise."""
    offset = positions - hierarchy.starts[nodes]
    return (offset >= 0) & (offset < hierarchy.sizes[nodes])


RUN = 4096


def cluster_sums(
    hierarchy: Hierarchy, rows: Callable[[Ints], Floats], n_columns: int, out: Floats | None = None
) -> Floats:
    """Return the sums ``[K, D]`` of the rows below each internal node; row k belongs to node N + k.

    Each row is read once, and the sums of the leaf clusters are then added upward. The cost is O((N + K) D) for any
    shape of tree.

    Args:
        rows: Gives the float64 rows ``[m, D]`` of an array of item numbers.
        out: Where to put the sums, such as a memory map; zeros ``[K, D]``.
    """
    n_items = hierarchy.n_items
    sums = np.zeros((hierarchy.n_nodes - n_items, n_columns)) if out is None else out
    if len(sums) == 0:
        return sums
    _add_items(hierarchy, rows, sums)
    _add_upward(hierarchy, sums)
    return sums


def _add_items(hierarchy: Hierarchy, rows: Callable[[Ints], Floats], sums: Floats) -> None:
    n_items = hierarchy.n_items
    parents = hierarchy.parent[hierarchy.item_order]
    order = np.argsort(parents, kind="stable")
    items, parents = hierarchy.item_order[order], parents[order] - n_items
    first = np.flatnonzero(np.concatenate([[True], parents[1:] != parents[:-1]]))
    counts = np.diff(np.concatenate([first, [n_items]]))
    runs = -(-counts // RUN)
    cuts = np.concatenate([np.repeat(first, runs) + RUN * ranges(np.zeros_like(runs), runs), [n_items]])
    low = 0
    while low < n_items:
        high = int(cuts[np.searchsorted(cuts, low + RUN, side="right") - 1])
        inside = cuts[np.searchsorted(cuts, low) : np.searchsorted(cuts, high)]
        bounds = np.concatenate([inside, [high]]) - low
        ones = sp.csr_matrix((np.ones(high - low), np.arange(high - low), bounds), shape=(len(inside), high - low))
        # A parent occurs once in a piece: runs of one parent are RUN long, so that each fills a piece.
        sums[parents[inside]] += ones @ rows(items[low:high])
        low = high


def _add_upward(hierarchy: Hierarchy, sums: Floats) -> None:
    n_items = hierarchy.n_items
    levels = hierarchy.levels[n_items:]
    order = np.lexsort((hierarchy.starts[n_items:], levels))
    per_level = np.bincount(levels)
    bounds = np.concatenate([[0], np.cumsum(per_level)])
    level = len(per_level) - 1
    while level > 0:
        top = level - 1
        while per_level[level] == 1 and top > 0 and per_level[top] == 1 and per_level[top - 1] == 1:
            top -= 1
        if level - top > 1:
            # A run of levels with one inner node each is a chain: one running sum, not one call a level.
            chain = order[bounds[top] : bounds[level + 1]][::-1]
            sums[chain] = np.cumsum(sums[chain], axis=0)
        else:
            children = order[bounds[level] : bounds[level + 1]]
            parents = hierarchy.parent[children + n_items] - n_items
            first = np.flatnonzero(np.concatenate([[True], parents[1:] != parents[:-1]]))
            ends = np.concatenate([first, [len(children)]])
            ones = sp.csr_matrix((np.ones(len(children)), children, ends), shape=(len(first), len(sums)))
            for low in range(0, len(first), RUN):
                sums[parents[first[low : low + RUN]]] += ones[low : low + RUN] @ sums
        level = top
