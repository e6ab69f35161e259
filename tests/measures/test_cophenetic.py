"""The cophenetic correlation against SciPy and against numpy's correlation over all pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import pdist, squareform

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import cophenetic_correlation
from tests.measure_oracle import cosines, pairs, trees_with_features


@pytest.mark.parametrize("method", ["average", "single", "complete", "ward"])
def test_scipy(method):
    X = np.random.default_rng(2).normal(size=(60, 4))
    for metric in ("cosine", "euclidean"):
        distances = pdist(X, metric)
        Z = linkage(distances, method)
        tree = Hierarchy.from_linkage(Z)
        expected, _ = cophenet(Z, distances)
        matrix = -squareform(distances)
        found = cophenetic_correlation(matrix, tree, similarity="precomputed", heights=Z[:, 2])
        assert found == pytest.approx(expected, abs=1e-12)
        if metric == "cosine":
            heights = np.concatenate([np.zeros(60), Z[:, 2]])
            assert cophenetic_correlation(X, tree, heights=heights) == pytest.approx(expected, abs=1e-12)
            assert cophenetic_correlation(sp.csr_matrix(X), tree, heights=Z[:, 2]) == pytest.approx(expected, abs=1e-12)


@given(trees_with_features())
def test_heights_from_sizes_and_levels(case):
    tree, X = case
    matrix = cosines(X)
    met = pairs(tree)
    apart = np.array([1 - matrix[i, j] for i, j, _ in met])
    for kind, height in [("sizes", tree.sizes), ("levels", -tree.levels)]:
        found = cophenetic_correlation(X, tree, heights=kind)
        high = np.array([height[node] for *_, node in met], dtype=float)
        if len(met) < 2 or np.ptp(high) == 0 or np.ptp(apart) < 1e-12:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(np.corrcoef(high, apart)[0, 1], abs=1e-7)


def test_items_that_are_all_equally_alike_have_no_correlation():
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    for X in (np.eye(4), np.eye(4) + 1, (np.eye(4) + 1) @ turned, 1e-3 * (np.eye(4) + 1) @ turned):
        assert np.isnan(cophenetic_correlation(X, tree))
    assert np.isnan(cophenetic_correlation(turned, Hierarchy.from_children([[0, 1, 2, 3]], 4)))


def test_heights_that_do_not_fit():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    for heights in ("depth", [1.0, 2.0], [1.0, 2.0, np.nan]):
        with pytest.raises(ParameterError, match="heights"):
            cophenetic_correlation(np.eye(4), tree, heights=heights)


def test_the_unit_of_the_heights_does_not_count():
    X = np.random.default_rng(2).normal(size=(20, 4))
    Z = linkage(X, "average")
    tree = Hierarchy.from_linkage(Z)
    found = cophenetic_correlation(X, tree, heights=Z[:, 2])
    for unit in (1e-200, 1e-13, 1e200, 1e307):
        assert cophenetic_correlation(X, tree, heights=unit * Z[:, 2]) == pytest.approx(found, abs=1e-12)
    assert np.isnan(cophenetic_correlation(X, tree, heights=np.full(19, 0.1)))  # whose mean is not quite 0.1


def test_the_tree_comes_after_the_features():
    with pytest.raises(HierarchyError, match="give it after the features"):
        cophenetic_correlation(Hierarchy.from_children([[0, 1]], 2), np.eye(2))


def test_the_unit_of_the_similarities_does_not_count():
    matrix = -squareform(pdist(np.random.default_rng(2).normal(size=(20, 4))))
    tree = Hierarchy.from_linkage(linkage(squareform(-matrix), "average"))
    found = cophenetic_correlation(matrix, tree, similarity="precomputed")
    for unit in (1e-9, 1e9):
        assert cophenetic_correlation(unit * matrix, tree, similarity="precomputed") == pytest.approx(found, rel=1e-9)
