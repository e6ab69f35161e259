"""Diagnostics against walks down each path in plain Python; duplicates, invariances, and faults planted on purpose."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier._engines.task import LookAhead
from pomdp_hier.analysis import check_structure, diagnose, suggest_moves
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.score import evaluate
from tests import scorer_oracle as oracle
from tests.planted import clean_case, misplaced, swapped

TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)

POLICIES = st.sampled_from(["one-step", "optimal", "descend", "search-root", "hindsight", LookAhead(2)])


@st.composite
def cases(draw):
    tree = draw(oracle.trees())
    X = draw(oracle.features(tree.n_items))
    options = {
        "delta": draw(st.sampled_from([0.1, 0.5])),
        "nu": draw(st.sampled_from([1.0, 1.3])),
        "policy": (policy := draw(POLICIES)),
        "tie": draw(st.sampled_from(["descend", "search"])) if isinstance(policy, str) else "descend",
        "enter_own_singleton": draw(st.booleans()),
        "engine": "numpy",
    }
    return tree, X, options


def plain(tree, X, options, result):
    """Every figure that is a sum over the steps of all own paths, by loops."""
    walker = oracle.Oracle(
        tree,
        oracle.cosine(X),
        delta=options["delta"],
        nu=options["nu"],
        enter_own_singleton=options["enter_own_singleton"],
    )
    arriving, misled = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    choices, right = np.zeros(tree.n_nodes, dtype=int), np.zeros(tree.n_nodes, dtype=int)
    perfect = np.zeros(tree.n_items)
    for x in range(tree.n_items):
        node, level, b = tree.root, 0, 1.0
        arriving[node] += 1
        worth = result.rewards[x] + 1
        while walker.legal(x, node):
            children = tree.children(node).tolist()
            own = next(c for c in children if x in tree.items(c))
            eta = dict(zip(children, map(float, walker.eta(x, node, level)), strict=True))
            sims = {c: walker.sim(x, tree.items(c).tolist()) for c in children}
            if len(children) > 1:
                choices[node] += 1
                best = max(children, key=lambda c: (c != own) * sims[c] - (c == own) * 9)
                copies = any((X[y] == X[x]).all() for y in tree.items(best).tolist())
                right[node] += sims[own] >= sims[best] - 1e-12 or copies
            if level < result.stop_levels[x]:
                misled[node] += worth * b * sum(p for c, p in eta.items() if c != own)
                arriving[own] += b * eta[own]
            b *= eta[own]
            node, level = own, level + 1
        perfect[x] = walker.reward(int(tree.sizes[node]), tree.n_items)
    return arriving, misled, choices, right, perfect


@given(cases())
@pytest.mark.slow
def test_every_sum_by_loops(case):
    tree, X, options = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = evaluate(X, tree, **options)
        for table in (X, sp.csr_matrix(X)):
            found = diagnose(table, tree, result, **options)
            arriving, misled, choices, right, perfect = plain(tree, X, options, result)
            np.testing.assert_allclose(found.expected_arrivals, arriving, atol=1e-12)
            np.testing.assert_allclose(found.wrong_branch_loss, misled, atol=1e-12)
            np.testing.assert_array_equal(found.n_choices, choices)
            np.testing.assert_allclose(found.leaf_rewards, perfect, atol=1e-12)
            lost = found.wrong_branch_loss.sum() + found.early_stop_loss.sum()
            assert lost == pytest.approx((perfect - result.values).sum(), abs=1e-10)
            assert found.n_stops.sum() == tree.n_items
            assert found.pair_cost.sum() <= misled.sum() + 1e-12
            if np.ptp(X) > 0 and len(np.unique(X, axis=0)) == tree.n_items:
                np.testing.assert_array_equal(found.n_correct, right)


@given(cases(), st.integers(0, 99))
@pytest.mark.slow
def test_who_is_lost_by_a_walk_along_the_best_child(case, seed):
    tree, _, options = case
    X = np.random.default_rng(seed).normal(size=(tree.n_items, 3))  # no two children equally alike
    depth = {"one-step": 1, "optimal": None}.get(options["policy"], 1)
    tie = options["tie"]
    if isinstance(options["policy"], LookAhead):
        depth, tie = 2, options["policy"].tie
    result = evaluate(X, tree, **options)
    found = diagnose(X, tree, result, duplicates=range(tree.n_items), **options)
    walker = oracle.Oracle(
        tree,
        oracle.cosine(X),
        **{k: options[k] for k in ("delta", "nu", "enter_own_singleton")},
        tie=tie,
        depth=depth,
    )
    for x in range(tree.n_items):
        path = tree.path(x).tolist()[: result.stop_levels[x] + 1]
        node, lost = tree.root, -1
        while True:
            if lost < 0 and node == path[-1]:
                break
            if lost >= 0 and not goes_on(walker, options, x, node):
                break
            children = tree.children(node).tolist()
            sims = [walker.sim(x, tree.items(c).tolist()) for c in children]
            if len(sims) > 1 and np.diff(np.sort(sims))[-1] < 1e-9:
                return
            best = children[int(np.argmax(sims))]
            if lost < 0 and best not in path:
                lost = int(tree.levels[node])
            node = best
        assert found.ends_at[x] == node
        assert found.left_path_level[x] == (-1 if x in tree.items(node) else lost)
        if lost >= 0:
            assert tree.levels[found.wrong_child[x]] == lost + 1


def goes_on(walker, options, x, node):
    tree = walker.tree
    if not len(tree.children(node)) or options["policy"] == "search-root":
        return False
    if options["policy"] == "descend":
        return True
    margin = walker.descend(x, 1, node, int(tree.levels[node]), walker.depth) - walker.search(1, node)
    return margin > 0 or (margin == 0 and walker.tie == "descend")


def test_ending_at_a_duplicate_is_not_being_lost():
    X = np.array([[1.0, 0, 0], [0.0, 1, 0.1], [1.0, 0, 0], [1.0, 0.1, 0], [0, 0.1, 1], [0, 0, 1.0]])
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7, 8]], 6)
    for table in (X, sp.csr_matrix(X)):
        found = diagnose(table, tree, delta=0.05)
        assert found.ends_at[0] == 7  # where its equal is
        assert not found.lost[0]
        assert found.first_branch_accuracy == 5 / 6
        apart = diagnose(table, tree, delta=0.05, duplicates="abcdef")
        assert apart.lost[0]
        assert apart.first_branch_accuracy == 4 / 6
    with pytest.raises(ParameterError, match="duplicates: got 2 keys; expected 6"):
        diagnose(X, tree, duplicates="ab")


def test_equal_rows_of_a_precomputed_matrix_are_no_duplicates():
    tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)
    X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.0, 1.0], [0.0, 1.0]])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert not diagnose(X, tree, delta=0.1).lost_items()
    (lost,) = diagnose(unit @ unit.T, tree, delta=0.1, similarity="precomputed").lost_items()
    assert lost.item == 5


@given(cases(), st.randoms(use_true_random=False))
def test_item_order_and_labels_change_nothing(case, random):
    tree, X, options = case
    order = list(range(tree.n_items))
    random.shuffle(order)
    perm = np.array(order)
    moved = tree.permuted(perm)
    Y = np.empty_like(X)
    Y[perm] = X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        one = diagnose(X, tree, delta=options["delta"], policy="descend")
        other = diagnose(Y, moved, delta=options["delta"], policy="descend")
    inner = slice(tree.n_items, None)
    np.testing.assert_allclose(one.wrong_branch_loss[inner], other.wrong_branch_loss[inner], atol=1e-10)
    np.testing.assert_allclose(one.expected_arrivals[inner], other.expected_arrivals[inner], atol=1e-10)
    np.testing.assert_allclose(one.result.values, other.result.values[perm], atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
def test_two_swapped_subtrees_are_named_first(sparse):
    X, tree = clean_case()
    X = sp.csr_matrix(X) if sparse else X
    assert not diagnose(X, tree, delta=0.02).lost.any()
    broken, (one, other), parent = swapped(tree)
    found = diagnose(X, broken, delta=0.02)
    assert found.worst_nodes()[0].node == parent
    first, second = found.confusions(2)
    assert {first.child, second.child} == {broken.parent[one], broken.parent[other]}
    assert (first.child, first.rival) == (second.rival, second.child)
    assert set(np.flatnonzero(found.lost)) == set(broken.items(one)) | set(broken.items(other))


def test_one_misplaced_item_is_named_first():
    X, tree = clean_case()
    for item, target in [(0, -1), (17, 5), (40, 1)]:
        broken, cluster = misplaced(tree, item, target)
        first, *others = diagnose(X, broken, delta=0.05).lost_items()
        assert first.item == item
        assert not others
        assert first.ends_at in broken.path(int(next(i for i in tree.items(tree.parent[item]) if i != item)))
        assert first.ends_at != cluster


def test_a_result_of_other_items_and_no_choice_at_all():
    X, tree = clean_case()
    small = Hierarchy.from_children([[0, 1]], 2)
    with pytest.raises(ParameterError, match="result: got 2 items"):
        diagnose(X, tree, evaluate(np.eye(2), small))
    with pytest.raises(ParameterError, match=r"delta: got 0\.01; expected 0\.2"):
        diagnose(X, tree, evaluate(X, tree, delta=0.2))
    flat = diagnose(np.eye(2), small)
    assert np.isnan(flat.first_branch_accuracy)
    assert flat.worst_nodes() == flat.lost_items() == flat.confusions() == []
    single = diagnose([[1.0, 2.0]], Hierarchy.from_children([], 1))
    assert single.leaf_rewards.tolist() == single.result.values.tolist()


@pytest.mark.parametrize("read", [suggest_moves, lambda X, result: check_structure(TREE, result)])
def test_a_result_in_the_place_of_a_diagnosis_is_rejected(read):
    X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    with pytest.raises(ParameterError, match=r"got a HQSResult.*diagnose\(X, hierarchy\)"):
        read(X, evaluate(X, TREE))


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_what_nodes_cost_is_what_the_score_lacks(delta):
    X, tree = clean_case()
    broken, _ = misplaced(tree, 0, -1)
    found = diagnose(X, broken, delta=delta)
    reports = found.worst_nodes(broken.n_nodes, count_stops=True)
    assert found.leaf_rewards.mean() - found.result.score == pytest.approx(sum(report.cost for report in reports))
    assert sum(report.stop_rate * report.n_items for report in reports) <= broken.n_items
    assert (found.wrong_child[~found.lost] == -1).all()
    assert (found.left_path_level[~found.lost] == -1).all()
