"""BayesUpdater: Bayes' rule on the models of any problem, in the problem's own numbers."""

from collections.abc import Iterator
from typing import Any

from pomdp_hier.pomdp import POMDP, Belief, bayes_rule
from pomdp_hier.pomdp.core import Given
from pomdp_hier.pomdp.numeric import Number
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
        simplify: What simplifies evidence and posteriors that are expressions, and gives back numbers as they are;
            left as they come by default.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> updater = BayesUpdater(tiger())
        >>> updater.update(tiger().initial_belief, "listen", "hear-left")["tiger-left"]
        0.85

    References:
        Kaelbling, Littman and Cassandra (1998), section 3.3.
    """

    def __init__(self, problem: POMDP, *, simplify: bayes_rule.Simplify | None = None) -> None:
        require_problem(problem, "BayesUpdater")
        self.problem = problem
        self._simplify = simplify

    def predict(self, belief: Given, action: Any) -> Belief:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        return self.problem.predict(self.problem.as_belief(belief), action)

    def evidence(self, belief: Given, action: Any, observation: Any) -> Number:
        """Return the normaliser ``Pr(o | b, a)``, 0 where the observation is impossible."""
        mass = bayes_rule.mass(self.problem, self.problem.as_belief(belief), action, observation)
        return bayes_rule.evidence(mass, self._simplify)

    def evidences(self, belief: Given, action: Any) -> dict[Any, Number]:
        """``{o: Pr(o | b, a)}`` over the observations that can be made, from one pass over the models."""
        joint = self.problem.joint(self.problem.as_belief(belief), action)
        return {observation: bayes_rule.evidence(mass, self._simplify) for observation, mass in joint.items()}

    def update(self, belief: Given, action: Any, observation: Any) -> Belief:
        """Return the posterior after the action and the observation.

        Raises:
            ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
            ModelError: The action is not one of the problem's, or the belief is none.
        """
        return bayes_rule.posterior(self.problem, self.problem.as_belief(belief), action, observation, self._simplify)

    def branches(self, belief: Given, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Each observation that can follow, with its probability and the posterior, from one pass over the models.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> updater = BayesUpdater(tiger())
            >>> [(o, p) for o, p, _ in updater.branches(tiger().initial_belief, "listen")]
            [('hear-left', 0.5), ('hear-right', 0.5)]
        """
        return bayes_rule.branches(self.problem, self.problem.as_belief(belief), action, self._simplify)
