"""What to move where in a hierarchy: candidates from where searchers go, each checked by scoring the changed tree."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer
from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._engines.on_numpy import Trail, greedy_trail
from pomdp_hier._text import brief
from pomdp_hier.analysis.diagnosis import ALL_ITEMS, Diagnosis, check_result, require_diagnosis
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, opened
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.hqs.settings import Run

_MAJORITY = 0.5
_AGREED = 0.8
_ALIKE = 3
_REFUSED = dict.fromkeys(ALL_ITEMS, "a move changes few items, which a sample may miss; leave it out") | {
    "checkpoint": "a checkpoint is of one tree, and every move makes another; leave it out"
}


@dataclass(frozen=True)
class Move:
    """An item or a cluster that may better hang elsewhere.

    Attributes:
        node: What to move: an item (below N) or a cluster.
        source: Its parent now.
        target: The inner node to hang it under.
        n_items: The number of items that move.
        predicted: What the score would gain if the searchers that now come to the target found it there, and nothing
            else changed.
        gain: What the score of the changed tree gains, NaN if that was not checked.
        names: What the node, its parent now and the target are called.
    """

    node: int
    source: int
    target: int
    n_items: int
    predicted: float
    gain: float
    names: tuple[str, str, str] = ("", "", "")

    def __str__(self) -> str:
        node, source, target = self.names
        return f"{node} from {source} to {target}"


def suggest_moves(
    X: Any,
    diagnosis: Diagnosis,
    *,
    limit: int = 5,
    candidates: int = 12,
    verify: bool = True,
    **settings: Any,
) -> list[Move]:
    """Return moves that raise the score, the best first: where to hang what searchers look for elsewhere.

    A lost item is a candidate for the leaf cluster to which its searcher would go; a cluster most of whose items are
    lost above it is one for the node where their searchers turn to, and for the deepest one that 80 % of them still
    pass. With q the probability of coming there, a searcher would get ``q (r + 1) - 1`` there: the predicted gain is
    the mean rise over the items. The best candidates are applied to the tree one at a time and scored, so that the gain
    counts what it does to all other items. Moves that gain nothing are left out, and so is a move within what a better
    one moves already.

    Args:
        X: The features.
        diagnosis: What `diagnose` returned for them.
        limit: The largest number of moves.
        candidates: How many of them to check; each costs one scoring.
        verify: Whether to check them at all; if not, the gains are NaN and the order is by prediction.
        **settings: As for `evaluate`, those of the diagnosis.

    Raises:
        ParameterError: For settings that cannot be.

    Example:
        >>> from pomdp_hier.analysis.diagnosis import diagnose
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> best = suggest_moves(X, diagnose(X, tree, delta=0.1), delta=0.1)[0]
        >>> best.node, best.source, best.target, round(best.gain, 2)
        (5, 6, 7, 0.22)
    """
    require_diagnosis(diagnosis)
    check_integer("limit", limit)
    check_integer("candidates", candidates)
    tree = diagnosis.hierarchy
    prepared, run, _ = opened(X, tree, settings, _REFUSED, warn=False)
    check_result(diagnosis.result, prepared)
    moves = candidate_moves(prepared, diagnosis, 4 * candidates + limit)
    if verify:
        moves = _verified(prepared, run, diagnosis, _chosen(tree, moves, candidates))
    called = NodeNames(tree, in_words=True)
    return [
        replace(move, names=(called[move.node], called[move.source], called[move.target])) for move in moves[:limit]
    ]


def candidate_moves(prepared: Prepared, diagnosis: Diagnosis, clusters: int, voters: Bools | None = None) -> list[Move]:
    """Return moves by what they would gain if nothing else changed, the best prediction first.

    Args:
        prepared: Features, tree and settings.
        diagnosis: What `diagnose` returned for them.
        clusters: How many clusters to look at at most, the worst first.
        voters: Which items count ``[N]``; all by default.
    """
    lost = np.flatnonzero(diagnosis.lost if voters is None else diagnosis.lost & voters)
    if not len(lost):
        return []
    task = prepared.under(policy="descend").task()
    trail = greedy_trail(task, lost, diagnosis.wrong_child[lost], diagnosis.turn_probabilities[lost])
    worth = task.rewards.reward + 1.0
    alone = _item_moves(diagnosis, lost, trail, worth)
    together = _cluster_moves(diagnosis, lost, trail, worth, limit=clusters)
    return sorted((*alone, *together), key=lambda move: -move.predicted)


def apply_moves(hierarchy: Hierarchy, moves: Iterable[tuple[int, int] | Move]) -> Hierarchy:
    """Return the hierarchy with items or clusters hung under other inner nodes, one move after the other.

    A cluster that is left without items is dropped, and later nodes are then renumbered. Nodes keep their labels; where
    the tree has none and nodes are renumbered, the changed tree's labels are the old numbers.

    Args:
        hierarchy: The tree.
        moves: What to move and the inner node to hang it under, by the numbers of this tree; or what `suggest_moves`
            returned for it.

    Raises:
        ParameterError: If a node is the root or moved twice, or a target is an item or lies in what is to be moved.

    Example:
        >>> tree = Hierarchy.from_children([[0], [1, 2], [3, 4], [5, 6, 7]], 5)
        >>> changed = apply_moves(tree, [(0, 6), (4, 6)])
        >>> changed.to_children(), changed.labels[5:]
        ([[0, 1, 2, 4], [3], [5, 6]], (6, 7, 8))
    """
    require_hierarchy(hierarchy)
    draft, moved = Draft(hierarchy), set[int]()
    for move in moves:
        try:
            node, target = (move.node, move.target) if isinstance(move, Move) else move
        except (TypeError, ValueError) as error:
            raise ParameterError(f"a move is {brief(move)}; give a node and the inner node to hang it under") from error
        changes = draft.moved(node, target)
        if node in moved:
            raise ParameterError(f"node {node} is moved twice; give one move a node")
        moved.add(node)
        draft.apply(changes)
    return draft.tree()


def _item_moves(diagnosis: Diagnosis, lost: Ints, trail: Trail, worth: Floats) -> list[Move]:
    """Each lost item to the leaf cluster that its searcher would come to, the best prediction first."""
    tree, values = diagnosis.hierarchy, diagnosis.result.values[lost]
    target = np.where(trail.ends < tree.n_items, tree.parent[trail.ends], trail.ends)
    would = diagnosis.end_probabilities[lost] * worth[diagnosis.ends_at[lost]] - 1.0
    predicted = (would - values) / tree.n_items
    order = np.argsort(-predicted, kind="stable")
    order = order[(predicted[order] > 0) & (target[order] != tree.parent[lost[order]])]
    return [
        Move(int(lost[at]), int(tree.parent[lost[at]]), int(target[at]), 1, float(predicted[at]), float("nan"))
        for at in order.tolist()
    ]


def _cluster_moves(diagnosis: Diagnosis, lost: Ints, trail: Trail, worth: Floats, limit: int) -> list[Move]:
    """Clusters most of whose items are lost above them, to where these items' searchers go."""
    tree = diagnosis.hierarchy
    counts = _lost_above(diagnosis, lost)
    wanted = (counts > _MAJORITY * tree.sizes) & (tree.sizes > 1) & (tree.parent >= 0)
    nodes = np.flatnonzero(wanted)
    if not len(nodes):
        return []
    counted = np.zeros(tree.n_items, dtype=bool)
    counted[lost] = True
    regret = item_sums(tree, np.where(counted, -diagnosis.result.values, 0.0), nodes)
    nodes = nodes[np.argsort(-regret, kind="stable")][:limit]
    # The wrong turn itself is the first place to hang it; the trail goes on from there.
    rows = np.concatenate((np.arange(len(lost)), trail.rows))
    where = np.concatenate((diagnosis.wrong_child[lost], trail.nodes))
    chance = np.concatenate((diagnosis.turn_probabilities[lost], trail.probabilities))
    order = np.argsort(tree.starts[lost[rows]], kind="stable")
    rows, where, chance = rows[order], where[order], chance[order]
    place = tree.starts[lost[rows]]
    moves: dict[tuple[int, int], Move] = {}
    for node in nodes.tolist():
        low, high = np.searchsorted(place, (tree.starts[node], tree.starts[node] + tree.sizes[node]))
        here = low + np.flatnonzero(diagnosis.left_path_level[lost[rows[low:high]]] < tree.levels[node])
        for target in _targets(tree, node, where[here], int(counts[node])):
            passing = here[where[here] == target]
            gained = chance[passing] * worth[node] - 1.0 - diagnosis.result.values[lost[rows[passing]]]
            hang = int(tree.parent[target]) if tree.is_leaf[target] or target < tree.n_items else target
            predicted = float(gained.sum()) / tree.n_items
            if hang != tree.parent[node] and predicted > 0:
                move = Move(node, int(tree.parent[node]), hang, int(tree.sizes[node]), predicted, float("nan"))
                moves.setdefault((node, hang), move)
    return list(moves.values())


def _lost_above(diagnosis: Diagnosis, lost: Ints) -> Ints:
    """For each node, how many of its items are lost above it ``[n_nodes]``: at an ancestor of its own."""
    tree = diagnosis.hierarchy
    counts = np.zeros(tree.n_nodes, dtype=np.int64)
    node, items = lost.copy(), lost
    while len(items):
        counts += np.bincount(node, minlength=tree.n_nodes)
        node = tree.parent[node]
        above = tree.levels[node] > diagnosis.left_path_level[items]
        node, items = node[above], items[above]
    return counts


def _targets(tree: Hierarchy, node: int, where: Ints, n_lost: int) -> Iterator[int]:
    """Yield the commonest wrong turn, and the deepest node that most of the searchers pass."""
    nodes, counts = np.unique(where, return_counts=True)
    outside = (tree.starts[nodes] < tree.starts[node]) | (tree.starts[nodes] >= tree.starts[node] + tree.sizes[node])
    nodes, counts = nodes[outside], counts[outside]
    if not len(nodes):
        return
    shallow = int(nodes[np.lexsort((tree.levels[nodes], -counts))[0]])
    yield shallow
    agreed = nodes[counts >= _AGREED * n_lost]
    if len(agreed):
        deepest = int(agreed[np.argmax(tree.levels[agreed])])
        if deepest != shallow:
            yield deepest


def _chosen(tree: Hierarchy, moves: list[Move], candidates: int) -> list[Move]:
    """Return the most promising moves, but few of clusters that lie in each other and of items that go the same way."""
    chosen: list[Move] = []
    for move in moves:
        if len(chosen) == candidates:
            break
        alike = [
            _nested(tree, move.node, other.node)
            or (move.n_items, move.source, move.target) == (1, other.source, other.target)
            for other in chosen
        ]
        if sum(alike) < _ALIKE:
            chosen.append(move)
    return chosen


def _nested(tree: Hierarchy, one: int, other: int) -> bool:
    """Whether one of two nodes holds the other."""
    first, second = int(tree.starts[one]), int(tree.starts[other])
    return first < second + int(tree.sizes[other]) and second < first + int(tree.sizes[one])


def _verified(prepared: Prepared, run: Run, diagnosis: Diagnosis, moves: list[Move]) -> list[Move]:
    """Return the moves that gain, with their gains, the best first; of those that lie in each other the best alone."""
    tree = diagnosis.hierarchy
    checked = []
    for move in moves:
        changed = score(prepared.on(apply_moves(tree, [move])), run, Sampling())
        checked.append(replace(move, gain=changed.score - diagnosis.result.score))
    best: list[Move] = []
    for move in sorted(checked, key=lambda move: -move.gain):
        if move.gain > 0 and not any(_nested(tree, move.node, other.node) for other in best):
            best.append(move)
    return best
