"""The two bounds against values that are known otherwise: enumeration, exact finite horizons, closed forms."""

import json
import math
import pickle
import signal
import sys

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs import search_problem
from pomdp_hier.planning import solve, value_iteration, verify
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.pomdp import to_agent
from pomdp_hier.pomdp.pomdp_file import write_pomdp
from pomdp_hier.problems import cheese_maze, maze_4x3, rock_sample, tiger
from pomdp_hier.simulation import policy_value
from tests.exact_oracle import exact_value
from tests.extras import few
from tests.small_problems import KINDS, small_problem
from tests.terminals import stopped_when_shown


def rewards(problem):
    compiled = problem.compiled
    return float(compiled.reward.min(initial=0.0)), float(compiled.reward.max(initial=0.0))


def check_endless(seed, n_trials=5):
    """Bounds of the endless horizon hold the exact value of a finite one and what can come after it."""
    problem = small_problem(seed)
    exact = float(exact_value(problem, horizon=3))
    least, most = rewards(problem)
    gamma = problem.discount
    after = gamma**3 / (1 - gamma)
    solution = solve(problem, precision=1e-6, max_trials=n_trials, engine="numpy")
    scale = 1e-8 * (1 + max(abs(least), abs(most)) / (1 - gamma))
    assert solution.lower <= solution.upper + scale, seed
    assert solution.lower <= exact + after * max(0.0, most) + scale, seed
    assert solution.upper >= exact + after * min(0.0, least) - scale, seed
    assert all(
        later.lower >= sooner.lower and later.upper <= sooner.upper
        for sooner, later in zip(solution.history, solution.history[1:], strict=False)
    ), seed
    return problem, solution


@pytest.mark.parametrize("seed", few(6, range(20)))
def test_bounds_of_the_endless_horizon_hold_what_enumeration_says(seed):
    check_endless(seed)


@pytest.mark.parametrize("seed", few(6, range(20)))
def test_bounds_of_a_finite_horizon_meet_at_the_exact_value(seed):
    problem = small_problem(seed)
    exact = float(exact_value(problem, horizon=3))
    solution = solve(problem, horizon=3, precision=1e-9, max_trials=300)
    assert solution.status in ("converged", "rounding")
    assert solution.lower == pytest.approx(exact, abs=1e-8)
    assert solution.upper == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_the_exact_solution_of_a_horizon_beyond_which_nothing_counts(kind):
    for seed in range(1):
        problem = small_problem(seed, kind=kind, discount=0.5)
        exact = float(value_iteration(problem, 7).value(problem.initial_belief))
        solution = solve(problem, precision=1e-3)
        assert solution.status == "converged"
        slack = 20 * 0.5**7 / 0.5
        assert solution.lower - slack <= exact <= solution.upper + slack


@pytest.mark.parametrize("seed", range(8))
def test_the_policy_earns_at_least_the_lower_bound(seed):
    problem = small_problem(seed)
    solution = solve(problem, horizon=4, max_trials=2)  # bounds that are still apart
    value = float(policy_value(solution.policy, problem, horizon=4).value)
    assert solution.lower - 1e-9 <= value <= solution.upper + 1e-9


def test_the_tiger_of_the_literature():
    solution = solve(tiger(), precision=1e-4)
    assert 19.3712 < solution.lower < 19.37137 < solution.upper < 19.3715  # published: 19.3714
    assert solution.policy.decide(tiger()).action == "listen"
    assert solution.gap == solution.upper - solution.lower


def test_problems_where_the_optimum_is_known_to_digits():
    assert solve(cheese_maze(), precision=1e-3).lower == pytest.approx(3.4858, abs=2e-3)
    twice = [solve(maze_4x3(), horizon=h, precision=1e-8) for h in (1, 2)]
    for h, solution in zip((1, 2), twice, strict=True):
        assert solution.lower == pytest.approx(float(exact_value(maze_4x3(), horizon=h)), abs=1e-7)


def test_fractions_and_other_beliefs():
    problem = tiger()
    whole = solve(problem, precision=1e-3)
    elsewhere = solve(problem, belief={"tiger-left": 0.9, "tiger-right": 0.1}, precision=1e-3)
    lower, upper = whole.bounds({"tiger-left": 0.9, "tiger-right": 0.1})
    assert lower - 1e-9 <= elsewhere.upper
    assert elsewhere.lower <= upper + 1e-9


def test_what_the_solution_shows_is_what_it_says():
    problem = tiger()
    solution = solve(problem, precision=1e-2)
    start = problem.compiled.initial
    assert float((solution.alpha_vectors @ start).max()) == pytest.approx(solution.lower)
    assert len(solution.alpha_actions) == len(solution.alpha_vectors)
    points = solution.points
    assert points.beliefs.shape == (len(points), 2)
    assert np.allclose(points.beliefs.sum(axis=1), 1)
    assert solution.bounds(problem.initial_belief) == pytest.approx((solution.lower, solution.upper))
    finite = solve(problem, horizon=2)
    assert finite.bounds(problem.initial_belief, to_go=1) == pytest.approx((-1, -1))
    assert finite.bounds(problem.initial_belief, to_go=0) == (0, 0)


def test_a_search_in_a_hierarchy_is_bounded_without_a_discount():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], n_items=4)
    X = np.array([[1.0, 0.1], [0.9, 0.3], [0.1, 1.0], [0.2, 0.8]])
    problem = search_problem(X, tree, 0, delta=0.5)
    solution = solve(problem, precision=1e-9)
    assert solution.status == "converged"
    assert solution.lower == pytest.approx(float(exact_value(problem, horizon=4)), abs=1e-8)
    assert float(policy_value(solution.policy, problem).value) == pytest.approx(solution.lower, abs=1e-8)


def test_a_finite_policy_runs_down_its_horizon():
    problem = tiger()
    policy = solve(problem, horizon=4, precision=1e-8).policy
    exact = policy_value(value_iteration(problem, 4), problem, horizon=4).value
    assert policy_value(policy, problem, horizon=4).value == pytest.approx(exact)


def test_limits_end_the_search():
    problem = rock_sample()
    assert solve(problem, precision=0, max_trials=0).status == "trials"
    assert solve(problem, precision=0, time_limit=0).status == "time"
    assert solve(problem, precision=0, memory_limit=0).status == "memory"
    assert solve(problem, precision=math.inf).status == "converged"
    assert solve(tiger(), horizon=2, precision=0).status in ("converged", "rounding")


def test_an_interrupt_returns_the_bounds_there_are(monkeypatch):
    def trial(self):
        usual(self)
        if self.trials == 3:
            signal.raise_signal(signal.SIGINT)

    usual = Search.trial
    monkeypatch.setattr(Search, "trial", trial)
    before = signal.getsignal(signal.SIGINT)
    interrupted = solve(rock_sample(), precision=0)
    assert (interrupted.status, interrupted.search.trials) == ("interrupted", 3)
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    same = solve(rock_sample(), precision=0, max_trials=3)
    assert (interrupted.lower, interrupted.upper) == (same.lower, same.upper)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_an_interrupt_of_the_command_prints_the_bounds_that_its_progress_bar_shows(tmp_path):
    rng = np.random.default_rng(0)
    problem = POMDP.from_arrays(
        T=rng.dirichlet(np.full(20, 0.3), (3, 20)),
        Z=rng.dirichlet(np.full(4, 0.3), (3, 20)),
        R=rng.random((3, 20)),
        discount=0.95,
    )
    write_pomdp(problem, tmp_path / "random.pomdp")
    command = [sys.executable, "-m", "pomdp_hier", "solve", "random.pomdp", "--precision=0", "--json"]
    bounds = r"\[(-?[\d.]+), (-?[\d.]+)\]"
    code, printed, found = stopped_when_shown(command, bounds, signal.SIGINT, tmp_path)
    said = json.loads(printed)
    assert (code, said["status"]) == (130, "interrupted")
    assert float(found[1]) <= said["lower"] + 1e-4 < said["upper"] <= float(found[2]) + 1e-4


def test_what_cannot_be_bounded_is_refused_with_the_reason():
    with pytest.raises(ModelError, match="expected bounded values"):
        solve(maze_4x3())  # no discount, and no end
    with pytest.raises(ModelError, match="a function of the belief"):
        solve(
            POMDP(
                transition=lambda s, a: s,
                observation=lambda s, a: 0,
                reward=lambda s, a: 1,
                initial_belief={0: 1},
                discount=0.5,
                legal_actions=lambda b: ["x"],
                legal_by="belief",
                actions=["x"],
            )
        )
    ended = small_problem(3, kind="ends", discount=0.9)
    with pytest.raises(PlanningError, match="belief: got terminal"):
        solve(ended, belief={ended.states[-1]: 1})
    for wrong in (
        {"horizon": 0},
        {"precision": -1},
        {"time_limit": -1},
        {"engine": "fast"},
        {"max_trials": -1},
        {"max_trials": 1.5},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            solve(tiger(), **wrong)


def test_the_policy_decides_in_every_loop():
    problem = tiger()
    policy = solve(problem, precision=1e-1).policy
    assert policy.decide(problem).action == "listen"
    assert policy.plan(to_agent(problem)) == "listen"
    assert pickle.loads(pickle.dumps(policy)).decide(tiger()).action == "listen"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_two_thousand_problems_are_never_crossed(block):
    for seed in range(100 * block, 100 * block + 100):
        check_endless(seed)
        problem = small_problem(seed)
        exact = float(exact_value(problem, horizon=3))
        solution = solve(problem, horizon=3, precision=1e-9, max_trials=20)
        assert solution.lower - 1e-8 <= exact <= solution.upper + 1e-8, seed


def test_bounds_grow_with_the_mass_of_the_weights():
    stage = solve(tiger(), max_trials=5).search.stages[-1]
    index, weight = np.array([0, 1]), np.array([0.25, 0.75])
    whole, half = stage.bounds(index, weight), stage.bounds(index, weight / 2)
    assert half == pytest.approx((whole[0] / 2, whole[1] / 2))


def test_vectors_of_actions_that_are_not_legal_in_a_state_are_minus_infinity_there():
    problem = small_problem(0, kind="legal by state", discount=0.5)
    solution = solve(problem, max_trials=3)
    legal = np.array([[a in problem.actions({s: 1}) for s in problem.states] for a in solution.alpha_actions])
    vectors = solution.alpha_vectors
    assert np.isfinite(vectors[:, [problem.states.index(s) for s in problem.initial_belief.support]]).any()
    assert (np.isfinite(vectors) | (vectors == -np.inf)).all()
    assert (np.isfinite(vectors) <= legal).all()


@pytest.mark.parametrize(("seen", "endless", "two"), [(None, 2, 1.5), ("open", 4, 3.5), ("shut", 2, 1.5)])
def test_the_observation_before_the_start_says_what_is_legal_there(seen, endless, two):
    """From x after "open" one goes for 3; x is never met again, nor is "open" ever seen."""
    door = POMDP(
        transition=lambda s, a: "y",
        observation=lambda s, a: "shut",
        reward=lambda s, a: 3 if a == "go" else 1,
        initial_belief={"x": 1},
        discount=0.5,
        states=["x", "y"],
        observations=["open", "shut"],
        actions=["go", "wait"],
        legal_actions=lambda o: ["go", "wait"] if o == "open" else ["wait"],
        legal_by="observation",
    )
    for horizon, value in ((None, endless), (2, two)):
        solution = solve(door, belief={"x": 1}, observation=seen, horizon=horizon, precision=1e-9)
        assert (solution.lower, solution.upper) == pytest.approx((value, value), abs=1e-8)
        proved = verify(solution.certificate(), door, belief={"x": 1}, observation=seen)
        assert proved.lower <= value <= proved.upper
        assert solution.controller().value({"x": 1}) == pytest.approx(value, abs=1e-8)
        assert ("go" in solution.policy.decide(door, {"x": 1}, observation=seen).action) == (seen == "open")
        finite = np.isfinite(solution.alpha_vectors[:, 0])
        assert finite.any()
        assert solution.alpha_vectors[finite, 0].max() == pytest.approx(value, abs=1e-8)
