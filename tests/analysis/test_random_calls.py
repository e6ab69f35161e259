"""Random calls of the public functions, valid and not: an answer that is paired rightly, or an error of ours."""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis.stateful import Bundle, consumes, initialize, rule

from pomdp_hier import Hierarchy, evaluate, hqs, hqs_samples, hqs_score
from pomdp_hier import analysis as ask
from pomdp_hier.analysis.baselines import shuffled_scores
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.features.items import FeatureTable
from pomdp_hier.hqs.model import Search
from pomdp_hier.planning import RTBSS
from tests.random_calls import CALLS, MOSTLY_VALID, RandomCalls, run

N = 6
NAMES = ["ant", "bee", "cat", "dog", "elk", "fox"]

VALUES = {
    "similarity": ["cosine", "negative_euclidean", "inverse_sqeuclidean", "precomputed", "cosinus", None, 3],
    "delta": [0.05, 0.3, 1e-9, 1e300, "calibrated", "warm", 0, -1.0, float("nan"), None],
    "nu": [1.0, 1.5, 1e200, 0.5, "x"],
    "tie": ["descend", "search", "first", None],
    "policy": [
        "one-step",
        "optimal",
        "descend",
        "search-root",
        "hindsight",
        hqs.LookAhead(2),
        hqs.FixedLevel(1),
        RTBSS(1),
        lambda belief: Search(),
        "best",
        3,
        None,
    ],
    "reward": [None, lambda size, n: 1 - size / n, lambda size, n: size, lambda size, n: float("nan"), "paper"],
    "enter_own_singleton": [True, False, "no", 1],
    "engine": ["auto", "numpy", "numba", "generic", "gpu", None],
    "threads": [None, 1, 2, 0, "2"],
    "progress": [False, "yes"],
    "updater": [None, TabularUpdater, "bayes"],
    "n_jobs": [1, 0, "lots"],
    "checkpoint": [None, "PATH", 3],
    "policy_version": [None, "1", 3],
    "sample_size": [None, 3, 0.5, N, 1, 0, 7, 1.5, "half", True],
    "sampling": ["stratified", "simple", "cluster", None],
    "random_state": [None, 0, 3, -1, "now"],
    "half_width": [None, 0.5, 0.01, 0.0, "x"],
}
KEYWORDS = st.dictionaries(st.sampled_from(sorted(VALUES)), MOSTLY_VALID, max_size=4).map(
    lambda drawn: {name: VALUES[name][at % len(VALUES[name])] for name, at in drawn.items()}
)

NUMBERS = st.sampled_from([0, 1, 2, 5, -1, 1.5, "two", None, N, 99])


def trees():
    plain = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], N)
    deep = Hierarchy.from_children([[0, 1], [6, 2], [3, 4], [7, 8, 5]], N, singletons=True)
    return {
        "plain": plain,
        "deep": deep,
        "flat": Hierarchy.from_children([range(N)], N),
        "chain": Hierarchy.from_children([range(N), [6], [7]], N),
        "named": Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], N, labels=NAMES),
        "reordered": Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], N, labels=NAMES[::-1]),
        "smaller": Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4),
    }


def features():
    X = np.random.default_rng(0).random((N, 3))
    zero = X.copy()
    zero[2] = 0.0
    wrong = X.copy()
    wrong[1, 1] = np.nan
    tables = {
        "dense": X,
        "float32": X.astype(np.float32),
        "sparse": sp.csr_array(np.round(X)),
        "zero row": zero,
        "matrix": X @ X.T,
        "lists": X.tolist(),
        "table": FeatureTable(X[[3, 0, 5, 1, 4, 2]], tuple(NAMES[k] for k in (3, 0, 5, 1, 4, 2))),
        "numbered": FeatureTable(X[::-1], tuple(str(k) for k in range(N))[::-1]),
        "part": FeatureTable(X, (*NAMES[:5], "gnu")),
        "nan": wrong,
        "short": X[:4],
        "words": np.array([["a", "b"]] * N),
        "nothing": None,
        "number": 3,
        "dict": {"a": 1},
    }
    try:
        import pandas as pd
    except ImportError:
        return tables
    return tables | {
        "frame": pd.DataFrame(X[::-1], index=NAMES[::-1]),
        "unnamed frame": pd.DataFrame(X),
        "other frame": pd.DataFrame(X, index=list("uvwxyz")),
    }


TREES, FEATURES = trees(), features()
USABLE = ["dense", "float32", "sparse", "zero row", "matrix"]
ANY_TREE = st.sampled_from(sorted(TREES))
ANY_FEATURES = st.one_of(st.sampled_from(USABLE), st.sampled_from(USABLE), st.sampled_from(sorted(FEATURES)))


class Calls(RandomCalls):
    results = Bundle("results")
    diagnoses = Bundle("diagnoses")

    @initialize(target=results)
    def nothing(self):
        return None

    @initialize(target=diagnoses)
    def no_diagnosis(self):
        return None

    def call(self, function, *arguments, **keywords):
        if keywords.get("checkpoint") == "PATH":
            keywords["checkpoint"] = os.devnull + "/none"
        return super().call(function, *arguments, **keywords)

    @rule(target=results, tree=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, swap=st.integers(0, 9))
    def evaluate(self, tree, X, given, swap):
        arguments = (FEATURES[X], TREES[tree]) if swap else (TREES[tree], FEATURES[X])
        result = self.call(evaluate, *arguments, **given)
        if result is not None:
            assert swap
            self.check(result, TREES[tree], FEATURES[X], given)
        return result

    def check(self, result, tree, X, given):
        """The items of a sample have the values that they have among all; arrays belong together."""
        assert all(len(column) == result.n_sampled for column in result.columns().values())
        assert -1 <= result.score <= 1.0 or given.get("reward") is not None
        if result.sample is not None:
            model = {name: value for name, value in given.items() if name not in SAMPLE}
            model["delta"] = result.config["delta"]
            whole = self.call(evaluate, X, tree, **model)
            np.testing.assert_allclose(result.values, whole.values[result.sampled_items], atol=1e-12)

    @rule(tree=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, which=st.sampled_from([hqs_score, hqs_samples]))
    def scores(self, tree, X, given, which):
        self.call(which, FEATURES[X], TREES[tree], **given)

    @rule(one=ANY_TREE, other=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, measures=st.booleans())
    def compare(self, one, other, X, given, measures):
        named = {"one": TREES[one], "other": TREES[other]}
        found = self.call(ask.compare, FEATURES[X], named, measures=measures, **given)
        if found is None:
            return
        first, second = found.results["one"], found.results["other"]
        np.testing.assert_array_equal(first.sampled_items, second.sampled_items)
        gain = dict(zip(first.sampled_items.tolist(), first.values - second.values, strict=True))
        assert found.differences[0].difference == pytest.approx(first.score - second.score, abs=1e-12)
        assert all(gain[item] == amount for item, amount in found.gained_items("one", "other", N))
        if one == other:
            assert found.differences[0].difference == 0
        found.summary()

    @rule(tree=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, shuffles=NUMBERS)
    def appraise(self, tree, X, given, shuffles):
        found = self.call(ask.appraise, FEATURES[X], TREES[tree], n_shuffles=shuffles, **given)
        if found is not None:
            assert not found.policy_efficiency > 1 + 1e-9
            found.summary()

    @rule(tree=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, shuffles=NUMBERS, seed=NUMBERS)
    def shuffles(self, tree, X, given, shuffles, seed):
        found = self.call(
            shuffled_scores, FEATURES[X], TREES[tree], **{**given, "random_state": seed, "n_shuffles": shuffles}
        )
        assert found is None or len(found) == shuffles

    @rule(
        tree=ANY_TREE,
        X=ANY_FEATURES,
        given=KEYWORDS,
        deltas=st.sampled_from([[0.1, 1.0], [], [0.1, 0.1], [-1], "ab", None, 3]),
    )
    def sweep(self, tree, X, given, deltas):
        found = self.call(ask.delta_sweep, FEATURES[X], {"t": TREES[tree]}, deltas, n_shuffles=1, **given)
        if found is not None:
            found.summary()

    @rule(tree=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, chosen=st.lists(st.sampled_from(VALUES["policy"]), max_size=3))
    def policies(self, tree, X, given, chosen):
        found = self.call(ask.compare_search_policies, FEATURES[X], TREES[tree], chosen, **given)
        if found is not None:
            assert all(row.mdp_regret >= -1e-9 for row in found)

    @rule(target=diagnoses, tree=ANY_TREE, X=ANY_FEATURES, given=KEYWORDS, result=results, known=st.booleans())
    def diagnose(self, tree, X, given, result, known):
        found = self.call(ask.diagnose, FEATURES[X], TREES[tree], result if known else None, **given)
        return None if found is None else (found, X, given)

    @rule(told=diagnoses, given=KEYWORDS, n=NUMBERS, same=st.booleans())
    def moves(self, told, given, n, same):
        diagnosis, X, first = told or (None, "dense", {})
        given = first if same else given
        moves = self.call(ask.suggest_moves, FEATURES[X], diagnosis, limit=n, candidates=2, **given)
        for move in moves or ():
            changed = self.call(ask.apply_moves, diagnosis.hierarchy, [move])
            assert changed is not None
            assert set(diagnosis.hierarchy.items(move.node)) <= set(changed.items(changed.node(named(diagnosis, move))))

    @rule(told=diagnoses, n=NUMBERS, result=results, tree=ANY_TREE)
    def read(self, told, n, result, tree):
        diagnosis = told[0] if told else result
        for name in ("worst_nodes", "lost_items", "confusions") if told else ():
            found = self.call(getattr(diagnosis, name), n)
            assert found is None or len(found) <= n
        self.call(ask.check_structure, TREES[tree], diagnosis)

    @rule(tree=ANY_TREE, moves=st.lists(st.tuples(NUMBERS, st.integers(0, 11)), max_size=3))
    def apply(self, tree, moves):
        changed = self.call(ask.apply_moves, TREES[tree], moves)
        assert changed is None or changed.n_items == TREES[tree].n_items

    @rule(tree=ANY_TREE, X=ANY_FEATURES, item=NUMBERS, given=KEYWORDS)
    def problem(self, tree, X, item, given):
        model = {name: value for name, value in given.items() if name in MODEL}
        self.call(hqs.search_problem, FEATURES[X], TREES[tree], item, **model)
        self.call(hqs.search_environment, FEATURES[X], TREES[tree], item, **model)

    @rule(tree=ANY_TREE, X=ANY_FEATURES, bounds=st.sampled_from([(1e-4, 10), (1, 0), ("a",), None, (0.1, 0.2)]))
    def calibrate(self, tree, X, bounds):
        found = self.call(hqs.calibrate_delta, FEATURES[X], TREES[tree], bounds=bounds)
        assert found is None or bounds[0] <= found.delta <= bounds[1]

    @rule(result=consumes(results), level=st.sampled_from([0.95, 0, 95, "x", None]))
    def interval(self, result, level):
        if result is not None:
            found = self.call(result.interval, level)
            assert found is None or found[0] <= result.score <= found[1]
            result.summary()
            result.to_json()


SAMPLE = ("sample_size", "sampling", "random_state", "half_width", "delta", "progress")
MODEL = ("similarity", "delta", "nu", "reward", "enter_own_singleton")


def named(diagnosis, move):
    """What the changed tree calls the move's target: its label, or the number that it had."""
    tree = diagnosis.hierarchy
    return move.target if tree.labels is None else tree.labels[move.target]


def test_random_calls_end_in_answers_or_errors_of_ours():
    run(Calls, 6, 25, derandomize=True)


@pytest.mark.slow
def test_thousands_of_random_calls():
    run(Calls, 50, 40)
    print(f"{CALLS['made']:,} calls, {CALLS['answered']:,} answered")
    assert CALLS["made"] > 1_000
