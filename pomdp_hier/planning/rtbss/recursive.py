"""RTBSS as in textbooks: a recursion over beliefs, for any number type and any updater.

It is the reference for the search on arrays (`arrays`).
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from pomdp_hier.beliefs.updaters import CompleteUpdater
from pomdp_hier.planning.decision import TERMINAL_VALUE, largest
from pomdp_hier.planning.leaf_values import LeafFunction
from pomdp_hier.planning.rtbss.pruning import Pruning
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, total


class BudgetExhausted(Exception):  # noqa: N818  # a signal between a search and its root, never shown to users
    """The search has expanded as many nodes as it may."""


@dataclass
class PlainSearch:
    """A depth-limited search from one belief; `value` is the recursion, the counters say what it did.

    Attributes:
        problem: The problem.
        updater: Gives the posteriors of an action, with the probabilities of their observations.
        leaf: The leaf values.
        pruning: What orders and prunes.
        merge_tolerance: Beliefs that agree to this are expanded once; 0 means equal, ``None`` never.
        budget: How many nodes may be expanded.
        nodes, pruned, reused: Beliefs expanded, actions left out, beliefs whose value was known.
    """

    problem: POMDP
    updater: CompleteUpdater
    leaf: LeafFunction
    pruning: Pruning
    merge_tolerance: float | None = 0.0
    budget: int | None = None
    nodes: int = 0
    pruned: int = 0
    reused: int = 0
    _known: dict[Hashable, Number] = field(default_factory=dict, repr=False)

    def value(self, belief: Belief, observation: Hashable, depth: int) -> Number:
        """``V_depth(b) = max_a Q_depth(b, a)``; the leaf value at depth 0; 0 for a terminal belief."""
        if self.problem.is_over(belief):
            return TERMINAL_VALUE
        if depth == 0:
            return self.leaf(self.problem, belief, observation)
        key = self._key(belief, observation, depth)
        if key in self._known:
            self.reused += 1
            return self._known[key]
        self.count_node()
        best: Number | None = None
        ranked = self.pruning.ranked(belief, self.problem.actions(belief, observation), depth)
        for i, (action, upper) in enumerate(ranked):
            if self.pruning.skips(upper, best):
                self.pruned += len(ranked) - i  # the bounds fall from here on
                break
            q = self.q_value(belief, action, depth)
            self.pruning.check(q, upper, action, depth)
            best = q if best is None else largest([best, q])
        if key is not None:
            self._known[key] = best
        return best

    def q_value(self, belief: Belief, action: Any, depth: int) -> Number:
        """``Q_depth(b, a) = R(b, a) + gamma sum_o Pr(o | b, a) V_{depth-1}(tau(b, a, o))``."""
        ahead = total(
            evidence * self.value(posterior, observation, depth - 1)
            for observation, evidence, posterior in self.updater.branches(belief, action)
        )
        return self.problem.reward(belief, action) + self.problem.discount * ahead

    def count_node(self) -> None:
        """Count one expansion against the budget."""
        if self.budget is not None and self.nodes >= self.budget:
            raise BudgetExhausted
        self.nodes += 1

    def _key(self, belief: Belief, observation: Hashable, depth: int) -> Hashable:
        """Return what beliefs that are expanded once share: support, legal actions, and nearly their probabilities."""
        if self.merge_tolerance is None:
            return None
        seen = observation if self.problem.legal_by == "observation" else None
        if self.merge_tolerance == 0:
            return belief, seen, depth
        if self.problem.legal_by == "belief":
            seen = self.problem.actions(belief, observation)
        width = self.merge_tolerance  # exact numbers are compared exactly
        cells = frozenset((state, round(p / width) if isinstance(p, float) else p) for state, p in belief.items())
        return cells, seen, depth
