"""What is compared on a sample is scored on one draw of the items: paired item by item, with the interval of that."""

import math

import numpy as np
import pytest

from pomdp_hier import Hierarchy, appraise, compare, diagnose, evaluate
from pomdp_hier.analysis import compare_search_policies, delta_sweep, hqs_scorer, suggest_moves
from pomdp_hier.analysis.baselines import shuffled_scores
from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs.sampling import draw
from tests.planted import clean_case

DELTA = {"delta": 0.05}
SEEDS = [None, 1, np.random.default_rng(1)]


@pytest.fixture(scope="module")
def case():
    """Two trees over 400 items in 20 groups: the groups, and the groups with every seventh item elsewhere."""
    random = np.random.default_rng(0)
    label = random.integers(0, 20, 400)
    X = random.normal(size=(20, 8))[label] + 0.4 * random.normal(size=(400, 8))
    other = label.copy()
    moved = random.random(400) < 0.15
    other[moved] = random.integers(0, 20, moved.sum())
    return X, grouped(label), grouped(other)


def grouped(labels):
    groups = [np.flatnonzero(labels == k).tolist() for k in np.unique(labels)]
    return Hierarchy.from_children([*groups, [len(labels) + k for k in range(len(groups))]], len(labels))


@pytest.fixture(scope="module")
def gains(case):
    X, one, other = case
    return evaluate(X, one, **DELTA).values - evaluate(X, other, **DELTA).values


@pytest.mark.parametrize("seed", SEEDS, ids=["drawn", "number", "generator"])
def test_a_tree_against_itself_differs_by_nothing(case, seed):
    X, _, tree = case
    found = compare(X, {"a": tree, "b": tree}, measures=False, sample_size=60, random_state=seed, **DELTA)
    (pair,) = found.differences
    assert (pair.difference, pair.n_better, pair.n_worse) == (0, 0, 0)
    assert pair.low < 0 < pair.high  # 60 items of 400 say nothing about a loss of a few others
    assert found.results["a"].sampled_items.tolist() == found.results["b"].sampled_items.tolist()


@pytest.mark.parametrize("sampling", ["stratified", "simple"])
def test_differences_and_gains_of_a_sample_are_those_of_its_items(case, gains, sampling):
    X, one, other = case
    found = compare(
        X, {"A": one, "B": other}, measures=False, sample_size=60, random_state=1, sampling=sampling, **DELTA
    )
    (pair,) = found.differences
    sample = found.results["A"].sample
    assert pair.difference == pytest.approx(sample.estimate(gains[sample.items]), abs=1e-12)
    assert pair.standard_error == pytest.approx(sample.standard_error(gains[sample.items]), rel=1e-9)
    expected = sample.interval(gains[sample.items], low=-2.0, high=2.0)
    assert (pair.low, pair.high) == pytest.approx(expected, rel=1e-9)
    rows = found.gained_items("A", "B", 3)
    assert [gain for _, gain in rows] == sorted(gains[sample.items])[:-4:-1]
    assert all(gains[item] == pytest.approx(gain, abs=1e-12) for item, gain in rows)
    assert f"of {len(sample.items)} in the sample" in " ".join(found.sentences())


def test_a_half_width_holds_for_every_tree(case):
    X, one, other = case
    found = compare(X, {"A": one, "B": other}, measures=False, half_width=0.04, random_state=1, **DELTA)
    for result in found.results.values():
        low, high = result.interval()
        assert high - low <= 2 * 0.04
        assert result.sampled_items.tolist() == found.results["A"].sampled_items.tolist()
        assert result.n_sampled < 400


@pytest.mark.parametrize("seed", SEEDS, ids=["drawn", "number", "generator"])
@pytest.mark.parametrize("sampling", ["stratified", "simple"])
def test_no_policy_of_a_sample_beats_the_clairvoyant_one(case, seed, sampling):
    X, _, tree = case
    table = compare_search_policies(X, tree, sample_size=50, random_state=seed, sampling=sampling, **DELTA)
    assert all(row.mdp_regret >= -1e-12 for row in table)
    assert table["hindsight"].mdp_regret == 0


def test_policies_of_a_sample_are_estimated_as_the_sample_says(case):
    X, _, tree = case
    table = compare_search_policies(X, tree, ["one-step", "descend"], sample_size=50, random_state=4, **DELTA)
    one, other = (
        evaluate(X, tree, policy=policy, sample_size=50, random_state=4, **DELTA) for policy in ("one-step", "descend")
    )
    assert table["descend"].value == other.score
    assert table["one-step"].interval == one.interval()
    low, high = one.sample.interval(other.values - one.values, low=-2.0, high=2.0)
    gap = one.sample.estimate(other.values - one.values)
    assert table["descend"].difference == gap
    assert table["descend"].difference_interval == pytest.approx((low, high), rel=1e-12)
    verdict = "worse" if high < 0 else "better" if low > 0 else "inconclusive"
    assert table["descend"].verdict == verdict


def test_no_efficiency_of_a_sample_is_above_1(case):
    X, _, tree = case
    for seed in range(8):
        found = appraise(X, tree, n_shuffles=2, sample_size=20, random_state=seed, **DELTA)
        assert found.policy_efficiency <= 1
        assert found.adjusted <= 1
        result = found.result
        whole = diagnose(X, tree, **DELTA)
        assert found.perfect_guidance == pytest.approx(result.mean(whole.leaf_rewards[result.sampled_items]))
        assert result.n_sampled == 20


def test_shuffles_temperatures_and_trees_share_the_items(case):
    X, one, other = case
    full = shuffled_scores(X, one, n_shuffles=2, random_state=3, **DELTA)
    assert shuffled_scores(X, one, n_shuffles=2, random_state=3, sample_size=400, **DELTA) == pytest.approx(full)
    swept = delta_sweep(X, {"a": other, "b": other}, [0.05, 0.5], n_shuffles=1, sample_size=40)
    assert swept.column("a", "score").tolist() == swept.column("b", "score").tolist()
    assert not swept.flips


def test_what_cannot_be_paired_is_refused_with_the_reason():
    X, tree = clean_case()
    found = diagnose(X, tree, **DELTA)
    sampled = evaluate(X, tree, sample_size=20, **DELTA)
    for ask, words in (
        (lambda: diagnose(X, tree, sample_size=20), "sample_size: got 20; .*a diagnosis covers"),
        (lambda: diagnose(X, tree, sampled, **DELTA), "result: got a sample"),
        (lambda: suggest_moves(X, found, sample_size=20, **DELTA), "a move changes few items"),
        (lambda: delta_sweep(X, tree, half_width=0.1), "half_width: got 0.1"),
        (lambda: hqs_scorer(sample_size=20), "the same items for all models"),
        (lambda: hqs_scorer(sample_size=20, sampling="simple"), "an integer as random_state"),
        (lambda: hqs_scorer(half_width=0.1), "half_width: got 0.1"),
    ):
        with pytest.raises(ParameterError, match=words):
            ask()


def test_moves_are_checked_under_the_settings_of_the_diagnosis():
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=r"delta: got 0.1; expected 0.05"):
        suggest_moves(X, diagnose(X, tree, **DELTA), delta=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["stratified", "simple"])
@pytest.mark.parametrize("size", [30, 60, 120])
def test_the_paired_interval_covers_the_difference_of_all_items(case, gains, sampling, size):
    _, one, _ = case
    random, truth, draws = np.random.default_rng(5), math.fsum(gains) / 400, 5000
    covered = 0
    for _ in range(draws):
        sample = draw(one, size, sampling, random.permutation(400))
        low, high = sample.interval(gains[sample.items], low=-2.0, high=2.0)
        covered += low <= truth <= high
    # The gains are skewed: an interval of 30 simply sampled ones by Student's t alone would hold the truth in 93.6 %.
    assert covered / draws >= 0.945
