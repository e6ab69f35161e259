"""Monte Carlo value of a policy: episodes on paired random numbers, with t intervals and an early stop.

Episode ``i`` draws everything from ``SeedSequence(seed, spawn_key=(i,))``, the environment and the policy from separate
streams. Two policies run with the same seed therefore meet the same luck for as long as they act alike.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.beliefs import as_updater
from pomdp_hier.errors import ImpossibleObservationError, ParameterError, SimulationWarning
from pomdp_hier.planning.counts import require_count
from pomdp_hier.planning.decision import Decision, Policy
from pomdp_hier.planning.policies import as_policy
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, brief, is_number
from pomdp_hier.pomdp.problem import require_problem
from pomdp_hier.simulation.deciding import REMEMBERED, Decider
from pomdp_hier.simulation.exact import conflict
from pomdp_hier.simulation.intervals import check_confidence, mean_interval, return_span, unseen
from pomdp_hier.simulation.run_length import RunLength

__all__ = ["Episode", "SimulationResult", "Step", "simulate"]


@dataclass(frozen=True, eq=False)
class Step:
    """One step of an episode.

    Attributes:
        state: The environment's state before the action.
        belief: The agent's belief before the action.
        action: What the agent did.
        next_state: The environment's state after it.
        observation: What the agent perceived then.
        reward: What the step earned.
        decision: Why the agent did it.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> run = simulate(RTBSS(depth=1), tiger(), n_episodes=1, horizon=1, seed=0, keep_episodes=1).episodes[0]
        >>> run.steps[0].action, run.steps[0].reward
        ('listen', -1)
    """

    state: Any
    belief: Belief
    action: Any
    next_state: Any
    observation: Any
    reward: Number
    decision: Decision = field(repr=False)


@dataclass(frozen=True, eq=False)
class Episode:
    """One simulated run.

    Attributes:
        steps: What happened, in order.
        value: The discounted sum of rewards.
        finished: False if the horizon cut the run short.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> run = simulate(RTBSS(depth=1), tiger(), n_episodes=1, horizon=2, seed=0, keep_episodes=1).episodes[0]
        >>> len(run.steps), run.value, run.finished
        (2, -1.95, False)
    """

    steps: tuple[Step, ...]
    value: float
    finished: bool


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
        missed: What events that no episode met can change in the mean, added at either end of the interval; 0 unless a
            half-width was asked for.
        error: What an episode's return can have lost, because runs without a horizon were cut off.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> result = simulate(RTBSS(depth=1), tiger(), n_episodes=10, horizon=2, seed=0)
        >>> result.n_episodes, result.unfinished, float(result.values[0])
        (10, 10, -1.95)
    """

    values: NDArray[np.float64] = field(repr=False)
    confidence: float
    seconds_per_decision: float
    unfinished: int
    stopped_early: bool
    episodes: tuple[Episode, ...] = field(repr=False)
    missed: float = 0.0
    error: float = 0.0

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
        """The t interval of the mean at the given confidence, with what the episodes can have missed at either end."""
        return mean_interval(self.values, self.confidence, self.missed)


def simulate(
    policy: Any,
    problem: POMDP,
    environment: POMDP | None = None,
    *,
    n_episodes: int = 1000,
    seed: int | None = 0,
    horizon: int | None = None,
    updater: Any = None,
    cutoff: float = 1e-9,
    half_width: float | None = None,
    min_episodes: int = 1000,
    confidence: float = 0.95,
    keep_episodes: int = 0,
    batch: int = 100,
) -> SimulationResult:
    """Return the mean return of a policy over simulated episodes.

    A sequence of episodes that stops where its interval looks narrow stops the sooner the fewer rare losses it has met.
    With ``half_width``, the t interval is therefore widened by what so many episodes can have missed
    (`pomdp_hier.simulation.intervals.unseen`), with returns as far apart as the environment allows, and never looked at
    before ``min_episodes``.

    Args:
        policy: A `Policy` or a plain function of the belief. If it has ``seeded`` it gets its own stream an episode,
            and every decision is made anew; otherwise equal beliefs are decided once.
        problem: The agent's own model.
        environment: The model that generates states, observations and rewards; the agent's own by default.
        n_episodes: How many episodes, at the most if ``half_width`` is given.
        seed: Where the random numbers start; the same seed pairs the episodes of two policies.
        horizon: The most actions in an episode; ``None`` for no limit but that of the cut-off.
        updater: How the agent updates its belief; Bayes' rule in its own model by default.
        cutoff: Without a horizon, episodes are cut off where what can still come is worth less than this, in rewards;
            `SimulationResult.error` says what was. With a discount of 1 every episode must come to an end.
        half_width: Stop once half the interval is no wider than this, in rewards; looked at after every ``batch``.
        min_episodes: How many episodes to run before ``half_width`` can end them.
        confidence: The level of the interval, in (0, 1).
        keep_episodes: How many of the first episodes to record step by step.
        batch: How many episodes to run between two looks.

    Raises:
        ParameterError: A number is out of its range.
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
    chosen = as_policy(policy)
    for model in (problem,) if environment is None else (problem, environment):
        require_problem(model, "simulate, after the policy")
    environment = problem if environment is None else environment
    length = RunLength(environment, problem, horizon, cutoff)
    run = _Simulator(
        chosen,
        problem,
        environment,
        as_updater(updater, problem).update,
        length,
        remember_beliefs=not hasattr(updater, "rng"),  # an updater that draws updates each time anew
    )
    span = math.nan if half_width is None else return_span(environment, horizon)
    values: list[float] = []
    episodes: list[Episode] = []
    unfinished = 0
    stopped_early = False
    sequences = episode_seeds(seed)
    while len(values) < n_episodes and not stopped_early:
        for _ in range(min(batch, n_episodes - len(values))):
            steps, value, finished = run.episode(next(sequences), keep=len(episodes) < keep_episodes)
            values.append(value)
            unfinished += not finished
            if len(episodes) < keep_episodes:
                episodes.append(Episode(tuple(steps), value, finished))
        if half_width is not None and min_episodes <= len(values) < n_episodes:
            seen = np.array(values)
            low, high = mean_interval(seen, confidence, unseen(len(values), _span(span, seen), confidence))
            stopped_early = 0 < high - low <= 2 * half_width
    missed = 0.0
    if half_width is not None:
        seen = np.array(values)
        missed = unseen(len(values), _span(span, seen), confidence)
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
        seconds_per_decision=run.decider.seconds_per_decision,
        unfinished=unfinished,
        stopped_early=stopped_early,
        episodes=tuple(episodes),
        missed=missed,
        error=length.error,
    )


def _span(span: float, seen: NDArray[np.float64]) -> float:
    """Return how far returns can be apart: as far as was seen where the environment cannot say it."""
    return float(np.ptp(seen)) if math.isnan(span) else span


def check_simulation(
    n_episodes: int, half_width: float | None, min_episodes: int, confidence: float, batch: int
) -> None:
    """Raise unless every number of a simulation is in its range."""
    for name, count in (("n_episodes", n_episodes), ("batch", batch), ("min_episodes", min_episodes)):
        require_count(name, count, 1, "episodes")
    if half_width is not None and not (is_number(half_width) and half_width > 0):
        raise ParameterError(f"half_width: {brief(half_width)}; expected a positive width, in rewards")
    check_confidence(confidence)


def episode_seeds(seed: int | None) -> Iterator[np.random.SeedSequence]:
    """Yield the seeds of episode after episode, without end."""
    entropy = np.random.SeedSequence(seed).entropy
    episode = 0
    while True:
        yield np.random.SeedSequence(entropy, spawn_key=(episode,))
        episode += 1


class _Row:
    """A distribution laid out for drawing by one uniform number."""

    __slots__ = ("bounds", "outcomes")

    def __init__(self, distribution: Mapping[Any, Number]) -> None:
        pairs = [(outcome, float(p)) for outcome, p in distribution.items() if p != 0]
        self.outcomes = [outcome for outcome, _ in pairs]
        self.bounds = np.cumsum([p for _, p in pairs])

    def draw(self, uniform: float) -> Any:
        if len(self.outcomes) == 1:
            return self.outcomes[0]
        position = int(np.searchsorted(self.bounds, uniform * self.bounds[-1], side="right"))
        return self.outcomes[min(position, len(self.outcomes) - 1)]


class _Simulator:
    """Runs episodes; remembers rows of the models and, for a policy that draws nothing, decisions and beliefs."""

    def __init__(
        self,
        policy: Policy,
        problem: POMDP,
        environment: POMDP,
        update: Callable[[Belief, Any, Any], Belief],
        length: RunLength,
        remember_beliefs: bool,
    ) -> None:
        self.decider = Decider(policy, problem)
        self.problem = problem
        self.environment = environment
        self.update = update
        self.length = length
        self._remembers = remember_beliefs
        self._start = _Row(environment.initial_belief.get_histogram())
        self._successors: dict[Any, _Row] = {}
        self._observations: dict[Any, _Row] = {}
        self._beliefs: dict[Any, Belief] = {}

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> tuple[list[Step], float, bool]:
        """One run: its steps (if kept), its discounted return, and whether it came to an end."""
        environment = self.environment
        world, own = seed.spawn(2)
        self.decider.begin(own)
        rng = np.random.default_rng(world)
        state = self._start.draw(rng.random())
        belief, observation = self.problem.initial_belief, None
        terms: list[float] = []
        steps: list[Step] = []
        history: list[tuple[Any, Any]] = []
        discount, gamma = 1.0, float(environment.discount)
        while True:
            if environment.is_terminal(state) or self.problem.is_over(belief):
                return steps, math.fsum(terms), True
            if self.length.is_reached(len(terms)):
                return steps, math.fsum(terms), False
            decision = self.decider.decide(belief, observation, len(terms))
            action = decision.action
            next_state = self._successor(state, action).draw(rng.random())
            perceived = self._observation(state, action, next_state).draw(rng.random())
            reward = environment.step_reward(state, action, next_state, perceived)
            terms.append(discount * float(reward))
            discount *= gamma
            if keep:
                steps.append(Step(state, belief, action, next_state, perceived, reward, decision))
            history.append((action, perceived))
            if not environment.is_terminal(next_state):
                belief = self._updated(belief, action, perceived, history)
            state, observation = next_state, perceived

    def _updated(self, belief: Belief, action: Any, observation: Any, history: list[tuple[Any, Any]]) -> Belief:
        key = (belief, action, observation)
        known = self._beliefs.get(key)
        if known is None:
            try:
                known = self.update(belief, action, observation)
            except ImpossibleObservationError as error:
                raise ImpossibleObservationError(conflict(history)) from error
            if self._remembers and len(self._beliefs) < REMEMBERED:
                self._beliefs[key] = known
        return known

    def _successor(self, state: Any, action: Any) -> _Row:
        key = (state, action)
        if key not in self._successors:
            self._successors[key] = _Row(self.environment.successors(state, action))
        return self._successors[key]

    def _observation(self, state: Any, action: Any, next_state: Any) -> _Row:
        key = (state, action, next_state)
        if key not in self._observations:
            self._observations[key] = _Row(self.environment.observation_distribution(next_state, action, state))
        return self._observations[key]
