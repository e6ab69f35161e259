"""Dasgupta's cost and its dual against the sum over all pairs, scikit-network, and trees whose cost is known."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from scipy.cluster.hierarchy import linkage

from pomdp_hier.errors import DataWarning, FeatureError, HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import dasgupta_cost, moseley_wang_revenue
from tests.extras import optional
from tests.measure_oracle import cosines, pairs, trees_with_features

datasets = optional("sklearn.datasets")


@settings(max_examples=25, deadline=None)
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
