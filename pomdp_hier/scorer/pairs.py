"""The numpy engine's way down a tree whose inner nodes have two children each, as a dendrogram's have.

Which path an item takes is known before any similarity is. Items that share a stretch of their path take it together:
their products with the sums along it are one matrix product for each group of items, and what follows is done for many
groups at once. The groups are blocks of about a thousand items first, then the largest subtrees of at most 256 items,
and in the end those of at most 48; or, where those are much smaller, runs of as many items in leaf order. Within one
of these subtrees, the items' products with its nodes are one small matrix. For the cosine, half of the nodes will do: a
larger child's product is what the smaller one's leaves of the node's own, by the rule of
:mod:`~pomdp_hier.scorer.drift`. For distances each node's product is made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pomdp_hier.features.dense import DenseAffinity, DenseBatch, multiply
from pomdp_hier.features.members import Floats, Ints, contains, pieces, ranges
from pomdp_hier.features.similarity import Cosine
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.scorer.drift import DRIFTS, UNKNOWN
from pomdp_hier.scorer.margin import guidance_to_first, margin_of_two
from pomdp_hier.scorer.rules import AlwaysDescend, Clairvoyant, LookAhead
from pomdp_hier.scorer.task import Task
from pomdp_hier.scorer.walk import Walk

__all__ = ["PairWalk", "Pairs", "in_pairs"]

GROUP_ITEMS = 256, 48
PIECE_PAIRS = 1 << 15
LONGEST_STRETCH = 256


def in_pairs(hierarchy: Hierarchy) -> bool:
    """Return whether the tree has inner nodes, and each of them two children."""
    counts = np.diff(hierarchy.child_offsets)
    return bool(counts.any() and np.isin(counts, [0, 2]).all())


@dataclass(frozen=True, eq=False)
class Pairs:
    """The two children of each node, and the subtrees that groups of items share.

    Attributes:
        first, second: The children in leaf order ``[n_nodes]``; 0 for a leaf.
        small: The one with fewer items ``[n_nodes]``.
        tops: For groups of each size, the largest first: the largest subtrees of at most so many items, and the leaves
            that are no part of one, in leaf order.
        top_starts: Where in the leaf order each of them begins.
        cosine: Whether the similarity is the cosine, for which products with the sums of children may be derived from
            one another.
        derived: Whether, within the smallest such subtrees, the product with the larger child's sum is derived from the
            node's own and the smaller child's ``[n_nodes]``.
        order: The nodes below the tops of the smallest such subtrees whose products are not derived, in leaf order.
        order_starts: Where in the leaf order each of them begins.
        place: Where each of them stands there ``[n_nodes]``.
    """

    first: Ints
    second: Ints
    small: Ints
    tops: tuple[Ints, ...]
    top_starts: tuple[Ints, ...]
    cosine: bool
    derived: npt.NDArray[np.bool_]
    order: Ints
    order_starts: Ints
    place: Ints

    @classmethod
    def of(cls, task: Task) -> Self | None:
        """Return the pairs of a task's tree, or None where this way down does not fit the task."""
        tree, rule = task.hierarchy, task.rule
        simple = isinstance(rule, AlwaysDescend | Clairvoyant) or (isinstance(rule, LookAhead) and rule.depth == 1)
        fits = in_pairs(tree) if task.in_pairs is None else task.in_pairs
        if not (simple and isinstance(task.affinity, DenseAffinity) and fits):
            return None
        inner = np.flatnonzero(np.diff(tree.child_offsets))
        first, second, small, place = np.zeros((4, tree.n_nodes), dtype=np.int64)
        first[inner] = tree.child_nodes[tree.child_offsets[inner]]
        second[inner] = tree.child_nodes[tree.child_offsets[inner] + 1]
        small[inner] = np.where(tree.sizes[second[inner]] <= tree.sizes[first[inner]], second[inner], first[inner])
        tops = []
        for group_items in GROUP_ITEMS:
            within = tree.is_cluster & ((tree.sizes <= group_items) | tree.is_leaf)
            found = np.flatnonzero(within & ~np.append(within, False)[tree.parent])
            tops.append(found[np.argsort(tree.starts[found])])
        cosine, derived = isinstance(task.affinity.kind, Cosine), np.zeros(tree.n_nodes, dtype=bool)
        upper = tops[-1][~tree.is_leaf[tops[-1]]]
        drift = np.where(upper == tree.root, UNKNOWN, 0)
        direct = []
        while len(upper):
            smaller, larger = small[upper], first[upper] + second[upper] - small[upper]
            drift = drift + tree.sizes[upper]
            known = cosine & (drift <= DRIFTS * tree.sizes[larger])
            derived[upper] = known
            direct += [smaller, larger[~known]]
            upper, drift = np.append(smaller, larger), np.append(np.zeros_like(drift), np.where(known, drift, 0))
            upper, drift = upper[~tree.is_leaf[upper]], drift[~tree.is_leaf[upper]]
        order = np.concatenate(direct) if direct else upper
        order = order[np.argsort(tree.starts[order], kind="stable")]
        place[order] = np.arange(len(order))
        top_starts = tuple(tree.starts[found] for found in tops)
        return cls(first, second, small, tuple(tops), top_starts, cosine, derived, order, tree.starts[order], place)


class PairWalk(Walk):
    """The items of one batch on their way down a tree of pairs."""

    batch: DenseBatch

    def __init__(self, task: Task, items: Ints, pairs: Pairs) -> None:
        super().__init__(task, items)
        self.pairs = pairs
        self.whole = np.zeros(len(items))  # each row's product with the sum of the node where it stands

    def go(self, bounds: Ints) -> None:
        """Take all items to where their searches stop; rows from one of the bounds to the next are a block."""
        tree = self.tree
        self._down_together(np.searchsorted(bounds, np.arange(len(self.items)), side="right"), to_top=False)
        for group_items, tops, starts in zip(GROUP_ITEMS, self.pairs.tops, self.pairs.top_starts, strict=True):
            top = tops[np.searchsorted(starts, self.positions, side="right") - 1]
            # What is left beside large subtrees shares much of its path with its neighbours.
            beside = tree.n_nodes + self.positions // group_items
            self._down_together(np.where(8 * tree.sizes[top] < group_items, beside, top), to_top=False)
        self._down_together(top, to_top=True)
        self._down_small_subtrees()

    # -- stretches of a path that a group of items shares -------------------------------------------------------------

    def _down_together(self, group: Ints, to_top: bool) -> None:
        """Take each group of rows down the path that they share, or, if it is a subtree's, down to the subtree."""
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
        """Return the next nodes ``[steps, groups]`` that hold each group's positions from first to last, then -1.

        None of them lies below the top of a smallest subtree: where the way of deriving products changes must not
        depend on which items are asked about.
        """
        tree, pairs = self.tree, self.pairs
        path: list[Ints] = []
        open_ = np.arange(len(node))
        while len(open_) and len(path) < longest:
            second = pairs.second[node[open_]]
            child = np.where(first[open_] >= tree.starts[second], second, pairs.first[node[open_]])
            held = ~tree.is_leaf[node[open_]] & (tree.sizes[node[open_]] > GROUP_ITEMS[-1])
            held &= last[open_] < tree.starts[child] + tree.sizes[child]
            if not self.task.enter_own_singleton:
                held &= child >= tree.n_items
            open_, child = open_[held], child[held]
            path.append(np.full(len(node), -1))
            path[-1][open_] = child
            node = node.copy()
            node[open_] = child
        return np.array(path)

    def _take(self, rows: Ints, path: Ints, lengths: Ints, counts: Ints) -> Ints:
        """Take each group along its path, ``lengths`` steps; returns the rows that reached its end."""
        work = lengths * (4 * counts + 2 * self.batch.rows.shape[1])
        reached, ends = [], np.append(0, np.cumsum(counts))
        for part in pieces(work, 4 * PIECE_PAIRS):
            chosen = rows[ends[part.start] : ends[part.stop]]
            reached.append(self._take_piece(chosen, path[: lengths[part].max(), part], lengths[part], counts[part]))
        return np.concatenate(reached) if reached else rows

    def _take_piece(self, rows: Ints, path: Ints, lengths: Ints, counts: Ints) -> Ints:
        """Do what :meth:`_take` does, in one table ``[steps, rows]``; shorter paths leave some of it unused."""
        tree, pairs = self.tree, self.pairs
        taken = np.arange(len(path))[:, None] < lengths
        own = np.where(taken, path, pairs.first[tree.root])
        node = tree.parent[own]
        other = pairs.first[node] + pairs.second[node] - own
        products, others = self._products(rows, taken, own, node, other, counts)

        def spread(values: Any) -> Any:
            return values if len(counts) == 1 else np.repeat(values, counts, axis=1)

        length = np.repeat(lengths, counts)
        self.whole[rows] = products[length - 1, np.arange(len(rows))]
        eta, stay = self._weigh(products, others, rows, node, own, other, spread)
        if not taken.all():
            eta[spread(~taken)] = 1.0
        eta[0] *= self.probability[rows]
        for level in range(1, len(eta)):  # cumprod() along the short axis takes four times as long
            eta[level] *= eta[level - 1]
        steps = length
        if stay is not None:
            stay &= spread(taken)
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

    def _products(
        self, rows: Ints, taken: npt.NDArray[np.bool_], own: Ints, node: Ints, other: Ints, counts: Ints
    ) -> tuple[Floats, Floats]:
        """Return the products of the rows with the own and the other children's sums, each ``[steps, rows]``.

        The other child's product is the node's less the own child's, where three things hold: the node's is known, as
        it is not at the root; the similarity is the cosine; and the other child has an eighth (1 / `DRIFTS`) of the
        node's items at the least, so that the rounding of the whole stays small beside it. An own child's is made anew
        at each step, and so what has drifted never adds up from one step to the next.
        """
        sizes, lengths = self.tree.sizes, taken.sum(axis=0)
        apart = taken & ((DRIFTS * sizes[other] < sizes[node]) | (node == self.tree.root) | (not self.pairs.cosine))
        heights, firsts = lengths + apart.sum(axis=0), np.cumsum(counts) - counts
        made = np.zeros((int(_even(heights).max()), len(rows)))
        # The vectors group by group, the own children's before those made apart, so that each group's are a slice.
        nodes = np.concatenate([own, other]).T[np.concatenate([taken, apart]).T]
        vectors, at = self.batch.vectors(np.append(nodes, nodes[-1])), 0
        for height, low, count in zip(heights.tolist(), firsts.tolist(), counts.tolist(), strict=True):
            mine, high = self.batch.consecutive(rows[low : low + count]), _even(height)
            multiply(vectors[at : at + high], mine, made[:high, low : low + count])
            at += height
        products = made[: len(own)]
        others = np.concatenate([self.whole[rows][None, :], products[:-1]])
        others -= products
        group, level = np.nonzero(apart.T)
        times = counts[group]
        columns, source = ranges(firsts[group], times), ranges(lengths, heights - lengths)
        others[np.repeat(level, times), columns] = made[np.repeat(source, times), columns]
        return products, others

    # -- small subtrees -----------------------------------------------------------------------------------------------

    def _down_small_subtrees(self) -> None:
        """Take the rows, each of which stands at a subtree of a few items or cannot go on, to where they stop."""
        tree, pairs = self.tree, self.pairs
        rows = self.alive[self._can_go_on(self.alive)]
        fresh = np.flatnonzero(np.diff(self.node[rows], prepend=-1))
        counts = np.diff(np.append(fresh, len(rows)))
        top = self.node[rows[fresh]]
        low, high = np.searchsorted(pairs.order_starts, [tree.starts[top], tree.starts[top] + tree.sizes[top]])
        products, offset, stride = self._table(rows, low, high - low, counts)
        at = np.arange(len(rows))
        while len(at):
            here, base, step = rows[at], offset[at], stride[at]
            node = self.node[here]
            small = pairs.small[node]
            large = pairs.first[node] + pairs.second[node] - small
            part = products[base + pairs.place[small] * step]
            rest, made = self.whole[here] - part, np.flatnonzero(~pairs.derived[node])
            rest[made] = products[base[made] + pairs.place[large[made]] * step[made]]
            in_small = contains(tree, small, self.positions[here])
            own, other = np.where(in_small, small, large), np.where(in_small, large, small)
            whole, others = np.where(in_small, part, rest), np.where(in_small, rest, part)
            self.whole[here] = whole
            eta, stay = self._weigh(whole, others, here, node, own, other, lambda values: values)
            going = np.arange(len(here)) if stay is None else np.flatnonzero(~stay)
            moved = here[going]
            self.node[moved] = own[going]
            self.probability[moved] *= eta[going]
            self._note(moved)
            at = at[going[self._can_go_on(moved)]]

    def _can_go_on(self, rows: Ints) -> npt.NDArray[np.bool_]:
        able: npt.NDArray[np.bool_] = ~self.tree.is_leaf[self.node[rows]]
        return able if self.task.enter_own_singleton else able & ~self._before_own_singleton(rows)

    def _table(self, rows: Ints, places: Ints, sizes: Ints, counts: Ints) -> tuple[Floats, Ints, Ints]:
        """Return the products of ``counts`` rows per subtree with its ``sizes`` nodes, in order from ``places`` on.

        That of row j with node v is at ``offset[j] + place[v] * stride[j]``.
        """
        entries, ends = _even(sizes) * counts, np.append(0, np.cumsum(counts))
        table, used = np.empty(int(entries.sum())), 0
        for part in pieces(sizes * (counts + self.batch.rows.shape[1]), 16 * PIECE_PAIRS):
            nodes = self.pairs.order[ranges(places[part], sizes[part])]
            vectors, at = self.batch.vectors(np.append(nodes, nodes[-1:])), 0
            for size, low, count in zip(sizes[part].tolist(), ends[part].tolist(), counts[part].tolist(), strict=True):
                mine, high = self.batch.consecutive(rows[low : low + count]), _even(size)
                block = table[used : used + high * count].reshape(high, count)
                multiply(vectors[at : at + high], mine, block)
                at, used = at + size, used + high * count
        starts = np.cumsum(entries) - entries - places * counts
        return table, np.repeat(starts, counts) + ranges(np.zeros_like(counts), counts), np.repeat(counts, counts)

    def _weigh(
        self,
        products: Floats,
        rest: Floats,
        rows: Ints,
        node: Ints,
        own: Ints,
        other: Ints,
        spread: Callable[[Any], Any],
    ) -> tuple[Floats, npt.NDArray[np.bool_] | None]:
        """Return the guidance to the own children, and where the rule, if ever, stops before them.

        It uses up the products.
        """
        task, rule, batch = self.task, self.task.rule, self.batch
        near = batch.similarities(products, rows, own, True, spread)
        far = batch.similarities(rest, rows, other, False, spread)
        temperature = spread(task.temperatures[self.tree.levels[node]])
        eta, odds = guidance_to_first(near, far, temperature)
        if not isinstance(rule, LookAhead):
            return eta, None
        reward, rise = task.rewards.reward, task.rewards.rise
        margin = margin_of_two(eta, odds, spread(1.0 + reward[node]), spread(rise[own]), spread(rise[other]))
        return eta, margin < 0 if rule.tie == "descend" else margin <= 0


def _even(count: Any) -> Any:
    """Return how many vectors to multiply with: one of the next group's more, as the last of an odd number is slow."""
    return count + count % 2
