"""The Hierarchical Agreement Index: how far two hierarchies place pairs of items equally far apart."""

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.alignment import aligned
from pomdp_hier.measures.ancestors import neighbour_ancestors

__all__ = ["hai"]


def hai(hierarchy: Hierarchy, reference: Hierarchy) -> float:
    """Return the Hierarchical Agreement Index of two hierarchies over the same items, 1 if they agree throughout.

    With ``d(i, j) = |c_ij| / N``, where ``c_ij`` is the closest common ancestor of two items, and 0 where
    that ancestor is a leaf cluster or the two items are the same,

        HAI = 1 - sum over i, j of |d(i, j, hierarchy) - d(i, j, reference)| / N**2 .

    Items are compared by name, or by number where a tree does not name them. The leaf clusters matter: in a tree
    with ``singletons=True`` no two items share a leaf cluster, and the index is another one. The paper's figures are
    those of the leaf clusters as drawn (``singletons=False``).

    Time is proportional to N**2 and memory to N; the sum is taken in integers, so that it is exact.

    Args:
        hierarchy: The hierarchy to judge.
        reference: The hierarchy to judge it by. The index is symmetric in the two.

    Raises:
        HierarchyError: The two are not over the same items.

    Example:
        >>> two_halves = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> one_cluster = Hierarchy.from_children([[0, 1, 2, 3]], 4)
        >>> hai(two_halves, two_halves), hai(two_halves, one_cluster)
        (1.0, 0.5)

    References:
        Johnson, Xiong, Gao, Corso (2013), Comprehensive cross-hierarchy cluster agreement evaluation; in
        the form of Huang, Piao, Moreno, Hurley, POMDP Modelling for Assessing Hierarchies.
    """
    reference = aligned(hierarchy, reference, "HAI")
    n = hierarchy.n_items
    gaps, other_gaps = _gaps(hierarchy), _gaps(reference)
    partners = np.argsort(reference.item_order)[hierarchy.item_order]
    other = np.empty(n, dtype=np.int64)
    total = 0
    for left in range(n - 1):
        here = partners[left]
        other[here + 1 :] = np.maximum.accumulate(other_gaps[here:])
        other[:here] = np.maximum.accumulate(other_gaps[:here][::-1])[::-1]
        difference = np.maximum.accumulate(gaps[left:])
        difference -= other[partners[left + 1 :]]
        total += int(np.abs(difference, out=difference).sum())
    return (n**3 - 2 * total) / n**3


def _gaps(hierarchy: Hierarchy) -> Ints:
    """Return N times the distance of each item to its right neighbour in ``item_order``, ``[N - 1]``.

    The closest common ancestor of two items further apart is the largest of those met between them, so that
    the running maximum from an item gives its distances to all others.
    """
    ancestors = neighbour_ancestors(hierarchy)
    return np.where(hierarchy.is_leaf[ancestors], 0, hierarchy.sizes[ancestors])
