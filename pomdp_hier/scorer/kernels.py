"""The engine's inner loops for numba: one item after another, from the root to where its search stops.

Everything an item needs lies in a few rows of the clusters' sums, so that one item takes as long as its dot products
take. Importing this module needs numba.
"""

from typing import Any

import numpy as np

from pomdp_hier.scorer.at_node import (
    COUNT,
    FIRST,
    PARENT,
    RANK,
    REWARD,
    START,
    Forest,
    Options,
    Scratch,
    Table,
    compiled,
    prepare,
    square_of,
    weigh,
)
from pomdp_hier.scorer.on_path import OWN_WORTH, Path, follow, lay, weigh_step

__all__ = ["SOURCES", "descend_all", "plan_all"]

SOURCES = "d1dcc5f09b35d274576d1614e68d8efbc0c2f108b87a91d467817659399dd2f1"
"""SHA-256 of ``at_node.py``, ``on_path.py`` and ``drift.py``: numba keeps compiled code while this file is the same."""


@compiled
def descend_all(
    forest: Forest,
    table: Table,
    options: Options,
    items: Any,
    policy: int,
    tie_descends: bool,
    enter_own_singleton: bool,
    scratch: Scratch,
    path: Path,
    nodes: Any,
    probabilities: Any,
) -> None:
    """Write where each item's search stops. Policies: 0 one step, 1 to the leaf, 2 the best stop in hindsight."""
    row, laid = scratch.row, np.int64(0)
    for j in range(len(items)):
        item = items[j]
        length, shared = follow(forest, item, path, enter_own_singleton)
        laid = min(laid, shared)
        prepare(table.features, table.scales, table.centre, options.kind, item, row)
        square = square_of(row)
        level, probability, whole, added = np.int64(0), 1.0, 0.0, np.inf
        best_level, best_probability, best = level, 1.0, 1.0 + forest.worths[forest.root, REWARD]
        while level < length:
            if level == laid:
                lay(forest, table, options, path, level, scratch.beside)
                laid += 1
            eta, margin, whole, added = weigh_step(
                forest, table, options, path, level, row, square, whole, added, scratch.eta
            )
            if policy == 0 and (margin < 0.0 or (margin == 0.0 and not tie_descends)):
                break
            probability *= eta
            level += 1
            if policy == 2:
                worth = probability * path.numbers[level - 1, OWN_WORTH]
                if worth > best or (worth == best and tie_descends):
                    best_level, best_probability, best = level, probability, worth
        if policy == 2:
            level, probability = best_level, best_probability
        nodes[j], probabilities[j] = path.nodes[level], probability


@compiled
def _open_frame(
    forest: Forest,
    table: Table,
    options: Options,
    item: int,
    row: Any,
    square: float,
    enter_own_singleton: bool,
    node: int,
    can_go_on: bool,
    first: Any,
    weights: Any,
    potentials: Any,
) -> tuple[Any, Any]:
    """Write ``eta**2`` and the potential of the node's children at ``first``; returns bounds of the node's margin."""
    places, child_nodes = forest.places, forest.child_nodes
    position = places[item, START]
    margin = weigh(forest, table, options, node, position, row, square, weights, first)
    low = places[node, FIRST]
    upper = margin
    for rank in range(places[node, COUNT]):
        child = child_nodes[low + rank]
        weights[first + rank] *= weights[first + rank]
        potential = forest.potential[child] if can_go_on else 0.0
        if not enter_own_singleton and places[item, RANK] >= 0 and places[item, PARENT] == child:
            potential = 0.0
        potentials[first + rank] = potential
        upper += weights[first + rank] * potential
    return margin, upper


@compiled
def _plans_to_descend(
    forest: Forest,
    table: Table,
    options: Options,
    item: int,
    row: Any,
    square: float,
    start: int,
    depth: int,
    tie_descends: bool,
    enter_own_singleton: bool,
    weights: Any,
    potentials: Any,
    frames: Any,
    bounds: Any,
) -> bool:
    """Whether planning ``depth`` steps makes descending from ``start`` worth it, decided between bounds.

    Depth-first with a stack of frames (node, first child's place, child being looked at) and their bounds (low, high,
    and the window that matters above): a node is left as soon as its gain lies outside the window.
    """
    places, child_nodes = forest.places, forest.child_nodes
    top = 0
    frames[0, 0], frames[0, 1] = start, 0
    bounds[0, 0], bounds[0, 1] = _open_frame(
        forest,
        table,
        options,
        item,
        row,
        square,
        enter_own_singleton,
        start,
        depth > 1,
        np.int64(0),
        weights,
        potentials,
    )
    bounds[0, 2] = bounds[0, 3] = 0.0
    while True:
        node, first = frames[top, 0], frames[top, 1]
        count = places[node, COUNT]
        low, high = bounds[top, 0], bounds[top, 1]
        if top == 0:
            if low > 0.0 or (low == 0.0 and tie_descends):
                return True
            if high < 0.0 or (high == 0.0 and not tie_descends):
                return False
        chosen, most = -1, 0.0
        if high > 0.0 and high >= bounds[top, 2] and low <= bounds[top, 3]:
            for rank in range(count):
                matter = weights[first + rank] * potentials[first + rank]
                if matter > most:
                    chosen, most = rank, matter
        if chosen >= 0:
            weight = weights[first + chosen]
            frames[top, 2] = chosen
            child = child_nodes[places[node, FIRST] + chosen]
            bounds[top + 1, 2] = (bounds[top, 2] - (high - most)) / weight
            bounds[top + 1, 3] = (bounds[top, 3] - low) / weight
            top += 1
            frames[top, 0], frames[top, 1] = child, first + count
            bounds[top, 0], bounds[top, 1] = _open_frame(
                forest,
                table,
                options,
                item,
                row,
                square,
                enter_own_singleton,
                child,
                depth > top + 1,
                first + count,
                weights,
                potentials,
            )
            continue
        if top == 0:
            # Everything has been seen, and only rounding keeps the bounds apart.
            return low > 0.0 or (low == 0.0 and tie_descends)
        # Above the window the low bound is enough for the node above, below it the high bound; else they agree.
        gain = max(low if low > bounds[top, 3] else high, 0.0)
        top -= 1
        place = frames[top, 1] + frames[top, 2]
        bounds[top, 0] += weights[place] * gain
        bounds[top, 1] += weights[place] * (gain - potentials[place])
        potentials[place] = 0.0


@compiled
def plan_all(
    forest: Forest,
    table: Table,
    options: Options,
    items: Any,
    depth: int,
    tie_descends: bool,
    enter_own_singleton: bool,
    scratch: Scratch,
    path: Path,
    nodes: Any,
    probabilities: Any,
) -> None:
    """Write where each item's search stops when it plans ``depth`` steps ahead at every node."""
    row, weights, potentials = scratch.row, scratch.weights, scratch.potentials
    frames, bounds, laid = scratch.frames, scratch.bounds, np.int64(0)
    for j in range(len(items)):
        item = items[j]
        length, shared = follow(forest, item, path, enter_own_singleton)
        laid = min(laid, shared)
        prepare(table.features, table.scales, table.centre, options.kind, item, row)
        square = square_of(row)
        level, probability, whole, added = np.int64(0), 1.0, 0.0, np.inf
        while level < length:
            if level == laid:
                lay(forest, table, options, path, level, scratch.beside)
                laid += 1
            eta, margin, whole, added = weigh_step(
                forest, table, options, path, level, row, square, whole, added, scratch.eta
            )
            if not (margin > 0.0 or (margin == 0.0 and tie_descends)) and not _plans_to_descend(
                forest,
                table,
                options,
                item,
                row,
                square,
                path.nodes[level],
                depth,
                tie_descends,
                enter_own_singleton,
                weights,
                potentials,
                frames,
                bounds,
            ):
                break
            probability *= eta
            level += 1
        nodes[j], probabilities[j] = path.nodes[level], probability
