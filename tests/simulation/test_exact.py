"""The exact value of a policy: closed forms, brute force over histories, two models at work."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier import POMDP, BayesUpdater
from pomdp_hier.errors import ImpossibleObservationError, ModelError, ParameterError, PlanningError
from pomdp_hier.planning import RandomPolicy, ThresholdPolicy, value_iteration
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.simulation import policy_value, simulate
from pomdp_hier.simulation.exact import conflict
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from tests.pomdp_models import sensor, tiger

F = Fraction


HALF = F(1, 2)


def look_once(problem, belief, observation):
    return "look" if observation is None else observation


def test_one_look_has_a_closed_form_in_two_models():
    # The agent trusts its sensor at 9/10, the world's is right in 3 of 5 cases: it still follows what it saw.
    value = policy_value(look_once, sensor(F(9, 10)), sensor(F(3, 5)))
    assert value.value == -1 + F(3, 5) * 10 - F(2, 5) * 20
    assert isinstance(value.value, Fraction)
    assert (value.n_beliefs, value.n_steps, value.unfinished) == (3, 2, 0)


def test_the_discount_is_the_environments():
    value = policy_value(look_once, sensor(F(9, 10), discount=F(1, 3)), sensor(F(3, 5), discount=F(1, 2)))
    assert value.value == -1 + F(1, 2) * (F(3, 5) * 10 - F(2, 5) * 20)


def test_the_agent_decides_by_its_own_belief():
    # Looks until it believes one side at 9/10. At 4/5 that takes a lead of two: belief 16/17.
    policy = ThresholdPolicy([(1, F(9, 10), 1), (0, F(9, 10), 0)], otherwise="look")
    seen = policy_value(policy, sensor(F(4, 5)), sensor(F(1)), trace=True)
    assert seen.value == -2 + 10  # a perfect sensor never disagrees with itself
    assert [visit.step for visit in seen.visits] == [0, 1, 1, 2, 2]
    assert {visit.belief[1] for visit in seen.visits if visit.step == 2} == {F(16, 17), F(1, 17)}
    last = seen.visits[-1]
    assert last.history in ((("look", 0), ("look", 0)), (("look", 1), ("look", 1)))
    assert last.probability == F(1, 2)


def test_histories_that_lead_to_one_belief_are_added_up():
    value = policy_value(lambda belief: "look", sensor(F(4, 5)), horizon=24)
    assert value.value == -24
    assert value.n_beliefs < 4 * 24 * 24  # lead -t..t twice (the last observation is part of it), not 2**24
    assert value.unfinished == 1


def by_histories(choose, problem, environment, horizon):
    """The value by summing over every sequence of states and observations, one by one."""
    updater = BayesUpdater(problem)
    total = 0
    stack = [(state, p, problem.initial_belief, None, 0) for state, p in environment.initial_belief.items()]
    while stack:
        state, weight, belief, observation, step = stack.pop()
        if step == horizon or environment.is_terminal(state):
            continue
        action = choose(belief, observation, step)
        for next_state, p in environment.successors(state, action).items():
            for o, q in environment.observation_distribution(next_state, action, state).items():
                mass = weight * p * q
                if mass == 0:
                    continue
                total += mass * environment.discount**step * environment.step_reward(state, action, next_state, o)
                stack.append((next_state, mass, updater.update(belief, action, o), o, step + 1))
    return total


def random_problem(draw, n_states=3, n_actions=2, n_observations=2):
    def row(n):
        weights = [draw(st.integers(1, 5)) for _ in range(n)]
        return [F(w, sum(weights)) for w in weights]

    return POMDP.from_arrays(
        T=_objects([[row(n_states) for _ in range(n_states)] for _ in range(n_actions)]),
        Z=_objects([[row(n_observations) for _ in range(n_states)] for _ in range(n_actions)]),
        R=_objects([[F(draw(st.integers(-5, 5))) for _ in range(n_states)] for _ in range(n_actions)]),
        initial_belief=row(n_states),
        discount=draw(st.sampled_from([0, F(1, 2), 1])),
    )


def _objects(nested):
    return np.array(nested, dtype=object)


@pytest.mark.slow
@given(st.data())
def test_equals_the_sum_over_histories(data):
    problem, environment = random_problem(data.draw), random_problem(data.draw)
    pivot = F(data.draw(st.integers(1, 9)), 10)

    def choose(belief, observation, step=None):
        return int((belief[0] > pivot) ^ (observation == 1))

    value = policy_value(
        lambda problem, belief, observation: choose(belief, observation), problem, environment, horizon=3
    )
    assert value.value == by_histories(choose, problem, environment, 3)


def test_a_policy_that_draws_is_weighed_over_its_actions():
    problem = sensor(F(4, 5))
    by_hand = 0
    # two steps: look or guess first (1/3 each), then the same again
    for first, second in itertools.product(["look", 0, 1], repeat=2):
        for bit in (0, 1):
            earned = -1 if first == "look" else (10 if first == bit else -20)
            if first == "look":
                earned += -1 if second == "look" else (10 if second == bit else -20)
            by_hand += F(1, 18) * earned
    assert float(policy_value(RandomPolicy(0), problem, horizon=2)) == pytest.approx(float(by_hand), abs=1e-12)


class Countdown:
    """Looks as often as it was told, then guesses 1: a policy that depends on the time."""

    def __init__(self, looks):
        self.looks = looks

    def at_step(self, step):
        return Countdown(self.looks - step)

    def decide(self, problem, belief=None, *, observation=None):
        return (FirstAction() if self.looks > 0 else ThresholdPolicy([], otherwise=1)).decide(problem, belief)


def test_a_policy_may_depend_on_the_step():
    assert policy_value(Countdown(3), sensor(F(4, 5))).value == -3 - 5


def test_an_observation_that_the_agent_rules_out_is_named_with_its_history():
    with pytest.raises(ImpossibleObservationError, match=r"step 1: .* observation 0 after 'look'.*'look' -> 1, 'look'"):
        policy_value(lambda belief: "look", sensor(F(1)), sensor(F(4, 5)), horizon=3)


def test_an_updater_of_the_callers_own_is_used():
    def never_learns(belief, action, observation):
        return belief

    value = policy_value(
        lambda belief: "look" if belief[1] == F(1, 2) else 1, sensor(F(4, 5)), updater=never_learns, horizon=5
    )
    assert value.value == -5
    with pytest.raises(ParameterError, match="expected a function"):
        policy_value(FirstAction(), sensor(F(4, 5)), updater="bayes", horizon=1)


def test_a_run_without_end_is_stopped_and_a_belief_that_is_over_ends_one():
    with pytest.raises(PlanningError, match="more than 50 beliefs by step"):
        policy_value(lambda belief: "look", sensor(F(4, 5)), max_beliefs=50)
    asleep = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "nothing",
        reward=lambda s, a: 1,
        initial_belief={"over": 1},
        terminal=["over"],
        legal_actions=["wait"],
    )
    awake = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "nothing",
        reward=lambda s, a: 1,
        initial_belief={"going": 1},
        legal_actions=["wait"],
    )
    assert policy_value(FirstAction(), asleep, awake).value == 0
    assert policy_value(FirstAction(), awake, asleep).value == 0
    with pytest.raises(ParameterError, match="horizon: got -1"):
        policy_value(FirstAction(), awake, horizon=-1)


def test_symbols_pass_through():
    sympy = pytest.importorskip("sympy")
    p = sympy.Symbol("p", positive=True)
    value = policy_value(look_once, sensor(F(9, 10)), sensor(p, prior=sympy.Rational(1, 2)))
    assert sympy.simplify(value.value - (-1 + 10 * p - 20 * (1 - p))) == 0


def test_beliefs_of_floats_and_fractions_agree():
    policy = ThresholdPolicy([(1, 0.9, 1), (0, 0.9, 0)], otherwise="look")
    exact = policy_value(policy, sensor(F(4, 5)), sensor(F(7, 10)), horizon=12)
    rough = policy_value(policy, sensor(0.8), sensor(0.7), horizon=12)
    assert float(rough) == pytest.approx(float(exact), abs=1e-12)


def test_the_optimal_policy_is_worth_what_it_says():
    problem = sensor(0.8)
    for horizon in (1, 2, 4):
        policy = value_iteration(problem, horizon)
        assert float(policy_value(policy, problem, horizon=horizon)) == pytest.approx(
            policy.decide(problem).value, abs=1e-12
        )


def test_equal_beliefs_after_different_observations_are_kept_apart():
    def never_learns(belief, action, observation):
        return belief

    value = policy_value(look_once, sensor(F(4, 5)), updater=never_learns)
    assert value.value == -1 + F(4, 5) * 10 - F(1, 5) * 20


def test_what_is_seen_at_the_end_need_not_be_in_the_agents_model():
    wait = {"reward": lambda s, a: 3, "terminal": ["end"], "legal_actions": ["wait"], "initial_belief": {"on": 1}}
    agent = POMDP(transition=lambda s, a: s, observation=lambda s, a: "tick", **wait)
    world = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "bang", **wait)
    assert policy_value(FirstAction(), agent, world).value == 3
    assert simulate(FirstAction(), agent, world, n_episodes=2).values.tolist() == [3, 3]
    assert simulate_in_pomdp_py(FirstAction(), agent, world, n_episodes=2).values.tolist() == [3, 3]


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(ModelError, match=r"policy_value, after the policy"):
        policy_value(FirstAction(), {"here": 1}, horizon=1)


@pytest.mark.slow
def test_endless_problems_are_cut_where_little_can_still_come():
    problem = tiger(discount=0.5)
    value = policy_value(lambda belief: "listen", problem)
    assert value.value == pytest.approx(-2, abs=1e-9)  # -1 / (1 - 0.5)
    assert 0 < value.error <= 1e-9
    assert value.unfinished == pytest.approx(1)
    coarse = policy_value(lambda belief: "listen", problem, truncation_error=1e-7)
    assert coarse.n_steps < value.n_steps
    assert -2 <= coarse.value <= -2 + coarse.error <= -2 + 1e-7
    assert policy_value(lambda belief: "listen", problem, horizon=3).error == 0
    assert policy_value(lambda belief: "listen", problem, horizon=10**20).value == value.value
    assert policy_value(lambda belief: "listen", tiger(discount=1), horizon=30).value == -30
    with pytest.raises(PlanningError, match=r"^horizon: got None"):
        policy_value(lambda belief: "listen", tiger(discount=1))


def test_long_runs_that_end_are_not_cut():
    chain = POMDP(
        transition=lambda s, a: s + 1,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0,
        initial_belief={0: 1},
        terminal=[100],
        legal_actions=["on"],
    )
    result = policy_value(FirstAction(), chain)
    assert (result.value, result.error, result.unfinished, result.n_steps) == (100, 0, 0, 100)


@pytest.mark.slow
def test_rounding_makes_no_new_beliefs_after_many_steps():
    result = policy_value(lambda belief: "listen", tiger(), horizon=40)
    before = policy_value(lambda belief: "listen", tiger(), horizon=17).n_beliefs
    assert result.n_beliefs - before < 23 * 2 * 40  # the odds that there are, after either sound
    assert result.value == pytest.approx(-(1 - 0.95**40) / 0.05, abs=1e-10)
    exact = policy_value(lambda belief: "guess", coin_flips(F(1, 3)), horizon=50)
    assert exact.value == 50 * F(1, 3)
    # t + 1 numbers of heads after t flips, and the last one either way, but for none and for all
    assert exact.n_beliefs == 1 + sum(2 * t for t in range(1, 50))


def coin_flips(p):
    """A coin of one of two biases; a guess earns 1 with probability p, and each flip is seen."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"heads": s, "tails": 1 - s},
        reward=lambda s, a: p,
        initial_belief={p: F(1, 2), 1 - p: F(1, 2)},
        legal_actions=["guess"],
    )


def test_what_the_model_rules_out_is_told_with_the_step_and_the_history():
    assert conflict([("a", "o"), ("b", "p")]).startswith(
        "step 1: got the observation 'p' after 'b'; expected one with a probability above 0 in the agent's model ("
        "history: 'a' -> 'o', 'b' -> 'p'). Pass"
    )
    assert "history: 2 earlier steps, 'c' -> 'o'," in conflict([(a, "o") for a in "abcdefgh"])
