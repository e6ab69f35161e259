"""Samples of the items: what they say about all items holds, and they score nothing that they do not need."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs import score as score_module
from pomdp_hier.hqs.sampling import Sample, draw
from pomdp_hier.hqs.score import evaluate, hqs_score
from tests.extras import few
from tests.planted import clean_case


@pytest.fixture(scope="module")
def case():
    """405 items whose values differ by their place in the tree: some subgroups are scattered, most are not."""
    X, tree = clean_case(top=3, middle=9, items=15, seed=3)
    rng = np.random.default_rng(0)
    scattered = np.concatenate([np.arange(135), np.arange(270, 330)])
    X[scattered] = X[rng.permutation(scattered)]
    return X, tree


@pytest.fixture(scope="module")
def full(case):
    return evaluate(*case, delta=0.05)


def simple(items, n_items):
    return Sample(np.asarray(items), np.zeros(len(items), dtype=int), np.array([n_items]), "simple")


def test_the_formulas_of_a_simple_sample_are_the_textbook_ones():
    values = np.array([0.1, -0.4, 0.7, 0.2, 0.9])
    sample = simple([0, 2, 3, 5, 8], 20)
    assert sample.estimate(values) == pytest.approx(values.mean(), abs=1e-15)
    error = math.sqrt((1 - 5 / 20) * values.var(ddof=1) / 5)
    assert sample.standard_error(values) == pytest.approx(error, rel=1e-14)
    t = 2.7764451051977934 * error  # 4 degrees of freedom
    low, _ = sample.interval(values)
    # Gaffke's bound is a quantile of the mean under weights uniform on the simplex, with -1 as a sixth value.
    weights = np.random.default_rng(0).dirichlet(np.ones(6), 200_000)
    bound = values.mean() - np.quantile(weights @ np.append(values, -1.0), 0.025)
    beyond = bound - t / math.sqrt(1 - 5 / 20)
    assert values.mean() - low == pytest.approx(t + beyond * -0.25 / math.log(0.75), rel=0.01)


@pytest.mark.parametrize("n", [10, 30, 300])
@pytest.mark.parametrize("lost", [0, 1, 3])
def test_losses_are_bounded_as_by_clopper_and_pearson(n, lost):
    values = np.append(np.full(n - lost, 0.6), np.full(lost, -1.0))
    low, _ = simple(range(n), 10**9).interval(values)
    assert (0.6 - low) / 1.6 == pytest.approx(binomtest(lost, n).proportion_ci(0.95, "exact").high, rel=5e-3)


def test_the_items_that_were_not_sampled_are_the_limit():
    values = np.array([0.5, 0.5, 0.5])
    assert simple([0, 1, 2], 4).interval(values) == pytest.approx((0.125, 0.625))
    assert simple([0], 2).interval(values[:1]) == pytest.approx((-0.25, 0.75))
    assert simple([0, 1, 2], 3).interval(values) == (0.5, 0.5)


def population(share: float, spread: bool, n_items: int = 2000) -> np.ndarray:
    """Values of items of which a share is lost, in no order."""
    random = np.random.default_rng(3)
    values = random.uniform(0.1, 0.9, n_items) if spread else np.full(n_items, 0.6)
    values[random.permutation(n_items)[: round(share * n_items)]] = -1.0
    return values


def covered(values: np.ndarray, size: int, method: str, draws: int) -> float:
    """The share of the intervals of so many samples that hold the mean."""
    random, tree = np.random.default_rng(4), Hierarchy.from_children([range(len(values))], len(values))
    hits = 0
    for _ in range(draws):
        sample = draw(tree, size, method, random.permutation(len(values)))
        low, high = sample.interval(values[sample.items])
        hits += low <= values.mean() + 1e-12 and values.mean() - 1e-12 <= high
    return hits / draws


@pytest.mark.parametrize("share", few(1, [0.03, 0.0, 0.01, 0.1]))
def test_intervals_cover_where_a_few_items_are_lost(share):
    assert covered(population(share, spread=False), 30, "simple", 200) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple", "stratified"])
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("size", [10, 30, 100, 300])
def test_intervals_of_every_size_cover_where_a_few_items_are_lost(share, spread, method, size):
    assert covered(population(share, spread), size, method, 1000) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_the_formulas_of_a_stratified_sample_weigh_its_strata():
    values = np.array([1.0, 3.0, 10.0, 20.0, 60.0])
    sample = Sample(np.arange(5), np.array([0, 0, 1, 1, 1]), np.array([4, 16]), "stratified")
    assert sample.estimate(values) == pytest.approx(0.2 * 2 + 0.8 * 30, abs=1e-14)
    variances = 0.2**2 * (1 - 2 / 4) * 2 / 2, 0.8**2 * (1 - 3 / 16) * 700 / 3
    assert sample.standard_error(values) == pytest.approx(math.sqrt(sum(variances)), rel=1e-14)


def test_strata_that_were_drawn_whole_add_nothing_to_the_error():
    sample = Sample(np.arange(4), np.array([0, 1, 1, 2]), np.array([1, 2, 1]), "stratified")
    values = np.array([5.0, -1.0, 3.0, 0.5])
    assert sample.standard_error(values) == 0.0
    assert sample.margin_of_error(values) == 0.0
    assert sample.estimate(values) == pytest.approx(values.mean(), abs=1e-15)


def test_one_item_of_a_larger_stratum_leaves_the_error_unknown():
    sample = Sample(np.arange(3), np.array([0, 0, 1]), np.array([5, 5]), "stratified")
    values = np.array([0.1, 0.2, 0.3])
    assert math.isnan(sample.standard_error(values))
    assert sample.interval(values) == pytest.approx((-0.64, 0.76))  # seven items that may have any value


@pytest.mark.parametrize("method", ["simple", "stratified"])
@pytest.mark.parametrize("n_items", [1, 2, 3, 7, 50])
def test_every_size_draws_that_many_distinct_items_with_a_known_error(method, n_items):
    tree = Hierarchy.from_children([range(n_items)], n_items)
    ranks = np.random.default_rng(1).permutation(n_items)
    values = np.random.default_rng(2).random(n_items)
    for size in range(1, n_items + 1):
        sample = draw(tree, size, method, ranks)
        assert len(sample.items) == size
        assert (np.diff(sample.items) > 0).all()
        assert sample.n_items == n_items
        drawn = np.bincount(sample.strata, minlength=len(sample.stratum_sizes))
        assert (drawn <= sample.stratum_sizes).all()
        assert math.isnan(sample.standard_error(values[sample.items])) == (size == 1 < n_items)
    assert draw(tree, n_items, method, ranks).estimate(values) == math.fsum(values) / n_items


def test_strata_are_pieces_of_the_leaf_order(case):
    _, tree = case
    sample = draw(tree, 60, "stratified", np.random.default_rng(0).permutation(tree.n_items))
    stratum_of_position = np.repeat(np.arange(len(sample.stratum_sizes)), sample.stratum_sizes)
    np.testing.assert_array_equal(sample.strata, stratum_of_position[tree.starts[sample.items]])
    assert np.bincount(sample.strata).min() >= 3


@pytest.mark.parametrize("method", ["simple", "stratified"])
@pytest.mark.parametrize("fraction", [0.1, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.05, 0.3))])
@pytest.mark.slow
def test_95_percent_intervals_hold_the_score_of_all_items_that_often(case, full, method, fraction):
    _, tree = case
    rng = np.random.default_rng(7)
    truth, draws = full.score, 2000
    size = round(fraction * tree.n_items)
    estimates, held, widths, t_widths = np.empty(draws), 0, np.empty(draws), np.empty(draws)
    for at in range(draws):
        sample = draw(tree, size, method, rng.permutation(tree.n_items))
        values = full.values[sample.items]
        low, high = sample.interval(values)
        estimates[at], widths[at], t_widths[at] = sample.estimate(values), high - low, 4 * sample.standard_error(values)
        held += low <= truth <= high
    # Three standard errors of a share of 95 % in 2,000 are 1.5 points.
    assert held / draws >= 0.935
    assert widths.mean() <= (1.45 if size == 20 else 1.25) * t_widths.mean()
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / math.sqrt(draws)


def test_strata_make_the_error_smaller(case, full):
    _, tree = case
    errors = {}
    for method in ("simple", "stratified"):
        rng = np.random.default_rng(8)
        samples = [draw(tree, 60, method, rng.permutation(tree.n_items)) for _ in range(500)]
        errors[method] = np.std([sample.estimate(full.values[sample.items]) for sample in samples])
    assert errors["stratified"] < 0.95 * errors["simple"]


def test_a_sample_scores_its_items_as_the_whole_does_and_no_others(case, full, monkeypatch):
    X, tree = case
    asked = []
    run_engine = score_module.run_engine

    def spy(task, items, engine, advance):
        asked.extend(items.tolist())
        return run_engine(task, items, engine, advance)

    monkeypatch.setattr(score_module, "run_engine", spy)
    result = evaluate(X, tree, delta=0.05, sample_size=40, random_state=5)
    assert sorted(asked) == result.sampled_items.tolist()
    np.testing.assert_allclose(result.values, full.values[result.sampled_items], atol=1e-12)
    np.testing.assert_array_equal(result.stop_nodes, full.stop_nodes[result.sampled_items])
    assert (result.n_sampled, result.n_items) == (40, tree.n_items)
    assert result.score == result.estimate == result.sample.estimate(result.values)
    low, high = result.interval()
    assert low < result.score < high


@pytest.mark.parametrize("settings", [{"engine": "numpy"}, {"engine": "generic"}, {"policy": "optimal"}])
def test_every_route_samples(settings):
    X, tree = clean_case()
    whole = evaluate(X, tree, delta=0.05, **settings)
    part = evaluate(X, tree, delta=0.05, sample_size=0.2, random_state=2, **settings)
    assert part.n_sampled == 9
    np.testing.assert_allclose(part.values, whole.values[part.sampled_items], atol=1e-12)


def test_the_seed_fixes_the_draw_and_is_told_when_none_was_given(case):
    X, tree = case
    first = evaluate(X, tree, sample_size=0.1)
    again = evaluate(X, tree, sample_size=0.1, random_state=first.config["random_state"])
    np.testing.assert_array_equal(first.sampled_items, again.sampled_items)
    other = evaluate(X, tree, sample_size=0.1, random_state=1)
    assert first.sampled_items.tolist() != other.sampled_items.tolist()
    from_generator = evaluate(X, tree, sample_size=0.1, random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(other.sampled_items, from_generator.sampled_items)


@pytest.mark.parametrize("sampling", ["simple", "stratified"])
def test_a_half_width_is_reached_with_few_items_and_said_to_be_nominal(case, full, sampling):
    X, tree = case
    result = evaluate(X, tree, delta=0.05, half_width=0.05, sampling=sampling, random_state=4)
    low, high = result.interval()
    assert (high - low) / 2 <= 0.05
    assert 96 <= result.n_sampled < tree.n_items
    np.testing.assert_allclose(result.values, full.values[result.sampled_items], atol=1e-12)
    assert result.config["coverage"] == "nominal"
    assert "nominal" in result.summary()
    # No larger than needed by much: four fifths of it would not have reached the target.
    smaller = draw(tree, round(0.8 * result.n_sampled), sampling, np.random.default_rng(4).permutation(tree.n_items))
    assert smaller.margin_of_error(full.values[smaller.items]) > 0.05


def test_a_half_width_out_of_reach_ends_with_every_item(case, full):
    X, tree = case
    result = evaluate(X, tree, delta=0.05, half_width=1e-9)
    assert result.n_sampled == tree.n_items
    assert result.score == full.score
    assert result.interval() == (full.score, full.score)


def test_no_item_is_scored_twice_on_the_way_to_a_target(case, monkeypatch):
    X, tree = case
    asked = []
    run_engine = score_module.run_engine
    monkeypatch.setattr(
        score_module,
        "run_engine",
        lambda task, items, engine, advance: (asked.extend(items.tolist()), run_engine(task, items, engine, advance))[
            1
        ],
    )
    evaluate(X, tree, delta=0.05, half_width=0.03, random_state=1)
    assert len(asked) == len(set(asked))


def test_results_say_what_was_sampled(case):
    X, tree = case
    result = evaluate(X, tree, sample_size=50, random_state=1)
    assert repr(result).endswith("50 of 405 items)")
    record = json.loads(result.to_json())
    assert record["n_items"] == 405
    assert record["sampled_items"] == result.sampled_items.tolist()
    assert record["interval"] == list(result.interval())
    assert record["config"]["sampling"] == "stratified"
    assert result.to_frame()["item"].tolist() == result.sampled_items.tolist()
    assert "a stratified sample of 405 items" in result.summary()


def test_a_single_item_has_an_estimate_and_no_known_error(case):
    X, tree = case
    result = evaluate(X, tree, sample_size=1, random_state=1)
    assert result.score == result.values[0]
    assert math.isnan(result.standard_error)
    low, high = result.interval()
    assert -1 < low < -0.99
    assert 0.99 < high < 1
    assert json.loads(result.to_json())["standard_error"] is None


def test_without_a_sample_there_is_no_error(full):
    assert full.sample is None
    assert full.standard_error == 0.0
    assert full.interval() == (full.score, full.score)
    assert full.n_sampled == full.n_items == len(full.sampled_items)


def test_a_fraction_gives_two_items_at_least():
    X, tree = clean_case()
    assert evaluate(X, tree, sample_size=0.001).n_sampled == 2
    assert evaluate(X, tree, sample_size=1.0).n_sampled == tree.n_items
    assert -1 <= hqs_score(X, tree, sample_size=0.5) <= 1
    assert evaluate(X, tree, sample_size=np.float32(0.5)).n_sampled == evaluate(X, tree, sample_size=0.5).n_sampled


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sample_size": 0}, "sample_size: got 0"),
        ({"sample_size": 46}, "sample_size: got 46"),
        ({"sample_size": 1.5}, "a fraction of the items as a float above 0 and up to 1.0"),
        ({"sample_size": True}, "sample_size: got True"),
        ({"sample_size": float("nan")}, "sample_size: got nan"),
        ({"sample_size": 5, "sampling": "cluster"}, "sampling: got 'cluster'"),
        ({"sample_size": 5, "half_width": 0.1}, "expected one of them"),
        ({"half_width": 0.0}, "half_width: got 0.0"),
        ({"half_width": "0.1"}, "half_width: got '0.1'"),
        ({"half_width": True}, "half_width: got True"),
        ({"sample_size": 5, "random_state": -1}, "random_state: got -1"),
        ({"sample_size": 5, "random_state": "now"}, "random_state: got 'now'"),
    ],
)
def test_refusals_name_the_value_and_the_remedy(settings, words):
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=words):
        evaluate(X, tree, **settings)


def test_levels_outside_0_to_1_are_refused(case):
    X, tree = case
    for level in (95, "x", None, True):
        for settings in ({"sample_size": 10}, {}):
            with pytest.raises(ParameterError, match=f"level: got {level!r}"):
                evaluate(X, tree, **settings).interval(level)
