"""Problems that people keep: pickled and deep-copied, or told why not."""

import copy
import functools
import pickle

import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import TransitionModel
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import cheese_maze, corridor, crying_baby, maze_4x3, rock_sample, tiger

FILE = "discount: 0.9\nstates: 2\nactions: 1\nobservations: 2\nT: 0 uniform\nO: 0 uniform\nR: * : * : * : * 1\n"
KEPT = {
    "tiger": tiger,
    "crying baby": crying_baby,
    "maze": maze_4x3,
    "maze with restart": functools.partial(maze_4x3, restart=True),
    "cheese": cheese_maze,
    "corridor": corridor,
    "rocks": functools.partial(rock_sample, 2, 1, rocks=[(1, 0)]),
    "file": functools.partial(read_pomdp, FILE),
    "exact file": functools.partial(read_pomdp, FILE, exact=True),
    "arrays": lambda: POMDP.from_arrays([[[0.5, 0.5], [0, 1]]], [[[1, 0], [0, 1]]], [[1, 0]], terminal=[1]),
}


def arrays(problem):
    compiled = problem.compiled
    matrices = [m.toarray().tolist() for m in (*compiled.transition, *compiled.observation)]
    return matrices, compiled.reward.tolist(), compiled.terminal.tolist(), compiled.legal.tolist(), compiled.states


@pytest.mark.parametrize("explored", [False, True])
@pytest.mark.parametrize("keep", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy, copy.copy])
@pytest.mark.parametrize("name", KEPT)
def test_problems_are_kept(name, keep, explored):
    problem = KEPT[name]()
    if explored:
        arrays(problem)
    assert arrays(keep(problem)) == arrays(problem)


def stays(s, a):
    return s


def given(**changes):
    parts = {"transition": stays, "observation": stays, "reward": {("here", "go"): 1}}
    return POMDP(**parts | {"initial_belief": {"here": 1}, "legal_actions": ["go"]} | changes)


@pytest.mark.parametrize("argument", ["transition", "observation", "reward", "terminal", "legal_actions"])
def test_a_function_that_cannot_be_pickled_is_named(argument):
    value = (lambda s: []) if argument in ("terminal", "legal_actions") else lambda s, a: s
    problem = given(**{argument: value})
    with pytest.raises(ModelError, match=rf"^{argument}: got .*<lambda>, which cannot be pickled"):
        pickle.dumps(problem)
    assert copy.deepcopy(problem).initial_belief == problem.initial_belief
    assert pickle.loads(pickle.dumps(given())).expected_reward("here", "go") == 1  # as advised: def, at the top


def test_a_class_that_cannot_be_pickled_is_named():
    class Local(TransitionModel):
        def distribution(self, state, action):
            return {state: 1}

    with pytest.raises(ModelError, match=r"^transition: got .*Local, which cannot be pickled"):
        pickle.dumps(given(transition=Local()))


def test_pickling_by_value_takes_any_function():
    by_value = pytest.importorskip("joblib.externals.loky.backend.reduction")
    problem = given(reward=lambda s, a: 7)
    assert pickle.loads(by_value.dumps(problem)).expected_reward("here", "go") == 7
