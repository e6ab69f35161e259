"""`fit_delta` against a flat likelihood, a calibration, and searches drawn with known temperatures."""

import inspect
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from pomdp_hier import Hierarchy, evaluate, fit_delta, predicted_and_observed, read_searches
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hqs import calibrate_delta
from tests.planted import clean_case
from tests.recorded import Recorder


@pytest.fixture(scope="module")
def case():
    X, tree = clean_case()
    return X + np.random.default_rng(3).random(X.shape) * 0.8, tree


@pytest.fixture(scope="module")
def drawn(case):
    recorder = Recorder(*case)
    rows = recorder.rows(lambda level: 0.08 * 0.7**level, per_item=6, seed=1)
    return recorder.flat, read_searches(rows, case[1])


def in_ten_lines(flat, nu=1.0, prior="uniform"):
    """The most likely delta of flat choices, by a general minimizer."""

    def loss(log_delta):
        total = 0.0
        for level, similarities, sizes, chosen in flat:
            z = similarities / (np.exp(log_delta) * nu**level) + (np.log(sizes) if prior == "sizes" else 0.0)
            total += np.logaddexp.reduce(z) - z[chosen]
        return total

    found = minimize_scalar(loss, bounds=(np.log(1e-3), np.log(1.0)), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


@pytest.mark.parametrize(("nu", "prior"), [(1.0, "uniform"), (0.7, "uniform"), (1.4, "sizes")])
def test_it_is_the_maximum_of_the_flat_likelihood(case, drawn, nu, prior):
    flat, searches = drawn
    fit = fit_delta(*case, searches, nu=nu, prior=prior, n_bootstrap=20, folds=2)
    assert fit.delta == pytest.approx(in_ten_lines(flat, nu, prior), rel=1e-6)
    assert fit.parts[0].n_choices == len(flat)


def test_levels_and_parts_are_fits_of_their_choices_alone(case, drawn):
    flat, searches = drawn
    fit = fit_delta(*case, searches, n_bootstrap=50)
    by_level = {part.part: part for part in fit.levels}
    for level in (0, 1):
        alone = in_ten_lines([choice for choice in flat if choice[0] == level])
        assert by_level[f"level {level}"].delta == pytest.approx(alone, rel=1e-6)
    assert by_level["level 1"].times_root == pytest.approx(by_level["level 1"].delta / by_level["level 0"].delta)
    counts = {part.part: part.n_choices for part in fit.parts}
    assert counts["on path"] + counts["off path"] == counts["first"] + counts["repeated"] == counts["all"]
    assert counts["off path"] > 0 < counts["repeated"]


def test_a_nu_below_1_is_found(case, drawn):
    fit = fit_delta(*case, drawn[1], nu="fitted", n_bootstrap=50)
    low, high = next(part for part in fit.parts if part.part == "level 1").times_root_interval
    assert 0.5 < fit.nu < 0.9
    assert low < 0.7 < high < 1.2
    assert fit.delta == pytest.approx(in_ten_lines(drawn[0], fit.nu), rel=1e-6)
    assert fit.interval[0] < 0.08 < fit.interval[1]


def test_everyone_right_is_the_calibration(case):
    X, tree = case
    rows = [(0, item, step, int(node)) for item in range(tree.n_items) for step, node in enumerate(tree.path(item))]
    fit = fit_delta(X, tree, read_searches(rows, tree), n_bootstrap=20)
    assert fit.delta == pytest.approx(calibrate_delta(X, tree).delta, rel=1e-9)


def test_the_gain_is_the_flat_one(case, drawn):
    flat, searches = drawn
    fit = fit_delta(*case, searches, n_bootstrap=20)
    uniform, sizes = fit.gain_at(0.05)
    gains = []
    for _, similarities, size, chosen in flat:
        z = similarities / 0.05
        log = z[chosen] - np.logaddexp.reduce(z)
        gains.append((log + np.log(len(z)), log - np.log(size[chosen] / size.sum())))
    assert (uniform, sizes) == pytest.approx(np.mean(gains, axis=0), rel=1e-9)
    # Held out, one temperature for all but some items loses little.
    best = fit.gain_at(fit.delta)
    assert best[0] - 0.02 < fit.parts[0].over_uniform.value < best[0]


def test_random_clicks_are_not_described(case):
    X, tree = case
    searches = read_searches(Recorder(X, tree).rows(lambda level: 1e9, 4, seed=5), tree)
    fit = fit_delta(X, tree, searches, n_bootstrap=200)
    assert fit.verdict != "described"
    assert fit.parts[0].over_uniform.low < 0.001
    wrong = fit_delta(-X, tree, searches, similarity=lambda rows, view: rows[:, 0], n_bootstrap=50)
    assert wrong.verdict in ("not described", "inconclusive")


def test_a_guidance_that_points_away_is_said_not_to_describe(case):
    X, tree = case
    rows = [(p, item, 0, int(tree.children(tree.root)[(item // 15 + 1 + p) % 3])) for item in range(45) for p in (0, 1)]
    fit = fit_delta(X, tree, read_searches(rows, tree), n_bootstrap=50)
    assert (fit.verdict, fit.parts[0].at_bound) == ("not described", "upper")
    assert any("does not describe these searchers: no gain over uniform" in line for line in fit.sentences())
    assert any("upper bound of delta" in line for line in fit.sentences())


def test_the_fit_is_an_argument_everywhere(case, drawn):
    X, tree = case
    fit = fit_delta(X, tree, drawn[1], nu=0.7, n_bootstrap=20)
    assert evaluate(X, tree, **fit.settings).config["nu"] == 0.7
    assert predicted_and_observed(X, tree, drawn[1], **fit.settings, n_bootstrap=20).delta == fit.delta


def test_every_option_with_every_other(case, drawn):
    X, tree = case
    some = drawn[1].select(drawn[1].items % 9 == 0)
    for similarity, nu, prior in product(("cosine", "negative_euclidean"), (0.7, 1.0, "fitted"), (None, "sizes")):
        fit = fit_delta(X, tree, some, similarity=similarity, nu=nu, prior=prior, n_bootstrap=20, folds=3)
        low, high = fit.interval
        assert low <= fit.delta * 1.0001, (similarity, nu, prior)
        assert fit.delta <= high * 1.0001, (similarity, nu, prior)
        used = {"similarity": similarity, "prior": prior, "nu": fit.nu}
        shown = predicted_and_observed(X, tree, some, **used, n_bootstrap=20)
        assert shown.delta == pytest.approx(fit.delta, rel=1e-6)


def test_the_seed_is_the_whole_of_chance(case, drawn):
    once, again, other = (fit_delta(*case, drawn[1], n_bootstrap=30, random_state=seed) for seed in (1, 1, 2))
    assert once.to_rows() == again.to_rows() != other.to_rows()
    assert once.delta == other.delta


def test_one_item_has_no_interval():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    searches = read_searches([(p, 0, 1, 4 + (p == 0)) for p in range(5)], tree)
    fit = fit_delta([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], tree, searches, n_bootstrap=20)
    assert all(np.isnan([*fit.interval, fit.parts[0].over_uniform.value]))
    assert fit.verdict == "inconclusive"


def test_one_level_says_nothing_of_nu():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    searches = read_searches([(p, i, 1, 4 + (p == i) % 2) for p in range(5) for i in range(4)], tree)
    with pytest.warns(DataWarning, match="says nothing about nu"):
        fit = fit_delta([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], tree, searches, nu="fitted", n_bootstrap=20)
    assert fit.nu == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nu": 0}, "nu: got 0"),
        ({"nu": "best"}, "nu: got 'best'"),
        ({"prior": "items"}, "prior: got 'items'"),
        ({"bounds": (1, 0.1)}, r"bounds: got \(1, 0.1\)"),
        ({"folds": 1}, "folds: got 1"),
        ({"n_bootstrap": 2}, "n_bootstrap: got 2"),
        ({"confidence": 1}, "confidence: got 1"),
        ({"similarity": "cosinus"}, "similarity: got 'cosinus'"),
        ({"random_state": -1}, "random_state: got -1"),
    ],
)
def test_what_cannot_be_is_named(case, drawn, options, words):
    with pytest.raises(ParameterError, match=words):
        fit_delta(*case, drawn[1], **options)


def test_searches_of_another_tree_or_without_choices_are_named(case, drawn):
    X, tree = case
    with pytest.raises(ParameterError, match="searches: got a list"):
        fit_delta(X, tree, [(0, 0, 0, 0)])
    flat = Hierarchy.from_children([list(range(45))], 45)
    with pytest.raises(ParameterError, match="searches: got those of Hierarchy"):
        fit_delta(X, flat, drawn[1])
    with pytest.raises(ParameterError, match="searches: got no clicks"):
        fit_delta(X, flat, read_searches([(0, 0, 0, 45)], flat))
    assert "searches" in inspect.signature(fit_delta).parameters


@pytest.mark.slow
def test_intervals_cover_the_temperatures_of_the_levels():
    X, tree = clean_case(items=7)
    X += np.random.default_rng(3).random(X.shape) * 0.8
    recorder, true = Recorder(X, tree), (0.06, 0.06 * 0.8)
    hits, logs = np.zeros(2), []
    for seed in range(100):
        searches = read_searches(recorder.rows(lambda level: true[level], per_item=5, seed=seed), tree)
        fit = fit_delta(X, tree, searches, n_bootstrap=200, random_state=seed)
        hits += [part.interval[0] <= delta <= part.interval[1] for part, delta in zip(fit.levels, true, strict=True)]
        logs.append([np.log(part.delta / delta) for part, delta in zip(fit.levels, true, strict=True)])
    spread = np.std(logs, axis=0, ddof=1)
    assert np.all(np.abs(np.mean(logs, axis=0)) < 0.25 * spread)
    assert np.all(hits >= 89)  # 95 %: below 89 of 100 with probability .004


def test_an_interval_at_a_bound_is_the_bound():
    tree = Hierarchy.from_children([[0, 1, 2], [3, 4], [5, 6, 7], [8, 9], [10, 11]], 8)
    clicks = [(k, k % 8, 1, int(tree.children(tree.root)[k % 2])) for k in range(24)]
    fit = fit_delta(np.random.default_rng(0).random((8, 3)), tree, read_searches(clicks, tree), n_bootstrap=20)
    assert (fit.delta, *fit.interval) == (10, 10, 10)
