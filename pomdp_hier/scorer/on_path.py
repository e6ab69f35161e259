"""One item on the path from the root to its own leaf, for numba: what a step down is worth, step after step.

The path is known before any similarity is, and items that follow one another in leaf order share most of it. What a
step needs that does not depend on the item is therefore worked out once for all items that take it. What is left for
each item and step is a dot product and a softmax, hardly with a branch that cannot be foretold.

Importing this module needs numba.
"""

from typing import Any, NamedTuple

import numpy as np

from pomdp_hier.scorer.at_node import (
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
    prepare,
    scale_of_squares,
    share_out,
    squared_distance,
)
from pomdp_hier.scorer.drift import DRIFTS, UNKNOWN

__all__ = ["OWN_WORTH", "Path", "follow", "lay", "path_scratch", "weigh_step"]

LEAST = -746.0  # whose exponential, and that of all below, is 0, though the library takes its time over it
CANCELLED = 0.1  # of all that a squared distance is derived from: below that, it is made anew (numpy's: 1e-3 of a step)


class Path(NamedTuple):
    """The way down to one item; step l leads from ``nodes[l]`` to ``nodes[l + 1]``."""

    nodes: Any  # [height + 2]
    steps: Any  # [height + 1, 8]: children, own child's rank, derived child's rank, drift; of two: see below
    numbers: Any  # [height + 1, 12]: temperature, 1 + reward, own child's likewise; of two: see below


WIDTH, OWN, DERIVED, DRIFT = range(4)
SMALL, LARGE, OWN_SIZE, OTHER_SIZE = range(4, 8)  # the smaller child, the larger
TEMPERATURE, WORTH, OWN_WORTH = range(3)
OWN_RISE, OTHER_RISE, OWN_SCALE, OTHER_SCALE, MERGE = range(3, 8)
SMALL_COUNT, SMALL_SHARE, LARGE_COUNT, LARGE_SHARE = range(8, 12)  # sizes, and one over them


def path_scratch(height: int) -> Path:
    """Return room for a path, with no item on it."""
    return Path(np.full(height + 2, -1), np.empty((height + 1, 8), np.int64), np.empty((height + 1, 12)))


@inlined
def follow(forest: Forest, item: int, path: Path, enter_own_singleton: bool) -> tuple[Any, Any]:
    """Write the nodes from the root to the item's leaf over those of the item before.

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
def lay(forest: Forest, table: Table, options: Options, path: Path, level: Any, centroid: Any) -> None:
    """Write to the path what its step from this level needs and no item changes; the steps above are there already.

    For the cosine, the largest child's dot product is what the others leave of the node's own, as long as its drift
    allows that.

    For two children a and b, squared distances to the centroids add up as well (König and Huygens):
    ``n_a d_a + n_b d_b = n d + n_a n_b / n ||m_a - m_b||**2``, whose last term, the same for all items, is laid down
    here. How much of it cancels depends on the item, and is looked at there.

    Args:
        forest, table, options: What the search runs over.
        path: The item's path.
        level: The step's.
        centroid: Room for a row.
    """
    places, worths, steps, numbers = forest.places, forest.worths, path.steps, path.numbers
    node, own = path.nodes[level], path.nodes[level + 1]
    first, largest = places[node, FIRST], places[node, LARGEST]
    drift = np.int64(places[node, SIZE]) * (places[node, COUNT] - 1) + (
        steps[level - 1, DRIFT] if level > 0 else UNKNOWN
    )
    large = forest.child_nodes[first + largest]
    derived = options.kind == COSINE and drift <= DRIFTS * np.int64(places[large, SIZE])
    steps[level, WIDTH] = places[node, COUNT]
    steps[level, OWN] = places[own, RANK]
    steps[level, DERIVED] = largest if derived else -1
    steps[level, DRIFT] = drift if derived and largest == places[own, RANK] else 0
    numbers[level, TEMPERATURE] = forest.temperatures[level]
    numbers[level, WORTH], numbers[level, OWN_WORTH] = 1.0 + worths[node, REWARD], 1.0 + worths[own, REWARD]
    if places[node, COUNT] != 2:
        return
    small = forest.child_nodes[first + 1 - largest]
    other = small if own == large else large
    size, other_size = np.int64(places[own, SIZE]), np.int64(places[other, SIZE])
    steps[level, SMALL], steps[level, LARGE] = small, large
    steps[level, OWN_SIZE], steps[level, OTHER_SIZE] = size, other_size
    numbers[level, OWN_RISE], numbers[level, OTHER_RISE] = worths[own, RISE], worths[other, RISE]
    numbers[level, SMALL_COUNT], numbers[level, LARGE_COUNT] = places[small, SIZE], places[large, SIZE]
    numbers[level, SMALL_SHARE], numbers[level, LARGE_SHARE] = worths[small, SHARE], worths[large, SHARE]
    if options.kind != COSINE:
        n_columns, yes = table.centre.shape[0], bool(size > 0)
        numbers[level, OWN_SCALE] = scale_of_squares(options, size, yes, n_columns) / size
        numbers[level, OTHER_SCALE] = scale_of_squares(options, other_size, not yes, n_columns) / other_size
        k = small - table.features.shape[0]
        if k < 0:
            prepare(table.features, table.scales, table.centre, options.kind, small, centroid)
        else:
            for d in range(n_columns):
                centroid[d] = table.sums[k, d] * numbers[level, SMALL_SHARE]
        apart = squared_distance(table, large, numbers[level, LARGE_SHARE], centroid)
        numbers[level, MERGE] = apart * numbers[level, SMALL_COUNT] * numbers[level, LARGE_COUNT] * worths[node, SHARE]


@inlined
def _weigh_two(
    table: Table, options: Options, path: Path, level: Any, row: Any, square: float, whole: float, added: float
) -> tuple[Any, Any, Any, Any]:
    """Do what :func:`weigh_step` does at a node with two children."""
    steps, numbers = path.steps, path.numbers
    small, large, own_large = steps[level, SMALL], steps[level, LARGE], steps[level, LARGE] == path.nodes[level + 1]
    size, other_size = steps[level, OWN_SIZE], steps[level, OTHER_SIZE]
    yes = size > 0  # plain constants would be types of their own, and compiled for twice
    if options.kind == COSINE:
        part = dot(table, small, row)
        rest = whole - part if steps[level, DERIVED] >= 0 else dot(table, large, row)
        whole, other = (rest, part) if own_large else (part, rest)
        own_value = mean_cosine(options, whole, size, yes, square)
        other_value = mean_cosine(options, other, other_size, not yes, square)
    else:
        part = squared_distance(table, small, numbers[level, SMALL_SHARE], row) * numbers[level, SMALL_COUNT]
        whole += numbers[level, MERGE]
        added += whole
        rest = whole - part
        if not rest > CANCELLED * added:
            rest = squared_distance(table, large, numbers[level, LARGE_SHARE], row) * numbers[level, LARGE_COUNT]
            added = 0.0
        whole, other, added = (rest, part, added) if own_large else (part, rest, 0.0)
        own_value = by_distance(options, whole * numbers[level, OWN_SCALE], size, yes)
        other_value = by_distance(options, other * numbers[level, OTHER_SCALE], other_size, not yes)
    gap = own_value - other_value
    scaled = -abs(gap) / numbers[level, TEMPERATURE]
    weight = 0.0 if scaled < LEAST else np.exp(scaled)
    likely = 1.0 / (1.0 + weight)
    unlikely = weight * likely
    eta, rest_eta = (likely, unlikely) if gap > 0.0 else (unlikely, likely)
    worth = numbers[level, WORTH]
    margin = eta * (eta * numbers[level, OWN_RISE] - worth * (1.0 - eta))
    margin += rest_eta * (rest_eta * numbers[level, OTHER_RISE] - worth * (1.0 - rest_eta))
    return eta, margin, whole, added


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
    added: float,
    eta: Any,
) -> tuple[Any, Any, Any, Any]:
    """Weighs the children at the step's upper end for one item.

    Args:
        forest, table, options: What the search runs over.
        path: The item's path.
        level: The step's.
        row: The item's prepared row.
        square: Its squared length.
        whole: Its product with the node's sum, if that is known; for a distance, the squared one to the node's
            centroid, times the node's size.
        added: For a distance, what has been added up since a squared one was last made anew; infinite before.
        eta: Room for the guidance.

    Returns:
        The guidance to the own child, the margin, and the own child's whole and what was added for it.
    """
    if path.steps[level, WIDTH] == 2:
        return _weigh_two(table, options, path, level, row, square, whole, added)
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
            gaps = squared_distance(table, child, worths[child, SHARE], row)
            own_whole = gaps * size if rank == own else own_whole
            scale = scale_of_squares(options, size, rank == own, row.shape[0])
            value = by_distance(options, gaps * scale, size, rank == own)
        eta[rank] = value
        top = max(top, value)
    margin = share_out(forest, path.nodes[level], top, eta, np.int64(0))
    return eta[own], margin, own_whole, 0.0
