"""Every public function that takes settings, with every setting of evaluate: used, or refused with the reason.

A function or a setting that is new fails here until it has its place in the tables.
"""

import inspect
import math

import numpy as np
import pytest

import pomdp_hier
import pomdp_hier.analysis as appraisal
import pomdp_hier.hqs as hqs
import pomdp_hier.improvement as improvement
from pomdp_hier import Hierarchy
from pomdp_hier.analysis.baselines import shuffled_scores
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.distributed import evaluate_distributed
from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.hqs.generic import item_guidance
from pomdp_hier.hqs.inputs import Run, Settings
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.planning import POUCT
from tests.planted import clean_case

X, TREE = clean_case(top=2, middle=2, items=2)
MOVED = TREE.permuted(np.random.default_rng(0).permutation(TREE.n_items))
TREES = {"one": TREE, "moved": MOVED}
SAMPLES = {"sample_size", "sampling", "random_state", "half_width"}
MODEL = tuple(inspect.signature(Settings).parameters)
GENERIC = {"engine": "generic"}


class OwnTree:
    def fit(self, X, y=None):
        self.hierarchy_ = TREE
        return self


def diagnosed(**settings):
    fields = (*MODEL, "sample_weight")
    return appraisal.diagnose(X, TREE, **{field: settings[field] for field in fields if field in settings})


FUNCTIONS = {
    "evaluate": lambda **s: pomdp_hier.evaluate(X, TREE, **s),
    "hqs_score": lambda **s: pomdp_hier.hqs_score(X, TREE, **s),
    "hqs_samples": lambda **s: pomdp_hier.hqs_samples(X, TREE, **s),
    "appraise": lambda **s: appraisal.appraise(X, TREE, n_shuffles=1, **s),
    "best_cut": lambda **s: appraisal.best_cut(X, TREE, **s),
    "shuffled_scores": lambda **s: shuffled_scores(X, TREE, n_shuffles=2, **s),
    "compare": lambda **s: appraisal.compare(X, TREES, measures=False, **s),
    "compare_search_policies": lambda **s: appraisal.compare_search_policies(X, TREE, ["one-step", "descend"], **s),
    "delta_sweep": lambda **s: appraisal.delta_sweep(X, TREE, [0.1, 1.0], n_shuffles=1, **s),
    "diagnose": lambda **s: appraisal.diagnose(X, TREE, **s),
    "hqs_scorer": lambda **s: appraisal.hqs_scorer(**s)(OwnTree().fit(X), X),
    "score_by_levels": lambda **s: appraisal.score_by_levels(X, TREE, **s),
    "improve": lambda **s: improvement.improve(X, TREE, objective="hqs", kinds=["move"], folds=0, **s),
    "regroup": lambda **s: improvement.regroup(X, TREE, folds=0, **s),
    "suggest_moves": lambda **s: appraisal.suggest_moves(X, diagnosed(**s), candidates=1, **s),
}
# One value of each setting that is not its default, with what it takes to be used.
VALUES = {
    "similarity": {"similarity": "negative_euclidean"},
    "delta": {"delta": 0.2},
    "nu": {"nu": 1.5},
    "tie": {"tie": "search"},
    "policy": {"policy": "optimal"},
    "reward": {"reward": lambda size, n_items: 1 - size / n_items},
    "enter_own_singleton": {"enter_own_singleton": False},
    "engine": {"engine": "numpy"},
    "threads": {"threads": 2},
    "progress": {"progress": True},
    "updater": {"updater": TabularUpdater, **GENERIC},
    "n_jobs": {"n_jobs": -1, **GENERIC},
    "checkpoint": {"checkpoint": "FILE", **GENERIC},
    "policy_version": {"policy_version": "1", "checkpoint": "FILE", **GENERIC},
    "sample_size": {"sample_size": 6},
    "sampling": {"sample_size": 6, "sampling": "simple"},
    "random_state": {"sample_size": 6, "random_state": 3},
    "half_width": {"half_width": 0.2},
    "sample_weight": {"sample_weight": np.arange(TREE.n_items)},
}
REFUSED = {
    "best_cut": {"policy", "enter_own_singleton", "engine", "threads", "progress", "updater", "n_jobs"}
    | {"checkpoint", "policy_version", *SAMPLES},
    "score_by_levels": {"checkpoint", "policy_version"},
    "compare": {"checkpoint", "policy_version"},
    "compare_search_policies": {"checkpoint", "policy_version", "policy"},
    "delta_sweep": {"checkpoint", "policy_version", "half_width", "delta"},
    "diagnose": SAMPLES,
    "hqs_scorer": {"checkpoint", "policy_version", "sample_size", "sampling", "random_state", "half_width"},
    "shuffled_scores": {"checkpoint", "policy_version"},
    "improve": {"checkpoint", "policy_version", "updater", "n_jobs", "policy", *SAMPLES},
    "regroup": {
        "checkpoint",
        "policy_version",
        "updater",
        "n_jobs",
        "policy",
        "tie",
        "reward",
        "engine",
        *SAMPLES,
    },
    "suggest_moves": {"checkpoint", "policy_version", *SAMPLES},
}
SLOW = {"n_jobs"}


def test_the_tables_are_whole():
    public = {name: getattr(room, name) for room in (pomdp_hier, hqs, appraisal, improvement) for name in room.__all__}
    taking = set()
    for name, function in public.items():
        if inspect.isfunction(function):
            parameters = inspect.signature(function).parameters
            if {"policy_version", "delta"} <= parameters.keys() or any(
                p.kind is p.VAR_KEYWORD for p in parameters.values()
            ):
                taking.add(name)
    assert taking | {"shuffled_scores"} == set(FUNCTIONS)
    assert set(VALUES) == set(inspect.signature(pomdp_hier.evaluate).parameters) - {"X", "hierarchy", "items"}
    fields = [name for kind in (Settings, Run, Sampling) for name in inspect.signature(kind).parameters]
    assert sorted([*fields, "sample_weight"]) == sorted([*VALUES, "random_state"])  # of a sample, and of the policies
    usual = inspect.signature(pomdp_hier.evaluate).parameters
    models = (hqs.search_problem, hqs.search_environment, item_guidance, hqs.calibrate_delta, evaluate_distributed)
    for kind in (Settings, Run, Sampling, *models):
        for name, parameter in inspect.signature(kind).parameters.items():
            if name in usual and name != "random_state":
                assert parameter.default == usual[name].default


# Each of these plans every item's POMDP once more; `updater` stands for them in the default run.
_PLANNED_AGAIN = {"n_jobs", "policy_version", "checkpoint"}


# These score a tree dozens of times; the default tests hold what they refuse, and two settings that they take.
_SEARCHES = {"improve", "regroup"}


def waits(name, setting):
    """Whether a row of the table is left to the slow tests."""
    taken = setting not in REFUSED.get(name, ())
    return setting in _PLANNED_AGAIN or (name in _SEARCHES and taken and setting not in ("delta", "similarity"))


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        pytest.param(name, setting, marks=[pytest.mark.slow] * waits(name, setting))
        for name in FUNCTIONS
        for setting in sorted(VALUES)
    ],
)
def test_every_function_takes_or_refuses_every_setting(name, setting, tmp_path, capfd):
    given = {**VALUES[setting]}
    if "checkpoint" in given:
        pytest.importorskip("joblib")
        given["checkpoint"] = tmp_path / "run"
    if setting in SLOW:
        given["n_jobs"] = 1
    if setting == "random_state" and name in ("appraise", "shuffled_scores", "delta_sweep"):
        assert FUNCTIONS[name](**given) is not None  # an argument of its own there
    elif setting in REFUSED.get(name, ()):
        with pytest.raises(ParameterError, match=r" is |: got |; "):
            FUNCTIONS[name](**given)
    else:
        assert FUNCTIONS[name](**given) is not None


WRONG = {
    "similarity": ["cosinus", 3, None],
    "delta": ["warm", 0, -1.0, math.nan, math.inf, None, [0.1]],
    "nu": [0, -0.5, "x", None, math.inf],
    "tie": ["first", None, 1],
    "policy": ["best", 3, object()],
    "reward": ["paper", 1.0, lambda size, n_items: size],
    "enter_own_singleton": ["no", None, 2],
    "engine": ["gpu", None, 1],
    "threads": [0, -1, 1.5, "2", True],
    "progress": ["yes", None],
    "updater": ["bayes", 1],
    "n_jobs": ["lots", 0, -2, 1.5],
    "checkpoint": [3, True],
    "policy_version": [1, b"x"],
    "sample_size": [0, -3, 9, 1.5, "half", True, math.nan],
    "sampling": ["cluster", None],
    "random_state": [-1, "now", 1.5],
    "half_width": [0.0, -1, "x", math.inf],
    "sample_weight": ["sales", 1.0, [1.0], [math.nan] * TREE.n_items, [-1.0] * TREE.n_items, {0: 1.0}],
}


@pytest.mark.parametrize("setting", sorted(VALUES))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_refuses_every_wrong_value(name, setting):
    for value in WRONG[setting]:
        others = {"sample_size": 6} if setting in ("random_state", "sampling") else {}
        if setting == "policy_version":
            others = {"checkpoint": "unused", **GENERIC}
        with pytest.raises(PomdpHierError):
            FUNCTIONS[name](**{**others, setting: value})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_jobs": 2}, "n_jobs: got 2"),
        ({"updater": TabularUpdater}, "updater: got .* which only engine='generic' uses"),
        ({"checkpoint": "run"}, "checkpoint: got 'run'"),
        ({"threads": 3, "engine": "generic"}, "threads: got 3"),
        ({"threads": 3, "engine": "numpy"}, "threads: got 3"),
        ({"threads": 3, "policy": POUCT()}, "threads: got 3"),
        ({"sampling": "simple"}, "sampling: got 'simple'"),
        ({"random_state": 1}, "random_state: got 1"),
        ({"policy_version": "1"}, "Pass checkpoint= and"),
        ({"tie": "search", "policy": hqs.FixedLevel(1)}, "tie: got 'search', which policy"),
    ],
)
def test_what_would_be_ignored_is_refused_with_what_would_use_it(given, words):
    for function in (pomdp_hier.evaluate, pomdp_hier.hqs_score, pomdp_hier.hqs_samples, appraisal.appraise):
        if function is not appraisal.appraise or "random_state" not in given:
            with pytest.raises(ParameterError, match=words):
                function(X, TREE, **given)


def test_an_unknown_setting_is_named_with_the_known_ones():
    with pytest.raises(ParameterError, match="detla: got an unknown setting"):
        appraisal.diagnose(X, TREE, detla=0.1)


def test_help_shows_the_arguments():
    wanted = inspect.signature(pomdp_hier.evaluate).parameters
    for function, returns in ((pomdp_hier.hqs_score, float), (pomdp_hier.hqs_samples, None)):
        assert inspect.signature(function).parameters == wanted
        assert returns in (None, inspect.signature(function).return_annotation)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_tree_in_the_place_of_features_is_said(name):
    swapped = {
        "compare": lambda: appraisal.compare(TREE, {"a": TREE}),
        "suggest_moves": lambda: appraisal.suggest_moves(TREE, appraisal.diagnose(X, TREE)),
        "shuffled_scores": lambda: shuffled_scores(TREE, X),
        "hqs_scorer": lambda: appraisal.hqs_scorer()(X, OwnTree().fit(X)),
    }
    function = getattr(pomdp_hier, name, None) or getattr(appraisal, name, None) or getattr(improvement, name, None)
    with pytest.raises(PomdpHierError, match=r"features|without a tree|expected a Hierarchy"):
        swapped.get(name, lambda: function(TREE, X))()


def test_trees_whose_items_stand_in_another_order_are_refused():
    names = [f"item {k}" for k in range(4)]
    one = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=names)
    other = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=names[::-1])
    rows = np.eye(4)
    with pytest.raises(ParameterError, match=r"'item 0' .*'one'.* 'item 3' .*'other'"):
        appraisal.compare(rows, {"one": one, "other": other})
    aligned = other.permuted(other.rows(one.item_labels), with_labels=True)
    assert appraisal.compare(rows, {"one": one, "other": aligned}, measures=False).differences[0].difference == 0
