"""The profile over temperatures: each row is an appraisal, and rankings flip where scores cross."""

import numpy as np
import pytest

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.baselines import appraise
from pomdp_hier.hqs.examples import load_amazon12
from pomdp_hier.hqs.profile import delta_profile
from pomdp_hier.hqs.score import hqs_score
from tests.planted import clean_case, swapped


def test_every_row_is_an_appraisal():
    X, tree = clean_case()
    profile = delta_profile(X, {"clean": tree, "swapped": swapped(tree)[0]}, [0.5, 0.02], n_shuffles=3, random_state=2)
    assert profile.deltas == (0.02, 0.5)
    assert profile.trees == ("clean", "swapped")
    for row in profile.rows:
        subject = tree if row.tree == "clean" else swapped(tree)[0]
        found = appraise(X, subject, delta=row.delta, n_shuffles=3, random_state=2)
        for name in ("score", "ceiling", "perfect", "shuffled", "shuffled_sd", "adjusted", "efficiency", "at_root"):
            np.testing.assert_equal(getattr(row, name), getattr(found, name))
    assert profile.to_rows()[0]["tree"] == "clean"
    assert profile.column("clean", "score").tolist() == [row.score for row in profile.rows[:2]]
    assert profile.flips == ()
    assert "same at all these temperatures" in profile.summary()


def test_the_ranking_flips_where_scores_cross():
    shop = load_amazon12()
    names = ("B", "C")
    deltas = np.geomspace(0.002, 0.02, 9)
    options = {"similarity": "precomputed"}
    trees = {name: shop.hierarchies[name] for name in names}
    profile = delta_profile(shop.similarity, trees, deltas, n_shuffles=0, **options)
    gaps = [
        hqs_score(shop.similarity, trees["B"], delta=delta, **options)
        - hqs_score(shop.similarity, trees["C"], delta=delta, **options)
        for delta in deltas
    ]
    crossings = [k for k in range(8) if gaps[k] * gaps[k + 1] < 0]
    assert [flip.low for flip in profile.flips] == [deltas[k] for k in crossings]
    for flip, k in zip(profile.flips, crossings, strict=True):
        assert flip.before == ("B" if gaps[k] > 0 else "C")
        assert f"{flip.after} overtakes {flip.before}" in " ".join(profile.sentences())


def test_one_tree_has_no_ranking_and_equal_trees_no_flip():
    X, tree = clean_case()
    assert delta_profile(X, tree, [0.1], n_shuffles=0).sentences() == []
    assert delta_profile(X, {"a": tree, "b": tree}, [0.02, 0.1, 1.0], n_shuffles=0).flips == ()
    assert len(delta_profile(np.eye(2), Hierarchy.from_children([[0, 1]], 2), n_shuffles=0).rows) == 13


def test_ranges_that_cannot_be():
    X, tree = clean_case()
    for deltas in ([], [0.1, 0.1]):
        with pytest.raises(ParameterError, match="deltas"):
            delta_profile(X, tree, deltas)
    with pytest.raises(ParameterError, match="give it as deltas"):
        delta_profile(X, tree, [0.1], delta=0.2)
    with pytest.raises(ParameterError, match="delta is -1"):
        delta_profile(X, tree, [-1.0])
