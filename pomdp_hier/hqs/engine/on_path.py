"""One item on the path from the root to its own leaf, for numba: what a step down is worth, step after step.

The path is known before any similarity is, and items that follow one another in leaf order share most of it. What a
step needs that does not depend on the item is therefore worked out once for all items that take it. What is left for
each item and step is a dot product and a softmax, hardly with a branch that cannot be foretold.

Importing this module needs numba.
"""

from typing import Any, NamedTuple

import numpy as np

from pomdp_hier.hqs.engine.at_node import (
    COSINE,
    COUNT,
    FIRST,
    LARGEST,
    LEVEL,
    PARENT,
    RANK,
    REWARD,
    RISE,
    SHARE,
    SIZE,
    Forest,
    Options,
    Table,
    by_distance,
    dot,
    inlined,
    mean_cosine,
    share_out,
)

__all__ = ["OWN_WORTH", "Path", "follow", "lay", "path_scratch", "weigh_step"]

DRIFTS = 8  # roundings of a mean cosine that a product may gather from those above before it is made anew
UNKNOWN = 1 << 60  # as drift: the node's own product is not known


class Path(NamedTuple):
    """The way down to one item; step l leads from ``nodes[l]`` to ``nodes[l + 1]``."""

    nodes: Any  # [height + 2]
    steps: Any  # [height + 1, 7]: children, own child's rank, derived child's rank, drift; of two: the other, sizes
    worths: Any  # [height + 1, 7]: temperature, 1 + reward, own child's likewise; own and other's rise, 1 / size


WIDTH, OWN, DERIVED, DRIFT, OTHER, OWN_SIZE, OTHER_SIZE = range(7)
TEMPERATURE, WORTH, OWN_WORTH, OWN_RISE, OTHER_RISE, OWN_SHARE, OTHER_SHARE = range(7)


def path_scratch(height: int) -> Path:
    """Returns room for a path, with no item on it."""
    return Path(np.full(height + 2, -1), np.empty((height + 1, 7), np.int64), np.empty((height + 1, 7)))


@inlined
def follow(forest: Forest, item: int, path: Path, enter_own_singleton: bool) -> tuple[Any, Any]:
    """Writes the nodes from the root to the item's leaf over those of the item before.

    Returns:
        The number of steps that the item may take, and how many of them the item before took as well.
    """
    places, nodes = forest.places, path.nodes
    alone = places[item, RANK] >= 0
    node = item if alone else places[item, PARENT]
    length = places[node, LEVEL]
    known = length + 1
    while known > 0 and nodes[known - 1] != node:
        known -= 1
        nodes[known] = node
        node = places[node, PARENT]
    return max(length - 1, 0) if alone and not enter_own_singleton else length, max(known - 1, 0)


@inlined
def lay(forest: Forest, options: Options, path: Path, level: Any) -> None:
    """Writes down the step from this level on; those above are there.

    The children's sums add up to the node's, so that one dot product, the largest child's, is what the others leave of
    the node's own. Each product taken off may add the rounding of the whole, that of as many unit vectors as the node
    has items: ``drift``. As long as that is at most DRIFTS for each item of the child, and so for the mean, the child's
    own product is not needed.
    """
    places, worths, steps, numbers = forest.places, forest.worths, path.steps, path.worths
    node, own = path.nodes[level], path.nodes[level + 1]
    first, largest = places[node, FIRST], places[node, LARGEST]
    drift = np.int64(places[node, SIZE]) * (places[node, COUNT] - 1) + (
        steps[level - 1, DRIFT] if level > 0 else UNKNOWN
    )
    most = np.int64(places[forest.child_nodes[first + largest], SIZE])
    derived = options.kind == COSINE and drift <= DRIFTS * most
    other = forest.child_nodes[first + (1 if places[own, RANK] == 0 and places[node, COUNT] == 2 else 0)]
    steps[level, WIDTH] = places[node, COUNT]
    steps[level, OWN] = places[own, RANK]
    steps[level, DERIVED] = largest if derived else -1
    steps[level, DRIFT] = drift if derived and largest == places[own, RANK] else 0
    steps[level, OTHER] = other
    steps[level, OWN_SIZE], steps[level, OTHER_SIZE] = places[own, SIZE], places[other, SIZE]
    numbers[level, TEMPERATURE] = forest.temperatures[level]
    numbers[level, WORTH], numbers[level, OWN_WORTH] = 1.0 + worths[node, REWARD], 1.0 + worths[own, REWARD]
    numbers[level, OWN_RISE], numbers[level, OTHER_RISE] = worths[own, RISE], worths[other, RISE]
    numbers[level, OWN_SHARE], numbers[level, OTHER_SHARE] = worths[own, SHARE], worths[other, SHARE]


@inlined
def _weigh_two(
    table: Table, options: Options, path: Path, level: Any, row: Any, square: float, whole: float
) -> tuple[Any, Any, Any]:
    """Does what :func:`weigh_step` does at a node with two children."""
    steps, numbers = path.steps, path.worths
    own, other = path.nodes[level + 1], steps[level, OTHER]
    size, other_size, derived = steps[level, OWN_SIZE], steps[level, OTHER_SIZE], steps[level, DERIVED]
    yes = size > 0  # plain constants would be types of their own, and compiled for twice
    if options.kind == COSINE:
        if derived >= 0:
            own_first = derived != steps[level, OWN]
            part = dot(table, own if own_first else other, row)
            whole, rest = (part, whole - part) if own_first else (whole - part, part)
        else:
            whole, rest = dot(table, own, row), dot(table, other, row)
        own_value = mean_cosine(options, whole, size, yes, square)
        other_value = mean_cosine(options, rest, other_size, not yes, square)
    else:
        own_value = by_distance(table, options, own, size, numbers[level, OWN_SHARE], yes, row)
        other_value = by_distance(table, options, other, other_size, numbers[level, OTHER_SHARE], not yes, row)
    gap = own_value - other_value
    weight = np.exp(-abs(gap) / numbers[level, TEMPERATURE]) if gap != 0.0 else 1.0
    likely = 1.0 / (1.0 + weight)
    unlikely = weight * likely
    eta, rest_eta = (likely, unlikely) if gap > 0.0 else (unlikely, likely)
    worth = numbers[level, WORTH]
    margin = eta * (eta * numbers[level, OWN_RISE] - worth * (1.0 - eta))
    margin += rest_eta * (rest_eta * numbers[level, OTHER_RISE] - worth * (1.0 - rest_eta))
    return eta, margin, whole


@inlined
def weigh_step(
    forest: Forest,
    table: Table,
    options: Options,
    path: Path,
    level: Any,
    row: Any,
    square: float,
    whole: float,
    eta: Any,
) -> tuple[Any, Any, Any]:
    """Weighs the children at the step's upper end for one item.

    Args:
        forest, table, options: What the search runs over.
        path: The item's path.
        level: The step's.
        row: The item's prepared row.
        square: Its squared length.
        whole: Its product with the node's sum, if that is known.
        eta: Room for the guidance.

    Returns:
        The guidance to the own child, the margin, and the product with the own child's sum.
    """
    if path.steps[level, WIDTH] == 2:
        return _weigh_two(table, options, path, level, row, square, whole)
    places, worths, child_nodes = forest.places, forest.worths, forest.child_nodes
    steps = path.steps
    low, count = places[path.nodes[level], FIRST], steps[level, WIDTH]
    own, derived = steps[level, OWN], steps[level, DERIVED]
    own_whole, top = 0.0, -np.inf
    for step in range(count):
        # The derived child changes places with the last.
        rank = (derived if step == count - 1 else count - 1 if step == derived else step) if derived >= 0 else step
        child = child_nodes[low + rank]
        size = np.int64(places[child, SIZE])
        if options.kind == COSINE:
            product = whole if rank == derived else dot(table, child, row)
            whole -= product
            own_whole = product if rank == own else own_whole
            value = mean_cosine(options, product, size, rank == own, square)
        else:
            value = by_distance(table, options, child, size, worths[child, SHARE], rank == own, row)
        eta[rank] = value
        top = max(top, value)
    margin = share_out(forest, path.nodes[level], top, eta, np.int64(0))
    return eta[own], margin, own_whole
