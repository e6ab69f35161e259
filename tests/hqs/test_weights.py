"""Weights of items: the mean over searches as they come, which integer weights make that of values counted so often."""

import math
import re
import warnings

import numpy as np
import pytest

from pomdp_hier import (
    Hierarchy,
    appraise,
    compare,
    diagnose,
    evaluate,
    expected_search_length,
    hqs_samples,
    hqs_score,
    improve,
    load_features,
)
from pomdp_hier._intervals import effective_number, mean_interval, standard_error, weighted_mean
from pomdp_hier.analysis import (
    apply_moves,
    best_cut,
    compare_search_policies,
    delta_sweep,
    hqs_scorer,
    score_by_levels,
    suggest_moves,
)
from pomdp_hier.analysis.baselines import shuffled_scores
from pomdp_hier.analysis.levels import without_levels
from pomdp_hier.distributed import evaluate_distributed
from pomdp_hier.errors import CheckpointError, ParameterError
from pomdp_hier.hqs.sampling import draw_weighted
from pomdp_hier.improvement import apply_edits
from pomdp_hier.improvement.held_out import measured
from pomdp_hier.report import write_comparison, write_report
from tests.extras import INSTALLED_ENGINES, few
from tests.planted import clean_case, misplaced

X, CLEAN = clean_case()
TREE, _ = misplaced(misplaced(CLEAN, 3, 7)[0], 31, 0)
OTHER = CLEAN
N = TREE.n_items
COUNTS = np.random.default_rng(0).integers(0, 6, N)
COUNTS[3] = 4
DELTA = {"delta": 0.1}
SETTINGS = {
    "one-step": {},
    "optimal": {"policy": "optimal"},
    "hindsight": {"policy": "hindsight"},
    "distances": {"similarity": "negative_euclidean"},
    "singletons": {"enter_own_singleton": False},
    "growth": {"nu": 1.5, "tie": "search"},
    "reward": {"reward": lambda size, n_items: 1 - size / n_items},
}


def counted_mean(values) -> float:
    """The mean of the values, each counted as often as its weight says."""
    repeated = np.repeat(np.asarray(values, dtype=float), COUNTS)
    return math.fsum(repeated) / len(repeated)


@pytest.mark.parametrize("engine", INSTALLED_ENGINES)
@pytest.mark.parametrize("name", SETTINGS)
def test_integer_weights_are_values_counted_so_often_under_every_setting(engine, name):
    settings = {**DELTA, **SETTINGS[name], "engine": engine}
    plain, weighted = evaluate(X, TREE, **settings), evaluate(X, TREE, sample_weight=COUNTS, **settings)
    np.testing.assert_array_equal(weighted.values, plain.values)
    assert weighted.score == pytest.approx(counted_mean(plain.values), abs=1e-12)
    assert abs(weighted.score - plain.score) > 1e-4
    assert hqs_score(X, TREE, sample_weight=COUNTS, **settings) == weighted.score
    values = hqs_samples(X, TREE, sample_weight=COUNTS, **settings)
    assert np.average(values, weights=COUNTS) == pytest.approx(weighted.score, abs=1e-12)


def test_integer_weights_are_values_counted_so_often_in_every_figure():
    plain = evaluate(X, TREE, **DELTA)
    found = appraise(X, TREE, n_shuffles=2, sample_weight=COUNTS, **DELTA)
    seeds = np.random.SeedSequence(0).spawn(2)
    shuffles = [TREE.permuted(np.random.default_rng(seed).permutation(N)) for seed in seeds]
    scores = [counted_mean(hqs_samples(X, shuffle, **DELTA)) for shuffle in shuffles]
    assert found.shuffled_mean == pytest.approx(np.mean(scores), abs=1e-12)
    np.testing.assert_allclose(
        shuffled_scores(X, TREE, n_shuffles=2, sample_weight=COUNTS, **DELTA), scores, atol=1e-12
    )
    hindsight = evaluate(X, TREE, policy="hindsight", **DELTA).values
    assert found.hindsight == pytest.approx(counted_mean(hindsight), abs=1e-12)
    assert found.share_stopped_at_root == pytest.approx(counted_mean(plain.stop_levels == 0), abs=1e-12)
    rewards = diagnose(X, TREE, **DELTA).leaf_rewards
    assert found.perfect_guidance == pytest.approx(counted_mean(rewards), abs=1e-12)
    sweep = delta_sweep(X, TREE, [0.05, 0.1], n_shuffles=1, sample_weight=COUNTS)
    expected = [counted_mean(hqs_samples(X, TREE, delta=delta)) for delta in (0.05, 0.1)]
    np.testing.assert_allclose(sweep.column("tree", "score"), expected, atol=1e-12)
    levels = score_by_levels(X, TREE, sample_weight=COUNTS, **DELTA)
    expected = [counted_mean(hqs_samples(X, without_levels(TREE, kept), **DELTA)) for kept in levels.n_levels]
    np.testing.assert_allclose(levels.scores, expected, atol=1e-12)
    cut = best_cut(X, TREE, sample_weight=COUNTS, **DELTA)
    assert cut.score == pytest.approx(counted_mean(hqs_samples(X, cut.tree, **DELTA)), abs=1e-12)
    lengths = expected_search_length(X, TREE, sample_weight=COUNTS, **DELTA)
    plain_lengths = expected_search_length(X, TREE, **DELTA)
    assert lengths.score == pytest.approx(counted_mean(plain_lengths.values), abs=1e-12)
    assert lengths.mean_length == pytest.approx(counted_mean(plain_lengths.lengths), abs=1e-12)


def test_comparisons_weigh_means_and_use_the_effective_number_of_items():
    found = compare(X, {"one": TREE, "two": OTHER}, measures=False, sample_weight=COUNTS, **DELTA)
    gain = hqs_samples(X, TREE, **DELTA) - hqs_samples(X, OTHER, **DELTA)
    pair, shares = found.differences[0], COUNTS / COUNTS.sum()
    assert pair.difference == pytest.approx(counted_mean(gain), abs=1e-12)
    n = 1 / (shares**2).sum()
    error = math.sqrt(n / (n - 1) * (shares**2 * (gain - shares @ gain) ** 2).sum())
    assert pair.standard_error == pytest.approx(error, rel=1e-12)
    order = [item for item, _ in found.gained_items("two", "one", N)]
    assert order == [int(i) for i in np.argsort(gain * COUNTS, kind="stable") if (gain * COUNTS)[i] < -1e-9]
    table = compare_search_policies(X, TREE, ["one-step", "descend"], sample_weight=COUNTS, **DELTA)
    for row in table:
        assert row.value == pytest.approx(counted_mean(hqs_samples(X, TREE, policy=row.name, **DELTA)), abs=1e-12)
    assert table.rarest > compare_search_policies(X, TREE, ["one-step"], **DELTA).rarest  # fewer items count


def test_formulas_of_weighted_means_become_those_of_equal_weights():
    values = np.random.default_rng(1).random(9)
    assert mean_interval(values, 0.9, weights=np.full(9, 3.5)) == pytest.approx(mean_interval(values, 0.9), abs=1e-14)
    assert standard_error(values, np.ones(9)) == pytest.approx(values.std(ddof=1) / 3, rel=1e-13)
    assert effective_number(np.array([2.0, 2.0, 0.0, 2.0])) == pytest.approx(3.0)
    assert weighted_mean(values, np.eye(9)[4] * 1e-300) == values[4]
    assert math.isnan(standard_error(values, np.eye(9)[4]))


@pytest.mark.parametrize("weights", [np.full(N, 0.1), np.ones(N, dtype=int), dict.fromkeys(range(N), 7), [True] * N])
def test_equal_weights_change_nothing(weights):
    plain, weighted = (appraise(X, TREE, n_shuffles=2, sample_weight=given, **DELTA) for given in (None, weights))
    assert {**weighted.to_dict(), "result": weighted.result.to_json()} == {
        **plain.to_dict(),
        "result": plain.result.to_json(),
    }
    sampled = [
        evaluate(X, TREE, sample_size=20, random_state=1, sample_weight=given, **DELTA) for given in (None, weights)
    ]
    assert sampled[0].to_json() == sampled[1].to_json()
    nearly = np.ones(N) + 1e-13 * np.arange(N)
    assert hqs_score(X, TREE, sample_weight=nearly, **DELTA) == pytest.approx(plain.score, abs=1e-12)


def test_a_diagnosis_is_the_mean_of_those_of_single_items():
    """Every sum is linear in the weights, so that it follows from the diagnoses in which one item alone counts."""
    found = diagnose(X, TREE, sample_weight=COUNTS, **DELTA)
    sums = ("expected_arrivals", "n_choices", "n_correct", "n_stops", "wrong_branch_loss", "early_stop_loss")
    one = {name: np.zeros(TREE.n_nodes) for name in (*sums, "node_weights")}
    for item in np.flatnonzero(COUNTS):
        alone = diagnose(X, TREE, sample_weight=np.eye(N)[item], **DELTA)
        for name, total in one.items():
            total += getattr(alone, name) * COUNTS[item] / COUNTS.sum()
    for name, total in one.items():
        np.testing.assert_allclose(getattr(found, name), total, rtol=0, atol=1e-10)
    plain = diagnose(X, TREE, **DELTA)
    lost = (found.wrong_branch_loss.sum() + found.early_stop_loss.sum()) / N
    assert lost == pytest.approx(counted_mean(plain.leaf_rewards - plain.result.values), abs=1e-12)
    assert found.first_branch_accuracy == pytest.approx(
        appraise(X, TREE, n_shuffles=0, sample_weight=COUNTS, **DELTA).first_branch_accuracy, abs=1e-12
    )
    for node in (TREE.root, *TREE.children(TREE.root).tolist()):
        below = np.isin(np.arange(N), TREE.items(node)) * COUNTS
        report = found.node_report(node)
        assert found.node_weights[node] == pytest.approx(below.sum() * N / COUNTS.sum())
        stops = below @ (plain.result.stop_nodes == node) / below.sum()
        assert (report.n_items, report.stop_rate) == (TREE.sizes[node], pytest.approx(stops, abs=1e-12))


def test_lost_items_are_in_the_order_of_weight_times_loss():
    weights = np.ones(N)
    weights[[3, 31]] = 1, 50
    plain, found = diagnose(X, TREE, **DELTA), diagnose(X, TREE, sample_weight=weights, **DELTA)
    assert {lost.item for lost in plain.lost_items()} >= {3, 31}
    first = found.lost_items()[0]
    loss = plain.leaf_rewards[31] - plain.result.values[31]
    assert (first.item, first.cost) == (31, pytest.approx(50 / weights.sum() * loss))
    weights[31] = 0
    found = diagnose(X, TREE, sample_weight=weights, **DELTA)
    assert (found.lost_items(N)[-1].item, found.lost_items(N)[-1].cost) == (31, 0)
    moves = suggest_moves(X, found, sample_weight=weights, **DELTA)
    assert 3 in [move.node for move in moves]
    assert 31 not in [move.node for move in moves]
    for move in moves:
        gain = hqs_score(X, apply_moves(TREE, [move]), sample_weight=weights, **DELTA) - found.result.score
        assert move.gain == pytest.approx(gain, abs=1e-12)
    with pytest.raises(ParameterError, match=r"^sample_weight: got None"):
        suggest_moves(X, found, **DELTA)


@pytest.mark.slow
def test_edits_gain_by_the_weights():
    found = improve(X, TREE, objective="hqs", folds=2, sample_weight=COUNTS, **DELTA)
    plain = improve(X, TREE, objective="hqs", folds=2, **DELTA)
    assert found.edits
    before = counted_mean(hqs_samples(X, TREE, **DELTA))
    for at, edit in enumerate(found.edits, start=1):
        after = counted_mean(hqs_samples(X, apply_edits(TREE, found.edits[:at]), **DELTA))
        assert edit.gain == pytest.approx(after - before, abs=1e-12)
        before = after
    assert found.after.score == pytest.approx(before, abs=1e-12)
    assert found.gain != pytest.approx(plain.gain, abs=1e-6)
    assert math.isfinite(found.held_out.gain)
    same = improve(X, TREE, objective="hqs", folds=2, sample_weight=np.full(N, 3), **DELTA)
    assert (repr(same), same.edits) == (repr(plain), plain.edits)
    weights = np.ones(N)
    weights[3] = 0  # nobody looks for it: its move gains nothing
    assert 3 in [edit.nodes[0] for edit in plain.edits]
    ignored = improve(X, TREE, objective="hqs", folds=0, sample_weight=weights, **DELTA)
    assert all(edit.gain > 0 for edit in ignored.edits)
    gains = {edit.nodes: edit.gain for edit in ignored.edits}
    assert gains.get((3,), 0.0) < next(edit.gain for edit in plain.edits if edit.nodes == (3,))
    assert measured(np.array([1.0, 2.0, 9.0]), 0.9, np.array([1.0, 3.0, 0.0])).gain == pytest.approx(1.75)


def test_weights_follow_rows_that_are_joined_by_id(named):
    """Where the rows of X are in another order, the edits are those of rows in the order of the items."""
    table = load_features(named / "X.csv", weight_column="sales")
    tree = Hierarchy(TREE.parent, N, labels=[f"i{i}" for i in range(N)] + list(range(N, TREE.n_nodes)))
    settings = {**DELTA, "folds": 0, "kinds": ("move", "merge", "split")}
    joined = improve(table, tree, sample_weight=table.weights, **settings)
    ordered = improve(X, tree, sample_weight=COUNTS, **settings)
    assert [edit.nodes for edit in joined.edits] == [edit.nodes for edit in ordered.edits]
    assert joined.after.score == pytest.approx(ordered.after.score, abs=1e-12)


def test_an_item_of_weight_zero_stays_in_the_tree():
    weights = np.ones(N)
    weights[5:] = 0
    found = evaluate(X, TREE, sample_weight=weights, **DELTA)
    assert found.score == pytest.approx(evaluate(X, TREE, **DELTA).values[:5].mean(), abs=1e-12)
    report = diagnose(X, TREE, sample_weight=weights, **DELTA)
    empty = int(TREE.parent[20])
    assert math.isnan(report.node_report(empty).arrival_rate)
    assert report.node_report(empty).n_items == TREE.sizes[empty]
    with pytest.raises(ParameterError, match=r"^items: got items of weight 0"):
        evaluate(X, TREE, items=[7, 8], sample_weight=weights, **DELTA)


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "got"),
    [
        (np.ones(N - 1), r"an array of shape \(44,\); expected \(45,\)"),
        (np.ones((N, 1)), r"an array of shape \(45, 1\)"),
        (2.0, r"an array of shape \(\)"),
        (["many"] * N, "45 numbers"),
        (["1"] * N, "45 numbers"),
        ([1, "1", *[1] * (N - 2)], "45 numbers"),
        (np.array(["1"] * N, dtype=object), "45 numbers"),
        (dict.fromkeys(range(N), "1"), "45 numbers"),
        (np.ones(N, dtype="M8[D]"), "45 numbers"),
        ([*[1.0] * (N - 1), [1.0]], "45 numbers"),
        (np.ones(N) * 1j, "45 numbers"),
        ([1, 1, math.nan, *[1] * (N - 3)], "nan in row 2;"),
        ([1, None, *[1] * (N - 2)], "nan in row 1;"),
        ([math.inf, *[1] * (N - 1)], "inf in row 0"),
        ([*[1] * (N - 1), -0.5], r"-0.5 in row 44"),
        (np.zeros(N), "zeros"),
        ({**dict.fromkeys(range(N), 1.0), 7: -1.0}, "-1.0 in item 7;"),
        ({0: 1.0}, "44 items without a weight"),
        (dict.fromkeys(range(N + 1), 1.0), "1 weight without an item"),
    ],
)
@pytest.mark.parametrize("function", [evaluate, appraise, diagnose, expected_search_length])
def test_weights_that_are_no_weights_are_rejected_in_one_place(function, weights, got):
    with pytest.raises(ParameterError, match=f"^sample_weight: got .*{got}"):
        function(X, TREE, sample_weight=weights, **DELTA)
    with pytest.raises(ValueError, match="sample_weight"):  # as in scikit-learn
        function(X, TREE, sample_weight=weights, **DELTA)


# --- routes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path):
    """A table whose rows are in another order than the items of the tree, and the tree as paths."""
    order = np.random.default_rng(2).permutation(N)
    rows = ["id," + ",".join(f"f{k}" for k in range(X.shape[1])) + ",sales"]
    rows += [f"i{item}," + ",".join(map(repr, X[item].tolist())) + f",{COUNTS[item]}" for item in order.tolist()]
    (tmp_path / "X.csv").write_text("\n".join(rows) + "\n")
    paths = [f"i{item},{TREE.parent[TREE.parent[item]]} > {TREE.parent[item]}" for item in range(N)]
    (tmp_path / "tree.csv").write_text("id,path\n" + "\n".join(paths) + "\n")
    return tmp_path


def test_weights_of_a_table_follow_its_rows_to_the_items(named):
    table = load_features(named / "X.csv", weight_column="sales")
    assert "sales" not in table.columns
    tree = Hierarchy.from_paths({f"i{i}": f"{TREE.parent[TREE.parent[i]]} > {TREE.parent[i]}" for i in range(N)})
    plain = load_features(named / "X.csv", weight_column="sales").matrix
    found = evaluate(table, tree, sample_weight=table.weights, **DELTA)
    by_name = evaluate(table, tree, sample_weight={f"i{i}": COUNTS[i] for i in range(N)}, **DELTA)
    values = dict(zip(tree.item_labels, found.values, strict=True))
    assert plain.shape == X.shape
    wrong = table.weights.copy()
    wrong[4] = math.nan
    with pytest.raises(ParameterError, match=rf"^sample_weight: got nan in row 4 \(item '{table.ids[4]}'\);"):
        evaluate(table, tree, sample_weight=wrong, **DELTA)
    assert found.score == by_name.score == pytest.approx(counted_mean([values[f"i{i}"] for i in range(N)]), abs=1e-12)


def test_a_sample_of_all_items_is_exact_and_one_of_some_is_unbiased():
    plain = evaluate(X, TREE, **DELTA)
    whole = evaluate(X, TREE, sample_size=1.0, sample_weight=COUNTS, **DELTA)
    assert whole.n_sampled == np.count_nonzero(COUNTS)
    assert (whole.n_items, whole.standard_error) == (N, 0.0)
    assert whole.score == pytest.approx(counted_mean(plain.values), abs=1e-12)
    assert whole.interval() == (whole.score, whole.score)
    grown = evaluate(X, TREE, half_width=1e-6, sample_weight=COUNTS, random_state=3, **DELTA)
    assert grown.score == pytest.approx(whole.score, abs=1e-12)
    part = evaluate(X, TREE, sample_size=12, random_state=5, sample_weight=COUNTS, **DELTA)
    assert (part.n_sampled, part.n_items) == (12, N)
    np.testing.assert_array_equal(part.sample_weight, COUNTS[part.sampled_items])
    low, high = part.interval()
    assert low < part.score < high


@pytest.mark.parametrize("method", ["simple", "stratified"])
@pytest.mark.parametrize("size", few(2, [1, 8, 3, 9]))
def test_estimates_and_variances_of_a_weighted_sample_are_unbiased(method, size):
    """Over many draws, the mean of the estimates is the weighted mean, and that of the variances their variance."""
    random = np.random.default_rng(size)
    weights = np.array([40.0, 0.0, 8.0, 5.0, 5.0, 3.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.0])
    values = random.uniform(-1, 1, 12)
    tree = Hierarchy.from_children([range(12)], 12)
    draws = []
    for _ in range(300):
        sample = draw_weighted(tree, size, method, random.permutation(12), random.exponential(size=12), weights)
        assert len(np.unique(sample.items)) == len(sample.items) == min(size, 10)
        assert weights[sample.items].all()
        assert sample.estimate(np.ones(len(sample.items))) == pytest.approx(1.0, abs=1e-14)
        draws.append((sample.estimate(values[sample.items]), sample.standard_error(values[sample.items]) ** 2))
    estimates, variances = np.array(draws).T
    error = estimates.std() / math.sqrt(len(draws))
    assert estimates.mean() == pytest.approx(np.average(values, weights=weights), abs=4 * error + 1e-12)
    if size > 1:  # one item of a stratum has no variance
        spread = np.std((estimates - estimates.mean()) ** 2 - variances) / math.sqrt(len(draws))
        assert variances.mean() == pytest.approx(estimates.var(), abs=4 * spread + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple", "stratified"])
@pytest.mark.parametrize("size", [10, 30, 100, 300])
@pytest.mark.parametrize("kind", ["pareto", "lognormal", "zeros"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.03, 0.1])
def test_intervals_cover_under_heavy_tailed_weights(kind, share, size, method):
    random, n_items, draws = np.random.default_rng(3), 2000, 1000
    values = random.uniform(0.1, 0.9, n_items) if kind == "zeros" else np.full(n_items, 0.6)
    weights = {
        "pareto": random.pareto(1.1, n_items) + 0.01,
        "lognormal": np.exp(2 * random.normal(size=n_items)),
        "zeros": np.where(random.random(n_items) < 0.5, 0.0, random.pareto(1.5, n_items)),
    }[kind]
    order = random.permutation(n_items)
    values[order[weights[order].cumsum() <= share * weights.sum()]] = -1.0  # this share of the searches is lost
    true, tree, hits = np.average(values, weights=weights), Hierarchy.from_children([range(n_items)], n_items), 0
    for _ in range(draws):
        drawn = random.permutation(n_items), random.exponential(size=n_items)
        sample = draw_weighted(tree, size, method, *drawn, weights)
        low, high = sample.interval(values[sample.items])
        hits += low <= true + 1e-12 and true - 1e-12 <= high
    assert hits / draws >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / draws)


def test_a_checkpoint_belongs_to_its_weights(tmp_path):
    pytest.importorskip("joblib")
    settings = {**DELTA, "engine": "generic", "checkpoint": tmp_path / "run"}
    small, tree = X[:4], Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    weights = np.array([3, 0, 1, 1])
    first = evaluate(small, tree, sample_weight=weights, **settings)
    assert evaluate(small, tree, sample_weight=weights, **settings).score == first.score
    assert first.score == pytest.approx(np.average(hqs_samples(small, tree, **DELTA), weights=weights), abs=1e-12)
    for other in (None, weights[::-1]):
        with pytest.raises(CheckpointError, match="other data or settings"):
            evaluate(small, tree, sample_weight=other, **settings)


def test_partitions_weigh_items_as_one_process_does(tmp_path, named):
    np.save(tmp_path / "X.npy", X)
    expected = evaluate(X, TREE, sample_weight=COUNTS, **DELTA).score
    for size in (5, 1000):
        found = evaluate_distributed(tmp_path / "X.npy", TREE, partition_items=size, sample_weight=COUNTS, **DELTA)
        assert found.score == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ParameterError, match=r"^sample_weight: got nan in row 0"):
        evaluate_distributed(tmp_path / "X.npy", TREE, sample_weight=[math.nan, *COUNTS[1:]], **DELTA)
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = load_features(named / "X.csv", weight_column="sales")
    columns = {
        "id": list(table.ids),
        **{f"f{k}": table.matrix[:, k] for k in range(X.shape[1])},
        "sales": table.weights,
    }
    pq.write_table(pyarrow.table(columns), tmp_path / "X.parquet")
    tree = Hierarchy(TREE.parent, N, labels=[f"i{i}" for i in range(N)] + list(range(N, TREE.n_nodes)))
    found = evaluate_distributed(tmp_path / "X.parquet", tree, weight_column="sales", **DELTA)
    assert found.score == pytest.approx(expected, abs=1e-12)
    again = load_features(tmp_path / "X.parquet", weight_column="sales")
    np.testing.assert_array_equal(again.weights, table.weights)
    assert again.columns == table.columns


def test_a_scorer_of_scikit_learn_takes_weights_once():
    class Fitted:
        hierarchy_ = TREE

    expected = hqs_score(X, TREE, sample_weight=COUNTS, **DELTA)
    assert hqs_scorer(sample_weight=COUNTS, **DELTA)(Fitted(), X) == expected
    assert hqs_scorer(**DELTA)(Fitted(), X, sample_weight=COUNTS) == expected
    with pytest.raises(ParameterError, match=r"^sample_weight: got weights here"):
        hqs_scorer(sample_weight=COUNTS, **DELTA)(Fitted(), X, sample_weight=COUNTS)


def test_reports_show_weighted_figures():
    weights = COUNTS.copy()
    weights[TREE.items(int(TREE.parent[20]))] = 0
    found = appraise(X, TREE, n_shuffles=1, sample_weight=weights, **DELTA)
    diagnosis = diagnose(X, TREE, found.result, sample_weight=weights, **DELTA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = write_report(diagnosis, appraisal=found)
        trees = {"one": TREE, "two": OTHER}
        both = compare(X, trees, measures=False, sample_weight=weights, **DELTA)
        diagnoses = {
            name: diagnose(X, tree, both.results[name], sample_weight=weights, **DELTA) for name, tree in trees.items()
        }
        other = write_comparison(both, diagnoses)
    assert f"{found.score:z.4f}" in page
    assert "effective number of items" in page
    assert f"{both.results['two'].score:z.4f}" in other
    assert not re.search(r"[\[,:] ?NaN", page + other)


def test_text_and_json_name_the_weights():
    result = evaluate(X, TREE, sample_weight=COUNTS, **DELTA)
    assert f"effective number of items {effective_number(COUNTS):.6g}" in result.summary()
    assert result.columns()["sample_weight"].tolist() == COUNTS.tolist()
