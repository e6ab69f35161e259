"""Episodes on one seed each: their records, the simulator that runs them, and runs in several processes.

Episode ``i`` samples from ``SeedSequence(entropy, spawn_key=(i,))``, so that results do not depend on the processes.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import check_integer, check_level, entropy, unexpected
from pomdp_hier._progress import OnceAProcess, check_jobs, in_processes, n_workers
from pomdp_hier._text import brief
from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import Argument, ImpossibleObservationError, ParameterError
from pomdp_hier.planning.decision import Decision, Policy
from pomdp_hier.planning.policies import decided
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_nonnegative, total, within_floats
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.simulation.exact import conflict
from pomdp_hier.simulation.returns import SavedReturns, Truncation, samples

_PARTS = 8  # per process: parts are small, so that progress shows and one slow part delays little
_REMEMBERED = 100_000  # decisions and beliefs of a deterministic policy that are kept for equal beliefs


@dataclass(frozen=True, eq=False)
class Step:
    """One step of an episode.

    Attributes:
        state: The environment's state before the action.
        belief: The agent's belief before the action.
        action: The agent's action.
        next_state: The environment's state after it.
        observation: The agent's observation after it.
        reward: The reward of the step.
        decision: The agent's decision.
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
        steps: The steps, in order.
        value: The discounted sum of rewards.
        finished: Whether the run terminated before the horizon or truncation.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> from pomdp_hier.simulation import simulate
        >>> run = simulate(RTBSS(depth=1), tiger(), n_episodes=1, horizon=2, seed=0, keep_episodes=1).episodes[0]
        >>> len(run.steps), run.value, run.finished
        (2, -1.95, False)
    """

    steps: tuple[Step, ...]
    value: float
    finished: bool


class Decider:
    """The decisions of one policy over many episodes; those of a deterministic policy are made once per belief.

    Attributes:
        seconds: The total time of ``decide``.
        n_decisions: The number of calls of ``decide``.
    """

    def __init__(self, policy: Policy, problem: POMDP) -> None:
        self.policy = policy
        self.problem = problem
        self.seconds = 0.0
        self.n_decisions = 0
        self._samples = hasattr(policy, "seeded")
        self._timed = hasattr(policy, "at_step")
        self._remembers = hasattr(policy, "remember")
        self._memory: Any = None
        self._present: Any = policy
        self._known: dict[Any, Decision] = {}

    def begin(self, seed: np.random.SeedSequence) -> None:
        """Begin an episode: a new stream for a policy that samples, a new memory for one that remembers."""
        self._memory = None
        self._present = self.policy.seeded(seed) if self._samples else self.policy  # type: ignore[attr-defined]

    def decide(self, belief: Belief, observation: Hashable, step: int) -> Decision:
        """Return the decision; equal beliefs, times and memories are decided once, unless the policy samples."""
        if self._remembers and step > 0:
            self._memory = self._present.remember(self._memory, observation)
        key = (belief, observation, step if self._timed else None, self._memory)
        decision = None if self._samples else self._known.get(key)
        if decision is None:
            policy = self._present.at_step(step) if self._timed else self._present
            policy = policy.with_memory(self._memory) if self._remembers else policy
            began = time.perf_counter()
            decision = decided(policy, self.problem, belief, observation)
            self.seconds += time.perf_counter() - began
            self.n_decisions += 1
            if not self._samples and len(self._known) < _REMEMBERED:
                self._known[key] = decision
        return decision

    @property
    def seconds_per_decision(self) -> float:
        """The mean time of one call of ``decide``."""
        return self.seconds / max(self.n_decisions, 1)


class _Row:
    """A distribution that is sampled by one uniform number."""

    __slots__ = ("bounds", "outcomes")

    def __init__(self, distribution: Mapping[Any, Number]) -> None:
        pairs = [(outcome, float(p)) for outcome, p in distribution.items() if p != 0]
        self.outcomes = [outcome for outcome, _ in pairs]
        self.bounds = np.cumsum([p for _, p in pairs])

    def sample(self, uniform: float) -> Any:
        if len(self.outcomes) == 1:
            return self.outcomes[0]
        position = int(np.searchsorted(self.bounds, uniform * self.bounds[-1], side="right"))
        return self.outcomes[min(position, len(self.outcomes) - 1)]


def return_of(terms: Sequence[float]) -> float:
    """Return the sum of the discounted rewards of an episode."""
    return float(within_floats(total(terms), 1e150))


class Simulator:
    """A simulator that keeps rows of the models, and the decisions and beliefs of a deterministic policy."""

    def __init__(
        self,
        policy: Policy,
        problem: POMDP,
        environment: POMDP,
        updater: Any,
        horizon: int | None,
        truncation_error: float,
    ) -> None:
        self.decider = Decider(policy, problem)
        self.problem = problem
        self.environment = environment
        self.update = as_updater(updater, problem).update
        self.length = Truncation(environment, problem, horizon, truncation_error)
        self._remembers = not samples(updater)  # an updater that samples updates every time
        self._start = _Row(environment.initial_belief.get_histogram())
        self._successors: dict[Any, _Row] = {}
        self._observations: dict[Any, _Row] = {}
        self._beliefs: dict[Any, Belief] = {}

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> Episode:
        """Return one run, with its steps if they are kept."""
        environment = self.environment
        environment_seed, policy_seed = seed.spawn(2)
        self.decider.begin(policy_seed)
        rng = np.random.default_rng(environment_seed)
        state = self._start.sample(rng.random())
        belief, observation = self.problem.initial_belief, None
        terms: list[float] = []
        steps: list[Step] = []
        history: list[tuple[Any, Any]] = []
        discount, gamma = 1.0, float(environment.discount)
        while True:
            if environment.is_terminal(state) or self.problem.is_terminal_belief(belief):
                return Episode(tuple(steps), return_of(terms), True)
            if self.length.is_reached(len(terms)):
                return Episode(tuple(steps), return_of(terms), False)
            decision = self.decider.decide(belief, observation, len(terms))
            action = decision.action
            next_state = self._successor(state, action).sample(rng.random())
            observed = self._observation(state, action, next_state).sample(rng.random())
            reward = environment.step_reward(state, action, next_state, observed)
            if environment.has_belief_reward:
                reward += environment.belief_reward(belief, action)
            terms.append(discount * float(reward))
            discount *= gamma
            if keep:
                steps.append(Step(state, belief, action, next_state, observed, reward, decision))
            history.append((action, observed))
            if not environment.is_terminal(next_state):
                belief = self._updated(belief, action, observed, history)
            state, observation = next_state, observed

    def _updated(self, belief: Belief, action: Any, observation: Any, history: list[tuple[Any, Any]]) -> Belief:
        key = (belief, action, observation)
        known = self._beliefs.get(key)
        if known is None:
            try:
                known = self.update(belief, action, observation)
            except ImpossibleObservationError as error:
                raise ImpossibleObservationError(conflict(history)) from error
            if self._remembers and len(self._beliefs) < _REMEMBERED:
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


class Runner(Protocol):
    """A runner of single episodes, with the decisions and the truncation of all of them."""

    decider: Decider
    length: Truncation

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> Episode:
        """Return one run, with its steps if they are kept."""


@dataclass(frozen=True, eq=False)
class _Part:
    """The returns of consecutive episodes, and the time of their decisions."""

    values: list[float]
    finished: list[bool]
    episodes: list[Episode]
    seconds: float
    n_decisions: int
    error: float


def _run(runner: Runner, entropy: Any, span: range, *, keep: bool = False) -> _Part:
    """Run episodes on the seeds of their numbers."""
    decider, seconds, n_decisions = runner.decider, runner.decider.seconds, runner.decider.n_decisions
    seeds = (np.random.SeedSequence(entropy, spawn_key=(i,)) for i in span)
    episodes = [runner.episode(seed, keep=keep) for seed in seeds]
    return _Part(
        [episode.value for episode in episodes],
        [episode.finished for episode in episodes],
        episodes if keep else [],
        decider.seconds - seconds,
        decider.n_decisions - n_decisions,
        runner.length.error,
    )


@dataclass(frozen=True, eq=False)
class _Work:
    """The task sent to a worker process."""

    runner: OnceAProcess[Runner]
    entropy: Any

    def __call__(self, span: range) -> _Part:
        return _run(self.runner(), self.entropy, span)


class EpisodeRuns:
    """Episodes that are run in steps, in one process or in several.

    Attributes:
        values: The return of each episode so far.
        unfinished: The number of episodes that did not terminate.
        episodes: The records that were kept.
        error: The truncation error of a return.
    """

    def __init__(
        self,
        build: Callable[[], Runner],
        sent: Mapping[str, Any],
        seed: int | None,
        n_jobs: int,
        bar: tqdm,
        saved: SavedReturns | None = None,
    ) -> None:
        check_jobs(n_jobs)
        self._runner = build()
        self._entropy = entropy("seed", seed)
        self._work = _Work(OnceAProcess(build), self._entropy)
        self._sent, self._n_jobs = sent, n_jobs
        self._bar, self._saved = bar, saved
        self._seconds, self._n_decisions = 0.0, 0
        self.values: list[float] = []
        self.unfinished = 0
        self.episodes: list[Episode] = []
        self.error = 0.0

    @property
    def seconds_per_decision(self) -> float:
        """The mean time of one call of ``decide``."""
        return self._seconds / max(self._n_decisions, 1)

    def run_until(self, stop: int, *, keep: int = 0) -> None:
        """Run the episodes up to ``stop``; the first ``keep`` of all are kept, and run in this process."""
        try:
            self._run_until(stop, keep)
        finally:
            if self._saved is not None:
                self._saved.write()

    def _run_until(self, stop: int, keep: int) -> None:
        while self._saved is not None and (row := self._saved.at(begin := len(self.values))) and begin < stop:
            n = stop - begin
            finished = [bool(byte) for byte in row.finished[:n]]
            self._add(_Part(row.returns[:n], finished, [], row.seconds, row.n_decisions, row.error), save=False)
        begin = len(self.values)
        here = range(begin, stop if self._n_jobs == 1 else min(stop, max(begin, keep)))
        for i in here:
            self._add(_run(self._runner, self._entropy, range(i, i + 1), keep=i < keep))
        rest = range(here.stop, stop)
        if rest:
            size = max(1, len(rest) // (_PARTS * n_workers(self._n_jobs)))
            parts = [rest[i : i + size] for i in range(0, len(rest), size)]
            for part in in_processes(self._work, parts, self._n_jobs, self._sent):
                self._add(part)

    def _add(self, part: _Part, *, save: bool = True) -> None:
        if self._saved is not None and save:
            first = len(self.values)
            self._saved.add(first, part.values, part.finished, part.seconds, part.n_decisions, part.error)
        self.values += part.values
        self.unfinished += part.finished.count(False)
        self.episodes += part.episodes
        self._seconds += part.seconds
        self._n_decisions += part.n_decisions
        self.error = max(self.error, part.error)
        self._bar.update(len(part.values))


def require_order(updater: Any, n_jobs: int) -> None:
    """Raise if several processes would change the order of an updater's random numbers."""
    if samples(updater) and n_jobs != 1:
        raise ParameterError(
            Argument("n_jobs"),
            f": got {n_jobs} with the updater {brief(updater)}, which samples from one stream; expected 1. "
            "Leave it out, or pass an updater that does not sample.",
        )


def check_simulation(
    n_episodes: int, half_width: float | None, min_episodes: int, confidence: float, batch: int
) -> None:
    """Raise unless every number of a simulation is in range."""
    for name, count in (("n_episodes", n_episodes), ("batch", batch), ("min_episodes", min_episodes)):
        check_integer(name, count, 1, unit="episodes")
    if half_width is not None and not (is_nonnegative(half_width) and half_width > 0):
        raise unexpected("half_width", half_width, "a positive width, in rewards")
    check_level("confidence", confidence)
