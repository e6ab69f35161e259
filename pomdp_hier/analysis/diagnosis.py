"""Where in a hierarchy searchers get lost, which items, and to whom.

What keeps a score from being perfect splits without remainder. With T the node where the search for x stops, L the leaf
cluster of x, and ``eta_t`` the guidance to the right child at level t,

    r(L) - V_x = sum over t < T of (r_T + 1) * prod over s < t of eta_s * (1 - eta_t)      misled at level t
                 + r(L) - r(T)                                                             stopped early at T .
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer, check_kind
from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._engines.on_numpy import Step, first_choice, greedy_trail, own_steps
from pomdp_hier._engines.task import Task
from pomdp_hier._text import brief
from pomdp_hier.analysis.duplicates import Copies, row_keys
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import score

_EVERY = "a diagnosis follows every item"
ALL_ITEMS = dict.fromkeys(
    ("sample_size", "half_width", "sampling"), f"{_EVERY}; leave it out, or diagnose a smaller tree"
)
"""Why no sample can be diagnosed, by the settings that ask for one."""

_PAIR_ROWS = 1 << 21  # rows that wait to be added up, 80 MB


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What goes wrong in a hierarchy, per node, per item, and per pair of siblings.

    Attributes:
        hierarchy: The tree.
        result: Its score.
        arriving: The expected number of searchers that come down their own path to each node ``[n_nodes]``; all
            ``hierarchy.sizes`` of them should.
        choices: How many items have a choice of children at the node ``[n_nodes]``: its size, or 0.
        right: For how many of these the right child is the most alike one, or as good ``[n_nodes]``.
        misled: What being misled at the node costs, summed over the items ``[n_nodes]``.
        stopped: What stopping early there costs, summed over the items ``[n_nodes]``.
        stops: The number of items whose search stops there ``[n_nodes]``.
        perfect: The reward of each item's leaf cluster, the most its search could be worth ``[N]``.
        ends_at: Where a searcher for the item ends who always takes the most alike child ``[N]``.
        end_probabilities: The probability of ending there, by that way ``[N]``.
        turn_probabilities: The probability of having taken the wrong child of ``lost_to`` ``[N]``, 0 for none.
        lost_level: The level at which that searcher leaves the item's path, -1 if it never does so for worse ``[N]``.
        lost_to: The wrong child taken there, -1 for none ``[N]``.
        pair_child: Siblings that are mixed up: the right one ``[P]``.
        pair_rival: The one taken for it ``[P]``.
        pair_items: How many items of the right one find the other more alike ``[P]``.
        pair_searchers: The expected number of searchers that go wrong so ``[P]``.
        pair_cost: What that costs, summed over the items ``[P]``.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> found = diagnose([[2, 0], [1, 0], [0, 1], [0, 2]], tree)
        >>> bool(found.lost.any()), found.first_branch
        (False, 1.0)
    """

    hierarchy: Hierarchy
    result: HQSResult
    arriving: Floats
    choices: Ints
    right: Ints
    misled: Floats
    stopped: Floats
    stops: Ints
    perfect: Floats
    ends_at: Ints
    end_probabilities: Floats
    turn_probabilities: Floats
    lost_level: Ints
    lost_to: Ints
    pair_child: Ints
    pair_rival: Ints
    pair_items: Ints
    pair_searchers: Floats
    pair_cost: Floats

    def __repr__(self) -> str:
        lost, n_items = int(self.lost.sum()), self.hierarchy.n_items
        score = f"score={self.result.score:z.6f}, first_branch={self.first_branch:z.4f}"
        return f"Diagnosis({score}, {lost:,} of {n_items:,} items lost)"

    @property
    def lost(self) -> Bools:
        """Which items a searcher misses who always takes the most alike child, ``[N]``."""
        return self.lost_level >= 0

    @property
    def first_branch(self) -> float:
        """The share of items whose first branch is right; NaN if there is no branch."""
        node = first_choice(self.hierarchy)
        if node < 0:
            return float("nan")
        n_items = self.hierarchy.n_items
        return (n_items - int(self.choices[node] - self.right[node])) / n_items


def diagnose(
    X: Any,
    hierarchy: Hierarchy,
    result: HQSResult | None = None,
    *,
    interchangeable: Sequence[Hashable] | None = None,
    **settings: Any,
) -> Diagnosis:
    """Return what goes wrong in a hierarchy, and where, for `worst_nodes`, `lost_items` and `confusions` to read.

    The guidance is followed down every item's path to its leaf cluster, beyond where the policy stops: O(D) per item,
    level and child. An item is left out of its own clusters, as the similarity says.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        result: What `evaluate` returned for the same settings, if that is known already.
        interchangeable: One key an item: whoever finds an item of equal key has found the item, and counts as not lost.
            Default: items with the same row of features; none for a precomputed matrix.
        **settings: As for `evaluate`.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For a setting that cannot, or a result of other items.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> found = diagnose(X, tree, delta=0.1)
        >>> lost_items(found)[0].item, worst_nodes(found)[0].node
        (5, 8)

    References:
        The model is that of Huang, Piao, Moreno, Hurley, POMDP Modelling for Assessing Hierarchies.
    """
    prepared, run, sampling = opened(X, hierarchy, settings, ALL_ITEMS, warn=result is None)
    if result is None:
        result = score(prepared, run, sampling)
    else:
        check_result(result, prepared)
    keys = row_keys(prepared.features) if interchangeable is None else interchangeable
    task = prepared.task()
    count = _Count(task, result, Copies(hierarchy, keys))
    for step in own_steps(task):
        count.add(step)
    return count.diagnosis()


def check_result(result: HQSResult, prepared: Prepared) -> None:
    """Raise if a result is not of every item of this tree under these settings, as far as it says.

    Raises:
        ParameterError: It is of a sample, of other items, or of other settings.
    """
    check_kind("result", result, HQSResult, "the result of evaluate(X, hierarchy)")
    if result.sample is not None:
        raise ParameterError(f"the result is of a sample, and {_EVERY}; leave it out, or give that of all items")
    if len(result.values) != prepared.hierarchy.n_items:
        raise ParameterError(
            f"the result is of {len(result.values)} items, but the hierarchy has {prepared.hierarchy.n_items}; leave "
            "it out, or give that of this hierarchy"
        )
    for name, given in prepared.settings.record().items():
        value = result.config.get(name, given)
        plain = isinstance(getattr(prepared.settings, name), str | int | float | None)
        if plain and given != value:
            raise ParameterError(
                f"the result was scored with {name}={brief(value)}, but here {name} is {brief(given)}; give the "
                "same settings"
            )


class _Count:
    """Adds up the steps of all items' own paths."""

    def __init__(self, task: Task, result: HQSResult, copies: Copies) -> None:
        tree = task.hierarchy
        self.task, self.tree, self.result, self.copies = task, tree, result, copies
        self.belief = np.ones(tree.n_items)
        self.deepest = np.full(tree.n_items, tree.root)
        self.arriving = np.zeros(tree.n_nodes)
        self.arriving[tree.root] = tree.n_items
        self.choices = np.zeros(tree.n_nodes, dtype=np.int64)
        self.right = np.zeros(tree.n_nodes, dtype=np.int64)
        self.misled = np.zeros(tree.n_nodes)
        self.lost_level = np.full(tree.n_items, -1)
        self.lost_to = np.full(tree.n_items, -1)
        self.wrong_turn = np.zeros(tree.n_items)
        self._pair_rows: list[tuple[Ints, Ints, Floats]] = []
        self._waiting = 0

    def add(self, step: Step) -> None:
        """Count one step."""
        tree, n_nodes = self.tree, self.tree.n_nodes
        eta = step.eta(self.task)
        rival_at = step.rival_at()
        misled = step.misled(rival_at)
        wrong = np.flatnonzero(misled)
        misled[wrong] = ~self.copies.inside(step.items[wrong], step.children[rival_at[wrong]])
        chooses = step.counts > 1
        self.choices += np.bincount(step.nodes[chooses], minlength=n_nodes)
        self.right += np.bincount(step.nodes[chooses & ~misled], minlength=n_nodes)

        taken = self.result.stop_levels[step.items] > step.level
        own_eta = eta[step.own_at]
        here = np.where(taken, self.belief[step.items], 0.0)
        worth = here * (self.result.rewards[step.items] + 1.0)
        before = self.belief[step.items]
        self.misled += np.bincount(step.nodes, weights=worth * _other(eta, step), minlength=n_nodes)
        self.arriving += np.bincount(step.own, weights=here * own_eta, minlength=n_nodes)
        self.belief[step.items] *= own_eta
        self.deepest[step.items] = step.own

        has_rival = np.flatnonzero(chooses & (misled | taken))
        rival_eta = eta[rival_at[has_rival]]
        amounts = np.stack([misled[has_rival], here[has_rival] * rival_eta, worth[has_rival] * rival_eta])
        self._pair_rows.append((step.own[has_rival], step.children[rival_at[has_rival]], amounts))
        self._waiting += len(has_rival)
        if self._waiting > _PAIR_ROWS:
            self._pair_rows = [_summed(self._pair_rows, n_nodes)]
            self._waiting = 0

        first = np.flatnonzero(step.misled(rival_at) & taken & (self.lost_level[step.items] < 0))
        self.lost_level[step.items[first]] = tree.levels[step.nodes[first]]
        self.lost_to[step.items[first]] = step.children[rival_at[first]]
        self.wrong_turn[step.items[first]] = before[first] * eta[rival_at[first]]

    def diagnosis(self) -> Diagnosis:
        """Return the record."""
        tree, result = self.tree, self.result
        perfect = self.task.rewards.reward[self.deepest]
        early = perfect - result.rewards
        left = np.flatnonzero(self.lost_level >= 0)
        ends, end_probabilities = result.stop_nodes.copy(), result.path_probabilities.copy()
        trail = greedy_trail(self.task, left, self.lost_to[left], self.wrong_turn[left])
        ends[left], end_probabilities[left] = trail.ends, trail.end_probabilities
        found = left[self.copies.inside(left, ends[left])]
        self.lost_level[found] = self.lost_to[found] = -1
        self.wrong_turn[found] = 0.0
        child, rival, amounts = _summed(self._pair_rows, tree.n_nodes)
        return Diagnosis(
            hierarchy=tree,
            result=result,
            arriving=self.arriving,
            choices=self.choices,
            right=self.right,
            misled=self.misled,
            stopped=np.bincount(result.stop_nodes, weights=early, minlength=tree.n_nodes).astype(np.float64),
            stops=np.bincount(result.stop_nodes, minlength=tree.n_nodes),
            perfect=perfect,
            ends_at=ends,
            end_probabilities=end_probabilities,
            turn_probabilities=self.wrong_turn,
            lost_level=self.lost_level,
            lost_to=self.lost_to,
            pair_child=child,
            pair_rival=rival,
            pair_items=amounts[0].astype(np.int64),
            pair_searchers=amounts[1],
            pair_cost=amounts[2],
        )


def _other(eta: Floats, step: Step) -> Floats:
    """``1 - eta`` of the right child, as the sum over the others, so that it is exact where eta is near 1."""
    others = eta.copy()
    others[step.own_at] = 0.0
    total: Floats = np.add.reduceat(others, step.firsts)
    return total


def _summed(rows: list[tuple[Ints, Ints, Floats]], n_nodes: int) -> tuple[Ints, Ints, Floats]:
    """Return the pairs of child and rival, each once, with their amounts ``[3, P]`` added up."""
    if not rows:
        none = np.empty(0, dtype=np.int64)
        return none, none, np.empty((3, 0))
    keys = np.concatenate([child * n_nodes + rival for child, rival, _ in rows])
    amounts = np.concatenate([part for *_, part in rows], axis=1)
    pairs, at = np.unique(keys, return_inverse=True)
    sums: Floats = np.stack([np.bincount(at, weights=part, minlength=len(pairs)) for part in amounts])
    return pairs // n_nodes, pairs % n_nodes, sums


# ---- reading a diagnosis


@dataclass(frozen=True)
class NodeReport:
    """How searchers fare at one node.

    Attributes:
        node: The node.
        level: Its level.
        items: How many items are below, all of which should be found through it.
        arrive: The share of their searchers that come here.
        right: The share for which the right child is the most alike, NaN without a choice.
        stop: The share of its items whose search stops here.
        misled_cost: What being misled here takes off the score.
        stopped_cost: What stopping early here takes off the score.
    """

    node: int
    level: int
    items: int
    arrive: float
    right: float
    stop: float
    misled_cost: float
    stopped_cost: float

    @property
    def cost(self) -> float:
        """What the node takes off the score in all."""
        return self.misled_cost + self.stopped_cost


@dataclass(frozen=True)
class LostItem:
    """How the search for one item goes wrong.

    Attributes:
        item: The item.
        value: What its search is worth.
        stops_at: Where the policy stops on the item's own path.
        lost_at: The node where a searcher leaves that path.
        level: Its level.
        lost_to: The wrong child taken.
        ends_at: Where the searcher ends instead.
    """

    item: int
    value: float
    stops_at: int
    lost_at: int
    level: int
    lost_to: int
    ends_at: int


@dataclass(frozen=True)
class Confusion:
    """Two siblings of which one is taken for the other.

    Attributes:
        parent: The node where it happens.
        child: The right child.
        rival: The child taken for it.
        items: How many items of the right child find the rival more alike.
        share: Their share of the right child's items.
        searchers: The expected number of searchers that go wrong so.
        cost: What that takes off the score.
    """

    parent: int
    child: int
    rival: int
    items: int
    share: float
    searchers: float
    cost: float


def require_diagnosis(diagnosis: object, n: object = 0) -> None:
    """Raise unless the value is a `Diagnosis`, as where a result or features stand in its place, and n a number.

    Raises:
        ParameterError: It is something else.
    """
    check_kind("diagnosis", diagnosis, Diagnosis, "the result of diagnose(X, hierarchy)")
    check_integer("n", n)


def node_report(diagnosis: Diagnosis, node: int) -> NodeReport:
    """How searchers fare at one node."""
    tree, n_items = diagnosis.hierarchy, diagnosis.hierarchy.n_items
    size, choices = int(tree.sizes[node]), int(diagnosis.choices[node])
    return NodeReport(
        node=node,
        level=int(tree.levels[node]),
        items=size,
        arrive=float(diagnosis.arriving[node]) / size,
        right=int(diagnosis.right[node]) / choices if choices else float("nan"),
        stop=int(diagnosis.stops[node]) / size,
        misled_cost=float(diagnosis.misled[node]) / n_items,
        stopped_cost=float(diagnosis.stopped[node]) / n_items,
    )


def worst_nodes(diagnosis: Diagnosis, n: int = 10, *, count_stops: bool = False) -> list[NodeReport]:
    """Return the nodes that cost the score most, the worst first; those that cost nothing are left out.

    Args:
        diagnosis: What `diagnose` returned.
        n: How many at most.
        count_stops: Whether what stopping early costs counts too, not only being misled. Where a policy stops is often
            what confusion below made it do.

    Example:
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> [report.node for report in worst_nodes(diagnose(X, tree, delta=0.1), n=1)]
        [8]
    """
    require_diagnosis(diagnosis, n)
    cost = diagnosis.misled + (diagnosis.stopped if count_stops else 0.0)
    order = np.lexsort((diagnosis.hierarchy.levels, -cost))[:n]
    return [node_report(diagnosis, node) for node in order.tolist() if cost[node] > 0]


def lost_items(diagnosis: Diagnosis, n: int = 10) -> list[LostItem]:
    """Return the items that searchers miss, the least valuable search first.

    A searcher who finds an item's equal has found it: duplicates are interchangeable.

    Example:
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> [(lost.item, lost.lost_to, lost.ends_at) for lost in lost_items(diagnose(X, tree, delta=0.1))]
        [(5, 7, 7)]
    """
    require_diagnosis(diagnosis, n)
    tree, result = diagnosis.hierarchy, diagnosis.result
    lost = np.flatnonzero(diagnosis.lost)
    order = lost[np.argsort(result.values[lost], kind="stable")][:n]
    return [
        LostItem(
            item=item,
            value=float(result.values[item]),
            stops_at=int(result.stop_nodes[item]),
            lost_at=int(tree.parent[diagnosis.lost_to[item]]),
            level=int(diagnosis.lost_level[item]),
            lost_to=int(diagnosis.lost_to[item]),
            ends_at=int(diagnosis.ends_at[item]),
        )
        for item in order.tolist()
    ]


def confusions(diagnosis: Diagnosis, n: int = 10) -> list[Confusion]:
    """Return pairs of siblings of which one is taken for the other most, by what it costs and then by the items misled.

    Example:
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> len(confusions(diagnose(X, tree, delta=0.1), n=1))
        1
    """
    require_diagnosis(diagnosis, n)
    tree = diagnosis.hierarchy
    order = np.lexsort((-diagnosis.pair_items, -diagnosis.pair_cost))[:n]
    reports = []
    for at in order.tolist():
        child = int(diagnosis.pair_child[at])
        reports.append(
            Confusion(
                parent=int(tree.parent[child]),
                child=child,
                rival=int(diagnosis.pair_rival[at]),
                items=int(diagnosis.pair_items[at]),
                share=int(diagnosis.pair_items[at]) / int(tree.sizes[child]),
                searchers=float(diagnosis.pair_searchers[at]),
                cost=float(diagnosis.pair_cost[at]) / tree.n_items,
            )
        )
    return reports
