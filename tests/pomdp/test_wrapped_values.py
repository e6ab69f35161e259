"""Values for pomdp-py, and the scope for its random numbers."""

import copy
import pickle
import random

import pytest

from pomdp_hier.pomdp.spaces import BridgedAction, BridgedObservation, BridgedState, seeded_random, unwrapped


@pytest.mark.parametrize("kind", [BridgedState, BridgedAction, BridgedObservation])
def test_bridged_values_equal_what_they_hold(kind: type) -> None:
    one, same, other = kind("x"), kind("x"), kind(("x", 1))
    assert one == same
    assert one == "x"
    assert one != other
    assert other != "x"
    assert {"x": 1}[one] == 1
    assert {one: 1}["x"] == 1
    assert (repr(one), str(one), str(other)) == ("'x'", "x", "('x', 1)")
    assert copy.deepcopy(one) is one
    assert pickle.loads(pickle.dumps(other)) == other
    assert unwrapped(one) == "x"
    assert BridgedState("x") != BridgedObservation("x")


def test_seeded_random_restores_the_global_state_even_after_an_error() -> None:
    random.seed(5)
    before = random.getstate()

    def draw_and_fail() -> None:
        with seeded_random(1):
            random.random()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        draw_and_fail()
    assert random.getstate() == before
