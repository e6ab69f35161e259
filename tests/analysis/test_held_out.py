"""Policies that are chosen on some items and compared on the others."""

import numpy as np
import pytest

from pomdp_hier import Hierarchy, evaluate
from pomdp_hier.analysis import compare_search_policies
from pomdp_hier.errors import ParameterError
from tests.planted import clean_case

X, TREE = clean_case()


class ClearlyBest:
    def __init__(self, share):
        self.share = share

    def descend(self, eta, sizes, rewards, level):
        return eta.max(axis=1) >= self.share


CANDIDATES = [ClearlyBest(share) for share in (0.2, 0.5, 0.7, 0.9, 0.99)]


@pytest.mark.parametrize("weights", [None, np.arange(TREE.n_items) + 1.0], ids=["equal", "weighted"])
def test_the_best_candidate_of_the_other_items_is_compared_on_these(weights):
    held = np.arange(0, TREE.n_items, 3)
    rest = np.setdiff1d(np.arange(TREE.n_items), held)
    settings = {"delta": 0.3} | ({} if weights is None else {"sample_weight": weights})
    table = compare_search_policies(X, TREE, {"usual": "one-step", "own": CANDIDATES}, held_out=held, **settings)
    values = [evaluate(X, TREE, delta=0.3, policy=policy).values for policy in CANDIDATES]
    by = np.ones(TREE.n_items) if weights is None else weights
    best = int(np.argmax([np.average(value[rest], weights=by[rest]) for value in values]))
    assert table.record["chosen own"] == best
    assert table["own"].value == pytest.approx(np.average(values[best][held], weights=by[held]), abs=1e-12)
    usual = evaluate(X, TREE, delta=0.3).values
    assert table["usual"].value == pytest.approx(np.average(usual[held], weights=by[held]), abs=1e-12)
    assert table.n == len(held)
    assert "held-out" in str(table)


def test_a_share_is_a_random_half_and_always_the_same():
    tables = [compare_search_policies(X, TREE, {"own": CANDIDATES}, held_out=0.5, delta=0.3) for _ in range(2)]
    assert tables[0].n == round(TREE.n_items / 2)
    assert tables[0]["own"].value == tables[1]["own"].value


@pytest.mark.parametrize("wrong", [0, 1, 1.5, "half", [], [0, 0], [-1], [10**6], range(TREE.n_items), [[0, 1]], True])
def test_wrong_items_are_named(wrong):
    with pytest.raises(ParameterError, match="held_out: got"):
        compare_search_policies(X, TREE, ["one-step"], held_out=wrong, delta=0.3)


def test_candidates_need_items_that_had_no_part():
    for given in ({"own": CANDIDATES}, {"own": []}):
        with pytest.raises(ParameterError, match="candidates for 'own'"):
            compare_search_policies(X, TREE, given, delta=0.3)
    with pytest.raises(ParameterError, match="with a sample"):
        compare_search_policies(X, TREE, ["one-step"], held_out=0.5, sample_size=12, delta=0.3)


@pytest.mark.parametrize(("held_out", "weights"), [([0], [0, 1, 1, 1]), ([3], [0, 0, 0, 1])])
def test_each_side_needs_a_weight(held_out, weights):
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    policies = {"chosen": ["one-step", "descend"]}
    with pytest.raises(ParameterError, match="held_out"):
        compare_search_policies(np.eye(4) + 0.1, tree, policies, held_out=held_out, sample_weight=weights)
