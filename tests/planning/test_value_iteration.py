"""Exact values: alpha vectors and enumeration against each other, closed forms, and pomdp-py."""

import sys
from fractions import Fraction

import numpy as np
import pomdp_py
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning import alpha_vectors, value_iteration
from pomdp_hier.planning.alpha_vectors import Points, prune
from pomdp_hier.planning.value_iteration import FiniteHorizonSolution
from tests.exact_oracle import exact_value
from tests.extras import few
from tests.pomdp_models import random_fractions, random_problem, search_tree, tiger


@pytest.mark.parametrize("seed", few(3, range(8)))
def test_vectors_equal_enumeration(seed):
    problem = random_problem(
        seed,
        rewards=["mixed", "negative"][seed % 2],
        discount=[0.0, 0.5, 1.0][seed % 3],
        terminal=seed % 4 > 1,
        actions=2,
    )
    solution = value_iteration(problem, 4)
    rng = np.random.default_rng(seed)
    beliefs = [problem.initial_belief, *(Belief.certain(s) for s in problem.states)]
    beliefs += [Belief.normalized(dict(enumerate(rng.random(3).tolist()))) for _ in range(3)]
    for belief in beliefs:
        for horizon in range(5):
            expected = exact_value(problem, belief, horizon)
            assert solution.value(belief, to_go=horizon) == pytest.approx(expected, abs=1e-8)


def test_tiger():
    solution = value_iteration(tiger(), 6)
    half = {"left": 0.5, "right": 0.5}
    golden = [-1, -1.95, 2.3098, 1.795544, 2.763096, 4.428531]
    assert [solution.value(half, to_go=t) for t in range(1, 7)] == pytest.approx(golden, abs=5e-7)
    assert solution.action(half) == "listen"
    assert solution.action({"left": 0.97, "right": 0.03}) == "open-right"
    assert [len(vectors) for vectors, _ in solution.stages[:6]] == [1, 3, 5, 9, 7, 13]
    decision = solution.decide(tiger())
    assert decision.action == "listen"
    assert decision.value == pytest.approx(golden[-1], abs=5e-7)
    assert solution.at_step(5).horizon == 1
    assert solution.at_step(5).value(half) == -1


def test_pomdp_py_agrees():
    problem = random_problem(3, discount=0.9)

    class T(pomdp_py.TransitionModel):
        def probability(self, next_state, state, action):
            return problem.successors(state, action).get(next_state, 0)

    class Z(pomdp_py.ObservationModel):
        def probability(self, observation, next_state, action):
            return problem.observation_distribution(next_state, action, None).get(observation, 0)

    class R(pomdp_py.RewardModel):
        def sample(self, state, action, next_state):
            return problem.expected_reward(state, action)

    belief = {s: problem.initial_belief[s] for s in problem.states}
    spaces = [list(problem.states), list(problem.all_actions), list(problem.all_observations)]
    theirs = pomdp_py.value(belief, *spaces, T(), Z(), R(), 0.9, horizon=3)
    assert exact_value(problem, horizon=3) == pytest.approx(theirs, abs=1e-12)
    assert value_iteration(problem, 3).value(belief) == pytest.approx(theirs, abs=1e-9)


def test_ten_steps_of_discount():
    """pomdp-py's ValueIteration discounts too much from horizon 3 on; here 1 + 1/2 + 1/4 = 1.75."""
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda next_state, a: "same",
        reward=lambda s, a: 1,
        initial_belief={"here": Fraction(1)},
        discount=Fraction(1, 2),
        legal_actions=["wait"],
    )
    assert exact_value(problem, horizon=3) == Fraction(7, 4)
    assert value_iteration(problem, 3).value({"here": 1}) == 1.75


@pytest.mark.parametrize("seed", range(4))
def test_fractions_and_floats(seed):
    problem = random_fractions(seed)
    exact = exact_value(problem, horizon=4)
    assert isinstance(exact, Fraction)
    assert value_iteration(problem, 4).value(problem.initial_belief) == pytest.approx(float(exact), abs=1e-9)


def test_legality_by_state():
    eta = {"c1": 0.7, "c2": 0.3}
    problem = search_tree({"c0": ["c1", "c2"]}, lambda c, d: eta[d], {"c0": 0.1, "c1": 0.5, "c2": 0.6})
    solution = value_iteration(problem, 3)
    for node, belief in (("c0", 1.0), ("c1", 0.7), ("c2", 0.3)):
        here = Belief({(node, 1): belief, (node, 0): 1 - belief})
        for horizon in (1, 2, 3):
            expected = exact_value(problem, here, horizon)
            assert solution.value(here, to_go=horizon) == pytest.approx(expected, abs=1e-12)
    leaf = Belief({("c1", 1): 0.7, ("c1", 0): 0.3})
    assert solution.action(leaf) == "search"
    over = Belief.certain(("end", 1))
    assert solution.value(over) == 0
    with pytest.raises(PlanningError, match="belief: got terminal"):
        solution.action(over)


def test_final_value():
    problem = tiger()
    horizon_3 = exact_value(problem, horizon=3)
    again = exact_value(problem, horizon=1, final_value=lambda b: exact_value(problem, b, 2))
    assert again == pytest.approx(horizon_3, abs=1e-12)
    assert exact_value(problem, horizon=0) == 0


def test_an_action_that_is_legal_in_no_state_has_no_vector():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda t, a: "none",
        reward=lambda s, a: 1,
        initial_belief={"here": 0.5, "there": 0.5},
        actions=["wait", "fly"],
        legal_actions=lambda state: ["wait"],
    )
    solution = value_iteration(problem, 2)
    assert (solution.vectors.tolist(), solution.actions) == ([[2.0, 2.0]], ("wait",))


def test_pruning_keeps_what_is_best_somewhere():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.45, 0.45], [0.6, 0.6], [0.6, 0.6], [-1.0, -1.0]])
    assert prune(vectors, 1e-10, Points(2)).tolist() in ([0, 1, 3], [0, 1, 4])
    useless = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.4, 0.4]])
    assert prune(useless, 1e-10, Points(2)).tolist() == [0, 1]
    illegal = np.array([[5.0, -np.inf], [1.0, 1.0], [-np.inf, -np.inf]])
    assert prune(illegal, 1e-10, Points(2)).tolist() == [0, 1]


def test_limits_are_named():
    with pytest.raises(ParameterError, match="horizon: got -1"):
        value_iteration(tiger(), -1)
    with pytest.raises(PlanningError, match=r"max_vectors: got 4"):
        value_iteration(tiger(), 3, max_vectors=4)
    assert isinstance(value_iteration(tiger(), 0), FiniteHorizonSolution)
    with pytest.raises(PlanningError, match="to_go=0"):
        value_iteration(tiger(), 0).action({"left": 1})


@pytest.mark.parametrize("horizon", [-1, "3", 2.5, None])
def test_a_horizon_that_is_no_number_of_steps_is_refused(horizon):
    with pytest.raises(ParameterError, match=r"horizon: got"):
        value_iteration(tiger(), horizon)


def test_what_is_legal_after_an_observation_counts_from_the_first_action_to_the_last():
    legal = {None: ["look"], "hot": ["dig"], "cold": ["look"]}
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"hot": 0.25, "cold": 0.75},
        reward=lambda s, a: 8 if a == "dig" else 1,
        initial_belief={"here": 1},
        legal_actions=legal.__getitem__,
        legal_by="observation",
        actions=["dig", "look"],
    )
    start = problem.initial_belief
    assert value_iteration(problem, 0).value(start) == 0
    solution = value_iteration(problem, 2)
    assert [solution.value(start, observation=o) for o in legal] == [1 + 2.75, 8 + 2.75, 1 + 2.75]
    assert solution.value(start, observation="hot", to_go=0) == 0


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_matrix_games_are_solved_together_as_by_linear_programs(size):
    rng = np.random.default_rng(size)
    gaps = rng.normal(size=(40, size, 3 * size))
    gaps[:10] = rng.integers(-2, 3, (10, size, 3 * size))  # ties, where a simplex is degenerate
    gaps[10:20, :, 1] = gaps[10:20, :, 0] + 1e-9  # columns that are almost equal
    beliefs, beyond = alpha_vectors._game_beliefs(gaps)
    assert (beliefs >= 0).all()
    assert beliefs.sum(axis=1) == pytest.approx(np.ones(40))
    proved = beyond <= 1e-10
    assert proved[20:].all()
    assert proved.sum() >= 36
    exact = alpha_vectors._linear_programs(gaps)
    worth, least = (np.einsum("nsk,ns->nk", gaps, b).min(axis=1) for b in (beliefs, exact))
    assert worth[proved] == pytest.approx(least[proved], abs=1e-8)


def test_games_that_the_simplex_does_not_prove_are_left_to_linear_programs(monkeypatch):
    problem = random_problem(3, observations=3)
    usual = value_iteration(problem, 3)
    monkeypatch.setattr(alpha_vectors, "_MOST_PIVOTS", 0)
    beyond = alpha_vectors._game_beliefs(np.random.default_rng(0).normal(size=(5, 3, 9)))[1]
    assert (beyond > 1e-3).all()
    by_programs = value_iteration(problem, 3)
    for (one, first), (other, second) in zip(usual.stages, by_programs.stages, strict=True):
        assert first.tolist() == second.tolist()
        assert one == pytest.approx(other, abs=1e-12)


def test_beliefs_are_known_once_and_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(alpha_vectors, "_POINTS", 3)
    points, columns = Points(2), np.arange(2)
    rows = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6], [0.1, 0.9]])
    for row in rows:
        points.add(columns, row[None])
    assert points.over(columns, 1)[3:, 0].tolist() == [0.3, 0.4, 0.1]
    assert points.over(columns[:1], 1).tolist() == [[1.0]] * 5
    points.add(columns, np.array([[1.0, 0.0]]))
    assert len(points.over(columns, 1)) == 6


@pytest.mark.parametrize("seed", range(3))
def test_actions_backed_up_together_have_the_vectors_of_each_alone(monkeypatch, seed):
    problem = random_problem(seed, observations=3)
    together = value_iteration(problem, 4)
    monkeypatch.setattr(sys.modules[value_iteration.__module__], "_TOGETHER", 0)
    alone = value_iteration(problem, 4)
    for (one, first), (other, second) in zip(together.stages, alone.stages, strict=True):
        assert first.tolist() == second.tolist()
        assert one.tobytes() == other.tobytes()
