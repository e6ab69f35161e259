"""RTBSS as in textbooks: a recursion over beliefs, for any number type and any updater.

It is the reference for the search on arrays (`arrays`).
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier._text import brief
from pomdp_hier.beliefs.updaters import CompleteUpdater
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning.decision import TERMINAL_VALUE, largest
from pomdp_hier.planning.leaf_values import LeafFunction
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, is_number, total
from pomdp_hier.pomdp.problem import POMDP

# (belief, action, depth) -> an upper bound of Q_depth(belief, action)
Upper = Callable[[Belief, Any, int], Number]

_ROUNDING = 1e-11  # how far sums of products may be off, relative to the largest term


@dataclass(frozen=True, eq=False)
class Pruning:
    """How one search orders and prunes the actions of a problem.

    Attributes:
        upper: The upper bound; ``None`` to expand everything, in the problem's order.
        table: The bound as a table ``[d - 1, a, s]``, where it has a name.
        keep_ties: Whether an inner action whose bound equals the best value is expanded all the same.
        tie_tolerance: At the root, what may still tie with the best by this much is expanded.
        slack: What rounding may take off a bound that was computed in floats.
        check_slack: How far a value may lie above its bound before the bound is called wrong.
    """

    upper: Upper | None = None
    table: Floats | None = field(default=None, repr=False)
    keep_ties: bool = False
    tie_tolerance: float = 0.0
    slack: float = 0.0
    check_slack: float = 0.0

    @classmethod
    def by_table(
        cls,
        problem: POMDP,
        table: Floats,
        *,
        merge_tolerance: float,
        keep_ties: bool,
        tie_tolerance: float,
    ) -> "Pruning":
        """Return the pruning by a named bound, with the rounding of its floats allowed for."""
        depth, _, n_states = table.shape
        largest = float(np.abs(table[np.isfinite(table)]).max(initial=1.0))
        slack = _ROUNDING * largest
        merging = merge_tolerance * n_states * largest * depth  # a belief's stand-in may be worth so much more
        return cls(table_bound(problem, table), table, keep_ties, tie_tolerance, slack, slack + merging)

    def ranked(self, belief: Belief, actions: Iterable[Any], depth: int) -> list[tuple[Any, Number | None]]:
        """Return the actions with their upper bounds, the most promising first; in the problem's order without any."""
        if self.upper is None:
            return [(action, None) for action in actions]
        bounded = [(action, self.upper(belief, action, depth)) for action in actions]
        for action, bound in bounded:
            if not is_number(bound) or bound != bound:
                raise PlanningError(f"upper_bound: got {brief(bound)} for action {brief(action)}; expected a number")
        return sorted(bounded, key=lambda pair: pair[1], reverse=True)

    def skips(self, upper: Number | None, best: Number | None, *, at_root: bool = False) -> bool:
        """Whether an action of this upper bound can be left out: it cannot beat the best value, nor tie with it.

        At the root all ties are wanted, within the tolerance; below it only if the planner keeps them.
        """
        if upper is None or best is None:
            return False
        if at_root:
            return bool(best - upper > self.slack + self.tie_tolerance)
        return bool(best - upper > self.slack) if self.keep_ties else bool(upper <= best)

    def check(self, value: Number, upper: Number | None, action: Any, depth: int) -> None:
        """Refuse an upper bound that lies below the value it should bound; see `check_bound`."""
        check_bound(value, upper, action, depth, self.check_slack, named=self.table is not None)


def check_bound(
    value: Number, upper: Number | None, action: Any, depth: int, slack: float = 0.0, *, named: bool = False
) -> None:
    """Refuse an upper bound that lies below the value it should bound.

    A bound with a name holds for every convex leaf: where it fails, the leaf was declared convex and is not.

    Raises:
        PlanningError: It does, by more than the slack and the rounding of floats (1e-9, relative).
    """
    if upper is None:
        return
    if not (is_exact(value) and is_exact(upper)):
        slack = max(slack, 1e-9 * max(1.0, abs(float(value)), abs(float(upper))))
    if value - upper > slack:  # a difference of exact numbers stays exact
        remedy = "convex=False, as leaf_value is not convex" if named else "upper_bound='fib'"
        raise PlanningError(
            f"upper_bound: got {brief(upper)} for action {brief(action)} with {depth} actions to go; expected at least "
            f"its value {brief(value)}. Pass prune=False, or {remedy}."
        )


def table_bound(problem: POMDP, table: Floats) -> Upper:
    """Return a table ``[d - 1, a, s]`` of `pomdp_hier.planning.bounds` as a function of belief, action and depth."""
    states, actions = problem.compiled.state_index, problem.compiled.action_index

    def upper(belief: Belief, action: Any, depth: int) -> Number:
        stray = next((state for state in belief if state not in states), None)
        if stray is not None:
            raise ModelError(f"belief: got state {brief(stray)}; expected one of the problem's {len(states)} states")
        row = table[depth - 1, actions[action]]
        return total(float(p) * float(row[states[state]]) for state, p in belief.items())

    return upper


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
