"""The engine in numpy: all items of a batch one level down at a time.

Items are taken in leaf order. With dense features, the items of a block share their path from the root down to their
lowest common ancestor, so that several levels of that path are one matrix product; below it, and for all other
features, the items that are still on their way go down one level together. Where every inner node has two children,
:mod:`~pomdp_hier.scorer.pairs` knows a faster way.
"""

import numpy as np

from pomdp_hier.features.members import Ints
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.scorer.pairs import Pairs, PairWalk
from pomdp_hier.scorer.rules import SearchRoot
from pomdp_hier.scorer.task import Advance, Stops, Task
from pomdp_hier.scorer.walk import Walk

__all__ = ["blocks", "run"]

BLOCK_ITEMS = 1024
SMALL_BLOCK = 128


def run(task: Task, items: Ints, advance: Advance) -> Stops:
    """Return where the search for each of these items stops.

    With dense features the result does not depend on which other items are asked about: what is a matrix product is
    settled by the tree alone.
    """
    tree = task.hierarchy
    nodes = np.full(len(items), tree.root)
    probabilities = np.ones(len(items))
    if isinstance(task.rule, SearchRoot):
        advance(len(items))
        return Stops(nodes, probabilities)
    order = np.argsort(tree.starts[items])
    positions = tree.starts[items][order]
    bounds = np.searchsorted(positions, blocks(tree) if task.blocks is None else task.blocks)
    pairs = Pairs.of(task)
    low = 0
    while low < len(bounds) - 1:
        high = int(np.searchsorted(bounds, bounds[low] + task.affinity.batch_items, side="right")) - 1
        high = max(high, low + 1)
        chosen = order[bounds[low] : bounds[high]]
        for piece in range(0, len(chosen), task.affinity.batch_items):
            part = chosen[piece : piece + task.affinity.batch_items]
            walk = Walk(task, items[part]) if pairs is None else PairWalk(task, items[part], pairs)
            walk.go(np.unique(np.clip(bounds[low : high + 1] - bounds[low] - piece, 0, len(part))))
            nodes[part], probabilities[part] = walk.result()
            advance(len(part))
        low = high
    return Stops(nodes, probabilities)


def blocks(hierarchy: Hierarchy) -> Ints:
    """Return the bounds of the blocks in leaf order: whole subtrees of at most 1,024 items, the small ones joined.

    They depend on the tree alone, so that a block is computed with the same bits wherever it is computed.
    """
    sizes, starts, n_items = hierarchy.sizes, hierarchy.starts, hierarchy.n_items
    large = sizes > BLOCK_ITEMS
    if not large[hierarchy.root]:
        return np.array([0, n_items])
    tops = np.flatnonzero(~large & (hierarchy.parent >= 0) & large[hierarchy.parent])
    pieces = np.sort(starts[tops])
    ends = np.concatenate([pieces[1:], [n_items]])
    bounds = [0]
    for start, end in zip(pieces.tolist(), ends.tolist(), strict=True):
        joined = end - bounds[-1]
        if joined > BLOCK_ITEMS or end - start >= SMALL_BLOCK:
            if start > bounds[-1]:
                bounds.append(start)
            if end - start >= SMALL_BLOCK:
                bounds.append(end)
    if bounds[-1] < n_items:
        bounds.append(n_items)
    return np.array(bounds)
