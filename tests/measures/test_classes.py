"""Hierarchical precision, recall and F: loops over every class and cluster, and sets of ancestors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import class_f_score, hierarchical_precision_recall
from tests.hierarchy_oracle import samples

PATHS = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
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
