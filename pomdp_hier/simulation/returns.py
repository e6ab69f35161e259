"""Returns of runs: when a run is truncated, the greatest difference of two returns, and the returns at a checkpoint.

With a discount below 1, the rewards after step ``t`` sum to at most ``gamma^t max|R| / (1 - gamma)``. With a discount
of 1 they have no bound, and a problem without terminal states needs a horizon.
"""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pomdp_hier._arguments import Floats, check_integer, unexpected
from pomdp_hier._io.checkpoint import Checkpoint, fingerprint, stable_text
from pomdp_hier._text import brief
from pomdp_hier._version import __version__
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.planning.certificates.exact_model import fingerprint as numbers_of
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.pomdp.numeric import is_nonnegative, is_symbolic, within_floats
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.tabular import TabularPOMDP

_SHORT = 32  # actions; only longer runs need a bound on the rewards
_EXPLORED = 10_000  # states searched for a terminal one
_LONGEST = 100_000  # actions of a run without a bound on the rewards
_SETTLING = 2_000  # backups after which a return counts as unbounded


class Truncation:
    """The step at which runs of an environment are truncated.

    Attributes:
        error: The greatest error of a return by truncation so far; 0 if only the horizon ended runs.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> length = Truncation(tiger(), tiger(), None, 1e-9)
        >>> next(step for step in range(10_000) if length.is_reached(step)), length.error < 1e-9
        (553, True)
    """

    def __init__(self, environment: POMDP, problem: POMDP, horizon: int | None, truncation_error: float) -> None:
        if horizon is None:
            environment.require_state_rewards("a run without a horizon")
        if horizon is not None:
            check_integer("horizon", horizon, 0, unit="actions")
        if not (is_nonnegative(truncation_error) and 0 < truncation_error < math.inf):
            raise unexpected("truncation_error", truncation_error, "a positive number of rewards, such as 1e-9")
        self.environment = environment
        self.problem = problem
        self.horizon = horizon
        self.truncation_error = truncation_error
        self.error = 0.0
        self._last: int | None = None

    def is_reached(self, step: int) -> bool:
        """Return whether a run that has not terminated after ``step`` actions is truncated."""
        if self.horizon is not None and step >= self.horizon:
            return True
        if step < _SHORT or (self.horizon is not None and self.horizon <= _LONGEST):
            return False
        if self._last is None:
            self._last, self._error = self._bound()
        if step < self._last:
            return False
        if math.isinf(self._error):
            if self.horizon is not None:
                return False
            raise PlanningError(
                f"horizon: got None, with a run of more than {step:,} actions whose remaining rewards have no bound "
                f"({self._why}); expected a number of actions. Set a horizon."
            )
        self.error = max(self.error, self._error)
        return True

    def _bound(self) -> tuple[int, float]:
        """Return the step of truncation, and a bound on the remaining rewards: infinite if there is none."""
        gamma = self.environment.discount
        if is_symbolic(gamma):
            self._why = f"the discount is {brief(gamma)}"
            return _LONGEST, math.inf
        if gamma == 1:
            self._why = "the discount is 1"
            if self.horizon is None and not (_can_end(self.environment) or _can_end(self.problem)):
                raise PlanningError(
                    "horizon: got None at a discount of 1 without terminal states; expected a number of actions. Set a "
                    "horizon."
                )
            return _LONGEST, math.inf
        try:
            largest = float(np.abs(self.environment.compiled.reward).max(initial=0.0))
        except ModelError as error:
            self._why = f"the rewards cannot be listed: {error}"
            return _LONGEST, math.inf
        if gamma == 0 or largest == 0:
            return _SHORT, 0.0
        scale = float(within_floats(largest / (1 - float(gamma))))
        last = max(_SHORT, math.ceil(math.log(self.truncation_error / scale) / math.log(gamma)))
        return last, scale * float(gamma) ** last


def _can_end(problem: POMDP) -> bool:
    """Return whether a terminal state can be reached, or too many states to tell."""
    queue = list(problem.initial_belief.support)
    seen = set(queue)
    for state in queue:  # grows during the loop
        if problem.is_terminal(state) or len(seen) > _EXPLORED:
            return True
        for action in problem.possible_actions(state):
            new = [s for s in problem.successors(state, action) if s not in seen]
            seen.update(new)
            queue.extend(new)
    return False


def return_span(environment: POMDP, horizon: int | None) -> float:
    """Return the greatest difference of two returns; of two steps' rewards if returns have no bound.

    ``max_s V_best(s) - min_s V_worst(s)`` over the possible initial states, where every step has the greatest or the
    least reward that is possible. It is NaN where the environment cannot be compiled.
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
    """Return the greatest and the least possible reward of each step, ``[A, S]`` each."""
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
    """Return the greatest value over the possible initial states, with other rewards."""
    q, _ = mdp_values(replace(compiled, reward=reward), horizon=horizon, tolerance=1e-6, max_iterations=_SETTLING)
    return float(np.where(compiled.terminal, 0.0, q.max(axis=0))[compiled.initial > 0].max())


_SECONDS = 2.0  # the longest time of finished episodes in memory alone
_FILE = "returns of policies, 1"  # what the file holds, whatever the policies


class Returns(NamedTuple):
    """The returns of consecutive episodes, or one exact value, as a checkpoint holds them.

    Attributes:
        id: The key of policy, models and settings, ``/``, and the number of the first episode.
        values: The returns, as 64-bit floats.
        finished: One byte per episode: 1 where it terminated.
        seconds: The time of all decisions.
        n_decisions: The number of decisions.
        error: The truncation error of a return.
    """

    id: str
    values: bytes
    finished: bytes
    seconds: float
    n_decisions: int
    error: float

    @property
    def returns(self) -> list[float]:
        """The returns as floats."""
        return list(map(float, np.frombuffer(self.values, dtype="<f8")))

    @property
    def possible(self) -> bool:
        """Whether a run can have written this row."""
        _, slash, first = self.id.rpartition("/")
        return (
            bool(slash)
            and first.isdigit()
            and len(self.values) == 8 * len(self.finished) > 0
            and set(self.finished) <= {0, 1}
            and all(map(math.isfinite, self.returns))
            and self.n_decisions >= 0
            and self.error >= 0
        )


class SavedReturns:
    """The finished episodes of one policy in an open checkpoint."""

    def __init__(self, checkpoint: Checkpoint[Returns], key: str) -> None:
        self._checkpoint, self._key = checkpoint, key
        self._written = time.monotonic()
        self._clear()

    def _clear(self) -> None:
        self._first: int | None = None
        self._values: list[float] = []
        self._finished = bytearray()
        self._seconds, self._n_decisions, self._error = 0.0, 0, 0.0

    def at(self, first: int) -> Returns | None:
        """Return the row whose first episode has this number, if there is one."""
        return self._checkpoint.rows.get(f"{self._key}/{first}")

    def add(
        self, first: int, values: list[float], finished: list[bool], seconds: float, n_decisions: int, error: float
    ) -> None:
        """Keep the next finished episodes; they are written together, every two seconds."""
        self._first = first if self._first is None else self._first
        self._values += values
        self._finished += bytes(finished)
        self._seconds += seconds
        self._n_decisions += n_decisions
        self._error = max(self._error, error)
        if time.monotonic() - self._written > _SECONDS:
            self.write()

    def write(self) -> None:
        """Write what is kept in memory."""
        if self._first is not None:
            values, finished = np.array(self._values, "<f8").tobytes(), bytes(self._finished)
            name = f"{self._key}/{self._first}"
            self._checkpoint.append([Returns(name, values, finished, self._seconds, self._n_decisions, self._error)])
        self._clear()
        self._written = time.monotonic()


def samples(updater: Any) -> bool:
    """Return whether an updater samples its beliefs from one stream of random numbers."""
    return hasattr(updater, "rng")


def check_checkpoint(checkpoint: Any, policy_version: Any, seed: Any, updater: Any, kept: Any) -> None:
    """Raise unless a run with these arguments can be resumed."""
    if checkpoint is None:
        if policy_version is not None:
            raise ParameterError(
                f"policy_version: got {brief(policy_version)}, which only a checkpoint uses. Pass checkpoint= too."
            )
        return
    if not isinstance(checkpoint, (str, os.PathLike, Checkpoint)):
        raise unexpected("checkpoint", checkpoint, "the path of a file, or None")
    if policy_version is not None and not isinstance(policy_version, str):
        raise unexpected("policy_version", policy_version, "text, such as 'bold 2', or None")
    if seed is None:
        raise unexpected("seed", seed, "an integer with a checkpoint, since a resumed run needs the same seed")
    if samples(updater):
        raise unexpected("updater", updater, "one that does not sample from one stream, with a checkpoint")
    if kept:
        raise ParameterError(
            f"trace, keep_episodes: got {brief(kept)} with a checkpoint, which holds returns alone; expected none."
        )


@contextmanager
def open_returns(path: str | os.PathLike[str] | Checkpoint[Returns] | None) -> Iterator[Checkpoint[Returns] | None]:
    """Yield the checkpoint of returns at a path, new or resumed; an open one, or none, as it is."""
    if path is None or isinstance(path, Checkpoint):
        yield path
        return
    with Checkpoint.open(path, _FILE, Returns, lambda row: row.possible) as checkpoint:
        yield checkpoint


def key_of(policy_version: str | None, problem: POMDP, environment: POMDP, **parts: Any) -> str:
    """Return the key of one run: its policy, models, seed and settings."""
    pair = (problem, environment)
    models = [_identity(model) for model in pair]
    policy = parts.get("policy")
    if isinstance(policy, FiniteStateController):  # whose problem and values grow as it is used
        parts["policy"] = (_identity(policy.problem), policy.actions, policy.after, policy.start)
    rewards = {"belief_reward": [model.given_belief_reward for model in pair]}
    rewards = rewards if any(model.has_belief_reward for model in pair) else {}
    return fingerprint(policy_version, package=__version__, models=models, **rewards, **parts)


def _identity(problem: POMDP) -> tuple[str, str]:
    """Return the fingerprint of the numbers of a problem, and its names."""
    names = (problem.states, problem.all_actions, problem.all_observations)
    return numbers_of(problem, belief_reward=True), stable_text(names)
