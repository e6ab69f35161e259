"""Sums of item rows over the clusters of a hierarchy: what makes a similarity to a cluster cost O(D).

A sum is always formed in one order, whatever the pieces or threads: first the rows of the items that hang directly
under the node, in leaf order (in runs of 4,096), then its child clusters in child order.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.features.members import ranges
from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["cluster_sums"]

RUN = 4096


def cluster_sums(
    hierarchy: Hierarchy, rows: Callable[[Ints], Floats], n_columns: int, out: Floats | None = None
) -> Floats:
    """Return the sum of the rows of each inner node's items, ``[K, D]``; row k belongs to node N + k.

    Each row is read once; the sums of the leaf clusters are then added upward, so that the cost is O((N + K) D) for any
    shape of tree.

    Args:
        hierarchy: The tree.
        rows: Gives the float64 rows ``[m, D]`` of an array of item numbers.
        n_columns: D.
        out: Where to put the sums, such as a memory map; zeros ``[K, D]``.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
        >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
        >>> cluster_sums(tree, lambda items: X[items], 2)
        array([[3., 0.],
               [3., 4.]])
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
