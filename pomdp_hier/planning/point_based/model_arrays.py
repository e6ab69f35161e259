"""A compiled problem in the array layout of the solver, its outcomes, and values of controllers on it.

The layout has nonterminal states only, and one CSR row per action and state. Terminal states have value 0, so the
weights of a belief sum to at most 1, and values are homogeneous: ``V(c w) = c V(w)`` for unnormalised weights ``w``.
Where legal actions depend on the last observation, a state is a pair of the state and the set of legal actions. All
legality is then by state.

In tables of values, -inf marks an action that is not legal. No sum of values is -inf, as `require_float_range` raises
for problems whose values overflow. Weights and probabilities are positive there, because 0 times -inf is NaN.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._io.formats import memory_available
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, PlanningError, Setting
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.spaces import require_observation
from pomdp_hier.pomdp.tabular import TabularPOMDP

_OUTCOME_BYTES = 64  # of memory while an outcome is laid out, and of its bounds


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
    _require_memory(compiled)
    kind_after = np.zeros(compiled.n_observations + 1, dtype=np.int64)
    if compiled.legal_after is not None:
        _, kind_after = np.unique(compiled.legal_after, axis=0, return_inverse=True)
        kind_after = kind_after.ravel().astype(np.int64)
    at_start = _kind(compiled, kind_after, observation)
    pairs = _pairs(compiled, kind_after, compiled.initial if start is None else start, at_start)
    legal = compiled.legal[:, pairs[:, 0]]
    if compiled.legal_after is not None:
        of_kind = np.zeros((int(kind_after.max()) + 1, compiled.n_actions), dtype=bool)
        of_kind[kind_after] = compiled.legal_after
        legal = legal & of_kind[pairs[:, 1]].T
    return _laid_out(compiled, kind_after, at_start, pairs, legal)


def _require_memory(compiled: TabularPOMDP) -> None:
    """Raise an error for a problem whose outcomes exceed the available memory."""
    joint = compiled.joint or ()
    count = sum(
        joint[a].nnz if compiled.observation is None else int(np.diff(compiled.observation[a].indptr)[t.indices].sum())
        for a, t in enumerate(compiled.transition)
    )
    needed, most = count * _OUTCOME_BYTES, memory_available()
    if needed > most:
        raise PlanningError(
            f"problem: got {count:,} outcomes of positive probability, {needed / 2**30:z,.2g} GiB; expected at most "
            f"{most // _OUTCOME_BYTES:,}, {most / 2**30:z,.2g} GiB, the available memory. Merge states or "
            "observations, or plan online, with RTBSS or POUCT."
        )


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
    return _laid_out(compiled, kind_after, 0, pairs, compiled.legal[:, pairs[:, 0]])


def _outcome_matrix(compiled: TabularPOMDP, action: int) -> sparse.csr_array:
    matrix = outcome_matrix(compiled, action)
    matrix.sort_indices()
    return matrix


def _laid_out(compiled: TabularPOMDP, kind_after: Ints, at_start: int, pairs: Ints, legal: Bools) -> SolverModel:
    """Return the layout of pairs ``[n, 2]`` of state and kind."""
    state, kind = pairs[:, 0].copy(), pairs[:, 1].copy()
    indptr, column, probability = _flatten(compiled, kind_after, pairs, legal)
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


def _pairs(compiled: TabularPOMDP, kind_after: Ints, start: Floats, at_start: int) -> Ints:
    """Return ``[n, 2]``, the nonterminal pairs of state and kind: all, or where it matters the reachable ones."""
    nonterminal = np.flatnonzero(~compiled.terminal)
    if compiled.legal_after is None and compiled.discount < 1:
        return np.stack([nonterminal, np.zeros_like(nonterminal)], axis=1)
    size = compiled.n_states
    edges: list[set[tuple[int, int]]] = [set() for _ in range(size)]
    for matrix in (_outcome_matrix(compiled, a).tocoo() for a in range(compiled.n_actions)):
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


def _flatten(compiled: TabularPOMDP, kind_after: Ints, pairs: Ints, legal: Bools) -> tuple[Ints, Ints, Floats]:
    """Return the outcomes of every action and nonterminal state as one CSR matrix; illegal rows are empty."""
    size, n = compiled.n_states, len(pairs)
    n_kinds = int(kind_after.max()) + 1
    position = np.full((size, n_kinds), -1, dtype=np.int64)
    position[pairs[:, 0], pairs[:, 1]] = np.arange(n)
    lengths, columns, values = [], [], []
    for a in range(compiled.n_actions):
        whole = _outcome_matrix(compiled, a)
        if n == size and n_kinds == 1 and legal[a].all():  # nothing to leave out or to move
            lengths.append(np.diff(whole.indptr))
            columns.append(whole.indices)
            values.append(whole.data)
            continue
        matrix = whole.tocoo()
        observation, next_state = np.divmod(matrix.col.astype(np.int64), size)
        target = position[next_state, kind_after[observation]]
        parts = []
        for c in range(n_kinds):
            source = position[matrix.row, c]
            kept = np.flatnonzero((source >= 0) & (target >= 0) & legal[a, source])
            parts.append((source[kept], observation[kept] * n + target[kept], matrix.data[kept]))
        row, column, value = (np.concatenate(part) if n_kinds > 1 else part[0] for part in zip(*parts, strict=True))
        key = row * (n * compiled.n_observations) + column
        if (np.diff(key) < 0).any():
            order = np.argsort(key, kind="stable")
            column, value = column[order], value[order]
        lengths.append(np.bincount(row, minlength=n))
        columns.append(column)
        values.append(value)
    indptr = np.append(0, np.cumsum(np.concatenate(lengths)))
    return indptr, np.concatenate(columns, dtype=np.int64), np.concatenate(values)


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
    observation = model.column // max(1, model.size)  # ascending in each row
    begins = np.ones(len(observation), dtype=bool)
    np.not_equal(observation[1:], observation[:-1], out=begins[1:])
    begins[model.indptr[:-1][model.indptr[:-1] < len(begins)]] = True
    first = np.flatnonzero(begins)
    kind = np.int32 if model.size < 2**31 and len(observation) < 2**31 else np.int64
    state = np.subtract(model.column, observation * model.size, dtype=np.int64).astype(kind)
    indptr = np.append(first, len(observation)).astype(kind)
    matrix = sparse.csr_array((model.probability, state, indptr), shape=(len(first), model.size))
    row = np.searchsorted(model.indptr, first, side="right") - 1
    observation = observation[first]
    if model.legal.all():
        usable = np.broadcast_to(np.True_, (len(first), model.n_actions))  # of no memory
    else:
        usable = np.asarray(matrix @ (~model.legal).T.astype(np.float64)) == 0
    return Outcomes(matrix, row, observation, usable)


def best_usable(values: Floats, usable: Bools | None, otherwise: float = 0.0) -> Floats:
    """Return the row maxima ``[M]`` over usable entries, or ``otherwise`` where none is.

    Args:
        values: ``[M, K]``.
        usable: ``[M, K]``; ``None`` if all are.
        otherwise: The value of a row without a usable entry.
    """
    best: Floats = np.full(len(values), -np.inf)
    for k in range(values.shape[1]):  # numpy's maximum along a short axis takes three times as long
        np.maximum(best, values[:, k], out=best, where=True if usable is None else usable[:, k])
    return np.where(best == -np.inf, otherwise, best)
