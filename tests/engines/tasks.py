"""Tasks of the engines for tests: shapes of trees, as children lists."""

import numpy as np

from pomdp_hier._engines.task import AlwaysDescend, Task
from pomdp_hier.features.affinity import affinity
from pomdp_hier.hqs.guidance import node_rewards, temperatures


def chain(n_items):
    """Children lists of a caterpillar in pairs, the last item at the top."""
    return [[0, 1]] + [[k + 1, n_items + k - 1] for k in range(1, n_items - 1)]


def grouped(n_items, width):
    """Children lists of a tree of pairs of items, under nodes that take the next ``width`` each."""
    lists, rows = [[2 * k, 2 * k + 1] for k in range(n_items // 2)], range(n_items, n_items + n_items // 2)
    while len(rows) > 1:
        first = n_items + len(lists)
        lists += [list(rows[k : k + width]) for k in range(0, len(rows), width)]
        rows = range(first, n_items + len(lists))
    return lists


def task_of(X, tree, kind="cosine", delta=0.1, rule=AlwaysDescend()):  # noqa: B008
    """What an engine is given."""
    levels = np.arange(int(tree.height) + 1)
    return Task(affinity(X, tree, kind), node_rewards(tree), temperatures(levels, delta), rule, True, threads=1)
