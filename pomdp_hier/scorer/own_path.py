"""Walks down a hierarchy that keep what a searcher sees at every node: the material of diagnostics and calibration.

Two walks: along each item's own path to its leaf cluster, whether or not a policy would go that far, and along the most
alike child, where a searcher goes that has lost the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pomdp_hier.features.affinity import Batch
from pomdp_hier.features.members import Floats, Ints, child_counts, children_of, contains, pieces, ranges
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.scorer.look_ahead import Planner
from pomdp_hier.scorer.margin import weigh
from pomdp_hier.scorer.rules import AlwaysDescend, LookAhead, SearchRoot, StoppingRule
from pomdp_hier.scorer.task import Task

__all__ = [
    "Bools",
    "Step",
    "Trail",
    "first_choice",
    "greedy_trail",
    "own_steps",
]

Bools = npt.NDArray[np.bool_]

_PIECE_PAIRS = 1 << 20
_AS_GOOD = 1e-12  # similarities closer than this, to the larger of 1 and the best one, differ by rounding only


@dataclass(frozen=True, eq=False)
class Step:
    """Items that stand at nodes of one level on their own paths, and what they see there.

    Attributes:
        items: The items ``[m]``.
        nodes: Where each stands ``[m]``.
        level: The level of the nodes.
        children: The children of the nodes, one list after another ``[pairs]``.
        firsts: Where each list begins ``[m]``.
        counts: How long it is ``[m]``.
        similarities: The item's similarity to each child ``[pairs]``.
        own_at: Where in the lists the child stands that holds the item ``[m]``.
    """

    items: Ints
    nodes: Ints
    level: int
    children: Ints
    firsts: Ints
    counts: Ints
    similarities: Floats
    own_at: Ints

    @property
    def own(self) -> Ints:
        """The child that holds the item ``[m]``."""
        return self.children[self.own_at]

    def eta(self, task: Task) -> Floats:
        """Return the guidance to every child, ``[pairs]``."""
        eta, _ = weigh(task, self.similarities.copy(), self.firsts, self.counts, self.nodes, self.children)
        return eta

    def rival_at(self) -> Ints:
        """Where the most alike of the other children stands ``[m]``, -1 for an only child."""
        others = self.similarities.copy()
        others[self.own_at] = -np.inf
        return np.where(self.counts > 1, _best_at(others, self.firsts, self.counts), -1)

    def misled(self, rival_at: Ints) -> Bools:
        """Whether the rival is more alike than the item's own child, by more than rounding ``[m]``."""
        own = self.similarities[self.own_at]
        rival = np.where(rival_at < 0, own, self.similarities[rival_at])
        return rival > own + _AS_GOOD * np.maximum(1.0, np.abs(rival))


def own_steps(task: Task, items: Ints | None = None, until: Ints | None = None) -> Iterator[Step]:
    """Every step of the items' own paths, each down to its leaf cluster.

    Args:
        task: The scoring task; its rule is not asked.
        items: The items (default: all).
        until: For each of the N items the level at which the last step begins (default: all steps).
    """
    tree = task.hierarchy
    items = np.arange(tree.n_items) if items is None else items
    order = items[np.argsort(tree.starts[items], kind="stable")]
    for low in range(0, len(order), task.affinity.batch_items):
        chosen = order[low : low + task.affinity.batch_items]
        batch = task.affinity.batch(chosen)
        rows = np.arange(len(chosen))
        node = np.full(len(chosen), tree.root)
        level = 0
        while len(rows):
            rows = rows[~tree.is_leaf[node[rows]]]
            if until is not None:
                rows = rows[until[chosen[rows]] >= level]
            if not task.enter_own_singleton:
                mine = chosen[rows]
                rows = rows[~(tree.is_cluster[mine] & (tree.parent[mine] == node[rows]))]
            for part in _pieces(tree, rows, node[rows]):
                step = _step(tree, batch, chosen, part, node[part], level)
                yield step
                node[part] = step.own
            level += 1


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

    They descend as the task's rule tells them. A clairvoyant searcher is none that could be lost; it goes on by the
    one-step rule.
    """
    tree = task.hierarchy
    node, chance = nodes.copy(), probabilities.copy()
    steps: list[tuple[Ints, Ints, Floats]] = []
    order = np.argsort(tree.starts[items], kind="stable")
    for low in range(0, len(order), task.affinity.batch_items):
        at = order[low : low + task.affinity.batch_items]
        batch = task.affinity.batch(items[at])
        rows = np.arange(len(at))
        while len(rows):
            rows = rows[~tree.is_leaf[node[at[rows]]]]
            moved = []
            for part in _pieces(tree, rows, node[at[rows]]):
                descends, best, eta = _choose(task, batch, items[at], part, node[at[part]])
                gone = at[part[descends]]
                node[gone] = best[descends]
                chance[gone] *= eta[descends]
                steps.append((gone, node[gone], chance[gone]))
                moved.append(part[descends])
            rows = np.concatenate(moved) if moved else rows
    none = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    who, where, how = (np.concatenate(column) for column in zip(none, *steps, strict=True))
    return Trail(who, where, how, node, chance)


def first_choice(tree: Hierarchy) -> int:
    """Return the first node with a choice, below the root's chain of only children; -1 if there is none."""
    node = tree.root
    while len(children := tree.children(node)) == 1:
        node = int(children[0])
    return node if len(children) else -1


def _pieces(tree: Hierarchy, rows: Ints, nodes: Ints) -> Iterator[Ints]:
    """Yield the rows in pieces that see about a million children, so that a wide node does not fill the memory."""
    for part in pieces(child_counts(tree, nodes), _PIECE_PAIRS):
        yield rows[part]


def _step(tree: Hierarchy, batch: Batch, chosen: Ints, rows: Ints, nodes: Ints, level: int) -> Step:
    children, counts = children_of(tree, nodes)
    own = contains(tree, children, np.repeat(tree.starts[chosen[rows]], counts))
    return Step(
        items=chosen[rows],
        nodes=nodes,
        level=level,
        children=children,
        firsts=np.cumsum(counts) - counts,
        counts=counts,
        similarities=batch.expand(rows, nodes),
        own_at=np.flatnonzero(own),
    )


def _choose(task: Task, batch: Batch, chosen: Ints, rows: Ints, nodes: Ints) -> tuple[Bools, Ints, Floats]:
    """Whether each row goes on, the most alike child of where it stands, and the guidance to that child."""
    children, counts = children_of(task.hierarchy, nodes)
    firsts = np.cumsum(counts) - counts
    similarities = batch.expand(rows, nodes)
    best_at = _best_at(similarities, firsts, counts)
    eta, margin = weigh(task, similarities, firsts, counts, nodes, children)
    rule = task.rule
    if isinstance(rule, SearchRoot | AlwaysDescend):
        descends = np.full(len(rows), isinstance(rule, AlwaysDescend))
    elif isinstance(rule, StoppingRule):
        descends = _ask(task, rule, nodes, children, firsts, eta)
    else:
        descends = margin >= 0 if rule.tie == "descend" else margin > 0
    if isinstance(rule, LookAhead) and rule.depth != 1 and not descends.all():
        open_ = np.flatnonzero(~descends)
        at = ranges(firsts[open_], counts[open_])
        plan = Planner(task, rule, batch, chosen)
        descends[open_] = plan.descend(rows[open_], children[at], counts[open_], eta[at], margin[open_])
    return descends, children[best_at], eta[best_at]


def _ask(task: Task, rule: StoppingRule, nodes: Ints, children: Ints, firsts: Ints, eta: Floats) -> Bools:
    """Asks a rule of the user's own, once a node."""
    tree = task.hierarchy
    descends = np.empty(len(nodes), dtype=bool)
    for node in np.unique(nodes):
        here = np.flatnonzero(nodes == node)
        below = tree.children(int(node))
        table = eta[firsts[here][:, None] + np.arange(len(below))]
        descends[here] = rule.descend(table, tree.sizes[below], task.rewards.reward[below], int(tree.levels[node]))
    return descends


def _best_at(values: Floats, firsts: Ints, counts: Ints) -> Ints:
    """Where the largest value of each list stands, the first of equals."""
    if not len(firsts):
        return firsts
    best = np.repeat(np.maximum.reduceat(values, firsts), counts)
    at = np.flatnonzero(values == best)
    lists = np.repeat(np.arange(len(firsts)), counts)[at]
    return at[np.searchsorted(lists, np.arange(len(firsts)))]
