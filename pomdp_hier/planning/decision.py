"""Decisions and policies: the interface, ties between actions, terminal beliefs."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import PlanningError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.tabular import TabularPOMDP


@dataclass(frozen=True)
class Decision:
    """The decision of a policy at one belief.

    Attributes:
        action: The action to take.
        value: The policy's estimate of the expected return from here; ``None`` if it has none.
        q_values: The estimate for each legal action that was evaluated.
        ties: All actions with the best value, ``action`` included, in the problem's order.
        stats: The counts of the planner (nodes, simulations, ...), by the planner's own names.

    Example:
        >>> Decision("listen", value=-1.0, q_values={"listen": -1.0}).ties
        ('listen',)
    """

    action: Any
    value: Number | None = None
    q_values: Mapping[Any, Number] = field(default_factory=dict)
    ties: tuple[Any, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ties:
            object.__setattr__(self, "ties", (self.action,))

    def __str__(self) -> str:
        """Return action, value and action values; "at most" marks an upper bound."""
        status = self.stats.get("status", {})
        marks = {"pruned": "at most ", "bound": "at most "}
        values = [f"{brief(a)} {marks.get(status.get(a), '')}{_number(q)}" for a, q in self.q_values.items()]
        tied = f"; tied: {listed(self.ties)}" if len(self.ties) > 1 else ""
        value = "" if self.value is None else f", value {_number(self.value)}"
        among = f" ({', '.join(values)})" if values else ""
        return f"{brief(self.action)}{value}{among}{tied}"


def _number(value: Number) -> str:
    return f"{value:.6g}" if isinstance(value, float) else brief(value)


@runtime_checkable
class Policy(Protocol):
    """The interface of policies: one method, from a problem and a belief to a `Decision`.

    ``belief`` defaults to the problem's initial belief. ``observation`` is the last one (``None`` at the start), for
    problems whose legal actions depend on it.

    Example:
        >>> class Stubborn:
        ...     def decide(self, problem, belief=None, *, observation=None):
        ...         return Decision(problem.actions(belief, observation)[-1])
        >>> from pomdp_hier.problems import tiger
        >>> isinstance(Stubborn(), Policy), Stubborn().decide(tiger()).action
        (True, 'open-right')
    """

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        ...


def outcome_matrix(compiled: TabularPOMDP, action: int) -> sparse.csr_array:
    """``[S, O * S']``, ``p(s', o | s, a)`` at column ``o * S + s'``, without stored zeros.

    Example:
        >>> from pomdp_hier import POMDP
        >>> tiny = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]]).compiled
        >>> outcome_matrix(tiny, 0).toarray()
        array([[0.5, 0. , 0. , 0.5],
               [0. , 0. , 0. , 1. ]])
    """
    size, count = compiled.n_states, compiled.n_observations
    if compiled.observation is None:
        matrix = (compiled.joint or ())[action].copy()
    elif 2 * compiled.observation[action].nnz > size * count:  # dense likelihoods: a block per observation
        transition, likelihood = compiled.transition[action], compiled.observation[action].toarray()
        index, indptr = transition.indices.astype(np.int64), transition.indptr.astype(np.int64)
        blocks = [
            sparse.csr_array((transition.data * likelihood[index, o], index, indptr), shape=(size, size))
            for o in range(count)
        ]
        matrix = sparse.hstack(blocks, format="csr")
        matrix.sort_indices()
    else:
        transition, likelihood = compiled.transition[action], compiled.observation[action]
        lengths = np.diff(likelihood.indptr)[transition.indices]  # of the observations after each entry
        ends = np.cumsum(lengths)
        entry = np.repeat(likelihood.indptr[transition.indices] - (ends - lengths), lengths) + np.arange(ends[-1])
        column = likelihood.indices[entry].astype(np.int64) * size + np.repeat(transition.indices, lengths)
        value = np.repeat(transition.data, lengths) * likelihood.data[entry]
        indptr = np.append(0, ends)[transition.indptr]
        matrix = sparse.csr_array((value, column, indptr), shape=(size, size * count))
        matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


# V(b) of a terminal belief, whatever the leaf value and the models
TERMINAL_VALUE = 0


def where_to_decide(
    problem: POMDP, belief: Belief | None, observation: Hashable = None
) -> tuple[Belief, tuple[Any, ...]]:
    """Return the belief (the initial one for ``None``) and its legal actions, at least one.

    Raises:
        ModelError: The problem is not a `POMDP`, or the belief is not one over its states.
        PlanningError: The belief is terminal.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> where_to_decide(tiger(), {"tiger-left": 0.25, "tiger-right": 0.75})[1]
        ('listen', 'open-left', 'open-right')
    """
    require_problem(problem, "decide")
    belief = problem.initial_belief if belief is None else problem.as_belief(belief)
    return belief, legal_actions(problem, belief, observation)


def legal_actions(problem: POMDP, belief: Belief, observation: Hashable = None) -> tuple[Any, ...]:
    """Return the legal actions at the belief, at least one.

    Raises:
        PlanningError: The belief is terminal.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait"])
        >>> legal_actions(stay, stay.initial_belief)
        ('wait',)
    """
    actions = problem.actions(belief, observation)
    if not actions:
        raise PlanningError(
            f"belief: got terminal states alone (the first: {brief(belief.support[0])}); expected one that is not "
            "terminal."
        )
    return actions


def is_tied(value: Number, best: Number, tolerance: float = 0.0) -> bool:
    """Return whether ``best - value <= tolerance``; symbolic expressions must be equal.

    Example:
        >>> is_tied(1.0, 1.0 + 1e-12), is_tied(1.0, 1.0 + 1e-12, tolerance=1e-9)
        (False, True)
    """
    if is_symbolic(value) or is_symbolic(best):
        return bool(value == best)
    return bool(value == best) or bool(best - value <= tolerance)


def best_and_tied(q_values: Mapping[Any, Number], tolerance: float = 0.0) -> tuple[Number, tuple[Any, ...]]:
    """Return the greatest value and the actions that have it, in the order given.

    Example:
        >>> best_and_tied({"left": 1, "wait": 0, "right": 1})
        (1, ('left', 'right'))
    """
    best = largest(q_values.values())
    return best, tuple(action for action, value in q_values.items() if is_tied(value, best, tolerance))


def largest(values: Iterable[Number]) -> Number:
    """Return the greatest value; for expressions that cannot be compared, their symbolic maximum.

    Example:
        >>> largest([1, 3, 2])
        3
    """
    first, *others = values
    best = first
    for value in others:
        try:
            best = value if value > best else best
        except TypeError:  # sympy: a relation between symbols has no truth value
            from sympy import Max

            best = Max(best, value)
    return best
