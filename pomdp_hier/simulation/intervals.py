"""The level of intervals of returns, and the greatest difference of two returns."""

import math
from dataclasses import replace

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.tabular import TabularPOMDP

_SETTLING = 2_000  # backups after which a return counts as unbounded


def return_span(environment: POMDP, horizon: int | None) -> float:
    """Return the greatest difference of two returns, whatever is done; of two steps' rewards if that is not bounded.

    ``max_s V_best(s) - min_s V_worst(s)`` over the states that runs can start in, where every step earns the most, or
    the least, that it can. It is NaN where the environment's states cannot be listed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> return_span(tiger(), horizon=2)
        214.5
    """
    if horizon == 0:
        return 0.0
    try:
        compiled = environment.compiled
    except ModelError:
        return math.nan
    high, low = _step_rewards(environment, compiled)
    try:
        return _best(compiled, high, horizon) + _best(compiled, -low, horizon)
    except PlanningError:
        return float(high[compiled.legal].max() - low[compiled.legal].min())


def _step_rewards(environment: POMDP, compiled: TabularPOMDP) -> tuple[Floats, Floats]:
    """Return the greatest and the least reward that each step can earn, ``[A, S]`` each."""
    high, low = np.zeros((2, compiled.n_actions, compiled.n_states))
    sees = environment.reward_model.uses_observation
    for a, s in np.argwhere(compiled.legal & ~compiled.terminal).tolist():
        state, action = compiled.states[s], compiled.actions[a]
        rewards = [
            float(environment.step_reward(state, action, reached, observation))
            for reached, p in environment.successors(state, action).items()
            if p != 0
            for observation in (environment.observation_distribution(reached, action, state) if sees else (None,))
        ]
        high[a, s], low[a, s] = max(rewards), min(rewards)
    return high, low


def _best(compiled: TabularPOMDP, reward: Floats, horizon: int | None) -> float:
    """Return the greatest value, over the states that a run can start in, of the problem with other rewards."""
    q, _ = mdp_values(replace(compiled, reward=reward), horizon=horizon, tolerance=1e-6, max_iterations=_SETTLING)
    return float(np.where(compiled.terminal, 0.0, q.max(axis=0))[compiled.initial > 0].max())
