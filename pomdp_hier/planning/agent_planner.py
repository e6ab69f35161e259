"""Planners in pomdp-py's loop: from an agent to the problem, the belief and the observation that a decision is for."""

from collections.abc import Hashable
from typing import Any

import pomdp_py

from pomdp_hier.planning.decision import Decision
from pomdp_hier.pomdp import POMDP, Belief

__all__ = ["AgentPlanner"]


class AgentPlanner(pomdp_py.Planner):
    """A planner of pomdp-py's that decides by `decide`.

    Attributes:
        problem: What `plan` plans for; ``None`` for the problem of the agent's models, whose discount is 1 unless the
            agent knows better.
    """

    problem: POMDP | None = None
    _agent_problem: tuple[Any, POMDP] | None = None

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        raise NotImplementedError

    def plan(self, agent: "pomdp_py.Agent") -> Any:
        """Return the action for the agent's current belief, in pomdp-py's loop."""
        problem = self.problem
        if problem is None:
            if self._agent_problem is None or self._agent_problem[0] is not agent:
                self._agent_problem = (agent, POMDP.from_agent(agent))
            problem = self._agent_problem[1]
        belief = agent.belief
        if not isinstance(belief, Belief):
            belief = Belief({state: belief[state] for state in belief})
        observation = agent.history[-1][1] if agent.history else None
        return self.decide(problem, belief, observation=observation).action

    def update(self, agent: "pomdp_py.Agent", real_action: Any, real_observation: Any) -> None:
        """Nothing: no tree is kept between steps, and the belief is the agent's own to update."""
