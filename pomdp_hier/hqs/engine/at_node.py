"""One item at one node, for numba: its similarities to the children, the guidance, and what a step down is worth.

Importing this module needs numba.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

from pomdp_hier.features.compiled import machine_code

__all__ = [
    "COSINE",
    "COUNT",
    "FIRST",
    "INVERSE",
    "LAST",
    "NEGATIVE",
    "NO_WHOLE",
    "REWARD",
    "START",
    "Forest",
    "Options",
    "Scratch",
    "Table",
    "compiled",
    "prepare",
    "scratch",
    "square_of",
    "weigh",
]

COSINE, INVERSE, NEGATIVE = 0, 1, 2

Function = TypeVar("Function", bound=Callable[..., Any])

_njit: Any = numba.njit
_FASTMATH = {"reassoc", "contract", "nsz"}

compiled = machine_code(fastmath=_FASTMATH, _nrt=False)
"""Sums may be reordered; NaN stays NaN. Arrays are the caller's: counting references to them would double the time."""


def inlined(function: Function) -> Function:
    """Compiles into its callers by LLVM.

    A call would hand over two dozen arrays, and numba's own inlining drops fastmath: either doubles the time of a node.
    """
    return cast(
        Function, _njit(forceinline=True, nogil=True, fastmath=_FASTMATH, error_model="numpy", _nrt=False)(function)
    )


class Forest(NamedTuple):
    """The tree, its rewards and its temperatures, each node's numbers side by side."""

    root: int
    places: Any  # [n_nodes, 6], int32: first child, number of children, start, size, level, own singleton's parent
    worths: Any  # [n_nodes, 3]: reward, rise, 1 / size
    potential: Any  # [n_nodes], empty for rules that look one step ahead
    child_nodes: Any
    temperatures: Any


FIRST, COUNT, START, SIZE, LEVEL, LAST = range(6)
REWARD, RISE, SHARE = range(3)

DRIFT = 8  # roundings of a mean cosine that a product may gather from those above before it is made anew
NO_WHOLE = 1 << 60  # as drift: the node's own product is not known


class Options(NamedTuple):
    """The similarity and its options."""

    kind: int
    leave_out: bool
    mean: bool
    epsilon: float
    fixed: bool  # whether the similarity to an item's own singleton is own_singleton
    own_singleton: float


class Table(NamedTuple):
    """Features, what prepares their rows, and the clusters' sums; see DenseAffinity."""

    features: Any
    scales: Any  # [N, 2]: largest, length
    centre: Any
    sums: Any


class Scratch(NamedTuple):
    """Room for one item on its way."""

    row: Any
    eta: Any
    weights: Any
    potentials: Any
    frames: Any
    bounds: Any


def scratch(n_columns: int, longest: int, height: int) -> Scratch:
    """Returns room for rows of that many columns, lists of children that long, and that many steps ahead."""
    return Scratch(
        row=np.empty(n_columns),
        eta=np.empty(longest),
        weights=np.empty(longest),
        potentials=np.empty(longest),
        frames=np.empty((height + 2, 3), np.int64),
        bounds=np.empty((height + 2, 4)),
    )


@inlined
def prepare(features: Any, scales: Any, centre: Any, kind: int, item: int, row: Any) -> None:
    if kind == COSINE:
        largest, length = scales[item, 0], scales[item, 1]
        for d in range(row.shape[0]):
            row[d] = features[item, d] / largest / length
    else:
        for d in range(row.shape[0]):
            row[d] = features[item, d] - centre[d]


@inlined
def _dot_sum(sums: Any, k: int, row: Any) -> Any:
    total = 0.0
    for d in range(row.shape[0]):
        total += sums[k, d] * row[d]
    return total


@inlined
def _dot_item(features: Any, scales: Any, item: int, row: Any) -> Any:
    largest = scales[item, 0]
    total = 0.0
    if 1e-200 < largest < 1e200:
        for d in range(row.shape[0]):
            total += features[item, d] * row[d]
        return total / (largest * scales[item, 1])
    for d in range(row.shape[0]):
        total += features[item, d] / largest * row[d]
    return total / scales[item, 1]


@inlined
def _square_to_centroid(sums: Any, k: int, share: float, row: Any) -> Any:
    # With 1 / size worked out here, the compiler would divide every column by the size: twice the time.
    total = 0.0
    for d in range(row.shape[0]):
        gap = row[d] - sums[k, d] * share
        total += gap * gap
    return total


@inlined
def _square_to_item(features: Any, centre: Any, item: int, row: Any) -> Any:
    total = 0.0
    for d in range(row.shape[0]):
        gap = row[d] - (features[item, d] - centre[d])
        total += gap * gap
    return total


@inlined
def _mean_cosine(options: Options, dot: float, size: int, inside: bool, square: float) -> Any:
    # Without branches: which child is the item's own cannot be foretold, and a wrong guess costs as much as a product.
    left_out = 1 if inside and options.leave_out else 0
    value = (dot - left_out * square) / max(size - left_out, 1)
    return options.own_singleton if inside and size == 1 and options.fixed else value


@inlined
def _dot(table: Table, node: int, row: Any) -> Any:
    n_items = table.features.shape[0]
    if node < n_items:
        return _dot_item(table.features, table.scales, node, row)
    return _dot_sum(table.sums, node - n_items, row)


@inlined
def _by_distance(
    forest: Forest,
    table: Table,
    options: Options,
    node: int,
    size: int,
    inside: bool,
    row: Any,
) -> Any:
    n_items = table.features.shape[0]
    if inside and size == 1 and options.fixed:
        return options.own_singleton
    if inside and size == 1:
        value = 0.0
    elif node < n_items:
        value = _square_to_item(table.features, table.centre, node, row)
    else:
        value = _square_to_centroid(table.sums, node - n_items, forest.worths[node, SHARE], row)
        if inside and options.leave_out:
            value *= (size / (size - 1)) ** 2
    if options.mean:
        value /= row.shape[0]
    return 1.0 / (value + options.epsilon) if options.kind == INVERSE else -np.sqrt(value)


@inlined
def _weigh_two(
    forest: Forest,
    table: Table,
    options: Options,
    node: int,
    position: int,
    row: Any,
    square: float,
    whole: float,
    drift: Any,
    eta: Any,
    at: Any,
) -> tuple[int, Any, Any, Any]:
    """Does what :func:`_weigh_many` does at a node with two children, almost without branches.

    Which child is an item's own, or the likelier, cannot be foretold, and a wrong guess costs as much as a dot product.
    """
    places, worths, child_nodes, temperatures = forest.places, forest.worths, forest.child_nodes, forest.temperatures
    low = places[node, FIRST]
    first, second = child_nodes[low], child_nodes[low + 1]
    size, other_size = places[first, SIZE], places[second, SIZE]
    inside = 0 <= position - places[first, START] < size
    inside_other = 0 <= position - places[second, START] < other_size
    own_whole, own_drift = 0.0, 0
    if options.kind == COSINE:
        drift += places[node, SIZE]
        swap = size > other_size
        small, large, most = (second, first, size) if swap else (first, second, other_size)
        part, derived = _dot(table, small, row), drift <= DRIFT * most
        rest = whole - part if derived else _dot(table, large, row)
        one, other = (rest, part) if swap else (part, rest)
        own_whole = one if inside else other
        own_drift = drift if derived and inside == swap else 0
        one = _mean_cosine(options, one, size, inside, square)
        other = _mean_cosine(options, other, other_size, inside_other, square)
    else:
        one = _by_distance(forest, table, options, first, size, inside, row)
        other = _by_distance(forest, table, options, second, other_size, inside_other, row)
    weight = np.exp(-abs(one - other) / temperatures[places[node, LEVEL]]) if one != other else 1.0
    likely, unlikely = 1.0 / (1.0 + weight), weight / (1.0 + weight)
    one, other = (likely, unlikely) if one > other else (unlikely, likely)
    eta[at], eta[at + 1] = one, other
    worth = 1.0 + worths[node, REWARD]
    margin = one * (one * worths[first, RISE] - worth * (1.0 - one))
    margin += other * (other * worths[second, RISE] - worth * (1.0 - other))
    return 0 if inside else 1 if inside_other else -1, margin, own_whole, own_drift


@inlined
def _weigh_many(
    forest: Forest,
    table: Table,
    options: Options,
    node: int,
    position: int,
    row: Any,
    square: float,
    whole: float,
    drift: Any,
    eta: Any,
    at: Any,
) -> tuple[int, Any, Any, Any]:
    """Writes the guidance to the children to ``eta[at:]``.

    The children's sums add up to the node's, so that one dot product, the largest child's, is what the others leave of
    the node's own, ``whole``. Its rounding error is that of ``drift`` summed unit vectors more; as long as that is at
    most DRIFT for each item of the child, and so for the mean, the child's own product is not needed.

    Returns:
        The rank of the own child (or -1), the margin, and ``whole`` and ``drift`` of the own child.
    """
    places, worths, child_nodes, temperatures = forest.places, forest.worths, forest.child_nodes, forest.temperatures
    low, count = places[node, FIRST], places[node, COUNT]
    own, own_whole, own_drift = -1, 0.0, 0
    top, derived, most = -np.inf, -1, 0
    if options.kind == COSINE:
        drift += places[node, SIZE]
        for rank in range(count):
            size = places[child_nodes[low + rank], SIZE]
            derived, most = (rank, size) if size > most else (derived, most)
        derived = derived if drift <= DRIFT * most else -1
    for step in range(count):
        # The derived child changes places with the last.
        rank = (derived if step == count - 1 else count - 1 if step == derived else step) if derived >= 0 else step
        child = child_nodes[low + rank]
        size = places[child, SIZE]
        inside = 0 <= position - places[child, START] < size
        own = rank if inside else own
        if options.kind == COSINE:
            dot = whole if rank == derived else _dot(table, child, row)
            whole -= dot
            if inside:
                own_whole, own_drift = dot, drift if rank == derived else 0
            value = _mean_cosine(options, dot, size, inside, square)
        else:
            value = _by_distance(forest, table, options, child, size, inside, row)
        eta[at + rank] = value
        top = max(top, value)
    temperature, worth = temperatures[places[node, LEVEL]], 1.0 + worths[node, REWARD]
    total, margin = 0.0, 0.0
    for rank in range(count):
        gap = eta[at + rank] - top
        weight = np.exp(gap / temperature) if gap < 0.0 else 1.0
        eta[at + rank] = weight
        total += weight
    for rank in range(count):
        share = eta[at + rank] / total
        eta[at + rank] = share
        margin += share * (share * worths[child_nodes[low + rank], RISE] - worth * (1.0 - share))
    return own, margin, own_whole, own_drift


@inlined
def weigh(
    forest: Forest,
    table: Table,
    options: Options,
    node: int,
    position: int,
    row: Any,
    square: float,
    whole: float,
    drift: Any,
    eta: Any,
    at: Any,
) -> tuple[int, Any, Any, Any]:
    """Does what :func:`_weigh_many` says, by the way that is faster at this node."""
    if forest.places[node, COUNT] == 2:
        return _weigh_two(forest, table, options, node, position, row, square, whole, drift, eta, at)
    return _weigh_many(forest, table, options, node, position, row, square, whole, drift, eta, at)


@inlined
def square_of(row: Any) -> Any:
    total = 0.0
    for d in range(row.shape[0]):
        total += row[d] * row[d]
    return total
