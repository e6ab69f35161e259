"""The sweep over temperatures: each row is an appraisal, and rankings flip where scores cross."""

import numpy as np
import pytest

from pomdp_hier.analysis.baselines import appraise
from pomdp_hier.analysis.settings_sweep import delta_sweep
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.score import hqs_score
from tests.planted import clean_case, swapped


def test_every_row_is_an_appraisal():
    X, tree = clean_case()
    sweep = delta_sweep(X, {"clean": tree, "swapped": swapped(tree)[0]}, [0.5, 0.02], n_shuffles=3, random_state=2)
    assert sweep.deltas == (0.02, 0.5)
    assert sweep.trees == ("clean", "swapped")
    for row in sweep.rows:
        subject = tree if row.tree == "clean" else swapped(tree)[0]
        found = appraise(X, subject, delta=row.delta, n_shuffles=3, random_state=2)
        for name in (
            "score",
            "hindsight",
            "perfect_guidance",
            "shuffled_mean",
            "shuffled_sd",
            "adjusted",
            "policy_efficiency",
            "share_stopped_at_root",
        ):
            np.testing.assert_equal(getattr(row, name), getattr(found, name))
    assert sweep.to_rows()[0]["tree"] == "clean"
    assert sweep.column("clean", "score").tolist() == [row.score for row in sweep.rows[:2]]
    assert sweep.flips == ()
    assert "same at all these temperatures" in sweep.summary()


def test_the_ranking_flips_where_scores_cross():
    shop = load_amazon12()
    names = ("B", "C")
    deltas = np.geomspace(0.002, 0.02, 9)
    options = {"similarity": "precomputed"}
    trees = {name: shop.hierarchies[name] for name in names}
    sweep = delta_sweep(shop.similarity, trees, deltas, n_shuffles=0, **options)
    gaps = [
        hqs_score(shop.similarity, trees["B"], delta=delta, **options)
        - hqs_score(shop.similarity, trees["C"], delta=delta, **options)
        for delta in deltas
    ]
    crossings = [k for k in range(8) if gaps[k] * gaps[k + 1] < 0]
    assert [flip.low for flip in sweep.flips] == [deltas[k] for k in crossings]
    for flip, k in zip(sweep.flips, crossings, strict=True):
        assert flip.before == ("B" if gaps[k] > 0 else "C")
        assert f"{flip.after} overtakes {flip.before}" in " ".join(sweep.sentences())


def test_one_tree_has_no_ranking_and_equal_trees_no_flip():
    X, tree = clean_case()
    assert delta_sweep(X, tree, [0.1], n_shuffles=0).sentences() == []
    assert delta_sweep(X, {"a": tree, "b": tree}, [0.02, 0.1, 1.0], n_shuffles=0).flips == ()
    assert len(delta_sweep(np.eye(2), Hierarchy.from_children([[0, 1]], 2), n_shuffles=0).rows) == 13


def test_ranges_that_cannot_be():
    X, tree = clean_case()
    for deltas in ([], [0.1, 0.1]):
        with pytest.raises(ParameterError, match="deltas"):
            delta_sweep(X, tree, deltas)
    with pytest.raises(ParameterError, match=r"delta: got 0\.2; .* deltas"):
        delta_sweep(X, tree, [0.1], delta=0.2)
    with pytest.raises(ParameterError, match="delta: got -1"):
        delta_sweep(X, tree, [-1.0])
