"""Sums over pairs: counts, degrees, squares and the blocks of the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures.lca_pairs import PairSums, pair_counts
from tests.measure_oracle import cosines, pairs, trees_with_features


@given(trees_with_features())
def test_every_sum_is_that_of_the_matrix(case):
    tree, X = case
    matrix = cosines(X)
    np.fill_diagonal(matrix, 0)
    found = np.bincount([node - tree.n_items for *_, node in pairs(tree)], minlength=tree.n_nodes - tree.n_items)
    np.testing.assert_array_equal(pair_counts(tree), found)
    wide = np.hstack([X, np.zeros((len(X), 20))])
    for table in (X, wide, sp.csr_matrix(X), sp.csr_matrix(wide)):
        sums = PairSums(table, tree)
        np.testing.assert_allclose(sums.degrees(), matrix.sum(axis=1), atol=1e-12)
        assert sums.sum_of_squares() == pytest.approx((matrix**2).sum() / 2, abs=1e-11)
    sums = PairSums(matrix, tree, "precomputed")
    np.testing.assert_allclose(sums.degrees(), matrix.sum(axis=1), atol=1e-12)
    assert sums.sum_of_squares() == pytest.approx((matrix**2).sum() / 2, abs=1e-12)
    np.testing.assert_allclose(sums.inside(), PairSums(X, tree).inside(), atol=1e-11)


def test_blocks_cover_the_matrix():
    X = np.random.default_rng(0).normal(size=(1100, 3))
    tree = Hierarchy.from_children([list(range(1100))], 1100)
    expected = cosines(X[:3])
    for table in (X, sp.csr_matrix(X)):
        blocks = list(PairSums(table, tree).blocks())
        assert [low for low, _ in blocks] == [0, 512, 1024]
        whole = np.vstack([block for _, block in blocks])
        assert whole.shape == (1100, 1100)
        np.testing.assert_allclose(whole, whole.T, atol=1e-15)
        assert whole[0, 1] == pytest.approx(expected[0, 1])
        assert not whole.diagonal().any()
