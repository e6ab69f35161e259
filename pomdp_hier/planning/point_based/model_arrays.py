"""A compiled problem in the array layout of the solver, its outcomes, and values of controllers on it.

The layout has nonterminal states only, and one CSR row per action and state. Terminal states have value 0, so the
weights of a belief sum to at most 1, and values are homogeneous: ``V(c w) = c V(w)`` for unnormalised weights ``w``.
Where legal actions depend on the last observation, a state is a pair of the state and the set of legal actions. All
legality is then by state.

In tables of values, -inf marks an action that is not legal. No sum of values is -inf, as `require_float_range` raises
for problems whose values overflow. Weights and probabilities are positive there, because 0 times -inf is NaN.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._io.formats import memory_available
from pomdp_hier._progress import Stop, StoppedEarlyError, look, never
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, PlanningError, Setting
from pomdp_hier.planning.decision import outcome_matrix, reachable_pairs
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.spaces import require_observation
from pomdp_hier.pomdp.tabular import TabularPOMDP

_OUTCOME_BYTES = 64  # of memory while an outcome is laid out, and of its bounds
AT_ONCE = 1_000_000  # outcomes that are laid out between two questions whether to stop, some hundredths of a second
_ROUNDED = 1e-12  # from 1, of the sum of likelihoods: within the rounding of every bound


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

    The outcomes are laid out on first use, or by `lay_out`, which can be left. The `steps` need no outcomes.

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

    # --- outcomes ------------------------------------------------------------------------------------------------

    @property
    def is_laid_out(self) -> bool:
        """Whether the outcomes are laid out."""
        return "_laid_out" in self.__dict__

    def lay_out(self, stop: Stop = never, most_bytes: float = math.inf) -> None:
        """Lay out the outcomes, a block of states after the other.

        Args:
            stop: Whether to leave.
            most_bytes: The memory that more than one block of them may take.

        Raises:
            StoppedEarlyError: It was left.
            PlanningError: They exceed the available memory.
        """
        if self.is_laid_out:
            return
        needed, most = self.n_outcomes * _OUTCOME_BYTES, memory_available()
        if needed > most:
            raise PlanningError(
                f"problem: got {self.n_outcomes:,} outcomes of positive probability, {needed / 2**30:z,.2g} GiB; "
                f"expected at most {most // _OUTCOME_BYTES:,}, {most / 2**30:z,.2g} GiB, the available memory. Merge "
                "states or observations, or plan online, with RTBSS or POUCT."
            )
        if self.is_large and needed > most_bytes:
            raise StoppedEarlyError
        self.__dict__["_laid_out"] = _laid_out(self, stop)

    @cached_property
    def _laid_out(self) -> tuple[tuple[Ints, Ints, Floats, int], "Outcomes"]:
        return _laid_out(self, never)

    @property
    def outcomes(self) -> "Outcomes":
        """The outcomes by action, state and observation."""
        return self._laid_out[1]

    @property
    def layout(self) -> tuple[Ints, Ints, Floats, int]:
        """``indptr``, ``column``, ``probability`` and n.

        The first three are a CSR matrix whose row ``a n + s`` has ``p(s', o | s, a)`` at column ``o n + s'``.
        """
        return self._laid_out[0]

    @cached_property
    def _row_ends(self) -> tuple[Ints, ...]:
        """The number of outcomes ``[S + 1]`` of each action before each state of the problem."""
        compiled = self.compiled
        if compiled.observation is None:
            return tuple(matrix.indptr.astype(np.int64) for matrix in compiled.joint or ())
        ends = []
        for transition, likelihood in zip(compiled.transition, compiled.observation, strict=True):
            counts = np.diff(likelihood.indptr)[transition.indices]
            ends.append(np.append(0, np.cumsum(counts))[transition.indptr])
        return tuple(ends)

    @cached_property
    def n_outcomes(self) -> int:
        """The number of outcomes of all actions and states, about that of those laid out."""
        return sum(int(ends[-1]) for ends in self._row_ends)

    @property
    def is_large(self) -> bool:
        """Whether laying out the outcomes takes long, so that bounds without them come first."""
        return self.n_outcomes > AT_ONCE

    @cached_property
    def n_transitions(self) -> Ints:
        """The number of outcomes ``[A]`` of each action over all states."""
        counts: Ints = np.diff(self.layout[0][:: max(1, self.size)])
        return counts

    # --- without outcomes ----------------------------------------------------------------------------------------

    @property
    def has_early_steps(self) -> bool:
        """Whether the `steps` need no outcomes, as legality is not by observation."""
        return self.compiled.legal_after is None

    @cached_property
    def steps(self) -> tuple[sparse.csr_array, ...]:
        """The probabilities ``[n, n]`` of the nonterminal next states, over all observations, of each action."""
        if self.has_early_steps:
            return tuple(self._step(a) for a in range(self.n_actions))
        indptr, column, probability, n = self.layout
        merged = sparse.csr_array((probability, column % max(1, n), indptr), shape=(len(indptr) - 1, n))
        return tuple(merged[a * n : (a + 1) * n] for a in range(self.n_actions))

    def _step(self, a: int) -> sparse.csr_array:
        compiled, n = self.compiled, self.compiled.n_states
        if compiled.observation is None:
            joint = (compiled.joint or ())[a]
            whole = sparse.csr_array((joint.data, joint.indices % n, joint.indptr), shape=(n, n))
        else:
            whole, likelihood = compiled.transition[a], compiled.observation[a]
            sums = np.where(np.diff(likelihood.indptr) > 0, likelihood @ np.ones(likelihood.shape[1]), 1.0)
            if np.abs(sums - 1).max(initial=0.0) > _ROUNDED:  # of a file
                whole = sparse.csr_array((whole.data * sums[whole.indices], whole.indices, whole.indptr), whole.shape)
        if self.size < n:
            whole = whole[self.state][:, self.state]
        if not self.legal[a].all():
            whole = sparse.csr_array(sparse.diags_array(self.legal[a].astype(np.float64)) @ whole)
            whole.eliminate_zeros()
        return whole

    @cached_property
    def unobserved(self) -> "SolverModel":
        """The model with its `steps` as outcomes, all of one observation."""
        model, merged = replace(self), sparse.csr_array(sparse.vstack(self.steps, format="csr"))
        layout = merged.indptr.astype(np.int64), merged.indices.astype(np.int64), merged.data, self.size
        model.__dict__["_laid_out"] = layout, None
        return model

    @cached_property
    def row_sums(self) -> Floats:
        """The probabilities ``[A, n]`` of a nonterminal next state; just above 1 where rows of a file are rounded."""
        return np.stack([step @ np.ones(self.size) for step in self.steps])

    @cached_property
    def share_kept(self) -> float:
        """The least part of a common fall of values that a backup keeps: discount times least row sum."""
        least = (
            float(self.row_sums.min(initial=1.0)) if self.legal.all() else 0.0
        )  # without legal actions, values are 0
        return self.discount * least

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
        longest = np.zeros(self.size)
        for _ in range(self.size + 1):
            ahead = np.stack([step @ longest for step in self.steps])
            longer = 1 + self.discount * ahead.max(axis=0)
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
    """Return the set of legal actions after one of the problem's observations, ``None`` for the start."""
    require_observation(observation)
    if observation is not None and observation not in compiled.observation_index:
        raise ModelError(f"observation: got {brief(observation)}; expected one of {listed(compiled.observations)}.")
    return int(kind_after[-1 if observation is None else compiled.observation_index[observation]])


def solver_model(
    compiled: TabularPOMDP, start: Floats | None = None, observation: Hashable = None, stop: Stop = never
) -> SolverModel:
    """Return the layout of a problem.

    Args:
        compiled: The problem.
        start: ``[S]``, the start belief, which determines the pairs of state and legal set; by default the initial
            belief.
        observation: The last observation before the start, which determines the legal actions there.
        stop: Whether to leave the search for pairs.

    Raises:
        ModelError: The observation is not one of the problem's.
        StoppedEarlyError: It was left.

    Example:
        >>> from pomdp_hier import POMDP
        >>> once = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1], [1]]], R=[[1, 0]], terminal=[1])
        >>> model = solver_model(once.compiled)
        >>> model.state.tolist(), model.row_sums.tolist()
        ([0], [[0.5]])
    """
    kind_after = np.zeros(compiled.n_observations + 1, dtype=np.int64)
    if compiled.legal_after is not None:
        _, kind_after = np.unique(compiled.legal_after, axis=0, return_inverse=True)
        kind_after = kind_after.ravel().astype(np.int64)
    at_start = _kind(compiled, kind_after, observation)
    pairs = reachable_pairs(compiled, kind_after, compiled.initial if start is None else start, at_start, stop)
    legal = compiled.legal[:, pairs[:, 0]]
    if compiled.legal_after is not None:
        of_kind = np.zeros((int(kind_after.max()) + 1, compiled.n_actions), dtype=bool)
        of_kind[kind_after] = compiled.legal_after
        legal = legal & of_kind[pairs[:, 1]].T
    return _model(compiled, kind_after, at_start, pairs, legal)


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
    return _model(compiled, kind_after, 0, pairs, compiled.legal[:, pairs[:, 0]])


def _model(compiled: TabularPOMDP, kind_after: Ints, at_start: int, pairs: Ints, legal: Bools) -> SolverModel:
    """Return the layout of pairs ``[n, 2]`` of state and kind."""
    state = pairs[:, 0].copy()
    return SolverModel(
        compiled=compiled,
        state=state,
        kind=pairs[:, 1].copy(),
        kind_after=kind_after,
        at_start=at_start,
        reward=np.where(legal, compiled.reward[:, state], 0.0),
        legal=legal,
    )


def _blocks(model: SolverModel, stop: Stop) -> Iterator[tuple[int, slice]]:
    """Yield each action with blocks of states of about `AT_ONCE` outcomes; the first whatever the limits."""
    since, size = 0, model.compiled.n_states
    for a, ends in enumerate(model._row_ends):
        first = 0
        while first < size:
            if since >= AT_ONCE:
                look(stop)
                since = 0
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + AT_ONCE, side="right")) - 1)
            since += int(ends[last] - ends[first])
            yield a, slice(first, last)
            first = last


def _laid_out(model: SolverModel, stop: Stop) -> tuple[tuple[Ints, Ints, Floats, int], "Outcomes"]:
    """Return the outcomes of every action and nonterminal state; rows of illegal actions are empty."""
    compiled, legal, n = model.compiled, model.legal, model.size
    n_kinds = int(model.kind_after.max()) + 1
    position = np.full((compiled.n_states, n_kinds), -1, dtype=np.int64)
    position[model.state, model.kind] = np.arange(n)
    most = model.n_outcomes * n_kinds
    column, probability = np.empty(most, dtype=np.int64), np.empty(most)
    state = np.empty(most, dtype=np.int32 if max(n, most) < 2**31 else np.int64)
    lengths = np.zeros((model.n_actions, n), dtype=np.int64)
    begun, rows, seen, usable = [], [], [], []
    count = 0
    for a, states in _blocks(model, stop):
        matrix = outcome_matrix(compiled, a, states)
        if n == compiled.n_states and n_kinds == 1 and legal[a].all():  # nothing to leave out or to move
            above, per_row, columns, values = states.start, np.diff(matrix.indptr), matrix.indices, matrix.data
        else:
            row, columns, values = _moved(model, a, matrix, states.start, position)
            above = int(row[0]) if len(row) else 0
            per_row = np.bincount(row - above)
        lengths[a, above : above + len(per_row)] += per_row
        ends = np.append(0, np.cumsum(per_row))
        observation = columns // max(1, n)  # ascending in each row
        begins = np.ones(len(columns), dtype=bool)
        np.not_equal(observation[1:], observation[:-1], out=begins[1:])
        begins[ends[:-1][per_row > 0]] = True
        first = np.flatnonzero(begins)
        here = slice(count, count + len(columns))
        column[here], probability[here] = columns, values
        np.subtract(columns, observation * max(1, n), out=state[here], casting="same_kind")
        row = above + np.repeat(np.arange(len(per_row)), np.diff(np.searchsorted(first, ends)))
        begun.append(first + count)
        rows.append(a * n + row)
        seen.append(observation[first].astype(np.int64))
        if not legal.all():
            parts = values, state[here], np.append(first, len(columns))
            usable.append(sparse.csr_array(parts, shape=(len(first), n)) @ (~legal).T.astype(np.float64) == 0)
        count += len(columns)
    column, probability, state = column[:count], probability[:count], state[:count]
    indptr = np.append(np.concatenate([np.zeros(0, dtype=np.int64), *begun]), count).astype(state.dtype)
    found = Outcomes(
        sparse.csr_array((probability, state, indptr), shape=(len(indptr) - 1, n)),
        np.concatenate([np.zeros(0, dtype=np.int64), *rows]),
        np.concatenate([np.zeros(0, dtype=np.int64), *seen]),
        np.concatenate(usable) if usable else np.broadcast_to(np.True_, (len(indptr) - 1, model.n_actions)),
    )
    return (np.append(0, np.cumsum(lengths)), column, probability, n), found


def _moved(
    model: SolverModel, a: int, matrix: sparse.csr_array, first: int, position: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return row, column and probability of the outcomes ``[m, O * S]`` in states from the first on, in order.

    The rows are those of pairs of state and kind, by their position ``[S, C]``, -1 for none; without illegal ones.
    """
    entries, n = matrix.tocoo(), model.size
    observation, next_state = np.divmod(entries.col.astype(np.int64), model.compiled.n_states)
    target = position[next_state, model.kind_after[observation]]
    parts = []
    for source in position[entries.row + first].T:
        kept = np.flatnonzero((source >= 0) & (target >= 0))
        kept = kept[model.legal[a, source[kept]]]
        parts.append((source[kept], observation[kept] * n + target[kept], entries.data[kept]))
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    key = row * (n * model.n_observations) + column
    if (np.diff(key) < 0).any():
        order = np.argsort(key, kind="stable")
        row, column, value = row[order], column[order], value[order]
    return row, column, value


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
