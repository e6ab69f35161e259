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
    "LARGEST",
    "LEVEL",
    "NEGATIVE",
    "PARENT",
    "RANK",
    "REWARD",
    "RISE",
    "SHARE",
    "SIZE",
    "START",
    "Forest",
    "Options",
    "Scratch",
    "Table",
    "by_distance",
    "compiled",
    "dot",
    "inlined",
    "mean_cosine",
    "prepare",
    "scale_of_squares",
    "scratch",
    "share_out",
    "square_of",
    "squared_distance",
    "weigh",
]

COSINE, INVERSE, NEGATIVE = 0, 1, 2

Function = TypeVar("Function", bound=Callable[..., Any])

_njit: Any = numba.njit
_FASTMATH = {"reassoc", "contract", "nsz"}

compiled = machine_code(fastmath=_FASTMATH, _nrt=False, no_cfunc_wrapper=True)
"""Sums may be reordered; NaN stays NaN. Arrays are the caller's: counting references to them would double the time."""


def inlined(function: Function) -> Function:
    """Compiles into its callers by LLVM.

    A call would hand over two dozen arrays, and numba's own inlining drops fastmath: either doubles the time of a node.
    Nobody calls it from Python, so that the wrappers for that, half a second each to compile, are left out.
    """
    return cast(
        Function,
        _njit(
            forceinline=True,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            nogil=True,
            fastmath=_FASTMATH,
            error_model="numpy",
            _nrt=False,
        )(function),
    )


class Forest(NamedTuple):
    """The tree, its rewards and its temperatures, each node's numbers side by side."""

    root: int
    places: Any  # [n_nodes, 8], int32: see below
    worths: Any  # [n_nodes, 3]: reward, rise, 1 / size
    potential: Any  # [n_nodes], empty for rules that look one step ahead
    child_nodes: Any
    temperatures: Any


FIRST, COUNT, START, SIZE, LEVEL = range(5)  # first child, number of children, position in leaf order, items, level
PARENT, RANK, LARGEST = range(5, 8)  # parent, rank among its children (-1 for what is no cluster), largest child's rank
REWARD, RISE, SHARE = range(3)


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
    beside: Any
    eta: Any
    weights: Any
    potentials: Any
    frames: Any
    bounds: Any


def scratch(n_columns: int, longest: int, height: int) -> Scratch:
    """Return room for rows of that many columns, lists of children that long, and that many steps ahead."""
    return Scratch(
        row=np.empty(n_columns),
        beside=np.empty(n_columns),
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
        if 1e-200 < largest < 1e200:
            length *= largest
            for d in range(row.shape[0]):
                row[d] = features[item, d] / length
        else:
            for d in range(row.shape[0]):
                row[d] = features[item, d] / largest / length
    else:
        for d in range(row.shape[0]):
            row[d] = features[item, d] - centre[d]


@inlined
def dot(table: Table, node: int, row: Any) -> Any:
    """Return the product of a prepared row with the sum of a node's."""
    features, sums = table.features, table.sums
    k = node - features.shape[0]
    total = 0.0
    if k >= 0:
        for d in range(row.shape[0]):
            total += sums[k, d] * row[d]
        return total
    largest, length = table.scales[node, 0], table.scales[node, 1]
    if 1e-200 < largest < 1e200:
        for d in range(row.shape[0]):
            total += features[node, d] * row[d]
        return total / (largest * length)
    for d in range(row.shape[0]):
        total += features[node, d] / largest * row[d]
    return total / length


@inlined
def mean_cosine(options: Options, product: float, size: Any, inside: bool, square: float) -> Any:
    """Return the similarity that a product with a cluster's sum stands for."""
    # Without branches: which child is the item's own cannot be foretold, and a wrong guess costs as much as a product.
    left_out = 1 if inside and options.leave_out else 0
    value = (product - left_out * square) / max(size - left_out, 1)
    return options.own_singleton if inside and size == 1 and options.fixed else value


@inlined
def squared_distance(table: Table, node: int, share: float, row: Any) -> Any:
    """Return the squared distance of a prepared row to a node's centroid, with ``share`` one over the node's size."""
    features, centre, sums = table.features, table.centre, table.sums
    k = node - features.shape[0]
    total = 0.0
    if k < 0:
        for d in range(row.shape[0]):
            gap = row[d] - (features[node, d] - centre[d])
            total += gap * gap
    else:
        # With the share worked out here, the compiler would divide every column by the size: twice the time.
        for d in range(row.shape[0]):
            gap = row[d] - sums[k, d] * share
            total += gap * gap
    return total


@inlined
def scale_of_squares(options: Options, size: Any, inside: bool, n_columns: int) -> Any:
    """Return what a squared distance to a cluster is multiplied with: for the item left out, and for the mean."""
    scale = (size / (size - 1)) ** 2 if inside and options.leave_out and size > 1 else 1.0
    return scale / n_columns if options.mean else scale


@inlined
def by_distance(options: Options, square: float, size: Any, inside: bool) -> Any:
    """Return the similarity that a squared distance, scaled, stands for."""
    square = 0.0 if inside and size == 1 else square
    value = 1.0 / (square + options.epsilon) if options.kind == INVERSE else -np.sqrt(square)
    return options.own_singleton if inside and size == 1 and options.fixed else value


@inlined
def share_out(forest: Forest, node: int, top: float, eta: Any, at: Any) -> Any:
    """Turn the similarities at ``eta[at:]``, of which ``top`` is the largest, into guidance; returns the margin."""
    low, count, worth = forest.places[node, FIRST], forest.places[node, COUNT], 1.0 + forest.worths[node, REWARD]
    temperature = forest.temperatures[forest.places[node, LEVEL]]
    total, margin = 0.0, 0.0
    for rank in range(count):
        gap = eta[at + rank] - top
        weight = np.exp(gap / temperature) if gap < 0.0 else 1.0
        eta[at + rank] = weight
        total += weight
    for rank in range(count):
        share = eta[at + rank] / total
        eta[at + rank] = share
        rise = forest.worths[forest.child_nodes[low + rank], RISE]
        margin += share * (share * rise - worth * (1.0 - share))
    return margin


@inlined
def weigh(
    forest: Forest,
    table: Table,
    options: Options,
    node: int,
    position: int,
    row: Any,
    square: float,
    eta: Any,
    at: Any,
) -> Any:
    """Write the guidance to the children of any node to ``eta[at:]``; returns the margin."""
    places = forest.places
    low, top = places[node, FIRST], -np.inf
    for rank in range(places[node, COUNT]):
        child = forest.child_nodes[low + rank]
        size = np.int64(places[child, SIZE])
        inside = 0 <= position - places[child, START] < size
        if options.kind == COSINE:
            value = mean_cosine(options, dot(table, child, row), size, inside, square)
        else:
            value = squared_distance(table, child, forest.worths[child, SHARE], row)
            value = by_distance(options, value * scale_of_squares(options, size, inside, row.shape[0]), size, inside)
        eta[at + rank] = value
        top = max(top, value)
    return share_out(forest, node, top, eta, at)


@inlined
def square_of(row: Any) -> Any:
    total = 0.0
    for d in range(row.shape[0]):
        total += row[d] * row[d]
    return total
