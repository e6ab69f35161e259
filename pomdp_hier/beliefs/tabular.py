"""TabularUpdater: belief updates as matrix-vector products on a compiled problem."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import POMDP, Belief, TabularPOMDP
from pomdp_hier.pomdp.bayes_rule import impossible
from pomdp_hier.pomdp.known_names import require_action, require_observation
from pomdp_hier.pomdp.problem import require_problem

__all__ = ["TabularUpdater"]

B = TypeVar("B", Belief, Floats)


class TabularUpdater:
    """Bayes' rule in float64 on the arrays of a problem, for beliefs of either form: a `Belief`, or an array ``[S]``.

    An array is taken and given back in the order of ``problem.states``, without names being looked up: the fast way.
    Predictions use a dense transition matrix where that is faster than a sparse one: up to 100 states, from 15 % of
    entries that are not 0 up to 1,000 states, and from 50 % beyond (measured by ``benchmarks/belief_update.py``).

    Args:
        problem: A `POMDP`, which is compiled, or a `TabularPOMDP`.

    Raises:
        ModelError: The problem cannot be compiled.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> updater = TabularUpdater(tiger())
        >>> updater.update(np.array([0.5, 0.5]), "listen", "hear-left")
        array([0.85, 0.15])
    """

    def __init__(self, problem: POMDP | TabularPOMDP) -> None:
        if not isinstance(problem, TabularPOMDP):
            require_problem(problem, "TabularUpdater")
        self.compiled = problem if isinstance(problem, TabularPOMDP) else problem.compiled

    def predict(self, belief: B, action: Any) -> B:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        return self._like(belief, self.compiled.predict(self._vector(belief), self._action(action)))

    def evidence(self, belief: Belief | Floats, action: Any, observation: Any) -> float:
        """Return the normaliser ``Pr(o | b, a)``, 0 where the observation is impossible."""
        position = self._position(observation)
        if position is None:
            return 0.0
        return float(self.compiled.outcome(self._vector(belief), self._action(action), position).sum())

    def update(self, belief: B, action: Any, observation: Any) -> B:
        """Return the posterior after the action and the observation, in the form of the belief given.

        Raises:
            ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
        """
        position = self._position(observation)
        vector = self._vector(belief)
        mass = None if position is None else self.compiled.outcome(vector, self._action(action), position)
        evidence = 0.0 if mass is None else mass.sum()
        if mass is None or not evidence > 0:
            raise impossible(self.compiled.belief(vector), action, observation)
        return self._like(belief, mass / evidence)

    def branches(self, belief: B, action: Any) -> Iterator[tuple[Any, float, B]]:
        """Each observation that can follow, with its probability and the posterior, from one product."""
        names = self.compiled.observations
        for o, evidence, posterior in self.compiled.branches(self._vector(belief), self._action(action)):
            yield names[o], evidence, self._like(belief, posterior)

    def _action(self, action: Any) -> int:
        require_action(action, self.compiled.action_index)
        return self.compiled.action_index[action]

    def _position(self, observation: Any) -> int | None:
        require_observation(observation)
        return self.compiled.observation_index.get(observation)

    def _vector(self, belief: Belief | Floats) -> Floats:
        if not isinstance(belief, np.ndarray):
            return self.compiled.vector(belief)
        if belief.shape != (self.compiled.n_states,):
            raise ModelError(
                f"belief: got shape {belief.shape}; expected ({self.compiled.n_states},), one number per state."
            )
        return belief

    def _like(self, belief: B, vector: Floats) -> B:
        return self.compiled.belief(vector) if isinstance(belief, Belief | Mapping) else vector
