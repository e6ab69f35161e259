"""Distances given where similarities are due are told from similarities, and nothing else is taken for them."""

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import hqs_score
from pomdp_hier.errors import DataWarning
from pomdp_hier.features.validation import warn_of_distances
from pomdp_hier.hierarchy.tree import Hierarchy

TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
POINTS = np.array([0.0, 0.1, 1.0, 1.1])
DISTANCES = np.abs(POINTS[:, None] - POINTS)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_distances_are_warned_of_and_the_remedy_helps(form):
    with pytest.warns(DataWarning, match=r"distances.*give 1 - D"):
        assert hqs_score(form(DISTANCES), TREE, similarity="precomputed") < 0
    assert hqs_score(1 - DISTANCES, TREE, similarity="precomputed") > 0.6
    assert hqs_score(-DISTANCES, TREE, similarity="precomputed") > 0.6


@pytest.mark.parametrize(
    "matrix",
    [
        np.exp(-DISTANCES),
        np.exp(-DISTANCES) - np.eye(4),  # similarities whose diagonal was taken off
        np.zeros((4, 4)),
        np.ones((4, 4)) - np.eye(4),
        DISTANCES + 0.01 * np.eye(4),  # a diagonal that is small, and no rounding
        DISTANCES - 0.01,
    ],
)
def test_similarities_are_not_warned_of(matrix):
    assert -1 <= hqs_score(matrix, TREE, similarity="precomputed") <= 1


def test_a_tree_without_branches_and_many_items_are_looked_at():
    warn_of_distances(np.abs(np.arange(3.0)[:, None] - np.arange(3.0)), Hierarchy.from_children([[0, 1, 2]], 3))
    place = np.arange(300.0)
    halves = Hierarchy.from_children([list(range(150)), list(range(150, 300)), [300, 301]], 300)
    with pytest.warns(DataWarning, match="distances"):
        warn_of_distances(np.abs(place[:, None] - place), halves)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_diagonal_of_roundings_is_one_of_zeros(kind, scale):
    random = np.random.default_rng(0)
    near, far = (
        random.random((2, 10, 6)) * np.array([[1, 1, 1, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 1, 1, 1]])[:, None]
    )
    X = np.concatenate([near, far]).astype(kind)
    tree = Hierarchy.from_children([range(10), range(10, 20), [20, 21]], 20)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squares = (X**2).sum(axis=1)
    by_products = np.sqrt(np.abs(squares[:, None] + squares - 2 * X @ X.T))
    for distances in (1 - unit @ unit.T, by_products):
        assert distances.diagonal().any()
        assert distances.dtype == kind
        with pytest.warns(DataWarning, match="looks like distances"):
            warn_of_distances(distances * kind(scale), tree)
    alike = unit @ unit.T
    for similarities in (alike, alike - np.diag(np.diag(alike)), alike - 1e-3):
        warn_of_distances(similarities * kind(scale), tree)
