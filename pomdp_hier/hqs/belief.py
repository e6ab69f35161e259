"""ClosedFormUpdater: the belief update of the hierarchy search in closed form, ``b' = eta(c, c') * b``."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError
from pomdp_hier.hqs.model import END, AgentTransition, Descend, Found, Node, NotFound, Search, SearchState
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.bayes_rule import impossible
from pomdp_hier.pomdp.belief import as_belief
from pomdp_hier.pomdp.numeric import Number


class ClosedFormUpdater:
    """The belief update that holds for the agent's model of the hierarchy search.

    It is::

        b'(<c',1>) = eta(c, c') b(<c,1>)        Pr(o = c' | b, descend) = eta(c, c')

    so that the belief at a node is the product of the guidance along the path. It is what `BayesUpdater` gives as well,
    without a sum. Where eta is exactly 0 the observation is impossible; this updater still answers, with belief 0.

    Args:
        problem: The agent's problem, from `search_problem` and its like.

    Raises:
        ModelError: The problem is another.

    Example:
        >>> from fractions import Fraction
        >>> from pomdp_hier.hqs.model import three_node
        >>> problem = three_node(Fraction(3, 4))
        >>> ClosedFormUpdater(problem).update(problem.initial_belief, Descend(), Node("c1"))[SearchState("c1", 1)]
        Fraction(3, 4)

    References:
        Huang, Piao, Moreno and Hurley, section 3, belief update.
    """

    def __init__(self, problem: POMDP) -> None:
        if not isinstance(problem.transition, AgentTransition):
            raise ModelError(
                f"problem: got {brief(problem)}; expected "
                "the agent's model of a hierarchy search. Make one by search_problem()."
            )
        self.problem = problem
        self.eta: Mapping[Any, Mapping[Any, Number]] = problem.transition.eta

    def update(self, belief: Belief, action: Any, observation: Any) -> Belief:
        """Return the posterior after the action and the observation.

        Raises:
            ImpossibleObservationError: The node seen is no child, or what the search tells contradicts the belief.
        """
        node, b = self._place(belief, action)
        if action == Descend():
            children = self.eta.get(node, {})
            if not (isinstance(observation, Node) and observation.node in children):
                seen = f"what can be observed is {listed([Node(child) for child in children])}" if children else ""
                raise impossible(as_belief(belief), action, observation, seen)
            return _at(observation.node, children[observation.node] * b)
        if self.evidence(belief, action, observation) == 0:
            raise impossible(as_belief(belief), action, observation)
        return Belief.certain(SearchState(END, int(observation == Found())))

    def evidence(self, belief: Belief, action: Any, observation: Any) -> Number:
        """``eta(c, c')`` after descending; b or 1 - b after a search."""
        node, b = self._place(belief, action)
        if action == Descend():
            return self.eta.get(node, {}).get(observation.node, 0) if isinstance(observation, Node) else 0
        return {Found(): b, NotFound(): 1 - b}.get(observation, 0)

    def predict(self, belief: Belief, action: Any) -> Belief:
        """Return the belief after the action and before the observation."""
        node, b = self._place(belief, action)
        if action != Descend():
            return Belief({SearchState(END, 1): b, SearchState(END, 0): 1 - b})
        reached: dict[SearchState, Number] = {}
        for child, eta in self.eta[node].items():
            reached[SearchState(child, 1)] = eta * (eta * b)
            reached[SearchState(child, 0)] = eta * (1 - eta * b)
        return Belief(reached)

    def branches(self, belief: Belief, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Each observation that can follow, with its probability and the posterior."""
        node, b = self._place(belief, action)
        if action == Descend():
            for child, eta in self.eta.get(node, {}).items():
                if eta != 0:
                    yield Node(child), eta, _at(child, eta * b)
            return
        for observation, g, probability in ((Found(), 1, b), (NotFound(), 0, 1 - b)):
            if probability != 0:
                yield observation, probability, Belief.certain(SearchState(END, g))

    def _place(self, belief: Belief, action: Any) -> tuple[Hashable, Number]:
        """Return the node where the bot is, and ``b(<c,1>)``, if the action is one of a search."""
        if action not in (Search(), Descend()):
            raise ModelError(f"action: got {brief(action)}; expected Search() or Descend().")
        belief = as_belief(belief)
        node = belief.support[0].node
        if any(state.node != node for state in belief):
            raise ModelError(f"belief: got {brief(belief)}; expected states of one node, which the searcher observes.")
        return node, belief[SearchState(node, 1)]


def _at(node: Hashable, b: Number) -> Belief:
    return Belief({SearchState(node, 1): b, SearchState(node, 0): 1 - b})
