"""A `POMDP` as a ``pomdp_py.Agent`` and a ``pomdp_py.Environment``; `from_agent` is the inverse.

pomdp-py requires states, actions and observations of its own classes. Other values are wrapped in a `BridgedState`,
`BridgedAction` or `BridgedObservation`. A wrapper equals its value, prints like it, and has it as ``value``.

pomdp-py has no terminal states and no legal actions per problem. Here a terminal state is absorbing with reward 0, and
has one action. The legal actions of a search node depend on the history alone, not on the state sampled there first.
"""

import random
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pomdp_py

from pomdp_hier._arguments import generator
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.bayes import bayes_posterior
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.core import Given
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, mean, sampled_outcome
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import TERMINAL_OBSERVATION, bridged_action, bridged_observation, bridged_state, unwrapped

# --- a problem as an agent ---------------------------------------------------------------------------------------


class _AgentTransition(TransitionModel):
    def __init__(self, problem: POMDP) -> None:
        self._problem = problem

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        flow = self._problem.successors(unwrapped(state), unwrapped(action))
        return {bridged_state(s): p for s, p in flow.items() if p != 0}

    def get_all_states(self) -> list[Any]:
        return [bridged_state(s) for s in self._problem.states]


class _AgentObservation(ObservationModel):
    uses_state = False

    def __init__(self, problem: POMDP) -> None:
        self._problem = problem

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        seen = observations_of(self._problem, None, unwrapped(action), unwrapped(next_state))
        return {bridged_observation(o): p for o, p in seen.items() if p != 0}

    def get_all_observations(self) -> list[Any]:
        return [bridged_observation(o) for o in self._problem.all_observations]


def observations_of(problem: POMDP, state: Any, action: Any, next_state: Any) -> Mapping[Any, Number]:
    """Return ``{o: p(o | s, a, s')}``, and `TERMINAL_OBSERVATION` after a terminal state.

    Models may be undefined there. The previous state may be None where observations do not depend on it.
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
            return {TERMINAL_OBSERVATION: 1}
    return problem.observation_distribution(next_state, action, state)


class _AgentReward(RewardModel):
    uses_observation = False

    def __init__(self, problem: POMDP) -> None:
        problem.require_state_rewards("pomdp-py, whose rewards are those of states")
        self._problem = problem

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        """Return the mean over the observations, as pomdp-py's rewards do not depend on them."""
        problem, s, a, t = self._problem, unwrapped(state), unwrapped(action), unwrapped(next_state)
        if problem.is_terminal(s) or not problem.reward_model.uses_observation:
            return problem.step_reward(s, a, t)
        seen = problem.observation_distribution(t, a, s)
        rewards = [(p, problem.step_reward(s, a, t, o)) for o, p in seen.items() if p != 0]
        return mean(rewards, lambda: f"reward of {brief(a)} in {brief(s)}")


class HistoryPolicy(pomdp_py.RolloutPolicy):
    """Legal actions by history and a uniformly random rollout, for pomdp-py's planners.

    Where legal actions differ, they are those of the exact belief after the history. A rollout has no search node, so
    that they are those of its sampled state. A terminal belief has one action, so that no action set is empty.
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
        """Return the legal actions after the history, or in the state, or else all actions."""
        if history is not None:
            return list(self._legal_after(history))
        return (
            [bridged_action(a) for a in self._problem.all_actions] if state is None else list(self._legal_in(state, ()))
        )

    def _legal_after(self, history: tuple[Any, ...]) -> tuple[Any, ...]:
        if history and history[-1][1] == TERMINAL_OBSERVATION:
            return self._wait
        if self._everywhere:
            return self._everywhere
        belief = self._belief_after(history)
        if self._problem.is_terminal_belief(belief):
            return self._wait
        return self._bridged(belief, self._last_observation(history))

    def rollout(self, state: Any, history: tuple[Any, ...]) -> Any:
        """Return a legal action sampled with Python's global ``random``."""
        return random.choice(self._legal_in(state, history))

    def sample(self, state: Any) -> Any:
        """Return a legal action of the state, sampled with Python's global ``random``."""
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
        """Return the exact belief, by Bayes' rule from the longest known history."""
        known = len(history)
        while known and history[:known] not in self._beliefs:
            known -= 1
        belief = self._beliefs.get(history[:known])
        if belief is None:
            raise ModelError(
                f"history: got {brief(history[:1])} as its beginning; expected a history from the start of this agent."
            )
        for i in range(known, len(history)):
            action, observation = history[i]
            belief = _posterior(self._problem, belief, unwrapped(action), unwrapped(observation))
            self._beliefs[history[: i + 1]] = belief
        return belief


def _posterior(problem: POMDP, belief: Belief, action: Any, observation: Any) -> Belief:
    """Return the posterior; a terminal belief is unchanged."""
    if problem.is_terminal_belief(belief):
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
                "to_agent: got observations that depend on the previous state; expected (next_state, action), as in "
                "pomdp-py. Make the previous state a part of the next state."
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
        """Append to the history, and update the belief by Bayes' rule."""
        belief = Belief({unwrapped(s): p for s, p in self.belief.items()}, tolerance=self.problem.belief_tolerance)
        posterior = _posterior(self.problem, belief, unwrapped(real_action), unwrapped(real_observation))
        self.set_belief(Belief({bridged_state(s): p for s, p in posterior.items()}))
        self.update_history(bridged_action(real_action), bridged_observation(real_observation))


def to_agent(problem: POMDP, belief: Given | None = None, *, name: str | None = None) -> ProblemAgent:
    """Return a ``pomdp_py.Agent`` with the problem's models and belief.

    Its ``update(action, observation)`` is exact. Rewards are their means over the observations. The actions that a
    planner of pomdp-py returns have the problem's action as ``action.value``. Its planners sample from Python's global
    ``random``, which ``random.seed`` makes repeatable.

    Args:
        problem: The problem.
        belief: The agent's initial belief; the problem's by default.
        name: A name for pomdp-py.

    Raises:
        ModelError: The observation depends on the previous state, which pomdp-py cannot express.

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

    It samples from its own generator, and its rewards have the problem's number type. pomdp-py's environment would
    convert them to a 32-bit float.
    """

    def __init__(self, problem: POMDP, state: Any, rng: np.random.Generator) -> None:
        super().__init__(bridged_state(state), _AgentTransition(problem), _AgentReward(problem))
        self.problem = problem
        self._rng = rng

    @property
    def is_terminal(self) -> bool:
        """Return whether the state is terminal."""
        return self.problem.is_terminal(unwrapped(self.state))

    def state_transition(self, action: Any, execute: bool = True, discount_factor: float = 1.0) -> Any:
        """Return the reward of the action, which changes the state; ``(next_state, reward)`` without changing it.

        A reward that depends on the observation is its mean; `execute` returns the reward of the step.
        """
        next_state = bridged_state(self._sample(self.problem.successors(unwrapped(self.state), unwrapped(action))))
        reward = self.reward_model.sample(self.state, action, next_state)
        if not execute:
            return next_state, reward
        self.apply_transition(next_state)
        return reward

    def execute(self, action: Any, observation_model: Any = None) -> tuple[Any, Number]:
        """Return ``(observation, reward)`` of the action, which changes the state.

        The observation is sampled from the problem, or from the model if one is given.
        """
        problem, s, a = self.problem, unwrapped(self.state), unwrapped(action)
        t = self._sample(problem.successors(s, a))
        self.apply_transition(bridged_state(t))
        if observation_model is not None:
            observation = observation_model.sample(self.state, bridged_action(action))
        else:
            observation = bridged_observation(self._sample(observations_of(problem, s, a, t)))
        return observation, problem.step_reward(s, a, t, unwrapped(observation))

    def _sample(self, distribution: Mapping[Any, Number]) -> Any:
        return sampled_outcome(distribution, self._rng.random())


def to_environment(
    problem: POMDP, state: Any = None, *, seed: int | np.random.SeedSequence | np.random.Generator | None = None
) -> ProblemEnvironment:
    """Return a ``pomdp_py.Environment`` with the problem's models.

    Args:
        problem: The problem.
        state: The true state; sampled from the initial belief by default.
        seed: The seed, or a generator.

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
