"""Nodes of an edited tree as seen by the searchers for their items: similarities, guidance and values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._engines.on_numpy import own_steps
from pomdp_hier._engines.task import AlwaysDescend, HindsightRule, LookAhead, Rule, SearchRoot, ask, descends
from pomdp_hier._intervals import relative_weights
from pomdp_hier.errors import Argument, ParameterError, Setting
from pomdp_hier.hqs.guidance import SizeRewards, temperatures
from pomdp_hier.hqs.inputs import Prepared, Run, named
from pomdp_hier.hqs.result import ItemScores
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.hqs.search_length import search_length
from pomdp_hier.improvement.similarities import Cluster

NO_ITEMS = np.empty(0, dtype=np.int64)


def check_policy(prepared: Prepared, run: Run | None = None) -> Rule:
    """Return the stopping rule, if it decides from one node and its children.

    Raises:
        ParameterError: It looks further, it is not a stopping rule, or the engine is generic.
    """
    if run is not None and run.engine == "generic":
        raise ParameterError(
            "engine: got 'generic', which plans in the POMDP of each item; expected a vectorised engine. Improve with "
            "engine='auto', and score both trees with evaluate(..., engine='generic')."
        )
    rule = prepared.settings.rule
    if rule is None or (isinstance(rule, LookAhead) and rule.depth != 1):
        raise ParameterError(
            Argument("policy"),
            f": got {named(prepared.settings.policy)}, by which an edit changes decisions anywhere above it; expected "
            "one that looks one step ahead. Improve with ",
            Setting("policy", "one-step"),
            ", then score both trees.",
        )
    return rule


@dataclass(frozen=True, eq=False)
class NodeView:
    """A node in the searches for its items.

    ``W`` is one plus the value of the search for an item that continues from a node.

    Attributes:
        members: The items below the node, ascending ``[m]``.
        children: The children of the node ``[k]``; none for a leaf cluster.
        own: The position of the child with the item ``[m]``.
        table: The similarity of each item to each child ``[k, m]``.
        share: The guidance to that child ``[m]``; for the search length, the loss of value at the node.
        goes: Whether the search descends ``[m]``.
        below: ``W`` of that child ``[m]``.
        stop_value: ``W`` of a stop at the node, its reward plus one.
        value: ``W`` of the node ``[m]``.
        labels: The number of labels at the node and below.
    """

    members: Ints
    children: tuple[int, ...]
    own: Ints
    table: Floats
    share: Floats
    goes: Bools
    below: Floats
    stop_value: float
    value: Floats
    labels: int = 0


class Views:
    """The views of nodes under a policy, guidance and reward.

    Args:
        prepared: Features, tree and settings.

    Raises:
        ParameterError: The policy looks further than one step.
    """

    def __init__(self, prepared: Prepared) -> None:
        tree, settings = prepared.hierarchy, prepared.settings
        self.rule = check_policy(prepared)
        self.label_cost = 0.0
        self._n_items, self._settings = tree.n_items, settings
        self._rewards = SizeRewards(np.arange(1, tree.n_items + 1), tree.n_items, settings.reward)
        self._alone = self.reward(1) + 1.0
        self.by_level = settings.nu != 1.0 or not isinstance(
            self.rule, LookAhead | AlwaysDescend | SearchRoot | HindsightRule
        )

    @property
    def upper_bound(self) -> float:
        """The upper bound of the score of every tree over the items: the reward of a cluster of one item."""
        return self.reward(1)

    def reward(self, size: int) -> float:
        """Return the reward of a cluster of that size."""
        return float(self._rewards.of(np.array([size]))[0])

    def view(
        self,
        members: Ints,
        children: tuple[int, ...],
        own_and_table: tuple[Ints, Floats] | None,
        known: Mapping[int, NodeView],
        level: int,
    ) -> NodeView:
        """Return the view of a node, from the child of each item and the similarities to the children."""
        m = len(members)
        stop_value = self.reward(m) + 1.0
        if not children or own_and_table is None:
            nobody = np.zeros(m)
            goes = np.zeros(m, dtype=bool)
            return NodeView(
                members, (), NO_ITEMS, np.empty((0, m)), nobody, goes, nobody, stop_value, np.full(m, stop_value)
            )
        own, table = own_and_table
        seen = [None if child < self._n_items else known[child] for child in children]
        sizes = np.array([1 if view is None else len(view.members) for view in seen])
        alone = np.array([self._alone])
        below = np.empty(m)  # in a stable order by child, the items of each child are ascending
        below[order_by_child(own, len(children))] = np.concatenate(
            [alone if view is None else view.value for view in seen]
        )
        labels = np.array([0 if view is None else view.labels for view in seen])
        share, goes = self._weigh(table, own, sizes, labels, stop_value, level)
        if not self._settings.enter_own_singleton:
            goes &= np.array(children)[own] >= self._n_items
        value = self.value(share, goes, below, stop_value)
        n_labels = int(labels.sum()) + len(children)
        return NodeView(members, children, own, table, share, goes, below, stop_value, value, n_labels)

    def _weigh(
        self, table: Floats, own: Ints, sizes: Ints, labels: Ints, stop_value: float, level: int
    ) -> tuple[Floats, Bools]:
        """Return the guidance to the child of each item, and whether to descend ``[m]``; see `look_ahead.weigh`."""
        m = table.shape[1]
        with np.errstate(over="ignore"):
            eta = table - table.max(axis=0)
            eta /= temperatures(level, float(self._settings.delta), self._settings.nu)
        np.exp(eta, out=eta)
        eta /= eta.sum(axis=0)
        share = eta[own, np.arange(m)]
        rule = self.rule
        if isinstance(rule, LookAhead):
            rise = self._rewards.rise(sizes, np.full(len(sizes), m))
            loss = stop_value * ((1.0 - eta) * eta).sum(axis=0)
            return share, descends((eta**2 * rise[:, None]).sum(axis=0) - loss, loss, rule.tie)
        if isinstance(rule, SearchRoot | AlwaysDescend | HindsightRule):
            return share, np.full(m, not isinstance(rule, SearchRoot))
        return share, ask(rule, np.ascontiguousarray(eta.T), sizes, self._rewards.of(sizes), level).copy()

    def value(self, share: Floats, goes: Bools, below: Floats, stop_value: float) -> Floats:
        """Return ``W`` of a node, given that of the child of each item."""
        further = share * below
        if isinstance(self.rule, HindsightRule):
            goes = goes & descends(further - stop_value, np.broadcast_to(stop_value, further.shape), self.rule.tie)
        return np.where(goes, further, stop_value)

    def passing(self, seen: NodeView) -> Floats:
        """Return the probability that a search at a node enters the child of its item ``[m]``."""
        return np.where(seen.goes, seen.share, 0.0)


class LengthViews(Views):
    """The views of nodes by the expected search length.

    ``W`` is two less the reduced length: one plus the value, less what is seen before the child of the item is entered.

    Args:
        prepared: Features, tree and settings.
        label_cost: The cost of reading a label.
    """

    def __init__(self, prepared: Prepared, label_cost: float) -> None:
        super().__init__(prepared.under(reward=_list_value, policy="descend"))
        self.label_cost = label_cost
        self._others = max(prepared.hierarchy.n_items - 1, 1) / 2
        heaviest = 1.0 if prepared.weights is None else float(relative_weights(prepared.weights).max())
        self._most_weight = heaviest / prepared.hierarchy.n_items

    @property
    def upper_bound(self) -> float:
        """The upper bound of the score of every tree over the items.

        Where the choice is one of k children, k labels are read. On the path to a leaf cluster with L items, their
        number is at least e times the logarithm of the product of the k. These products satisfy Kraft's inequality. So
        their mean logarithm is at least the entropy of the clusters' shares, each of which is at most L times the
        largest weight.
        """
        if not self._settings.enter_own_singleton:
            return self.reward(1)
        most, cost = self._most_weight, math.e * self.label_cost
        size = min(max(2 * cost, 1.0), 1 / most)
        return self.reward(1) - ((size - 1) / 2 + cost * max(0.0, -math.log(size * most))) / self._others

    def _weigh(
        self, table: Floats, own: Ints, sizes: Ints, labels: Ints, stop_value: float, level: int
    ) -> tuple[Floats, Bools]:
        """Return the loss of value by the siblings that are entered first and the labels, and that all descend."""
        m = table.shape[1]
        with np.errstate(over="ignore"):
            gaps = table - table[own, np.arange(m)]
            gaps /= temperatures(level, float(self._settings.delta), self._settings.nu)
        before = expit(gaps, out=gaps)
        before[own, np.arange(m)] = 0.0
        seen = (sizes + self.label_cost * labels) @ before + self.label_cost * len(sizes)
        return seen / self._others, np.ones(m, dtype=bool)

    def value(self, share: Floats, goes: Bools, below: Floats, stop_value: float) -> Floats:
        """Return ``W`` of a node, given that of the child of each item."""
        return np.where(goes, below - share, stop_value)

    def passing(self, seen: NodeView) -> Floats:
        """Return 1 for all that descend: every search goes on to its item."""
        return seen.goes.astype(np.float64)


def _list_value(size: int, n_items: int) -> float:
    """Return the value of the first list that is looked at."""
    return (n_items - size) / (n_items - 1) if n_items > 1 else 0.0


@dataclass(frozen=True)
class Objective:
    """The score that edits raise.

    Attributes:
        label_cost: The cost of reading a label for the expected search length; None for HQS.
    """

    label_cost: float | None = None

    def views(self, prepared: Prepared) -> Views:
        """Return the views of the nodes of a tree."""
        return Views(prepared) if self.label_cost is None else LengthViews(prepared, self.label_cost)

    def score(self, prepared: Prepared, run: Run) -> ItemScores:
        """Return the score of a tree."""
        if self.label_cost is None:
            return score(prepared, run, Sampling())
        return search_length(prepared, run, Sampling(), self.label_cost)


HQS = Objective()


def order_by_child(own: Ints, n_children: int) -> Ints:
    """Return the rows in a stable order by child."""
    short = own.astype(np.int16) if n_children < 1 << 15 else own  # sorted by radix, in linear time
    return np.argsort(short, kind="stable")


def child_of_items(members: Ints, clusters: list[Cluster]) -> Ints:
    """Return the position of the cluster of each item ``[m]``; the clusters partition the items."""
    own = np.empty(len(members), dtype=np.int64)
    if clusters:
        sizes = [len(items) for _, items in clusters]
        rows = np.searchsorted(members, np.concatenate([items for _, items in clusters]))
        own[rows] = np.repeat(np.arange(len(clusters)), sizes)
    return own


def similarity_tables(prepared: Prepared) -> dict[int, Floats]:
    """Return the similarities of the items of each node, ascending, to its children ``[k, m]``, from the engine."""
    pieces: dict[int, list[tuple[Ints, Floats]]] = {}
    for step in own_steps(prepared.under(enter_own_singleton=True).task()):
        cuts = np.flatnonzero(np.diff(step.nodes, prepend=-1)).tolist()
        for low, high in zip(cuts, [*cuts[1:], len(step.nodes)], strict=True):
            k, first = int(step.counts[low]), int(step.firsts[low])
            table = step.similarities[first : first + (high - low) * k].reshape(high - low, k)
            pieces.setdefault(int(step.nodes[low]), []).append((step.items[low:high], table))
    tables = {}
    for node, parts in pieces.items():
        order = np.argsort(np.concatenate([items for items, _ in parts]))
        tables[node] = np.ascontiguousarray(np.concatenate([table for _, table in parts])[order].T)
    return tables
