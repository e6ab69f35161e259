"""Exact value iteration for a finite horizon: alpha vectors by incremental pruning."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Floats, Ints, check_integer, is_real, unexpected
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning.alpha_vectors import LeafVectors, Points, prune, prune_together
from pomdp_hier.planning.decision import TERMINAL_VALUE, Decision, best_and_tied, outcome_matrix, where_to_decide
from pomdp_hier.planning.float_range import horizon_sum, require_float_range
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.tabular import TabularPOMDP

_TOGETHER = 20_000  # entries of the vectors ahead of all outcomes, of actions that are backed up together


@dataclass(frozen=True, eq=False)
class FiniteHorizonSolution:
    """The optimal value for every belief and every number of steps up to a horizon; an optimal policy.

    With ``t`` steps to go, ``V_t(b) = max_k sum_s b(s) alpha[k, s]`` over the vectors that are legal under ``b``.

    Attributes:
        compiled: The problem.
        stages: The vectors ``[K, S]`` and the positions ``[K]`` of their actions, for each number of steps to go, from
            0. A vector is ``-inf`` where its plan is not legal.

    Example:
        >>> guess = POMDP.from_arrays(T=[[[1, 0], [0, 1]]] * 2, Z=[[[1], [1]]] * 2, R=[[1, 0], [0, 1]])
        >>> solution = value_iteration(guess, horizon=2)
        >>> solution.vectors.tolist(), solution.value({0: 0.75, 1: 0.25})
        ([[2.0, 0.0], [0.0, 2.0]], 1.5)

    References:
        Smallwood and Sondik (1973).
    """

    compiled: TabularPOMDP = field(repr=False)
    stages: tuple[tuple[Floats, Ints], ...] = field(repr=False)

    def __repr__(self) -> str:
        value = self.value(self.compiled.belief(self.compiled.initial))
        return f"FiniteHorizonSolution(horizon={self.horizon}, {len(self.vectors)} vectors, value={value:.6g})"

    @property
    def horizon(self) -> int:
        """The greatest number of steps to go."""
        return len(self.stages) - 1

    @property
    def vectors(self) -> Floats:
        """The vectors ``[K, S]`` of the full horizon."""
        return self.stages[-1][0]

    @property
    def actions(self) -> tuple[Any, ...]:
        """The first action of each vector of the full horizon."""
        return tuple(self.compiled.actions[i] for i in self.stages[-1][1])

    def value(self, belief: Any, *, observation: Hashable = None, to_go: int | None = None) -> float:
        """Return the optimal value under the belief with ``to_go`` steps to go (default: all); 0 if it is terminal."""
        return max(self._scores(belief, observation, to_go)[0], default=float(TERMINAL_VALUE))

    def action(self, belief: Any, *, observation: Hashable = None, to_go: int | None = None) -> Any:
        """Return an optimal action under the belief.

        Raises:
            PlanningError: The belief is terminal, or no step is left.
        """
        return best_and_tied(self._q_values(belief, observation, to_go))[1][0]

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the optimal decision with the full horizon to go.

        ``q_values`` holds the first actions of the vectors. An action that nowhere exceeds another has no vector, and
        is not among the ties.

        Raises:
            PlanningError: The belief is terminal, or the horizon is 0.
        """
        belief, _ = where_to_decide(problem, belief, observation)
        q_values = self._q_values(belief, observation, None)
        value, ties = best_and_tied(q_values)
        return Decision(ties[0], value=value, q_values=q_values, ties=ties, stats={"vectors": len(self.vectors)})

    def _q_values(self, belief: Any, observation: Hashable, to_go: int | None) -> dict[Any, float]:
        """Return the value of each first action of a legal vector, in the problem's order."""
        scores, actions = self._scores(belief, observation, to_go)
        if not scores or (self.horizon if to_go is None else to_go) == 0:
            raise PlanningError("belief: got terminal states alone, or to_go=0; expected an action to choose.")
        q_values: dict[Any, float] = {}
        for score, position in sorted(zip(scores, actions, strict=True), key=lambda pair: pair[1]):
            name = self.compiled.actions[position]
            q_values[name] = max(score, q_values.get(name, score))
        return q_values

    def at_step(self, step: int) -> "FiniteHorizonSolution":
        """Return the solution after ``step`` steps of the horizon, at most that of the last step."""
        return FiniteHorizonSolution(self.compiled, self.stages[: max(2, len(self.stages) - step)])

    @property
    def leaf(self) -> LeafVectors:
        """These vectors as leaf values of `RTBSS`: ``RTBSS(d, leaf_value=value_iteration(problem, n))``.

        Example:
            >>> from pomdp_hier.planning import RTBSS
            >>> from pomdp_hier.problems import tiger
            >>> deep = RTBSS(2, leaf_value=value_iteration(tiger(), 3)).decide(tiger()).value
            >>> round(deep, 6), round(RTBSS(5).decide(tiger()).value, 6)
            (2.763096, 2.763096)
        """
        vectors, actions = self.stages[-1]
        after = self.compiled.legal_after
        return LeafVectors.of(vectors, after if after is None or not self.horizon else after[:, actions])

    def _row(self, observation: Hashable) -> int:
        if observation not in self.compiled.observation_index:
            raise ModelError(
                f"observation: got {brief(observation)}; expected one of {listed(self.compiled.observations)}."
            )
        return self.compiled.observation_index[observation]

    def _scores(self, belief: Any, observation: Hashable, to_go: int | None) -> tuple[list[float], list[int]]:
        """Return the value of each vector that is legal under the belief, and the position of its action."""
        compiled = self.compiled
        if to_go is not None:
            check_integer("to_go", to_go, 0, unit="steps")
            if to_go > self.horizon:
                raise unexpected("to_go", to_go, f"at most {self.horizon}, the horizon")
        vectors, actions = self.stages[self.horizon if to_go is None else to_go]
        weights = compiled.vector(belief)
        support = np.flatnonzero(weights)
        if compiled.terminal[support].all():
            return [], []
        usable = np.isfinite(vectors[:, support]).all(axis=1)
        if compiled.legal_after is not None and len(self.stages) > 1 and to_go != 0:
            row = -1 if observation is None else self._row(observation)
            usable &= compiled.legal_after[row, actions]
        chosen = np.flatnonzero(usable)
        scores: list[float] = (vectors[np.ix_(chosen, support)] @ weights[support]).tolist()
        return scores, actions[chosen].tolist()


def value_iteration(
    problem: POMDP, horizon: int, *, tolerance: float = 1e-10, max_vectors: int = 200_000
) -> FiniteHorizonSolution:
    """Return the exact solution for a finite horizon, by incremental pruning.

    ``alpha_t(s) = R(s, a) + gamma sum_o sum_s' p(s', o | s, a) alpha_{t-1, o}(s')`` for every action and every choice
    of a vector after each observation. Vectors that are best at no belief are pruned, by dominance and by linear
    programs. The result has ``value``, ``action`` and ``decide``.

    Args:
        problem: The problem, of floats; it is compiled.
        horizon: The number of steps.
        tolerance: The least margin of a kept vector at some belief, relative to the greatest entry.
        max_vectors: The largest number of vectors to compare at once.

    Raises:
        ParameterError: The horizon is negative.
        ModelError: Floats cannot hold the values.
        PlanningError: More than ``max_vectors`` vectors would be compared at once.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> solved = value_iteration(tiger(), horizon=3)
        >>> round(solved.value(tiger().initial_belief), 4)
        2.3098

    References:
        Cassandra, Littman and Zhang (1997).
    """
    require_problem(problem, "value_iteration")
    check_integer("horizon", horizon, 0, unit="steps")
    check_integer("max_vectors", max_vectors, 1)
    if not (is_real(tolerance) and tolerance >= 0):
        raise unexpected("tolerance", tolerance, "a number of at least 0")
    compiled = problem.compiled
    require_float_range(compiled, horizon_sum(compiled.discount, horizon))
    after = _Outcomes.of(compiled)
    points = Points(compiled.n_states)
    stages: list[tuple[Floats, Ints]] = [(np.zeros((1, compiled.n_states)), np.full(1, -1, dtype=np.int64))]
    for _ in range(horizon):
        at_once = max(1, _TOGETHER * compiled.n_actions // (after.matrix.shape[0] * len(stages[-1][0]) or 1))
        sets: list[Floats] = []
        for first in range(0, compiled.n_actions, at_once):
            some = range(first, min(first + at_once, compiled.n_actions))
            sets += _backup(compiled, some, after, stages[-1], tolerance, max_vectors, points)
        parts = [(vectors, np.full(len(vectors), a, dtype=np.int64)) for a, vectors in enumerate(sets)]
        stacked = np.concatenate([part[0] for part in parts])
        actions = np.concatenate([part[1] for part in parts])
        labels = None if compiled.legal_after is None else compiled.legal_after.T[actions]
        kept = prune(stacked, tolerance, points, labels)
        stages.append((stacked[kept], actions[kept]))
    return FiniteHorizonSolution(compiled, tuple(stages))


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """The outcomes of all actions, a block of rows for each action and possible observation.

    Attributes:
        matrix: ``[B S, S']`` CSR, ``p(s', o | s, a)``.
        observation: ``[B]``, the position of each block's observation.
        first: ``[A + 1]``, the first block of each action.
    """

    matrix: sparse.csr_array
    observation: Ints
    first: list[int]

    @classmethod
    def of(cls, compiled: TabularPOMDP) -> "_Outcomes":
        size, count = compiled.n_states, compiled.n_observations
        matrices = [outcome_matrix(compiled, a) for a in range(compiled.n_actions)]
        lengths = np.concatenate([np.diff(matrix.indptr) for matrix in matrices])
        row = np.repeat(np.arange(len(lengths)), lengths)
        observation, state = np.divmod(np.concatenate([matrix.indices for matrix in matrices], dtype=np.int64), size)
        data = np.concatenate([matrix.data for matrix in matrices])
        blocks, block = np.unique(row // size * count + observation, return_inverse=True)
        row = block.ravel() * size + row % size
        order = np.argsort(row, kind="stable")
        indptr = np.append(0, np.cumsum(np.bincount(row, minlength=len(blocks) * size)))
        matrix = sparse.csr_array((data[order], state[order], indptr), shape=(len(blocks) * size, size))
        first = np.searchsorted(blocks, np.arange(compiled.n_actions + 1) * count)
        return cls(matrix, blocks % count, first.tolist())


def _backup(
    compiled: TabularPOMDP,
    some: range,
    outcomes: _Outcomes,
    ahead: tuple[Floats, Ints],
    tolerance: float,
    max_vectors: int,
    points: Points,
) -> list[Floats]:
    """Return ``[K, S]`` for each of some actions, its vectors; ``-inf`` where it is not legal."""
    results = {a: np.where(compiled.legal[a], compiled.reward[a], -np.inf)[None, :] for a in some}
    low, high = outcomes.first[some.start], outcomes.first[some.stop]
    projected = _projected(compiled, outcomes, low, high, ahead)
    open_ = [n for n, vectors in enumerate(projected) if len(vectors) > 1]
    for n, kept in zip(open_, prune_together([projected[n] for n in open_], tolerance, points), strict=True):
        projected[n] = projected[n][kept]
    sums = {a: range(outcomes.first[a] - low, outcomes.first[a + 1] - low) for a in some}
    for step in range(max(map(len, sums.values()))):
        crossed = []
        for a in (a for a in some if step < len(sums[a])):
            result, more = results[a], projected[sums[a][step]]
            if len(result) * len(more) > max_vectors:
                raise PlanningError(
                    f"max_vectors: got {max_vectors:,}; expected at least {len(result) * len(more):,}, the vectors "
                    "after one observation. Set it higher or the horizon lower, or use RTBSS for one belief."
                )
            results[a] = (result[:, None, :] + more[None, :, :]).reshape(-1, result.shape[1])
            # a single vector that is finite everywhere shifts the others, which all stay useful
            if len(more) > 1 and (len(result) > 1 or not np.isfinite(result).all()):
                crossed.append(a)
        for a, kept in zip(crossed, prune_together([results[a] for a in crossed], tolerance, points), strict=True):
            results[a] = results[a][kept]
    return list(results.values())


def _projected(
    compiled: TabularPOMDP, outcomes: _Outcomes, low: int, high: int, ahead: tuple[Floats, Ints]
) -> list[Floats]:
    """Return ``[K, S]`` for each block of outcomes, the discounted vectors ahead of its action and observation."""
    vectors, actions = ahead
    size, matrix = compiled.n_states, outcomes.matrix
    if (high - low) * size < matrix.shape[0]:
        matrix = matrix[low * size : high * size]
    ends = matrix @ vectors.T if compiled.discount else np.zeros((matrix.shape[0], 1))
    ends = compiled.discount * ends.reshape(high - low, size, -1)
    usable = np.ones((high - low, ends.shape[2]), dtype=bool)
    if compiled.legal_after is not None and actions[0] >= 0 and compiled.discount:
        usable = compiled.legal_after[outcomes.observation[low:high]][:, actions]
    # most often, one vector is the best in every state
    first = np.where(usable, ends.sum(axis=1), -np.inf).argmax(axis=1)
    best = np.take_along_axis(ends, first[:, None, None], axis=2)
    alone = (np.isfinite(best) & ((ends <= best) | ~usable[:, None, :]).all(axis=2, keepdims=True)).all(axis=(1, 2))
    return [best[n].T if one else ends[n].T[usable[n]] for n, one in enumerate(alone.tolist())]
