"""The numpy engine: all items of a batch descend one level at a time; walks for diagnosis and calibration.

Items are in leaf order, so that the items at one node are adjacent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._engines.task import (
    Advance,
    AlwaysDescend,
    HindsightRule,
    LookAhead,
    SearchRoot,
    Stops,
    Task,
    ask,
    descends,
)
from pomdp_hier.features.affinity import Batch
from pomdp_hier.features.membership import child_counts, children_of, own_ranks, pieces, ranges
from pomdp_hier.hierarchy.tree import Hierarchy

_PIECE_QUERIES = 2048


def weigh(
    task: Task, similarities: Floats, firsts: Ints, counts: Ints, nodes: Ints, children: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return the guidance ``eta``, the margin of descending one step over searching (over b), and its loss.

    ``eta = softmax of sim / delta_t``, and the margin is ``sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta)``, a
    gain minus a loss. Both are sums of nonnegative terms, without cancellation, and 0 for an only child.

    Args:
        similarities: Similarities to all children, concatenated ``[pairs]``.
        firsts: The first pair of each node ``[n]``.
        counts: The number of children ``[n]``.
        nodes: The nodes ``[n]``.
        children: Their children ``[pairs]``.

    Returns:
        ``eta`` ``[pairs]``, the margin ``[n]``, and the loss ``[n]``.
    """
    width = int(counts[0]) if len(counts) and (counts == counts[0]).all() else 0
    if width == 2:
        return _weigh_two(task, similarities, nodes, children)

    def spread(values: Any) -> Any:
        return values[:, None] if width else np.repeat(values, counts)

    def over_each(combine: np.ufunc, values: Any) -> Any:
        return combine.reduce(values, axis=1) if width else combine.reduceat(values, firsts)

    shape = (-1, width) if width else (-1,)  # lists of one length are a table, twice as fast
    similarities = similarities.reshape(shape)
    with np.errstate(over="ignore"):  # to -inf, at temperatures near 0 or unbounded similarities
        eta = similarities - spread(over_each(np.maximum, similarities))
        eta /= spread(task.temperatures[task.hierarchy.levels[nodes]])
    np.exp(eta, out=eta)
    eta /= spread(over_each(np.add, eta))
    terms = 1.0 - eta
    terms *= eta
    loss = (1.0 + task.rewards.reward[nodes]) * over_each(np.add, terms)
    np.multiply(eta, eta, out=terms)
    terms *= task.rewards.rise[children].reshape(shape)
    return eta.reshape(-1), over_each(np.add, terms) - loss, loss


def _weigh_two(task: Task, similarities: Floats, nodes: Ints, children: Ints) -> tuple[Floats, Floats, Floats]:
    """Weigh two children per node, as in a dendrogram, without ragged reductions."""
    rise = task.rewards.rise
    with np.errstate(over="ignore"):
        gap = similarities[1::2] - similarities[::2]
        gap /= task.temperatures[task.hierarchy.levels[nodes]]
    weight = np.exp(-np.abs(gap))
    likely = 1.0 / (1.0 + weight)
    weight *= likely
    second = gap > 0
    eta = np.empty(len(similarities))
    eta[::2], eta[1::2] = np.where(second, weight, likely), np.where(second, likely, weight)
    one, two = eta[::2], eta[1::2]
    loss = one * two
    loss *= 2.0 * (1.0 + task.rewards.reward[nodes])
    gain = one * one * rise[children[::2]]
    gain += two * two * rise[children[1::2]]
    gain -= loss
    return eta, gain, loss


@dataclass
class _Layer:
    """Pairs of an item and a child at one depth, with bounds of the gain.

    The pairs ``asked`` are expanded into the next layer; ``margin`` are their one-step margins.
    """

    row: Ints
    node: Ints
    weight: Floats
    above: Ints
    query: Ints
    lower: Floats
    upper: Floats
    asked: Ints
    margin: Floats


class Planner:
    """Planner that decides whether deeper planning makes descending optimal for items at nodes.

    The gain of a node is the value that planning adds to searching it, over b: ``G(c) = W(c) - (r(c) + 1) =
    max(0, M(c))`` with the margin ``M(c) = sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta) + sum of eta**2
    G(c')``. G lies between 0 and the potential of the node. Most decisions follow from these bounds before the tree
    below is expanded.
    """

    def __init__(self, task: Task, rule: LookAhead, batch: Batch, items: Ints) -> None:
        self._task = task
        self._rule = rule
        self._batch = batch
        self._items = items

    def descend(self, rows: Ints, children: Ints, counts: Ints, eta: Floats, margin: Floats, loss: Floats) -> Bools:
        """Return whether rows of the batch with a negative one-step margin should descend.

        Args:
            rows: Rows of the batch ``[n]``.
            counts: The number of children ``[n]``.
            margin: The margins of one step ``[n]``.
            loss: Their losses ``[n]``.
        """
        result = np.empty(len(rows), dtype=bool)
        firsts = np.cumsum(counts) - counts
        for low in range(0, len(rows), _PIECE_QUERIES):
            part = slice(low, low + _PIECE_QUERIES)
            at = ranges(firsts[part], counts[part])
            queries = np.repeat(np.arange(len(rows[part])), counts[part])
            top = self._layer(rows[part][queries], children[at], eta[at], queries, queries, 1)
            result[part] = self._decide(top, margin[part], loss[part])
        return result

    def _layer(self, row: Ints, node: Ints, eta: Floats, above: Ints, query: Ints, depth: int) -> _Layer:
        task, tree = self._task, self._task.hierarchy
        upper = task.potential[node]
        if self._rule.depth is not None and depth >= self._rule.depth:
            upper = np.zeros(len(node))
        elif not task.enter_own_singleton:
            item = self._items[row]
            upper[tree.is_cluster[item] & (tree.parent[item] == node)] = 0.0
        none = np.empty(0, dtype=np.int64)
        return _Layer(row, node, eta**2, above, query, np.zeros(len(node)), upper, none, np.empty(0))

    def _decide(self, top: _Layer, margin: Floats, loss: Floats) -> Bools:
        """Deepen layer by layer until the bounds of every query imply a decision."""
        layers = [top]
        while True:
            lower, upper = self._bounds(layers, margin)
            yes, maybe = descends(lower, loss, self._rule.tie), descends(upper, loss, self._rule.tie)
            open_ = self._open(layers, maybe & ~yes)
            if len(open_) == 0:
                return yes
            layers.append(self._expand(layers[-1], open_, len(layers) + 1))

    def _open(self, layers: list[_Layer], undecided: Bools) -> Ints:
        """Return the pairs of the last layer with open bounds that affect an undecided query."""
        matters = undecided
        for layer in layers:
            matters = matters[layer.above] & (layer.upper > layer.lower)
        return np.flatnonzero(matters)

    def _expand(self, layer: _Layer, open_: Ints, depth: int) -> _Layer:
        rows, nodes = layer.row[open_], layer.node[open_]
        order = np.argsort(nodes, kind="stable")
        open_, rows, nodes = open_[order], rows[order], nodes[order]
        children, counts = children_of(self._task.hierarchy, nodes)
        firsts = np.cumsum(counts) - counts
        similarities = self._batch.expand(rows, nodes, (children, counts))
        eta, layer.margin, _ = weigh(self._task, similarities, firsts, counts, nodes, children)
        layer.asked = open_
        above = np.repeat(open_, counts)
        return self._layer(np.repeat(rows, counts), children, eta, above, layer.query[above], depth)

    def _bounds(self, layers: list[_Layer], margin: Floats) -> tuple[Floats, Floats]:
        """Return the bounds of the margins of the queries, from the deepest layer upward."""
        for layer, below in zip(layers[-2::-1], layers[:0:-1], strict=True):
            size = len(layer.node)
            low = np.bincount(below.above, weights=below.weight * below.lower, minlength=size)[layer.asked]
            high = np.bincount(below.above, weights=below.weight * below.upper, minlength=size)[layer.asked]
            layer.lower[layer.asked] = np.maximum(layer.margin + low, 0.0)
            layer.upper[layer.asked] = np.maximum(layer.margin + high, 0.0)
        top, size = layers[0], len(margin)
        return (
            margin + np.bincount(top.above, weights=top.weight * top.lower, minlength=size),
            margin + np.bincount(top.above, weights=top.weight * top.upper, minlength=size),
        )


PIECE_PAIRS = 1 << 17
_AS_GOOD = 1e-12  # similarities that differ by less, relative to the larger of 1 and the best one, are equal


def run(task: Task, items: Ints, advance: Advance) -> Stops:
    """Return the stops of the searches for these items."""
    rule, gross = task.rule, task.rewards.reward + 1.0
    nodes, probabilities = np.empty(len(items), dtype=np.int64), np.empty(len(items))
    at_ties = isinstance(rule, AlwaysDescend) or (isinstance(rule, LookAhead) and rule.tie == "descend")
    ends = ends_of_runs(task.hierarchy) if at_ties else None  # gain and loss of an only child are 0, a tie
    for at in batches(task, items):
        walk = Walk(task, items[at])
        best_node, best_probability = walk.node.copy(), walk.probability.copy()
        for step in walk.steps(ends):
            eta, margin, loss = step.weigh(task)
            walk.move(step, walk.decide(step, eta, margin, loss), step.own_at, eta)
            if isinstance(rule, HindsightRule):
                rows, best = step.rows, best_probability * gross[best_node]
                rows = rows[descends((walk.probability * gross[walk.node] - best)[rows], best[rows], rule.tie)]
                best_node[rows], best_probability[rows] = walk.node[rows], walk.probability[rows]
        if isinstance(rule, HindsightRule):
            nodes[at], probabilities[at] = best_node, best_probability
        else:
            nodes[at], probabilities[at] = walk.node, walk.probability
        advance(len(at))
    return Stops(nodes, probabilities)


def ends_of_runs(tree: Hierarchy) -> Ints | None:
    """Return the node below each node that is reached through only children ``[n_nodes]``; None without only children.

    An item alone is not part of such a run, as a search may not be allowed to enter it.
    """
    above = np.flatnonzero(np.diff(tree.child_offsets) == 1)
    below = tree.child_nodes[tree.child_offsets[above]]
    above, below = above[below >= tree.n_items], below[below >= tree.n_items]
    if not len(above):
        return None
    ends = np.arange(tree.n_nodes)
    ends[above] = below
    while not np.array_equal(further := ends[ends], ends):
        ends = further
    return ends


def batches(task: Task, items: Ints) -> Iterator[Ints]:
    """Yield the batches, as positions in the items, in leaf order."""
    order, size = np.argsort(task.hierarchy.starts[items], kind="stable"), task.affinity.batch_items
    for low in range(0, len(order), size):
        yield order[low : low + size]


@dataclass(frozen=True, eq=False)
class Step:
    """A batch of items at their nodes, with the similarities to the children.

    A pair is an item and a child of its node; arrays over pairs are concatenated by item.

    Attributes:
        rows: The rows of the items in the walk ``[m]``.
        items: The items ``[m]``.
        nodes: The node of each item ``[m]``.
        level: The number of earlier steps: the level of the nodes, for walks from the root.
        children: The children of the nodes, concatenated ``[pairs]``.
        firsts: The first pair of each item ``[m]``.
        counts: The number of children ``[m]``.
        similarities: The item's similarity to each child ``[pairs]``.
        hierarchy: The tree.
    """

    rows: Ints
    items: Ints
    nodes: Ints
    level: int
    children: Ints
    firsts: Ints
    counts: Ints
    similarities: Floats
    hierarchy: Hierarchy

    @property
    def own_at(self) -> Ints:
        """The pairs of the correct children ``[m]``, of items on their true path."""
        ranks = own_ranks(self.hierarchy, self.nodes, self.hierarchy.starts[self.items])
        return (self.firsts + ranks)[ranks >= 0]

    @property
    def own(self) -> Ints:
        """The correct child ``[m]``."""
        return self.children[self.own_at]

    def weigh(self, task: Task) -> tuple[Floats, Floats, Floats]:
        """Return the guidance to every child ``[pairs]``, and the margin and the loss of a step down ``[m]``."""
        return weigh(task, self.similarities, self.firsts, self.counts, self.nodes, self.children)

    def eta(self, task: Task) -> Floats:
        """Return the guidance to every child ``[pairs]``."""
        return self.weigh(task)[0]

    def best_at(self, values: Floats) -> Ints:
        """Return the pair of the largest value per item ``[m]``, the first of equals."""
        at = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, self.firsts), self.counts))
        return at[np.searchsorted(at, self.firsts)]

    def rival_at(self) -> Ints:
        """Return the index of the pair with the most similar wrong child ``[m]``, -1 for an only child."""
        others = self.similarities.copy()
        others[self.own_at] = -np.inf
        return np.where(self.counts > 1, self.best_at(others), -1)

    def misled(self, rival_at: Ints) -> Bools:
        """Return whether the rival is more similar than the correct child, by more than rounding ``[m]``."""
        own = self.similarities[self.own_at]
        rival = np.where(rival_at < 0, own, self.similarities[rival_at])
        return rival > own + _AS_GOOD * np.maximum(1.0, np.abs(rival))


class Walk:
    """Items on their way down: row j is at ``node[j]`` with ``probability[j]``.

    Args:
        items: The items ``[m]``, in leaf order for speed.
    """

    def __init__(self, task: Task, items: Ints, nodes: Ints | None = None, probabilities: Floats | None = None) -> None:
        self.task, self.items = task, items
        self.batch = task.affinity.batch(items)
        self.node = np.full(len(items), task.hierarchy.root) if nodes is None else nodes.copy()
        self.probability = np.ones(len(items)) if probabilities is None else probabilities.copy()

    def steps(self, ends: Ints | None = None) -> Iterator[Step]:
        """Yield the steps of one level after another, of the items that were moved since the last one.

        Args:
            ends: The node to which an item at each node moves before a step; it stays by default.
        """
        rows, level, tree = np.arange(len(self.items)), 0, self.task.hierarchy
        while True:
            if ends is not None:
                self.node[rows] = ends[self.node[rows]]
            if not len(rows := rows[self._can_continue(rows)]):
                return
            before = self.node[rows]
            # In pieces of about 100,000 children, which bounds the memory of wide nodes.
            for part in pieces(child_counts(tree, before), PIECE_PAIRS):
                yield self._look(rows[part], before[part], level)
            rows, level = rows[self.node[rows] != before], level + 1

    def move(self, step: Step, chosen: Bools, at: Ints, eta: Floats | None = None) -> None:
        """Move the chosen items of a step ``[m]`` to the children of these pairs ``[m]``."""
        rows, at = step.rows[chosen], at[chosen]
        self.node[rows] = step.children[at]
        if eta is not None:
            self.probability[rows] *= eta[at]

    def decide(self, step: Step, eta: Floats, margin: Floats, loss: Floats) -> Bools:
        """Return which items of a step continue under the rule of the task ``[m]``.

        The hindsight policy visits the complete true path.
        """
        rule = self.task.rule
        if isinstance(rule, LookAhead):
            chosen = descends(margin, loss, rule.tie)
            if rule.depth != 1 and not chosen.all():
                open_ = np.flatnonzero(~chosen)
                at, counts = ranges(step.firsts[open_], step.counts[open_]), step.counts[open_]
                plan = Planner(self.task, rule, self.batch, self.items)
                chosen[open_] = plan.descend(
                    step.rows[open_], step.children[at], counts, eta[at], margin[open_], loss[open_]
                )
            return chosen
        if isinstance(rule, SearchRoot | AlwaysDescend | HindsightRule):
            return np.full(len(step.rows), not isinstance(rule, SearchRoot))
        tree, chosen = self.task.hierarchy, np.empty(len(step.rows), dtype=bool)
        for node in np.unique(step.nodes):
            here, below = np.flatnonzero(step.nodes == node), tree.children(int(node))
            table = eta[step.firsts[here][:, None] + np.arange(len(below))]
            chosen[here] = ask(rule, table, tree.sizes[below], self.task.rewards.reward[below], int(tree.levels[node]))
        return chosen

    def _can_continue(self, rows: Ints) -> Bools:
        tree, node = self.task.hierarchy, self.node[rows]
        able: Bools = ~tree.is_leaf[node]
        if not self.task.enter_own_singleton:
            items = self.items[rows]
            able &= ~(tree.is_cluster[items] & (tree.parent[items] == node))
        return able

    def _look(self, rows: Ints, nodes: Ints, level: int) -> Step:
        tree = self.task.hierarchy
        children, counts = children_of(tree, nodes)
        return Step(
            rows=rows,
            items=self.items[rows],
            nodes=nodes,
            level=level,
            children=children,
            firsts=np.cumsum(counts) - counts,
            counts=counts,
            similarities=self.batch.expand(rows, nodes, (children, counts)),
            hierarchy=tree,
        )


def own_steps(
    task: Task, items: Ints | None = None, until: Ints | None = None, ends: Ints | None = None
) -> Iterator[Step]:
    """Yield every step of the true paths, down to the leaf clusters; with ``ends``, as for `Walk.steps`."""
    items = np.arange(task.hierarchy.n_items) if items is None else items
    for at in batches(task, items):
        walk = Walk(task, items[at])
        for step in walk.steps(ends):
            yield step
            continues = np.full(len(step.rows), True) if until is None else until[step.items] > step.level
            walk.move(step, continues, step.own_at)


@dataclass(frozen=True, eq=False)
class Trail:
    """The steps of searchers that enter the most similar child, in the order of levels.

    Attributes:
        rows: The searcher of each step, an index into the items ``[steps]``.
        nodes: The node that it reaches ``[steps]``.
        probabilities: The probability of reaching it on this way ``[steps]``.
        ends: The stop node of each searcher ``[m]``.
        end_probabilities: The probability of the way to it ``[m]``.
    """

    rows: Ints
    nodes: Ints
    probabilities: Floats
    ends: Ints
    end_probabilities: Floats


def greedy_trail(task: Task, items: Ints, nodes: Ints, probabilities: Floats) -> Trail:
    """Return the steps of searchers that continue from these nodes to the most similar child.

    They stop by the rule of the task, or by the one-step rule in place of the hindsight policy.
    """
    if isinstance(task.rule, HindsightRule):
        task = replace(task, rule=LookAhead(1, task.rule.tie))
    none = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    steps: list[tuple[Ints, Ints, Floats]] = [none]
    ends, end_probabilities = nodes.copy(), probabilities.copy()
    for at in batches(task, items):
        walk = Walk(task, items[at], nodes[at], probabilities[at])
        for step in walk.steps():
            eta, margin, loss = step.weigh(task)
            chosen = walk.decide(step, eta, margin, loss)
            walk.move(step, chosen, step.best_at(step.similarities), eta)
            rows = step.rows[chosen]
            steps.append((at[rows], walk.node[rows], walk.probability[rows]))
        ends[at], end_probabilities[at] = walk.node, walk.probability
    who, where, how = (np.concatenate(column) for column in zip(*steps, strict=True))
    return Trail(who, where, how, ends, end_probabilities)


def first_choice(tree: Hierarchy) -> int:
    """Return the first node with several children, from the root; -1 if there is none."""
    node = tree.root
    while len(children := tree.children(node)) == 1:
        node = int(children[0])
    return node if len(children) else -1
