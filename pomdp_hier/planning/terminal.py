"""What the end of the process means to a planner: nothing more is earned, and there is nothing left to decide."""

from collections.abc import Hashable
from typing import Any

from pomdp_hier.errors import PlanningError
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import brief
from pomdp_hier.pomdp.problem import require_problem

__all__ = ["TERMINAL_VALUE", "legal_actions", "where_to_decide"]

# V(b) of a belief under which every state is terminal, whatever the fringe and the models say of it
TERMINAL_VALUE = 0


def where_to_decide(
    problem: POMDP, belief: Belief | None, observation: Hashable = None
) -> tuple[Belief, tuple[Any, ...]]:
    """Return the belief (the initial one for ``None``; a dict will do) and its legal actions, at least one.

    Raises:
        ModelError: The problem is no `POMDP`, or the belief is none.
        PlanningError: The process is over under the belief.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> where_to_decide(tiger(), {"tiger-left": 0.25, "tiger-right": 0.75})[1]
        ('listen', 'open-left', 'open-right')
    """
    require_problem(problem, "decide")
    belief = problem.initial_belief if belief is None else problem.as_belief(belief)
    return belief, legal_actions(problem, belief, observation)


def legal_actions(problem: POMDP, belief: Belief, observation: Hashable = None) -> tuple[Any, ...]:
    """Return the legal actions under the belief, of which there is at least one.

    Raises:
        PlanningError: The process is over under the belief.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait"])
        >>> legal_actions(stay, stay.initial_belief)
        ('wait',)
    """
    actions = problem.actions(belief, observation)
    if not actions:
        raise PlanningError(
            f"belief: got terminal states alone (the first: {brief(belief.support[0])}); expected one that is not "
            "terminal"
        )
    return actions
