"""Baselines: what each figure is by another route, chance at zero, and what is said in words."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from pomdp_hier.analysis.baselines import adjusted_score, appraise, shuffled_scores
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.guidance import paper_reward
from pomdp_hier.hqs.paper import PAPER_TABLE, load_amazon12
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import QUESTIONS, expected_search_length
from tests import scorer_oracle as oracle
from tests.extras import optional
from tests.planted import clean_case

datasets = optional("sklearn.datasets")


@given(oracle.trees(), st.integers(0, 99), st.booleans())
@pytest.mark.slow
def test_every_figure_by_another_route(tree, seed, enter):
    X = np.random.default_rng(seed).normal(size=(tree.n_items, 3))
    options = {"delta": 0.3, "enter_own_singleton": enter, "engine": "numpy"}
    found = appraise(X, tree, n_shuffles=2, **options)
    plain = oracle.Oracle(tree, oracle.cosine(X), delta=0.3, enter_own_singleton=enter)
    best = oracle.Oracle(tree, oracle.cosine(X), delta=0.3, enter_own_singleton=enter, policy="hindsight")
    down = evaluate(X, tree, policy="descend", **options)
    assert found.score == pytest.approx(np.mean([plain.score(x).value for x in range(tree.n_items)]), abs=1e-9)
    assert found.hindsight == pytest.approx(np.mean([best.score(x).value for x in range(tree.n_items)]), abs=1e-12)
    assert found.perfect_guidance == pytest.approx(down.rewards.mean(), abs=1e-12)
    assert found.no_tree == evaluate(X, tree, policy="search-root", **options).score == 0
    assert found.hindsight >= max(found.score, 0) - 1e-12
    node = tree.root
    while len(tree.children(node)) == 1:
        node = int(tree.children(node)[0])
    if not len(tree.children(node)):
        assert math.isnan(found.first_branch_accuracy)
        return
    right = 0
    for x in range(tree.n_items):
        sims = {child: plain.sim(x, tree.items(child).tolist()) for child in tree.children(node).tolist()}
        own = next(child for child in sims if x in tree.items(child))
        right += sims[own] >= max(sims.values()) - 1e-12
    assert found.first_branch_accuracy == pytest.approx(right / tree.n_items)


@pytest.mark.parametrize("sample", [{}, {"sample_size": 20}])
def test_the_search_length_beside_the_score(sample):
    X, tree = clean_case()
    found = appraise(X, tree, n_shuffles=1, delta=0.05, random_state=4, **sample)
    seed = {"random_state": 4} if sample else {}
    for cost, figure in ((0, found.search_length_score), (1, found.search_length_score_with_labels)):
        alone = expected_search_length(X, tree, delta=0.05, label_cost=cost, **sample, **seed)
        assert figure == pytest.approx(alone.score, rel=1e-12)
    assert found.search_length.sentence() in found.sentences()
    assert all(question in found.summary() for question in QUESTIONS.values())
    assert found.to_dict()["search_length_score"] == found.search_length_score


@pytest.mark.slow
def test_the_average_adjusted_score_of_shuffled_trees_is_zero():
    X, tree = clean_case(items=12)
    rng = np.random.default_rng(5)
    adjusted = []
    for seed in range(20):
        shuffled = tree.permuted(rng.permutation(tree.n_items))
        adjusted.append(appraise(X, shuffled, delta=0.02, n_shuffles=20, random_state=seed).adjusted)
    error = np.std(adjusted, ddof=1) / math.sqrt(20) * math.sqrt(1 + 1 / 20)
    assert abs(np.mean(adjusted)) < 3 * error
    assert 0 < error < 0.05
    assert appraise(X, tree, delta=0.02, n_shuffles=20).adjusted > 0.9


def test_digits():
    X = datasets.load_digits().data
    tree = Hierarchy.from_linkage(linkage(X, "average"), singletons=False)
    found = appraise(X, tree, delta=0.005, n_shuffles=8)
    assert found.score == pytest.approx(0.24, abs=0.02)  # the linkage's ties may fall otherwise
    assert found.hindsight == pytest.approx(0.63, abs=0.02)
    assert found.shuffled_mean == pytest.approx(-0.54, abs=0.2)
    assert found.first_branch_accuracy == pytest.approx(0.925, abs=0.02)


def test_shuffles_depend_on_the_seed_alone_and_only_add():
    X, tree = clean_case()
    few = shuffled_scores(X, tree, n_shuffles=3, random_state=4)
    np.testing.assert_array_equal(few, shuffled_scores(X, tree, n_shuffles=5, random_state=4)[:3])
    assert not np.array_equal(few, shuffled_scores(X, tree, n_shuffles=3, random_state=5))
    found = appraise(X, tree, n_shuffles=3, random_state=4)
    assert found.shuffled_mean == pytest.approx(few.mean())
    assert found.shuffled_sd == pytest.approx(few.std(ddof=1))


def test_ratios_without_a_denominator_are_nan_and_none_without_shuffles():
    assert math.isnan(adjusted_score(0.1, 0.5, 0.52))
    flat = Hierarchy.from_children([[0, 1, 2]], 3)
    found = appraise(np.eye(3), flat, n_shuffles=0)
    assert math.isnan(found.shuffled_mean)
    assert math.isnan(found.adjusted)
    assert math.isnan(found.policy_efficiency)
    assert found.score == found.perfect_guidance == 0
    for wrong in ({"n_shuffles": -1}, {"min_denominator": 0.0}):
        with pytest.raises(ParameterError, match=str(next(iter(wrong)))):
            appraise(np.eye(3), flat, **wrong)


def test_one_item_is_worth_nothing_to_search_for():
    found = appraise([[1.0]], Hierarchy.from_children([], 1), similarity="negative_euclidean", n_shuffles=2)
    assert found.score == found.shuffled_mean == found.perfect_guidance == found.hindsight == 0
    assert "less than 0.05" in " ".join(found.sentences())


def test_a_reward_of_ones_own_moves_the_root():
    X, tree = clean_case()
    found = appraise(X, tree, n_shuffles=0, reward=lambda size, n_items: 1.5 - size / n_items)
    assert found.no_tree == 0.5
    assert found.perfect_guidance == pytest.approx(1.5 - 5 / 45)


def test_the_paper_in_words():
    shop = load_amazon12()
    options = {"similarity": "precomputed", **PAPER_TABLE}
    worst = appraise(shop.similarity, shop.hierarchies["D"], **options)
    assert worst.score == pytest.approx(-0.8477, abs=1e-4)
    text = " ".join(worst.sentences())
    assert "worse with this tree than without" in text
    assert "stopping at the root would have a higher value" in text
    assert "more than two standard deviations below" in text
    assert "shuffled items" in worst.summary()
    assert "does not rank bad trees" in text
    assert worst.to_dict()["score"] == worst.score


def test_a_good_tree_is_not_called_a_wreck():
    X, tree = clean_case()
    found = appraise(X, tree, delta=0.02, n_shuffles=3)
    assert not [line for line in found.sentences() if "bad trees" in line or "of the values are" in line]
    assert "does not rank bad trees" in found.summary().splitlines()[0]


def test_chance_is_told_of_on_the_side_where_the_score_stands():
    X, tree = clean_case()
    found = appraise(X, tree, delta=0.02, n_shuffles=0)

    def said(score):
        figures = {"score": score, "shuffled_mean": 0.1, "shuffled_median": 0.1, "shuffled_sd": 0.05, "n_shuffles": 9}
        text = " ".join(replace(found, shuffled_share_stopped_at_root=0.0, adjusted=0.5, **figures).sentences())
        return [words for words in ("deviations below", "within two standard") if words in text]

    assert [said(score) for score in (-0.01, 0.01, 0.19, 0.21)] == [
        ["deviations below"],
        ["within two standard"],
        ["within two standard"],
        [],
    ]


def test_staying_at_the_root_is_no_merit():
    X, tree = clean_case()
    found = appraise(X, tree, delta=3.0, n_shuffles=4)
    text = " ".join(found.sentences())
    assert found.share_stopped_at_root == 1
    assert "100% of the searches stop at the root" in text
    assert "100% of the values are less than 0.02 from 0" in text
    assert "not evidence of order" in text
    assert float(paper_reward(5, 45)) == pytest.approx(found.perfect_guidance)
