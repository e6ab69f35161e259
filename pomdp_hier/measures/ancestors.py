"""The smallest clusters that hold several items of one class, for all classes at once.

For a class, call a node *branching* if it is the closest common ancestor of two of its members. A class of m members
has at most m - 1 of them, and between one branching node and the next the class's members do not change, so that what a
measure needs about all clusters and classes fits in O(N).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier.errors import ParameterError
from pomdp_hier.files.memory import held
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import shown

__all__ = ["Branching", "branching_nodes", "neighbour_ancestors", "one_label_an_item", "range_ancestors"]


@dataclass(frozen=True, eq=False)
class Branching:
    """The branching nodes of every class.

    Attributes:
        classes: The class of each row ``[B]``, ascending.
        nodes: A branching node of that class ``[B]``.
        counts: How many of the class's members it holds ``[B]``, two at least.
        above: The row of the next branching node above for the same class ``[B]``, -1 at the topmost.
    """

    classes: Ints
    nodes: Ints
    counts: Ints
    above: Ints


def neighbour_ancestors(hierarchy: Hierarchy) -> Ints:
    """Return the closest common ancestor of each item of ``item_order`` and the next one, ``[N - 1]``.

    Example:
        >>> neighbour_ancestors(Hierarchy.from_children([[0, 1], [3, 2]], 3))
        array([3, 4])
    """
    nodes = np.flatnonzero(hierarchy.parent >= 0)
    parents = hierarchy.parent[nodes]
    later = hierarchy.starts[nodes] > hierarchy.starts[parents]
    ancestors = np.empty(hierarchy.n_items - 1, dtype=np.int64)
    ancestors[hierarchy.starts[nodes[later]] - 1] = parents[later]
    return ancestors


def branching_nodes(hierarchy: Hierarchy, items: Ints, classes: Ints) -> Branching:
    """Return the branching nodes of classes that may overlap, given as pairs of an item and a class, ``[M]`` each.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> found = branching_nodes(tree, np.arange(4), np.array([7, 7, 7, 8]))
        >>> found.nodes, found.counts, found.above
        (array([4, 6]), array([2, 3]), array([ 1, -1]))
    """
    n_items = hierarchy.n_items
    position = np.argsort(hierarchy.item_order)
    _, rank = np.unique(classes, return_inverse=True)
    keys = np.sort(rank * n_items + position[items])
    place, group = keys % n_items, keys // n_items
    same = group[1:] == group[:-1]
    left = np.flatnonzero(same)
    meets = range_ancestors(hierarchy, place[left], place[left + 1])

    pair_keys = np.unique(group[left] * hierarchy.n_nodes + meets)
    nodes, owner = pair_keys % hierarchy.n_nodes, pair_keys // hierarchy.n_nodes
    begin = np.searchsorted(keys, owner * n_items + hierarchy.starts[nodes])
    end = np.searchsorted(keys, owner * n_items + hierarchy.starts[nodes] + hierarchy.sizes[nodes])
    # The next branching node above is the lower of the two ancestors met just outside the node's run of members.
    gap = np.full(len(keys) + 1, -1)
    gap[left + 1] = meets
    before, after = gap[begin], gap[end]
    level = np.append(hierarchy.levels, -1)
    upper = np.where(level[before] >= level[after], before, after)
    above = np.where(upper < 0, -1, np.searchsorted(pair_keys, owner * hierarchy.n_nodes + upper))
    _, first_member = np.unique(rank, return_index=True)
    return Branching(np.asarray(classes)[first_member][owner], nodes, end - begin, above)


def range_ancestors(hierarchy: Hierarchy, left: Ints, right: Ints) -> Ints:
    """Return the closest common ancestor of items at two positions of ``item_order``, left before right, ``[m]``."""
    if not len(left):
        return np.empty(0, dtype=np.int64)
    best = neighbour_ancestors(hierarchy)
    levels = hierarchy.levels
    result = np.empty(len(left), dtype=np.int64)
    width = right - left
    power = np.frexp(width)[1] - 1
    step = 1
    for exponent in range(int(power.max()) + 1):
        here = np.flatnonzero(power == exponent)
        one, other = best[left[here]], best[right[here] - step]
        result[here] = np.where(levels[one] <= levels[other], one, other)
        if step >= len(best):
            break
        best = np.where(levels[best[:-step]] <= levels[best[step:]], best[:-step], best[step:])
        step *= 2
    return result


def one_label_an_item(hierarchy: Hierarchy, labels: Any, read: Callable[[Any], Any] = lambda label: label) -> list[Any]:
    """Return the labels as a list, each as ``read`` reads it, if there is one an item and each can be hashed.

    Raises:
        HierarchyError: No hierarchy.
        ParameterError: Other labels.
    """
    require_hierarchy(hierarchy)
    try:
        given = labels.tolist() if isinstance(labels, np.ndarray) else held("labels", labels)
        names = [read(label) for label in given]
    except TypeError:
        raise ParameterError(
            f"labels: got {shown(labels)}; expected a list of one label per item, in item order"
        ) from None
    if len(names) != hierarchy.n_items:
        raise ParameterError(f"labels: got {len(names)}; expected {hierarchy.n_items}, one per item, in item order")
    for item, name in enumerate(names):
        try:
            hash(name)
        except TypeError:
            raise ParameterError(f"labels[{item}]: got {shown(name)}; expected a name, a number or None") from None
    return names
