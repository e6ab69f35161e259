"""Guidance and the one-step comparison, for many items at many nodes in one pass over a ragged table."""

from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.scorer.task import Task

__all__ = ["weigh"]


def weigh(
    task: Task, similarities: Floats, firsts: Ints, counts: Ints, nodes: Ints, children: Ints
) -> tuple[Floats, Floats]:
    """Return the guidance ``eta`` and the margin by which descending one step beats searching, over b.

    ``eta = softmax of sim / delta_t``, and the margin is ``sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta)``, 0
    exactly where there is one child.

    Args:
        task: Rewards and temperatures.
        similarities: To the children of all, one list after another ``[pairs]``.
        firsts: Where each list begins ``[n]``.
        counts: How long it is ``[n]``.
        nodes: The nodes ``[n]``.
        children: Their children ``[pairs]``.

    Returns:
        ``eta`` ``[pairs]``, and the margin ``[n]``.
    """
    width = int(counts[0]) if len(counts) and (counts == counts[0]).all() else 0
    if width == 2:
        return _weigh_two(task, similarities, nodes, children)

    def spread(values: Any) -> Any:
        return values[:, None] if width else np.repeat(values, counts)

    def over_each(combine: np.ufunc, values: Any) -> Any:
        return combine.reduce(values, axis=1) if width else combine.reduceat(values, firsts)

    shape = (-1, width) if width else (-1,)  # lists of one length are a table, at half the time of a ragged one
    similarities = similarities.reshape(shape)
    with np.errstate(over="ignore"):  # towards -inf, at temperatures near 0 or similarities without end
        eta = similarities - spread(over_each(np.maximum, similarities))
        eta /= spread(task.temperatures[task.hierarchy.levels[nodes]])
    np.exp(eta, out=eta)
    eta /= spread(over_each(np.add, eta))
    # eta (eta (r' - r) - (1 + r) (1 - eta)), with the small rise never added to a large number.
    terms = 1.0 - eta
    terms *= spread(-1.0 - task.rewards.reward[nodes])
    terms += eta * task.rewards.rise[children].reshape(shape)
    terms *= eta
    return eta.reshape(-1), over_each(np.add, terms)


def _weigh_two(task: Task, similarities: Floats, nodes: Ints, children: Ints) -> tuple[Floats, Floats]:
    """Weigh two children a node, as a dendrogram's nodes have: the same without ragged reductions."""
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
    both = one * two
    both *= -2.0 * (1.0 + task.rewards.reward[nodes])
    both += one * one * rise[children[::2]]
    both += two * two * rise[children[1::2]]
    return eta, both
