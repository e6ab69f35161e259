"""Decisions and policies: the interface, ties between actions, terminal beliefs."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._progress import Stop, look
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import PlanningError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.tabular import TabularPOMDP

_STATES, _EDGES = 100, 100_000  # of which pairs are searched at once, and between two questions whether to stop


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


def outcome_matrix(compiled: TabularPOMDP, action: int, rows: slice = slice(None)) -> sparse.csr_array:
    """``[S, O * S']``, ``p(s', o | s, a)`` at column ``o * S + s'``, without stored zeros.

    Args:
        compiled: The problem.
        action: The position of the action.
        rows: The positions of the states s; by default all.

    Example:
        >>> from pomdp_hier import POMDP
        >>> tiny = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]]).compiled
        >>> outcome_matrix(tiny, 0).toarray()
        array([[0.5, 0. , 0. , 0.5],
               [0. , 0. , 0. , 1. ]])
    """
    size, count = compiled.n_states, compiled.n_observations
    if compiled.observation is None:
        matrix = (compiled.joint or ())[action][rows].copy()
        matrix.sort_indices()
        matrix.eliminate_zeros()
        return matrix
    transition, likelihood = compiled.transition[action], compiled.observation[action]
    transition = transition if rows == slice(None) else transition[rows]
    height, kind = transition.shape[0], np.int32 if size * count < 2**31 else np.int64
    if 2 * transition.nnz > height * size:  # dense: in each row the same columns, in order
        by_observation = likelihood.T.tocsr()
        by_observation.sort_indices()
        next_state = by_observation.indices
        begin = np.arange(0, size * count, size, dtype=kind)
        column = np.repeat(begin, np.diff(by_observation.indptr)) + next_state
        value = (transition.toarray()[:, next_state] * by_observation.data).ravel()
        parts = value, np.tile(column, height), np.arange(height + 1) * len(column)
        matrix = sparse.csr_array(parts, shape=(height, size * count))
    else:
        lengths = np.diff(likelihood.indptr)[transition.indices]  # of the observations after each entry
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        entry = np.repeat(likelihood.indptr[transition.indices] - (ends - lengths), lengths) + np.arange(total)
        column = likelihood.indices[entry].astype(kind) * kind(size) + np.repeat(transition.indices, lengths)
        value = np.repeat(transition.data, lengths) * likelihood.data[entry]
        indptr = np.append(0, ends)[transition.indptr]
        matrix = sparse.csr_array((value, column, indptr), shape=(height, size * count))
        matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


def reachable_pairs(compiled: TabularPOMDP, kind_after: Ints, start: Floats, at_start: int, stop: Stop) -> Ints:
    """Return ``[n, 2]``, the nonterminal pairs of state and kind: all, or where it matters the reachable ones."""
    nonterminal = np.flatnonzero(~compiled.terminal)
    if compiled.legal_after is None:
        reached = nonterminal if compiled.discount < 1 else _reachable(compiled, start)
        return np.stack([reached, np.zeros_like(reached)], axis=1)
    size = compiled.n_states
    edges: list[set[tuple[int, int]]] = [set() for _ in range(size)]
    since = 0
    for a in range(compiled.n_actions):
        for first in range(0, size, _STATES):
            if since > _EDGES:
                look(stop)
                since = 0
            matrix = outcome_matrix(compiled, a, slice(first, first + _STATES)).tocoo()
            since += matrix.nnz
            observation, next_state = np.divmod(matrix.col.astype(np.int64), size)
            kinds = kind_after[observation].tolist()
            for s, t, c in zip((matrix.row + first).tolist(), next_state.tolist(), kinds, strict=True):
                edges[s].add((t, c))
    met = dict.fromkeys((s, at_start) for s in nonterminal.tolist() if start[s] > 0)
    queue = list(met)
    for s, _ in queue:  # grows while it is walked
        for pair in sorted(edges[s]):
            if pair not in met and not compiled.terminal[pair[0]]:
                met[pair] = None
                queue.append(pair)
    return np.array(sorted(met), dtype=np.int64).reshape(-1, 2)


def _reachable(compiled: TabularPOMDP, start: Floats) -> Ints:
    """Return the nonterminal states that can be reached from the start, in order."""
    from scipy.sparse.csgraph import breadth_first_order

    size = compiled.n_states
    together = sum(compiled.transition[1:], compiled.transition[0])
    begins = sparse.csr_array((start > 0).astype(np.float64)[None, :])
    graph = sparse.block_array([[together, None], [begins, sparse.csr_array((1, 1))]], format="csr")
    graph.eliminate_zeros()
    met = np.sort(breadth_first_order(graph, size, return_predecessors=False))[:-1].astype(np.int64)
    return met[~compiled.terminal[met]]


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
