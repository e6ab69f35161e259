"""Intervals of a mean: Student's, and what a sample that is stopped when it looks narrow can have missed."""

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from pomdp_hier._arrays import Floats
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning.mdp import mdp_values
from pomdp_hier.pomdp import POMDP, TabularPOMDP
from pomdp_hier.pomdp.numeric import brief, is_nonnegative

__all__ = ["check_confidence", "mean_interval", "return_span", "unseen"]


_SETTLING = 2_000  # backups after which a return counts as unbounded


def mean_interval(values: Floats, confidence: float, missed: float = 0.0) -> tuple[float, float]:
    """Return the t interval ``mean ± t * s / sqrt(n)`` of the mean, (NaN, NaN) for fewer than two values.

    Args:
        values: ``[n]``.
        confidence: The level, in (0, 1).
        missed: What to add at either end; see `unseen`.

    Example:
        >>> [round(end, 4) for end in mean_interval(np.array([0.0, 1.0, 2.0]), 0.95)]
        [-1.4841, 3.4841]

    References:
        Student (1908).
    """
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    half = float(stats.t.ppf((1 + float(confidence)) / 2, n - 1)) * error + missed
    return mean - half, mean + half


def check_confidence(confidence: float) -> None:
    """Raise unless the level of an interval is one."""
    if not (is_nonnegative(confidence) and 0 < confidence < 1):
        raise ParameterError(f"confidence: {brief(confidence)} is outside (0, 1); 0.95 is usual")


def unseen(n: int, span: float, confidence: float) -> float:
    """Return how far events that no episode met can move the mean.

    ``n`` episodes miss an event of probability ``q`` with probability ``(1 - q)^n``. With half of the error that the
    level allows, what was missed is rarer than ``q = 1 - ((1 - confidence) / 2)^(1 / n)``, and an episode's return
    differs by at most the span.

    Args:
        n: How many episodes were seen.
        span: The greatest difference of two returns.
        confidence: The level, in (0, 1).

    Example:
        >>> round(unseen(1000, 1.0, 0.95), 5)
        0.00368

    References:
        Hanley and Lippman-Hand (1983), for an interval of 95 % at one end: 3 / n.
    """
    return span * -math.expm1(math.log((1 - confidence) / 2) / n)


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
