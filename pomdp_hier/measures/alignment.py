"""The one place that aligns the items of two trees: by name where both trees name their items, else by number."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier._text import listed
from pomdp_hier.errors import HierarchyError, PomdpHierError
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy

BY_NUMBER = "tree = Hierarchy.from_children(tree.to_children(), tree.n_items, singletons=tree.singletons)"


def aligned(hierarchy: Hierarchy, other: Hierarchy, what: str) -> Hierarchy:
    """Return the other tree with its items numbered as in the one tree.

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
    """Return the number in the one tree of each item of the other ``[N]``; None where the numbers agree already.

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
    """Whether names are only the numbers ``0..N-1``, also as text."""
    return all(str(name) == str(number) for number, name in enumerate(names))


def _difference(mine: Sequence[Hashable], its: Sequence[Hashable], trees: tuple[str, str]) -> str:
    """Return which names are in one of the two trees only, or are listed twice."""
    found = []
    for side, there, tree in ((mine, set(its), trees[0]), (its, set(mine), trees[1])):
        alone = [name for name in dict.fromkeys(side) if name not in there]
        twice = [name for name, count in Counter(side).items() if count > 1]
        found += [f"{listed(alone)} in {tree} alone"] if alone else []
        found += [f"{listed(twice)} twice in {tree}"] if twice else []
    return " and ".join(found)
