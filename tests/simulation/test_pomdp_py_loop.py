"""pomdp-py's own loop earns what the simulator and the enumeration say."""

import numpy as np
import pytest

from pomdp_hier.errors import ImpossibleObservationError, ParameterError
from pomdp_hier.planning import RTBSS, RandomPolicy, ThresholdPolicy
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import policy_value
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from tests.pomdp_models import sensor

CAREFUL = ThresholdPolicy([(1, 0.9, 1), (0, 0.9, 0)], otherwise="look")


@pytest.mark.parametrize(
    ("policy", "problem", "environment", "horizon"),
    [
        (CAREFUL, sensor(0.8, discount=0.9), None, 30),
        (CAREFUL, sensor(0.8, discount=0.9), sensor(0.6, discount=0.9), 30),
        (RTBSS(2), tiger(), None, 4),
        (RandomPolicy(0), sensor(0.8, discount=0.9), None, 5),
    ],
)
def test_the_interval_covers_the_exact_value(policy, problem, environment, horizon):
    exact = float(policy_value(policy, problem, environment, horizon=horizon))
    result = simulate_in_pomdp_py(
        policy, problem, environment, n_episodes=200, seed=5, horizon=horizon, confidence=0.999
    )
    low, high = result.interval
    assert low <= exact <= high
    assert result.n_episodes == 200


def test_seeds_repeat_and_global_randomness_is_left_alone():
    import random

    random.seed(1)
    before = random.getstate()
    runs = [
        simulate_in_pomdp_py(CAREFUL, sensor(0.8, discount=0.9), n_episodes=20, seed=s, horizon=9).values
        for s in (1, 1, 2)
    ]
    assert random.getstate() == before
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_the_horizon_and_what_is_refused():
    result = simulate_in_pomdp_py(lambda belief: "look", sensor(0.8, discount=0.9), n_episodes=3, horizon=2)
    assert result.values.tolist() == [-1.9] * 3
    assert result.unfinished == 3
    with pytest.raises(ImpossibleObservationError):
        simulate_in_pomdp_py(
            lambda belief: "look", sensor(1.0, discount=0.9), sensor(0.5, discount=0.9), n_episodes=50, horizon=3
        )
    with pytest.raises(ParameterError, match="n_episodes"):
        simulate_in_pomdp_py(CAREFUL, sensor(0.8, discount=0.9), n_episodes=0)
