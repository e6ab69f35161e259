"""Walks that do not stop where a policy would: the material of diagnostics and calibration.

Two walks: along each item's own path to its leaf cluster, whether or not a policy would go that far, and along the most
alike child, where a searcher goes that has lost the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._engines.on_numpy import Step, Walk, batches
from pomdp_hier._engines.rules import HindsightRule, OneStep
from pomdp_hier._engines.task import Task
from pomdp_hier.hierarchy.tree import Hierarchy


def own_steps(task: Task, items: Ints | None = None, until: Ints | None = None) -> Iterator[Step]:
    """Yield every step of the items' own paths, each down to its leaf cluster.

    Args:
        task: The scoring task; its rule is not asked.
        items: The items (default: all).
        until: For each of the N items the level at which the last step begins, the root's 0 (default: all steps).
    """
    items = np.arange(task.hierarchy.n_items) if items is None else items
    for at in batches(task, items):
        walk = Walk(task, items[at])
        for step in walk.steps():
            yield step
            goes_on = np.full(len(step.rows), True) if until is None else until[step.items] > step.level
            walk.move(step, goes_on, step.own_at)


@dataclass(frozen=True, eq=False)
class Trail:
    """The steps of searchers who always take the most alike child, in the order of levels.

    Attributes:
        rows: Whose step it is: an index into the items asked about ``[steps]``.
        nodes: Where it leads ``[steps]``.
        probabilities: The probability of having come there so ``[steps]``.
        ends: Where each searcher ends ``[m]``.
        end_probabilities: The probability of ending so ``[m]``.
    """

    rows: Ints
    nodes: Ints
    probabilities: Floats
    ends: Ints
    end_probabilities: Floats


def greedy_trail(task: Task, items: Ints, nodes: Ints, probabilities: Floats) -> Trail:
    """Return the steps of searchers for these items that stand at these nodes and go on to the most alike child.

    They descend as the task's rule tells them. A hindsight searcher is none that could be lost; it goes on by the
    one-step rule.
    """
    if isinstance(task.rule, HindsightRule):
        task = replace(task, rule=OneStep(task.rule.tie))
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
    """Return the first node with a choice, below the root's chain of only children; -1 if there is none."""
    node = tree.root
    while len(children := tree.children(node)) == 1:
        node = int(children[0])
    return node if len(children) else -1
