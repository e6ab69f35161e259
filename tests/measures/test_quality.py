"""Costs of a tree, sampling divergence, F scores and purity, against enumeration and other libraries."""

from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from pomdp_hier.errors import DataWarning, FeatureError, HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import (
    class_f_score,
    dasgupta_cost,
    dendrogram_purity,
    hierarchical_precision_recall,
    moseley_wang_revenue,
    tree_sampling_divergence,
)
from pomdp_hier.measures.lca_pairs import branching_nodes, neighbour_ancestors
from tests.extras import optional
from tests.hierarchy_oracle import samples
from tests.measure_oracle import cosines, inner_path, meeting, pairs, trees_with_features

datasets = optional("sklearn.datasets")


@given(trees_with_features())
def test_the_sum_over_all_pairs(case):
    tree, X = case
    matrix = cosines(X)
    cost = sum(matrix[i, j] * tree.sizes[node] for i, j, node in pairs(tree))
    revenue = sum(matrix[i, j] * (tree.n_items - tree.sizes[node]) for i, j, node in pairs(tree))
    halves = matrix + np.triu(np.ones_like(matrix)) - np.tril(np.ones_like(matrix))
    np.fill_diagonal(halves, np.nan)
    for table, similarity in [(X, "cosine"), (sp.csr_matrix(X), "cosine"), (halves, "precomputed")]:
        options = {"similarity": similarity, "normalized": False}
        assert dasgupta_cost(table, tree, **options) == pytest.approx(cost, abs=1e-12)
        assert moseley_wang_revenue(table, tree, **options) == pytest.approx(revenue, abs=1e-11)


def test_digits_and_its_shuffle():
    X = datasets.load_digits().data.astype(np.float32)
    tree = Hierarchy.from_linkage(linkage(X, "average"))
    shuffled = tree.permuted(np.random.default_rng(0).permutation(len(X)))
    assert dasgupta_cost(X, tree) == pytest.approx(0.6422, abs=2e-3)  # ties in the linkage may fall otherwise
    assert dasgupta_cost(X, tree) < dasgupta_cost(X, shuffled) == pytest.approx(2 / 3, abs=5e-3)
    assert moseley_wang_revenue(X, tree) == pytest.approx(1 - dasgupta_cost(X, tree), abs=1e-12)


def test_scikit_network():
    metrics = pytest.importorskip("sknetwork.hierarchy")
    X = np.random.default_rng(1).random((40, 5))
    Z = linkage(X, "average")
    matrix = cosines(X)
    np.fill_diagonal(matrix, 0)
    theirs = metrics.dasgupta_cost(sp.csr_matrix(matrix), Z, normalized=True)
    assert dasgupta_cost(X, Hierarchy.from_linkage(Z)) == pytest.approx(theirs, abs=1e-7)  # theirs is float32


def test_a_flat_tree_costs_one_and_one_item_has_no_cost():
    flat = Hierarchy.from_children([[0, 1, 2]], 3)
    X = np.eye(3) + 1
    assert dasgupta_cost(X, flat) == 1.0
    assert moseley_wang_revenue(X, flat) == 0.0
    for single in (Hierarchy.from_children([], 1), Hierarchy.from_children([[0]], 1)):
        assert dasgupta_cost([[1.0, 2.0]], single, normalized=False) == 0
        assert np.isnan(dasgupta_cost([[1.0, 2.0]], single))
        assert np.isnan(moseley_wang_revenue([[1.0, 2.0]], single))
    assert np.isnan(dasgupta_cost(np.eye(3), flat))


def test_rows_of_zeros_and_tiny_rows():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    X = np.array([[1e-200, 0.0], [1e200, 0.0], [0.0, 0.0], [2.0, 0.0]])
    for table in (X, sp.csr_matrix(X)):
        with pytest.warns(DataWarning, match="zeros"):
            assert dasgupta_cost(table, tree, normalized=False) == pytest.approx(2 + 4 + 4)


def test_errors_name_the_remedy():
    tree = Hierarchy.from_children([[0, 1]], 2)
    with pytest.raises(ParameterError, match="precomputed"):
        dasgupta_cost(np.eye(2), tree, similarity="negative_euclidean")
    with pytest.raises(FeatureError, match="3 rows"):
        dasgupta_cost(np.eye(3), tree)
    for measure in (dasgupta_cost, moseley_wang_revenue):
        with pytest.raises(HierarchyError, match="give it after the features"):
            measure(tree, np.eye(2))


def slow(matrix, tree, weights):
    """Both laws over nodes and over pairs, by a double loop over the items."""
    n = tree.n_items
    matrix = matrix / matrix.sum()
    item = matrix.sum(axis=1) if weights == "degree" else np.full(n, 1 / n)
    p, q, most = {}, {}, 0.0
    for i in range(n):
        for j in range(n):
            node = inner_path(tree, i)[0] if i == j else meeting(tree, i, j)
            p[node] = p.get(node, 0) + matrix[i, j]
            q[node] = q.get(node, 0) + item[i] * item[j]
            if matrix[i, j] > 0:
                most += matrix[i, j] * log(matrix[i, j] / (item[i] * item[j]))
    return sum(p[node] * log(p[node] / q[node]) for node in p if p[node] > 1e-14), most


@given(trees_with_features(signed=False), st.sampled_from(["degree", "uniform"]))
def test_the_definition(case, weights):
    tree, X = case
    matrix = cosines(X)
    np.fill_diagonal(matrix, 0)
    if tree.n_items == 1 or not matrix.any():
        assert np.isnan(tree_sampling_divergence(X, tree, weights=weights))
        return
    divergence, most = slow(matrix, tree, weights)
    options = {"weights": weights, "normalized": False}
    assert tree_sampling_divergence(X, tree, **options) == pytest.approx(divergence, abs=1e-10)
    assert tree_sampling_divergence(sp.csr_matrix(X), tree, **options) == pytest.approx(divergence, abs=1e-10)
    found = tree_sampling_divergence(matrix, tree, similarity="precomputed", weights=weights)
    if most < 1e-11:
        assert np.isnan(found) or abs(most) > 1e-13
    else:
        assert found == pytest.approx(divergence / most, abs=1e-9)


@pytest.mark.parametrize("weights", ["degree", "uniform"])
@pytest.mark.parametrize("normalized", [True, False])
def test_divergence_of_scikit_network(weights, normalized):
    metrics = pytest.importorskip("sknetwork.hierarchy")
    X = np.random.default_rng(1).random((40, 5))
    Z = linkage(X, "average")
    matrix = cosines(X)
    np.fill_diagonal(matrix, 0)
    theirs = metrics.tree_sampling_divergence(sp.csr_matrix(matrix), Z, weights=weights, normalized=normalized)
    ours = tree_sampling_divergence(X, Hierarchy.from_linkage(Z), weights=weights, normalized=normalized)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_a_flat_tree_tells_nothing():
    flat = Hierarchy.from_children([[0, 1, 2]], 3)
    assert tree_sampling_divergence([[1, 0], [1, 1], [0, 1]], flat) == pytest.approx(0, abs=1e-12)


def test_nothing_alike_tells_nothing():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert np.isnan(tree_sampling_divergence(np.eye(4), tree))
    assert np.isnan(tree_sampling_divergence(X, tree))


def test_negative_similarities_and_other_weights_are_refused():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    with pytest.raises(ParameterError, match="negative"):
        tree_sampling_divergence([[1, 0], [1, 0], [-1, 0.1], [1, 0]], tree)
    with pytest.raises(ParameterError, match="'volume'"):
        tree_sampling_divergence(np.eye(4), tree, weights="volume")


PATHS = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)


@given(samples(), st.data())
def test_the_best_cluster_of_every_class(sample, data):
    tree = sample.hierarchy(data.draw(st.booleans()))
    labels = data.draw(st.lists(PATHS, min_size=tree.n_items, max_size=tree.n_items))
    classes = {}
    for item, path in enumerate(labels):
        for length in range(1, len(path) + 1):
            classes.setdefault(path[:length], set()).add(item)
    if not classes:
        with pytest.raises(ParameterError, match="labels: got None"):
            class_f_score(tree, labels)
        return
    fit = class_f_score(tree, labels)
    total = sum(map(len, classes.values()))
    f = precision = recall = 0.0
    clusters = [(node, set(tree.items(node).tolist())) for node in np.flatnonzero(tree.is_cluster).tolist()]
    for name, members in classes.items():
        options = [(2 * len(members & held) / (len(members) + len(held)), -len(held)) for _, held in clusters]
        best, size = max(options)
        node, found = fit.best[name]
        assert found == pytest.approx(best)
        held = set(tree.items(node).tolist())
        assert len(held) == -size
        f += len(members) / total * best
        precision += len(members) / total * len(members & held) / len(held)
        recall += len(members) / total * len(members & held) / len(members)
    assert (fit.f, fit.precision, fit.recall) == pytest.approx((f, precision, recall))


def test_a_tree_that_is_the_classes_fits_them():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    fit = class_f_score(tree, [("all", "x"), ("all", "x"), ("all", "y"), ("all", "y")])
    assert (fit.precision, fit.recall, fit.f) == (1, 1, 1)
    plain = class_f_score(tree, ["x", "x", "y", None])
    assert plain.best[("y",)] == (5, pytest.approx(2 / 3))
    with pytest.raises(ParameterError, match="labels: got 1"):
        class_f_score(tree, ["x"])


@given(st.lists(st.tuples(PATHS, PATHS), max_size=6))
def test_paths_as_sets_of_ancestors(cases):
    sets = [tuple({path[:k] for k in range(1, len(path) + 1)} for path in case) for case in cases]
    common = sum(len(true & guess) for true, guess in sets)
    n_true, n_guess = (sum(len(case[side]) for case in sets) for side in (0, 1))
    found = hierarchical_precision_recall([true for true, _ in cases], [guess for _, guess in cases])
    expected = (common / n_guess if n_guess else np.nan, common / n_true if n_true else np.nan)
    np.testing.assert_allclose((found.precision, found.recall), expected)
    if common:
        assert found.f == pytest.approx(2 / (1 / found.precision + 1 / found.recall))


def test_stopping_early_costs_recall_only():
    early = hierarchical_precision_recall([("a", "b", "c")], [("a",)])
    assert (early.precision, early.recall) == (1, 1 / 3)
    with pytest.raises(ParameterError, match=r"got 1 .* expected 2"):
        hierarchical_precision_recall([("a",), ("b",)], [("a",)])


def test_what_is_no_list_of_paths_or_labels_is_refused():
    tree = Hierarchy.from_children([[0, 1]], 2)
    with pytest.raises(HierarchyError, match="expected a Hierarchy"):
        class_f_score(["a", "b"], tree)
    with pytest.raises(ParameterError, match=r"^labels: got .* one label per item"):
        class_f_score(tree, tree)
    with pytest.raises(ParameterError, match=r"^true: got .* one path per item"):
        hierarchical_precision_recall(tree, [("a",)])


def test_rows_of_an_array_are_paths():
    codes = np.array([[1, 2], [3, 4]])
    assert hierarchical_precision_recall(codes, [(1, 2), (3, 5)]).precision == 3 / 4


@given(samples(), st.data())
def test_purity_pair_by_pair(sample, data):
    tree = sample.hierarchy(data.draw(st.booleans()))
    labels = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=tree.n_items, max_size=tree.n_items))
    shares = []
    for i, j, node in pairs(tree):
        if labels[i] == labels[j] is not None:
            shares.append(Counter(labels[k] for k in tree.items(node).tolist())[labels[i]] / tree.sizes[node])
    found = dendrogram_purity(tree, labels)
    assert np.isnan(found) if not shares else found == pytest.approx(np.mean(shares), abs=1e-12)


@given(samples(), st.data())
def test_branching_nodes_are_the_meeting_points_of_each_class(sample, data):
    tree = sample.hierarchy()
    classes = np.array(data.draw(st.lists(st.integers(3, 5), min_size=tree.n_items, max_size=tree.n_items)))
    expected = {(classes[i], node) for i, j, node in pairs(tree) if classes[i] == classes[j]}
    found = branching_nodes(tree, np.arange(tree.n_items), classes)
    rows = list(zip(found.classes.tolist(), found.nodes.tolist(), strict=True))
    assert set(rows) == expected
    assert len(rows) == len(expected)
    for (name, node), count, above in zip(rows, found.counts, found.above, strict=True):
        assert count == (classes[tree.items(node)] == name).sum()
        higher = [
            other for kind, other in rows if kind == name and other != node and tree.sizes[other] >= tree.sizes[node]
        ]
        higher = [other for other in higher if set(tree.items(node)) <= set(tree.items(other))]
        lowest = max(higher, key=lambda other: tree.levels[other], default=-1)
        assert (rows[above][1] if above >= 0 else -1) == (lowest if lowest in higher else -1)


@given(samples())
def test_neighbours_meet_where_they_meet(sample):
    tree = sample.hierarchy()
    order = tree.item_order.tolist()
    expected = [meeting(tree, i, j) for i, j in pairwise(order)]
    assert neighbour_ancestors(tree).tolist() == expected


def test_arrays_of_labels_and_a_long_ladder():
    n_items = 20_000
    ladder = Hierarchy.from_children([[0, 1], *([n_items + k, k + 2] for k in range(n_items - 2))], n_items)
    assert dendrogram_purity(ladder, np.zeros(n_items, dtype=int)) == pytest.approx(1)
    halves = dendrogram_purity(ladder, np.arange(n_items) % 2)
    assert 0.5 <= halves < 0.501


def test_one_label_an_item_is_needed():
    with pytest.raises(ParameterError, match="labels: got 3"):
        dendrogram_purity(Hierarchy.from_children([[0, 1]], 2), ["a", "b", "c"])
    with pytest.raises(ParameterError, match=r"labels\[0\]: got \[1.0, 0.0\]"):
        dendrogram_purity(Hierarchy.from_children([[0, 1]], 2), np.eye(2))
    with pytest.raises(HierarchyError, match=r"got 'tree\.csv'"):
        dendrogram_purity("tree.csv", ["a", "b"])
