"""What a depth-limited search is worth where it stops looking: its fringe values.

A fringe is given as the lower bound of `RTBSS`: a name, a `ImmediateValue`, what has a ``leaf``, or any callable
``(problem, belief) -> number``. All but callables are maxima of linear functions of the belief,
``L(b) = max_k sum_s b(s) F[k, s]``, which is what bounds and the search on arrays work with (`LeafVectors`).
"""

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arrays import Bools, Floats
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning.decision import largest
from pomdp_hier.planning.infinite_horizon_bounds import infinite_horizon_qmdp, infinite_horizon_table
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, is_number
from pomdp_hier.pomdp.signatures import SIGNATURES, bind
from pomdp_hier.pomdp.tabular import TabularPOMDP

# (problem, belief, last observation) -> the value at the fringe
Fringe = Callable[[POMDP, Belief, Hashable], Number]


@dataclass(frozen=True)
class ImmediateValue:
    """A fringe worth the immediate reward of one designated action: ``L(b) = R_B(b, action)``.

    With an action that ends the process ("search here", "open the door") this is the value of stopping now.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> RTBSS(1, leaf_value=ImmediateValue("search")).leaf_value
        ImmediateValue(action='search')
    """

    action: Any


@dataclass(frozen=True)
class ConvexLeafValue:
    """A callable fringe that its author declares convex, so that bounds from single states hold and pruning stays on.

    The claim is ``L(b) <= sum_s b(s) L(e_s)`` for every belief, ``e_s`` the certainty of ``s``.

    Attributes:
        function: ``(problem, belief) -> number``.

    Example:
        >>> from pomdp_hier.planning import RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> half_open = ConvexLeafValue(lambda problem, belief: 5 * max(belief.values()))
        >>> RTBSS(depth=1, leaf_value=half_open).decide(tiger()).action
        'listen'
    """

    function: Callable[[POMDP, Belief], Number]


@dataclass(frozen=True, eq=False)
class LeafVectors:
    """``L(b) <= max_k sum_s b(s) F[k, s]`` over the ``k`` that are legal under the belief.

    Attributes:
        vectors: ``[K, S]``, 0 at terminal states.
        legal: ``[K, S]``, bool: the vector may be used where the state is possible.
        legal_after: ``[O + 1, K]``, bool, where legality is by the last observation; else ``None``.
        exact: Whether ``L(b)`` equals the maximum (a `ConvexLeafValue` only lies below it).
        name: What messages call it.
        below_optimum: Whether it is known to be at most the optimal value of the endless horizon.
    """

    vectors: Floats = field(repr=False)
    legal: Bools = field(repr=False)
    legal_after: Bools | None = field(default=None, repr=False)
    exact: bool = True
    name: str = "the leaf values"
    below_optimum: bool = False

    @classmethod
    def of(
        cls,
        table: Floats,
        legal_after: Bools | None = None,
        name: str = "the leaf values",
        *,
        below_optimum: bool = False,
    ) -> "LeafVectors":
        """Return the fringe of vectors ``[K, S]`` that are -inf where they may not be used.

        Example:
            >>> LeafVectors.of(np.array([[1.0, -np.inf]])).legal
            array([[ True, False]])
        """
        legal = np.isfinite(table)
        return cls(np.where(legal, table, 0.0), legal, legal_after, name=name, below_optimum=below_optimum)

    def value(self, compiled: TabularPOMDP, belief: Belief, observation: Hashable = None) -> float:
        """Return ``L(b)`` after an observation.

        Raises:
            ParameterError: The vectors are for another number of states.
            PlanningError: None of them may be used.
        """
        self.check(compiled)
        weights = compiled.vector(belief)
        support = np.flatnonzero(weights)
        usable = self.legal[:, support].all(axis=1)
        if self.legal_after is not None:
            usable &= self.legal_after[-1 if observation is None else compiled.observation_index[observation]]
        if not usable.any():
            raise illegal_at_fringe(self.name, compiled.states[int(support[0])])
        return float((self.vectors[np.ix_(usable, support)] @ weights[support]).max())

    def check(self, compiled: TabularPOMDP) -> None:
        """Refuse the vectors of another problem."""
        if self.vectors.shape[1] != compiled.n_states:
            raise ParameterError(
                f"leaf_value: got {self.name} of {self.vectors.shape[1]} states; expected {compiled.n_states}. Take "
                "the solution of this problem."
            )


def leaf_function(leaf_value: Any) -> Fringe:
    """Return the fringe as a function of problem, belief and last observation.

    Raises:
        ParameterError: The lower bound is none of the forms known.
        PlanningError: (when called) the stopping action is not legal at the fringe.
    """
    if isinstance(leaf_value, str):
        if leaf_value not in (*_NAMED, *_ENDLESS):
            names = ", ".join(map(repr, (*_NAMED, *_ENDLESS)))
            raise ParameterError(f"leaf_value: got {brief(leaf_value)}; expected one of {names}, or a callable")
        return _NAMED.get(leaf_value) or _VectorFringe(leaf_value)
    if isinstance(leaf_value, LeafVectors):
        return _VectorFringe(leaf_value)
    if isinstance(leaf_value, ImmediateValue):
        return _StopFringe(leaf_value.action)
    function = leaf_value.function if isinstance(leaf_value, ConvexLeafValue) else leaf_value
    if not callable(function):
        raise ParameterError(
            f"leaf_value: got {brief(leaf_value)}; expected a name, a ImmediateValue, a solution, or a callable "
            "(problem, belief) -> number"
        )
    return _CallableFringe(bind("leaf_value", function, SIGNATURES["leaf"]).call)


def has_vectors(leaf_value: Any) -> bool:
    """Whether the fringe is a maximum of linear functions that can be listed."""
    return isinstance(leaf_value, (str, ImmediateValue, LeafVectors))


@dataclass(frozen=True)
class _VectorFringe:
    """Vectors read at a belief; those of a name are made once a problem."""

    leaf_value: str | LeafVectors
    _made: "weakref.WeakKeyDictionary[POMDP, LeafVectors]" = field(default_factory=weakref.WeakKeyDictionary)

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        if problem not in self._made:
            self._made[problem] = _linear(problem.compiled, self.leaf_value)
        return self._made[problem].value(problem.compiled, belief, observation)


@dataclass(frozen=True)
class _CallableFringe:
    function: Callable[[POMDP, Belief], Number]

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        value = self.function(problem, belief)
        if not is_number(value):
            raise PlanningError(f"leaf_value: got {brief(value)} from the callable; expected a number")
        return value


def _zero(problem: POMDP, belief: Belief, observation: Hashable) -> Number:
    return 0


def _immediate(problem: POMDP, belief: Belief, observation: Hashable) -> Number:
    return largest([problem.reward(belief, action) for action in problem.actions(belief, observation)])


_NAMED: dict[str, Fringe] = {"zero": _zero, "immediate": _immediate}
_ENDLESS = ("qmdp", "fib", "blind")


@dataclass(frozen=True)
class _StopFringe:
    action: Any

    def __call__(self, problem: POMDP, belief: Belief, observation: Hashable) -> Number:
        if self.action not in problem.actions(belief, observation):
            raise illegal_at_fringe(_stop_name(self.action), belief.support[0])
        return problem.reward(belief, self.action)


def illegal_at_fringe(name: str, state: Any) -> PlanningError:
    """Return the error of a belief at the fringe under which nothing of what the fringe is made of is legal."""
    return PlanningError(
        f"leaf_value: got {name}, which is not legal at a leaf belief (its first state: {brief(state)}); expected "
        "legal actions at every leaf. Pass 'zero', 'immediate', or a callable."
    )


def _stop_name(action: Any) -> str:
    return f"ImmediateValue({brief(action)})"


def leaf_vectors(problem: POMDP, leaf_value: Any) -> LeafVectors | None:
    """Return the fringe as vectors over the compiled problem; ``None`` for a callable that is not declared convex.

    Raises:
        ParameterError: The stopping action is not an action of the problem, or vectors are for another problem.
        PlanningError: The endless horizon has no value.
    """
    compiled = problem.compiled
    if isinstance(leaf_value, LeafVectors) or (isinstance(leaf_value, str) and leaf_value in _ENDLESS):
        return _linear(compiled, leaf_value)
    everywhere = np.ones((1, compiled.n_states), dtype=bool)
    if isinstance(leaf_value, ConvexLeafValue):
        values = [
            0.0 if over else float(leaf_value.function(problem, Belief.certain(state)))
            for state, over in zip(compiled.states, compiled.terminal, strict=True)
        ]
        return LeafVectors(np.array([values]), everywhere, exact=False)
    if isinstance(leaf_value, ImmediateValue):
        if leaf_value.action not in compiled.action_index:
            raise ParameterError(
                f"leaf_value: got ImmediateValue({brief(leaf_value.action)}); expected one of the actions "
                f"{listed(compiled.actions)}"
            )
        rows = [compiled.action_index[leaf_value.action]]
        return _rewards_as_fringe(compiled, rows, _stop_name(leaf_value.action))
    if leaf_value == "immediate":
        return _rewards_as_fringe(compiled, list(range(compiled.n_actions)))
    if leaf_value == "zero":
        return LeafVectors(np.zeros((1, compiled.n_states)), everywhere)
    return None


def _linear(compiled: TabularPOMDP, leaf_value: str | LeafVectors) -> LeafVectors:
    """Return vectors that were given, or those of a bound of the endless horizon."""
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


def _rewards_as_fringe(compiled: TabularPOMDP, rows: list[int], name: str = "'immediate'") -> LeafVectors:
    after = None if compiled.legal_after is None else compiled.legal_after[:, rows]
    return LeafVectors(compiled.reward[rows], compiled.legal[rows], after, name=name)
