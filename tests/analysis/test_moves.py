"""Suggested moves: planted faults are undone, gains are what scoring says, and predictions are what they claim."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.analysis.moves import apply_moves, suggest_moves
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.score import hqs_score
from tests import scorer_oracle as oracle
from tests.planted import clean_case, misplaced, swapped

DELTA = {"delta": 0.02}


def test_swapped_subtrees_are_moved_back():
    X, tree = clean_case()
    broken, (one, other), _ = swapped(tree)
    first, second = suggest_moves(X, diagnose(X, broken, **DELTA), **DELTA)[:2]
    assert {first.node, second.node} == {one, other}
    assert (first.source, first.target) == (second.target, second.source)
    mended = apply_moves(broken, [first, second])
    assert mended == tree
    assert first.predicted == pytest.approx(first.gain, rel=0.2)


def test_a_misplaced_item_is_moved_back():
    X, tree = clean_case()
    for item, target in [(0, -1), (17, 5), (40, 1)]:
        broken, cluster = misplaced(tree, item, target)
        best = suggest_moves(X, diagnose(X, broken, **DELTA), **DELTA)[0]
        assert (best.node, best.source, best.n_items) == (item, cluster, 1)
        assert apply_moves(broken, [(best.node, best.target)]) == tree
        assert best.gain == pytest.approx(hqs_score(X, tree, **DELTA) - hqs_score(X, broken, **DELTA))


def test_nothing_to_move_in_a_clean_tree():
    X, tree = clean_case()
    assert suggest_moves(X, diagnose(X, tree, **DELTA), **DELTA) == []


@given(oracle.trees(), st.integers(0, 99), st.sampled_from(["one-step", "descend"]))
@pytest.mark.slow
def test_gains_are_those_of_the_changed_tree(tree, seed, policy):
    X = np.random.default_rng(seed).normal(size=(tree.n_items, 3))
    options = {"delta": 0.2, "policy": policy, "engine": "numpy"}
    found = diagnose(X, tree, **options)
    moves = suggest_moves(X, found, candidates=6, **options)
    assert all(move.gain > 0 for move in moves)
    assert [move.gain for move in moves] == sorted((move.gain for move in moves), reverse=True)
    held = np.concatenate([tree.items(move.node) for move in moves]) if moves else []
    assert len(set(map(int, held))) == len(held)  # no move lies in another
    for move in moves:
        changed = apply_moves(tree, [(move.node, move.target)])
        assert hqs_score(X, changed, **options) == pytest.approx(found.result.score + move.gain, abs=1e-12)
        assert (move.source, move.n_items) == (tree.parent[move.node], tree.sizes[move.node])
    guesses = suggest_moves(X, found, limit=100, candidates=0, verify=False, **options)
    for move in guesses:
        assert np.isnan(move.gain)
        assert move.predicted > 0
        assert move.target != move.source == tree.parent[move.node]
        if move.node < tree.n_items:
            value = found.end_probabilities[move.node]
            node = found.ends_at[move.node]
            worth = value * (oracle.paper_reward(int(tree.sizes[node]), tree.n_items) + 1) - 1
            assert move.predicted == pytest.approx((worth - found.result.values[move.node]) / tree.n_items)


def test_moves_keep_labels_and_drop_what_they_empty():
    tree = Hierarchy.from_children([[0], [1, 2], [3, 4]], 3, labels=["a", "b", "c", "left", "right", "top"])
    moved = apply_moves(tree, [(0, 4)])
    assert moved.labels == ("a", "b", "c", "right", "top")
    assert moved.to_children() == [[0, 1, 2], [3]]


@pytest.mark.parametrize(
    ("node", "target", "text"),
    [(6, 5, "root"), (9, 5, "root"), (4, 0, "expected an internal node"), (4, 4, "inside node")],
)
def test_moves_that_cannot_be(node, target, text):
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    with pytest.raises(ParameterError, match=text):
        apply_moves(tree, [(node, target)])
    with pytest.raises(ParameterError, match="candidates"):
        suggest_moves(np.eye(4), diagnose(np.eye(4), tree), candidates=-1)


def test_a_node_cannot_hang_below_itself():
    tree = Hierarchy.from_children([[0, 1], [4, 2], [5, 3]], 4)
    with pytest.raises(ParameterError, match="inside node 5"):
        apply_moves(tree, [(5, 4)])
    assert apply_moves(tree, [(4, 6)]) == Hierarchy.from_children([[0, 1], [2], [4, 5, 3]], 4)


def test_a_tree_in_the_place_of_a_diagnosis_is_refused_with_a_remedy():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    with pytest.raises(ParameterError, match=r"got a Hierarchy"):
        suggest_moves(np.eye(4), tree)


def edges():
    below = {7: [8, 9, 10, 11], 8: [0], 9: [1, 2], 10: [3, 4], 11: [5, 6]}
    return Hierarchy.from_edges([(node, child) for node, children in below.items() for child in children], 7)


def test_a_list_of_moves_goes_by_the_numbers_of_the_tree_that_is_given():
    both = apply_moves(edges(), [(0, 9), (6, 10)])  # 8 is left empty, so that 9 and 10 move up
    named = {both.labels[node]: sorted(both.items(node).tolist()) for node in range(both.n_items, both.n_nodes)}
    assert named == {7: list(range(7)), 9: [0, 1, 2], 10: [3, 4, 6], 11: [5]}
    assert both.node(10) == 9
    again = apply_moves(both, [(both.node(6), both.node(9))])
    assert sorted(again.items(again.node(9)).tolist()) == [0, 1, 2, 6]


def test_a_place_that_one_move_empties_may_be_filled_by_the_next():
    tree = apply_moves(edges(), [(0, 9), (1, 8)])
    assert [sorted(tree.items(node).tolist()) for node in (8, 9)] == [[1], [0, 2]]
    swap = apply_moves(edges(), [(9, 10), (3, 9)])
    assert sorted(swap.items(10).tolist()) == [1, 2, 3, 4]


def test_suggested_moves_can_be_applied_together_and_know_names():
    X, tree = clean_case()
    broken = swapped(tree)[0]
    moves = suggest_moves(X, diagnose(X, broken, **DELTA), **DELTA)[:2]
    assert apply_moves(broken, moves) == tree
    assert str(moves[0]) == f"node {moves[0].node} from node {moves[0].source} to node {moves[0].target}"
    named = Hierarchy(
        broken.parent, broken.n_items, labels=[f"item {k}" for k in range(45)] + [f"group {k}" for k in range(13)]
    )
    first = suggest_moves(X, diagnose(X, named, **DELTA), **DELTA)[0]
    assert first.names == tuple(f"group {node - 45}" for node in (first.node, first.source, first.target))


@pytest.mark.parametrize(
    ("moves", "text"),
    [
        ([(0, 9), (0, 10)], "moves: got two moves of node 0"),
        ([(9, 10), (10, 9)], "inside node 10"),
        ([(0, "left")], r"target: got 'left'"),
        ([(0, 9.0)], "target: got 9.0"),
        ([(True, 9)], "node: got True"),
        ([(0, None)], "target: got None"),
        ([0], "moves: got 0"),
        ([(0, 9, 1)], r"moves: got \(0, 9, 1\)"),
    ],
)
def test_lists_of_moves_that_cannot_be(moves, text):
    with pytest.raises(ParameterError, match=text):
        apply_moves(edges(), moves)
