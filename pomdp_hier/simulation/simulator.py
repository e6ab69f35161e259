"""The simulator: one episode after another of a policy in an environment, each on its own random numbers."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import ImpossibleObservationError
from pomdp_hier.planning.decision import Policy
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.simulation.decision_cache import REMEMBERED, Decider
from pomdp_hier.simulation.episodes import Episode, Step, draws
from pomdp_hier.simulation.exact import conflict
from pomdp_hier.simulation.truncation import Truncation


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


class Simulator:
    """Runs episodes; remembers rows of the models and, for a policy that draws nothing, decisions and beliefs."""

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
        self._remembers = not draws(updater)  # an updater that draws updates each time anew
        self._start = _Row(environment.initial_belief.get_histogram())
        self._successors: dict[Any, _Row] = {}
        self._observations: dict[Any, _Row] = {}
        self._beliefs: dict[Any, Belief] = {}

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> Episode:
        """One run, without its steps unless they are kept."""
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
                return Episode(tuple(steps), math.fsum(terms), True)
            if self.length.is_reached(len(terms)):
                return Episode(tuple(steps), math.fsum(terms), False)
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
