"""Results that people keep: they are pickled and copied, and print their value and interval in a line or two."""

import copy
import pickle

import pytest

from pomdp_hier import (
    appraise,
    compare,
    compare_policies,
    diagnose,
    evaluate,
    find_misfiled,
    improve,
    simulate,
)
from pomdp_hier.analysis import best_cut, compare_search_policies, delta_sweep, hqs_scorer, score_by_levels
from pomdp_hier.hqs import calibrate_delta
from pomdp_hier.measures import class_f_score, triplet_distance
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import policy_value
from tests.planted import clean_case, swapped

X, TREE = clean_case()
OTHER = swapped(TREE)[0]
DELTA = {"delta": 0.05}
PAIR = {"first": FirstAction(), "other": FirstAction()}
TIGER = tiger(discount=0.5)
MONTE_CARLO = {"method": "monte-carlo", "n_episodes": 20, "horizon": 2}

# each result, and what its line holds besides the value
RESULTS = {
    "HQSResult": (lambda: evaluate(X, TREE, **DELTA), "score=0.930983, 45 items), delta 0.05"),
    "a sample": (lambda: evaluate(X, TREE, sample_size=20, random_state=1, **DELTA), "score=0.930956 [0."),
    "Appraisal": (lambda: appraise(X, TREE, n_shuffles=2, **DELTA), "score=0.930983"),
    "Appraisal of a sample": (
        lambda: appraise(X, TREE, n_shuffles=2, sample_size=20, random_state=1, **DELTA),
        "score=0.930956 [0.",
    ),
    "Diagnosis": (lambda: diagnose(X, TREE, **DELTA), "0 of 45 items lost"),
    "Comparison": (lambda: compare(X, {"a": TREE, "b": OTHER}, measures=False, **DELTA), "'a' - 'b' +0."),
    "Improvement": (lambda: improve(X, OTHER, max_edits=1, folds=2, delta=0.02), "held out +0."),
    "DeltaSweep": (lambda: delta_sweep(X, TREE, n_shuffles=2), "13 deltas from 0.001 to 1"),
    "LevelScores": (lambda: score_by_levels(X, TREE, **DELTA), "{2: 0.9310, 1: 0.7697"),
    "MisfiledItems": (lambda: find_misfiled(X, TREE), "of 45 items with P"),
    "BestCut": (lambda: best_cut(X, TREE, **DELTA), "score=0.93"),
    "Calibration": (lambda: calibrate_delta(X, TREE), "delta="),
    "HQSScorer": (lambda: hqs_scorer(**DELTA), "0.05"),
    "ClassFit": (lambda: class_f_score(TREE, [k // 5 for k in range(45)]), "f=1.0"),
    "TripletDistance": (lambda: triplet_distance(TREE, OTHER), "low="),
    "SimulationResult": (
        lambda: simulate(FirstAction(), TIGER, n_episodes=9, horizon=2, keep_episodes=2),
        "interval [",
    ),
    "PolicyValue": (lambda: policy_value(FirstAction(), TIGER, horizon=2, trace=True), "value -1.5, exact"),
    "PolicyComparison": (lambda: compare_policies(PAIR, TIGER, horizon=2, trace=True), "-1.5000"),
    "PolicyComparison by Monte Carlo": (lambda: compare_policies(PAIR, TIGER, trace=True, **MONTE_CARLO), "[-1.5000"),
    "search policies": (lambda: compare_search_policies(X, TREE, ["one-step", "descend"], **DELTA), "0.9310  [0."),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_pickled_copied_and_printed(name):
    make, held = RESULTS[name]
    result = make()
    text = str(result)
    assert held in text
    assert len(text.splitlines()) <= (4 if "olic" in name and "Value" not in name else 2)
    assert len(text) <= 480
    for kept in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert type(kept) is type(result)
        assert str(kept) == text
        if hasattr(result, "summary"):
            assert kept.summary() == result.summary()
        if hasattr(result, "to_rows"):
            assert str(kept.to_rows()) == str(result.to_rows())  # NaN is not itself
