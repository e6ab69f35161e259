"""Leaf values of a depth-limited search.

They are given to `RTBSS` as a name, an `ImmediateValue`, an object with the attribute ``leaf``, or a callable
``(problem, belief) -> number``. All except callables are maxima of linear functions of the belief,
``L(b) = max_k sum_s b(s) F[k, s]``. Bounds and the search on arrays use this form (`LeafVectors`).
"""

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arguments import unexpected
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning.alpha_vectors import LeafVectors, illegal_at_leaf
from pomdp_hier.planning.bounds import infinite_horizon_qmdp, infinite_horizon_table
from pomdp_hier.planning.decision import largest
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_number
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.signatures import SIGNATURES, bind
from pomdp_hier.pomdp.tabular import TabularPOMDP

# (problem, belief, last observation) -> the value of a leaf
LeafFunction = Callable[[POMDP, Belief, Hashable], Number]


@dataclass(frozen=True)
class ImmediateValue:
    """The immediate reward of one action as leaf value: ``L(b) = R(b, action)``.

    For an action that terminates the process ("search here", "open the door"), this is the value of stopping now.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> RTBSS(1, leaf_value=ImmediateValue("search")).leaf_value
        ImmediateValue(action='search')
    """

    action: Any


def leaf_function(leaf_value: Any) -> LeafFunction:
    """Return the leaf values as a function of problem, belief and last observation.

    Raises:
        ParameterError: ``leaf_value`` has none of the forms known.
        PlanningError: (when called) the action of an `ImmediateValue` is not legal at the leaf.
    """
    if isinstance(leaf_value, str):
        if leaf_value not in (*_NAMED, *_BOUNDS):
            names = ", ".join(map(repr, (*_NAMED, *_BOUNDS)))
            raise unexpected("leaf_value", leaf_value, f"one of {names}, or a callable")
        return _NAMED.get(leaf_value) or _VectorLeaf(leaf_value)
    if isinstance(leaf_value, LeafVectors):
        return _VectorLeaf(leaf_value)
    if isinstance(leaf_value, ImmediateValue):
        return _ImmediateLeaf(leaf_value.action)
    if isinstance(leaf_value, type):
        name = leaf_value.__name__
        raise ParameterError(f"leaf_value: got the class {name}; expected an instance. Pass {name}(...).")
    if not callable(leaf_value):
        raise unexpected(
            "leaf_value", leaf_value, "a name, an ImmediateValue, a solution, or a callable (problem, belief) -> number"
        )
    return _CallableLeaf(bind("leaf_value", leaf_value, SIGNATURES["leaf"]).call)


def has_vectors(leaf_value: Any) -> bool:
    """Whether the leaf values are a maximum of linear functions that can be listed."""
    return isinstance(leaf_value, (str, ImmediateValue, LeafVectors))


@dataclass(frozen=True)
class _VectorLeaf:
    """Vectors read at a belief; those of a name are computed once per problem."""

    leaf_value: str | LeafVectors
    _made: "weakref.WeakKeyDictionary[POMDP, LeafVectors]" = field(default_factory=weakref.WeakKeyDictionary)

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        if problem not in self._made:
            self._made[problem] = _linear(problem.compiled, self.leaf_value)
        return self._made[problem].value(problem.compiled, belief, observation)


@dataclass(frozen=True)
class _CallableLeaf:
    function: Callable[[POMDP, Belief], Number]

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        value = self.function(problem, belief)
        if not is_number(value):
            raise PlanningError(f"leaf_value: got {brief(value)} from the callable; expected a number.")
        return value


def _zero(problem: POMDP, belief: Belief, observation: Hashable) -> Number:
    return 0


def _immediate(problem: POMDP, belief: Belief, observation: Hashable) -> Number:
    return largest([problem.reward(belief, action) for action in problem.actions(belief, observation)])


_NAMED: dict[str, LeafFunction] = {"zero": _zero, "immediate": _immediate}
_BOUNDS = ("qmdp", "fib", "blind")


@dataclass(frozen=True)
class _ImmediateLeaf:
    action: Any

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        if self.action not in problem.actions(belief, observation):
            raise illegal_at_leaf(_immediate_name(self.action), belief.support[0])
        return problem.reward(belief, self.action)


def _immediate_name(action: Any) -> str:
    return f"ImmediateValue({brief(action)})"


def leaf_vectors(problem: POMDP, leaf_value: Any, *, convex: bool = False) -> LeafVectors | None:
    """Return the leaf values as vectors over the compiled problem; ``None`` for a callable.

    Args:
        problem: The problem.
        leaf_value: The leaf values.
        convex: Whether a callable is declared convex. It is then bounded by its values at known states.

    Raises:
        ParameterError: The action is not an action of the problem, or vectors are for another problem.
        PlanningError: The infinite-horizon value does not exist.
    """
    compiled = problem.compiled
    if isinstance(leaf_value, LeafVectors) or (isinstance(leaf_value, str) and leaf_value in _BOUNDS):
        return _linear(compiled, leaf_value)
    everywhere = np.ones((1, compiled.n_states), dtype=bool)
    if isinstance(leaf_value, ImmediateValue):
        if leaf_value.action not in compiled.action_index:
            raise ParameterError(
                f"leaf_value: got ImmediateValue({brief(leaf_value.action)}); expected one of the actions "
                f"{listed(compiled.actions)}."
            )
        rows = [compiled.action_index[leaf_value.action]]
        return _rewards_as_leaf(compiled, rows, _immediate_name(leaf_value.action))
    if leaf_value == "immediate":
        return _rewards_as_leaf(compiled, list(range(compiled.n_actions)))
    if leaf_value == "zero":
        return LeafVectors(np.zeros((1, compiled.n_states)), everywhere)
    if not convex:
        return None
    function = leaf_function(leaf_value)
    values = [
        0.0 if terminal else float(function(problem, Belief.certain(state), None))
        for state, terminal in zip(compiled.states, compiled.terminal, strict=True)
    ]
    return LeafVectors(np.array([values]), everywhere, exact=False)


def _linear(compiled: TabularPOMDP, leaf_value: str | LeafVectors) -> LeafVectors:
    """Return vectors that were given, or those of an infinite-horizon bound."""
    if isinstance(leaf_value, LeafVectors):
        leaf_value.check(compiled)
        return leaf_value
    try:
        if leaf_value == "qmdp":
            return LeafVectors.of(infinite_horizon_qmdp(compiled), compiled.legal_after, "'qmdp'")
        table = infinite_horizon_table(compiled, "fib" if leaf_value == "fib" else "blind")
    except (ModelError, PlanningError) as error:
        raise PlanningError(
            f"leaf_value: got {brief(leaf_value)} ({str(error).split(';', maxsplit=1)[0]}); expected a finite "
            "infinite-horizon value. Pass value_iteration(problem, n), the values of n actions."
        ) from error
    sets = np.arange(len(table.tables))
    after = None if compiled.legal_after is None else table.kind_after[:, None] == np.repeat(sets, compiled.n_actions)
    return LeafVectors.of(table.tables.reshape(-1, compiled.n_states), after, repr(leaf_value))


def _rewards_as_leaf(compiled: TabularPOMDP, rows: list[int], name: str = "'immediate'") -> LeafVectors:
    after = None if compiled.legal_after is None else compiled.legal_after[:, rows]
    return LeafVectors(compiled.reward[rows], compiled.legal[rows], after, name=name)
