"""Guidance and the one-step comparison, for many items at many nodes in one pass over a ragged table."""

from typing import Any

import numpy as np

from pomdp_hier.features.members import Floats, Ints
from pomdp_hier.scorer.task import Task

__all__ = ["guidance_to_first", "margin_of_two", "weigh"]


def weigh(
    task: Task, similarities: Floats, firsts: Ints, counts: Ints, nodes: Ints, children: Ints
) -> tuple[Floats, Floats]:
    """Return ``eta`` and the margin by which descending one step beats searching, over b; uses up the similarities.

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
    binary = bool((counts == 2).all())

    def tall(values: Any) -> Any:
        return values if similarities.ndim == 1 else values[:, None]

    def fold(ufunc: np.ufunc, values: Floats) -> Floats:
        # A dendrogram's pairs need no ragged reduction, which takes most of the time otherwise.
        folded: Floats = ufunc(values[::2], values[1::2]) if binary else ufunc.reduceat(values, firsts, axis=0)
        return folded

    def spread(values: Any) -> Any:
        return np.repeat(values, 2 if binary else counts, axis=0)

    rewards = task.rewards
    eta = similarities
    with np.errstate(over="ignore"):  # towards -inf, at temperatures near 0 or similarities without end
        eta -= spread(fold(np.maximum, eta))
        eta /= tall(spread(task.temperatures[task.hierarchy.levels[nodes]]))
    np.exp(eta, out=eta)
    eta /= spread(fold(np.add, eta))
    worth = spread(1.0 + rewards.reward[nodes])
    # eta (eta (r' - r) - (1 + r) (1 - eta)), with the small rise never added to a large number.
    terms = eta * tall(rewards.rise[children])
    terms -= (1.0 - eta) * tall(worth)
    terms *= eta
    return eta, fold(np.add, terms)


def guidance_to_first(near: Floats, far: Floats, temperature: Floats) -> tuple[Floats, Floats]:
    """Return ``eta`` of the first of two children, ``1 / (1 + odds)``, and the odds of the second; uses up both.

    The odds are ``exp((far - near) / temperature)``; where they overflow, ``eta`` is 0. The second's guidance is
    ``1 / (1 + 1 / odds)``; as one minus the first's it would be rounded to 0.
    """
    with np.errstate(over="ignore"):
        odds = np.subtract(far, near, out=far)
        odds /= temperature
        np.exp(odds, out=odds)
    return np.divide(1.0, np.add(odds, 1.0, out=near), out=near), odds


def margin_of_two(eta: Floats, odds: Floats, worth: Floats, rise: Floats, other_rise: Floats) -> Floats:
    """Return the margin of :func:`weigh` at nodes with two children; uses up the odds, which may be 0 or infinite."""
    with np.errstate(over="ignore", divide="ignore"):
        other = np.divide(1.0, odds, out=odds)
    other += 1.0
    np.divide(1.0, other, out=other)
    # eta (eta (r' - r) - (1 + r) (1 - eta)) for each of the two, with the small rise never added to a large number.
    margin = eta * rise
    margin -= worth * other
    margin *= eta
    rest = other * other_rise
    rest -= worth * (1.0 - other)
    rest *= other
    margin += rest
    return margin
