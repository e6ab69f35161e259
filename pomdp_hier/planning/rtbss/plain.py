"""RTBSS as it is written in the books: a short recursion over beliefs, for any kind of number and any updater.

This is the definition that the search on arrays (`arrays`) is held against.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning.rtbss.fringe import Fringe, largest
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, brief, is_exact, total

__all__ = [
    "Branches",
    "BudgetExhausted",
    "PlainSearch",
    "Upper",
    "branches_of",
    "check_bound",
    "rank",
    "skips",
    "table_bound",
]

# (belief, action) -> (observation, Pr(o | b, a), posterior), for the observations that can be made
Branches = Callable[[Belief, Any], Iterable[tuple[Any, Number, Belief]]]
# (belief, action, depth) -> an upper bound of Q_depth(belief, action)
Upper = Callable[[Belief, Any, int], Number]


class BudgetExhausted(Exception):  # noqa: N818  # a signal between a search and its root, never shown to users
    """The search has expanded as many nodes as it may."""


def branches_of(problem: POMDP, updater: Any = None, tidy: Callable[[Number], Number] | None = None) -> Branches:
    """Return the branches of an action: by the updater given, or by Bayes' rule.

    Args:
        problem: The problem.
        updater: An object with ``branches(belief, action)``, an object with ``update(belief, action, observation)``, or
            a function of the same three; ``None`` for Bayes' rule.
        tidy: What simplifies probabilities on the way, for expressions.

    Raises:
        ParameterError: The updater is none of these.
    """
    if updater is None:
        return lambda belief, action: _bayes(problem, belief, action, tidy or (lambda value: value))
    if isinstance(updater, type):
        raise ParameterError(f"updater: {updater.__name__} is a class; pass an instance, {updater.__name__}(problem)")
    if hasattr(updater, "branches"):
        branches: Branches = updater.branches
        return branches
    update = getattr(updater, "update", updater)
    if not callable(update):
        raise ParameterError(
            f"updater: {brief(updater)} has neither branches(belief, action) nor update(belief, action, observation), "
            "and is not a function"
        )
    return lambda belief, action: (
        (o, p, update(belief, action, o)) for o, p in problem.observation_probabilities(belief, action).items()
    )


def _bayes(
    problem: POMDP, belief: Belief, action: Any, tidy: Callable[[Number], Number]
) -> Iterable[tuple[Any, Number, Belief]]:
    for observation, row in problem.joint(belief, action).items():
        evidence = tidy(total(row.values()))
        yield observation, evidence, Belief({state: tidy(mass / evidence) for state, mass in row.items()})


def rank(belief: Belief, actions: Iterable[Any], depth: int, upper: Upper | None) -> list[tuple[Any, Number | None]]:
    """Return the actions with their upper bounds, the most promising first; in the problem's order without a bound."""
    if upper is None:
        return [(action, None) for action in actions]
    bounded = [(action, upper(belief, action, depth)) for action in actions]
    return sorted(bounded, key=lambda pair: pair[1], reverse=True)


def skips(upper: Number | None, best: Number | None, *, keep_ties: bool, slack: Number = 0) -> bool:
    """Whether an action of this upper bound can be pruned: it cannot beat the best value, nor (if asked) equal it."""
    if upper is None or best is None:
        return False
    return bool(upper + slack < best) if keep_ties else bool(upper <= best)


def check_bound(value: Number, upper: Number | None, action: Any, depth: int) -> None:
    """Refuses an upper bound that lies below the value it should bound.

    Raises:
        PlanningError: It does, by more than the rounding of floats (1e-9, relative).
    """
    if upper is None:
        return
    exact = is_exact(value) and is_exact(upper)
    slack = 0 if exact else 1e-9 * max(1.0, abs(float(value)), abs(float(upper)))
    if value > upper + slack:
        raise PlanningError(
            f"upper_bound: action {brief(action)} with {depth} actions to go is worth {value}, but its upper bound is "
            f"{upper}; a bound must hold for the same depth and the same fringe. Pass prune=False, or use 'fib'"
        )


@dataclass
class PlainSearch:
    """A depth-limited search from one belief; `value` is the recursion, the counters say what it did.

    Attributes:
        problem: The problem.
        branches: What can follow an action.
        fringe: The value where the search stops looking.
        upper: The upper bound that orders and prunes; ``None`` to expand everything.
        keep_ties: Whether an action whose bound equals the best value is expanded all the same.
        slack: How far the bound must lie below the best value before a tie is out of the question.
        merge_tolerance: Beliefs that agree to this are expanded once; 0 means equal, ``None`` never.
        budget: How many nodes may be expanded.
    """

    problem: POMDP
    branches: Branches
    fringe: Fringe
    upper: Upper | None = None
    keep_ties: bool = False
    slack: Number = 0
    merge_tolerance: float | None = 0.0
    budget: int | None = None
    nodes: int = 0
    pruned: int = 0
    reused: int = 0
    _known: dict[Hashable, Number] = field(default_factory=dict, repr=False)

    def value(self, belief: Belief, observation: Hashable, depth: int) -> Number:
        """``V_depth(b) = max_a Q_depth(b, a)``; the fringe at depth 0; 0 once the process is over."""
        if self.problem.is_over(belief):
            return 0
        if depth == 0:
            return self.fringe(self.problem, belief, observation)
        key = self._key(belief, observation, depth)
        if key in self._known:
            self.reused += 1
            return self._known[key]
        self.count_node()
        best: Number | None = None
        ranked = rank(belief, self.problem.actions(belief, observation), depth, self.upper)
        for i, (action, upper) in enumerate(ranked):
            if skips(upper, best, keep_ties=self.keep_ties, slack=self.slack):
                self.pruned += len(ranked) - i  # the bounds fall from here on
                break
            q = self.q_value(belief, action, depth)
            check_bound(q, upper, action, depth)
            best = q if best is None else largest([best, q])
        if key is not None:
            self._known[key] = best
        return best

    def q_value(self, belief: Belief, action: Any, depth: int) -> Number:
        """``Q_depth(b, a) = R(b, a) + gamma sum_o Pr(o | b, a) V_{depth-1}(tau(b, a, o))``."""
        ahead = total(
            evidence * self.value(posterior, observation, depth - 1)
            for observation, evidence, posterior in self.branches(belief, action)
        )
        return self.problem.reward(belief, action) + self.problem.discount * ahead

    def count_node(self) -> None:
        """Count one expansion against the budget."""
        if self.budget is not None and self.nodes >= self.budget:
            raise BudgetExhausted
        self.nodes += 1

    def _key(self, belief: Belief, observation: Hashable, depth: int) -> Hashable:
        if self.merge_tolerance is None:
            return None
        seen = observation if self.problem.legal_by == "observation" else None
        if self.merge_tolerance == 0:
            return belief, seen, depth
        width = self.merge_tolerance  # exact numbers are compared exactly
        cells = frozenset((state, round(p / width) if isinstance(p, float) else p) for state, p in belief.items())
        return cells, seen, depth


def table_bound(problem: POMDP, table: Any) -> Upper:
    """Return a table ``[d - 1, a, s]`` of `pomdp_hier.planning.bounds` as a function of belief, action and depth."""
    states, actions = problem.compiled.state_index, problem.compiled.action_index

    def upper(belief: Belief, action: Any, depth: int) -> Number:
        stray = next((state for state in belief if state not in states), None)
        if stray is not None:
            raise ModelError(f"belief: {brief(stray)} is not one of the problem's {len(states)} states")
        row: Mapping[int, float] = table[depth - 1, actions[action]]
        return total(float(p) * float(row[states[state]]) for state, p in belief.items())

    return upper
