"""A compiled problem in the array layout of the solver, its outcomes, and values of controllers on it.

The layout has nonterminal states only, and one CSR row per action and state. Terminal states have value 0, so the
weights of a belief sum to at most 1, and values are homogeneous: ``V(c w) = c V(w)`` for unnormalised weights ``w``.
Where legal actions depend on the last observation, a state is a pair of the state and the set of legal actions; all
legality is then by state.

In tables of values, -inf marks an action that is not legal. No sum of values is -inf, as `require_float_range` raises
for problems whose values overflow. Weights and probabilities are positive there, because 0 times -inf is NaN.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, Setting
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.spaces import require_observation
from pomdp_hier.pomdp.tabular import TabularPOMDP


@dataclass(frozen=True, eq=False, kw_only=True)
class SolverModel:
    """The arrays of the solver: n nonterminal states, A actions, O observations.

    Attributes:
        compiled: The problem.
        state: ``[n]``, the position of each nonterminal state in the problem.
        kind: ``[n]``, the set of legal actions, 0 where legality is not by observation.
        kind_after: ``[O + 1]``, the set of legal actions after each observation, and after none.
        at_start: The set of legal actions at the start.
        reward: ``[A, n]``, ``R(s, a)``.
        legal: ``[A, n]``, bool.
        indptr, column, probability: A CSR matrix whose row ``a n + s`` has ``p(s', o | s, a)`` at column ``o n + s'``.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> solver_model(tiger().compiled).size
        2
    """

    compiled: TabularPOMDP = field(repr=False)
    state: Ints = field(repr=False)
    kind: Ints = field(repr=False)
    kind_after: Ints = field(repr=False)
    at_start: int
    reward: Floats = field(repr=False)
    legal: Bools = field(repr=False)
    indptr: Ints = field(repr=False)
    column: Ints = field(repr=False)
    probability: Floats = field(repr=False)

    @property
    def size(self) -> int:
        """The number of nonterminal states."""
        return len(self.state)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.reward)

    @property
    def n_observations(self) -> int:
        """The number of observations."""
        return self.compiled.n_observations

    @property
    def discount(self) -> float:
        """The discount gamma."""
        return self.compiled.discount

    @cached_property
    def n_transitions(self) -> Ints:
        """The number of outcomes ``[A]`` of each action over all states."""
        counts: Ints = np.diff(self.indptr[:: max(1, self.size)])
        return counts

    @cached_property
    def row_sums(self) -> Floats:
        """The probabilities ``[A, n]`` of a nonterminal next state; just above 1 where rows of a file are rounded."""
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        sums = np.bincount(rows, weights=self.probability, minlength=len(self.indptr) - 1).astype(np.float64)
        return sums.reshape(self.n_actions, self.size)

    @cached_property
    def shrink(self) -> float:
        """The contraction factor of a backup: the discount times the greatest row sum.

        A sum that is 1 up to rounding counts as 1. Otherwise ``1 / (1 - shrink)`` would be 1e16 without contraction.
        """
        most = float(self.row_sums.max(initial=0.0))
        return self.discount * (1.0 if 1.0 - 1e-9 < most < 1.0 else most)

    @cached_property
    def slack(self) -> Floats:
        """The accumulated error ``[n]`` of an error of 1 per backup.

        It solves ``w(s) = 1 + gamma max_a sum_s' p(s' | s, a) w(s')``.
        Where a backup is a contraction, it is at most ``1 / (1 - shrink)``. For a discount of 1 it is the number of
        actions until termination.

        Raises:
            ModelError: The discount is 1, and the process may not terminate.
        """
        if self.shrink < 1:
            return np.full(self.size, 1 / (1 - self.shrink))
        row = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        longest = np.zeros(self.size)
        for _ in range(self.size + 1):
            ahead = np.bincount(
                row, weights=self.probability * longest[self.column % self.size], minlength=self.legal.size
            )
            longer = 1 + self.discount * ahead.reshape(self.legal.shape).max(axis=0)
            if (longer == longest).all():
                return longest
            longest = longer
        most = float(self.row_sums.max())
        rows = f" with rows that sum to {most:.9g}" if most > 1 + 1e-9 else ""
        limit = math.floor(1e4 / max(most, 1.0)) / 1e4
        raise ModelError(
            f"discount: got {self.discount}{rows}; expected bounded values, as of a process that surely ends after n "
            "actions. Set ",
            Setting("horizon", 100),
            f", or a discount below {limit:g}.",
        )

    @cached_property
    def _position(self) -> dict[tuple[int, int], int]:
        pairs = zip(self.state.tolist(), self.kind.tolist(), strict=True)
        return {pair: i for i, pair in enumerate(pairs)}

    def weights(self, belief: Belief, observation: Hashable = None) -> Floats:
        """Return the belief as weights ``[n]`` of the nonterminal states.

        Args:
            belief: The belief.
            observation: The last observation, where legal actions depend on it.

        Raises:
            ModelError: A state or the observation is not one of the problem's, or is not reachable from the start.
        """
        compiled, kind = self.compiled, _kind(self.compiled, self.kind_after, observation)
        full = compiled.vector(belief)
        weights = np.zeros(self.size)
        for s in np.flatnonzero(full).tolist():
            if compiled.terminal[s]:
                continue
            if (s, kind) not in self._position:
                raise ModelError(
                    f"belief: got the state {brief(compiled.states[s])} after the observation {brief(observation)}; "
                    "expected one that is reachable from the belief of the solution. Solve with this belief and "
                    "observation."
                )
            weights[self._position[s, kind]] = full[s]
        return weights

    def dead_end(self, support: Ints) -> ModelError:
        """Return the error of weights under which no action is legal."""
        first = self.compiled.states[int(self.state[support[0]])]
        return ModelError(
            f"legal_actions: got none under a belief over {len(support)} states (the first: {brief(first)}); expected "
            "one that is legal in all of them. Make the states terminal, or add an action that waits."
        )


def _kind(compiled: TabularPOMDP, kind_after: Ints, observation: Hashable) -> int:
    """Return the set of legal actions after an observation, ``None`` for the start.

    Raises:
        ModelError: The observation is not one of the problem's.
    """
    require_observation(observation)
    if observation is not None and observation not in compiled.observation_index:
        raise ModelError(f"observation: got {brief(observation)}; expected one of {listed(compiled.observations)}.")
    return int(kind_after[-1 if observation is None else compiled.observation_index[observation]])


def solver_model(compiled: TabularPOMDP, start: Floats | None = None, observation: Hashable = None) -> SolverModel:
    """Return the layout of a problem.

    Args:
        compiled: The problem.
        start: ``[S]``, the start belief, which determines the pairs of state and legal set; by default the initial
            belief.
        observation: The last observation before the start, which determines the legal actions there.

    Raises:
        ModelError: The observation is not one of the problem's.

    Example:
        >>> from pomdp_hier import POMDP
        >>> once = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1], [1]]], R=[[1, 0]], terminal=[1])
        >>> model = solver_model(once.compiled)
        >>> model.state.tolist(), model.row_sums.tolist()
        ([0], [[0.5]])
    """
    outcomes = _matrices(compiled)
    kind_after = np.zeros(compiled.n_observations + 1, dtype=np.int64)
    if compiled.legal_after is not None:
        _, kind_after = np.unique(compiled.legal_after, axis=0, return_inverse=True)
        kind_after = kind_after.ravel().astype(np.int64)
    at_start = _kind(compiled, kind_after, observation)
    pairs = _pairs(compiled, outcomes, kind_after, compiled.initial if start is None else start, at_start)
    legal = compiled.legal[:, pairs[:, 0]]
    if compiled.legal_after is not None:
        of_kind = np.zeros((int(kind_after.max()) + 1, compiled.n_actions), dtype=bool)
        of_kind[kind_after] = compiled.legal_after
        legal = legal & of_kind[pairs[:, 1]].T
    return _laid_out(compiled, outcomes, kind_after, at_start, pairs, legal)


def state_model(compiled: TabularPOMDP) -> SolverModel:
    """Return the layout of all nonterminal states, with legality by state alone, for bounds that hold anywhere.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> state_model(tiger().compiled).state.tolist()
        [0, 1]
    """
    nonterminal = np.flatnonzero(~compiled.terminal)
    pairs = np.stack([nonterminal, np.zeros_like(nonterminal)], axis=1)
    kind_after = np.zeros(compiled.n_observations + 1, dtype=np.int64)
    return _laid_out(compiled, _matrices(compiled), kind_after, 0, pairs, compiled.legal[:, pairs[:, 0]])


def _matrices(compiled: TabularPOMDP) -> list[Any]:
    return [outcome_matrix(compiled, a).tocoo() for a in range(compiled.n_actions)]


def _laid_out(
    compiled: TabularPOMDP, outcomes: list[Any], kind_after: Ints, at_start: int, pairs: Ints, legal: Bools
) -> SolverModel:
    """Return the layout of pairs ``[n, 2]`` of state and kind."""
    state, kind = pairs[:, 0].copy(), pairs[:, 1].copy()
    indptr, column, probability = _flatten(compiled, outcomes, kind_after, pairs, legal)
    return SolverModel(
        compiled=compiled,
        state=state,
        kind=kind,
        kind_after=kind_after,
        at_start=at_start,
        reward=np.where(legal, compiled.reward[:, state], 0.0),
        legal=legal,
        indptr=indptr,
        column=column,
        probability=probability,
    )


def _pairs(compiled: TabularPOMDP, outcomes: list[Any], kind_after: Ints, start: Floats, at_start: int) -> Ints:
    """Return ``[n, 2]``, the nonterminal pairs of state and kind: all, or where it matters the reachable ones."""
    nonterminal = np.flatnonzero(~compiled.terminal)
    if compiled.legal_after is None and compiled.discount < 1:
        return np.stack([nonterminal, np.zeros_like(nonterminal)], axis=1)
    size = compiled.n_states
    edges: list[set[tuple[int, int]]] = [set() for _ in range(size)]
    for matrix in outcomes:
        observation, next_state = np.divmod(matrix.col.astype(np.int64), size)
        for s, t, c in zip(matrix.row.tolist(), next_state.tolist(), kind_after[observation].tolist(), strict=True):
            edges[s].add((t, c))
    met = dict.fromkeys((s, at_start) for s in nonterminal.tolist() if start[s] > 0)
    queue = list(met)
    for s, _ in queue:  # grows while it is walked
        for pair in sorted(edges[s]):
            if pair not in met and not compiled.terminal[pair[0]]:
                met[pair] = None
                queue.append(pair)
    return np.array(sorted(met), dtype=np.int64).reshape(-1, 2)


def _flatten(
    compiled: TabularPOMDP, outcomes: list[Any], kind_after: Ints, pairs: Ints, legal: Bools
) -> tuple[Ints, Ints, Floats]:
    """Return the outcomes of every action and nonterminal state as one CSR matrix; illegal rows are empty."""
    size, n = compiled.n_states, len(pairs)
    n_kinds = int(kind_after.max()) + 1
    position = np.full((size, n_kinds), -1, dtype=np.int64)
    position[pairs[:, 0], pairs[:, 1]] = np.arange(n)
    rows, columns, values = [], [], []
    for a, matrix in enumerate(outcomes):
        observation, next_state = np.divmod(matrix.col.astype(np.int64), size)
        target = position[next_state, kind_after[observation]]
        for c in range(n_kinds):
            source = position[matrix.row, c]
            kept = np.flatnonzero((source >= 0) & (target >= 0))
            kept = kept[legal[a, source[kept]]]
            rows.append(a * n + source[kept])
            columns.append(observation[kept] * n + target[kept])
            values.append(matrix.data[kept])
    row, column = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((column, row))
    indptr = np.zeros(compiled.n_actions * n + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=compiled.n_actions * n), out=indptr[1:])
    return indptr, column[order], np.concatenate(values)[order]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of a `SolverModel`: one row per action, state and observation of positive probability.

    Attributes:
        matrix: ``[G, n]`` CSR, ``p(s', o | s, a)``.
        row: ``[G]``, ``a n + s``.
        observation: ``[G]``.
        usable: ``[G, A]``, bool: the action is legal in every state that the outcome leads to.
    """

    matrix: sparse.csr_array
    row: Ints
    observation: Ints
    usable: Bools


def outcomes_of(model: SolverModel) -> Outcomes:
    """Return the outcomes by action, state and observation.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> outcomes_of(solver_model(tiger().compiled)).matrix.shape
        (12, 2)
    """
    row = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    observation, state = np.divmod(model.column, model.size)
    present, group = np.unique(row * model.n_observations + observation, return_inverse=True)
    matrix = sparse.csr_array((model.probability, (group.ravel(), state)), shape=(len(present), model.size))
    if model.legal.all():
        usable = np.ones((len(present), model.n_actions), dtype=bool)
    else:
        usable = np.asarray(matrix @ (~model.legal).T.astype(np.float64)) == 0
    return Outcomes(matrix, *np.divmod(present, model.n_observations), usable)


def best_usable(values: Floats, usable: Bools, otherwise: float = 0.0) -> Floats:
    """Return the row maxima ``[M]`` over usable entries, or ``otherwise`` where none is.

    Args:
        values: ``[M, K]``.
        usable: ``[M, K]``.
        otherwise: The value of a row without a usable entry.
    """
    best: Floats = np.full(len(values), -np.inf)
    for k in range(values.shape[1]):  # numpy's maximum along a short axis takes three times as long
        np.maximum(best, values[:, k], out=best, where=usable[:, k])
    return np.where(best == -np.inf, otherwise, best)


# --- values of controllers -------------------------------------------------------------------------------------------

_SMALL_SYSTEM = 4_000
_MOST_STEPS = 300


def controller_values(
    model: SolverModel, actions: Ints, after: Ints, guess: Floats | None = None
) -> tuple[Floats, int]:
    """Return ``[N, n]``, lower bounds on the values of a controller's nodes, and the number of products with P.

    With action ``a_k`` at node k and node ``k'(o)`` after observation o, the values solve
    ``v_k(s) = R(s, a_k) + gamma sum_o sum_s' p(s', o | s, a_k) v_k'(o)(s')``. A value is -inf where the controller can
    reach an action that is not legal.

    Args:
        model: The problem, whose `slack` is finite.
        actions: ``[N]``, the action of each node.
        after: ``[N, O]``, the next node after each observation; -1 where none is legal.
        guess: ``[N, n]``, the start of the iteration for a large system.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> listen, _ = controller_values(solver_model(tiger().compiled), np.array([0]), np.array([[0, 0]]))
        >>> listen.round(6).tolist()
        [[-20.0, -20.0]]
    """
    size = model.size
    order = np.argsort(actions, kind="stable")  # node by node is then action by action
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    following = np.where(after < 0, -1, rank[after])[order]
    columns, values, lengths = [], [], []
    for a in np.unique(actions).tolist():
        first, last = model.indptr[a * size], model.indptr[(a + 1) * size]
        observation, state = np.divmod(model.column[first:last], size)
        then = following[actions[order] == a][:, observation]
        columns.append(np.where(then < 0, -1, then * size + state).ravel())
        values.append(np.tile(model.probability[first:last], len(then)))
        lengths.append(np.tile(np.diff(model.indptr[a * size : (a + 1) * size + 1]), len(then)))
    column, value, length = np.concatenate(columns), np.concatenate(values), np.concatenate(lengths)
    lost = _lost(model, actions[order], column, length)
    reward = np.where(lost, 0.0, model.reward[actions[order]].ravel())
    if lost.any():
        row = np.repeat(np.arange(len(length)), length)
        kept = ~lost[row]
        column, value, length = column[kept], value[kept], np.bincount(row[kept], minlength=len(length))
    step = sparse.csr_array((value, column, np.append(0, np.cumsum(length))), shape=(len(length),) * 2)
    near = np.zeros_like(reward) if guess is None else guess[order].ravel()
    near = np.where(lost | ~np.isfinite(near), 0.0, near)
    solved, n_products = _below_solution(step, reward, model.discount, np.tile(model.slack, len(actions)), near)
    return np.where(lost, -np.inf, solved).reshape(len(actions), size)[rank], n_products


def _lost(model: SolverModel, actions: Ints, column: Ints, length: Ints) -> Bools:
    """Return ``[N n]``, whether a pair of node and state can reach an illegal action, or no node."""
    lost: Bools = ~model.legal[actions].ravel()
    if not lost.any() and column.min(initial=0) >= 0:
        return lost
    row = np.repeat(np.arange(len(length)), length)
    lost[row[column < 0]] = True
    before = -1
    while int(lost.sum()) != before:  # a predecessor of a lost pair is lost as well
        before = int(lost.sum())
        lost[row[lost[column]]] = True
    return lost


def _below_solution(
    step: sparse.csr_array, reward: Floats, discount: float, slack: Floats, near: Floats
) -> tuple[Floats, int]:
    """Return the solution of ``v = r + gamma P v``, less the residual and rounding errors.

    For any v, ``v - max(v - r - gamma P v) slack`` is at most the solution.

    Args:
        step: ``[M, M]``, P.
        reward: ``[M]``, r.
        discount: gamma.
        slack: ``[M]``, the accumulated error of an error of 1 per step.
        near: ``[M]``, the start of the iteration for a large system.
    """
    from scipy.sparse.linalg import LinearOperator, bicgstab, spsolve

    n_products = 0

    def applied(v: Floats) -> Floats:
        nonlocal n_products
        n_products += 1
        left: Floats = v - discount * (step @ v)
        return left

    if len(reward) <= _SMALL_SYSTEM:
        system = sparse.csc_array(sparse.eye_array(len(reward), format="csc") - discount * step.tocsc())
        values = np.asarray(spsolve(system, reward))
    else:
        system = LinearOperator(step.shape, matvec=applied, dtype=np.float64)
        unit = float(np.abs(reward).max(initial=0.0)) or 1.0  # squares of rewards may exceed floats
        values, _ = bicgstab(system, reward / unit, x0=near / unit, rtol=1e-10, atol=0.0, maxiter=_MOST_STEPS)
        values *= unit
        if not np.isfinite(values).all():
            values = np.zeros_like(reward)
    short = float((applied(values) - reward).max(initial=0.0))
    below: Floats = values - (max(0.0, short) + 1e-15 * float(np.abs(values).max(initial=0.0))) * slack
    return below, n_products
