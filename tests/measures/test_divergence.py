"""The tree sampling divergence against its definition pair by pair, and against scikit-network."""

from math import log

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import tree_sampling_divergence
from tests.measure_oracle import cosines, inner_path, meeting, trees_with_features


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


@settings(max_examples=40, deadline=None)
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
def test_scikit_network(weights, normalized):
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
