"""A compiled problem laid out for point-based solvers: live states only, one row of outcomes for each action and state.

Once the process is over nothing more is earned, so terminal states are left out: what is left of a belief has a mass
below 1, and values are homogeneous, ``V(c w) = c V(w)`` for unnormalised weights ``w``. Where legal actions depend on
the last observation, a state is a pair of the state and the set of actions that the observation allows; from there on
all legality is by state.

In tables of values, -inf marks an action that is not legal: no sum of values is -inf, as `require_float_range` raises
for problems whose values overflow. Weights and probabilities are positive there, because 0 times -inf is NaN.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, Setting
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.pomdp import Belief, TabularPOMDP
from pomdp_hier.pomdp.name_checks import require_observation


@dataclass(frozen=True, eq=False, kw_only=True)
class SolverModel:
    """The arrays that a solver works on; n live states, A actions, O observations.

    Attributes:
        compiled: The problem.
        state: ``[n]``, the position of each live state in the problem.
        kind: ``[n]``, which of the sets of legal actions holds there, 0 where legality is not by observation.
        kind_after: ``[O + 1]``, the set that holds after each observation, and after none.
        at_start: The set that holds at the start.
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
        """How many live states there are."""
        return len(self.state)

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return len(self.reward)

    @property
    def n_observations(self) -> int:
        """How many observations there are."""
        return self.compiled.n_observations

    @property
    def discount(self) -> float:
        """The discount, gamma."""
        return self.compiled.discount

    @cached_property
    def n_transitions(self) -> Ints:
        """``[A]``, how many outcomes each action has over all states."""
        counts: Ints = np.diff(self.indptr[:: max(1, self.size)])
        return counts

    @cached_property
    def row_sums(self) -> Floats:
        """``[A, n]``, the probability that the process goes on; just above 1 where a file's rows are rounded so."""
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        sums = np.bincount(rows, weights=self.probability, minlength=len(self.indptr) - 1).astype(np.float64)
        return sums.reshape(self.n_actions, self.size)

    @cached_property
    def shrink(self) -> float:
        """The factor by which a backup brings two value functions closer: discount times the greatest row sum.

        A sum that is 1 but for rounding counts as 1: else ``1 / (1 - shrink)`` would be 1e16 where nothing shrinks.
        """
        most = float(self.row_sums.max(initial=0.0))
        return self.discount * (1.0 if 1.0 - 1e-9 < most < 1.0 else most)

    @cached_property
    def slack(self) -> Floats:
        """``[n]``, what an error of 1 a backup can add up to: ``w(s) = 1 + gamma max_a sum_s' p(s' | s, a) w(s')``.

        Where backups bring value functions closer, that is at most ``1 / (1 - shrink)``; without a discount it is the
        number of actions until the process is over.

        Raises:
            ModelError: The process may go on for ever without a discount.
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
        """Return the belief as weights ``[n]`` of the live states.

        Args:
            belief: What is believed.
            observation: The last observation, where legal actions depend on it.

        Raises:
            ModelError: A state or the observation is not one of the problem's, or cannot be met from the start.
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
    """Return which set of legal actions holds after an observation, ``None`` for the start.

    Raises:
        ModelError: The observation is not one of the problem's.
    """
    require_observation(observation)
    if observation is not None and observation not in compiled.observation_index:
        raise ModelError(f"observation: got {brief(observation)}; expected one of {listed(compiled.observations)}")
    return int(kind_after[-1 if observation is None else compiled.observation_index[observation]])


def solver_model(compiled: TabularPOMDP, start: Floats | None = None, observation: Hashable = None) -> SolverModel:
    """Return the layout of a problem.

    Args:
        compiled: The problem.
        start: ``[S]``, the belief to start from, which decides what pairs of state and legal set there are; the
            initial one by default.
        observation: The last observation before the start, which decides what is legal there.

    Raises:
        ModelError: The observation is not one of the problem's.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> once = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1], [1]]], R=[[1, 0]], terminal=[1])
        >>> model = solver_model(once.compiled)
        >>> model.state.tolist(), model.row_sums.tolist()
        ([0], [[0.5]])
    """
    outcomes = [outcome_matrix(compiled, a).tocoo() for a in range(compiled.n_actions)]
    kind_after = np.zeros(compiled.n_observations + 1, dtype=np.int64)
    if compiled.legal_after is not None:
        _, kind_after = np.unique(compiled.legal_after, axis=0, return_inverse=True)
        kind_after = kind_after.ravel().astype(np.int64)
    at_start = _kind(compiled, kind_after, observation)
    pairs = _pairs(compiled, outcomes, kind_after, compiled.initial if start is None else start, at_start)
    state, kind = pairs[:, 0].copy(), pairs[:, 1].copy()
    legal = compiled.legal[:, state]
    if compiled.legal_after is not None:
        of_kind = np.zeros((int(kind_after.max()) + 1, compiled.n_actions), dtype=bool)
        of_kind[kind_after] = compiled.legal_after
        legal = legal & of_kind[kind].T
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
    """Return ``[n, 2]``, the live pairs of state and kind: all, or where it matters those that can be met."""
    live = np.flatnonzero(~compiled.terminal)
    if compiled.legal_after is None and compiled.discount < 1:
        return np.stack([live, np.zeros_like(live)], axis=1)
    size = compiled.n_states
    edges: list[set[tuple[int, int]]] = [set() for _ in range(size)]
    for matrix in outcomes:
        observation, next_state = np.divmod(matrix.col.astype(np.int64), size)
        for s, t, c in zip(matrix.row.tolist(), next_state.tolist(), kind_after[observation].tolist(), strict=True):
            edges[s].add((t, c))
    met = dict.fromkeys((s, at_start) for s in live.tolist() if start[s] > 0)
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
    """Return the outcomes of every action and live state as one CSR matrix; unusable rows are empty."""
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


class Rows:
    """Sparse rows, as CSR arrays with room to spare.

    Attributes:
        indptr: ``[count + 1]`` and more, where each row begins.
        index, weight: Positions and weights of the entries.
        count: How many rows there are.
        n_entries: How many entries they have.
    """

    _beside: ClassVar[dict[str, type]] = {}

    def __init__(self) -> None:
        self.indptr: Ints = np.zeros(17, dtype=np.int64)
        self.index: Ints = np.zeros(64, dtype=np.int64)
        self.weight: Floats = np.zeros(64)
        self.count = self.n_entries = 0
        for name, kind in self._beside.items():
            setattr(self, name, np.zeros(16, dtype=kind))

    def append(self, offsets: Ints, index: Ints, weight: Floats) -> slice:
        """Append rows, and return which they are.

        Args:
            offsets: ``[n + 1]``, where each of the new rows begins in the entries given.
            index: The positions of the entries.
            weight: Their weights.
        """
        n = len(offsets) - 1
        if self.count + n >= len(self.indptr):
            self.indptr = _longer(self.indptr, self.count + n + 1)
            for name in self._beside:  # one entry less is used of each
                setattr(self, name, _longer(getattr(self, name), len(self.indptr)))
        if self.n_entries + len(index) > len(self.index):
            self.index = _longer(self.index, self.n_entries + len(index))
            self.weight = _longer(self.weight, self.n_entries + len(index))
        rows = slice(self.count, self.count + n)
        held = slice(self.n_entries, self.n_entries + len(index))
        self.index[held], self.weight[held] = index, weight
        self.indptr[self.count : self.count + n + 1] = self.n_entries + offsets
        self.count += n
        self.n_entries += len(index)
        return rows

    def row(self, at: int) -> tuple[Ints, Floats]:
        """Return positions and weights of one row."""
        span = slice(self.indptr[at], self.indptr[at + 1])
        return self.index[span], self.weight[span]

    def keep(self, kept: Ints) -> None:
        """Keep some of the rows, in their order."""
        sizes = np.diff(self.indptr[: self.count + 1])[kept]
        offsets = np.append(0, np.cumsum(sizes))
        entries = np.repeat(self.indptr[kept] - offsets[:-1], sizes) + np.arange(offsets[-1])
        index, weight = self.index[entries], self.weight[entries]
        beside = {name: getattr(self, name)[kept] for name in self._beside}
        self.count = self.n_entries = 0
        rows = self.append(offsets, index, weight)
        for name, values in beside.items():
            getattr(self, name)[rows] = values

    @property
    def csr(self) -> tuple[Ints, Ints, Floats]:
        """The arrays as the inner loops take them."""
        return self.indptr, self.index, self.weight

    @property
    def n_bytes(self) -> int:
        """How much memory the arrays take."""
        names = ("indptr", "index", "weight", *self._beside)
        return sum(int(getattr(self, name).nbytes) for name in names)


def _longer(array: NDArray[Any], least: int) -> NDArray[Any]:
    longer = np.zeros(max(least, len(array) + len(array) // 2), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


class Beliefs(Rows):
    """Beliefs with their bounds.

    Attributes:
        upper, lower: The bounds of the value.
        source: What gave the upper one: the belief of a point, -1 for the corners, -2 for the informed bound.
        best: Which alpha vector gave the lower one, -1 for none.
        met, seen: The last point and the last vector that were looked at.
    """

    _beside: ClassVar[dict[str, type]] = {
        "upper": np.float64,
        "lower": np.float64,
        "source": np.int64,
        "best": np.int64,
        "met": np.int64,
        "seen": np.int64,
    }
    upper: Floats
    lower: Floats
    source: Ints
    best: Ints
    met: Ints
    seen: Ints


class Points(Rows):
    """The points of the bound above.

    Attributes:
        gap: How far the value lies below the interpolation between the corners, negative.
        node: Which belief it is.
        number: In the order of their coming.
    """

    _beside: ClassVar[dict[str, type]] = {"gap": np.float64, "node": np.int64, "number": np.int64}
    gap: Floats
    node: Ints
    number: Ints
