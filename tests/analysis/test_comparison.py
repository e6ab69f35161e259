"""Comparisons: paired differences by SciPy's own test, ranks, measures as called alone, and what is said."""

import warnings

import numpy as np
import pytest
from scipy.stats import ttest_rel

from pomdp_hier import measures
from pomdp_hier.analysis.baselines import appraise
from pomdp_hier.analysis.comparison import MEASURES, compare
from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.analysis.moves import suggest_moves
from pomdp_hier.analysis.settings_sweep import delta_sweep
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.inputs import calibrate_delta
from pomdp_hier.hqs.paper import PAPER_TABLE, load_amazon12
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import QUESTIONS, expected_search_length
from pomdp_hier.measures.tree_distances import untangle
from tests.planted import clean_case, misplaced, swapped

PAPER = {"similarity": "precomputed", **PAPER_TABLE}


def test_paired_differences_are_those_of_the_t_test():
    shop = load_amazon12()
    found = compare(shop.similarity, shop.hierarchies, confidence=0.9, **PAPER)
    assert len(found.differences) == 10
    for pair in found.differences:
        one, other = found.results[pair.one].values, found.results[pair.other].values
        interval = ttest_rel(one, other).confidence_interval(0.9)
        assert (pair.low, pair.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
        assert pair.difference == pytest.approx(found.results[pair.one].score - found.results[pair.other].score)
        assert pair.n_better == (one > other + 1e-9).sum()
        assert pair.n_worse == (other > one + 1e-9).sum()
        assert pair.distinguishable == (interval.low > 0 or interval.high < 0)
    assert found.ranking == ("A", "E", "B", "C", "D")
    assert {name: row["hqs"] for name, row in found.ranks().items()} == {"A": 1, "E": 2, "B": 3, "C": 4, "D": 5}


def test_measures_are_those_called_alone():
    X, tree = clean_case()
    broken = swapped(tree)[0]
    labels = [(k // 15, k // 5) for k in range(45)]
    found = compare(X, {"clean": tree, "swapped": broken}, labels=labels, delta=0.05)
    figures = found.measures["swapped"]
    assert figures["hai"] == measures.hai(broken, tree)
    assert figures["robinson_foulds"] == measures.robinson_foulds(broken, tree) > 0
    assert figures["triplet_distance"] == float(measures.triplet_distance(broken, tree)) > 0
    assert figures["bakers_gamma"] == measures.bakers_gamma(broken, tree) < 1
    assert figures["tree_cophenetic_correlation"] == measures.cophenetic_correlation(tree, broken) < 1
    assert figures["entanglement"] == measures.entanglement(*untangle(broken, tree))
    assert figures["dasgupta_cost"] == measures.dasgupta_cost(X, broken)
    assert figures["moseley_wang_revenue"] == measures.moseley_wang_revenue(X, broken)
    assert figures["tree_sampling_divergence"] == measures.tree_sampling_divergence(X, broken)
    assert figures["cophenetic_correlation"] == measures.cophenetic_correlation(X, broken)
    assert figures["dendrogram_purity"] == measures.dendrogram_purity(broken, labels)
    assert figures["class_f_score"] == measures.class_f_score(broken, labels).f
    assert {*found.to_rows()[0]} == {"tree", "rank", *MEASURES}
    assert found.ranks()["clean"] == dict.fromkeys(
        [
            "hqs",
            "search_length_score",
            "search_length_score_with_labels",
            "dasgupta_cost",
            "moseley_wang_revenue",
            "tree_sampling_divergence",
            "cophenetic_correlation",
            "dendrogram_purity",
            "class_f_score",
        ],
        1,
    ) | {"dendrogram_purity": 1}
    lengths = {"search_length_score", "search_length_score_with_labels"}
    assert set(found.to_rows()[0]) == {"tree", "rank", "hqs", *lengths, *figures}
    cheap = compare(X, {"clean": tree}, quadratic_limit=10).measures["clean"]
    assert np.isnan(cheap["hai"])
    assert np.isnan(cheap["tree_sampling_divergence"])
    assert compare(X, {"clean": tree}, measures=False).measures == {}


def test_negative_similarities_leave_the_divergence_out():
    X, tree = clean_case()
    assert np.isnan(compare(X - 0.5, {"tree": tree}).measures["tree"]["tree_sampling_divergence"])


@pytest.mark.parametrize("sample", [{}, {"sample_size": 20, "random_state": 3}])
def test_the_search_length_beside_the_score(sample):
    X, tree = clean_case()
    trees = {"clean": tree, "swapped": swapped(tree)[0]}
    found = compare(X, trees, delta=0.05, measures=False, **sample)
    for row in found.to_rows()[: 1 if sample else None]:  # the strata are those of the first tree
        for key, cost in (("search_length_score", 0), ("search_length_score_with_labels", 1)):
            alone = expected_search_length(X, trees[row["tree"]], delta=0.05, label_cost=cost, **sample)
            assert row[key] == pytest.approx(alone.score, rel=1e-12)
    (pair,) = found.length_differences
    gains = found.search_lengths["clean"].values - found.search_lengths["swapped"].values
    assert pair.difference == pytest.approx(found.search_lengths["clean"].mean(gains), rel=1e-12)
    assert pair.low < pair.difference < pair.high


def test_who_gains_and_what_is_said():
    X, tree = clean_case()
    broken, _ = misplaced(tree, 0, -1)
    found = compare(X, {"broken": broken, "clean": tree}, reference="clean", delta=0.02)
    assert found.gained_items("clean", "broken", 1)[0][0] == 0
    gains = found.results["clean"].values - found.results["broken"].values
    listed = found.gained_items("clean", "broken", 100)
    assert dict(listed) == pytest.approx({k: gains[k] for k in np.flatnonzero(gains > 1e-9)})
    assert [gain for _, gain in listed] == sorted((gain for _, gain in listed), reverse=True)
    assert found.measures["clean"]["hai"] == 1
    low, high = found.differences[0].low, found.differences[0].high  # of broken - clean, which is negative
    said, by_length, questions, unseen = found.sentences()
    assert by_length.startswith("By the search length score with labels, clean and broken: inconclusive")
    assert all(question in questions for question in QUESTIONS.values())
    assert "of up to 7.87% may be missing from 45 items" in unseen
    assert said.startswith(f"clean and broken: inconclusive, difference {gains.mean():.4f} ")
    assert f"(95% interval {-high:.4f} to {-low:.4f}); {sum(gains > 1e-9)} items with a higher value in clean, " in said
    apart = compare(X, {"swapped": swapped(tree)[0], "clean": tree}, delta=0.02)
    assert apart.sentences()[0].startswith("clean is better than swapped by 0.")
    with pytest.raises(ParameterError, match="tree: got 'other'"):
        found.gained_items("other", "clean")


def test_a_sentence_says_the_same_whichever_tree_stands_first():
    X, tree = clean_case()
    trees = {"clean": tree, "swapped": swapped(tree)[0]}
    gains = (evaluate(X, tree, delta=0.02).values - evaluate(X, trees["swapped"], delta=0.02).values).tolist()
    more, less = sum(gain > 1e-9 for gain in gains), sum(gain < -1e-9 for gain in gains)
    assert more != less
    told = [
        compare(X, dict(order), measures=False, delta=0.02).sentences()
        for order in (trees.items(), reversed(trees.items()))
    ]
    assert told[0] == told[1]
    assert told[0][0].endswith(f"; {more} items with a higher value in clean, {less} with a lower one.")


def test_one_temperature_for_all_and_always_told():
    X, tree = clean_case()
    X[:, :3] *= 0.2  # groups that are hard to tell apart
    X += np.random.default_rng(1).random(X.shape)
    trees = {"clean": tree, "other": tree.permuted(np.roll(np.arange(45), 2))}
    found = compare(X, trees, delta="calibrated", measures=False)
    expected = calibrate_delta(X, trees)
    assert found.calibration == expected
    for name, result in found.results.items():
        assert result.config["delta"] == expected.delta
        np.testing.assert_array_equal(result.values, evaluate(X, trees[name], delta=expected.delta).values)
    assert expected.summary() in found.summary()
    with pytest.warns(DataWarning, match=r"'flat'.*upper bound, 10"):
        compare(np.eye(2), {"flat": Hierarchy.from_children([[0, 1]], 2)}, delta="calibrated", measures=False)


def test_what_cannot_be_compared():
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=r"45 .*'a'.* 2 .*'b'"):
        compare(X, {"a": tree, "b": Hierarchy.from_children([[0, 1]], 2)})
    with pytest.raises(ParameterError, match="reference: got 'b'"):
        compare(X, {"a": tree}, reference="b")
    with pytest.raises(ParameterError, match="confidence: got 95"):
        compare(X, {"a": tree}, confidence=95)
    with pytest.raises(ParameterError, match="delta: got 'best'"):
        compare(X, {"a": tree}, delta="best")


def test_a_single_item():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = compare([[1.0, 1.0]], {"a": Hierarchy.from_children([], 1), "b": Hierarchy.from_children([[0]], 1)})
    assert not found.differences[0].distinguishable
    assert found.differences[0].difference == 0


@pytest.mark.parametrize("call", ["appraise", "diagnose", "sweep", "compare", "calibrate", "moves"])
def test_degenerate_features_are_told_of_once(call):
    X, tree = clean_case()
    X[3] = 0
    broken = swapped(tree)[0]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if call == "appraise":
            appraise(X, broken, n_shuffles=2, delta="calibrated")
        elif call == "diagnose":
            diagnose(X, tree)
        elif call == "sweep":
            delta_sweep(X, {"one": tree, "other": broken}, [0.02, 0.1], n_shuffles=1)
        elif call == "compare":
            compare(X, {"one": tree, "other": broken})
        elif call == "calibrate":
            calibrate_delta(X, {"one": tree, "other": broken})
        else:
            suggest_moves(X, diagnose(X, broken, delta=0.02), delta=0.02)
    assert ["row(s) of zeros" in str(warning.message) for warning in told] == [True]


def test_the_summary_has_the_distances_of_the_other_trees_alone():
    X, tree = clean_case()
    text = compare(X, {"clean": tree, "other": swapped(tree)[0]}, delta=0.05).summary()
    (head,) = [line for line in text.splitlines() if line.startswith("distance to clean")]
    assert head.split() == ["distance", "to", "clean", "other"]
