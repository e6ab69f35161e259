"""BayesUpdater: Bayes' rule on the models of any problem, in the problem's own numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from pomdp_hier.beliefs.updater import impossible
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.belief import as_belief
from pomdp_hier.pomdp.numeric import Number, brief, listed, total
from pomdp_hier.pomdp.problem import require_problem

__all__ = ["BayesUpdater"]


class BayesUpdater:
    """Exact belief updates by Bayes' rule.

    The rule is::

        b'(s') = sum_s b(s) T(s, a, s') Z(s', a, o) / Pr(o | b, a)

    It visits what the belief can reach and nothing else, so that the support grows where the models say so. Floats,
    fractions and sympy expressions stay what they are.

    Args:
        problem: Any `POMDP`; its spaces need not be finite or listed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> updater = BayesUpdater(tiger())
        >>> updater.update(tiger().initial_belief, "listen", "hear-left")["tiger-left"]
        0.85

    References:
        Kaelbling, Littman and Cassandra (1998), section 3.3.
    """

    def __init__(self, problem: POMDP) -> None:
        require_problem(problem, "BayesUpdater")
        self.problem = problem

    def predict(self, belief: Belief | Mapping[Any, Number], action: Any) -> Belief:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        self._check_action(action)
        return self.problem.predict(as_belief(belief), action)

    def evidence(self, belief: Belief | Mapping[Any, Number], action: Any, observation: Any) -> Number:
        """Return the normaliser ``Pr(o | b, a)``, 0 where the observation is impossible."""
        self._check_action(action)
        return total(self._mass(as_belief(belief), action, observation).values())

    def update(self, belief: Belief | Mapping[Any, Number], action: Any, observation: Any) -> Belief:
        """Return the posterior after the action and the observation.

        Raises:
            ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
            ModelError: The action is not one of the problem's, or the belief is none.
        """
        self._check_action(action)
        known = as_belief(belief)
        mass = self._mass(known, action, observation)
        if not mass or total(mass.values()) == 0:
            seen = self.problem.observations(known, action)
            raise impossible(
                known,
                action,
                observation,
                f"what can be observed is {listed(seen)}; the observation or the model is wrong",
            )
        return Belief.normalized(mass)

    def branches(self, belief: Belief, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Each observation that can follow, with its probability and the posterior, from one pass over the models.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> updater = BayesUpdater(tiger())
            >>> [(o, p) for o, p, _ in updater.branches(tiger().initial_belief, "listen")]
            [('hear-left', 0.5), ('hear-right', 0.5)]
        """
        for observation, mass in self.problem.joint(belief, action).items():
            evidence = total(mass.values())
            if evidence != 0:
                yield observation, evidence, Belief.normalized(mass)

    def _check_action(self, action: Any) -> None:
        """Refuses an action that the problem's list does not hold: a model with an ``else`` would answer for it."""
        known = self.problem.given_spaces[1]
        if known is not None and action not in known:
            raise ModelError(
                f"action: {brief(action)} is not one of the problem's {len(known)} actions, {listed(known)}"
            )

    def _mass(self, belief: Belief, action: Any, observation: Any) -> dict[Any, Number]:
        """``{s': p(s', o | b, a)}`` for the one observation."""
        mass: dict[Any, Number] = {}
        for state, next_state, flow in self.problem.flows(belief, action):
            likelihood = self.problem.observation_distribution(next_state, action, state).get(observation, 0)
            if likelihood != 0:
                mass[next_state] = mass.get(next_state, 0) + flow * likelihood
        return mass
