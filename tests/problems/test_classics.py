"""Classic problems: published numbers, pickling and copies."""

import copy
import functools
import pickle
from collections import deque
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief, check_problem, compare_updaters
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.pomdp import TransitionModel
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import cheese_maze, corridor, crying_baby, maze_4x3, rock_sample, tiger
from pomdp_hier.problems.classics import RoverState

ALL = {
    "tiger": tiger(),
    "crying baby": crying_baby(),
    "4x3": maze_4x3(discount=0.95),
    "4x3 with restarts": maze_4x3(discount=0.95, restart=True),
    "cheese": cheese_maze(),
    "corridor": corridor(),
    "rocks": rock_sample(3, 2),
}


def mdp_values(problem, n_steps=2000):
    """Value iteration on the underlying MDP."""
    tabular, values = problem.compiled, np.zeros(len(problem.states))
    for _ in range(n_steps):
        q = tabular.reward + tabular.discount * np.array([T @ values for T in tabular.transition])
        values = np.where(tabular.terminal, 0, np.where(tabular.legal, q, -np.inf).max(axis=0))
    return dict(zip(problem.states, values, strict=True))


@pytest.mark.parametrize("name", ALL)
def test_no_classic_has_a_fault(name):
    assert check_problem(ALL[name]) == []


@pytest.mark.parametrize("name", ALL)
def test_arrays_and_models_update_beliefs_alike(name):
    problem = ALL[name]
    agreement = compare_updaters(
        BayesUpdater(problem), TabularUpdater(problem), problem, depth=4, tolerance=1e-14, max_histories=300
    )
    assert agreement.agrees, str(agreement)
    assert agreement.n_compared > 20


@pytest.mark.parametrize(
    "problem",
    [
        tiger(accuracy=Fraction(17, 20)),
        crying_baby(becomes_hungry=Fraction(1, 10), cries_hungry=Fraction(4, 5), cries_sated=Fraction(1, 10)),
        maze_4x3(slip=Fraction(1, 10), step_reward=Fraction(-1, 25)),
        cheese_maze(number=Fraction),
        corridor(number=Fraction),
    ],
)
def test_fractions_make_them_exact(problem):
    assert check_problem(problem) == []
    for action in problem.actions():
        evidence = problem.observation_probabilities(problem.initial_belief, action)
        assert sum(evidence.values()) == 1
        assert not any(isinstance(p, float) for p in evidence.values())


def test_tiger_beliefs():
    problem = tiger(accuracy=Fraction(17, 20))
    updater, belief = BayesUpdater(problem), problem.initial_belief
    for n in (1, 2, 3):
        belief = updater.update(belief, "listen", "hear-left")
        assert belief["tiger-left"] == Fraction(17**n, 17**n + 3**n)
    assert updater.update(belief, "open-left", "hear-left") == problem.initial_belief
    assert problem.reward(problem.initial_belief, "open-left") == -45


def test_the_crying_babys_beliefs_are_the_books():
    # Kochenderfer, Wheeler and Wray (2022), Algorithms for Decision Making, section 19.2
    problem = crying_baby()
    updater, belief = BayesUpdater(problem), problem.initial_belief
    hungry = []
    for action, observation in [
        ("ignore", "crying"),
        ("feed", "quiet"),
        ("ignore", "quiet"),
        ("ignore", "quiet"),
        ("ignore", "crying"),
    ]:
        belief = updater.update(belief, action, observation)
        hungry.append(round(belief["hungry"], 4))
    assert hungry == [0.9072, 0, 0.0241, 0.0299, 0.5376]


def test_the_4x3_mazes_utilities_are_russell_and_norvigs():
    # Artificial Intelligence: A Modern Approach, chapter 17, gamma 1, step reward -0.04
    values = mdp_values(maze_4x3())
    book = {
        (0, 0): 0.812, (0, 1): 0.868, (0, 2): 0.918,
        (1, 0): 0.762, (1, 2): 0.660,
        (2, 0): 0.705, (2, 1): 0.655, (2, 2): 0.611, (2, 3): 0.388,
    }  # fmt: skip
    assert {cell: round(values[cell], 3) for cell in book} == book


def test_the_4x3_maze_looks_as_it_should():
    problem = maze_4x3()
    seen = {cell: next(iter(problem.observation_distribution(cell, "north", None))) for cell in problem.states}
    assert [seen[0, c] for c in range(4)] == ["left", "neither", "neither", "good"]
    assert (seen[1, 0], seen[1, 2], seen[1, 3]) == ("both", "left", "bad")
    assert [seen[2, c] for c in range(4)] == ["left", "neither", "neither", "right"]
    assert len(maze_4x3(restart=True).successors((0, 3), "north")) == 9


def test_the_cheese_maze_is_a_shortest_path_problem_for_those_who_see():
    problem = cheese_maze()
    distance, queue = {(2, 2): 0}, deque([(2, 2)])
    while queue:
        cell = queue.popleft()
        for other in problem.states:
            if other not in distance and any(cell in problem.successors(other, a) for a in problem.all_actions):
                distance[other] = distance[cell] + 1
                queue.append(other)
    assert max(distance.values()) == 6
    values = mdp_values(problem)
    again = 0.95 * np.mean([values[cell] for cell in problem.states if cell != (2, 2)])
    for cell, d in distance.items():
        if d:
            assert values[cell] == pytest.approx(0.95 ** (d - 1) * (1 + 0.95 * again), abs=1e-9)
    looks = [next(iter(problem.observation_distribution(cell, "north", None))) for cell in problem.states]
    assert sorted(looks.count(look) for look in set(looks)) == [1, 1, 1, 1, 2, 2, 3]


def test_the_corridors_first_beliefs_by_hand():
    problem = corridor(number=Fraction)
    updater, third = BayesUpdater(problem), Fraction(1, 3)
    assert updater.evidence(problem.initial_belief, "west", "goal") == third
    assert updater.update(problem.initial_belief, "west", "nothing") == Belief.certain((0, 0))
    assert updater.update(problem.initial_belief, "east", "nothing") == Belief(
        {(0, 1): third * 3 / 2, (0, 3): third * 3 / 2}
    )
    assert problem.reward(problem.initial_belief, "east") == third


def test_rock_sample_has_the_published_sizes_and_sensor():
    problem = rock_sample(4, 4)
    assert (len(problem.states), len(problem.all_actions), len(problem.all_observations)) == (257, 9, 3)
    one = rock_sample(5, 1, rocks=[(2, 2)], half_distance=2)
    assert one.actions() == ("north", "south", "east", "check 0")
    near, far = (RoverState((x, 2), (True,)) for x in (2, 0))
    assert one.observation_distribution(near, "check 0", None) == {"good": 1.0, "bad": 0.0}
    assert one.observation_distribution(far, "check 0", None)["good"] == pytest.approx(0.75)
    assert one.successors(near, "sample") == {RoverState((2, 2), (False,)): 1}
    assert (one.expected_reward(near, "sample"), one.expected_reward(RoverState((2, 2), (False,)), "sample")) == (
        10,
        -10,
    )


def test_rock_sample_with_known_rocks_is_a_walk_by_the_good_ones():
    problem = rock_sample(3, 1, rocks=[(1, 1)], discount=0.9)
    values = mdp_values(problem, 200)
    start = (0, 1)
    # three steps east; with a good rock one more step, the sample, on the way
    assert values[RoverState(start, (False,))] == pytest.approx(10 * 0.9**2)
    assert values[RoverState(start, (True,))] == pytest.approx(10 * 0.9 + 10 * 0.9**3)


@pytest.mark.parametrize(
    "arguments",
    [{"n": 0}, {"n": 2, "k": 5}, {"n": 2, "k": 1, "rocks": [(2, 0)]}, {"n": 2, "k": 2, "rocks": [(0, 0), (0, 0)]}],
)
def test_rock_fields_that_cannot_be(arguments):
    with pytest.raises(ParameterError, match="rock_sample"):
        rock_sample(**arguments)


def test_the_optimal_values_of_tiger_over_short_horizons():
    # from an independent exact solver: b = (1/2, 1/2), discount 0.95
    solution = value_iteration(tiger(), horizon=6)
    values = [solution.value(tiger().initial_belief, to_go=t) for t in range(1, 7)]
    assert values == pytest.approx([-1, -1.95, 2.3098, 1.795544, 2.763096, 4.428531], abs=1e-6)


def test_the_optimal_values_of_the_corridor_by_hand():
    # two steps: east finds the goal from one of three cells, and after "nothing" again from one of two
    solution = value_iteration(corridor(), horizon=2)
    start = corridor().initial_belief
    assert solution.value(start, to_go=1) == pytest.approx(1 / 3)
    assert solution.value(start) == pytest.approx(1 / 3 + 0.75 * 2 / 3 * 1 / 2)
    assert solution.action(start) == "east"


@pytest.mark.parametrize("name", ALL)
def test_beliefs_are_those_of_dense_bayes_along_a_random_run(name):
    problem, rng = ALL[name], np.random.default_rng(1)
    states, updater, belief = problem.states, BayesUpdater(problem), problem.initial_belief
    tabular = TabularUpdater(problem)
    for _ in range(6):
        actions = problem.actions(belief)
        if not actions:
            break
        action = actions[int(rng.integers(len(actions)))]
        observations = problem.observations(belief, action)
        observation = observations[int(rng.integers(len(observations)))]
        mass = np.zeros(len(states))
        for s, p in belief.items():
            for i, t in enumerate(states):
                moved = p * problem.transition.probability(t, s, action)
                mass[i] += moved * problem.observation.probability(observation, t, action)
        dense = mass / mass.sum()
        arrays = tabular.update(problem.compiled.vector(belief), action, observation)
        belief = updater.update(belief, action, observation)
        assert np.allclose([belief[s] for s in states], dense, atol=1e-14, rtol=0)
        assert np.allclose(arrays, dense, atol=1e-14, rtol=0)


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
    with pytest.raises(ModelError, match=rf"^{argument}: got .*<lambda>"):
        pickle.dumps(problem)
    assert copy.deepcopy(problem).initial_belief == problem.initial_belief
    assert pickle.loads(pickle.dumps(given())).expected_reward("here", "go") == 1  # as advised: def, at the top


def test_a_class_that_cannot_be_pickled_is_named():
    class Local(TransitionModel):
        def distribution(self, state, action):
            return {state: 1}

    with pytest.raises(ModelError, match=r"^transition: got .*Local"):
        pickle.dumps(given(transition=Local()))


def test_pickling_by_value_takes_any_function():
    by_value = pytest.importorskip("joblib.externals.loky.backend.reduction")
    problem = given(reward=lambda s, a: 7)
    assert pickle.loads(by_value.dumps(problem)).expected_reward("here", "go") == 7
