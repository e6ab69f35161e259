"""`PointBased`: the solver as a planner, for decisions, for comparisons and for pomdp-py's loop."""

import weakref
from collections.abc import Hashable
from typing import Any

from pomdp_hier.planning.decision import Decision
from pomdp_hier.planning.point_based.solution import Solution, SolutionPolicy
from pomdp_hier.planning.point_based.solve import solve
from pomdp_hier.planning.pomdp_py_planners import AgentPlanner
from pomdp_hier.pomdp import POMDP, Belief


class PointBased(AgentPlanner):
    """A planner that solves a problem once, from its initial belief, and then decides by the solution.

    Args:
        problem: What `plan` plans for in pomdp-py's loop; by default the problem of the agent's models, whose discount
            is 1 unless the agent knows better.
        settings: The arguments of `solve`: ``precision``, ``time_limit``, ``horizon`` and the others.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> PointBased(precision=1e-1).decide(tiger()).action
        'listen'
    """

    def __init__(self, *, problem: POMDP | None = None, **settings: Any) -> None:
        self.problem = problem
        self.settings = settings
        self._solved: weakref.WeakKeyDictionary[POMDP, Solution] = weakref.WeakKeyDictionary()

    def solution(self, problem: POMDP) -> Solution:
        """Return the problem's solution, which is computed when it is first asked for."""
        if problem not in self._solved:
            self._solved[problem] = solve(problem, **self.settings)
        return self._solved[problem]

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the action of the best alpha vector, with the bounds of the belief's value.

        Raises:
            ModelError: The problem cannot be bounded, or the belief cannot be met from its start.
            PlanningError: The process is over under the belief.
        """
        return self.solution(problem).policy.decide(problem, belief, observation=observation)

    def at_step(self, step: int) -> "_AtStep":
        """Return the planner after so many actions of its horizon."""
        return _AtStep(self, step)

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the settings: what was solved stays behind when a planner goes to another process."""
        return _rebuilt, (self.problem, self.settings)

    def __repr__(self) -> str:
        return f"PointBased({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"


def _rebuilt(problem: POMDP | None, settings: dict[str, Any]) -> PointBased:
    return PointBased(problem=problem, **settings)


class _AtStep:
    """A planner with some actions of its horizon gone."""

    def __init__(self, planner: PointBased, step: int) -> None:
        self.planner, self.step = planner, step

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision with what is left of the horizon."""
        policy: SolutionPolicy = self.planner.solution(problem).policy
        return policy.at_step(self.step).decide(problem, belief, observation=observation)
