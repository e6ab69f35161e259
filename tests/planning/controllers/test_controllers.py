"""Controllers: exact values against simulation and closed forms, minimising, what cannot have a value, runs."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning import (
    RTBSS,
    FiniteStateController,
    solve,
)
from pomdp_hier.problems import cheese_maze, maze_4x3, tiger
from pomdp_hier.simulation import compare_policies, policy_value, simulate
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from tests.exact_oracle import exact_value
from tests.extras import few
from tests.small_problems import KINDS, small_problem


def simulated(controller, n_runs, rng, n_steps):
    """Returns of runs that follow the controller's nodes, by nothing but the model's own distributions."""
    problem, returns = controller.problem, []
    for _ in range(n_runs):
        state, node, total, weight = problem.initial_belief.sample(rng), controller.start, 0.0, 1.0
        for _ in range(n_steps):
            if problem.is_terminal(state) or node < 0:
                break
            action = controller.action_names[node]
            flows = problem.successors(state, action)
            then = list(flows)[int(rng.choice(len(flows), p=list(flows.values())))]
            made = problem.observation_distribution(then, action, state)
            seen = list(made)[int(rng.choice(len(made), p=list(made.values())))]
            total += weight * problem.step_reward(state, action, then, seen)
            weight *= problem.discount
            state, node = then, int(controller.after[node, problem.all_observations.index(seen)])
        returns.append(total)
    return np.array(returns)


def check_against_simulation(seed, n_runs):
    problem = small_problem(seed, discount=0.8)
    solution = solve(problem, precision=1e-4, max_trials=30)
    controller = solution.controller()
    value = controller.value()
    assert solution.lower - 1e-6 <= value <= solution.upper + 1e-6
    returns = simulated(controller, n_runs, np.random.default_rng(seed), 60)
    error = 4.5 * returns.std() / np.sqrt(n_runs) + 30 * 0.8**60 / 0.2
    assert abs(returns.mean() - value) <= error + 1e-9


@pytest.mark.parametrize("seed", few(1, range(3)))
def test_values_are_those_of_simulated_runs(seed):
    check_against_simulation(seed, 100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_values_are_those_of_simulated_runs_on_twenty_models(seed):
    check_against_simulation(seed, 1_500)


def test_the_tigers_controller(classic):
    assert len(classic) == 5
    assert 19.3713 < classic.value() < 19.3907
    assert float(classic.value(exact=True)) == pytest.approx(classic.value(), abs=1e-9)
    assert classic.action_names.count("listen") == 3


@pytest.mark.parametrize("seed", range(6))
def test_floats_and_fractions_agree(seed):
    controller = solve(small_problem(seed, discount=0.5), precision=1e-1, max_trials=3).controller()
    assert controller.value() == pytest.approx(float(controller.value(exact=True)), abs=1e-8)


@pytest.mark.parametrize("kind", ["plain", "ends", "legal by state", "legal by observation"])
def test_floats_and_fractions_agree_at_every_node_and_state(kind):
    lost = 0
    for seed in range(4):
        problem, random = small_problem(seed, kind=kind, discount=0.5), np.random.default_rng(seed)
        actions = random.integers(0, problem.compiled.n_actions, 3)
        after = random.integers(-1, 3, (3, problem.compiled.n_observations))
        controller = FiniteStateController(problem, actions, after, start=1)
        exact = np.array([[-np.inf if v is None else float(v) for v in row] for row in controller.exact_values])
        assert controller.values == pytest.approx(exact, abs=1e-9)
        lost += int((exact == -np.inf).sum())
    assert (lost > 0) == kind.startswith("legal")


def test_a_value_by_hand():
    always = FiniteStateController(
        tiger(discount=Fraction(1, 2)), np.array([1]), np.array([[0, 0]])
    )  # open the left door
    assert always.value(exact=True) == -90
    assert always.value({"tiger-left": 1}, exact=True) == Fraction(-100) - 45


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_finite_horizon_is_a_controller_that_ends(horizon):
    solution = solve(tiger(), horizon=horizon, precision=1e-9)
    controller = solution.controller()
    assert controller.value() == pytest.approx(solution.lower)
    assert (controller.after < 0).any() or horizon == 1


def test_as_a_policy_it_earns_what_it_says(classic):
    value = policy_value(classic, tiger(), horizon=12).value
    assert value == pytest.approx(policy_value(solve(tiger(), precision=1e-6).policy, tiger(), horizon=12).value)


def test_minimising_keeps_the_value():
    for problem in (tiger(), cheese_maze()):
        solution = solve(problem, precision=1e-2)
        whole = solution.controller()
        doubled = FiniteStateController(
            problem,
            np.tile(whole.actions, 2),
            np.vstack([whole.after, np.where(whole.after >= 0, whole.after + len(whole), -1)]),
            whole.start + len(whole),
        )
        assert len(doubled.minimised()) <= len(whole)
        assert doubled.minimised().value() == pytest.approx(whole.value(), abs=1e-9)


def test_what_is_no_controller_is_refused():
    with pytest.raises(ModelError, match="controller"):
        FiniteStateController(tiger(), np.array([0]), np.array([[0, 1]]))
    with pytest.raises(ModelError, match="controller"):
        FiniteStateController(tiger(), np.array([7]), np.array([[0, 0]]))
    with pytest.raises(PlanningError, match="indefinitely"):
        FiniteStateController(maze_4x3(), np.array([0]), np.zeros((1, 6), dtype=int)).value()


def test_without_a_discount_a_controller_has_a_value_if_it_surely_ends():
    rewards = {"a": 1, "b": 2}
    walk = POMDP(
        transition=lambda s, a: {"a": "b", "b": "end"}[s],
        observation=lambda s, a: s,
        reward=lambda s, a: rewards[s],
        initial_belief={"a": 1},
        terminal=["end"],
        legal_actions=["go"],
    )
    controller = FiniteStateController(walk, np.array([0]), np.zeros((1, 2), dtype=int))
    assert controller.value() == controller.value(exact=True) == 3
    assert controller.to_text().splitlines()[0] == "* 0 go  V 3  a 1"


def test_a_state_that_is_never_met_takes_no_value_from_the_others():
    """Without a discount one that stays where it is for ever has none; it cannot be met from the start."""
    after = {"a": {"b": Fraction(1, 2), "end": Fraction(1, 2)}, "b": {"end": 1}, "lost": {"lost": 1}}
    walk = POMDP(
        transition=lambda s, a: after[s],
        observation=lambda s, a: "same",
        reward=lambda s, a: {"a": 1, "b": 2, "lost": 1}[s],
        initial_belief={"a": 1},
        states=["a", "b", "lost", "end"],
        terminal=["end"],
        legal_actions=["go"],
    )
    controller = solve(walk).controller()
    assert controller.value() == controller.value(exact=True) == 2
    assert controller.values.tolist() == [[2, 2, -np.inf, 0]]
    assert controller.exact_values == [[2, 2, None, 0]]
    assert RTBSS(2, controller).decide(walk).value == 2
    for exact in (False, True):
        with pytest.raises(PlanningError, match="indefinitely"):
            controller.value({"lost": 1}, exact=exact)


def test_an_action_that_is_not_legal_after_the_observation_has_no_value():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "shut",
        reward=lambda s, a: 1,
        initial_belief={"here": 1},
        discount=0.5,
        actions=["push", "wait"],
        observations=["shut"],
        legal_actions=lambda o: ["push", "wait"] if o is None else ["wait"],
        legal_by="observation",
    )
    pushes, waits = (FiniteStateController(problem, np.array([0, a]), np.ones((2, 1), dtype=int)) for a in (0, 1))
    assert (waits.value(), waits.value(exact=True)) == (2, 2)
    for exact in (False, True):
        with pytest.raises(PlanningError, match="not legal"):
            pushes.value(exact=exact)


# --- controllers that stop -------------------------------------------------------------------------------------------


def check_a_controller_that_stops(seed, kind):
    problem = small_problem(seed, kind=kind, discount=0.8)
    solution = solve(problem, horizon=3, precision=1e-9)
    controller, best = solution.controller(), float(exact_value(problem, horizon=3))
    assert controller.value() == pytest.approx(best, abs=1e-7)
    # Run from node to node: no node of another step takes its place.
    assert policy_value(controller, problem, horizon=3).value == pytest.approx(best, abs=1e-7)
    assert controller.decide(problem).value == pytest.approx(best, abs=1e-7)
    table = compare_policies({"c": controller, "p": solution.policy}, problem, horizon=3, solution=solution)
    assert [row.optimality_gap[0] for row in table] == pytest.approx([0, 0], abs=1e-7)
    return problem, controller


@pytest.mark.parametrize(("seed", "kind"), [(1, "plain"), (4, "ends")])
def test_a_controller_that_stops_earns_what_it_says(seed, kind):
    problem, controller = check_a_controller_that_stops(seed, kind)
    looked = RTBSS(2, controller).decide(problem).value
    assert looked <= float(exact_value(problem, horizon=5)) + 1e-9
    if controller.stops:  # beyond its steps it has no action, and says so
        with pytest.raises(PlanningError, match="expected a run within its steps"):
            compare_policies([controller], problem, truncation_error=1e-2, mdp_value=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "ends", "legal by state", "legal by observation"])
@pytest.mark.parametrize("seed", range(4, 8))
def test_controllers_that_stop_earn_what_they_say(seed, kind):
    check_a_controller_that_stops(seed, kind)


# --- run as they are valued ------------------------------------------------------------------------------------------


def enumerated(problem, controller, horizon):
    """The value in fractions by a walk over states and nodes, of the model's numbers as decimals."""

    def exact(number):
        return Fraction(str(number))

    def value(state, node, steps):
        if steps == 0 or node < 0 or problem.is_terminal(state):
            return Fraction(0)
        action = controller.action_names[node]
        total = Fraction(0)
        for then, p in problem.successors(state, action).items():
            for seen, q in problem.observation_distribution(then, action, state).items():
                node_then = int(controller.after[node, problem.compiled.observation_index[seen]])
                reward = exact(problem.step_reward(state, action, then, seen))
                ahead = value(then, node_then, steps - 1)
                total += exact(p) * exact(q) * (reward + exact(problem.discount) * ahead)
        return total

    start = problem.initial_belief.items()
    return sum((exact(p) * value(s, controller.start, horizon) for s, p in start), Fraction(0))


def check_a_controller_runs_as_it_is_valued(seed):
    """Of plans of n steps that may end before, tie, and have no discount; and of controllers at random."""
    kind, discount, horizon = KINDS[seed % len(KINDS)], (1.0, 0.5, 1.0)[seed % 3], 1 + seed % 4
    problem = small_problem(seed, kind=kind, discount=discount, unit=float(seed % 7 > 0))
    controller = solve(problem, horizon=horizon).controller()
    truth = float(enumerated(problem, controller, horizon))
    near = pytest.approx(truth, abs=1e-9 * max(1.0, float(np.abs(problem.compiled.reward).max())))
    assert controller.value() == near
    assert float(controller.value(exact=True)) == near
    assert policy_value(controller, problem, horizon=horizon).value == near
    table = compare_policies({"c": controller}, problem, horizon=horizon, mdp_value=False)
    assert table["c"].value == near
    rng = np.random.default_rng(seed)
    shape = (3, problem.compiled.n_observations)
    other = FiniteStateController(problem, np.zeros(3, dtype=int), rng.integers(0, 3, shape), int(rng.integers(3)))
    truth = float(enumerated(problem, other, horizon))
    near = pytest.approx(truth, abs=1e-9 * max(1.0, float(np.abs(problem.compiled.reward).max())))
    assert policy_value(other, problem, horizon=horizon).value == near
    return problem, controller, horizon


@pytest.mark.parametrize("seed", few(8, range(24)))
def test_a_controller_runs_as_it_is_valued(seed):
    problem, controller, horizon = check_a_controller_runs_as_it_is_valued(seed)
    sampled = simulate(controller, problem, horizon=horizon, n_episodes=50, confidence=0.999999)
    low, high = sampled.interval
    assert low - 1e-9 <= controller.value() <= high + 1e-9 or sampled.values.std() == 0


@pytest.mark.slow
@pytest.mark.parametrize("block", range(16))
def test_four_hundred_controllers_run_as_they_are_valued(block):
    for seed in range(25 * block + 24, 25 * block + 49):
        check_a_controller_runs_as_it_is_valued(seed)


@pytest.mark.parametrize("discount", [1, 0.95])
def test_a_plan_that_ends_the_process_is_run_step_by_step(discount):
    """With two actions the best is to earn 2 and then to cash 8.75, which ends the process."""
    problem = POMDP(
        transition=lambda s, a: "work" if a == "earn" else "done",
        observation=lambda s, a: "o",
        reward=lambda s, a: 2.0 if a == "earn" else 8.75,
        initial_belief={"work": 1.0},
        terminal=["done"],
        discount=discount,
        legal_actions=["earn", "cash"],
    )
    solution = solve(problem, horizon=2)
    controller, best = solution.controller(), 2 + 8.75 * discount
    for horizon in (2, 5, None):
        row = compare_policies([controller], problem, horizon=horizon, mdp_value=False).rows[0]
        assert row.value == policy_value(controller, problem, horizon=horizon).value == pytest.approx(best)
        assert simulate(controller, problem, horizon=horizon, n_episodes=3).value == pytest.approx(best)
        looped = simulate_in_pomdp_py(controller, problem, horizon=horizon, n_episodes=3)
        assert looped.value == pytest.approx(best)


def test_nodes_that_tie_do_not_circle_without_a_discount():
    """To wait costs nothing, so that to wait and to cash tie: the controller cashes after it has waited once."""
    problem = POMDP(
        transition=lambda s, a: "here" if a == "wait" else "done",
        observation=lambda s, a: "o",
        reward=lambda s, a: 0 if a == "wait" else 10,
        initial_belief={"here": 1},
        terminal=["done"],
        legal_actions=["wait", "cash"],
    )
    controller = FiniteStateController(problem, np.array([0, 1]), np.array([[1], [-1]]))
    assert controller.value(exact=True) == policy_value(controller, problem).value == 10
    assert simulate(controller, problem, n_episodes=2).value == 10


@pytest.mark.slow
def test_memory_reaches_other_processes():
    pytest.importorskip("joblib")
    problem = small_problem(1, kind="plain", discount=0.8)
    controller = solve(problem, horizon=3).controller()
    alone = policy_value(controller, problem, horizon=3).value
    assert policy_value(controller, problem, horizon=3, n_jobs=2).value == alone
