"""Rows of models that are kept: read-only, limited, not pickled, and the same as those that are asked again."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.pomdp import models
from pomdp_hier.pomdp.models import Kept
from tests.random_problems import exact_arrays, random_arrays

FLAKY = {"left": 0.5, "right": 0.5}


def counted(asked, uses_state=False, **options):
    def transition(s, a):
        asked.append(("T", s, a))
        return dict(FLAKY) if a == "jump" else s

    def observation(t, a):
        asked.append(("Z", t, a))
        return {t: 0.8, "none": 0.2}

    def from_state(t, a, s):
        asked.append(("Z", t, a, s))
        return {t: 0.8, s: 0.2} if s != t else {t: 1}

    return POMDP(
        transition=transition,
        observation=from_state if uses_state else observation,
        reward=lambda s, a: 0,
        initial_belief=FLAKY,
        legal_actions=["jump", "stay"],
        **options,
    )


@pytest.mark.parametrize("uses_state", [False, True])
def test_functions_are_called_once_where_the_problem_says_that_they_may_be(uses_state):
    asked, again = [], []
    kept, plain = counted(asked, uses_state, keep_rows=True), counted(again, uses_state)
    for _ in range(3):
        for action in ("jump", "stay"):
            one, other = (BayesUpdater(p).update(FLAKY, action, "left") for p in (kept, plain))
            assert one == other
            assert kept.joint(FLAKY, action) == plain.joint(FLAKY, action)
            assert kept.predict(FLAKY, action) == plain.predict(FLAKY, action)
    assert len(asked) == len(set(asked)) == len(set(again))
    assert len(again) > 2 * len(asked)


def test_whether_rows_are_kept_is_true_or_false():
    with pytest.raises(ParameterError, match="keep_rows: got 'yes'"):
        counted([], keep_rows="yes")


def test_a_function_that_fails_is_asked_again():
    answers = iter([{"a": 0.5}, {"a": 1}])
    rows = Kept(lambda s: next(answers) if s else {})
    assert rows[True,] == {"a": 0.5}
    assert rows[True,] == {"a": 0.5}
    broken = Kept(lambda s: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            broken["s",]
    assert len(broken) == 0


@pytest.mark.parametrize("make", [random_arrays, exact_arrays])
def test_rows_of_arrays_are_kept_read_only_and_those_of_the_arrays(make):
    arrays = make(np.random.default_rng(0), 5, 2, 3)
    problem = arrays.problem()
    for _ in range(2):
        for a, s in np.ndindex(2, 5):
            row = problem.successors(s, a)
            assert row is problem.successors(s, a)
            assert row == {t: p for t, p in enumerate(arrays.T[a, s].tolist()) if p}
            seen = problem.observation_distribution(s, a, None)
            assert seen == {o: p for o, p in enumerate(arrays.Z[a, s].tolist()) if p}
            kinds = {type(p) for p in (*row.values(), *seen.values())}
            assert kinds <= {float, Fraction, int}
    for change in (
        lambda row: row.__setitem__(0, 1.0),
        lambda row: row.__delitem__(0),
        lambda row: row.update({0: 1.0}),
        lambda row: row.pop(0),
        lambda row: row.popitem(),
        lambda row: row.setdefault(9, 1.0),
        lambda row: row.clear(),
        lambda row: row.__ior__({0: 1.0}),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change(row)
    mine = row.copy()
    mine[9] = 0.0
    assert type(mine) is type(pickle.loads(pickle.dumps(row))) is type(copy.deepcopy(row)) is dict


def test_rows_are_limited_and_not_pickled(monkeypatch):
    problem = random_arrays(np.random.default_rng(1), 6, 2, 3).problem()
    monkeypatch.setattr(models, "_MOST_KEPT", 12)
    rows = {(s, a): dict(problem.successors(s, a)) for a in range(2) for s in range(6)}
    held = problem.transition.rows
    assert 0 < sum(len(row) + 1 for row in held.values()) <= 12
    assert all(problem.successors(s, a) == row for (s, a), row in rows.items())
    size = len(pickle.dumps(problem))
    fresh = random_arrays(np.random.default_rng(1), 6, 2, 3).problem()
    assert size == len(pickle.dumps(fresh))
    copied = pickle.loads(pickle.dumps(problem))
    assert len(copied.transition.rows) == 0
    assert copied.successors(1, 1) == problem.successors(1, 1)


def test_unknown_names_are_errors_with_kept_rows_too():
    problem = random_arrays(np.random.default_rng(2), 3, 2, 2).problem()
    for _ in range(2):
        with pytest.raises(ModelError, match="state: got 7"):
            problem.successors(7, 0)
        with pytest.raises(ModelError, match="action: got 5"):
            BayesUpdater(problem).update({0: 1.0}, 5, 0)


@pytest.mark.parametrize(
    "given",
    [
        {"a": 0.5, "b": 0.4},
        {"a": 1.5, "b": -0.5},
        {"a": float("nan"), "b": 1.0},
        {"a": float("inf"), "b": 0.0},
        {"a": float("inf"), "b": float("-inf")},
        {"a": 1e308, "b": 1e308},
        {"a": "1", "b": 0.0},
    ],
)
def test_a_dict_of_floats_has_the_errors_of_other_mappings(given):
    errors = []
    for form in (given, tuple(given.items())):
        with pytest.raises(ModelError) as caught:
            Belief(form)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_belief_of_floats_is_a_copy_without_zeros():
    given = {"a": 0.25, "b": 0.0, "c": 0.75}
    belief = Belief(given)
    given["a"] = 1.0
    assert dict(belief) == {"a": 0.25, "c": 0.75} == dict(Belief(tuple({"a": 0.25, "b": 0.0, "c": 0.75}.items())))
    whole = {"a": 0.5, "c": 0.5}
    belief = Belief(whole)
    whole["d"] = 0.5
    assert len(belief) == 2
    assert dict(Belief({"a": 1 + 1e-10})) == {"a": 1 + 1e-10}
