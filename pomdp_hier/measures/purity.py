"""Dendrogram purity: how pure the smallest cluster is that holds two items of one class."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.ancestors import branching_nodes, one_label_an_item

__all__ = ["dendrogram_purity"]


def dendrogram_purity(hierarchy: Hierarchy, labels: Sequence[Hashable] | npt.ArrayLike) -> float:
    """Return the mean share, over pairs of items with one label, of that label in the smallest cluster with both.

    With ``P`` the pairs of items that share a label and ``a(i, j)`` the smallest node that holds both,

        purity = 1/|P| * sum over (i, j) in P of |a(i, j) and label(i)| / |a(i, j)| ,

    1 exactly if every label fills a subtree of its own. Items of one leaf cluster meet in that cluster. Exact, in
    O(N log N) whatever the shape of the tree.

    Args:
        hierarchy: The tree.
        labels: One label an item, ``[N]``; None marks an item without one, which counts in the cluster sizes only.

    Returns:
        The purity; NaN if no two items share a label.

    Raises:
        ParameterError: Another number of labels, or one that cannot be hashed.
        HierarchyError: No hierarchy.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> dendrogram_purity(tree, ["a", "a", "b", "b"]), dendrogram_purity(tree, ["a", "b", "a", "b"])
        (1.0, 0.5)

    References:
        Heller, Ghahramani (2005), Bayesian hierarchical clustering, ICML.
    """
    names = one_label_an_item(hierarchy, labels)
    number: dict[Hashable, int] = {}
    items = np.array([item for item, name in enumerate(names) if name is not None], dtype=np.int64)
    classes = np.array([number.setdefault(names[item], len(number)) for item in items.tolist()], dtype=np.int64)
    found = branching_nodes(hierarchy, items, classes)
    if not len(found.nodes):
        return float("nan")
    share = found.counts / hierarchy.sizes[found.nodes]
    pairs = found.counts * (found.counts - 1) / 2
    top = found.above < 0
    inherited = np.where(top, 0.0, share[found.above])
    return float(pairs @ (share - inherited) / pairs[top].sum())
