"""Suggested moves of items and clusters: candidates from a diagnosis, verified by scoring the changed tree."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats, Ints, check_integer
from pomdp_hier._engines.on_numpy import Trail, greedy_trail
from pomdp_hier._text import brief
from pomdp_hier.analysis.diagnosis import ALL_ITEMS, Diagnosis, check_result, require_diagnosis
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, Run, opened
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score

_MAJORITY = 0.5
_AGREED = 0.8
_SIMILAR = 3
_REFUSED = dict.fromkeys(ALL_ITEMS, "a move changes few items, which a sample may miss. Leave it out.") | {
    "checkpoint": "a checkpoint is of one tree, and each move makes another. Leave it out."
}


@dataclass(frozen=True)
class Move:
    """A move of an item or a cluster to another parent.

    Attributes:
        node: The node to move: an item (below N) or a cluster.
        source: Its parent.
        target: The internal node to move it to.
        n_items: The number of items that move.
        predicted: The predicted gain: searchers who now reach the target find the node there, and nothing else changes.
        gain: The gain of the score of the changed tree; NaN without verification.
        names: The names of the node, its parent and the target.
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
    """Return moves that raise the score, the best first.

    A lost item is a candidate for the leaf cluster where its searcher ends. A cluster with a majority of items lost
    above it is a candidate for the node that their searchers enter. Another is the deepest node that 80 % of them pass.
    With q the probability of arrival, the value there would be ``q (r + 1) - 1``; the predicted gain is the mean
    increase over the items. The best candidates are applied one at a time and scored, so that the gain includes the
    effect on all other items. Moves without a gain, and moves inside a node that a better one moves, are left out.

    Args:
        X: The features.
        diagnosis: The diagnosis of the features.
        limit: The largest number of moves.
        candidates: The number of candidates to score.
        verify: Whether to score candidates; otherwise gains are NaN and the order is by prediction.
        **settings: The settings of the diagnosis, as for `evaluate`.

    Raises:
        ParameterError: A setting is invalid, or differs from that of the diagnosis.

    Example:
        >>> from pomdp_hier.analysis.diagnosis import diagnose
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is in the wrong cluster
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


def candidate_moves(prepared: Prepared, diagnosis: Diagnosis, clusters: int) -> list[Move]:
    """Return candidate moves by decreasing predicted gain."""
    lost = np.flatnonzero(diagnosis.lost)
    if not len(lost):
        return []
    task = prepared.under(policy="descend").task()
    trail = greedy_trail(task, lost, diagnosis.wrong_child[lost], diagnosis.turn_probabilities[lost])
    value = task.rewards.reward + 1.0
    alone = _item_moves(diagnosis, lost, trail, value)
    together = _cluster_moves(diagnosis, lost, trail, value, limit=clusters)
    return sorted((*alone, *together), key=lambda move: -move.predicted)


def apply_moves(hierarchy: Hierarchy, moves: Iterable[tuple[int, int] | Move]) -> Hierarchy:
    """Return the hierarchy after moving items or clusters to other internal nodes, in the order given.

    Empty clusters are removed, and later nodes are then renumbered. Nodes keep their labels; in a tree without labels,
    the old numbers become the labels if nodes are renumbered.

    Args:
        hierarchy: The tree.
        moves: Pairs of a node and its new parent, in the node numbers of this tree; or moves from `suggest_moves`.

    Raises:
        ParameterError: A node is the root or is moved twice, or a target is an item or below the moved node.

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
            raise ParameterError(f"moves: got {brief(move)}; expected pairs of a node and its new parent.") from error
        changes = draft.moved(node, target)
        if node in moved:
            raise ParameterError(f"moves: got two moves of node {node}; expected one per node.")
        moved.add(node)
        draft.apply(changes)
    return draft.tree()


def _item_moves(diagnosis: Diagnosis, lost: Ints, trail: Trail, value: Floats) -> list[Move]:
    """Return the moves of lost items to the leaf cluster where their searcher ends, the best prediction first."""
    tree, values = diagnosis.hierarchy, diagnosis.result.values[lost]
    target = np.where(trail.ends < tree.n_items, tree.parent[trail.ends], trail.ends)
    would = diagnosis.end_probabilities[lost] * value[diagnosis.ends_at[lost]] - 1.0
    predicted = (would - values) * diagnosis.node_weights[lost] / tree.n_items
    order = np.argsort(-predicted, kind="stable")
    order = order[(predicted[order] > 0) & (target[order] != tree.parent[lost[order]])]
    return [
        Move(int(lost[at]), int(tree.parent[lost[at]]), int(target[at]), 1, float(predicted[at]), float("nan"))
        for at in order.tolist()
    ]


def _cluster_moves(diagnosis: Diagnosis, lost: Ints, trail: Trail, value: Floats, limit: int) -> list[Move]:
    """Return the moves of clusters, a majority of whose items are lost above them, to where their searchers go."""
    tree = diagnosis.hierarchy
    counts = _lost_above(diagnosis, lost)
    wanted = (counts > _MAJORITY * tree.sizes) & (tree.sizes > 1) & (tree.parent >= 0)
    nodes = np.flatnonzero(wanted)
    if not len(nodes):
        return []
    counted = np.zeros(tree.n_items, dtype=bool)
    counted[lost] = True
    weights = diagnosis.node_weights[: tree.n_items]
    regret = item_sums(tree, np.where(counted, -diagnosis.result.values * weights, 0.0), nodes)
    nodes = nodes[np.argsort(-regret, kind="stable")][:limit]
    # The wrong child itself is the first target; the trail continues from there.
    rows = np.concatenate((np.arange(len(lost)), trail.rows))
    where = np.concatenate((diagnosis.wrong_child[lost], trail.nodes))
    probability = np.concatenate((diagnosis.turn_probabilities[lost], trail.probabilities))
    order = np.argsort(tree.starts[lost[rows]], kind="stable")
    rows, where, probability = rows[order], where[order], probability[order]
    place = tree.starts[lost[rows]]
    moves: dict[tuple[int, int], Move] = {}
    for node in nodes.tolist():
        low, high = np.searchsorted(place, (tree.starts[node], tree.starts[node] + tree.sizes[node]))
        here = low + np.flatnonzero(diagnosis.left_path_level[lost[rows[low:high]]] < tree.levels[node])
        for target in _targets(tree, node, where[here], int(counts[node])):
            passing = here[where[here] == target]
            gained = probability[passing] * value[node] - 1.0 - diagnosis.result.values[lost[rows[passing]]]
            parent = int(tree.parent[target]) if tree.is_leaf[target] or target < tree.n_items else target
            predicted = float((gained * weights[lost[rows[passing]]]).sum()) / tree.n_items
            if parent != tree.parent[node] and predicted > 0:
                move = Move(node, int(tree.parent[node]), parent, int(tree.sizes[node]), predicted, float("nan"))
                moves.setdefault((node, parent), move)
    return list(moves.values())


def _lost_above(diagnosis: Diagnosis, lost: Ints) -> Ints:
    """Return the number of items per node that are lost at an ancestor of the node ``[n_nodes]``."""
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
    """Yield the most frequent wrong child, and the deepest node that most of the searchers pass."""
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
    """Return the best predicted moves, but few of nested clusters and few of items with one source and target."""
    chosen: list[Move] = []
    for move in moves:
        if len(chosen) == candidates:
            break
        similar = [
            _nested(tree, move.node, other.node)
            or (move.n_items, move.source, move.target) == (1, other.source, other.target)
            for other in chosen
        ]
        if sum(similar) < _SIMILAR:
            chosen.append(move)
    return chosen


def _nested(tree: Hierarchy, one: int, other: int) -> bool:
    """Return whether one of two nodes contains the other."""
    first, second = int(tree.starts[one]), int(tree.starts[other])
    return first < second + int(tree.sizes[other]) and second < first + int(tree.sizes[one])


def _verified(prepared: Prepared, run: Run, diagnosis: Diagnosis, moves: list[Move]) -> list[Move]:
    """Return the moves with a gain, the best first; of nested moves only the best."""
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
