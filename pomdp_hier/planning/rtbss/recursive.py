"""RTBSS as in textbooks: a recursion over beliefs, for any number type and any updater.

It is the reference for the search on arrays (`arrays`).
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats
from pomdp_hier._text import brief
from pomdp_hier.beliefs.updaters import CompleteUpdater
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning.decision import TERMINAL_VALUE, largest
from pomdp_hier.planning.leaf_values import LeafFunction
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, is_number, total, within_floats
from pomdp_hier.pomdp.problem import POMDP

# (belief, action, depth) -> an upper bound of Q_depth(belief, action)
Upper = Callable[[Belief, Any, int], Number]

_ROUNDING = 1e-11  # how far sums of products may be off, relative to the largest term


@dataclass(frozen=True, eq=False)
class Pruning:
    """Order and pruning of the actions of a problem in one search.

    Attributes:
        upper: The upper bound; ``None`` to expand all actions, in the problem's order.
        table: The bound as a table ``[d - 1, a, s]``, for a named bound.
        keep_ties: Whether an action below the root is expanded if its bound equals the best value.
        tie_tolerance: At the root, an action is expanded if it can tie with the best within this tolerance.
        slack: The rounding error of a bound in floats.
        check_slack: The largest excess of a value over its bound that does not raise an error.
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
        """Return the pruning by a named bound, with an allowance for rounding."""
        depth, _, n_states = table.shape
        largest = float(np.abs(table[np.isfinite(table)]).max(initial=1.0))
        slack = _ROUNDING * largest
        merging = merge_tolerance * n_states * largest * depth  # the value of a merged belief may differ by this
        return cls(table_bound(problem, table), table, keep_ties, tie_tolerance, slack, slack + merging)

    def ranked(self, belief: Belief, actions: Iterable[Any], depth: int) -> list[tuple[Any, Number | None]]:
        """Return the actions with their upper bounds, the greatest first; without bounds in the problem's order."""
        if self.upper is None:
            return [(action, None) for action in actions]
        bounded = [(action, self.upper(belief, action, depth)) for action in actions]
        for action, bound in bounded:
            if not is_number(bound) or bound != bound:
                raise PlanningError(f"upper_bound: got {brief(bound)} for action {brief(action)}; expected a number.")
        return sorted(bounded, key=lambda pair: pair[1], reverse=True)

    def skips(self, upper: Number | None, best: Number | None, *, at_root: bool = False) -> bool:
        """Return whether an action can be pruned: by its upper bound it neither beats nor ties with the best value.

        At the root all ties within the tolerance are kept, below it only with ``keep_ties``.
        """
        if upper is None or best is None:
            return False
        if at_root:
            return bool(best - upper > self.slack + self.tie_tolerance)
        return bool(best - upper > self.slack) if self.keep_ties else bool(upper <= best)

    def check(self, value: Number, upper: Number | None, action: Any, depth: int) -> None:
        """Raise an error for an upper bound below the value; see `check_bound`."""
        check_bound(value, upper, action, depth, self.check_slack, named=self.table is not None)


def check_bound(
    value: Number, upper: Number | None, action: Any, depth: int, slack: float = 0.0, *, named: bool = False
) -> None:
    """Raise an error for an upper bound below the value that it should bound.

    A named bound holds for all convex leaf values. Where it fails, the leaf values were declared convex and are not.

    Raises:
        PlanningError: The bound is lower by more than the slack and the rounding of floats (1e-9, relative).
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
            raise ModelError(f"belief: got state {brief(stray)}; expected one of the problem's {len(states)} states.")
        row = table[depth - 1, actions[action]]
        return total(float(p) * float(row[states[state]]) for state, p in belief.items())

    return upper


class BudgetExhausted(Exception):  # noqa: N818  # a signal between a search and its root, never shown to users
    """The search has expanded its budget of nodes."""


@dataclass
class PlainSearch:
    """A depth-limited search from one belief; `value` is the recursion.

    Attributes:
        problem: The problem.
        updater: Returns the posteriors of an action, with the probabilities of their observations.
        leaf: The leaf values.
        pruning: Order and pruning of actions.
        merge_tolerance: Beliefs that agree to this tolerance are expanded once; 0 means equal, ``None`` never.
        budget: The largest number of expanded nodes.
        nodes, pruned, reused: The numbers of expanded beliefs, pruned actions and beliefs of known value.
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
        """Return ``V_depth(b) = max_a Q_depth(b, a)``; the leaf value at depth 0; 0 for a terminal belief."""
        if self.problem.is_terminal_belief(belief):
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
        """Return ``Q_depth(b, a) = R(b, a) + gamma sum_o Pr(o | b, a) V_{depth-1}(tau(b, a, o))``."""
        ahead = total(
            evidence * self.value(posterior, observation, depth - 1)
            for observation, evidence, posterior in self.updater.branches(belief, action)
        )
        return within_floats(self.problem.reward(belief, action) + self.problem.discount * ahead)

    def count_node(self) -> None:
        """Count one expansion against the budget."""
        if self.budget is not None and self.nodes >= self.budget:
            raise BudgetExhausted
        self.nodes += 1

    def _key(self, belief: Belief, observation: Hashable, depth: int) -> Hashable:
        """Return the key of beliefs to expand once: support, legal actions, and probabilities within the tolerance."""
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
