import pickle
from dataclasses import dataclass

import pomdp_py
import pytest

from pomdp_hier import Action, Observation, State


@dataclass(frozen=True)
class Cell(State):
    row: int


@dataclass(frozen=True)
class Step(Action):
    row: int


@dataclass(frozen=True)
class Sight(Observation):
    row: int


@pytest.mark.parametrize("cls", [Cell, Step, Sight])
def test_frozen_dataclasses_compare_by_their_fields(cls):
    assert cls(1) == cls(1)
    assert hash(cls(1)) == hash(cls(1))
    assert cls(1) != cls(2)
    assert pickle.loads(pickle.dumps(cls(1))) == cls(1)


def test_objects_of_two_types_are_unequal_both_ways():
    # pomdp-py's own __ne__ would call them not unequal, since a dataclass's __eq__ says NotImplemented
    assert Cell(1) != Step(1)
    assert (Cell(1) == Step(1)) is False
    assert Cell(1) != "elsewhere"


def test_plain_subclasses_compare_by_identity():
    class Thing(State):
        pass

    one = Thing()
    assert one == one
    assert one != Thing()
    assert len({one, Thing()}) == 2


def test_they_are_those_of_pomdp_py():
    assert issubclass(State, pomdp_py.State)
    assert issubclass(Action, pomdp_py.Action)
    assert issubclass(Observation, pomdp_py.Observation)
