"""Regrouping: planted sections come back, headings stay whole, bounds hold, and gains are those of held-out items."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage

from pomdp_hier import Hierarchy, expected_search_length
from pomdp_hier.errors import DataWarning, HierarchyError, ParameterError
from pomdp_hier.hqs.inputs import Run, Settings, prepare
from pomdp_hier.improvement import regroup
from pomdp_hier.improvement.choice import part_of
from pomdp_hier.improvement.groupings import (
    Place,
    Plan,
    _groups_of,
    _nearest,
    _without_small,
    given_plan,
    moved_by_score,
    one_level,
    place_of,
    refined,
    remade,
    two_levels,
    vectors_of,
)
from pomdp_hier.improvement.held_out import fold_of
from pomdp_hier.improvement.node_views import Objective
from pomdp_hier.improvement.regroup import Judge
from pomdp_hier.report.regroup_page import write_regrouping

SECTIONS, HEADINGS, ITEMS = 4, 5, 6


def catalogue(rng, mixed, noise=0.3):
    """Items of headings in sections; mixed headings are in a random section of the tree."""
    heading = np.arange(SECTIONS * HEADINGS * ITEMS) // ITEMS
    X = np.zeros((len(heading), SECTIONS + SECTIONS * HEADINGS))
    X[np.arange(len(heading)), heading // HEADINGS] = 1.0
    X[np.arange(len(heading)), SECTIONS + heading] = 0.8
    X += noise * rng.random(X.shape)
    order = rng.permutation(SECTIONS * HEADINGS) if mixed else np.arange(SECTIONS * HEADINGS)
    section = np.empty(len(order), dtype=int)
    section[order] = np.arange(len(order)) // HEADINGS
    paths = [f"section {section[h]} > heading {h} > item {k}" for k, h in enumerate(heading)]
    return X, Hierarchy.from_paths(paths, sep=">")


def headings_of(tree, level=2):
    return {frozenset(tree.items(node).tolist()) for node in np.flatnonzero(tree.is_cluster & (tree.levels == level))}


def clusters_of(tree):
    return {frozenset(tree.items(node).tolist()) for node in np.flatnonzero(tree.is_cluster)}


@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_planted_sections_come_back(sparse):
    X, tree = catalogue(np.random.default_rng(0), mixed=True)
    terms = [f"topic{k}" for k in range(SECTIONS)] + [f"word{k}" for k in range(SECTIONS * HEADINGS)]
    found = regroup(sp.csr_matrix(X) if sparse else X, tree, delta=0.05, terms=terms)
    sections = {frozenset(range(k * HEADINGS * ITEMS, (k + 1) * HEADINGS * ITEMS)) for k in range(SECTIONS)}
    assert {frozenset(found.tree.items(group.node).tolist()) for group in found.groups} == sections
    assert {group.name.split(",")[0] for group in found.groups} == {f"topic{k}" for k in range(SECTIONS)}
    assert {found.tree.labels[group.node] for group in found.groups} == {(group.name,) for group in found.groups}
    assert found.confirmed
    assert found.after.score > found.before.score + 0.1
    assert found.kept < 0.6
    assert sum(torn.n_headings for torn in found.torn) >= 15
    old = tree.parent[np.flatnonzero(tree.levels == 2)]
    assert all((old[old >= tree.n_items] == torn.node).sum() == torn.n_headings for torn in found.torn)
    assert f"torn apart: section {tree.labels[found.torn[0].node][0].split()[1]}" in found.summary()
    assert "confirmed" in found.summary()


def test_the_scores_are_those_of_the_search_length():
    X, tree = catalogue(np.random.default_rng(1), mixed=True)
    found = regroup(X, tree, delta=0.05, label_cost=2, folds=0)
    for scored, each in ((found.before, tree), (found.after, found.tree)):
        assert scored.score == pytest.approx(expected_search_length(X, each, delta=0.05, label_cost=2).score, rel=1e-12)
    assert found.tried["as it is"] == pytest.approx(found.before.score, rel=1e-12)
    assert found.tried[found.method] == pytest.approx(found.after.score, rel=1e-12)
    assert np.isnan(found.held_out.gain)
    assert not found.confirmed


COUNTS = np.random.default_rng(0).integers(0, 6, SECTIONS * HEADINGS * ITEMS)


def counted_mean(values, items=slice(None)):
    """The mean of the values, each counted as often as its weight says."""
    return np.repeat(np.asarray(values, dtype=float), COUNTS[items]).mean()


@pytest.mark.parametrize("folds", [0, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_integer_weights_are_values_counted_so_often(folds):
    X, tree = catalogue(np.random.default_rng(1), mixed=True)
    found = regroup(X, tree, delta=0.05, folds=folds, sample_weight=COUNTS)
    for scored, each in ((found.before, tree), (found.after, found.tree)):
        plain = expected_search_length(X, each, delta=0.05, label_cost=1)
        assert scored.score == pytest.approx(counted_mean(plain.values), abs=1e-12)
    assert found.tried["as it is"] == pytest.approx(found.before.score, abs=1e-12)
    assert found.tried[found.method] == pytest.approx(found.after.score, abs=1e-12)
    assert "mean over searches by sample_weight" in found.summary()
    if not folds:
        return
    prepared = prepare(X, tree, Settings(delta=0.05), sample_weight=COUNTS)
    place, judge = place_of(tree, None, None, None), Judge(Run(), 1.0, 0.05, 0)
    before = expected_search_length(X, tree, delta=0.05, label_cost=1).values
    gains = np.zeros(tree.n_items)
    fold = fold_of(tree.starts[: tree.n_items], folds, 0)
    for k in range(folds):
        out = np.flatnonzero(fold == k)
        other = judge.chosen_without(prepared, place, out).made(tree, place)[0]
        gains[out] = expected_search_length(X, other, delta=0.05, label_cost=1).values[out] - before[out]
    assert found.held_out.gain == pytest.approx(counted_mean(gains), abs=1e-12)
    assert found.held_out.gain != pytest.approx(gains.mean(), abs=1e-6)


@pytest.mark.slow
def test_halves_are_counted_as_their_searches():
    X, tree = catalogue(np.random.default_rng(1), mixed=True)
    prepared = prepare(X, tree, Settings(delta=0.05), sample_weight=COUNTS)
    place, judge = place_of(tree, None, None, None), Judge(Run(), 1.0, 0.05, 0)
    given = given_plan(tree, place)
    held = judge._held_out(prepared, place, [given])
    values = expected_search_length(X, tree, delta=0.05, label_cost=1).values
    assert held[given.name] == pytest.approx(counted_mean(values), abs=1e-12)


@pytest.mark.slow
def test_equal_weights_change_nothing():
    X, tree = catalogue(np.random.default_rng(1), mixed=True)
    plain, same = (regroup(X, tree, delta=0.05, sample_weight=each) for each in (None, np.full(tree.n_items, 3)))
    assert (repr(same), same.tried, same.held_out) == (repr(plain), plain.tried, plain.held_out)
    assert same.summary() == plain.summary()
    assert same.tree == plain.tree


@pytest.mark.slow
def test_weights_go_with_every_other_setting():
    X, tree = catalogue(np.random.default_rng(1), mixed=True)
    for settings in (
        {"label_cost": 0},
        {"level": 1},
        {"node": tree.labels[int(tree.children(tree.root)[0])], "level": 2},
        {"max_children": 6},
        {"tolerance": 0.5},
        {"terms": [f"t{k}" for k in range(X.shape[1])]},
        {"folds": 3, "confidence": 0.5, "random_state": 3},
        {"similarity": "negative_euclidean"},
        {"nu": 2.0, "enter_own_singleton": False},
    ):
        given = {"delta": 0.05, "folds": 0, **settings}
        weighted = regroup(X, tree, **given, sample_weight=COUNTS)
        shared = {name: given[name] for name in ("delta", "similarity", "nu", "enter_own_singleton") if name in given}
        values = expected_search_length(X, tree, label_cost=given.get("label_cost", 1), **shared).values
        assert weighted.before.score == pytest.approx(counted_mean(values), abs=1e-12)
        assert weighted.tried["as it is"] == pytest.approx(counted_mean(values), abs=1e-12)


@pytest.mark.slow
def test_folds_and_headings_that_nobody_looks_for():
    X, tree = catalogue(np.random.default_rng(1), mixed=True)
    weights = np.zeros(tree.n_items)
    weights[:3] = [1, 2, 4]  # items of one heading
    found = regroup(X, tree, delta=0.05, folds=2, sample_weight=weights)
    assert found.held_out.n_items == tree.n_items
    assert np.isfinite(found.held_out.gain)
    assert "means over searches" in write_regrouping(found)
    assert found.before.score == pytest.approx(
        np.average(expected_search_length(X, tree, delta=0.05, label_cost=1).values[:3], weights=[1, 2, 4]), abs=1e-12
    )
    weights[1:] = 0
    one = regroup(X, tree, delta=0.05, folds=2, sample_weight=weights)
    assert np.isfinite(one.after.score)


def test_a_tree_in_order_stays():
    X, tree = catalogue(np.random.default_rng(2), mixed=False)
    found = regroup(X, tree, delta=0.05, folds=0)
    assert found.kept == 1
    assert found.torn == ()
    assert found.after.score >= found.before.score


@pytest.mark.slow
def test_features_without_information_confirm_nothing():
    rng = np.random.default_rng(3)
    _, tree = catalogue(rng, mixed=False)
    found = regroup(rng.random((tree.n_items, 8)), tree, delta=0.05, max_children=5)
    assert not found.confirmed


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_headings_stay_whole_and_bounds_hold(seed):
    rng = np.random.default_rng(seed)
    X, tree = catalogue(rng, mixed=True, noise=float(rng.choice([0.3, 2.0])))
    most = int(rng.choice([5, 6, 9]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = regroup(X, tree, delta=0.1, max_children=most, folds=0, tolerance=float(rng.choice([0.0, 0.3])))
    assert headings_of(tree) <= clusters_of(found.tree)
    assert sorted(found.tree.items(found.tree.root).tolist()) == list(range(tree.n_items))
    if found.method != "as it is":
        inner = [found.tree.root, *(group.node for group in found.groups)]
        assert max(len(found.tree.children(node)) for node in inner) <= most
    assert found.after.score >= found.before.score - 1e-12
    names = [group.name for group in found.groups]
    assert len(set(names)) == len(names)


def quarters_of_sixteen():
    """Items of 64 headings in 16 groups in 4 quarters, in one list of headings."""
    rng = np.random.default_rng(0)
    heading = np.arange(64 * 4) // 4
    X = np.zeros((len(heading), 4 + 16 + 64))
    for width, start in ((16, 0), (4, 4), (1, 20)):
        X[np.arange(len(heading)), start + heading // width] = 1.0
    X += 0.2 * rng.random(X.shape)
    return X, Hierarchy.from_labels(heading)


@pytest.mark.slow
def test_two_levels_of_groups():
    X, flat = quarters_of_sixteen()
    found = regroup(X, flat, delta=0.1, max_children=8, folds=0)
    assert int(found.tree.height) == 3
    assert max(len(found.tree.children(node)) for node in range(flat.n_items, found.tree.n_nodes)) <= 8
    assert ", these by " in found.method
    assert found.after.score > found.before.score
    largest = {frozenset(found.tree.items(group.node).tolist()) for group in found.groups if group.n_items > 16}
    assert largest
    assert all(len({item // 64 for item in items}) == 1 for items in largest)  # each inside a quarter


def test_one_list_is_a_grouping_where_breadth_allows_it():
    rng = np.random.default_rng(0)
    heading = np.arange(300) // 50  # few headings of many items: labels cost next to nothing
    X = np.eye(6)[heading] + 0.3 * rng.random((300, 6))
    tree = Hierarchy.from_paths([f"{h % 2} > {h} > {k}" for k, h in enumerate(heading)], sep=">")
    found = regroup(X, tree, delta=0.1, folds=0, max_children=6)
    assert (found.method, found.groups, found.kept) == ("one list", (), 0.0)
    assert [torn.n_groups for torn in found.torn] == [3, 3]
    assert regroup(X, tree, delta=0.1, folds=0, max_children=5).method != "one list"


def test_refined_groups_are_at_least_as_near():
    rng = np.random.default_rng(1)
    place = Place(99, np.arange(30), 12)
    vectors = np.repeat(np.eye(3), 10, axis=0) + 0.2 * rng.random((30, 3))
    start = np.roll(np.arange(30) % 3, 4)
    found = refined(Plan("mixed", -1 - start, np.full(3, 99)), place, vectors)
    assert found.name == "mixed, refined"
    assert {tuple(np.flatnonzero(found.parents == group).tolist()) for group in set(found.parents.tolist())} == {
        tuple(range(10 * k, 10 * k + 10)) for k in range(3)
    }


@pytest.mark.slow
def test_only_the_levels_below_the_node_change():
    X, flat = quarters_of_sixteen()
    headings, n_items = flat.to_children()[:-1], flat.n_items
    left, right = list(range(n_items, n_items + 40)), list(range(n_items + 40, n_items + 64))
    tree = Hierarchy.from_children([*headings, left, right, [n_items + 64, n_items + 65]], n_items)
    found = regroup(X, tree, node=n_items + 64, delta=0.1, folds=0)
    assert found.groups
    inside = set(tree.items(n_items + 64).tolist())
    assert {cluster for cluster in clusters_of(tree) if not cluster < inside} <= clusters_of(found.tree)
    assert all(set(found.tree.items(group.node).tolist()) < inside for group in found.groups)


def test_the_level_of_the_headings():
    X, tree = catalogue(np.random.default_rng(5), mixed=True)
    found = regroup(X, tree, level=1, delta=0.05, folds=0)
    assert headings_of(tree, 1) <= clusters_of(found.tree)


@pytest.mark.parametrize("method", ["average", "complete", "ward"])
def test_cuts_by_height_are_those_of_scipy(method):
    rng = np.random.default_rng(0)
    for n in (5, 12, 30):
        Z = linkage(rng.random((n, 3)), method)
        for count in range(2, n):
            mine, other = _groups_of(Z, n, count, n, False), fcluster(Z, count, "maxclust")
            assert len(set(mine)) == count
            assert len(set(zip(mine.tolist(), other.tolist(), strict=True))) == count
            balanced = np.bincount(_groups_of(Z, n, count, n, True))
            assert len(balanced) == count
            assert balanced.max() <= np.bincount(mine).max()
            assert np.bincount(_groups_of(Z, n, 2, 3, True)).max() <= 3


def test_the_nearest_group_leaves_a_heading_out():
    rng = np.random.default_rng(0)
    vectors, at = rng.random((9, 4)), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    best, gain = _nearest(vectors, at)
    assert (best, gain.tolist()) == (pytest.approx(_nearest(sp.csr_matrix(vectors), at)[0]), pytest.approx(gain))
    for k in range(9):
        cosines = []
        for group in range(3):
            centre = vectors[(at == group) & (np.arange(9) != k)].sum(axis=0)
            cosines.append(centre @ vectors[k] / np.linalg.norm(centre) / np.linalg.norm(vectors[k]))
        assert best[k] == np.argmax(cosines)
        assert gain[k] == pytest.approx(max(cosines) - cosines[at[k]], abs=1e-12)


@pytest.mark.slow
def test_more_folds_and_seeds_are_reproducible():
    X, tree = catalogue(np.random.default_rng(6), mixed=True)
    one, again = (regroup(X, tree, delta=0.05, folds=3, random_state=1) for _ in range(2))
    assert one.held_out == again.held_out
    assert one.held_out.n_items == tree.n_items
    gains = [regroup(X, tree, delta=0.05, folds=3, random_state=1, confidence=level).held_out for level in (0.5, 0.99)]
    assert all(wide.interval[0] < narrow.interval[0] for narrow, wide in pairwise(gains))


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"tolerance": 1}, "tolerance"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"label_cost": -1}, "label_cost"),
        ({"folds": 1}, "folds"),
        ({"folds": -1}, "folds"),
        ({"confidence": 1.5}, "confidence"),
        ({"level": 0}, "level"),
        ({"level": 9}, "level"),
        ({"max_children": 2}, "max_children"),
        ({"terms": ["one"]}, "terms"),
        ({"terms": "abc"}, "terms"),
        ({"similarity": "precomputed"}, "similarity"),
        ({"sample_size": 5}, "sample_size"),
    ],
)
def test_wrong_arguments(settings, argument):
    X, tree = catalogue(np.random.default_rng(0), mixed=False)
    X = X @ X.T if settings.get("similarity") == "precomputed" else X
    with pytest.raises(ParameterError, match=argument):
        regroup(X, tree, **settings)


def test_a_node_that_does_not_exist():
    X, tree = catalogue(np.random.default_rng(0), mixed=False)
    with pytest.raises(HierarchyError):
        regroup(X, tree, node="nowhere")


def test_too_few_headings():
    with pytest.raises(ParameterError, match="headings"):
        regroup([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], Hierarchy.from_labels([0, 0, 1, 1]))


@pytest.mark.parametrize(
    ("name", "value"),
    [("random_state", "a"), ("random_state", -1), ("random_state", 1.5), ("random_state", None), ("terms", 5)],
)
def test_seeds_and_terms_of_another_type(name, value):
    X, tree = catalogue(np.random.default_rng(0), mixed=False)
    with pytest.raises(ParameterError, match=name):
        regroup(X, tree, **{name: value})


def test_the_level_of_the_headings_is_below_the_node():
    X, tree = catalogue(np.random.default_rng(0), mixed=False)
    with pytest.raises(ParameterError, match=r"^level: got 0; .* at least 1"):
        regroup(X, tree, level=0)


def test_a_tree_without_levels_is_named():
    with pytest.raises(ParameterError, match="node: got the root"):
        regroup(np.eye(8), Hierarchy.from_children([list(range(8))], 8))


def test_headings_move_where_the_score_gains_exactly():
    X, tree = catalogue(np.random.default_rng(3), mixed=True)
    prepared = prepare(X, tree, Settings(delta=0.05, policy="descend"))
    place = place_of(tree, None, None, 6)
    vectors = vectors_of(prepared, place.headings)
    start = given_plan(tree, place)
    found = moved_by_score(prepared, place, start, vectors, Objective(1.0))
    before, after = (
        expected_search_length(X, plan.made(tree, place)[0], delta=0.05, label_cost=1).score for plan in (start, found)
    )
    assert after > before + 0.01
    assert np.bincount(found.parents - tree.n_items).max() <= 6
    assert found.name == "as it is, headings moved by the score"
    assert moved_by_score(prepared, place, found, vectors, Objective(1.0)).parents.tolist() == found.parents.tolist()


def test_groups_with_fewer_than_two_children_are_removed():
    parents, above = np.array([-1, -1, -2, -3, -3, -5]), np.array([-4, -4, 99, 99, -4])
    found = _without_small(Plan("nested", parents, above))
    assert found.parents.tolist() == [-1, -1, -3, -2, -2, -3]  # the second and the last hold one heading each
    assert found.above.tolist() == [-3, 99, 99]


def test_a_plan_is_made_again_from_other_items():
    X, flat = quarters_of_sixteen()
    place = place_of(flat, None, None, 8)
    vectors = vectors_of(prepare(X, flat, Settings(delta=0.1)), place.headings)
    known = {plan.steps: plan for plan in one_level(flat, place, vectors)}
    base = next(plan for plan in known.values() if len(plan.above) > 4)
    better = refined(base, place, vectors)
    nested = next(two_levels(place, better, vectors))
    for plan in (base, better, nested):
        again = remade(plan, known, place, vectors)
        assert (again.name, again.parents.tolist(), again.above.tolist()) == (
            plan.name,
            plan.parents.tolist(),
            plan.above.tolist(),
        )
    assert remade(nested, {}, place, vectors) is None


def test_groupings_are_chosen_by_items_that_did_not_make_them():
    X, tree = catalogue(np.random.default_rng(0), mixed=True, noise=1.0)
    prepared = prepare(X, tree, Settings(delta=0.05))
    place, judge = place_of(tree, None, None, None), Judge(Run(), 1.0, 0.0, 0)
    vectors = vectors_of(prepared, place.headings)
    plans = [*one_level(tree, place, vectors)][:5]
    half = fold_of(tree.starts[: tree.n_items], 2, 0) == 1
    held = judge._held_out(prepared, place, plans)
    for k, plan in enumerate(plans):
        values = np.empty(tree.n_items)
        for out in (half, ~half):
            part = part_of(prepared, np.flatnonzero(~out))
            number = dict(zip(part.nodes.tolist(), range(len(part.nodes)), strict=True))
            small = Place(
                number[place.node], np.array([number[h] for h in place.headings.tolist()]), place.max_children
            )
            found = [*one_level(part.prepared.hierarchy, small, vectors_of(part.prepared, small.headings))]
            again = next((one for one in found if one.steps == plan.steps), found[0])
            parents = np.array([part.nodes[p] if p >= 0 else p for p in again.parents.tolist()])
            above = np.array([part.nodes[p] if p >= 0 else p for p in again.above.tolist()], dtype=int)
            changed = Plan("again", parents, above).made(tree, place)[0]
            values[out] = expected_search_length(X, changed, delta=0.05, label_cost=1).values[out]
        assert held[plan.name] == pytest.approx(values.mean(), abs=1e-12), k
