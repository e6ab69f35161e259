"""The numpy engine's way down a tree whose inner nodes have two children each, as a dendrogram's have.

Which path an item takes is known before any similarity is. Items that share a stretch of their path take it together:
their products with the sums along it are one matrix product for each group of items, and what follows is done for many
groups at once. The groups are blocks of about a thousand items first, then of about a hundred, and in the end the
largest subtrees of a few items; within one of these, the products of all items with all nodes are one small matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pomdp_hier.features.dense import DenseAffinity, DenseBatch, multiply
from pomdp_hier.features.members import Floats, Ints, pieces, ranges
from pomdp_hier.hqs.engine.rules import AlwaysDescend, Clairvoyant, LookAhead
from pomdp_hier.hqs.engine.task import Task
from pomdp_hier.hqs.engine.walk import Walk
from pomdp_hier.hqs.engine.weigh import guidance_to_first, margin_of_two

__all__ = ["PairWalk", "Pairs"]

GROUP_ITEMS = 128, 32
PIECE_PAIRS = 1 << 15
LONGEST_STRETCH = 256


@dataclass(frozen=True, eq=False)
class Pairs:
    """The two children of each node, and the order of the nodes within small subtrees.

    Attributes:
        first, second: The children in leaf order ``[n_nodes]``; 0 for a leaf.
        tops: For groups of each size, the largest first: the largest subtrees of at most so many items, and the leaves
            that are no part of one, in leaf order.
        order: The clusters of the smallest such subtrees in preorder, one subtree after another.
        place: Where each of them stands there ``[n_nodes]``.
        ends: Where its subtree ends there ``[n_nodes]``.
    """

    first: Ints
    second: Ints
    tops: tuple[Ints, ...]
    order: Ints
    place: Ints
    ends: Ints

    @classmethod
    def of(cls, task: Task) -> Self | None:
        """Returns the pairs of a task's tree, or None where this way down does not fit the task."""
        tree, rule, counts = task.hierarchy, task.rule, np.diff(task.hierarchy.child_offsets)
        simple = isinstance(rule, AlwaysDescend | Clairvoyant) or (isinstance(rule, LookAhead) and rule.depth == 1)
        inner = np.flatnonzero(counts)
        if not (simple and isinstance(task.affinity, DenseAffinity) and len(inner) and (counts[inner] == 2).all()):
            return None
        first, second, place, ends = np.zeros((4, tree.n_nodes), dtype=np.int64)
        first[inner] = tree.child_nodes[tree.child_offsets[inner]]
        second[inner] = tree.child_nodes[tree.child_offsets[inner] + 1]
        tops = []
        for group_items in GROUP_ITEMS:
            small = tree.is_cluster & ((tree.sizes <= group_items) | tree.is_leaf)
            found = np.flatnonzero(small & ~np.append(small, False)[tree.parent])
            tops.append(found[np.argsort(tree.starts[found])])
        order = np.flatnonzero(small)
        order = order[np.argsort(tree.starts[order] * (int(tree.height) + 2) + tree.levels[order])]
        place[order] = np.arange(len(order))
        ends[order] = np.searchsorted(tree.starts[order], tree.starts[order] + tree.sizes[order])
        return cls(first, second, tuple(tops), order, place, ends)


class PairWalk(Walk):
    """The items of one batch on their way down a tree of pairs."""

    batch: DenseBatch

    def __init__(self, task: Task, items: Ints, pairs: Pairs) -> None:
        super().__init__(task, items)
        self.pairs = pairs

    def go(self, bounds: Ints) -> None:
        """Takes all items to where their searches stop; rows from one of the bounds to the next are a block."""
        tree = self.tree
        self._down_together(np.searchsorted(bounds, np.arange(len(self.items)), side="right"), to_top=False)
        for group_items, tops in zip(GROUP_ITEMS, self.pairs.tops, strict=True):
            top = tops[np.searchsorted(tree.starts[tops], self.positions, side="right") - 1]
            # What is left beside large subtrees shares much of its path with its neighbours.
            beside = tree.n_nodes + self.positions // group_items
            self._down_together(np.where(8 * tree.sizes[top] < group_items, beside, top), to_top=False)
        self._down_together(top, to_top=True)
        self._down_small_subtrees()

    # -- stretches of a path that a group of items shares -------------------------------------------------------------

    def _down_together(self, group: Ints, to_top: bool) -> None:
        """Takes each group of rows down the path that they share, or, if it is a subtree's, down to the subtree."""
        tree, waiting = self.tree, self.alive
        stretch = 4 if isinstance(self.task.rule, LookAhead) else 64
        arrived = []
        while len(waiting):
            fresh = np.flatnonzero(np.diff(group[waiting], prepend=-1) | np.diff(self.node[waiting], prepend=-1))
            counts = np.diff(np.append(fresh, len(waiting)))
            if to_top:
                top = group[waiting[fresh]]
                first, last = tree.starts[top], tree.starts[top] + tree.sizes[top] - 1
            else:
                first, last = self.positions[waiting[fresh]], self.positions[waiting[fresh + counts - 1]]
            path = self._shared_stretch(self.node[waiting[fresh]], first, last, stretch)
            lengths = (path >= 0).sum(axis=0)
            arrived.append(waiting[np.repeat(lengths == 0, counts)])
            waiting = waiting[np.repeat(lengths > 0, counts)]
            waiting = self._take(waiting, path[:, lengths > 0], lengths[lengths > 0], counts[lengths > 0])
            stretch = min(2 * stretch, LONGEST_STRETCH)
        self.alive = np.sort(np.concatenate(arrived)) if arrived else waiting

    def _shared_stretch(self, node: Ints, first: Ints, last: Ints, longest: int) -> Ints:
        """Returns the next nodes ``[steps, groups]`` that hold each group's positions from first to last, then -1."""
        tree, pairs = self.tree, self.pairs
        path: list[Ints] = []
        open_ = np.arange(len(node))
        while len(open_) and len(path) < longest:
            second = pairs.second[node[open_]]
            child = np.where(first[open_] >= tree.starts[second], second, pairs.first[node[open_]])
            held = ~tree.is_leaf[node[open_]] & (last[open_] < tree.starts[child] + tree.sizes[child])
            if not self.task.enter_own_singleton:
                held &= child >= tree.n_items
            open_, child = open_[held], child[held]
            path.append(np.full(len(node), -1))
            path[-1][open_] = child
            node = node.copy()
            node[open_] = child
        return np.array(path)

    def _take(self, rows: Ints, path: Ints, lengths: Ints, counts: Ints) -> Ints:
        """Takes each group along its path, ``lengths`` steps; returns the rows that reached its end."""
        work = lengths * (4 * counts + 2 * self.batch.rows.shape[1])
        reached, ends = [], np.append(0, np.cumsum(counts))
        for part in pieces(work, 4 * PIECE_PAIRS):
            chosen = rows[ends[part.start] : ends[part.stop]]
            reached.append(self._take_piece(chosen, path[: lengths[part].max(), part], lengths[part], counts[part]))
        return np.concatenate(reached) if reached else rows

    def _take_piece(self, rows: Ints, path: Ints, lengths: Ints, counts: Ints) -> Ints:
        """Does what :meth:`_take` does, in one table ``[steps, rows]``; shorter paths leave some of it unused."""
        tree, pairs = self.tree, self.pairs
        taken = np.arange(len(path))[:, None] < lengths
        own = np.where(taken, path, pairs.first[tree.root])
        node = tree.parent[own]
        other = pairs.first[node] + pairs.second[node] - own
        products = np.zeros((2 * len(path), len(rows)))
        # The vectors group by group, the own child's and the other's in turn, so that each group's are a slice.
        vectors = self.batch.vectors(np.stack([own.T, other.T], axis=2)[taken.T].reshape(-1))
        at, low = 0, 0
        for height, count in zip((2 * lengths).tolist(), counts.tolist(), strict=True):
            mine = self.batch.consecutive(rows[low : low + count])
            multiply(vectors[at : at + height], mine, products[:height, low : low + count])
            at, low = at + height, low + count

        def spread(values: Any) -> Any:
            return np.repeat(values, counts, axis=1)

        eta, stay = self._weigh(products[::2], products[1::2], rows, node, own, other, spread)
        if not taken.all():
            unused = spread(~taken)
            eta[unused] = 1.0
            stay = stay & ~unused
        eta[0] *= self.probability[rows]
        np.cumprod(eta, axis=0, out=eta)
        length = np.repeat(lengths, counts)
        steps = np.where(stay.any(axis=0), stay.argmax(axis=0), length)
        group = np.repeat(np.arange(len(counts)), counts)
        for level in range(len(path) if self.tracks_best else 0):
            on = np.flatnonzero(level < steps)
            self.node[rows[on]], self.probability[rows[on]] = own[level, group[on]], eta[level, on]
            self._note(rows[on])
        moved = np.flatnonzero(steps)
        self.node[rows[moved]] = own[steps[moved] - 1, group[moved]]
        self.probability[rows[moved]] = eta[steps[moved] - 1, moved]
        reached: Ints = rows[steps == length]
        return reached

    # -- small subtrees -----------------------------------------------------------------------------------------------

    def _down_small_subtrees(self) -> None:
        """Takes the rows, each of which stands at a subtree of a few items or cannot go on, to where they stop."""
        rows = self.alive[self._can_go_on(self.alive)]
        fresh = np.flatnonzero(np.diff(self.node[rows], prepend=-1))
        counts = np.diff(np.append(fresh, len(rows)))
        top = self.node[rows[fresh]]
        sizes = self.pairs.ends[top] - self.pairs.place[top] - 1
        work, ends = sizes * (counts + self.batch.rows.shape[1]), np.append(0, np.cumsum(counts))
        for part in pieces(work, 16 * PIECE_PAIRS):
            self._down_subtrees(rows[ends[part.start] : ends[part.stop]], top[part], sizes[part], counts[part])

    def _can_go_on(self, rows: Ints) -> npt.NDArray[np.bool_]:
        able: npt.NDArray[np.bool_] = ~self.tree.is_leaf[self.node[rows]]
        return able if self.task.enter_own_singleton else able & ~self._before_own_singleton(rows)

    def _down_subtrees(self, rows: Ints, top: Ints, sizes: Ints, counts: Ints) -> None:
        """Takes rows to where they stop: ``counts`` of them stand at each top, below which are ``sizes`` nodes."""
        tree, pairs = self.tree, self.pairs
        vectors = self.batch.vectors(pairs.order[ranges(pairs.place[top] + 1, sizes)])
        table = np.empty(int((sizes * counts).sum()))
        at, low, used = 0, 0, 0
        for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
            mine, entries = self.batch.consecutive(rows[low : low + count]), size * count
            multiply(vectors[at : at + size], mine, table[used : used + entries].reshape(size, count))
            at, low, used = at + size, low + count, used + entries
        # The product of row j with node v is at offset[j] + place[v] * stride[j].
        starts = np.cumsum(sizes * counts) - sizes * counts - (pairs.place[top] + 1) * counts
        offset, stride = np.repeat(starts, counts) + ranges(np.zeros_like(counts), counts), np.repeat(counts, counts)
        at_rows = np.arange(len(rows))
        while len(at_rows):
            here = rows[at_rows]
            node = self.node[here]
            inside = self.positions[here] >= tree.starts[pairs.second[node]]
            own = np.where(inside, pairs.second[node], pairs.first[node])
            other = pairs.first[node] + pairs.second[node] - own
            base, step = offset[at_rows], stride[at_rows]
            products, rest = table[base + pairs.place[own] * step], table[base + pairs.place[other] * step]
            eta, stay = self._weigh(products, rest, here, node, own, other, lambda values: values)
            going = np.flatnonzero(~stay)
            moved = here[going]
            self.node[moved] = own[going]
            self.probability[moved] *= eta[going]
            self._note(moved)
            at_rows = at_rows[going[self._can_go_on(moved)]]

    def _weigh(
        self,
        products: Floats,
        rest: Floats,
        rows: Ints,
        node: Ints,
        own: Ints,
        other: Ints,
        spread: Callable[[Any], Any],
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Returns the guidance to the own children, and where the rule stops before them; uses up the products."""
        task, rule, batch = self.task, self.task.rule, self.batch
        near = batch.similarities(products, rows, own, True, spread)
        far = batch.similarities(rest, rows, other, False, spread)
        temperature = spread(task.temperatures[self.tree.levels[node]])
        eta, odds = guidance_to_first(near, far, temperature)
        if not isinstance(rule, LookAhead):
            return eta, np.zeros(eta.shape, dtype=bool)
        reward, rise = task.rewards.reward, task.rewards.rise
        margin = margin_of_two(eta, odds, spread(1.0 + reward[node]), spread(rise[own]), spread(rise[other]))
        return eta, margin < 0 if rule.tie == "descend" else margin <= 0
