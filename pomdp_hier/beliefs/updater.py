"""BeliefUpdater: what every updater is asked, and how a plain function becomes one."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from pomdp_hier.errors import ImpossibleObservationError, ParameterError
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.models import check_function
from pomdp_hier.pomdp.numeric import Number, brief, total

__all__ = ["BeliefUpdater", "FullUpdater", "FunctionUpdater", "as_updater", "impossible"]


@runtime_checkable
class BeliefUpdater(Protocol):
    """Anything that turns a belief, an action and an observation into the next belief.

    The two methods here are all that one has to write; `as_updater` adds the others.

    Example:
        >>> class Deaf:
        ...     def update(self, belief, action, observation):
        ...         return belief
        ...     def evidence(self, belief, action, observation):
        ...         return 0.5
        >>> isinstance(Deaf(), BeliefUpdater), isinstance(Deaf(), FullUpdater)
        (True, False)
    """

    def update(self, belief: Belief, action: Any, observation: Any) -> Belief:
        """Return posterior ``b'(s') = p(s' | b, a, o)``; an `ImpossibleObservationError` where ``Pr(o | b, a) = 0``."""
        ...

    def evidence(self, belief: Belief, action: Any, observation: Any) -> Number:
        """Return the normaliser ``Pr(o | b, a)``."""
        ...


@runtime_checkable
class FullUpdater(BeliefUpdater, Protocol):
    """A `BeliefUpdater` that also predicts, and gives all branches of an action in one pass, as planners want them.

    Example:
        >>> from pomdp_hier.beliefs import BayesUpdater
        >>> from pomdp_hier.problems import tiger
        >>> isinstance(BayesUpdater(tiger()), FullUpdater)
        True
    """

    def predict(self, belief: Belief, action: Any) -> Belief:
        """Return the belief after the action and before the observation."""
        ...

    def branches(self, belief: Belief, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Each observation that can follow, with its probability and the posterior."""
        ...


class FunctionUpdater:
    """An updater that asks a plain function ``(belief, action, observation) -> Belief | mapping``.

    Args:
        function: Gives the posterior; a mapping from state to probability will do.
        problem: Which observations can follow, and the prediction, are read from its models.
        evidence: A function of the same arguments that gives ``Pr(o | b, a)``; by Bayes' rule when left out.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> stubborn = FunctionUpdater(lambda b, a, o: b, tiger())
        >>> stubborn.update(tiger().initial_belief, "listen", "hear-left") == tiger().initial_belief
        True
    """

    def __init__(
        self,
        function: Callable[[Belief, Any, Any], Belief | Mapping[Any, Number]],
        problem: POMDP,
        *,
        evidence: Callable[[Belief, Any, Any], Number] | None = None,
    ) -> None:
        self.problem = problem
        self._function = function
        self._evidence = evidence

    def update(self, belief: Belief, action: Any, observation: Any) -> Belief:
        """Return the function's answer, as a `Belief`.

        Raises:
            ModelError: The answer is no distribution.
        """
        answer = self._function(belief, action, observation)
        return answer if isinstance(answer, Belief) else Belief(answer)

    def evidence(self, belief: Belief, action: Any, observation: Any) -> Number:
        """``Pr(o | b, a)``."""
        if self._evidence is not None:
            return self._evidence(belief, action, observation)
        return total(self.problem.joint(belief, action).get(observation, {}).values())

    def predict(self, belief: Belief, action: Any) -> Belief:
        """Return the belief after the action and before the observation."""
        return self.problem.predict(belief, action)

    def branches(self, belief: Belief, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Each observation that can follow, with its probability and the function's posterior."""
        for observation, mass in self.problem.joint(belief, action).items():
            evidence = total(mass.values())
            if self._evidence is not None:
                evidence = self._evidence(belief, action, observation)
            if evidence != 0:
                yield observation, evidence, self.update(belief, action, observation)


def as_updater(updater: Any, problem: POMDP) -> FullUpdater:
    """Return updater with all four methods that an updater, an object with two of them, or a plain function stands for.

    Raises:
        ParameterError: It is none of these.
        ModelError: The function cannot be called with belief, action and observation.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> as_updater(lambda b, a, o: b, tiger()).evidence(tiger().initial_belief, "listen", "hear-left")
        0.5
    """
    if isinstance(updater, type):
        raise ParameterError(f"updater: {updater.__name__} is a class; pass an instance, {updater.__name__}(problem)")
    if isinstance(updater, FullUpdater):
        return updater
    if isinstance(updater, BeliefUpdater):
        return FunctionUpdater(updater.update, problem, evidence=updater.evidence)
    if callable(updater):
        check_function("updater", updater, "belief", "action", "observation", least=3)
        return FunctionUpdater(updater, problem)
    raise ParameterError(
        f"updater: {brief(updater)} has no update(belief, action, observation) and evidence(...), and is no function"
    )


def impossible(belief: Belief, action: Any, observation: Any, why: str = "") -> ImpossibleObservationError:
    """Return the error for an observation of probability 0, with belief, action and observation in brief."""
    likely = belief.argmax()
    return ImpossibleObservationError(
        f"observation {brief(observation)} has probability 0 after action {brief(action)} under a belief over "
        f"{len(belief)} states (most probable: {brief(likely)}, {belief[likely]}); "
        + (why or "the observation or the model is wrong")
    )
