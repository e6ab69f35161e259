"""Diagnosis of a hierarchy: where searchers take wrong branches or stop early, and which items are lost.

The gap between a score and perfect guidance splits without remainder. T is the node where the search for x stops, and L
the leaf cluster of x. ``eta_t`` is the guidance to the correct child at level t.

    r(L) - V_x = sum over t < T of (r_T + 1) * prod over s < t of eta_s * (1 - eta_t)      wrong branch at level t
                 + r(L) - r(T)                                                             early stop at T .

An item is *lost* if a searcher who always enters the most similar child ends outside the path of the item.

With weights, each item counts by its weight over the mean weight, in place of 1.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints, check_integer, check_kind, unexpected
from pomdp_hier._engines.on_numpy import Step, first_choice, greedy_trail, own_steps
from pomdp_hier._engines.task import Task
from pomdp_hier._intervals import relative_weights
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.items import Duplicates, row_keys
from pomdp_hier.features.membership import node_sums
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import score

_EVERY = "a diagnosis covers every item"
ALL_ITEMS = dict.fromkeys(
    ("sample_size", "half_width", "sampling"), f"{_EVERY}. Leave it out, or diagnose a smaller tree."
)
"""Settings of a sample, each with the reason against it."""

Counts: TypeAlias = Ints | Floats
"""Numbers of items: integers without weights."""

_PAIR_ROWS = 1 << 21  # rows kept before they are summed, 80 MB


@dataclass(frozen=True)
class NodeReport:
    """Searches at one node.

    Attributes:
        node: The node.
        level: Its level.
        n_items: The number of items below.
        arrival_rate: The expected share of their searchers that arrive; NaN where all items below have weight 0.
        branch_accuracy: The share of searches for which the correct child is the most similar; NaN without a choice.
        stop_rate: The share of the searches that stop here; NaN where all items below have weight 0.
        wrong_branch_cost: The loss of score by wrong branches taken here.
        early_stop_cost: The loss of score by searches that stop here, above their leaf cluster.
    """

    node: int
    level: int
    n_items: int
    arrival_rate: float
    branch_accuracy: float
    stop_rate: float
    wrong_branch_cost: float
    early_stop_cost: float

    @property
    def cost(self) -> float:
        """The total loss of score at the node."""
        return self.wrong_branch_cost + self.early_stop_cost


@dataclass(frozen=True)
class LostItem:
    """A lost item, and the path of its searcher.

    Attributes:
        item: The item.
        value: The value of its search.
        stops_at: The node where the policy stops if the searcher never leaves the path of the item.
        left_path_at: The node where the searcher leaves that path.
        level: The level of ``left_path_at``.
        wrong_child: The wrong child entered at ``left_path_at``.
        ends_at: The node where the searcher ends.
        cost: The loss of score: the item's share of the searches, times the reward of its leaf cluster minus its value.
    """

    item: int
    value: float
    stops_at: int
    left_path_at: int
    level: int
    wrong_child: int
    ends_at: int
    cost: float


@dataclass(frozen=True)
class Confusion:
    """Two siblings, one of which attracts searchers for items of the other.

    Attributes:
        parent: Their parent.
        child: The correct child.
        rival: The child entered in its place.
        n_items: The number of items of the correct child that are more similar to the rival.
        item_share: Their share of the items, or of the weights, of the correct child.
        expected_errors: The expected number of searchers who enter the rival by mistake.
        cost: The loss of score.
    """

    parent: int
    child: int
    rival: int
    n_items: int
    item_share: float
    expected_errors: float
    cost: float


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Wrong branches, early stops and lost items of a hierarchy, per node, per item, and per pair of siblings.

    Attributes:
        hierarchy: The tree.
        result: Its score.
        expected_arrivals: The expected number of searchers who arrive at each node on the path of their item
            ``[n_nodes]``, at most ``node_weights``.
        node_weights: The number of items below each node, by their weights ``[n_nodes]``.
        n_choices: The number of items with a choice of children at the node ``[n_nodes]``: all below, or 0.
        n_correct: The number of these for which the correct child, or a duplicate's, is the most similar ``[n_nodes]``.
        wrong_branch_loss: The loss by wrong branches at the node, summed over the items ``[n_nodes]``.
        early_stop_loss: The loss by early stops at the node, summed over the items ``[n_nodes]``.
        n_stops: The number of items whose search stops at the node ``[n_nodes]``.
        leaf_rewards: The reward of the leaf cluster of each item, the largest value of its search ``[N]``.
        ends_at: The node where a searcher for the item ends who always enters the most similar child ``[N]``.
        end_probabilities: The probability of a search that ends there along that path ``[N]``.
        turn_probabilities: The probability of entering ``wrong_child`` ``[N]``; 0 without one.
        left_path_level: The level at which that searcher leaves the path of a lost item ``[N]``; -1 for other items.
        wrong_child: The child entered there ``[N]``; -1 for items that are not lost.
        pair_child: The correct child of each pair of confused siblings ``[P]``.
        pair_rival: The child entered in its place ``[P]``.
        pair_items: The number of items of the correct child that are more similar to the rival ``[P]``, unweighted.
        pair_weights: The same by their weights ``[P]``.
        pair_expected_errors: The expected number of searchers who enter the rival by mistake ``[P]``.
        pair_cost: The loss by that, summed over the items ``[P]``.
    """

    hierarchy: Hierarchy
    result: HQSResult
    expected_arrivals: Floats
    node_weights: Counts
    n_choices: Counts
    n_correct: Counts
    wrong_branch_loss: Floats
    early_stop_loss: Floats
    n_stops: Counts
    leaf_rewards: Floats
    ends_at: Ints
    end_probabilities: Floats
    turn_probabilities: Floats
    left_path_level: Ints
    wrong_child: Ints
    pair_child: Ints
    pair_rival: Ints
    pair_items: Ints
    pair_weights: Floats
    pair_expected_errors: Floats
    pair_cost: Floats

    def __repr__(self) -> str:
        lost, n_items = int(self.lost.sum()), self.hierarchy.n_items
        score = f"score={self.result.score:z.6f}, first_branch_accuracy={self.first_branch_accuracy:z.4f}"
        return f"Diagnosis({score}, {lost:,} of {n_items:,} items lost)"

    @property
    def lost(self) -> Bools:
        """Whether each item is lost ``[N]``."""
        return self.left_path_level >= 0

    @property
    def first_branch_accuracy(self) -> float:
        """The share of searches for which the first node with a choice prefers the correct child; NaN without one."""
        node = first_choice(self.hierarchy)
        if node < 0:
            return float("nan")
        n_items = self.hierarchy.n_items
        return (n_items - float(self.n_choices[node] - self.n_correct[node])) / n_items

    def node_report(self, node: int) -> NodeReport:
        """Return the searches at one node."""
        tree = self.hierarchy
        size, choices = float(self.node_weights[node]), float(self.n_choices[node])
        return NodeReport(
            node=node,
            level=int(tree.levels[node]),
            n_items=int(tree.sizes[node]),
            arrival_rate=float(self.expected_arrivals[node]) / size if size else float("nan"),
            branch_accuracy=float(self.n_correct[node]) / choices if choices else float("nan"),
            stop_rate=float(self.n_stops[node]) / size if size else float("nan"),
            wrong_branch_cost=float(self.wrong_branch_loss[node]) / tree.n_items,
            early_stop_cost=float(self.early_stop_loss[node]) / tree.n_items,
        )

    def worst_nodes(self, limit: int = 10, *, count_stops: bool = False) -> list[NodeReport]:
        """Return the nodes that cost the score most, the worst first; nodes without a cost are left out.

        Args:
            limit: The largest number of nodes.
            count_stops: Whether the cost of early stops counts, besides that of wrong branches. A policy often stops
                early because of confusion below the node.
        """
        check_integer("limit", limit)
        cost = self.wrong_branch_loss + (self.early_stop_loss if count_stops else 0.0)
        order = np.lexsort((self.hierarchy.levels, -cost))[:limit]
        return [self.node_report(node) for node in order.tolist() if cost[node] > 0]

    def lost_items(self, limit: int = 10) -> list[LostItem]:
        """Return the lost items, the lowest value first; an item whose searcher ends at a duplicate is not lost.

        With weights, the item with the largest cost comes first, and those of weight 0 last.

        Args:
            limit: The largest number of items.
        """
        check_integer("limit", limit)
        tree, result = self.hierarchy, self.result
        costs = self._costs
        return [
            LostItem(
                item=item,
                value=float(result.values[item]),
                stops_at=int(result.stop_nodes[item]),
                left_path_at=int(tree.parent[self.wrong_child[item]]),
                level=int(self.left_path_level[item]),
                wrong_child=int(self.wrong_child[item]),
                ends_at=int(self.ends_at[item]),
                cost=float(costs[item]) / tree.n_items,
            )
            for item in self.worst_first(np.flatnonzero(self.lost))[:limit].tolist()
        ]

    @property
    def _costs(self) -> Floats:
        """The loss of each item against its leaf cluster, by its weight ``[N]``."""
        costs: Floats = self.node_weights[: self.hierarchy.n_items] * (self.leaf_rewards - self.result.values)
        return costs

    def worst_first(self, items: Ints) -> Ints:
        """Return items in the order of `lost_items`."""
        worst = self.result.values if self.result.sample_weight is None else -self._costs
        ordered: Ints = items[np.argsort(worst[items], kind="stable")]
        return ordered

    def confusions(self, limit: int = 10) -> list[Confusion]:
        """Return pairs of confused siblings, by decreasing cost and then by the number of items.

        Args:
            limit: The largest number of pairs.
        """
        check_integer("limit", limit)
        tree = self.hierarchy
        order = np.lexsort((-self.pair_items, -self.pair_cost))[:limit]
        reports = []
        for at in order.tolist():
            child = int(self.pair_child[at])
            reports.append(
                Confusion(
                    parent=int(tree.parent[child]),
                    child=child,
                    rival=int(self.pair_rival[at]),
                    n_items=int(self.pair_items[at]),
                    item_share=float(self.pair_weights[at]) / float(self.node_weights[child] or 1),
                    expected_errors=float(self.pair_expected_errors[at]),
                    cost=float(self.pair_cost[at]) / tree.n_items,
                )
            )
        return reports


def diagnose(
    X: Any,
    hierarchy: Hierarchy,
    result: HQSResult | None = None,
    *,
    duplicates: Sequence[Hashable] | None = None,
    **settings: Any,
) -> Diagnosis:
    """Diagnose where searchers take wrong branches, where they stop early, and which items are lost.

    The guidance is computed along the path of every item to its leaf cluster, also below the node where the policy
    stops: O(D) per item, level and child.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        result: The result of `evaluate` for the same settings, if known.
        duplicates: One key per item. Items with equal keys are duplicates: an item whose searcher ends at a duplicate
            is not lost. Default: items with equal rows of features; none for a precomputed matrix.
        **settings: As for `evaluate`.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: A setting is invalid, or the result is of other items or settings.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is in the wrong cluster
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> found = diagnose(X, tree, delta=0.1)
        >>> [(lost.item, lost.wrong_child, lost.ends_at) for lost in found.lost_items()]
        [(5, 7, 7)]
        >>> found.worst_nodes()[0].node, len(found.confusions(limit=1))
        (8, 1)

    References:
        The model is that of Huang, Piao, Moreno, Hurley, POMDP Modelling for Assessing Hierarchies.
    """
    prepared, run, sampling = opened(X, hierarchy, settings, ALL_ITEMS, warn=result is None)
    if result is None:
        result = score(prepared, run, sampling)
    else:
        check_result(result, prepared)
    keys = row_keys(prepared.features) if duplicates is None else duplicates
    task = prepared.task()
    count = _Count(task, result, Duplicates(hierarchy, keys))
    for step in own_steps(task):
        count.add(step)
    return count.diagnosis()


def check_result(result: HQSResult, prepared: Prepared) -> None:
    """Raise if a result does not cover every item of this tree under these settings."""
    check_kind("result", result, HQSResult, "the result of evaluate(X, hierarchy)")
    if result.sample is not None:
        raise ParameterError(
            f"result: got a sample; expected all items, as {_EVERY}. Leave it out, or pass the result of all items."
        )
    if len(result.values) != prepared.hierarchy.n_items:
        raise ParameterError(
            f"result: got {len(result.values)} items; expected the {prepared.hierarchy.n_items} of the hierarchy. "
            "Leave it out, or pass the result of this hierarchy."
        )
    one, other = (np.ones(1) if weights is None else weights for weights in (result.sample_weight, prepared.weights))
    if not np.array_equal(one, other):
        raise unexpected("sample_weight", prepared.weights, "the weights of the result", " Pass the same ones.")
    for name, given in prepared.settings.record().items():
        value = result.config.get(name, given)
        plain = isinstance(getattr(prepared.settings, name), str | int | float | None)
        if plain and given != value:
            raise ParameterError(
                f"{name}: got {brief(given)}; expected {brief(value)}, as in the result. Pass the same settings."
            )


class _Count:
    """Sums over the steps of the paths of all items."""

    def __init__(self, task: Task, result: HQSResult, duplicates: Duplicates) -> None:
        tree = task.hierarchy
        self.task, self.tree, self.result, self.duplicates = task, tree, result, duplicates
        self.belief = np.ones(tree.n_items)
        self.deepest = np.full(tree.n_items, tree.root)
        self.expected_arrivals = np.zeros(tree.n_nodes)
        self.expected_arrivals[tree.root] = tree.n_items
        weights = result.sample_weight
        self.weights = None if weights is None else relative_weights(weights)
        none = np.zeros(tree.n_nodes, dtype=np.int64)
        self.n_choices: Counts = none if weights is None else none.astype(np.float64)
        self.n_correct = self.n_choices.copy()
        self.wrong_branch_loss = np.zeros(tree.n_nodes)
        self.left_path_level = np.full(tree.n_items, -1)
        self.wrong_child = np.full(tree.n_items, -1)
        self.wrong_turn = np.zeros(tree.n_items)
        self._pair_rows: list[tuple[Ints, Ints, Floats]] = []
        self._waiting = 0

    def _counts(self, nodes: Ints, items: Ints) -> Counts:
        """Return the number of items per node ``[n_nodes]``, by their weights."""
        weights = None if self.weights is None else self.weights[items]
        counts: Counts = np.bincount(nodes, weights, minlength=self.tree.n_nodes)
        return counts

    def add(self, step: Step) -> None:
        tree, n_nodes = self.tree, self.tree.n_nodes
        eta = step.eta(self.task)
        rival_at = step.rival_at()
        misled = step.misled(rival_at)
        wrong = np.flatnonzero(misled)
        misled[wrong] = ~self.duplicates.inside(step.items[wrong], step.children[rival_at[wrong]])
        chooses = step.counts > 1
        right = chooses & ~misled
        self.n_choices += self._counts(step.nodes[chooses], step.items[chooses])
        self.n_correct += self._counts(step.nodes[right], step.items[right])

        taken = self.result.stop_levels[step.items] > step.level
        path_eta = eta[step.own_at]
        here = np.where(taken, self.belief[step.items], 0.0)
        weights = np.ones(len(step.items)) if self.weights is None else self.weights[step.items]
        here *= weights
        value = here * (self.result.rewards[step.items] + 1.0)
        before = self.belief[step.items]
        self.wrong_branch_loss += np.bincount(step.nodes, weights=value * _other(eta, step), minlength=n_nodes)
        self.expected_arrivals += np.bincount(step.own, weights=here * path_eta, minlength=n_nodes)
        self.belief[step.items] *= path_eta
        self.deepest[step.items] = step.own

        has_rival = np.flatnonzero(chooses & (misled | taken))
        by = eta[rival_at[has_rival]]
        astray = misled[has_rival]
        amounts = np.stack([astray, astray * weights[has_rival], here[has_rival] * by, value[has_rival] * by])
        self._pair_rows.append((step.own[has_rival], step.children[rival_at[has_rival]], amounts))
        self._waiting += len(has_rival)
        if self._waiting > _PAIR_ROWS:
            self._pair_rows = [_summed(self._pair_rows, n_nodes)]
            self._waiting = 0

        first = np.flatnonzero(step.misled(rival_at) & taken & (self.left_path_level[step.items] < 0))
        self.left_path_level[step.items[first]] = tree.levels[step.nodes[first]]
        self.wrong_child[step.items[first]] = step.children[rival_at[first]]
        self.wrong_turn[step.items[first]] = before[first] * eta[rival_at[first]]

    def diagnosis(self) -> Diagnosis:
        tree, result = self.tree, self.result
        rewards = self.task.rewards.reward[self.deepest]
        early = rewards - result.rewards
        if self.weights is not None:
            early = early * self.weights
        left = np.flatnonzero(self.left_path_level >= 0)
        ends, end_probabilities = result.stop_nodes.copy(), result.path_probabilities.copy()
        trail = greedy_trail(self.task, left, self.wrong_child[left], self.wrong_turn[left])
        ends[left], end_probabilities[left] = trail.ends, trail.end_probabilities
        found = left[self.duplicates.inside(left, ends[left])]
        self.left_path_level[found] = self.wrong_child[found] = -1
        self.wrong_turn[found] = 0.0
        child, rival, amounts = _summed(self._pair_rows, tree.n_nodes)
        return Diagnosis(
            hierarchy=tree,
            result=result,
            expected_arrivals=self.expected_arrivals,
            node_weights=tree.sizes if self.weights is None else node_sums(tree, self.weights),
            n_choices=self.n_choices,
            n_correct=self.n_correct,
            wrong_branch_loss=self.wrong_branch_loss,
            early_stop_loss=np.bincount(result.stop_nodes, weights=early, minlength=tree.n_nodes).astype(np.float64),
            n_stops=self._counts(result.stop_nodes, np.arange(tree.n_items)),
            leaf_rewards=rewards,
            ends_at=ends,
            end_probabilities=end_probabilities,
            turn_probabilities=self.wrong_turn,
            left_path_level=self.left_path_level,
            wrong_child=self.wrong_child,
            pair_child=child,
            pair_rival=rival,
            pair_items=amounts[0].astype(np.int64),
            pair_weights=amounts[1],
            pair_expected_errors=amounts[2],
            pair_cost=amounts[3],
        )


def _other(eta: Floats, step: Step) -> Floats:
    """Return ``1 - eta`` of the correct child, summed over the other children, which is exact for eta near 1."""
    others = eta.copy()
    others[step.own_at] = 0.0
    total: Floats = np.add.reduceat(others, step.firsts)
    return total


def _summed(rows: list[tuple[Ints, Ints, Floats]], n_nodes: int) -> tuple[Ints, Ints, Floats]:
    """Return the distinct pairs of child and rival, and their summed amounts ``[4, P]``."""
    if not rows:
        none = np.empty(0, dtype=np.int64)
        return none, none, np.empty((4, 0))
    keys = np.concatenate([child * n_nodes + rival for child, rival, _ in rows])
    amounts = np.concatenate([part for *_, part in rows], axis=1)
    pairs, at = np.unique(keys, return_inverse=True)
    sums: Floats = np.stack([np.bincount(at, weights=part, minlength=len(pairs)) for part in amounts])
    return pairs // n_nodes, pairs % n_nodes, sums


def require_diagnosis(diagnosis: object) -> None:
    """Raise `ParameterError` if the value is not a `Diagnosis`."""
    check_kind("diagnosis", diagnosis, Diagnosis, "the result of diagnose(X, hierarchy)")
