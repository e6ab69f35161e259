"""How a simulation asks its policy: each episode's own stream, the time of the step, equal beliefs decided once."""

import time
from collections.abc import Hashable
from typing import Any

import numpy as np

from pomdp_hier.planning.decision import Decision, Policy
from pomdp_hier.planning.policies import decided
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.problem import POMDP

# How many decisions of a policy that draws nothing are remembered, so that 10^6 episodes do not plan 10^6 times.
REMEMBERED = 100_000


class Decider:
    """Asks one policy for the decisions of many episodes.

    Attributes:
        seconds: The time that its ``decide`` took, in all.
        n_decisions: How often it was really asked.
    """

    def __init__(self, policy: Policy, problem: POMDP) -> None:
        self.policy = policy
        self.problem = problem
        self.seconds = 0.0
        self.n_decisions = 0
        self._draws = hasattr(policy, "seeded")
        self._timed = hasattr(policy, "at_step")
        self._remembers = hasattr(policy, "remember")
        self._memory: Any = None
        self._present: Any = policy
        self._known: dict[Any, Decision] = {}

    def begin(self, seed: np.random.SeedSequence) -> None:
        """Begin an episode: a policy that draws gets random numbers of its own, one with memory begins anew."""
        self._memory = None
        self._present = self.policy.seeded(seed) if self._draws else self.policy  # type: ignore[attr-defined]

    def decide(self, belief: Belief, observation: Hashable, step: int) -> Decision:
        """Return the decision; equal beliefs, times and memories are decided once, unless the policy draws."""
        if self._remembers and step > 0:
            self._memory = self._present.remember(self._memory, observation)
        key = (belief, observation, step if self._timed else None, self._memory)
        decision = None if self._draws else self._known.get(key)
        if decision is None:
            policy = self._present.at_step(step) if self._timed else self._present
            policy = policy.with_memory(self._memory) if self._remembers else policy
            began = time.perf_counter()
            decision = decided(policy, self.problem, belief, observation)
            self.seconds += time.perf_counter() - began
            self.n_decisions += 1
            if not self._draws and len(self._known) < REMEMBERED:
                self._known[key] = decision
        return decision

    @property
    def seconds_per_decision(self) -> float:
        """The mean time of one call."""
        return self.seconds / max(self.n_decisions, 1)
