"""What a proof states: problem, belief, horizon and discount, in numbers that are told apart by type and value."""

import copy
import pickle
import re
from fractions import Fraction
from math import ceil, floor

import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import CertificateError
from pomdp_hier.planning import solve, verify
from pomdp_hier.planning.certificates.claims import decimal
from pomdp_hier.planning.certificates.exact_model import exact_model
from pomdp_hier.problems import tiger
from tests.exact_oracle import exact_value

ONCE = {
    "transition": lambda s, a: {"a": Fraction(3, 4), "b": Fraction(1, 4)},
    "observation": lambda t, a: {"x": Fraction(4, 5), "y": Fraction(1, 5)} if t == "a" else "y",
    "reward": lambda s, a: 2 if s == a else -1,
    "initial_belief": {"a": Fraction(1, 2), "b": Fraction(1, 2)},
    "discount": Fraction(9, 10),
    "states": ["a", "b"],
    "actions": ["a", "b"],
    "observations": ["x", "y"],
    "legal_actions": ["a", "b"],
}
FLOATS = {
    "transition": lambda s, a: {"b": 0.25, "a": 0.75},
    "observation": lambda t, a: {"y": 0.2, "x": 0.8} if t == "a" else "y",
    "reward": lambda s, a: 2.0 if s == a else -1.0,
    "initial_belief": {"a": 0.5, "b": 0.5},
    "discount": 0.9,
}
OTHER = {
    "transition": lambda s, a: {"a": Fraction(1, 4), "b": Fraction(3, 4)},
    "observation": lambda t, a: {"x": Fraction(1, 5), "y": Fraction(4, 5)},
    "reward": lambda s, a: 2 if s == a else -2,
    "initial_belief": {"a": 1},
    "discount": Fraction(8, 10),
    "terminal": ["b"],
    "legal_actions": lambda s: ["a", "b"] if s == "a" else ["a"],
    "observations": ["x", "y", "z"],
}


def rewarded(rewards):
    return lambda s, a: rewards[s]


def proved(**changes):
    problem = POMDP(**{**ONCE, **changes})
    return verify(solve(problem, horizon=2).certificate(), problem)


def test_a_problem_of_the_same_numbers_has_the_same_fingerprint():
    assert proved(**FLOATS).problem == proved().problem


@pytest.mark.parametrize("name", OTHER)
def test_a_problem_with_another_number_has_another_fingerprint(name):
    assert proved(**{name: OTHER[name]}).problem != proved().problem


def test_the_sentence_states_problem_belief_horizon_and_discount():
    bounds = proved()
    assert str(bounds) == (
        f"proved: the optimal value of problem {bounds.problem} from its initial belief, over 2 actions at discount "
        "0.9, is at least 1.894999999 and at most 1.895000001\n"
        f"{bounds.n_vectors} alpha vectors and {bounds.n_points} belief points hold"
    )
    third = proved(discount=Fraction(1, 3))
    assert "at discount 1/3," in str(third)
    assert "at discount 1," in str(proved(discount=1))
    assert (third.horizon, third.discount, dict(third.belief.items())) == (2, Fraction(1, 3), {"a": 0.5, "b": 0.5})
    assert third.observation is None


def test_a_last_observation_is_stated():
    problem = POMDP(**{**ONCE, "legal_actions": lambda o: ["a"] if o == "x" else ["a", "b"], "legal_by": "observation"})
    certificate = solve(problem, observation="x", horizon=1).certificate()
    bounds = verify(certificate, problem, observation="x")
    assert (bounds.observation, bounds.is_initial) == ("x", False)
    assert "from belief {'a': Fraction(1, 2), 'b': Fraction(1, 2)} after observation 'x', over 1 action" in str(bounds)
    with pytest.raises(CertificateError, match=r"belief=, .*observation="):
        verify(certificate, problem)


def test_names_that_steer_a_terminal_are_shown_as_escapes():
    red = {"\u202ered": 1}
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda t, a: "x",
        reward=lambda s, a: 1,
        initial_belief={"a": 1},
        states=["a", *red],
        legal_actions=["stay"],
    )
    bounds = verify(solve(problem, belief=red, horizon=1).certificate(), problem, belief=red)
    assert "from belief {'\\u202ered': 1}, over" in str(bounds)


def test_an_integer_is_not_the_decimal_of_the_float_that_it_equals():
    whole = 99_999_999_999_999_991_611_392
    assert whole == 1e23
    for both in ({"a": whole, "b": 1e23}, {"a": 1e23, "b": whole}, {"a": Fraction(whole), "b": 1e23}):
        model = exact_model(POMDP(**{**ONCE, "reward": rewarded(both)}))
        rewards = [Fraction(row, model.r_unit) for row in model.reward[0]]
        assert rewards == [10**23 if type(x) is float else whole for x in both.values()]


@pytest.mark.parametrize(
    ("value", "rounded", "text"),
    [
        (Fraction(2, 3), floor, "0.666666666"),
        (Fraction(-2, 3), ceil, "-0.666666666"),
        (2**300 + 1, floor, "2**300"),
        (2**300 + 1, ceil, "2**301"),
        (-(2**300) - 1, floor, "-2**301"),
        (-(2**300) - 1, ceil, "-2**300"),
    ],
)
def test_a_printed_bound_is_never_tighter_than_the_proved_one(value, rounded, text):
    assert decimal(Fraction(value), rounded) == text


@pytest.mark.parametrize(("away", "accepted"), [(Fraction(1, 10**9), True), (Fraction(1001, 10**12), False)])
def test_the_start_agrees_with_the_named_belief_to_a_billionth(away, accepted):
    problem = POMDP(**ONCE)
    certificate = solve(problem, horizon=2).certificate()
    certificate["upper"] += 1 << certificate["value_bits"]
    certificate["lower"] -= 1 << certificate["value_bits"]
    near = {"a": Fraction(1, 2) + away, "b": Fraction(1, 2) - away}
    if accepted:
        bounds = verify(certificate, problem, belief=near)
        assert bounds.lower <= exact_value(problem, Belief(near), horizon=2) <= bounds.upper
    else:
        with pytest.raises(CertificateError, match=r"^start: got"):
            verify(certificate, problem, belief=near)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_bounds_are_kept_and_printed_in_short(copied):
    bounds = verify(solve(tiger(), precision=1e-2).certificate(), tiger())
    assert copied(bounds) == bounds
    printed = re.fullmatch(
        r"VerifiedBounds\(lower=([\d.]+), upper=([\d.]+), problem=(.+), horizon=None\)", repr(bounds)
    )
    lower, upper, named = printed.groups()
    assert named == repr(bounds.problem)
    assert len(lower) == len(upper) == len("19.371368322")
    assert bounds.lower - Fraction(1, 10**9) <= Fraction(lower) <= bounds.lower < Fraction("19.37136839")
    assert bounds.upper + Fraction(1, 10**9) >= Fraction(upper) >= bounds.upper > Fraction("19.37136838")
