"""Guidance and the one-step comparison, for many items at many nodes in one pass over a ragged table."""

from typing import Any

import numpy as np

from pomdp_hier.features.members import Floats, Ints
from pomdp_hier.hqs.engine_task import Task

__all__ = ["weigh"]


def weigh(
    task: Task, similarities: Floats, firsts: Ints, counts: Ints, nodes: Ints, children: Ints
) -> tuple[Floats, Floats]:
    """Returns ``eta`` and the margin by which descending one step beats searching, over b; uses up the similarities.

    The margin is ``sum of eta**2 (r' - r) - (1 + r) sum of eta (1 - eta)``, 0 exactly where there is one child.

    Args:
        task: Rewards and temperatures.
        similarities: ``[children of all, ...]``; further axes hold items that share the nodes.
        firsts: Where each node's children begin ``[n]``.
        counts: How many it has ``[n]``.
        nodes: The nodes ``[n]``.
        children: Their children, one list after another.

    Returns:
        ``eta``, shaped as the similarities, and the margin, ``[n, ...]``.
    """

    def tall(values: Any) -> Any:
        return values if similarities.ndim == 1 else values[:, None]

    rewards = task.rewards
    eta = similarities
    eta -= np.repeat(np.maximum.reduceat(eta, firsts, axis=0), counts, axis=0)
    eta /= tall(np.repeat(task.temperatures[task.hierarchy.levels[nodes]], counts))
    np.exp(eta, out=eta)
    eta /= np.repeat(np.add.reduceat(eta, firsts, axis=0), counts, axis=0)
    worth = np.repeat(1.0 + rewards.reward[nodes], counts)
    # eta (eta (r' - r) - (1 + r) (1 - eta)), with the small rise never added to a large number.
    terms = eta * tall(rewards.rise[children])
    terms -= (1.0 - eta) * tall(worth)
    terms *= eta
    margin: Floats = np.add.reduceat(terms, firsts, axis=0)
    return eta, margin
