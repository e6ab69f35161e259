"""Simulation: intervals that cover the exact value, paired luck, an early stop, records of what happened."""

import math

import numpy as np
import pytest
from scipy.stats import sem

from pomdp_hier import POMDP
from pomdp_hier._intervals import mean_interval
from pomdp_hier.errors import ImpossibleObservationError, ModelError, ParameterError, PlanningError, SimulationWarning
from pomdp_hier.planning import RandomPolicy, ThresholdPolicy
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.simulation import policy_value, returns, simulate
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from pomdp_hier.simulation.returns import return_span
from tests.pomdp_models import sensor

CAREFUL = ThresholdPolicy([(1, 0.9, 1), (0, 0.9, 0)], otherwise="look")


@pytest.mark.parametrize("environment", [None, sensor(0.7)])
def test_the_interval_covers_the_exact_value(environment):
    problem = sensor(0.8, discount=0.9)
    exact = float(policy_value(CAREFUL, problem, environment, horizon=60))
    result = simulate(CAREFUL, problem, environment, n_episodes=2000, seed=11, horizon=60, confidence=0.99)
    low, high = result.interval
    assert low < exact < high
    assert high - low < 2.2
    assert result.value == pytest.approx((low + high) / 2)


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    problem = sensor(0.8)
    exact = float(policy_value(CAREFUL, problem, horizon=30))
    covered = 0
    for seed in range(100):
        low, high = simulate(CAREFUL, problem, n_episodes=80, seed=seed, horizon=30, confidence=0.9).interval
        covered += low < exact < high
    assert 79 <= covered <= 100  # 90 expected, three and a half standard deviations either way


def test_the_same_seed_gives_the_same_episodes_and_another_one_others():
    runs = [simulate(CAREFUL, sensor(0.8), n_episodes=50, seed=seed).values for seed in (5, 5, 6)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    more = simulate(CAREFUL, sensor(0.8), n_episodes=80, seed=5).values
    assert np.array_equal(more[:50], runs[0])


def test_policies_that_act_alike_meet_the_same_luck():
    problem = sensor(0.8)
    one = simulate(CAREFUL, problem, n_episodes=300, seed=2, keep_episodes=300)
    other = simulate(
        ThresholdPolicy([(1, 0.95, 1), (0, 0.95, 0)], otherwise="look"),
        problem,
        n_episodes=300,
        seed=2,
        keep_episodes=300,
    )
    for a, b in zip(one.episodes, other.episodes, strict=True):
        assert [s.observation for s in a.steps[:-1]] == [s.observation for s in b.steps[: len(a.steps) - 1]]
    paired = np.std(one.values - other.values)
    unpaired = math.hypot(np.std(one.values), np.std(other.values))
    assert paired < 0.8 * unpaired


def test_a_policy_that_draws_gets_a_stream_of_its_own_an_episode():
    problem = sensor(0.8)
    one = simulate(RandomPolicy(1), problem, n_episodes=500, seed=3)
    again = simulate(RandomPolicy(99), problem, n_episodes=500, seed=3)
    assert np.array_equal(one.values, again.values)
    exact = float(policy_value(RandomPolicy(1), problem, horizon=6))
    low, high = simulate(RandomPolicy(1), problem, n_episodes=1000, seed=4, horizon=6, confidence=0.99).interval
    assert low < exact < high


def test_early_stop_at_a_wanted_half_width():
    result = simulate(CAREFUL, sensor(0.8), n_episodes=100_000, seed=1, half_width=0.5)
    low, high = result.interval
    assert high - low <= 1.0
    assert result.stopped_early
    assert result.n_episodes < 10_000
    assert result.n_episodes % 100 == 0
    assert not simulate(CAREFUL, sensor(0.8), n_episodes=200, seed=1, half_width=1e-9).stopped_early


def test_records_add_up_to_the_value():
    problem = sensor(0.8, discount=0.5)
    result = simulate(CAREFUL, problem, n_episodes=20, seed=8, keep_episodes=7)
    assert len(result.episodes) == 7
    for episode, value in zip(result.episodes, result.values, strict=False):
        assert episode.value == value
        assert episode.finished
        assert value == pytest.approx(sum(0.5**t * step.reward for t, step in enumerate(episode.steps)))
        assert [step.action for step in episode.steps[:-1]] == ["look"] * (len(episode.steps) - 1)
        assert episode.steps[-1].next_state == "end"
        assert all(step.decision.action == step.action for step in episode.steps)
        assert episode.steps[0].belief == problem.initial_belief
        for before, after in zip(episode.steps, episode.steps[1:], strict=False):
            assert before.next_state == after.state


def test_a_horizon_cuts_and_is_counted():
    result = simulate(lambda belief: "look", sensor(0.8), n_episodes=10, horizon=3, keep_episodes=1)
    assert result.values.tolist() == [-3.0] * 10
    assert result.unfinished == 10
    assert not result.episodes[0].finished
    assert result.interval == (-3.0, -3.0)
    assert simulate(FirstAction(), sensor(0.8), n_episodes=1, horizon=0).unfinished == 1


def test_equal_beliefs_are_decided_once():
    calls = []

    def count(belief):
        calls.append(belief)
        return "look"

    result = simulate(count, sensor(0.8), n_episodes=100, horizon=2)
    assert len(calls) == 3  # the start, and one belief an observation
    assert result.seconds_per_decision > 0


def test_an_impossible_observation_comes_with_its_history():
    with pytest.raises(ImpossibleObservationError, match=r"history: 'look' -> [01], 'look' -> [01]"):
        simulate(lambda belief: "look", sensor(1.0), sensor(0.6), n_episodes=100, horizon=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_episodes": 0}, "n_episodes: got 0"),
        ({"half_width": 0.0}, "half_width"),
        ({"confidence": 95}, "^confidence.* 95; expected a number between 0 and 1"),
        ({"horizon": -2}, "horizon: got -2"),
        ({"horizon": 1.5}, "horizon: got 1.5"),
        ({"horizon": "2"}, "horizon: got '2'"),
        ({"truncation_error": 0}, "^truncation_error: got 0"),
        ({"truncation_error": None}, "^truncation_error: got None"),
        ({"half_width": "1"}, "^half_width: got '1'"),
        ({"min_episodes": 0}, "min_episodes: got 0"),
        ({"batch": 2.5}, "batch: got 2.5"),
        ({"confidence": "95"}, "^confidence.* '95'"),
        ({"n_episodes": True}, "n_episodes: got True"),
    ],
)
def test_arguments_out_of_range(options, message):
    with pytest.raises(ParameterError, match=message):
        simulate(FirstAction(), sensor(0.8), **{"horizon": 1, **options})


def test_mean_interval_of_one_value_is_unknown():
    assert all(math.isnan(end) for end in mean_interval(np.array([1.0]), 0.95))
    assert math.isnan(simulate(FirstAction(), sensor(0.8), n_episodes=1, horizon=1).standard_error)


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(ModelError, match=r"simulate, after the policy"):
        simulate(FirstAction(), {"here": 1}, n_episodes=1)


def rare(p: float = 0.005, loss: float = 1000.0) -> POMDP:
    """One step that earns 1, but for a rare large loss, which shows in no expected reward."""
    return POMDP(
        transition=lambda s, a: {"fine": 1 - p, "crash": p} if a == "go" else "fine",
        observation=lambda s, a: "o",
        reward=lambda s, a, t: -loss if t == "crash" else 1.0,
        terminal=["fine", "crash"],
        initial_belief={"start": 1},
        legal_actions=["go"],
    )


@pytest.mark.slow
def test_a_rare_loss_is_allowed_for_before_it_is_met():
    exact = 1 - 0.005 * 1001
    for seed in range(12):
        result = simulate(lambda belief: "go", rare(), n_episodes=5000, seed=seed, half_width=10.0)
        low, high = result.interval
        assert low < exact < high
        assert high - low <= 20
        assert result.n_episodes >= 1000
    seed = next(s for s in range(20) if simulate(lambda b: "go", rare(), n_episodes=100, seed=s).value == 1)
    with pytest.warns(SimulationWarning, match=r"^half_width: got 100 equal returns of 1, .* 36.3 at either end"):
        lucky = simulate(lambda b: "go", rare(), n_episodes=100, seed=seed, half_width=1.0)
    assert lucky.interval[0] < exact < lucky.interval[1]
    assert not lucky.stopped_early


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.SimulationWarning")  # where no episode met the loss
def test_intervals_of_a_sequence_that_stops_early_cover_a_rare_loss():
    exact = 1 - 0.005 * 1001
    runs = [simulate(lambda b: "go", rare(), n_episodes=20_000, seed=s, half_width=5.0) for s in range(80)]
    covered = sum(low <= exact <= high for low, high in (run.interval for run in runs))
    assert covered >= 73


@pytest.mark.parametrize(("horizon", "span"), [(0, 0.0), (1, 30.0), (2, 30.0 + 1.0), (3, 30.0 + 2.0)])
def test_return_span_by_hand(horizon, span):
    """At once the best is 10, the worst -20; with more steps the worst looks first, at 1 a step, and guesses wrong."""
    assert return_span(sensor(0.8), horizon) == pytest.approx(span)


def test_return_span_counts_each_outcome_of_a_step():
    assert return_span(rare(), None) == pytest.approx(1001)
    assert return_span(sensor(0.8), None) == 30  # one may look for ever: the returns are not bounded, a step's are
    endless = POMDP(
        transition=lambda s, a: s + 1,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0,
        initial_belief={0: 1},
        legal_actions=["on"],
        max_states=50,
    )
    assert math.isnan(return_span(endless, None))
    with pytest.warns(SimulationWarning):
        assert simulate(FirstAction(), endless, n_episodes=30, horizon=2, half_width=1.0).missed == 0
    by_observation = POMDP(
        transition=lambda s, a: "end",
        observation=lambda s, a: {"good": 0.9, "bad": 0.1},
        reward=lambda s, a, t, o: {"good": 2.0, "bad": -5.0}[o],
        initial_belief={"start": 1},
        terminal=["end"],
        legal_actions=["go"],
    )
    assert return_span(by_observation, None) == pytest.approx(7)


@pytest.mark.parametrize("run", [simulate, simulate_in_pomdp_py])
def test_endless_runs_are_cut_where_little_can_still_come(run):
    forever = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 2.0,
        initial_belief={"here": 1},
        discount=0.5,
        legal_actions=["stay"],
    )
    result = run(FirstAction(), forever, n_episodes=2)
    assert result.unfinished == 2
    assert 0 < result.error <= 1e-9
    assert result.value == pytest.approx(4, abs=result.error)
    sharp = run(FirstAction(), forever, n_episodes=1, truncation_error=1e-14)
    assert sharp.error < 1e-14
    assert run(FirstAction(), forever, n_episodes=1, horizon=3).error == 0
    endless = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 2.0,
        initial_belief={"here": 1},
        legal_actions=["stay"],
    )
    with pytest.raises(PlanningError, match=r"^horizon: got None"):
        run(FirstAction(), endless, n_episodes=1)


def test_runs_that_a_policy_never_ends_are_given_up(monkeypatch):
    monkeypatch.setattr(returns, "_LONGEST", 200)
    with pytest.raises(PlanningError, match=r"^horizon: got None, .* 200 actions .* \(the discount is 1\)"):
        simulate(lambda belief: "look", sensor(0.8), n_episodes=1)
    growing = POMDP(
        transition=lambda s, a: s + 1,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0,
        initial_belief={0: 1},
        discount=0.9,
        legal_actions=["on"],
        max_states=50,
    )
    with pytest.raises(PlanningError, match=r"states: got more than 50"):
        simulate(FirstAction(), growing, n_episodes=1)


def test_the_span_is_over_the_states_that_runs_start_in():
    worth = {"a": 1, "b": 5, "never": 99}
    problem = POMDP(
        transition=lambda s, a: "end",
        observation=lambda s, a: "o",
        reward=lambda s, a: worth[s],
        initial_belief={"a": 0.5, "b": 0.5},
        terminal=["end"],
        legal_actions=["go"],
        states=["a", "b", "never", "end"],
    )
    assert return_span(problem, None) == pytest.approx(4)


def test_the_standard_error_is_scipys():
    found = simulate(RandomPolicy(0), sensor(0.75), n_episodes=30, horizon=2, seed=0)
    assert found.standard_error == pytest.approx(sem(found.values))
