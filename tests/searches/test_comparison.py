"""Predicted and observed shares against counting by hand, scikit-learn and SciPy."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from pomdp_hier import Hierarchy, evaluate, expected_search_length, fit_delta, predicted_and_observed, read_searches
from pomdp_hier._intervals import bootstrap_interval, resampled, share_interval
from pomdp_hier.errors import ParameterError
from pomdp_hier.searches.comparison import COLUMNS, SUGGESTIONS
from tests.extras import optional
from tests.planted import clean_case
from tests.recorded import Recorder

metrics = optional("sklearn.metrics")
pd = optional("pandas")


@pytest.fixture(scope="module")
def case():
    X, tree = clean_case(items=3)
    X = X + np.random.default_rng(3).random(X.shape) * 0.9
    recorder = Recorder(X, tree)
    rows = recorder.rows(lambda level: 0.1, per_item=8, seed=2)
    return X, tree, rows, recorder


@pytest.fixture(scope="module")
def shown(case):
    X, tree, rows, _ = case
    return predicted_and_observed(X, tree, read_searches(rows, tree), delta=0.1, n_bootstrap=100)


def first_choices(tree, rows):
    """The node, the item and the child of each first step down from a node on the item's path."""
    last, seen = {}, set()
    for person, item, step, node in rows:
        at = tree.root if step == 0 else last[person, item]
        last[person, item] = node
        if tree.parent[node] == at and item in tree.items(at) and (person, item, at) not in seen:
            seen.add((person, item, at))
            yield at, item, node


@pytest.mark.parametrize(("by", "place"), [("node", 0), ("item", 1), ("child", 3)])
def test_the_shares_are_those_of_a_count(case, shown, by, place):
    _, tree, rows, recorder = case
    n, hits, predicted = Counter(), Counter(), Counter()
    for choice in first_choices(tree, rows):
        at, item, child = choice
        choice = (*choice, next(int(c) for c in tree.children(at) if item in tree.items(int(c))))
        weights = np.exp(recorder.similarities(item, at) / 0.1)
        own = [item in tree.items(int(c)) for c in tree.children(at)].index(True)
        n[choice[place]] += 1
        hits[choice[place]] += item in tree.items(child)
        predicted[choice[place]] += weights[own] / weights.sum()
    group = shown.group(by)
    assert group.keys.tolist() == sorted(n)
    assert group.n_choices.tolist() == [n[key] for key in sorted(n)]
    assert group.n_correct.tolist() == [hits[key] for key in sorted(n)]
    np.testing.assert_allclose(group.predicted, [predicted[key] / n[key] for key in sorted(n)], rtol=1e-9)
    for at in range(len(group.keys)):
        exact = stats.binomtest(int(group.n_correct[at]), int(group.n_choices[at])).proportion_ci(0.95)
        assert (group.low[at], group.high[at]) == pytest.approx(tuple(exact), abs=1e-12)


def test_predictions_are_calibrated_where_they_hold(case, shown):
    group = shown.nodes
    z = (group.n_correct - group.n_choices * group.predicted) / np.sqrt(group.n_choices * 0.25)
    assert np.abs(z).max() < 3.5


def test_found_and_hqs(case, shown):
    X, tree, rows, _ = case
    last = {(person, item): node for person, item, _, node in rows}
    found = Counter(item for (_, item), node in last.items() if node == tree.path(item)[-1])
    assert shown.n_found.tolist() == [found[item] for item in range(tree.n_items)]
    assert shown.n_searches.tolist() == [8] * tree.n_items
    np.testing.assert_array_equal(shown.hqs, evaluate(X, tree, delta=0.1).values)
    np.testing.assert_array_equal(shown.with_return, expected_search_length(X, tree, delta=0.1).values)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_silhouette_is_scikit_learns(case, form):
    X, tree, rows, _ = case
    found = predicted_and_observed(form(X), tree, read_searches(rows, tree), delta=0.1, n_bootstrap=20)
    wanted = metrics.silhouette_samples(X, tree.parent[: tree.n_items], metric="cosine")
    np.testing.assert_allclose(found.silhouette, wanted, atol=1e-12)
    units = X / np.linalg.norm(X, axis=1)[:, None]
    for item in range(tree.n_items):
        others = [k for k in np.flatnonzero(tree.parent[: tree.n_items] == tree.parent[item]) if k != item]
        centre = units[others].sum(axis=0)
        assert found.cosine[item] == pytest.approx(units[item] @ centre / np.linalg.norm(centre), abs=1e-12)


def test_the_correlations_are_scipys(shown):
    for one in shown.correlations:
        figure = shown.items.predicted if one.predictor == "predicted" else getattr(shown, one.predictor)
        outcome = shown.items.observed if one.outcome == "observed" else shown.n_found / shown.n_searches
        rho = stats.spearmanr(figure, outcome).statistic if np.ptp(outcome) else np.nan
        assert one.rho == pytest.approx(rho, abs=1e-12, nan_ok=True)
        assert np.isnan(rho) or one.low <= rho <= one.high


def planted():
    """Guidance and people at one node for four items: agree, label, place, features."""
    tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], 6)
    X = np.array([[1.0, 0.1], [1.0, 0.2], [0.2, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.1]])
    right = {0: 28, 1: 3, 2: 4, 3: 27, 4: 28, 5: 29}  # of 30
    rows = [(p, x, 0, 6 + ((x > 2) == (p < k))) for x, k in right.items() for p in range(30)]
    return X, tree, read_searches(rows, tree)


def test_misfits_and_what_they_suggest():
    X, tree, searches = planted()
    shown = predicted_and_observed(X, tree, searches, delta=0.2, n_bootstrap=20)
    codes = dict(zip(shown.items.keys.tolist(), shown.items.suggestions, strict=True))
    assert codes == {0: "", 1: "label", 2: "place", 3: "", 4: "", 5: "features"}
    rows = {row["id"]: row for row in shown.misfits("item")}
    assert set(rows) == {"1", "2", "5"}
    assert (rows["1"]["correct_child"], rows["1"]["wrong_child"], rows["1"]["n_wrong"]) == ("node 6", "node 7", 27)
    assert [row["misfit"] for row in shown.misfits("item")] == sorted(
        (r["misfit"] for r in rows.values()), reverse=True
    )
    assert len(shown.misfits("item", limit=1)) == 1
    assert any(SUGGESTIONS["place"] in line for line in shown.sentences())


def test_rows_and_frames_have_the_same_columns(case, shown):
    for by in COLUMNS:
        rows = shown.to_rows(by)
        assert tuple(rows[0]) == COLUMNS[by]
        frame = shown.to_frame(by)
        assert list(frame.columns) == list(COLUMNS[by])
        assert len(frame) == len(rows)
    assert isinstance(shown.to_frame(), pd.DataFrame)
    X, tree, records, _ = case
    assert fit_delta(X, tree, read_searches(records, tree), n_bootstrap=20).to_frame()["part"][0] == "all"


def test_names_are_those_that_are_given(shown):
    row = next(row for row in shown.to_rows("item", names=[f"thing {k}" for k in range(27)]) if row["id"] == "4")
    assert row["name"] == "thing 4"


def test_the_fitted_temperature_and_a_prior(case):
    X, tree, rows, _ = case
    searches = read_searches(rows, tree)
    shown = predicted_and_observed(X, tree, searches, nu=0.8, prior="sizes", n_bootstrap=20)
    assert shown.delta == pytest.approx(fit_delta(X, tree, searches, nu=0.8, prior="sizes", n_bootstrap=20).delta)


def test_a_matrix_of_similarities_has_no_rivals(case):
    X, tree, rows, _ = case
    units = X / np.linalg.norm(X, axis=1)[:, None]
    shown = predicted_and_observed(
        units @ units.T, tree, read_searches(rows, tree), similarity="precomputed", delta=0.1, n_bootstrap=20
    )
    assert np.isnan([*shown.cosine, *shown.silhouette]).all()
    assert not any("silhouette" in line for line in shown.sentences())


@pytest.mark.filterwarnings("ignore:.*without a click")
def test_searches_without_choices_have_no_rows(case):
    X, tree, _, _ = case
    empty = read_searches({"item": [0], "path": [""]}, tree)
    shown = predicted_and_observed(X, tree, empty, delta=0.1, n_bootstrap=20)
    assert shown.to_rows("node") == shown.to_rows("item") == []
    assert "0 first choices" in shown.sentences()[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0}, "delta: got 0"),
        ({"delta": "best"}, "delta: got 'best'"),
        ({"nu": -1}, "nu: got -1"),
        ({"prior": "flat"}, "prior: got 'flat'"),
        ({"confidence": 95}, "confidence: got 95"),
        ({"n_bootstrap": 1}, "n_bootstrap: got 1"),
    ],
)
def test_what_cannot_be_is_named(case, options, words):
    X, tree, rows, _ = case
    with pytest.raises(ParameterError, match=words):
        predicted_and_observed(X, tree, read_searches(rows, tree), **options)


def test_by_something_else_is_named(shown):
    with pytest.raises(ParameterError, match="by: got 'level'"):
        shown.to_rows("level")


def test_intervals_of_shares_are_exact_and_those_of_a_bootstrap_cover():
    low, high = share_interval(np.array([0, 5, 7, 0]), np.array([5, 5, 20, 0]), 0.9)
    for at, (k, n) in enumerate([(0, 5), (5, 5), (7, 20)]):
        exact = stats.binomtest(k, n).proportion_ci(0.9)
        assert (low[at], high[at]) == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert (low[3], high[3]) == (0, 1)
    rng, hits = np.random.default_rng(0), 0
    for _ in range(300):
        values = rng.normal(size=12)
        means = resampled(12, 300, rng) @ values / 12
        one, other = bootstrap_interval(means, 12, 0.95)
        hits += one <= 0 <= other
    assert hits >= 275  # 95 %: below with probability .01; plain percentiles cover about 91 %
    assert np.isnan(bootstrap_interval(np.array([1.0]), 1, 0.95)).all()
