"""What a depth-limited search is worth where it stops looking: its fringe values.

A fringe is given as the lower bound of `RTBSS`: ``"zero"``, ``"immediate"``, a `StopValue`, or any callable
``(problem, belief) -> number``. The named ones are also maxima of linear functions of the belief,
``L(b) = max_k sum_s b(s) F[k, s]``, which is what bounds and the search on arrays work with (`FringeVectors`).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning.ties import largest
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, brief, is_number
from pomdp_hier.pomdp.tabular import TabularPOMDP

__all__ = [
    "ConvexFringe",
    "Fringe",
    "FringeVectors",
    "StopValue",
    "fringe_function",
    "fringe_vectors",
    "stop_is_illegal",
]

# (problem, belief, last observation) -> the value at the fringe
Fringe = Callable[[POMDP, Belief, Hashable], Number]


@dataclass(frozen=True)
class StopValue:
    """A fringe worth the immediate reward of one designated action: ``L(b) = R_B(b, action)``.

    With an action that ends the process ("search here", "open the door") this is the value of stopping now.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> RTBSS(1, lower_bound=StopValue("search")).lower_bound
        StopValue(action='search')
    """

    action: Any


@dataclass(frozen=True)
class ConvexFringe:
    """A callable fringe that its author declares convex, so that bounds from single states hold and pruning stays on.

    The claim is ``L(b) <= sum_s b(s) L(e_s)`` for every belief, ``e_s`` the certainty of ``s``.

    Attributes:
        function: ``(problem, belief) -> number``.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> half_open = ConvexFringe(lambda problem, belief: 5 * max(belief.values()))
        >>> RTBSS(depth=1, lower_bound=half_open).decide(tiger()).action
        'listen'
    """

    function: Callable[[POMDP, Belief], Number]


@dataclass(frozen=True, eq=False)
class FringeVectors:
    """``L(b) <= max_k sum_s b(s) F[k, s]`` over the ``k`` that are legal under the belief.

    Attributes:
        vectors: ``[K, S]``, 0 at terminal states.
        legal: ``[K, S]``, bool: the vector may be used where the state is possible.
        legal_after: ``[O + 1, K]``, bool, where legality is by the last observation; else ``None``.
        exact: Whether ``L(b)`` equals the maximum (a `ConvexFringe` only lies below it).
        name: The designated action of a `StopValue`, for messages.
    """

    vectors: NDArray[np.float64] = field(repr=False)
    legal: NDArray[np.bool_] = field(repr=False)
    legal_after: NDArray[np.bool_] | None = field(default=None, repr=False)
    exact: bool = True
    name: Any = None


def fringe_function(lower_bound: Any) -> Fringe:
    """Return the fringe as a function of problem, belief and last observation.

    Raises:
        ParameterError: The lower bound is none of the forms known.
        PlanningError: (when called) the stopping action is not legal at the fringe.
    """
    if isinstance(lower_bound, str):
        if lower_bound not in _NAMED:
            raise ParameterError(f"lower_bound: {lower_bound!r} is not one of 'zero', 'immediate', or a callable")
        return _NAMED[lower_bound]
    if isinstance(lower_bound, StopValue):
        return _StopFringe(lower_bound.action)
    function = lower_bound.function if isinstance(lower_bound, ConvexFringe) else lower_bound
    if not callable(function):
        raise ParameterError(
            f"lower_bound: {brief(lower_bound)} is neither a name, a StopValue nor a callable "
            "(problem, belief) -> number"
        )
    return _CallableFringe(function)


@dataclass(frozen=True)
class _CallableFringe:
    function: Callable[[POMDP, Belief], Number]

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        value = self.function(problem, belief)
        if not is_number(value):
            raise PlanningError(f"lower_bound: the callable gave {brief(value)} for a belief; expected a number")
        return value


def _zero(problem: POMDP, belief: Belief, observation: Hashable) -> Number:
    return 0


def _immediate(problem: POMDP, belief: Belief, observation: Hashable) -> Number:
    return largest([problem.reward(belief, action) for action in problem.actions(belief, observation)])


_NAMED: dict[str, Fringe] = {"zero": _zero, "immediate": _immediate}


@dataclass(frozen=True)
class _StopFringe:
    action: Any

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        if self.action not in problem.actions(belief, observation):
            raise stop_is_illegal(self.action, belief.support[0])
        return problem.reward(belief, self.action)


def stop_is_illegal(action: Any, state: Any) -> PlanningError:
    """Return the error of a `StopValue` whose action cannot be taken at the fringe."""
    return PlanningError(
        f"lower_bound: StopValue({brief(action)}) is not legal under a belief at the fringe (its first state: "
        f"{brief(state)}); name an action that is legal wherever the search stops, or pass a callable"
    )


def fringe_vectors(problem: POMDP, lower_bound: Any) -> FringeVectors | None:
    """Return the fringe as vectors over the compiled problem; ``None`` for a callable that is not declared convex.

    Raises:
        ParameterError: The stopping action is not an action of the problem.
    """
    compiled = problem.compiled
    everywhere = np.ones((1, compiled.n_states), dtype=bool)
    if isinstance(lower_bound, ConvexFringe):
        values = [
            0.0 if over else float(lower_bound.function(problem, Belief.certain(state)))
            for state, over in zip(compiled.states, compiled.terminal, strict=True)
        ]
        return FringeVectors(np.array([values]), everywhere, exact=False)
    if isinstance(lower_bound, StopValue):
        if lower_bound.action not in compiled.action_index:
            raise ParameterError(
                f"lower_bound: StopValue({brief(lower_bound.action)}) names none of the problem's "
                f"{compiled.n_actions} actions"
            )
        rows = [compiled.action_index[lower_bound.action]]
        return _rewards_as_fringe(compiled, rows, lower_bound.action)
    if lower_bound == "immediate":
        return _rewards_as_fringe(compiled, list(range(compiled.n_actions)))
    if lower_bound == "zero":
        return FringeVectors(np.zeros((1, compiled.n_states)), everywhere)
    return None


def _rewards_as_fringe(compiled: TabularPOMDP, rows: list[int], name: Any = None) -> FringeVectors:
    after = None if compiled.legal_after is None else compiled.legal_after[:, rows]
    return FringeVectors(compiled.reward[rows], compiled.legal[rows], after, name=name)
