"""Policies side by side on one hierarchy."""

import numpy as np
import pytest

from pomdp_hier.analysis.policy_comparison import ENGINE_POLICIES, compare_search_policies
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.policies import FixedLevel, paper_readings
from pomdp_hier.hqs.score import evaluate, hqs_score

SHOP = load_amazon12()
SETTINGS = {"similarity": "precomputed", "delta": 0.005}


@pytest.mark.parametrize("name", "ABCDE")
def test_the_values_are_the_scores_and_the_regret_is_to_the_ceiling(name):
    tree = SHOP.hierarchies[name]
    table = compare_search_policies(SHOP.similarity, tree, **SETTINGS)
    assert [row.name for row in table] == list(ENGINE_POLICIES)
    ceiling = hqs_score(SHOP.similarity, tree, policy="hindsight", **SETTINGS)
    for row in table:
        assert row.value == pytest.approx(hqs_score(SHOP.similarity, tree, policy=row.name, **SETTINGS), abs=1e-15)
        assert row.mdp_regret == pytest.approx(ceiling - row.value, abs=1e-15)
        assert row.mdp_regret >= -1e-15
    assert table.best.name == "hindsight"
    assert table.n == 12


def test_differences_are_paired_by_item():
    tree = SHOP.hierarchies["A"]
    table = compare_search_policies(SHOP.similarity, tree, ["one-step", "descend"], baseline="descend", **SETTINGS)
    one, other = (evaluate(SHOP.similarity, tree, policy=p, **SETTINGS).values for p in ("one-step", "descend"))
    low, high = table["one-step"].difference_interval
    half = 2.2009851600916384 * np.std(one - other, ddof=1) / np.sqrt(12)  # t at 97.5 % with 11 degrees of freedom
    assert table["one-step"].difference == pytest.approx(np.mean(one - other))
    assert (low, high) == pytest.approx((np.mean(one - other) - half, np.mean(one - other) + half))


def test_generic_policies_stand_beside_the_engines():
    tree = SHOP.hierarchies["E"]
    table = compare_search_policies(
        SHOP.similarity,
        tree,
        {"one-step": "one-step", **paper_readings(), "level 1": FixedLevel(1)},
        **SETTINGS,
    )
    assert table["search"].verdict == "same"
    assert round(table["expand"].value, 4) == 0.3573
    assert table["level 1"].seconds_per_decision > 0


def test_names_that_read_the_same_are_all_kept():
    X, tree = np.eye(2), Hierarchy.from_linkage([[0, 1, 1.0, 2]])
    assert [row.name for row in compare_search_policies(X, tree, policies=["one-step"] * 2)] == [
        "one-step",
        "one-step (2)",
    ]
    assert len(compare_search_policies(X, tree, policies={1: "one-step", "1": "descend"})) == 2


def test_policy_is_not_a_setting_here():
    with pytest.raises(ParameterError, match=r"^policy: got .optimal."):
        compare_search_policies(SHOP.similarity, SHOP.hierarchies["A"], policy="optimal", **SETTINGS)


def test_rows_of_zeros_are_warned_about_once():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    with pytest.warns(DataWarning, match="zeros") as caught:
        compare_search_policies(np.diag([1.0, 0.0, 1.0, 1.0]), tree, ["one-step", "descend"])
    assert len(caught) == 1


@pytest.mark.parametrize("policies", ["one-step", 3, None, {"one-step"}])
def test_policies_that_are_no_list_are_refused(policies):
    with pytest.raises(ParameterError, match="policies: got "):
        compare_search_policies(SHOP.similarity, SHOP.hierarchies["A"], policies, **SETTINGS)
