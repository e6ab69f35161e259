"""What RTBSS leaves out: actions whose upper bound shows that they cannot win.

A pruned action never competes: its upper bound orders and prunes, and is nobody's value.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, is_number, total

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
