"""The way down in numpy: the items of a batch one level at a time, and paths that blocks of them share at once."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pomdp_hier.features.dense import DenseBatch
from pomdp_hier.features.members import Floats, Ints, child_counts, children_of, contains, pieces, ranges
from pomdp_hier.scorer.look_ahead import Planner
from pomdp_hier.scorer.margin import weigh
from pomdp_hier.scorer.rules import AlwaysDescend, Clairvoyant, LookAhead, SearchRoot, StoppingRule
from pomdp_hier.scorer.task import Task

__all__ = ["Walk"]

PIECE_PAIRS = 1 << 20


class Walk:
    """The items of one batch on their way down: row j stands at ``node[j]``."""

    def __init__(self, task: Task, items: Ints) -> None:
        tree = task.hierarchy
        self.task, self.tree = task, tree
        self.items = items
        self.positions = tree.starts[items]
        self.batch = task.affinity.batch(items)
        self.node = np.full(len(items), tree.root)
        self.probability = np.ones(len(items))
        self.alive = np.arange(len(items))
        self.tracks_best = isinstance(task.rule, Clairvoyant)
        self.best = np.full(len(items), -np.inf)
        self.best_node, self.best_probability = self.node.copy(), self.probability.copy()
        self._note(self.alive)

    def result(self) -> tuple[Ints, Floats]:
        """Return the nodes searched and the probabilities of getting there."""
        if self.tracks_best:
            return self.best_node, self.best_probability
        return self.node, self.probability

    def go(self, bounds: Ints) -> None:
        """Take all items to where their searches stop; rows from one of the bounds to the next are a block."""
        self._down_shared_paths(bounds)
        self._down()

    def _note(self, rows: Ints) -> None:
        """Keep, for the clairvoyant, the best place so far of these rows, which have just arrived somewhere."""
        if not self.tracks_best:
            return
        value = self.probability[rows] * (self.task.rewards.reward[self.node[rows]] + 1.0)
        deeper = self.task.rule.tie == "descend"  # type: ignore[union-attr]
        rows = rows[value >= self.best[rows] if deeper else value > self.best[rows]]
        self.best[rows] = self.probability[rows] * (self.task.rewards.reward[self.node[rows]] + 1.0)
        self.best_node[rows], self.best_probability[rows] = self.node[rows], self.probability[rows]

    # -- one level at a time ---------------------------------------------------------------------------------------

    def _down(self) -> None:
        """Goes down level by level until every item has stopped."""
        tree = self.tree
        while len(self.alive):
            rows = self.alive[~tree.is_leaf[self.node[self.alive]]]
            if not self.task.enter_own_singleton:
                rows = rows[~self._before_own_singleton(rows)]
            counts = child_counts(tree, self.node[rows])
            left = [self._step(rows[part]) for part in pieces(counts, PIECE_PAIRS)]
            self.alive = np.concatenate(left) if left else rows

    def _before_own_singleton(self, rows: Ints) -> npt.NDArray[np.bool_]:
        items = self.items[rows]
        before: npt.NDArray[np.bool_] = self.tree.is_cluster[items] & (self.tree.parent[items] == self.node[rows])
        return before

    def _step(self, rows: Ints) -> Ints:
        """Move those of the rows that descend to their own child; returns them."""
        tree, task = self.tree, self.task
        nodes = self.node[rows]
        children, counts = children_of(tree, nodes)
        firsts = np.cumsum(counts) - counts
        similarities = self.batch.expand(rows, nodes)
        eta, margin = weigh(task, similarities, firsts, counts, nodes, children)
        descend = self._decide(rows, nodes, children, firsts, counts, eta, margin)
        own = np.flatnonzero(contains(tree, children, np.repeat(self.positions[rows], counts)))
        moved = rows[descend]
        self.node[moved] = children[own[descend]]
        self.probability[moved] *= eta[own[descend]]
        self._note(moved)
        return moved

    def _decide(
        self, rows: Ints, nodes: Ints, children: Ints, firsts: Ints, counts: Ints, eta: Floats, margin: Floats
    ) -> npt.NDArray[np.bool_]:
        rule = self.task.rule
        if isinstance(rule, AlwaysDescend | Clairvoyant):
            return np.ones(len(rows), dtype=bool)
        if isinstance(rule, LookAhead):
            descend = margin >= 0 if rule.tie == "descend" else margin > 0
            if rule.depth != 1 and not descend.all():
                open_ = np.flatnonzero(~descend)
                at = ranges(firsts[open_], counts[open_])
                plan = Planner(self.task, rule, self.batch, self.items)
                descend[open_] = plan.descend(rows[open_], children[at], counts[open_], eta[at], margin[open_])
            return descend
        assert not isinstance(rule, SearchRoot)  # run() has dealt with it
        return self._ask(rule, nodes, children, firsts, counts, eta)

    def _ask(
        self, rule: StoppingRule, nodes: Ints, children: Ints, firsts: Ints, counts: Ints, eta: Floats
    ) -> npt.NDArray[np.bool_]:
        """Asks a user's rule, once a node."""
        tree = self.tree
        descend = np.empty(len(nodes), dtype=bool)
        for node in np.unique(nodes):
            here = np.flatnonzero(nodes == node)
            width = counts[here[0]]
            below = children[firsts[here[0]] : firsts[here[0]] + width]
            table = eta[firsts[here][:, None] + np.arange(width)]
            descend[here] = rule.descend(
                table, tree.sizes[below], self.task.rewards.reward[below], int(tree.levels[node])
            )
        return descend

    # -- several levels of one path at a time ----------------------------------------------------------------------

    def _down_shared_paths(self, bounds: Ints) -> None:
        """Take each block down the path that its items share, if features are dense and the rule looks one step."""
        rule, batch = self.task.rule, self.batch
        simple = isinstance(rule, AlwaysDescend | Clairvoyant) or (isinstance(rule, LookAhead) and rule.depth == 1)
        if not (simple and isinstance(batch, DenseBatch)):
            return
        alive = []
        for low, high in pairwise(bounds.tolist()):
            rows, step = self.alive[max(low, 0) : max(high, 0)], 4
            while len(rows):
                path, own = self._shared_path(batch, rows, step)
                if len(path) == 0:
                    break
                rows = self._down_path(batch, rows, path, own)
                step *= 2
            alive.append(rows)
        self.alive = np.concatenate(alive) if alive else self.alive

    def _shared_path(self, batch: DenseBatch, rows: Ints, step: int) -> tuple[Ints, Ints]:
        """Return up to ``step`` nodes from where the rows stand, and each one's child that holds all of them.

        Each is large enough for its similarities to be a matrix product, or has one child.
        """
        tree = self.tree
        first, last = self.positions[rows[0]], self.positions[rows[-1]]
        node = int(self.node[rows[0]])
        path: list[int] = []
        own: list[int] = []
        while len(path) < step and not tree.is_leaf[node]:
            children = tree.child_nodes[tree.child_offsets[node] : tree.child_offsets[node + 1]]
            # What an only child is like does not matter.
            if len(children) > 1 and not batch.multiplies(np.array([node]))[0]:
                break
            child = int(children[np.searchsorted(tree.starts[children], first, side="right") - 1])
            if last >= tree.starts[child] + tree.sizes[child]:
                break
            if child < tree.n_items and not self.task.enter_own_singleton:
                break
            path.append(node)
            own.append(child)
            node = child
        return np.array(path, dtype=np.int64), np.array(own, dtype=np.int64)

    def _down_path(self, batch: DenseBatch, rows: Ints, path: Ints, own: Ints) -> Ints:
        """Move the rows down a path that all of them share; returns those that reached its end."""
        tree, rule = self.tree, self.task.rule
        children, counts = children_of(tree, path)
        firsts = np.cumsum(counts) - counts
        own_at = np.flatnonzero(np.repeat(own, counts) == children)
        width = max(1, PIECE_PAIRS // len(children))
        reached = []
        for low in range(0, len(rows), width):
            part = rows[low : low + width]
            table = batch.table(children, part)
            eta, margin = weigh(self.task, table, firsts, counts, path, children)
            probability = np.cumprod(np.concatenate([self.probability[None, part], eta[own_at]]), axis=0)
            if isinstance(rule, LookAhead):
                stay = margin < 0 if rule.tie == "descend" else margin <= 0
                steps = np.where(stay.any(axis=0), stay.argmax(axis=0), len(path))
            else:
                steps = np.full(len(part), len(path))
                for level in range(len(path) if self.tracks_best else 0):
                    self.node[part], self.probability[part] = own[level], probability[level + 1]
                    self._note(part)
            self.node[part] = np.concatenate([path, own[-1:]])[steps]
            self.probability[part] = probability[steps, np.arange(len(part))]
            reached.append(part[steps == len(path)])
        return np.concatenate(reached)
