"""Alignment of two trees: items by name, entanglement of leaf orders, and child orders that reduce it."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from pomdp_hier._arguments import check_integer, is_real
from pomdp_hier._arrays import Ints
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import HierarchyError, ParameterError, PomdpHierError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy

BY_NUMBER = "tree = Hierarchy.from_children(tree.to_children(), tree.n_items, singletons=tree.singletons)"


def aligned(hierarchy: Hierarchy, other: Hierarchy, what: str) -> Hierarchy:
    """Return the other tree with its items numbered as in the first tree.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items.
        what: The comparison, for the error.

    Raises:
        HierarchyError: One of the two is not a hierarchy, or they are not over the same items.

    Example:
        >>> hierarchy, other = Hierarchy.from_newick("((a,b),(c,d));"), Hierarchy.from_newick("((b,d),(a,c));")
        >>> aligned(hierarchy, other, "this").item_labels, aligned(hierarchy, other, "this").items(5).tolist()
        (('a', 'b', 'c', 'd'), [1, 3])
    """
    numbers = item_numbers(hierarchy, other, what)
    return other if numbers is None else other.permuted(numbers, with_labels=True)


def item_numbers(
    hierarchy: Hierarchy,
    other: Hierarchy,
    what: str,
    *,
    names: tuple[str, str] = ("the first tree", "the other tree"),
    by_number: str = BY_NUMBER,
    error: type[PomdpHierError] = HierarchyError,
) -> Ints | None:
    """Return the number in the first tree of each item of the other ``[N]``; None for equal numbers.

    Two items are the same where their labels are equal, or equal as text where all labels of either tree are text.
    A tree without labels, or with the labels ``0..N-1``, does not name its items and is compared by number.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items.
        what: The comparison, for the error.
        names: The names of the two trees, for the error.
        by_number: How the caller compares trees by number, for the error.
        error: The class of the error.

    Raises:
        HierarchyError: One of the two is not a hierarchy.
        PomdpHierError: They are not over the same items; of the class ``error``.

    Example:
        >>> hierarchy, other = Hierarchy.from_newick("((a,b),(c,d));"), Hierarchy.from_newick("((b,d),(a,c));")
        >>> item_numbers(hierarchy, other, "this").tolist()
        [1, 3, 0, 2]
    """
    require_hierarchy(hierarchy)
    require_hierarchy(other)
    if hierarchy.labels is not None and other.labels is not None:
        mine, its = hierarchy.item_labels, other.item_labels
        if any(all(isinstance(name, str) for name in side) for side in (mine, its)):
            mine, its = tuple(map(str, mine)), tuple(map(str, its))
        if mine == its:
            return None
        number = {name: at for at, name in enumerate(mine)}
        if len(number) == len(mine) == len(its) and number.keys() == set(its):
            return np.array([number[name] for name in its], dtype=np.int64)
        if not (number.keys().isdisjoint(its) and (_are_numbers(mine) or _are_numbers(its))):
            raise error(
                f"items: got {_difference(mine, its, names)}; expected the same items in both trees, as {what} matches "
                f"them by name. Build both trees over the same items, or compare by number: {by_number}"
            )
    if hierarchy.n_items != other.n_items:
        raise error(
            f"items: got {hierarchy.n_items:,} in {names[0]} and {other.n_items:,} in {names[1]}; expected the same "
            f"items in both trees for {what}. Build both trees over the same items"
        )
    return None


def _are_numbers(names: Sequence[Hashable]) -> bool:
    """Return whether the names are the numbers ``0..N-1``, also as text."""
    return all(str(name) == str(number) for number, name in enumerate(names))


def _difference(mine: Sequence[Hashable], its: Sequence[Hashable], trees: tuple[str, str]) -> str:
    """Return the names in one of the two trees only, and duplicate names, as text."""
    found = []
    for side, there, tree in ((mine, set(its), trees[0]), (its, set(mine), trees[1])):
        alone = [name for name in dict.fromkeys(side) if name not in there]
        twice = [name for name, count in Counter(side).items() if count > 1]
        found += [f"{listed(alone)} in {tree} alone"] if alone else []
        found += [f"{listed(twice)} twice in {tree}"] if twice else []
    return " and ".join(found)


def entanglement(hierarchy: Hierarchy, other: Hierarchy, *, power: float = 1.5) -> float:
    """Return the entanglement of the leaf orders of two trees: 0 for the same order, 1 for the reverse.

    The sum over the items of ``|position - position in the other| ** power``, divided by that of the reverse order.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        power: The exponent of a shift; larger values emphasise long shifts.

    Raises:
        HierarchyError: The two are not over the same items.
        ParameterError: The power is not a positive number.

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
    """Return both trees with reordered children, for few crossings of lines between equal items.

    In turn, the children of each node are sorted by the mean position of their items in the other tree, while the
    entanglement falls. The best orders are returned. Each tree keeps the numbers and names of its nodes.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        rounds: The largest number of turns per tree.

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
    """Return the tree with the children of each node sorted by the mean position of their items in the guide."""
    place = np.argsort(guide.item_order)
    mean = item_sums(tree, place, np.arange(tree.n_nodes)) / tree.sizes
    children = [sorted(kids, key=lambda node: (mean[node], node)) for kids in tree.to_children()]
    return type(tree).from_children(children, tree.n_items, singletons=tree.singletons, labels=tree.labels)
