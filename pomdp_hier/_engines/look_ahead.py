"""Guidance and margins of many items: one step ahead by `weigh`, further ahead by `Planner` with bounds.

The gain of a node is the value that planning adds to searching it, over b: ``G(c) = W(c) - (r(c) + 1) = max(0, M(c))``
with the margin ``M(c) = sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta) + sum of eta**2 G(c')``. G lies between 0
and the potential of the node. Most decisions follow from these bounds before the tree below is expanded.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._engines.task import LookAhead, Task, descends
from pomdp_hier.features.affinity import Batch
from pomdp_hier.features.membership import children_of, ranges

_PIECE_QUERIES = 2048


def weigh(
    task: Task, similarities: Floats, firsts: Ints, counts: Ints, nodes: Ints, children: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return the guidance ``eta``, the margin of descending one step over searching (over b), and its loss.

    ``eta = softmax of sim / delta_t``, and the margin is ``sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta)``, a
    gain minus a loss. Both are sums of nonnegative terms, without cancellation, and 0 for an only child.

    Args:
        task: Rewards and temperatures.
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
    """Planner that decides whether deeper planning makes descending optimal for items at nodes."""

    def __init__(self, task: Task, rule: LookAhead, batch: Batch, items: Ints) -> None:
        self._task = task
        self._rule = rule
        self._batch = batch
        self._items = items

    def descend(self, rows: Ints, children: Ints, counts: Ints, eta: Floats, margin: Floats, loss: Floats) -> Bools:
        """Return whether rows of the batch with a negative one-step margin should descend.

        Args:
            rows: Rows of the batch ``[n]``.
            children: The children of their nodes, concatenated.
            counts: The number of children ``[n]``.
            eta: The guidance to the children.
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
