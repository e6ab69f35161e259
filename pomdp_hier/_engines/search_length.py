"""Expected numbers of items and labels seen by a searcher who may go back, in closed form for many items.

At a node the searcher enters the children in a random order, drawn without replacement with probabilities proportional
to eta. A sibling c comes before the correct child r with probability ``eta_c / (eta_c + eta_r)``, which is
``sigma((s_c - s_r) / delta_t)`` with the logistic function sigma (Plackett and Luce). Then each item below c is looked
at, and each label below it read.
"""

import numpy as np
from scipy.special import expit

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._engines.on_numpy import Step, own_steps
from pomdp_hier._engines.task import Advance, Task
from pomdp_hier.features.membership import at_one_node
from pomdp_hier.hierarchy.arrays import sum_below
from pomdp_hier.hierarchy.tree import Hierarchy


def labels_below(hierarchy: Hierarchy) -> Ints:
    """Return the number of labels below each node: the children of the node and of all nodes below ``[n_nodes]``.

    Example:
        >>> labels_below(Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4))
        array([0, 0, 0, 0, 0, 0, 2])
    """
    return sum_below(hierarchy.parent, np.diff(hierarchy.child_offsets))


def run(task: Task, items: Ints, engine: str, advance: Advance) -> tuple[Floats, Floats]:
    """Return the expected number of items looked at, the item included, and of labels read, per item ``[m]`` each."""
    below = labels_below(task.hierarchy)
    if engine == "numba":
        from pomdp_hier._engines import on_numba

        return on_numba.run_lengths(task, items, below, advance)
    return _on_numpy(task, items, below, advance)


def _on_numpy(task: Task, items: Ints, below: Ints, advance: Advance) -> tuple[Floats, Floats]:
    tree, done = task.hierarchy, 0
    looks = (tree.sizes[task.ends].astype(np.float64) + 1.0) / 2.0
    labels = np.zeros(tree.n_items)
    weights = np.stack((tree.sizes, below), axis=1).astype(np.float64)
    for step in own_steps(task, items):
        first = _before(task, step, weights)
        looks[step.items] += first[:, 0]
        labels[step.items] += first[:, 1] + step.counts
        if step.level == 0:
            advance(len(step.items))
            done += len(step.items)
    advance(len(items) - done)
    return looks[items], labels[items]


def _before(task: Task, step: Step, weights: Floats) -> Floats:
    """Return the expected weights of the siblings that are entered before the correct child ``[m, 2]``."""
    gaps, own_at = step.similarities, step.own_at
    with np.errstate(over="ignore"):  # at temperatures near 0, sigma is 0 or 1
        gaps = gaps - np.repeat(gaps[own_at], step.counts)
        gaps /= task.temperatures[step.level]
    before = expit(gaps, out=gaps)
    before[own_at] = 0.0
    if at_one_node(step.nodes):
        width = int(step.counts[0])
        return np.asarray(before.reshape(-1, width) @ weights[step.children[:width]])
    return np.asarray(np.add.reduceat(before[:, None] * weights[step.children], step.firsts))
