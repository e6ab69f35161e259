"""The numba engine: one item after another, from the root to its stop node.

The result of an item depends on this item alone, and is bit-for-bit identical for any number of threads. All compiled
code of the engine is in this file, as numba's cache on disk is valid while the file is unchanged. Importing this module
needs numba.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._engines.task import TIE, Advance, AlwaysDescend, HindsightRule, LookAhead, Stops, Task
from pomdp_hier._imports import compiling
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean
from pomdp_hier.features.validation import require_whole
from pomdp_hier.hierarchy.arrays import sum_to_root

PIECE_ITEMS = 4096
PIECE_STEPS = 1 << 20
_UNLIMITED = 1 << 40

SMALL, LARGE = 1e-200, 1e200
LEAST = -746.0  # exp of this and of smaller numbers is 0

BUDGET = 8  # accepted rounding error of a derived product, in unit vectors per item; see weigh()

COSINE, INVERSE, NEGATIVE = range(3)
ONE_STEP, TO_THE_LEAF, BEST_IN_HINDSIGHT = range(3)

FIRST, COUNT, SIZE, LEVEL, PARENT, CLUSTER = range(6)  # columns of TreeArrays.places
GROSS, RISE, SHARE = range(3)  # columns of TreeArrays.values


class TreeArrays(NamedTuple):
    """The tree, its rewards and its temperatures, with the numbers of a node adjacent in memory.

    Attributes:
        root: The root.
        places: First child, number of children, items, level, parent, and whether it is a cluster ``[n_nodes, 6]``.
        values: 1 + reward, rise and one over the size ``[n_nodes, 3]``.
        potential: See `Task`; empty for one-step rules.
        child_nodes: As in `Hierarchy`, but with the largest child of each node last.
        temperatures: ``delta_t`` per level.
    """

    root: int
    places: Any
    values: Any
    potential: Any
    child_nodes: Any
    temperatures: Any


class Similarities(NamedTuple):
    """Features, scales of their rows, cluster sums, and the options of the similarity.

    Attributes:
        features, centre, sums: See `DenseAffinity`.
        scales: The largest absolute value and the length of each row ``[N, 2]``.
        kind: The similarity.
        leave_out, mean, epsilon: Its options.
        fixed: Whether the similarity to an item's own singleton is ``own_singleton``.
    """

    features: Any
    scales: Any
    centre: Any
    sums: Any
    kind: int
    leave_out: bool
    mean: bool
    epsilon: float
    fixed: bool
    own_singleton: float


class Scratch(NamedTuple):
    """Work arrays for one item: its row, its path, the guidance, and the stack of the planner."""

    row: Any
    path: Any
    eta: Any
    potentials: Any
    frames: Any
    bounds: Any


Function = TypeVar("Function", bound=Callable[..., Any])

_FASTMATH = {"reassoc", "contract", "nsz"}
_njit: Any = numba.njit

compiled = compiling(fastmath=_FASTMATH, _nrt=False, no_cfunc_wrapper=True)
"""Sums may be reordered; NaN stays NaN. Arrays are the caller's, as reference counts would double the time."""


def inlined(function: Function, fastmath: Any = _FASTMATH) -> Function:
    """Compile into the callers, by LLVM.

    A call with two dozen arrays, or numba's own inlining without fastmath, would double the time per node. The function
    is not called from Python, and needs no wrapper, which would take half a second to compile.
    """
    options = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "nogil": True, "_nrt": False}
    return cast(Function, _njit(**options, fastmath=fastmath, error_model="numpy")(function))


# -- one item at one node ---------------------------------------------------------------------------------------------


@inlined
def descends(margin: float, loss: float, tie_descends: bool) -> Any:
    """Return `task.descends` for one number."""
    return margin >= -TIE * loss if tie_descends else margin > TIE * loss


def _scaled(value: float, largest: float) -> Any:
    return value / largest


scaled = inlined(_scaled, fastmath=False)
"""Rounded first: with reordered divisions, rows of subnormal numbers would lose their digits."""


@inlined
def prepare(of: Similarities, item: int, row: Any) -> Any:
    """Write the unit row of the item (cosine), or its row minus the centre (distances); return its squared length."""
    features, centre, total = of.features, of.centre, 0.0
    if of.kind == COSINE:
        largest, length = of.scales[item, 0], of.scales[item, 1]
        if SMALL < largest < LARGE:  # half the divisions, if the product neither underflows nor overflows
            length *= largest
            for d in range(row.shape[0]):
                row[d] = features[item, d] / length
        else:
            for d in range(row.shape[0]):
                row[d] = scaled(features[item, d], largest) / length
    else:
        for d in range(row.shape[0]):
            row[d] = features[item, d] - centre[d]
    for d in range(row.shape[0]):
        total += row[d] * row[d]
    return total


@inlined
def measure(of: Similarities, node: int, share: float, row: Any) -> Any:
    """Return the similarity of an item to a cluster of n items with feature sum S.

    It is ``<u, S>`` for the unit row u of the item, or ``||x - S / n||**2`` for its row x; ``share`` is ``1 / n``.
    """
    features, centre, sums, total = of.features, of.centre, of.sums, 0.0
    k = node - features.shape[0]
    if of.kind == COSINE:
        if k >= 0:
            for d in range(row.shape[0]):
                total += sums[k, d] * row[d]
            return total
        largest, length = of.scales[node, 0], of.scales[node, 1]
        if SMALL < largest < LARGE:
            for d in range(row.shape[0]):
                total += features[node, d] * row[d]
            return total / (largest * length)
        for d in range(row.shape[0]):
            total += scaled(features[node, d], largest) * row[d]
        return total / length
    if k >= 0:
        # With the share computed here, the compiler would divide every column by the size, at twice the time.
        for d in range(row.shape[0]):
            gap = row[d] - sums[k, d] * share
            total += gap * gap
    else:
        for d in range(row.shape[0]):
            gap = row[d] - (features[node, d] - centre[d])
            total += gap * gap
    return total


@inlined
def similarity(of: Similarities, measured: float, size: Any, inside: bool, square: float, n_columns: int) -> Any:
    """Return ``sim(x, c)`` from ``<u, S>`` or ``||x - S / n||**2``, by the equations of `features.dense`."""
    # No branches for the cosine, as the correct child cannot be predicted.
    left_out = 1 if inside and of.leave_out and size > 1 else 0
    if of.kind == COSINE:
        value = (measured - left_out * square) / (size - left_out)
    else:
        measured *= (size / (size - 1)) ** 2 if left_out else 1.0
        measured = 0.0 if inside and size == 1 else measured
        measured = measured / n_columns if of.mean else measured
        value = 1.0 / (measured + of.epsilon) if of.kind == INVERSE else -np.sqrt(measured)
    return of.own_singleton if inside and size == 1 and of.fixed else value


@inlined
def derives(tree: TreeArrays, of: Similarities, node: int, own: int, rounded: float) -> tuple[Any, Any]:
    """Return whether the product of the largest child is derived, and the rounding error of the correct child's.

    For the cosine, the products with the sums of the children add up to that of the node. The product of the largest
    child is derived by subtraction. Each subtraction may add the rounding error of the node's product, in units of one
    unit vector. ``rounded`` is the error since the last direct product. While it is at most `BUDGET` per item of the
    child, the mean keeps all digits but the last.
    """
    places = tree.places
    largest = tree.child_nodes[places[node, FIRST] + places[node, COUNT] - 1]
    rounded += np.float64(places[node, SIZE]) * (places[node, COUNT] - 1)
    derived = of.kind == COSINE and rounded <= BUDGET * places[largest, SIZE]
    return derived, rounded if derived and own == largest else 0.0


@inlined
def compare(
    tree: TreeArrays,
    of: Similarities,
    node: int,
    own: int,
    row: Any,
    square: float,
    whole: float,
    derived: bool,
    values: Any,
    at: Any,
) -> tuple[Any, Any, Any]:
    """Write the similarities to the children of a node to ``values[at:]``."""
    places, top, own_value, own_whole = tree.places, -np.inf, 0.0, 0.0
    low, count = places[node, FIRST], places[node, COUNT]
    largest = tree.child_nodes[low + count - 1]
    for rank in range(count):
        child = tree.child_nodes[low + rank]
        measured = whole if derived and child == largest else measure(of, child, tree.values[child, SHARE], row)
        whole -= measured
        value = similarity(of, measured, np.int64(places[child, SIZE]), child == own, square, row.shape[0])
        own_whole = measured if child == own else own_whole
        own_value = value if child == own else own_value
        values[at + rank] = value
        top = max(top, value)
    return top, own_value, own_whole


@inlined
def weigh(
    tree: TreeArrays,
    of: Similarities,
    node: int,
    own: int,
    row: Any,
    square: float,
    whole: float,
    rounded: float,
    eta: Any,
    at: Any,
) -> tuple[Any, Any, Any, Any, Any]:
    """Write the guidance to the children of a node to ``eta[at:]``. See `_engines.look_ahead`.

    ``eta = softmax of sim / delta_t``; ``margin = sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta)``.

    ``whole`` is the node's product with the item, and ``rounded`` its rounding error; see `derives`.
    """
    places, values = tree.places, tree.values
    low, count = places[node, FIRST], places[node, COUNT]
    derived, own_rounded = derives(tree, of, node, own, rounded)
    if count == 2:
        margin, loss, own_share, own_whole = weigh_two(tree, of, node, own, row, square, whole, derived, eta, at)
        return margin, loss, own_share, own_whole, own_rounded
    top, _, own_whole = compare(tree, of, node, own, row, square, whole, derived, eta, at)
    own_share = 0.0
    temperature, gross = tree.temperatures[places[node, LEVEL]], values[node, GROSS]
    total, gain, loss = 0.0, 0.0, 0.0
    for rank in range(count):
        # exp() is slow for arguments with result 0.
        gap = (eta[at + rank] - top) / temperature
        weight = (0.0 if gap < LEAST else np.exp(gap)) if gap < 0.0 else 1.0
        eta[at + rank] = weight
        total += weight
    for rank in range(count):
        share = eta[at + rank] / total
        eta[at + rank] = share
        child = tree.child_nodes[low + rank]
        own_share = share if child == own else own_share
        gain += share * share * values[child, RISE]
        loss += share * (1.0 - share)
    loss *= gross
    return gain - loss, loss, own_share, own_whole, own_rounded


@inlined
def weigh_two(
    tree: TreeArrays,
    of: Similarities,
    node: int,
    own: int,
    row: Any,
    square: float,
    whole: float,
    derived: bool,
    eta: Any,
    at: Any,
) -> tuple[Any, Any, Any, Any]:
    """Weigh two children, as in a dendrogram, without the loops of `weigh`, which cost a third more."""
    places, values, low = tree.places, tree.values, tree.places[node, FIRST]
    small, large = tree.child_nodes[low], tree.child_nodes[low + 1]
    part = measure(of, small, values[small, SHARE], row)
    rest = whole - part if derived else measure(of, large, values[large, SHARE], row)
    far = similarity(of, part, np.int64(places[small, SIZE]), own == small, square, row.shape[0])
    near = similarity(of, rest, np.int64(places[large, SIZE]), own == large, square, row.shape[0])
    temperature, gross = tree.temperatures[places[node, LEVEL]], values[node, GROSS]
    scaled = -abs(near - far) / temperature
    weight = 0.0 if scaled < LEAST else np.exp(scaled)
    likely = 1.0 / (1.0 + weight)
    unlikely = weight * likely
    one, two = (likely, unlikely) if near > far else (unlikely, likely)
    eta[at], eta[at + 1] = two, one
    loss = 2.0 * gross * one * two
    margin = one * one * values[large, RISE] + two * two * values[small, RISE] - loss
    return (margin, loss, one, rest) if own == large else (margin, loss, two, part)


@inlined
def own_child(tree: TreeArrays, path: Any, node: int) -> Any:
    """Return the child on this path, -1 off the path."""
    level = tree.places[node, LEVEL]
    return path[level + 1] if path[level] == node else -1


@inlined
def follow(tree: TreeArrays, item: int, path: Any, enter_own_singleton: bool) -> Any:
    """Write the true path of the item over that of the item before; return the number of steps."""
    places = tree.places
    alone = places[item, CLUSTER] != 0
    node = item if alone else places[item, PARENT]
    length = np.int64(places[node, LEVEL])
    level = length + 1
    while path[level] >= 0:  # the rest of a longer path; the last entry is always -1
        path[level] = -1
        level += 1
    level = length
    while level >= 0 and path[level] != node:
        path[level] = node
        node = places[node, PARENT]
        level -= 1
    return max(length - 1, 0) if alone and not enter_own_singleton else length


# -- all items, one after another -------------------------------------------------------------------------------------


@inlined
def begin(tree: TreeArrays, of: Similarities, item: int, enter_own_singleton: bool, scratch: Scratch) -> Any:
    """Write the path and the row of an item; return the number of steps and the squared length."""
    return follow(tree, item, scratch.path, enter_own_singleton), prepare(of, item, scratch.row)


@compiled
def descend_all(
    tree: TreeArrays,
    of: Similarities,
    items: Any,
    policy: int,
    tie_descends: bool,
    enter_own_singleton: bool,
    scratch: Scratch,
    nodes: Any,
    probabilities: Any,
) -> None:
    """Write the stop of each search, for rules that plan at most one step ahead."""
    row, path, eta = scratch.row, scratch.path, scratch.eta
    for j in range(len(items)):
        item = items[j]
        length, square = begin(tree, of, item, enter_own_singleton, scratch)
        level, probability, whole, rounded = np.int64(0), 1.0, 0.0, np.inf
        best_level, best_probability, best = level, 1.0, tree.values[tree.root, GROSS]
        while level < length:
            node, own = path[level], path[level + 1]
            margin, loss, share, whole, rounded = weigh(
                tree, of, node, own, row, square, whole, rounded, eta, np.int64(0)
            )
            if policy == ONE_STEP and not descends(margin, loss, tie_descends):
                break
            probability *= share
            level += 1
            if policy == BEST_IN_HINDSIGHT:
                gross = probability * tree.values[path[level], GROSS]
                if descends(gross - best, best, tie_descends):
                    best_level, best_probability, best = level, probability, gross
        if policy == BEST_IN_HINDSIGHT:
            level, probability = best_level, best_probability
        nodes[j], probabilities[j] = path[level], probability


@compiled
def search_all(
    tree: TreeArrays,
    of: Similarities,
    items: Any,
    enter_own_singleton: bool,
    labels_below: Any,
    scratch: Scratch,
    looks: Any,
    labels: Any,
) -> None:
    """Write the expected numbers of items looked at and of labels read, for searchers who may go back."""
    row, path, places, values = scratch.row, scratch.path, tree.places, scratch.eta
    for j in range(len(items)):
        item = items[j]
        length, square = begin(tree, of, item, enter_own_singleton, scratch)
        whole, rounded, read = 0.0, np.inf, 0.0
        looked = (places[path[length], SIZE] + 1.0) / 2.0
        for level in range(length):
            node, own = path[level], path[level + 1]
            derived, rounded = derives(tree, of, node, own, rounded)
            _, own_value, whole = compare(tree, of, node, own, row, square, whole, derived, values, np.int64(0))
            low, count, temperature = places[node, FIRST], places[node, COUNT], tree.temperatures[level]
            read += count
            for rank in range(count):
                child = tree.child_nodes[low + rank]
                before = 1.0 / (1.0 + np.exp((own_value - values[rank]) / temperature)) if child != own else 0.0
                looked += before * places[child, SIZE]
                read += before * labels_below[child]
        looks[j], labels[j] = looked, read


@compiled
def plan_all(
    tree: TreeArrays,
    of: Similarities,
    items: Any,
    depth: int,
    tie_descends: bool,
    enter_own_singleton: bool,
    scratch: Scratch,
    nodes: Any,
    probabilities: Any,
) -> None:
    """Write the stop of each search that plans ``depth`` steps ahead at every node."""
    row, path, weights = scratch.row, scratch.path, scratch.eta
    for j in range(len(items)):
        item = items[j]
        length, square = begin(tree, of, item, enter_own_singleton, scratch)
        level, probability, whole, rounded = np.int64(0), 1.0, 0.0, np.inf
        while level < length:
            node = path[level]
            own = path[level + 1]
            margin, loss, share, whole, rounded = weigh(
                tree, of, node, own, row, square, whole, rounded, weights, np.int64(0)
            )
            if not descends(margin, loss, tie_descends) and not _plans_to_descend(
                tree, of, item, row, square, node, margin, loss, depth, tie_descends, enter_own_singleton, scratch
            ):
                break
            probability *= share
            level += 1
        nodes[j], probabilities[j] = path[level], probability


@inlined
def _open_frame(
    tree: TreeArrays,
    item: int,
    enter_own_singleton: bool,
    node: int,
    margin: float,
    can_continue: bool,
    first: Any,
    weights: Any,
    potentials: Any,
) -> Any:
    """Square the guidance at ``first``, write the potentials of the children, return the upper bound of the margin."""
    places, upper = tree.places, margin
    low = places[node, FIRST]
    for rank in range(places[node, COUNT]):
        child = tree.child_nodes[low + rank]
        weights[first + rank] *= weights[first + rank]
        own_singleton_below = places[item, CLUSTER] != 0 and places[item, PARENT] == child
        stays = not can_continue or (own_singleton_below and not enter_own_singleton)
        potentials[first + rank] = 0.0 if stays else tree.potential[child]
        upper += weights[first + rank] * potentials[first + rank]
    return upper


@compiled
def _plans_to_descend(
    tree: TreeArrays,
    of: Similarities,
    item: int,
    row: Any,
    square: float,
    start: int,
    margin: float,
    loss: float,
    depth: int,
    tie_descends: bool,
    enter_own_singleton: bool,
    scratch: Scratch,
) -> Any:
    """Return whether descending from ``start`` is optimal when planning ``depth`` steps, by bounds.

    Guidance, margin and loss at ``start`` are given. The gain ``G(c) = max(0, margin + sum of eta**2 G(c'))`` lies
    between 0 and the potential of the node; see `look_ahead`. The search is depth-first, with a stack of frames (node,
    index of the first child, current child) and bounds (low, high, and the relevant window). A node is left as soon as
    its gain lies outside the window.
    """
    places, weights, potentials = tree.places, scratch.eta, scratch.potentials
    frames, bounds = scratch.frames, scratch.bounds
    top, node, first = 0, start, np.int64(0)
    floor, ceiling = 0.0, 0.0
    while True:
        frames[top, 0], frames[top, 1] = node, first
        bounds[top, 0], bounds[top, 2], bounds[top, 3] = margin, floor, ceiling
        bounds[top, 1] = _open_frame(
            tree, item, enter_own_singleton, node, margin, depth > top + 1, first, weights, potentials
        )
        while True:
            node, first = frames[top, 0], frames[top, 1]
            low, high, floor, ceiling = bounds[top, 0], bounds[top, 1], bounds[top, 2], bounds[top, 3]
            if top == 0:
                if descends(low, loss, tie_descends):
                    return True
                if not descends(high, loss, tie_descends):
                    return False
            chosen, most = -1, 0.0
            if high > 0.0 and high >= floor and low <= ceiling:
                for rank in range(places[node, COUNT]):
                    matter = weights[first + rank] * potentials[first + rank]
                    if matter > most:
                        chosen, most = rank, matter
            if chosen >= 0:
                break
            if top == 0:
                # Everything is expanded; the bounds differ by rounding only.
                return descends(low, loss, tie_descends)
            # Above the window the low bound is sufficient for the parent, below it the high bound; else they are equal.
            gain = max(low if low > ceiling else high, 0.0)
            top -= 1
            place = frames[top, 1] + frames[top, 2]
            bounds[top, 0] += weights[place] * gain
            bounds[top, 1] += weights[place] * (gain - potentials[place])
            potentials[place] = 0.0
        weight = weights[first + chosen]
        frames[top, 2] = chosen
        floor, ceiling = (floor - (high - most)) / weight, (ceiling - low) / weight
        first += places[node, COUNT]
        node = tree.child_nodes[places[node, FIRST] + chosen]
        top += 1
        own = own_child(tree, scratch.path, node)
        margin, _, _, _, _ = weigh(tree, of, node, own, row, square, 0.0, np.inf, weights, first)


# -- from Python ------------------------------------------------------------------------------------------------------


def run(task: Task, items: Ints, advance: Advance) -> Stops:
    """Return the stops of the searches for these items, bit-for-bit identical for any number of threads."""
    nodes, probabilities = np.full(len(items), task.hierarchy.root), np.ones(len(items))
    size = PIECE_ITEMS if isinstance(task.rule, LookAhead) else _piece_of_paths(task)
    _in_pieces(task, items, size, _kernel(task), (nodes, probabilities), advance)
    return Stops(nodes, probabilities)


def run_lengths(task: Task, items: Ints, labels_below: Ints, advance: Advance) -> tuple[Floats, Floats]:
    """Return the expected numbers of items looked at and of labels read ``[m]``; see `search_length.run`."""
    tree, of = _tree_arrays(task), _similarities(cast(DenseAffinity, task.affinity))
    below, enter = _read_only(labels_below.astype(np.float64)), task.enter_own_singleton
    height, widest = int(task.hierarchy.height), int(np.diff(task.hierarchy.child_offsets).max())
    looks, labels = np.empty(len(items)), np.empty(len(items))

    def kernel(items: Ints, looks: Floats, labels: Floats) -> None:
        search_all(tree, of, items, enter, below, _scratch(of.centre.size, height, widest), looks, labels)

    _in_pieces(task, items, _piece_of_paths(task), kernel, (looks, labels), advance)
    return looks, labels


def _piece_of_paths(task: Task) -> int:
    """Return the number of items per piece: an interrupt waits for its end, long in deep trees."""
    return min(PIECE_ITEMS, max(64, PIECE_STEPS // (int(task.hierarchy.height) + 1)))


def _in_pieces(
    task: Task,
    items: Ints,
    size: int,
    kernel: Callable[[Ints, Any, Any], None],
    columns: tuple[Any, Any],
    advance: Advance,
) -> None:
    """Write the results of the kernel to the columns, piece by piece, on the threads of the task."""
    features = getattr(task.affinity, "features", None)
    order = np.argsort(task.hierarchy.starts[items])

    def work(low: int) -> int:
        require_whole(features)
        part = order[low : low + size]
        found = tuple(np.empty(len(part), dtype=column.dtype) for column in columns)
        kernel(items[part], *found)
        for column, values in zip(columns, found, strict=True):
            column[part] = values
        return len(part)

    lows = range(0, len(items), size)
    workers = min(task.threads or _usable_cpus(), len(lows))
    if workers <= 1:
        for low in lows:
            advance(work(low))
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, low) for low in lows]
        try:
            for future in as_completed(futures):
                advance(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _usable_cpus() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _kernel(task: Task) -> Callable[[Ints, Any, Any], None]:
    """Return the function that scores items and writes nodes and probabilities."""
    rule, affinity = cast(LookAhead | AlwaysDescend | HindsightRule, task.rule), cast(DenseAffinity, task.affinity)
    enter = task.enter_own_singleton
    tree, of = _tree_arrays(task), _similarities(affinity)
    counts, height, n_columns = np.diff(task.hierarchy.child_offsets), int(task.hierarchy.height), affinity.centre.size
    if isinstance(rule, LookAhead) and rule.depth != 1:
        longest = int(sum_to_root(task.hierarchy.parent, counts).max())
        depth, tie_descends = _UNLIMITED if rule.depth is None else rule.depth, rule.tie == "descend"
        return lambda items, nodes, probabilities: plan_all(
            tree, of, items, depth, tie_descends, enter, _scratch(n_columns, height, longest), nodes, probabilities
        )
    policy = ONE_STEP if isinstance(rule, LookAhead) else BEST_IN_HINDSIGHT
    if isinstance(rule, AlwaysDescend):
        policy, tie_descends = TO_THE_LEAF, True
    else:
        tie_descends = rule.tie == "descend"
    widest = int(counts.max())
    return lambda items, nodes, probabilities: descend_all(
        tree, of, items, policy, tie_descends, enter, _scratch(n_columns, height, widest), nodes, probabilities
    )


def _scratch(n_columns: int, height: int, longest: int) -> Scratch:
    """Return work arrays for rows of ``n_columns``, paths of ``height`` and lists of ``longest`` children."""
    return Scratch(
        row=np.empty(n_columns),
        path=np.full(height + 2, -1),
        eta=np.empty(longest),
        potentials=np.empty(longest),
        frames=np.empty((height + 2, 3), np.int64),
        bounds=np.empty((height + 2, 4)),
    )


def _tree_arrays(task: Task) -> TreeArrays:
    tree, rewards = task.hierarchy, task.rewards
    plans = isinstance(task.rule, LookAhead) and task.rule.depth != 1
    counts, children = np.diff(tree.child_offsets), tree.child_nodes
    columns = (tree.child_offsets[:-1], counts, tree.sizes, tree.levels, tree.parent, tree.is_cluster)
    # Half the memory and memory traffic, for trees with fewer nodes than the largest int32.
    small = tree.n_nodes < np.iinfo(np.int32).max
    return TreeArrays(
        root=int(tree.root),
        places=_read_only(np.stack(columns, axis=1, dtype=np.int32 if small else np.int64, casting="unsafe")),
        values=_read_only(np.stack((1.0 + rewards.reward, rewards.rise, 1.0 / tree.sizes), axis=1)),
        potential=_read_only(task.potential if plans else np.empty(0)),
        child_nodes=_read_only(children[np.lexsort((tree.sizes[children], tree.parent[children]))]),
        temperatures=_read_only(task.temperatures),
    )


def _similarities(affinity: DenseAffinity) -> Similarities:
    kind = affinity.kind
    own = kind.own_singleton
    return Similarities(
        features=_read_only(affinity.features),
        scales=_read_only(np.stack([affinity.largest, affinity.lengths], axis=1)),
        centre=_read_only(affinity.centre),
        sums=_read_only(affinity.sums),
        kind=COSINE if isinstance(kind, Cosine) else INVERSE if isinstance(kind, InverseSquaredEuclidean) else NEGATIVE,
        leave_out=kind.leave_out,
        mean=getattr(kind, "mean", False),
        epsilon=getattr(kind, "epsilon", 0.0),
        fixed=own is not None,
        own_singleton=0.0 if own is None else float(own),
    )


def _read_only(array: Any) -> Any:
    """Return a read-only C-contiguous view, so that one compiled version serves writable and read-only arrays."""
    view = np.ascontiguousarray(array).view(np.ndarray)[...]
    view.setflags(write=False)
    return view
