"""A tree is judged by the similarity that it was made for."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from pomdp_hier import Hierarchy, hqs_score


def test_wards_tree_of_round_groups_is_no_tree_for_the_cosine():
    rng = np.random.default_rng(2)
    X = rng.normal(scale=5, size=(12, 2))[np.repeat(np.arange(12), 20)] + rng.normal(size=(240, 2)) * 0.5
    tree = Hierarchy.from_linkage(linkage(X, "ward"))
    assert hqs_score(X, tree, similarity="cosine") == pytest.approx(-0.64, abs=0.005)
    assert hqs_score(X, tree, similarity="negative_euclidean") == pytest.approx(0.76, abs=0.005)
