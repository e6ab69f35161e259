"""Guidance and the one-step comparison, for many items at many nodes in one pass over a ragged table."""

from typing import Any

import numpy as np

from pomdp_hier.features.members import Floats, Ints
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
    binary = bool((counts == 2).all())

    def fold(ufunc: np.ufunc, values: Floats) -> Floats:
        # A dendrogram's pairs need no ragged reduction, which takes most of the time otherwise.
        folded: Floats = ufunc(values[::2], values[1::2]) if binary else ufunc.reduceat(values, firsts)
        return folded

    def spread(values: Any) -> Any:
        return np.repeat(values, 2 if binary else counts)

    with np.errstate(over="ignore"):  # towards -inf, at temperatures near 0 or similarities without end
        eta = similarities - spread(fold(np.maximum, similarities))
        eta /= spread(task.temperatures[task.hierarchy.levels[nodes]])
    np.exp(eta, out=eta)
    eta /= spread(fold(np.add, eta))
    # eta (eta (r' - r) - (1 + r) (1 - eta)), with the small rise never added to a large number.
    terms = 1.0 - eta
    terms *= spread(-1.0 - task.rewards.reward[nodes])
    terms += eta * task.rewards.rise[children]
    terms *= eta
    return eta, fold(np.add, terms)
