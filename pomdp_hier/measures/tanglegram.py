"""The leaf orders of two trees drawn face to face: how tangled they are, and child orders that untangle them."""

import numpy as np

from pomdp_hier._arguments import check_integer, is_real
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.alignment import aligned, item_numbers


def entanglement(hierarchy: Hierarchy, other: Hierarchy, *, power: float = 1.5) -> float:
    """Return how far the leaf orders of two trees are apart: 0 for the same order, 1 for the reverse.

    The sum over the items of ``|place in one - place in other| ** power``, divided by that of the reverse order.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        power: 1 counts all shifts alike, 2 the long ones most.

    Raises:
        HierarchyError: The two are not over the same items.
        ParameterError: The power is no positive number.

    Example:
        >>> straight = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> crossed = Hierarchy.from_children([[1, 0], [3, 2], [5, 4]], 4)
        >>> entanglement(straight, straight), entanglement(straight, crossed)
        (0.0, 1.0)

    References:
        Galili (2015), dendextend: an R package for visualizing, adjusting and comparing trees of hierarchical
        clustering, Bioinformatics.
    """
    other = aligned(hierarchy, other, "entanglement")
    if not (is_real(power) and 0 < power < np.inf):
        raise ParameterError(f"power: got {brief(power)}; expected a positive number, such as 1.5")
    places = np.arange(hierarchy.n_items)
    worst = float((np.abs(places - places[::-1]) ** float(power)).sum())
    apart = np.argsort(hierarchy.item_order) - np.argsort(other.item_order)
    return float((np.abs(apart) ** float(power)).sum()) / worst if worst else 0.0


def untangle(hierarchy: Hierarchy, other: Hierarchy, *, rounds: int = 20) -> tuple[Hierarchy, Hierarchy]:
    """Return both trees with their children in such an order that lines between the same items cross seldom.

    The trees take turns: the children of each node are put in the order of their items' mean place in the other tree,
    until no turn lowers the entanglement; the best orders seen are returned. Each tree keeps the numbers
    and the names of its nodes.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        rounds: How many turns each tree has at most.

    Raises:
        HierarchyError: The two are not over the same items.

    Example:
        >>> straight = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> crossed = Hierarchy.from_children([[1, 0], [3, 2], [5, 4]], 4)
        >>> entanglement(*untangle(straight, crossed))
        0.0

    References:
        Sugiyama, Tagawa, Toda (1981), Methods for visual understanding of hierarchical system structures (the
        barycentre rule).
    """
    numbers = item_numbers(hierarchy, other, "untangling")
    check_integer("rounds", rounds)
    placed = other if numbers is None else other.permuted(numbers, with_labels=True)
    best = hierarchy, placed
    least = entanglement(hierarchy, placed)
    for _ in range(rounds):
        hierarchy = _along(hierarchy, placed)
        placed = _along(placed, hierarchy)
        now = entanglement(hierarchy, placed)
        if now >= least:
            break
        best, least = (hierarchy, placed), now
    hierarchy, placed = best
    return hierarchy, placed if numbers is None else placed.permuted(np.argsort(numbers), with_labels=True)


def _along(tree: Hierarchy, guide: Hierarchy) -> Hierarchy:
    """Return the tree with the children of each node in the order of their items' mean place in the guide."""
    place = np.argsort(guide.item_order)
    mean = item_sums(tree, place, np.arange(tree.n_nodes)) / tree.sizes
    children = [sorted(kids, key=lambda node: (mean[node], node)) for kids in tree.to_children()]
    return type(tree).from_children(children, tree.n_items, singletons=tree.singletons, labels=tree.labels)
