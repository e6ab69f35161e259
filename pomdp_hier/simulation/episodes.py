"""Many episodes, in this process or in several, with the same numbers: each episode draws from a seed of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import check_integer, check_level, entropy
from pomdp_hier._jobs import OnceAProcess, check_jobs, in_processes, n_workers
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.planning.decision import Decision
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_nonnegative
from pomdp_hier.simulation.decision_cache import Decider
from pomdp_hier.simulation.truncation import Truncation

_PARTS = 8  # of a process's share of the episodes, so that progress shows and a slow part holds up little


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
        >>> from pomdp_hier.simulation import simulate
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
        >>> from pomdp_hier.simulation import simulate
        >>> run = simulate(RTBSS(depth=1), tiger(), n_episodes=1, horizon=2, seed=0, keep_episodes=1).episodes[0]
        >>> len(run.steps), run.value, run.finished
        (2, -1.95, False)
    """

    steps: tuple[Step, ...]
    value: float
    finished: bool


class Runner(Protocol):
    """What runs single episodes, and remembers what it may from one to the next."""

    decider: Decider
    length: Truncation

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> Episode:
        """Return one run, without its steps unless they are kept."""


@dataclass(frozen=True, eq=False)
class _Part:
    """What some consecutive episodes earned, and what their decisions took."""

    values: list[float]
    unfinished: int
    episodes: list[Episode]
    seconds: float
    n_decisions: int
    error: float


def _run(runner: Runner, entropy: Any, span: range, *, keep: bool = False) -> _Part:
    """Run these episodes; episode ``i`` draws from ``SeedSequence(entropy, spawn_key=(i,))``."""
    decider, seconds, n_decisions = runner.decider, runner.decider.seconds, runner.decider.n_decisions
    seeds = (np.random.SeedSequence(entropy, spawn_key=(i,)) for i in span)
    episodes = [runner.episode(seed, keep=keep) for seed in seeds]
    return _Part(
        [episode.value for episode in episodes],
        sum(not episode.finished for episode in episodes),
        episodes if keep else [],
        decider.seconds - seconds,
        decider.n_decisions - n_decisions,
        runner.length.error,
    )


@dataclass(frozen=True, eq=False)
class _Work:
    """What another process is sent."""

    runner: OnceAProcess[Runner]
    entropy: Any

    def __call__(self, span: range) -> _Part:
        return _run(self.runner(), self.entropy, span)


class EpisodeRuns:
    """Runs episodes up to a number, and on from there.

    Args:
        build: Makes a runner, in each process.
        sent: What a runner is made of, by the names of the arguments that it came with.
        seed: Where the random numbers start; ``None`` takes them from the operating system.
        n_jobs: How many processes, -1 for one a CPU.
        bar: Where progress shows.

    Attributes:
        values: The return of each episode so far.
        unfinished: How many of them were cut short.
        episodes: Those that were kept.
        error: What a return can have lost by the cuts.

    Raises:
        ParameterError: The number of processes is none.
    """

    def __init__(
        self,
        build: Callable[[], Runner],
        sent: Mapping[str, Any],
        seed: int | None,
        n_jobs: int,
        bar: tqdm,
    ) -> None:
        check_jobs(n_jobs)
        self._runner = build()
        self._entropy = entropy("seed", seed)
        self._work = _Work(OnceAProcess(build), self._entropy)
        self._sent, self._n_jobs = sent, n_jobs
        self._bar = bar
        self._seconds, self._n_decisions = 0.0, 0
        self.values: list[float] = []
        self.unfinished = 0
        self.episodes: list[Episode] = []
        self.error = 0.0

    @property
    def seconds_per_decision(self) -> float:
        """The mean time of a policy's decision, over those that were really made."""
        return self._seconds / max(self._n_decisions, 1)

    def go_on(self, stop: int, *, keep: int = 0) -> None:
        """Run the episodes up to ``stop``; the first ``keep`` of all are kept, and run in this process."""
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

    def _add(self, part: _Part) -> None:
        self.values += part.values
        self.unfinished += part.unfinished
        self.episodes += part.episodes
        self._seconds += part.seconds
        self._n_decisions += part.n_decisions
        self.error = max(self.error, part.error)
        self._bar.update(len(part.values))


def draws(updater: Any) -> bool:
    """Whether an updater draws random numbers, one belief after the other from one stream."""
    return hasattr(updater, "rng")


def refuse_one_stream(updater: Any, n_jobs: int) -> None:
    """Refuse several processes for an updater whose numbers depend on the order of the episodes."""
    if draws(updater) and n_jobs != 1:
        raise ParameterError(
            Argument("n_jobs"),
            f" is {n_jobs}, and the updater {brief(updater)} draws from one stream, from episode to episode, which "
            "processes do not keep; leave it out, or take an updater that draws nothing",
        )


def check_simulation(
    n_episodes: int, half_width: float | None, min_episodes: int, confidence: float, batch: int
) -> None:
    """Raise unless every number of a simulation is in its range."""
    for name, count in (("n_episodes", n_episodes), ("batch", batch), ("min_episodes", min_episodes)):
        check_integer(name, count, 1, unit="episodes")
    if half_width is not None and not (is_nonnegative(half_width) and half_width > 0):
        raise ParameterError(f"half_width: {brief(half_width)}; expected a positive width, in rewards")
    check_level("confidence", confidence)
