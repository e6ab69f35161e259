"""A `POMDP` as a ``pomdp_py.Agent`` and a ``pomdp_py.Environment``; `from_agent` goes the other way.

pomdp-py wants states, actions and observations of its own classes. Values that are not are put into a `BridgedState`,
`BridgedAction` or `BridgedObservation`, which equal the value they hold, print like it, and give it back as ``value``.

pomdp-py has no terminal states and no problem-wide legal actions. Here a terminal state is absorbing and earns 0, and
leaves one action to take; the legal actions of a search node depend on the history alone, never on the state that
happened to be drawn there first.
"""

import random
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pomdp_py

from pomdp_hier._arguments import generator
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.core import Given, bayes_posterior
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, draw, mean
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import (
    OVER,
    bridged_action,
    bridged_observation,
    bridged_state,
    unwrapped,
)

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
        rewards = [(p, problem.step_reward(s, a, t, o)) for o, p in seen.items() if p != 0]
        return mean(rewards, lambda: f"reward of {brief(a)} in {brief(s)}")


class HistoryPolicy(pomdp_py.RolloutPolicy):
    """Legal actions by history, and a uniformly random rollout, for pomdp-py's planners.

    Where legal actions differ, the exact belief after the history decides; during a rollout, which has no search node,
    the state drawn does. After the end one action is left, so that no action set is empty.

    Args:
        problem: Whose actions.
        belief: The belief at the start of the history, a `Belief` or a dict.
        history: What had happened before that belief, ``((action, observation), ...)``.
        observation: The last observation made, for problems whose legal actions depend on it.
    """

    def __init__(
        self, problem: POMDP, belief: Given, history: tuple[Any, ...] = (), observation: Hashable = None
    ) -> None:
        self._problem = problem
        self._beliefs = {history: problem.as_belief(belief)}
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
            raise ModelError(
                f"history: got {brief(history[:1])} as its beginning; expected one from where this agent began."
            )
        for i in range(known, len(history)):
            action, observation = history[i]
            belief = _posterior(self._problem, belief, unwrapped(action), unwrapped(observation))
            self._beliefs[history[: i + 1]] = belief
        return belief


def _posterior(problem: POMDP, belief: Belief, action: Any, observation: Any) -> Belief:
    """Return the belief after the action and the observation; one that is over stays as it is."""
    if problem.is_over(belief):
        return belief
    return bayes_posterior(problem, belief, action, observation)


class ProblemAgent(pomdp_py.Agent):
    """A ``pomdp_py.Agent`` for a problem; build one with `to_agent`.

    Attributes:
        problem: The problem it was built from.
    """

    def __init__(self, problem: POMDP, belief: Given, *, name: str | None = None) -> None:
        belief = problem.as_belief(belief)
        if problem.observation.uses_state:
            raise ModelError(
                "to_agent: got observations that depend on the state that was left; expected (next_state, action), as "
                "pomdp-py has it. Put what they depend on into the next state."
            )
        super().__init__(
            Belief({bridged_state(s): p for s, p in belief.items()}, tolerance=problem.belief_tolerance),
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
        belief = Belief({unwrapped(s): p for s, p in self.belief.items()}, tolerance=self.problem.belief_tolerance)
        posterior = _posterior(self.problem, belief, unwrapped(real_action), unwrapped(real_observation))
        self.set_belief(Belief({bridged_state(s): p for s, p in posterior.items()}))
        self.update_history(bridged_action(real_action), bridged_observation(real_observation))


def to_agent(problem: POMDP, belief: Given | None = None, *, name: str | None = None) -> ProblemAgent:
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
    rng = generator("seed", seed)
    if state is None:
        state = problem.initial_belief.sample(rng)
    return ProblemEnvironment(problem, unwrapped(state), rng)
