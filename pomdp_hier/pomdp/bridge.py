"""A `POMDP` as a ``pomdp_py.Agent`` and a ``pomdp_py.Environment``, and an agent as a `POMDP`.

pomdp-py wants states, actions and observations of its own classes. Values that are not are put into a `BridgedState`,
`BridgedAction` or `BridgedObservation`, which equal the value they hold, print like it, and give it back as ``value``.

pomdp-py has no terminal states and no problem-wide legal actions. Here a terminal state is absorbing and earns 0, and
leaves one action to take; the legal actions of a search node depend on the history alone, never on the state that
happened to be drawn there first.
"""

import inspect
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pomdp_py

from pomdp_hier.errors import ImpossibleObservationError, ModelError
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief
from pomdp_hier.pomdp.bridged import (
    OVER,
    BridgedAction,
    BridgedObservation,
    BridgedState,
    bridged_action,
    bridged_observation,
    bridged_state,
    seeded_random,
    unwrapped,
)
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, brief, draw, total
from pomdp_hier.pomdp.problem import POMDP

__all__ = [
    "OVER",
    "BridgedAction",
    "BridgedObservation",
    "BridgedState",
    "HistoryPolicy",
    "ProblemAgent",
    "ProblemEnvironment",
    "problem_from_agent",
    "seeded_random",
    "to_agent",
    "to_environment",
    "unwrapped",
]


# --- a problem as an agent ---------------------------------------------------------------------------------------


class _AgentTransition(TransitionModel):
    def __init__(self, problem: POMDP) -> None:
        self._problem = problem

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        flow = self._problem.successors(unwrapped(state), unwrapped(action))
        return {bridged_state(s): p for s, p in flow.items() if p != 0}

    def get_all_states(self) -> list[Any]:
        """All states, in the problem's order."""
        return [bridged_state(s) for s in self._problem.states]


class _AgentObservation(ObservationModel):
    uses_state = False

    def __init__(self, problem: POMDP) -> None:
        self._problem = problem

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        seen = observations_of(self._problem, None, unwrapped(action), unwrapped(next_state))
        return {bridged_observation(o): p for o, p in seen.items() if p != 0}

    def get_all_observations(self) -> list[Any]:
        """All observations, in the problem's order."""
        return [bridged_observation(o) for o in self._problem.all_observations]


def observations_of(problem: POMDP, state: Any, action: Any, next_state: Any) -> Mapping[Any, Number]:
    """``{o: p(o | s, a, s')}``, and `OVER` where the process has ended and the models need not answer.

    The state left may be None where observations do not depend on it.
    """
    if problem.is_terminal(next_state) and problem.legal_by != "belief":
        tables = problem.compiled
        a, t = tables.action_index[action], tables.state_index[next_state]
        if tables.observation is not None:
            matrix = tables.observation[a]
            answered = matrix.indptr[t + 1] > matrix.indptr[t]
        else:
            answered = not problem.is_terminal(state)
        if not answered:
            return {OVER: 1}
    return problem.observation_distribution(next_state, action, state)


class _AgentReward(RewardModel):
    uses_observation = False

    def __init__(self, problem: POMDP) -> None:
        self._problem = problem

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        """Return the mean over the observations, as pomdp-py's rewards do not see them."""
        problem, s, a, t = self._problem, unwrapped(state), unwrapped(action), unwrapped(next_state)
        if problem.is_terminal(s) or not problem.reward_model.uses_observation:
            return problem.step_reward(s, a, t)
        seen = problem.observation_distribution(t, a, s)
        return total(p * problem.step_reward(s, a, t, o) for o, p in seen.items() if p != 0)


class HistoryPolicy(pomdp_py.RolloutPolicy):
    """Legal actions by history, and a uniformly random rollout, for pomdp-py's planners.

    Where legal actions differ, the exact belief after the history decides; during a rollout, which has no search node,
    the state drawn does. After the end one action is left, so that no action set is empty.

    Args:
        problem: Whose actions.
        belief: The belief at the start of the history.
        history: What had happened before that belief, ``((action, observation), ...)``.
        observation: The last observation made, for problems whose legal actions depend on it.
    """

    def __init__(
        self, problem: POMDP, belief: Belief, history: tuple[Any, ...] = (), observation: Hashable = None
    ) -> None:
        self._problem = problem
        self._beliefs: dict[tuple[Any, ...], Belief] = {history: belief}
        self._first_observation = observation
        self._everywhere = tuple(map(bridged_action, problem.legal_everywhere or ()))
        first = (problem.actions(belief, observation) or problem.all_actions)[0]
        self._wait = (bridged_action(first),)
        self._in_state: dict[tuple[Any, Any], tuple[Any, ...]] = {}

    def get_all_actions(self, state: Any = None, history: tuple[Any, ...] | None = None) -> list[Any]:
        """Return the actions legal after the history; without one, in the state; without either, all actions."""
        if history is not None:
            return list(self._legal_after(history))
        return (
            [bridged_action(a) for a in self._problem.all_actions] if state is None else list(self._legal_in(state, ()))
        )

    def _legal_after(self, history: tuple[Any, ...]) -> tuple[Any, ...]:
        if history and history[-1][1] == OVER:
            return self._wait
        if self._everywhere:
            return self._everywhere
        belief = self._belief_after(history)
        if self._problem.is_over(belief):
            return self._wait
        return self._bridged(belief, self._last_observation(history))

    def rollout(self, state: Any, history: tuple[Any, ...]) -> Any:
        """Return a legal action drawn with Python's global ``random``."""
        return random.choice(self._legal_in(state, history))

    def sample(self, state: Any) -> Any:
        """Return a legal action of the state, drawn with Python's global ``random``."""
        return random.choice(self._legal_in(state, ()))

    def _legal_in(self, state: Any, history: tuple[Any, ...]) -> tuple[Any, ...]:
        s = unwrapped(state)
        if self._problem.is_terminal(s):
            return self._wait
        if self._everywhere:
            return self._everywhere
        if self._problem.legal_by == "belief":
            return self._legal_after(history)
        key = (s, self._last_observation(history))
        if key not in self._in_state:
            self._in_state[key] = self._bridged(Belief.certain(s), key[1])
        return self._in_state[key]

    def _bridged(self, belief: Belief, observation: Hashable) -> tuple[Any, ...]:
        return tuple(map(bridged_action, self._problem.actions(belief, observation)))

    def _last_observation(self, history: tuple[Any, ...]) -> Any:
        return unwrapped(history[-1][1]) if history else self._first_observation

    def _belief_after(self, history: tuple[Any, ...]) -> Belief:
        """Return the exact belief, by Bayes' rule from the longest history that was met before."""
        known = len(history)
        while known and history[:known] not in self._beliefs:
            known -= 1
        belief = self._beliefs.get(history[:known])
        if belief is None:
            raise ModelError(f"history: it does not begin where this agent began ({brief(history[:1])})")
        for i in range(known, len(history)):
            action, observation = history[i]
            belief = _posterior(self._problem, belief, unwrapped(action), unwrapped(observation))
            self._beliefs[history[: i + 1]] = belief
        return belief


def _posterior(problem: POMDP, belief: Belief, action: Any, observation: Any) -> Belief:
    """Return the belief after the action and the observation; one that is over stays as it is."""
    if problem.is_over(belief):
        return belief
    mass = problem.joint(belief, action).get(observation)
    if not mass:
        raise ImpossibleObservationError(
            f"update: observation {brief(observation)} has probability 0 after {brief(action)} under a belief over "
            f"{len(belief)} states (the first: {brief(belief.support[0])}); is it the model that made it?"
        )
    return Belief.normalized(mass)


class ProblemAgent(pomdp_py.Agent):
    """A ``pomdp_py.Agent`` for a problem; build one with `to_agent`.

    Attributes:
        problem: The problem it was built from.
    """

    def __init__(self, problem: POMDP, belief: Belief, *, name: str | None = None) -> None:
        if problem.observation.uses_state:
            raise ModelError(
                "to_agent: the observation depends on the state that was left, which pomdp-py's observation models do "
                "not see; put what it depends on into the state"
            )
        super().__init__(
            Belief({bridged_state(s): p for s, p in belief.items()}, tolerance=max(problem.tolerance, MASS_TOLERANCE)),
            HistoryPolicy(problem, belief),
            transition_model=_AgentTransition(problem),
            observation_model=_AgentObservation(problem),
            reward_model=_AgentReward(problem),
            name=name,
        )
        self.problem = problem

    def update(self, real_action: Any, real_observation: Any) -> None:
        """Append to the history and updates the belief by Bayes' rule.

        Raises:
            ImpossibleObservationError: The observation has probability 0.
        """
        belief = Belief(
            {unwrapped(s): p for s, p in self.belief.items()}, tolerance=max(self.problem.tolerance, MASS_TOLERANCE)
        )
        posterior = _posterior(self.problem, belief, unwrapped(real_action), unwrapped(real_observation))
        self.set_belief(Belief({bridged_state(s): p for s, p in posterior.items()}))
        self.update_history(bridged_action(real_action), bridged_observation(real_observation))


def to_agent(problem: POMDP, belief: Belief | None = None, *, name: str | None = None) -> ProblemAgent:
    """Return a ``pomdp_py.Agent`` that believes and models what the problem says.

    Its ``update(action, observation)`` is exact. Rewards that depend on the observation are given by their mean over
    it. pomdp-py's planners draw from Python's global ``random``: run them inside `seeded_random`.

    Args:
        problem: The problem.
        belief: Where the agent starts; the problem's initial belief by default.
        name: A name for pomdp-py.

    Raises:
        ModelError: The observation depends on the state left, which pomdp-py cannot express.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> agent = to_agent(tiger())
        >>> agent.update("listen", "hear-left")
        >>> agent.belief["tiger-left"], agent.history
        (0.85, (('listen', 'hear-left'),))
    """
    return ProblemAgent(problem, problem.initial_belief if belief is None else belief, name=name)


# --- a problem as an environment ---------------------------------------------------------------------------------


class ProblemEnvironment(pomdp_py.Environment):
    """A ``pomdp_py.Environment`` for a problem; build one with `to_environment`.

    It draws from its own generator, and its rewards are the problem's own numbers: pomdp-py's environment would pass
    them through a 32-bit float.
    """

    def __init__(self, problem: POMDP, state: Any, rng: np.random.Generator) -> None:
        super().__init__(bridged_state(state), _AgentTransition(problem), _AgentReward(problem))
        self.problem = problem
        self._rng = rng

    @property
    def is_over(self) -> bool:
        """Whether the state is terminal."""
        return self.problem.is_terminal(unwrapped(self.state))

    def state_transition(self, action: Any, execute: bool = True, discount_factor: float = 1.0) -> Any:
        """Return the reward of the action, which changes the state; ``(next_state, reward)`` without changing it.

        A reward that depends on the observation is given by its mean; `execute` gives the one that was earned.
        """
        next_state = bridged_state(self._draw(self.problem.successors(unwrapped(self.state), unwrapped(action))))
        reward = self.reward_model.sample(self.state, action, next_state)
        if not execute:
            return next_state, reward
        self.apply_transition(next_state)
        return reward

    def execute(self, action: Any, observation_model: Any = None) -> tuple[Any, Number]:
        """``(observation, reward)`` of the action, which changes the state.

        The observation is drawn from the problem, or from the model if one is given.
        """
        problem, s, a = self.problem, unwrapped(self.state), unwrapped(action)
        t = self._draw(problem.successors(s, a))
        self.apply_transition(bridged_state(t))
        if observation_model is not None:
            observation = observation_model.sample(self.state, bridged_action(action))
        else:
            observation = bridged_observation(self._draw(observations_of(problem, s, a, t)))
        return observation, problem.step_reward(s, a, t, unwrapped(observation))

    def _draw(self, distribution: Mapping[Any, Number]) -> Any:
        return draw(distribution, self._rng.random())


def to_environment(
    problem: POMDP, state: Any = None, *, seed: int | np.random.SeedSequence | np.random.Generator | None = None
) -> ProblemEnvironment:
    """Return a ``pomdp_py.Environment`` that behaves as the problem says.

    Args:
        problem: The problem.
        state: The true state; drawn from the initial belief when left out.
        seed: Where the draws start, or the generator to draw from.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> environment = to_environment(tiger(), "tiger-left", seed=0)
        >>> environment.execute("listen")
        ('hear-left', -1)
    """
    rng = np.random.default_rng(seed)
    if state is None:
        state = problem.initial_belief.sample(rng)
    return ProblemEnvironment(problem, unwrapped(state), rng)


# --- an agent as a problem ---------------------------------------------------------------------------------------


def problem_from_agent(
    agent: pomdp_py.Agent,
    *,
    discount: Number | None = None,
    terminal: Iterable[Any] | Callable[[Any], bool] | None = None,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    observations: Sequence[Any] | None = None,
) -> POMDP:
    """Return the problem that an agent with finite spaces plans for, from its current belief on.

    States, actions and observations stay the agent's own objects. Models of this package are taken as they are; others
    are asked for the ``probability`` of every member of the space, and for the reward's ``sample``, which must not be
    random. Legal actions are those of the agent's policy model, by state.

    Args:
        agent: The agent.
        discount: gamma; agents have none, so that 1 is taken if left out (an agent of `to_agent` knows its problem's).
        terminal: The terminal states, or a function of the state; pomdp-py has none.
        states, actions, observations: The spaces, where the agent's models do not list them.

    Raises:
        ModelError: A space is neither listed nor given, or a model is missing.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> problem_from_agent(to_agent(tiger())).successors("tiger-left", "listen")
        {'tiger-left': 1}
    """
    if not isinstance(agent, pomdp_py.Agent):
        raise ModelError(f"agent: {brief(agent)} is no pomdp_py.Agent; a POMDP is planned for with decide(problem)")
    source = agent.problem if isinstance(agent, ProblemAgent) else None
    if source is not None:
        discount = source.discount if discount is None else discount
        if terminal is None:
            terminal = lambda state: source.is_terminal(unwrapped(state))  # noqa: E731
    models = {
        "transition": agent.transition_model,
        "observation": agent.observation_model,
        "reward": agent.reward_model,
    }
    for name, model in models.items():
        if model is None:
            raise ModelError(f"agent: it has no {name} model; a generative model alone cannot be read exactly")
    transition, observation = models["transition"], models["observation"]
    if not isinstance(transition, TransitionModel):
        states = _listed("states", states, lambda: agent.all_states)
        transition = _ListedTransition(transition, states)
    if not isinstance(observation, ObservationModel):
        observations = _listed("observations", observations, lambda: agent.all_observations)
        observation = _ListedObservation(observation, observations)
    actions = _listed("actions", actions, lambda: agent.all_actions)
    return POMDP(
        transition=transition,
        observation=observation,
        reward=models["reward"] if isinstance(models["reward"], RewardModel) else models["reward"].sample,
        initial_belief=_belief_of(agent),
        discount=1 if discount is None else discount,
        terminal=terminal if terminal is None or callable(terminal) else tuple(terminal),
        states=states,
        actions=actions,
        observations=observations,
        **_legality(agent, source, actions),
    )


class _ListedTransition(TransitionModel):
    """A model that knows single probabilities, over a list of states."""

    def __init__(self, model: pomdp_py.TransitionModel, states: Sequence[Any]) -> None:
        self._model = model
        self._states = states

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return _positive((s, self._model.probability(s, state, action)) for s in self._states)


class _ListedObservation(ObservationModel):
    """A model that knows single probabilities, over a list of observations."""

    uses_state = False

    def __init__(self, model: pomdp_py.ObservationModel, observations: Sequence[Any]) -> None:
        self._model = model
        self._observations = observations

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return _positive((o, self._model.probability(o, next_state, action)) for o in self._observations)


def _positive(pairs: Iterable[tuple[Any, Number]]) -> dict[Any, Number]:
    return {key: p for key, p in pairs if p != 0}


def _listed(what: str, given: Sequence[Any] | None, ask: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
    """Return the members of a space, sets in a fixed order."""
    if given is not None:
        return tuple(given)
    try:
        members = ask()
    except (NotImplementedError, AttributeError) as error:
        raise ModelError(f"{what}: the agent's models do not list them; pass {what}=[...]") from error
    return tuple(sorted(members, key=repr)) if isinstance(members, AbstractSet) else tuple(members)


def _belief_of(agent: pomdp_py.Agent) -> Belief:
    belief = agent.belief
    if isinstance(belief, Belief):
        return belief
    try:
        return Belief(belief.get_histogram())
    except (NotImplementedError, AttributeError) as error:
        raise ModelError(f"agent: its belief {brief(belief)} is not over finitely many states") from error


def _legality(agent: pomdp_py.Agent, source: POMDP | None, actions: Sequence[Any]) -> dict[str, Any]:
    """Return the arguments that say which actions are legal where."""
    if source is not None:
        if source.legal_everywhere is not None:
            return {"legal_actions": actions}
        return {"legal_actions": _bridged_rule(source), "legal_by": source.legal_by}
    parameters = inspect.signature(agent.policy_model.get_all_actions).parameters
    if "state" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {"legal_actions": actions}

    def legal(state: Any) -> list[Any]:
        allowed = set(agent.policy_model.get_all_actions(state=state))
        return [action for action in actions if action in allowed]

    return {"legal_actions": legal}


def _bridged_rule(source: POMDP) -> Callable[[Any], tuple[Any, ...]]:
    """Return a problem's rule for legal actions, for the bridged values."""
    alive = Belief.certain(next(s for s in source.states if not source.is_terminal(s)))

    def legal(given: Any) -> tuple[Any, ...]:
        if source.legal_by == "observation":
            return tuple(map(bridged_action, source.actions(alive, unwrapped(given))))
        if source.legal_by == "belief":
            return tuple(map(bridged_action, source.actions(Belief({unwrapped(s): p for s, p in given.items()}))))
        return tuple(map(bridged_action, source.actions(Belief.certain(unwrapped(given)))))

    return legal
