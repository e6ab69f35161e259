"""Monte Carlo value of a policy: episodes on common random numbers, with t intervals and an early stop.

Episode ``i`` samples from ``SeedSequence(seed, spawn_key=(i,))``, the environment and the policy from separate streams.
Two policies with the same seed therefore have the same random numbers while they take the same actions.

`simulate_in_pomdp_py` checks `simulate` in pomdp-py's own loop, which is slow: every step uses pomdp-py's objects.
"""

import math
import os
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import Floats, check_integer
from pomdp_hier._intervals import mean_interval, unseen
from pomdp_hier._io.checkpoint import Checkpoint
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import counted
from pomdp_hier.errors import SimulationWarning
from pomdp_hier.planning.decision import Policy
from pomdp_hier.planning.policies import as_policy
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.pomdp_py_bridge import to_agent, to_environment
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.spaces import unwrapped
from pomdp_hier.simulation.episodes import (
    Decider,
    Episode,
    EpisodeRuns,
    Simulator,
    check_simulation,
    require_order,
    return_of,
)
from pomdp_hier.simulation.returns import (
    Returns,
    SavedReturns,
    Truncation,
    check_checkpoint,
    key_of,
    open_returns,
    return_span,
)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """The returns of a policy in simulated episodes.

    Attributes:
        values: ``[n]``, the discounted return of each episode, in the environment's reward unit.
        confidence: The confidence level of the interval.
        seconds_per_decision: The mean time of one call of ``decide``.
        unfinished: The number of episodes that did not terminate before the horizon or truncation.
        stopped_early: Whether the half-width was reached.
        episodes: The records that were requested.
        missed: The extension of the t interval at either end for rare returns; 0 unless ``half_width`` is given.
            Without it, the interval ignores events that n episodes may lack, of probability 3.7 / n at 95 %.
        error: The truncation error of a return.
    """

    values: Floats = field(repr=False)
    confidence: float
    seconds_per_decision: float
    unfinished: int
    stopped_early: bool
    episodes: tuple[Episode, ...] = field(repr=False)
    missed: float = 0.0
    error: float = 0.0

    def __str__(self) -> str:
        low, high = self.interval
        interval = (
            "no interval" if math.isnan(low) else f"{100 * self.confidence:g} % interval [{low:z.4f}, {high:z.4f}]"
        )
        cut = f", {self.unfinished:,} not terminated" if self.unfinished else ""
        return f"value {self.value:z.4f}, {interval}, {counted(self.n_episodes, 'episode')}{cut}"

    @property
    def n_episodes(self) -> int:
        """The number of episodes."""
        return len(self.values)

    @property
    def value(self) -> float:
        """The mean return."""
        return float(np.mean(self.values))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean, NaN for one episode."""
        n = len(self.values)
        return float(np.std(self.values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The t interval of the mean, extended by ``missed`` and ``error`` at either end."""
        return mean_interval(self.values, self.confidence, self.missed + self.error)


def simulate(
    policy: Any,
    problem: POMDP,
    environment: POMDP | None = None,
    *,
    n_episodes: int = 1000,
    seed: int | None = 0,
    horizon: int | None = None,
    updater: Any = None,
    truncation_error: float = 1e-9,
    half_width: float | None = None,
    min_episodes: int = 1000,
    confidence: float = 0.95,
    keep_episodes: int = 0,
    batch: int = 100,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | Checkpoint[Returns] | None = None,
    policy_version: str | None = None,
    progress: bool | tqdm = False,
) -> SimulationResult:
    """Return the mean return of a policy over simulated episodes.

    A rule that stops at a narrow interval stops earlier if it has sampled fewer rare losses. With ``half_width``, the t
    interval is therefore extended for rare returns by the range of returns that the environment permits
    (`pomdp_hier._intervals.unseen`). It is not used before ``min_episodes``.

    Args:
        policy: A `Policy` or a function of the belief. A policy with ``seeded`` gets one stream per episode and makes
            every decision; otherwise equal beliefs are decided once.
        problem: The agent's own model.
        environment: The model of states, observations and rewards; the agent's own by default.
        n_episodes: The number of episodes; the greatest number if ``half_width`` is given.
        seed: The seed; the same seed pairs the episodes of two policies.
        horizon: The greatest number of actions of an episode; ``None`` for an infinite horizon.
        updater: The agent's belief updater; Bayes' rule in its own model by default.
        truncation_error: Without a horizon, or with one of more than 100,000 actions, episodes end where the remaining
            discounted reward is below this, in rewards. `SimulationResult.error` reports it. With a discount of 1 every
            episode must terminate.
        half_width: Stop once half the interval is no wider than this, in rewards; checked after every ``batch``.
        min_episodes: The number of episodes before ``half_width`` can end the simulation.
        confidence: The confidence level of the interval, in (0, 1).
        keep_episodes: The number of first episodes to record step by step.
        batch: The number of episodes between two checks.
        n_jobs: The number of processes; -1 for one per CPU. Results do not depend on it. More than one needs joblib,
            and uses the back end of ``joblib.parallel_config``. A policy that samples needs ``seeded``.
        checkpoint: A file of finished episodes, written every two seconds. The same call continues from it after a
            killed process, as does a call with more episodes. One file can hold several policies and problems. It needs
            joblib, a seed, and ``keep_episodes=0``.
        policy_version: Text that distinguishes versions of the code of a checkpointed policy. It also allows policies
            that cannot be pickled, such as functions inside functions.
        progress: Whether to show a progress bar on standard error; or a tqdm bar to continue.

    Raises:
        ParameterError: A number is out of range, or an argument cannot be pickled for another process or a checkpoint.
        CheckpointError: The file is not a checkpoint of this function, is damaged, or is in use.
        MissingExtraError: More than one process without joblib.
        ImpossibleObservationError: An observation has probability 0 in the agent's model; the message has the history.
        PlanningError: An episode does not terminate, or the remaining rewards have no bound.

    Warns:
        SimulationWarning: ``half_width`` is given, and all returns are equal.

    Example:
        >>> fair = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else 0, terminal=["end"],
        ...              initial_belief={"heads": 0.5, "tails": 0.5}, legal_actions=["heads", "tails"])
        >>> result = simulate(lambda belief: "heads", fair, n_episodes=400, seed=3)
        >>> low, high = result.interval
        >>> low < 0.5 < high
        True
    """
    check_simulation(n_episodes, half_width, min_episodes, confidence, batch)
    check_integer("keep_episodes", keep_episodes)
    chosen = as_policy(policy)
    for model in (problem,) if environment is None else (problem, environment):
        require_problem(model, "simulate, after the policy")
    environment = problem if environment is None else environment
    build = partial(Simulator, chosen, problem, environment, updater, horizon, truncation_error)
    sent = {"policy": chosen, "problem": problem, "environment": environment, "updater": updater}
    require_order(updater, n_jobs)
    span = math.nan if half_width is None else return_span(environment, horizon)
    stopped_early = False
    check_checkpoint(checkpoint, policy_version, seed, updater, keep_episodes)
    with shown_progress(progress, "simulate", " episodes", n_episodes) as bar, open_returns(checkpoint) as file:
        saved = None
        if file is not None:
            settings = {"seed": seed, "horizon": horizon, "truncation_error": truncation_error}
            key = key_of(policy_version, problem, environment, policy=chosen, updater=updater, settings=settings)
            saved = SavedReturns(file, key)
        runs = EpisodeRuns(build, sent, seed, n_jobs, bar, saved)
        while (done := len(runs.values)) < n_episodes and not stopped_early:
            stop = n_episodes if half_width is None else max(done + batch, -(-min_episodes // batch) * batch)
            runs.run_until(min(stop, n_episodes), keep=keep_episodes)
            if half_width is not None and min_episodes <= len(runs.values) < n_episodes:
                sampled = np.array(runs.values)
                low, high = mean_interval(sampled, confidence, _missed(sampled, confidence, span) + runs.error)
                stopped_early = 0 < high - low <= 2 * half_width
    values = runs.values
    missed = 0.0
    if half_width is not None:
        sampled = np.array(values)
        missed = _missed(sampled, confidence, span)
        if len(values) > 1 and not np.ptp(sampled):
            warnings.warn(
                f"half_width: got {len(values):,} equal returns of {values[0]:g}, without an estimate of their spread; "
                f"the interval allows for {missed:.3g} at either end",
                SimulationWarning,
                stacklevel=2,
            )
    return SimulationResult(
        values=np.array(values),
        confidence=confidence,
        seconds_per_decision=runs.seconds_per_decision,
        unfinished=runs.unfinished,
        stopped_early=stopped_early,
        episodes=tuple(runs.episodes),
        missed=missed,
        error=runs.error,
    )


def _missed(sampled: Floats, confidence: float, span: float) -> float:
    """Return the extension for rare returns, for returns in a given span (NaN: the sampled one)."""
    if len(sampled) < 2:
        return 0.0
    apart = 0.0 if math.isnan(span) else span
    return max(unseen(sampled, confidence, float(sampled.max()) - apart, float(sampled.min()) + apart))


def simulate_in_pomdp_py(
    policy: Any,
    problem: POMDP,
    environment: POMDP | None = None,
    *,
    n_episodes: int = 1000,
    seed: int | None = 0,
    horizon: int | None = None,
    truncation_error: float = 1e-9,
    confidence: float = 0.95,
    n_jobs: int = 1,
    progress: bool | tqdm = False,
) -> SimulationResult:
    """Return the mean return of a policy over episodes of pomdp-py's loop: decide, execute, update the agent.

    The agent's belief is pomdp-py's, updated by Bayes' rule in the agent's model; the rewards are those of the
    environment in double precision.

    Args:
        policy: A `Policy` or a function of the belief. A policy with ``seeded`` gets one stream per episode; otherwise
            equal beliefs are decided once.
        problem: The agent's own model; its observations must not depend on the previous state.
        environment: The model of states, observations and rewards; the agent's own by default.
        n_episodes, seed, horizon, truncation_error, confidence, n_jobs, progress: As for `simulate`.

    Raises:
        ImpossibleObservationError: An observation has probability 0 in the agent's model.
        ModelError: pomdp-py cannot express the problem.

    Example:
        >>> fair = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else 0, terminal=["end"],
        ...              initial_belief={"heads": 0.5, "tails": 0.5}, legal_actions=["heads", "tails"])
        >>> result = simulate_in_pomdp_py(lambda belief: "heads", fair, n_episodes=200, seed=3)
        >>> low, high = result.interval
        >>> low < 0.5 < high
        True
    """
    check_simulation(n_episodes, None, 1, confidence, 1)
    for model in (problem,) if environment is None else (problem, environment):
        require_problem(model, "simulate_in_pomdp_py, after the policy")
    world, chosen = problem if environment is None else environment, as_policy(policy)
    build = partial(_Loop, chosen, problem, world, horizon, truncation_error)
    sent = {"policy": chosen, "problem": problem, "environment": world}
    with shown_progress(progress, "simulate", " episodes", n_episodes) as bar:
        runs = EpisodeRuns(build, sent, seed, n_jobs, bar)
        runs.run_until(n_episodes)
    return SimulationResult(
        values=np.array(runs.values),
        confidence=confidence,
        seconds_per_decision=runs.seconds_per_decision,
        unfinished=runs.unfinished,
        stopped_early=False,
        episodes=(),
        error=runs.error,
    )


class _Loop:
    """A runner of episodes on pomdp-py's objects."""

    def __init__(
        self, policy: Policy, problem: POMDP, world: POMDP, horizon: int | None, truncation_error: float
    ) -> None:
        self.decider = Decider(policy, problem)
        self.length = Truncation(world, problem, horizon, truncation_error)
        self.problem, self.world = problem, world

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> Episode:
        """Return one run: decide, execute, update the agent."""
        policy_seed, environment_seed = seed.spawn(2)
        self.decider.begin(policy_seed)
        agent, place = to_agent(self.problem), to_environment(self.world, seed=environment_seed)
        terms: list[float] = []
        observation, finished, gamma = None, True, float(self.world.discount)
        while not place.is_terminal:
            belief = Belief({unwrapped(state): p for state, p in agent.belief.items()})
            if self.problem.is_terminal_belief(belief):
                break
            if self.length.is_reached(len(terms)):
                finished = False
                break
            decision = self.decider.decide(belief, observation, len(terms))
            seen, reward = place.execute(decision.action)
            terms.append(gamma ** len(terms) * float(reward))
            observation = unwrapped(seen)
            if not place.is_terminal:
                agent.update(decision.action, seen)
        return Episode((), return_of(terms), finished)
