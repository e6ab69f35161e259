"""The values of seen states, held against all policies in fractions, and against plain enumeration of the future."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.bounds import mdp_values
from tests.small_problems import KINDS, small_problem


def solved(matrix, right):
    """The solution of linear equations in fractions, by elimination."""
    n = len(matrix)
    rows = [[*map(Fraction, row), Fraction(b)] for row, b in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in set(range(n)) - {i}:
            rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def parts(problem):
    """States that are not the end, the legal actions of each, T and R by definition, and the discount."""
    alive = [s for s in problem.states if not problem.is_terminal(s)]
    legal = {s: problem.possible_actions(s) for s in alive}
    step = {(s, a): problem.successors(s, a) for s in alive for a in legal[s]}
    earns = {(s, a): Fraction(problem.expected_reward(s, a)) for s in alive for a in legal[s]}
    return alive, legal, step, earns, Fraction(problem.discount)


def best_of_all_policies(problem):
    """``{(s, a): Q}`` of the best of all policies that choose an action by state."""
    alive, legal, step, earns, gamma = parts(problem)
    best = dict.fromkeys(alive)
    for choice in itertools.product(*(legal[s] for s in alive)):
        chosen = dict(zip(alive, choice, strict=True))
        matrix = [[(s == t) - gamma * Fraction(step[s, chosen[s]].get(t, 0)) for t in alive] for s in alive]
        value = solved(matrix, [earns[s, chosen[s]] for s in alive])
        for s, v in zip(alive, value, strict=True):
            best[s] = v if best[s] is None else max(best[s], v)
    return {
        (s, a): earns[s, a] + gamma * sum(Fraction(p) * best.get(t, 0) for t, p in step[s, a].items())
        for s in alive
        for a in legal[s]
    }


def ahead(problem, horizon):
    """``{(s, a): Q}`` of so many actions, by recursion on the definition."""
    alive, legal, step, earns, gamma = parts(problem)
    if not horizon:
        return {(s, a): Fraction(0) for s in alive for a in legal[s]}
    after = ahead(problem, horizon - 1)
    best = {s: max(after[s, a] for a in legal[s]) for s in alive}
    return {key: earns[key] + gamma * sum(Fraction(p) * best.get(t, 0) for t, p in step[key].items()) for key in earns}


def held_against(problem, table, expected):
    compiled = problem.compiled
    for (a, action), (s, state) in itertools.product(enumerate(compiled.actions), enumerate(compiled.states)):
        if problem.is_terminal(state):
            assert table[a, s] == 0
        elif (state, action) in expected:
            exact = float(expected[state, action])
            assert table[a, s] == pytest.approx(exact, rel=1e-9, abs=1e-9)
        else:
            assert table[a, s] == -np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_best_policy_and_of_so_many_actions(kind):
    for seed in range(4):
        for discount in (0.5, 0.999):
            problem = small_problem(seed, kind=kind, discount=discount)
            table, backups = mdp_values(problem.compiled, tolerance=1e-14)
            held_against(problem, table, best_of_all_policies(problem))
            assert backups <= 200
        for horizon in (1, 3):
            table, backups = mdp_values(problem.compiled, horizon=horizon)
            held_against(problem, table, ahead(problem, horizon))
            assert backups <= horizon


def test_a_horizon_beyond_the_fixed_point_takes_no_more_backups():
    problem = small_problem(1, kind="plain", discount=0.5)
    table, backups = mdp_values(problem.compiled, horizon=10**18)
    held_against(problem, table, best_of_all_policies(problem))
    assert 3 < backups <= 200
    assert mdp_values(problem.compiled, horizon=3)[1] == 3


def loop(discount, reward):
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: reward,
        initial_belief={"here": 1},
        discount=discount,
        legal_actions=["stay"],
    ).compiled


def test_the_tolerance_is_relative_to_the_values_however_small():
    """After n backups the last change is ``reward / 2^(n - 1)``, and the value ``2 reward (1 - 1 / 2^n)``."""
    for reward, tolerance, backups in ((1e6, 1e-6, 20), (2.0, 1e-6, 20), (1e-3, 1e-6, 20), (1e-200, 1e-6, 20)):
        table, taken = mdp_values(loop(0.5, reward), tolerance=tolerance)
        assert taken == backups
        assert table[0, 0] == pytest.approx(2 * reward * (1 - 0.5**backups), rel=1e-12)


def test_values_beyond_settling_are_named_and_solved_ones_settle():
    table, backups = mdp_values(loop(1 - 1e-9, 1.0))
    assert table[0, 0] == pytest.approx(1e9, rel=1e-6)
    assert backups == 51  # fifty, and one that finds the solution of the linear equation unchanged
    with pytest.raises(PlanningError, match=r"discount: got 1.0.*30"):
        mdp_values(loop(1, 1.0), max_iterations=30)
    assert mdp_values(loop(1, 0.0))[1] == 1
    assert mdp_values(loop(1, 1.0), horizon=70)[0].tolist() == [[70.0]]


def test_what_is_legal_after_no_observation_is_left_out_and_ends_are_worth_nothing():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: {"a": 1.0, "b": 2.0, "never": 9.0}[a],
        initial_belief={"x": 0.5, "y": 0.5},
        discount=0.5,
        legal_actions=lambda o: ["a"] if o == "x" else ["a", "b"],
        legal_by="observation",
        states=["x", "y"],
        actions=["a", "b", "never"],
        observations=["x", "y"],
    )
    assert mdp_values(problem.compiled)[0] == pytest.approx(np.array([[3.0] * 2, [4.0] * 2, [-np.inf] * 2]))
    way_out = POMDP(
        transition=lambda s, a: "out",
        observation=lambda s, a: s,
        reward=lambda s, a: 5.0,
        initial_belief={"in": 1},
        terminal=["out"],
        legal_actions=lambda o: ["leave"],
        legal_by="observation",
        states=["in", "out"],
        actions=["leave", "never"],
        observations=["in", "out"],
    )
    assert mdp_values(way_out.compiled)[0].tolist() == [[5.0, 0.0], [-np.inf, 0.0]]
