"""Every bound bounds the same depth with the same fringe, and the sharper ones are sharper."""

import numpy as np
import pytest

from pomdp_hier.planning import RTBSS, StopValue
from pomdp_hier.planning.bounds import blind_bound, fib_bound, qmdp_bound, range_bound, reward_range
from pomdp_hier.planning.fringe import fringe_vectors
from pomdp_hier.pomdp import POMDP
from tests.pomdp_models import random_problem, search_tree, tiger


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rewards", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("fringe", ["zero", "immediate", StopValue(2)])
def test_admissible_and_ordered(seed, rewards, fringe):
    problem = random_problem(seed, rewards=rewards, discount=[0.0, 0.5, 1.0][seed % 3], terminal=seed % 2 == 0)
    compiled, vectors = problem.compiled, fringe_vectors(problem, fringe)
    depth = 3
    tables = {f: f(compiled, depth, vectors) @ compiled.initial for f in (fib_bound, qmdp_bound, range_bound)}
    blind = blind_bound(compiled, depth, vectors) @ compiled.initial
    for d in range(1, depth + 1):
        exact = RTBSS(d, fringe, prune=False, engine="plain").decide(problem).q_values
        values = np.array([exact[a] for a in problem.all_actions])
        assert (values <= tables[fib_bound][d - 1] + 1e-10).all()
        assert (tables[fib_bound][d - 1] <= tables[qmdp_bound][d - 1] + 1e-10).all()
        assert (tables[qmdp_bound][d - 1] <= tables[range_bound][d - 1] + 1e-10).all()
        assert (blind[d - 1] <= values + 1e-10).all()


def test_an_infinite_horizon_bound_would_be_wrong_for_costs():
    """All rewards are -1: two steps cost -2, which the bound of a longer horizon lies below."""
    problem = random_problem(1, rewards="negative")
    compiled = problem.compiled
    assert (fib_bound(compiled, 50)[-1].max() < fib_bound(compiled, 2)[-1]).all()


def test_of_a_fully_observed_problem_they_are_exact():
    problem = POMDP.from_arrays(
        T=[[[0.5, 0.5], [0.2, 0.8]], [[1, 0], [0.9, 0.1]]], Z=[np.eye(2), np.eye(2)], R=[[-1, 2], [0.5, -3]]
    )
    compiled = problem.compiled
    exact = RTBSS(4, prune=False, engine="plain").decide(problem, problem.initial_belief)
    for bound in (fib_bound, qmdp_bound):
        np.testing.assert_allclose(bound(compiled, 4)[-1] @ compiled.initial, list(exact.q_values.values()))


def test_tiger_by_hand():
    compiled = tiger().compiled
    assert reward_range(compiled) == (-100.0, 10.0)
    np.testing.assert_allclose(range_bound(compiled, 2)[1], compiled.reward + 0.95 * 10)
    np.testing.assert_allclose(qmdp_bound(compiled, 2)[1], compiled.reward + 0.95 * 10)
    # each state taken alone opens the right door after either sound; after a door, the two sides cannot be told apart
    np.testing.assert_allclose(fib_bound(compiled, 2)[1, 0], -1 + 0.95 * (0.85 * 10 + 0.15 * 10))
    np.testing.assert_allclose(fib_bound(compiled, 2)[1, 1], compiled.reward[1] + 0.95 * -1)
    np.testing.assert_allclose(blind_bound(compiled, 3)[2, 0], -1 - 0.95 - 0.95**2)


def test_legality_tightens_and_loosens():
    """A leaf can only be searched, so that no bound hopes to descend there, and nothing blind descends for ever."""
    problem = search_tree(
        {"c0": ["c1", "c2"]}, lambda c, d: {"c1": 0.7, "c2": 0.3}[d], {"c0": 0.1, "c1": 0.5, "c2": 0.6}
    )
    compiled = problem.compiled
    descend, search = (compiled.action_index[a] for a in ("descend", "search"))
    at_leaf = compiled.state_index["c1", 0]
    table = fib_bound(compiled, 3)
    assert table[2, search, at_leaf] == -1
    assert table[2, descend, compiled.state_index["c0", 1]] == pytest.approx(0.49 * 1.5 + 0.09 * 1.6 - 1)
    assert blind_bound(compiled, 3)[2, descend, at_leaf] == -np.inf
