"""The exact value of a policy in an environment that may differ from the agent's model.

The agent decides from its belief, which it updates by its own model. States, rewards and observations come from the
environment. The value depends on the agent's belief and, linearly, on the environment's distribution over states:
histories with the same belief are therefore summed.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import check_flag, check_integer
from pomdp_hier._progress import OnceAProcess, check_jobs, in_processes, n_workers, shown_progress
from pomdp_hier._text import brief, counted
from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import Argument, ImpossibleObservationError, ParameterError, PlanningError
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.planning.decision import Decision, Policy
from pomdp_hier.planning.policies import action_probabilities, as_policy
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, total, within_floats
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.simulation.returns import Truncation

Update = Callable[[Belief, Any, Any], Belief]

_MANY = 16  # steps after which rounding errors make equal beliefs differ
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Visit:
    """A belief at which a policy decides in an exact evaluation.

    Attributes:
        step: The number of actions before.
        belief: The agent's belief.
        weights: ``{s: probability}`` of the environment's state; their sum is the probability of the visit.
        actions: ``{action: probability}`` of the policy.
        decision: The policy's `Decision`; ``None`` if it samples its action.
        observation: The last observation, ``None`` at the start.
        previous: The visit before and its action, of one history where several have this belief.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> visits = policy_value(RTBSS(depth=1), tiger(), horizon=2, trace=True).visits
        >>> [(visit.step, visit.observation, visit.probability) for visit in visits]
        [(0, None, 1.0), (1, 'hear-left', 0.5), (1, 'hear-right', 0.5)]
    """

    step: int
    belief: Belief
    weights: Mapping[Any, Number]
    actions: Mapping[Any, Number]
    decision: Decision | None
    observation: Any
    previous: tuple["Visit", Any] | None = field(repr=False)

    @property
    def probability(self) -> Number:
        """The probability of the visit."""
        return total(self.weights.values())

    @property
    def history(self) -> tuple[tuple[Any, Any], ...]:
        """The (action, observation) pairs of one history with this belief, from the start."""
        pairs: list[tuple[Any, Any]] = []
        visit = self
        while visit.previous is not None:
            before, action = visit.previous
            pairs.append((action, visit.observation))
            visit = before
        return tuple(reversed(pairs))


@dataclass(frozen=True, eq=False)
class PolicyValue:
    """The exact value of a policy.

    Attributes:
        value: The expected discounted sum of rewards, in the environment's reward unit.
        n_beliefs: The number of (step, belief) pairs with a decision.
        n_steps: The length of the longest run.
        unfinished: The probability that a run has not terminated at the horizon or at truncation.
        seconds_per_decision: The mean time of one decision.
        visits: Every belief with a decision, by step, if requested.
        error: The truncation error of the value.
    """

    value: Number
    n_beliefs: int
    n_steps: int
    unfinished: Number
    seconds_per_decision: float = field(repr=False)
    visits: tuple[Visit, ...] = field(default=(), repr=False)
    error: float = 0.0

    def __str__(self) -> str:
        within = f"within {self.error:.2g}" if self.error else "exact"
        over = f"{counted(self.n_beliefs, 'belief')} and {counted(self.n_steps, 'step')}"
        return f"value {brief(self.value)}, {within}, over {over}"

    def __float__(self) -> float:
        return float(self.value)


def policy_value(
    policy: Any,
    problem: POMDP,
    environment: POMDP | None = None,
    *,
    updater: Any = None,
    horizon: int | None = None,
    truncation_error: float = 1e-9,
    trace: bool = False,
    max_beliefs: int = 100_000,
    n_jobs: int = 1,
    progress: bool | tqdm = False,
) -> PolicyValue:
    """Return the exact value of a policy that plans in ``problem`` and acts in ``environment``.

    ``V = sum_t gamma^t sum_s p_t(s, b) sum_a pi(a | b) R_env(s, a)`` over all reachable pairs of state and belief. A
    run ends in a terminal state of the environment, at a terminal belief of the agent, or after ``horizon`` actions.
    The discount is the environment's. From the 16th action on, beliefs that agree to 1e-12 are merged, as rounding
    errors alone would multiply them.

    Args:
        policy: A `Policy` or a function of the belief. If it samples and has no ``action_probabilities``, as POUCT, the
            value is that of the decisions of this call.
        problem: The agent's own model, with the agent's initial belief.
        environment: The model of states, observations and rewards; the agent's own by default.
        updater: The agent's belief updater; Bayes' rule in its own model by default.
        horizon: The greatest number of actions of a run; ``None`` for an infinite horizon.
        truncation_error: Without a horizon, or with one of more than 100,000 actions, episodes end where the remaining
            discounted reward is below this, in rewards. `PolicyValue.error` reports it. With a discount of 1 every
            episode must terminate.
        trace: Whether to keep every visit.
        max_beliefs: The greatest number of beliefs with a decision.
        n_jobs: The number of processes that decide at the beliefs of a step; -1 for one per CPU. Results do not depend
            on it. More than one needs joblib, and uses the back end of ``joblib.parallel_config``.
        progress: Whether to show a progress bar on standard error, which counts beliefs; or a tqdm bar to continue.

    Raises:
        ImpossibleObservationError: An observation has probability 0 in the agent's model.
        MissingExtraError: More than one process without joblib.
        ParameterError: An argument cannot be pickled for another process, or there are several processes and the policy
            samples without ``action_probabilities``.
        PlanningError: More than ``max_beliefs`` were reached, or the remaining rewards have no bound.

    Example:
        >>> def bet(right):
        ...     return POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...                  reward=lambda s, a: 1 if a == s else -1, terminal=["end"],
        ...                  initial_belief={"heads": right, "tails": 1 - right}, legal_actions=["heads", "tails"])
        >>> policy_value(lambda belief: belief.mpe(), bet(0.9), bet(0.25)).value
        -0.5

    References:
        Kaelbling, Littman and Cassandra (1998), section 4.1, with two models in place of one.
    """
    chosen = as_policy(policy)
    for model in (problem,) if environment is None else (problem, environment):
        require_problem(model, "policy_value, after the policy")
    check_integer("max_beliefs", max_beliefs, 1, unit="beliefs")
    check_flag("trace", trace)
    environment = problem if environment is None else environment
    length = Truncation(environment, problem, horizon, truncation_error)
    with shown_progress(progress, "policy_value", " beliefs") as bar:
        deciders = _Deciders(chosen, problem, n_jobs)
        run = _Evaluation(deciders, problem, environment, as_updater(updater, problem).update, max_beliefs, bar)
        return run.value(length, trace)


Place = tuple[Belief, Any, Any]  # the belief, the last observation, and the memory of a policy that has one
Choice = tuple[Mapping[Any, Number], Decision | None]  # the probability of each action, and the decision, if any
_PARTS = 4  # per process: parts are small, so that one slow part delays little


@dataclass(frozen=True, eq=False)
class _Choices:
    """The choices of a policy at beliefs of one step."""

    policy: Policy
    problem: POMDP

    def __call__(self, task: tuple[int, Sequence[Place]]) -> tuple[list[Choice], float]:
        step, places = task
        began = time.perf_counter()
        policy: Any = self.policy.at_step(step) if hasattr(self.policy, "at_step") else self.policy
        remembers = hasattr(policy, "with_memory")
        choices = [
            action_probabilities(policy.with_memory(memory) if remembers else policy, self.problem, belief, observation)
            for belief, observation, memory in places
        ]
        return choices, time.perf_counter() - began


@dataclass(frozen=True, eq=False)
class _Sent:
    """The picklable part of a policy, sent to worker processes."""

    choices: OnceAProcess[_Choices]

    def __call__(self, task: tuple[int, Sequence[Place]]) -> tuple[list[Choice], float]:
        return self.choices()(task)


class _Deciders:
    """The choices of a policy, in one process or in several, step by step."""

    def __init__(self, policy: Policy, problem: POMDP, n_jobs: int) -> None:
        check_jobs(n_jobs)
        if n_jobs != 1 and hasattr(policy, "seeded") and not hasattr(policy, "action_probabilities"):
            raise ParameterError(
                Argument("n_jobs"),
                f": got {n_jobs} with the policy {brief(policy)}, which samples from one stream; expected 1. Leave it "
                "out, or simulate.",
            )
        self._here = _Choices(policy, problem)
        self._there = _Sent(OnceAProcess(partial(_Choices, policy, problem)))
        self._sent = {"policy": policy, "problem": problem}
        self.remember = getattr(policy, "remember", None)
        self._n_jobs, self._n_workers = n_jobs, n_workers(n_jobs)
        self.seconds = 0.0

    def choices(self, step: int, places: Sequence[Place]) -> Iterator[Choice]:
        """Yield the choice of the policy at each belief, last observation and memory."""
        here = self._n_workers == 1 or len(places) < self._n_workers
        size = 1 if here else max(1, len(places) // (_PARTS * self._n_workers))
        tasks = [(step, places[i : i + size]) for i in range(0, len(places), size)]
        work, n_jobs = (self._here, 1) if here else (self._there, self._n_jobs)
        for choices, seconds in in_processes(work, tasks, n_jobs, self._sent):
            self.seconds += seconds
            yield from choices


@dataclass
class _Pair:
    """A belief of the agent, and the unnormalised distribution over the environment's states with it."""

    belief: Belief
    observation: Any
    weights: dict[Any, Number]
    previous: tuple[Visit, Any] | None
    memory: Any = None


class _Evaluation:
    def __init__(
        self, deciders: _Deciders, problem: POMDP, environment: POMDP, update: Update, max_beliefs: int, bar: tqdm
    ) -> None:
        self.deciders = deciders
        self.problem = problem
        self.environment = environment
        self.update = update
        self.max_beliefs = max_beliefs
        self.bar = bar

    def value(self, length: Truncation, trace: bool) -> PolicyValue:
        start = self._alive(self.environment.initial_belief.get_histogram())
        pairs = [_Pair(self.problem.initial_belief, None, start, None)] if start else []
        terms: list[Number] = []
        visits: list[Visit] = []
        step = count = 0
        discount: Number = 1
        while pairs and not length.is_reached(step):
            count += len(pairs)
            running = [pair for pair in pairs if not self.problem.is_terminal_belief(pair.belief)]
            choices = self.deciders.choices(step, [(pair.belief, pair.observation, pair.memory) for pair in running])
            merged: dict[Hashable, _Pair] = {}
            self.bar.update(len(pairs) - len(running))
            for pair, (actions, decision) in zip(running, choices, strict=True):
                visit = Visit(step, pair.belief, pair.weights, actions, decision, pair.observation, pair.previous)
                self.bar.update()
                if trace:
                    visits.append(visit)
                for action, probability in visit.actions.items():
                    if probability != 0:
                        terms.append(discount * probability * self._reward(pair, action))
                        self._advance(visit, pair.memory, action, probability, merged, step >= _MANY)
                if count + len(merged) > self.max_beliefs:
                    raise PlanningError(
                        f"max_beliefs: got more than {self.max_beliefs} beliefs by step {step + 1}; expected at most "
                        f"that number. Set horizon={step} or less, raise max_beliefs, simulate instead "
                        "(compare_policies: method='monte-carlo'), or pass a controller of infinite horizon to "
                        "compare_policies, which needs no beliefs."
                    )
            pairs = list(merged.values())
            discount = discount * self.environment.discount
            step += 1
        unfinished = total(weight for pair in pairs for weight in pair.weights.values())
        seconds = self.deciders.seconds / max(count, 1)
        return PolicyValue(within_floats(total(terms)), count, step, unfinished, seconds, tuple(visits), length.error)

    def _alive(self, weights: Mapping[Any, Number]) -> dict[Any, Number]:
        return {state: weight for state, weight in weights.items() if not self.environment.is_terminal(state)}

    def _reward(self, pair: _Pair, action: Any) -> Number:
        rewards = [weight * self.environment.expected_reward(state, action) for state, weight in pair.weights.items()]
        if self.environment.has_belief_reward:
            rewards.append(total(pair.weights.values()) * self.environment.belief_reward(pair.belief, action))
        return total(rewards)

    def _advance(
        self, visit: Visit, memory: Any, action: Any, probability: Number, merged: dict[Hashable, _Pair], rounded: bool
    ) -> None:
        """Add the outcomes of the action to the pairs of the next step."""
        for observation, row in self.environment.joint(visit.weights, action).items():
            weights = self._alive(row)
            if not weights:
                continue
            try:
                belief = self.update(visit.belief, action, observation)
            except ImpossibleObservationError as error:
                raise ImpossibleObservationError(conflict([*visit.history, (action, observation)])) from error
            then = None if self.deciders.remember is None else self.deciders.remember(memory, observation)
            key = (_cells(belief) if rounded else belief), observation, then
            pair = merged.setdefault(key, _Pair(belief, observation, {}, (visit, action), then))
            for state, weight in weights.items():
                pair.weights[state] = pair.weights.get(state, 0) + probability * weight


def _cells(belief: Belief) -> Hashable:
    """Return a key that beliefs share if they differ by rounding alone; exact numbers are kept."""
    return frozenset((state, round(p / _ROUNDING) if isinstance(p, float) else p) for state, p in belief.items())


def conflict(history: Sequence[tuple[Any, Any]]) -> str:
    """Return the error message for a history whose last observation is impossible in the agent's model."""
    action, observation = history[-1]
    shown = ", ".join(f"{brief(a, 30)} -> {brief(o, 30)}" for a, o in history[-6:])
    skipped = f"{len(history) - 6} earlier steps, " if len(history) > 6 else ""
    return (
        f"step {len(history) - 1}: got the observation {brief(observation)} after {brief(action)}; expected one with "
        f"a probability above 0 in the agent's model (history: {skipped}{shown}). Pass a model or an updater in which "
        "every observation of the environment is possible."
    )


def mdp_value(environment: POMDP, *, horizon: int | None = None, tolerance: float = 1e-12) -> float:
    """Return the value of the fully observable problem, ``sum_s b(s) V_MDP(s)``, an upper bound on every policy's.

    Args:
        environment: The problem.
        horizon: The number of actions; ``None`` for an infinite horizon.
        tolerance: Without a horizon, the greatest change of a value at convergence, as for `mdp_values`.

    Raises:
        PlanningError: Without a horizon, the values do not converge.

    Example:
        >>> coin = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else -1, terminal=["end"],
        ...              initial_belief={"heads": 0.5, "tails": 0.5}, legal_actions=["heads", "tails"])
        >>> mdp_value(coin)
        1.0

    References:
        Littman, Cassandra and Kaelbling (1995), section 4.1.
    """
    require_problem(environment, "mdp_value")
    if horizon == 0:
        return 0.0
    compiled = environment.compiled
    q, _ = mdp_values(compiled, horizon=horizon, tolerance=tolerance)
    return float(compiled.initial @ np.where(compiled.terminal, 0.0, q.max(axis=0)))
