"""Monte Carlo value of a policy: episodes on paired random numbers, with t intervals and an early stop.

Episode ``i`` draws everything from ``SeedSequence(seed, spawn_key=(i,))``, the environment and the policy from separate
streams. Two policies run with the same seed therefore meet the same luck for as long as they act alike.
"""

import math
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import check_integer
from pomdp_hier._arrays import Floats
from pomdp_hier._intervals import mean_interval, unseen
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import counted
from pomdp_hier.errors import SimulationWarning
from pomdp_hier.planning.policies import as_policy
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.simulation.episodes import Episode, EpisodeRuns, check_simulation, refuse_one_stream
from pomdp_hier.simulation.intervals import return_span
from pomdp_hier.simulation.simulator import Simulator


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """What a policy earned in simulation.

    Attributes:
        values: ``[n]``, the discounted return of each episode, in the environment's reward unit.
        confidence: The level of the interval.
        seconds_per_decision: The mean time of the policy's ``decide``, over the calls that were really made.
        unfinished: How many episodes the horizon, or the cut-off, cut short.
        stopped_early: Whether the wanted half-width was reached.
        episodes: The records, as many as were asked for.
        missed: How far rare returns reach beyond the t interval, added at either end; 0 unless ``half_width`` is given.
            The interval then allows for no event that n episodes lack, up to a probability of 3.7 / n at 95 %.
        error: The largest part of a return that runs without a horizon lost where they were cut off.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> result = simulate(RTBSS(depth=1), tiger(), n_episodes=10, horizon=2, seed=0)
        >>> result.n_episodes, result.unfinished, float(result.values[0])
        (10, 10, -1.95)
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
        cut = f", {self.unfinished:,} cut short" if self.unfinished else ""
        return f"value {self.value:z.4f}, {interval}, {counted(self.n_episodes, 'episode')}{cut}"

    @property
    def n_episodes(self) -> int:
        """How many episodes were run."""
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
        """The t interval of the mean at the given confidence, wider by ``missed`` and ``error`` at either end."""
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
    progress: bool | tqdm = False,
) -> SimulationResult:
    """Return the mean return of a policy over simulated episodes.

    A sequence of episodes that stops where its interval looks narrow stops the sooner the fewer rare losses it has met.
    With ``half_width``, the t interval therefore allows for rare returns (`pomdp_hier._intervals.unseen`), as
    far apart as the environment permits, and is not used before ``min_episodes``.

    Args:
        policy: A `Policy` or a plain function of the belief. If it has ``seeded`` it gets its own stream an episode,
            and every decision is made anew; otherwise equal beliefs are decided once.
        problem: The agent's own model.
        environment: The model that generates states, observations and rewards; the agent's own by default.
        n_episodes: How many episodes, at the most if ``half_width`` is given.
        seed: Where the random numbers start; the same seed pairs the episodes of two policies.
        horizon: The most actions in an episode; ``None`` for no limit but that of the cut-off.
        updater: How the agent updates its belief; Bayes' rule in its own model by default.
        truncation_error: Without a horizon, or with one of more than 100,000 actions, episodes end where the remaining
            discounted reward is below this, in rewards; `SimulationResult.error` reports it. With a discount of 1 every
            episode must terminate.
        half_width: Stop once half the interval is no wider than this, in rewards; checked after every ``batch``.
        min_episodes: How many episodes to run before ``half_width`` can end them.
        confidence: The level of the interval, in (0, 1).
        keep_episodes: How many of the first episodes to record step by step.
        batch: How many episodes to run between two looks.
        n_jobs: How many processes, -1 for one a CPU, with the same numbers for any; more than one needs joblib, and
            runs on the back end that ``joblib.parallel_config`` names. A policy that draws has to have ``seeded``.
        progress: Whether to show a progress bar on standard error; or a bar of tqdm's to go on with.

    Raises:
        ParameterError: A number is out of its range; something cannot be sent to another process.
        MissingExtraError: More than one process without joblib.
        ImpossibleObservationError: An observation that the agent's model rules out; the message holds the history.
        PlanningError: Nothing ends an episode, or bounds what can still come.

    Warns:
        SimulationWarning: A half-width was asked for, and all episodes returned the same.

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
    refuse_one_stream(updater, n_jobs)
    span = math.nan if half_width is None else return_span(environment, horizon)
    stopped_early = False
    with shown_progress(progress, "simulate", " episodes", n_episodes) as bar:
        runs = EpisodeRuns(build, sent, seed, n_jobs, bar)
        while (done := len(runs.values)) < n_episodes and not stopped_early:
            looks = n_episodes if half_width is None else max(done + batch, -(-min_episodes // batch) * batch)
            runs.go_on(min(looks, n_episodes), keep=keep_episodes)
            if half_width is not None and min_episodes <= len(runs.values) < n_episodes:
                seen = np.array(runs.values)
                low, high = mean_interval(seen, confidence, _missed(seen, confidence, span) + runs.error)
                stopped_early = 0 < high - low <= 2 * half_width
    values = runs.values
    missed = 0.0
    if half_width is not None:
        seen = np.array(values)
        missed = _missed(seen, confidence, span)
        if len(values) > 1 and not np.ptp(seen):
            warnings.warn(
                f"half_width: all {len(values):,} episodes returned {values[0]:g}, so that nothing is known of how "
                f"returns vary; the interval allows for what they can have missed, {missed:.3g} at either end",
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


def _missed(seen: Floats, confidence: float, span: float) -> float:
    """Return how far rare returns reach beyond the t interval, for returns at most a span apart, or as seen if NaN."""
    if len(seen) < 2:
        return 0.0
    apart = 0.0 if math.isnan(span) else span
    return max(unseen(seen, confidence, float(seen.max()) - apart, float(seen.min()) + apart))
