import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pomdp_py
import pytest
import sympy

from pomdp_hier import POMDP, Belief, State, check_problem
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import ObservationModel, TransitionModel
from pomdp_hier.problems import tiger
from tests.random_problems import errand, exact_arrays, random_arrays


def two(**changes):
    return POMDP(
        **{
            "transition": lambda s, a: {"a": 0.5, "b": 0.5},
            "observation": lambda s, a: {"o": 0.25, "p": 0.75},
            "reward": lambda s, a, t: 1.0,
            "initial_belief": {"a": 1},
            "legal_actions": ["go"],
        }
        | changes
    )


def kinds(problem, **options):
    return [fault.code for fault in check_problem(problem, **options)]


def the_one(problem):
    (fault,) = check_problem(problem)
    return fault


@pytest.mark.parametrize(
    "problem",
    [
        two(),
        tiger(),
        tiger(accuracy=Fraction(17, 20)),
        tiger(accuracy=sympy.Symbol("p", positive=True), discount=1),
        errand(Fraction(3, 4)),
        errand(0.3),
        random_arrays(np.random.default_rng(0), 5, 3, 4).problem(),
        exact_arrays(np.random.default_rng(0), 4, 2, 3).problem(),
    ],
)
def test_sound_problems_have_no_faults(problem):
    assert check_problem(problem) == []


def test_a_row_that_does_not_sum_to_one_is_named_with_its_sum():
    problem = two(transition=lambda s, a: {"a": 0.5, "b": 0.4 if s == "b" else 0.5})
    fault = the_one(problem)
    assert (fault.code, fault.location, fault.value) == ("row-sum", "transition from 'b' under 'go'", 0.9)
    assert kinds(problem, tolerance=0.2) == []
    assert kinds(two(transition=lambda s, a: {"a": 0.5, "b": 0.4}, tolerance=0.2)) == []
    exact = two(transition=lambda s, a: {"a": Fraction(1, 2), "b": Fraction(10**9, 2 * 10**9 + 1)})
    assert kinds(exact, tolerance=0.2) == ["row-sum", "row-sum"]
    assert kinds(two(observation=lambda s, a: {"o": 0.5})) == ["row-sum", "row-sum"]


@pytest.mark.parametrize("p", [float("nan"), -0.5, "half", None])
def test_what_is_no_probability(p):
    fault = check_problem(two(transition=lambda s, a: {"a": 0.5, "b": p}))[0]
    assert fault.code == "invalid-probability"
    assert fault.location == "transition from 'a' under 'go', outcome 'b'"
    assert fault.value is p or fault.value == p


def test_what_leaves_the_spaces():
    problem = two(
        states=["a"], observations=["o"], initial_belief={"z": 1}, legal_actions=lambda s: ["fly"], actions=["go"]
    )
    faults = check_problem(problem)
    assert {(f.code, f.location, f.value) for f in faults} == {
        ("not-in-space", "initial belief", "z"),
        ("not-in-space", "legal_actions('a')", "fly"),
        ("not-in-space", "transition from 'a' under 'fly'", "b"),
        ("not-in-space", "observation in 'a' after 'fly'", "p"),
    }


def test_what_cannot_be_hashed():
    assert set(kinds(two(transition=lambda s, a: ["x"]))) == {"not-hashable"}
    assert set(kinds(two(transition=lambda s, a: {(1, [2]): 1.0}))) == {"not-hashable"}


class Careless(State):
    """Compares by identity."""

    def __init__(self, place):
        self.place = place

    def __repr__(self):
        return f"Careless({self.place})"


@dataclass(frozen=True)
class Trapped(pomdp_py.State):
    """A dataclass under pomdp-py's own __ne__."""

    place: int


@dataclass(frozen=True)
class Cell(State):
    place: int


def test_states_that_compare_badly():
    careless = two(transition=lambda s, a: {Careless(1): 1.0}, initial_belief={Careless(0): 1}, max_states=5)
    assert set(kinds(careless)) == {"inconsistent-equality", "too-many-states"}
    trapped = check_problem(two(transition=lambda s, a: {Trapped(1): 1.0}, initial_belief={Trapped(0): 1}, terminal=[]))
    assert {f.code for f in trapped} == {"inconsistent-equality"}
    assert "another type" in trapped[0].value
    assert check_problem(two(transition=lambda s, a: {Cell(1): 1.0}, initial_belief={Cell(0): 1}, terminal=[])) == []
    assert "inconsistent-equality" in kinds(two(transition=lambda s, a: s, initial_belief={float("nan"): 1}))


class Sampled(TransitionModel):
    def distribution(self, state, action):
        return {"a": 0.5, "b": 0.5}

    def sample(self, state, action):
        return "a" if random.random() < 0.9 else "b"


class Doubted(ObservationModel):
    def distribution(self, next_state, action):
        return {"o": 0.5, "p": 0.5}

    def probability(self, observation, next_state, action):
        return 0.4


class Honest(Sampled):
    def sample(self, state, action):
        return random.choice("ab")


def test_sample_and_probability_against_the_distribution():
    sampled = check_problem(two(transition=Sampled()))
    assert {f.code for f in sampled} == {"inconsistent-samples"}
    assert "distribution() says 0.500" in sampled[0].value
    doubted = check_problem(two(observation=Doubted()))
    assert {f.code for f in doubted} == {"inconsistent-probability"}
    assert doubted[0].value == "probability() says 0.4, distribution() says 0.5"
    assert check_problem(two(transition=Honest())) == []


def test_the_global_random_state_is_left_alone():
    random.seed(11)
    expected = random.Random(11).random()
    check_problem(two(transition=Honest()))
    assert random.random() == expected


def test_terminal_states_that_move_or_earn():
    moving = two(terminal=["b"])
    assert the_one(moving).code == "terminal-not-absorbing"
    earning = two(terminal=["b"], transition=lambda s, a: {"b": 1.0})
    assert the_one(earning).code == "terminal-reward"
    assert the_one(earning).value == 1.0
    silent = two(terminal=["b"], transition={("a", "go"): {"b": 1.0}})
    assert check_problem(silent) == []


def test_states_without_a_legal_action():
    problem = two(legal_actions=lambda s: ["go"] if s == "a" else [])
    assert the_one(problem).code == "no-legal-action"
    assert the_one(problem).location == "legal_actions('b')"


def test_legal_actions_that_differ_within_one_observation():
    problem = two(legal_actions=lambda s: ["go", "stop"] if s == "a" else ["go"])
    faults = check_problem(problem)
    assert {f.code for f in faults} == {"inconsistent-legal-actions"}
    assert faults[0].location == "after 'go' and 'o'"
    assert "'a' and 'b' differ in ['stop']" in faults[0].value
    seen = two(legal_actions=lambda s: ["go", "stop"] if s == "a" else ["go"], observation=lambda s, a: s)
    assert check_problem(seen) == []
    start = two(
        legal_actions=lambda s: ["go", "stop"] if s == "a" else ["go"],
        observation=lambda s, a: s,
        initial_belief={"a": 0.5, "b": 0.5},
    )
    assert the_one(start).location == "at the start"


def chain(legal, length=4):
    """Two rows of states, seen by their column alone, in which the last column may differ in what is legal there."""

    def transition(state, action):
        row, column = state
        return (row, min(column + 1, length))

    return two(
        transition=transition,
        observation=lambda s, a: s[1],
        reward=lambda s, a: 0,
        initial_belief={("up", 0): 0.5, ("down", 0): 0.25, ("under", 0): 0.25},
        legal_actions=legal,
    )


def test_legal_actions_are_compared_however_late_states_come_together():
    fault = the_one(chain(lambda s: ["go", "stop"] if s == ("down", 4) else ["go"]))
    assert (fault.code, fault.location) == ("inconsistent-legal-actions", "after 'go' and 4")
    assert check_problem(chain(lambda s: ["go", "stop"] if s[1] == 4 else ["go"])) == []
    by_history = two(
        transition=lambda s, a: {"a": "b", "b": "b"}[s],  # one observation, but one state after each history
        legal_actions=lambda s: ["go", "stop"] if s == "a" else ["go"],
        initial_belief={"a": 1},
        reward=lambda s, a: 0,
    )
    assert check_problem(by_history) == []


def test_legal_actions_are_compared_for_every_state_that_is_possible_at_once():
    fault = the_one(chain(lambda s: ["go", "stop"] if s == ("under", 2) else ["go"]))
    assert fault.value == "('up', 2) and ('under', 2) differ in ['stop']"


def test_states_that_come_together_after_one_action_only_are_compared():
    """After "part" the two states are told apart; after "meet" they are not."""
    problem = two(
        transition=lambda s, a: s if isinstance(s, tuple) else (a, s),
        observation=lambda s, a: s if s[0] == "part" else "met",
        reward=lambda s, a: 0,
        initial_belief={"a": 0.5, "b": 0.5},
        legal_actions=lambda s: ["stop", "part"] if s == ("meet", "b") else ["part", "meet"],
    )
    places = [f.location for f in check_problem(problem) if f.code == "inconsistent-legal-actions"]
    assert places
    assert places[0] == "after 'meet' and 'met'"


@pytest.mark.parametrize("reward", [float("inf"), float("nan"), -float("inf")])
def test_rewards_that_are_not_finite(reward):
    faults = check_problem(two(reward=lambda s, a, t, o: reward if o == "p" and t == "b" else 0))
    assert {f.code for f in faults} == {"reward-not-finite"}
    assert faults[0].location == "reward of 'go' from 'a' to 'b' seeing 'p'"


@pytest.mark.parametrize("reward", ["much", None])
def test_rewards_that_are_no_numbers(reward):
    assert set(kinds(two(reward=lambda s, a: reward))) == {"reward-not-finite"}


@pytest.mark.parametrize(
    ("error", "model"),
    [
        (KeyError("b"), "transition"),
        (ZeroDivisionError(), "observation"),
        (AttributeError("x"), "reward"),
        (NotImplementedError(), "legal_actions"),
        (RecursionError(), "terminal"),
    ],
)
def test_what_a_model_raises_is_a_fault(error, model):
    def fails(*arguments):
        raise error

    faults = check_problem(two(**{model: fails}))
    assert faults
    assert {f.code for f in faults} == {"model-error"}
    assert type(error).__name__ in str(faults[0])


def test_a_model_that_returns_no_distribution():
    class Listed(TransitionModel):
        def distribution(self, state, action):
            return [("a", 1.0)]

    assert the_one(two(transition=Listed())).code == "invalid-distribution"


def test_every_fault_is_found_at_once():
    problem = two(
        transition=lambda s, a: {"a": 0.5, "b": 0.4},
        observation=lambda s, a: {"o": 1.5, "p": -0.5},
        reward=lambda s, a: float("nan"),
        terminal=["z"],
        initial_belief=Belief({"a": 0.5, "b": 0.5}),
        states=["a"],
    )
    assert set(kinds(problem)) >= {"row-sum", "invalid-probability", "reward-not-finite", "not-in-space"}


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(ModelError, match=r"check_problem: .* expected a POMDP"):
        check_problem([[1.0, 0.0]])


def test_a_missing_return_is_a_fault():
    silent = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "heard" if a == "listen" else None,
        reward=lambda s, a: 0,
        initial_belief={"here": 1},
        legal_actions=["listen", "go"],
    )
    faults = check_problem(silent)
    assert any("'go'" in str(fault) and "got None" in str(fault) for fault in faults)
    assert not any("'listen'" in fault.location for fault in faults)


def shop(**changes):
    """A machine that works, may break, and ends."""
    return two(
        **{
            "states": ["working", "broken", "done"],
            "transition": lambda s, a: {"working": 0.5, "broken": 0.5} if s == "working" else {"done": 1.0},
            "reward": lambda s, a: 0.0 if s == "done" else 1.0,
            "initial_belief": {"working": 1},
            "terminal": ["done"],
        }
        | changes
    )


@pytest.mark.parametrize(
    ("changes", "place", "name", "near"),
    [
        ({"terminal": ["done", "borken"]}, "terminal", "borken", "broken"),
        ({"terminal": ["done", "nowhere"]}, "terminal", "nowhere", None),
        ({"initial_belief": {"wroking": 1}}, "initial belief", "wroking", "working"),
        ({"actions": ["run"], "legal_actions": lambda s: ["rnu"]}, "legal_actions('working')", "rnu", "run"),
        ({"observations": ["o", "pp"]}, "observation in 'working' after 'go'", "p", "pp"),
    ],
)
def test_a_name_that_is_nothing_is_found_with_the_nearest_name(changes, place, name, near):
    fault = next(f for f in check_problem(shop(**changes)) if f.code == "not-in-space")
    assert (fault.location, fault.value) == (place, name)
    assert f"'{name}'" in str(fault)
    assert (f"nearest name, '{near}'" in fault.remedy) == (near is not None)
    assert check_problem(shop()) == []


def test_a_state_that_is_never_left_and_goes_on_with_rewards_is_asked_about():
    sink = {
        "transition": lambda s, a: s if s == "done" else {"working": 0.5, "done": 0.5},
        "states": ["working", "done"],
    }
    asked = shop(**sink, reward=lambda s, a: 10.0, terminal=None)
    fault = the_one(asked)
    assert (fault.code, fault.location) == ("possible-terminal", "state 'done'")
    assert "10.0" in fault.value
    assert "List it in terminal" in fault.remedy
    assert kinds(shop(**sink, reward=lambda s, a: 10.0 * (s == "working"), terminal=["done"])) == []  # the advice taken
    assert "terminal=[]" in fault.remedy
    assert kinds(shop(**sink, reward=lambda s, a: 10.0, terminal=[])) == []  # the other advice
    assert kinds(shop(**sink, reward=lambda s, a: 10.0, terminal=lambda s: s == "don")) == ["possible-terminal"]
    assert (
        kinds(shop(**sink, reward=lambda s, a: 1.0 * (s == "working"), terminal=None)) == []
    )  # an end without rewards
    assert kinds(two(transition=lambda s, a: s)) == []  # it stays as it began: what is hidden need not change


@pytest.mark.parametrize("text", ["0.5", b"0.5"])
def test_text_that_looks_like_a_number_is_not_one(text):
    leaky = two(transition=lambda s, a: {"a": text, "b": text})
    fault = check_problem(leaky)[0]
    assert (fault.code, fault.value) == ("invalid-probability", text)
    assert repr(text) in str(fault)
    assert "without quotes" in fault.remedy
    paid = two(reward=lambda s, a: text)
    assert "without quotes" in the_one(two(reward=lambda s, a: text, transition=lambda s, a: "a")).remedy
    for problem in (leaky, paid):
        with pytest.raises(ModelError, match=r"text .*0\.5.* without quotes"):
            _ = problem.compiled
    assert "quotes" not in check_problem(two(reward=lambda s, a: "much"))[0].remedy
