"""What the README says of similarities, computed."""

import re
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import linkage

from pomdp_hier import Hierarchy, hqs_score


def test_wards_tree_of_round_groups_is_no_tree_for_the_cosine():
    rng = np.random.default_rng(2)
    X = rng.normal(scale=5, size=(12, 2))[np.repeat(np.arange(12), 20)] + rng.normal(size=(240, 2)) * 0.5
    tree = Hierarchy.from_linkage(linkage(X, "ward"))
    said = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    cosine, euclidean = re.search(
        r"Ward's tree scores −([\d.]+) by the cosine.*?and ([\d.]+) by", said, re.DOTALL
    ).groups()
    assert f"{hqs_score(X, tree, similarity='cosine'):.2f}" == f"-{cosine}"
    assert f"{hqs_score(X, tree, similarity='negative_euclidean'):.2f}" == euclidean
