"""TabularPOMDP: a POMDP compiled to arrays, for fast belief updates and planning; and its compilation."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints, as_floats
from pomdp_hier._progress import slow_work
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.array_models import (
    ArrayObservation,
    ArrayTransition,
    ListedReward,
    Rows,
    as_numbers,
    floats,
    positions_of,
)
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief, as_belief
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.numeric import Number, as_float, positive_part

# Sizes for which predictions use a dense transition array: measured with numpy 2 and one thread of OpenBLAS. Up to
# 100 states the fixed cost of a sparse product decides; to about 1,000 the dense array stays in the cache; beyond it
# both wait for memory, where a CSR entry takes 12 bytes and a dense one 8.
DENSE_STATES = 100
CACHED_STATES = 1_000
DENSE_FILL_IN_CACHE = 0.15
DENSE_FILL = 0.5


def prefers_dense(matrix: sparse.csr_array) -> bool:
    """Return whether a matrix-vector product is faster with a dense matrix, by size and density."""
    cells = matrix.shape[0] * matrix.shape[1]
    if cells <= DENSE_STATES**2:
        return True
    fill = DENSE_FILL_IN_CACHE if cells <= CACHED_STATES**2 else DENSE_FILL
    return bool(matrix.nnz >= fill * cells)


@dataclass(frozen=True, eq=False, kw_only=True)
class TabularPOMDP:
    """A POMDP as arrays; build one with ``problem.compiled``.

    The order of ``states``, ``actions`` and ``observations`` is the index of every array (S, A, O are their sizes).

    Attributes:
        states, actions, observations: The names, in index order.
        transition: One CSR matrix ``[S, S']`` per action, ``T[a][s, s']``; the unit row where the state is terminal or
            the action is not legal.
        observation: One CSR matrix ``[S', O]`` per action, ``Z[a][s', o]``; an empty row where the action cannot reach
            the state. ``None`` where observations depend on the previous state.
        joint: In that case, one CSR matrix ``[S, O * S']`` per action, ``p(s', o | s, a)`` at column ``o * S + s'``.
        reward: ``[A, S]``, the expected reward ``R(s, a)``; 0 for terminal states and where the action is not legal.
        discount: gamma.
        initial: ``[S]``, the initial belief.
        terminal: ``[S]``, bool.
        legal: ``[A, S]``, bool: the action is legal in the state (all of them where legality is by observation).
        legal_after: ``[O + 1, A]``, bool, where legality is by the last observation (the last row: before any).
        tolerance: The largest distance from 1 of the sum of a belief, as in the problem.
    """

    states: tuple[Any, ...]
    actions: tuple[Any, ...]
    observations: tuple[Any, ...]
    transition: tuple[sparse.csr_array, ...] = field(repr=False)
    observation: tuple[sparse.csr_array, ...] | None = field(repr=False)
    joint: tuple[sparse.csr_array, ...] | None = field(repr=False)
    reward: Floats = field(repr=False)
    discount: float
    initial: Floats = field(repr=False)
    terminal: Bools = field(repr=False)
    legal: Bools = field(repr=False)
    legal_after: Bools | None = field(default=None, repr=False)
    tolerance: float = field(default=MASS_TOLERANCE, repr=False)

    def __post_init__(self) -> None:
        for array in (self.reward, self.initial, self.terminal, self.legal, self.legal_after):
            if array is not None:
                array.flags.writeable = False
        for matrices in (self.transition, self.observation, self.joint):
            for matrix in {id(matrix): matrix for matrix in matrices or ()}.values():  # actions may share them
                matrix.data.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """A, the number of actions."""
        return len(self.actions)

    @property
    def n_observations(self) -> int:
        """O, the number of observations."""
        return len(self.observations)

    @cached_property
    def state_index(self) -> dict[Any, int]:
        """The index of each state."""
        return {state: i for i, state in enumerate(self.states)}

    @cached_property
    def action_index(self) -> dict[Any, int]:
        """The index of each action."""
        return {action: i for i, action in enumerate(self.actions)}

    @cached_property
    def observation_index(self) -> dict[Any, int]:
        """The index of each observation."""
        return {observation: i for i, observation in enumerate(self.observations)}

    @cached_property
    def is_dense(self) -> tuple[bool, ...]:
        """Whether predictions use a dense array, per action (see `prefers_dense`)."""
        return tuple(prefers_dense(matrix) for matrix in self.transition)

    @cached_property
    def _pushes(self) -> tuple[Any, ...]:
        """The transposes ``[S', S]``, dense or CSR: a prediction is one matrix-vector product."""
        return tuple(
            np.ascontiguousarray(matrix.T.toarray()) if dense else matrix.T.tocsr()
            for matrix, dense in zip(self.transition, self.is_dense, strict=True)
        )

    @cached_property
    def _likelihoods(self) -> tuple[sparse.csr_array, ...]:
        """``Z[a]`` transposed to ``[O, S']`` in CSR: the likelihood of an observation is one row."""
        return tuple(matrix.T.tocsr() for matrix in self.observation or ())

    @cached_property
    def _joint_pushes(self) -> tuple[sparse.csr_array, ...]:
        return tuple(matrix.T.tocsr() for matrix in self.joint or ())

    def predict(self, belief: Floats, action: int) -> Floats:
        """Return ``[S']``, the belief before the observation: ``sum_s b(s) T(s, a, s')``."""
        prediction: Floats = self._pushes[action] @ belief
        return prediction

    def outcome(self, belief: Floats, action: int, observation: int) -> Floats:
        """Return ``[S']``, ``p(s', o | b, a)`` for one observation: the numerator of Bayes' rule."""
        if self.observation is None:
            size = self.n_states
            rows = self._joint_pushes[action][observation * size : (observation + 1) * size]
            mass: Floats = rows @ belief
            return mass
        matrix = self._likelihoods[action]
        span = slice(matrix.indptr[observation], matrix.indptr[observation + 1])
        result = np.zeros(self.n_states)
        columns = matrix.indices[span]
        result[columns] = self.predict(belief, action)[columns] * matrix.data[span]
        return result

    def outcomes(self, belief: Floats, action: int) -> sparse.csr_array:
        """Return the sparse ``[O, S']``, ``p(s', o | b, a)`` for every observation, from one product."""
        if self.observation is None:
            flat = self._joint_pushes[action] @ belief
            return sparse.csr_array(flat.reshape(self.n_observations, self.n_states))
        matrix = self._likelihoods[action]
        data = matrix.data * self.predict(belief, action)[matrix.indices]
        return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)

    def branches(self, belief: Floats, action: int) -> Iterator[tuple[int, float, Floats]]:
        """Yield each possible observation, its probability and the posterior ``[S']``, from one product.

        Example:
            >>> from pomdp_hier import POMDP
            >>> tiny = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]]).compiled
            >>> [(o, p) for o, p, _ in tiny.branches(tiny.initial, 0)]
            [(0, 0.25), (1, 0.75)]
        """
        if self.observation is None:
            for o, mass in enumerate((self._joint_pushes[action] @ belief).reshape(self.n_observations, -1)):
                evidence = float(mass.sum())
                if evidence > 0:
                    yield o, evidence, mass / evidence
            return
        matrix = self._likelihoods[action]
        weights = matrix.data * self.predict(belief, action)[matrix.indices]
        ends = matrix.indptr.tolist()
        for o in range(self.n_observations):
            span = slice(ends[o], ends[o + 1])
            evidence = float(weights[span].sum())
            if evidence > 0:
                posterior = np.zeros(self.n_states)
                posterior[matrix.indices[span]] = weights[span] / evidence
                yield o, evidence, posterior

    def legal_actions(self, belief: Floats, observation: int | None = None) -> Ints:
        """Return indices of the legal actions under the belief; empty if the belief is terminal.

        Raises:
            ModelError: No action is legal in all states of the support.
        """
        alive = (belief > 0) & ~self.terminal
        if not alive.any():
            return np.empty(0, dtype=np.int64)
        if self.legal_after is not None:
            legal = self.legal_after[-1 if observation is None else observation]
        else:
            legal = self.legal[:, alive].all(axis=1)
        positions = np.flatnonzero(legal)
        if not len(positions):
            first = self.states[int(np.flatnonzero(alive)[0])]
            raise ModelError(
                f"legal_actions: got no action that is legal in all {int(alive.sum())} states of a belief (the first: "
                f"{brief(first)}); expected one. Make the state terminal, or add an action that waits."
            )
        return positions

    def vector(self, belief: Belief | Mapping[Any, Number]) -> Floats:
        """Return the belief as an array ``[S]``.

        Raises:
            ModelError: It is not a belief, or one of its states is not a state of the problem.
        """
        array = np.zeros(self.n_states)
        for state, probability in as_belief(belief, max(self.tolerance, MASS_TOLERANCE)).items():
            if state not in self.state_index:
                raise ModelError(f"belief: got {brief(state)}; expected one of the problem's {self.n_states} states.")
            array[self.state_index[state]] = float(probability)
        return array

    def belief(self, vector: ArrayLike) -> Belief:
        """Return the array ``[S]`` as a belief over named states.

        Raises:
            ModelError: The array has another length, a negative or NaN entry, or a sum other than 1.
        """
        try:
            array = as_floats(vector)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"belief: got {brief(vector)}; expected {self.n_states} numbers, one per state.") from None
        if array.shape != (self.n_states,):
            raise ModelError(f"belief: got shape {array.shape}; expected ({self.n_states},), one number per state.")
        positions = np.flatnonzero(array)
        names = self.states
        pairs = zip((names[i] for i in positions.tolist()), array[positions].tolist(), strict=True)
        return Belief(pairs, tolerance=max(self.tolerance, MASS_TOLERANCE))


# A row of a matrix: the columns, and the number in each.
_Row: TypeAlias = tuple[Sequence[int], Collection[Number]]
_EMPTY: _Row = ((), ())


def compile_problem(problem: CorePOMDP) -> TabularPOMDP:
    """Return the problem as arrays, in float64.

    Models on arrays over the problem's spaces are used unchanged. Other models are called once per nonterminal state
    and legal action.
    """
    if problem.legal_by == "belief":
        raise ModelError(
            "legal_actions: got a function of the belief; expected one of the state or the observation, for arrays. "
            "Plan on the problem itself, with RTBSS, or make them depend on the state."
        )
    terminal = np.array([problem.is_terminal(s) for s in problem.states], dtype=bool)
    legal, legal_after = _legality(problem, terminal)
    builder = _Builder(problem, legal, terminal)
    with builder.bar:
        transition, observation, joint = builder.matrices()
        reward = builder.rewards(transition, observation)
    initial, believed = np.zeros(len(problem.states)), problem.initial_belief
    places = positions_of(builder.states, believed.keys(), lambda: "initial belief")
    initial[places] = as_numbers(list(believed.values()), lambda _: "initial belief")
    return TabularPOMDP(
        states=problem.states,
        actions=problem.all_actions,
        observations=problem.all_observations,
        transition=transition,
        observation=observation,
        joint=joint,
        reward=reward,
        discount=as_float(problem.discount, "discount"),
        initial=initial,
        terminal=terminal,
        legal=legal,
        legal_after=legal_after,
        tolerance=builder.tolerance,
    )


def _legality(problem: CorePOMDP, terminal: Bools) -> tuple[Bools, Bools | None]:
    """Return ``[A, S]`` by state, and ``[O + 1, A]`` where legality is by observation."""
    actions, states = problem.all_actions, problem.states
    legal = np.ones((len(actions), len(states)), dtype=bool)
    if problem.legal_everywhere is not None or terminal.all():
        return legal, None
    if problem.legal_by == "observation":
        nonterminal = Belief.certain(states[int(np.argmin(terminal))])
        sets = [set(problem.actions(nonterminal, o)) for o in (*problem.all_observations, None)]
        return legal, np.array([[a in allowed for a in actions] for allowed in sets], dtype=bool)
    for i, state in enumerate(states):
        if not terminal[i]:
            allowed = set(problem.actions(Belief.certain(state)))
            legal[:, i] = [a in allowed for a in actions]
    return legal, None


def _floats(matrix: Any, where: str) -> sparse.csr_array:
    """Return a matrix of an array model as CSR in float64, unchanged if it is one already."""
    if sparse.issparse(matrix):
        return matrix
    return matrix.floats(where) if isinstance(matrix, Rows) else sparse.csr_array(floats(matrix, where))


class _Builder:
    """The matrices of one problem from its models, with a check of each row."""

    def __init__(self, problem: CorePOMDP, legal: Bools, terminal: Bools) -> None:
        self.problem = problem
        self.terminal = terminal
        self.usable = legal & ~terminal
        self._always_usable: list[bool] = np.all(self.usable, axis=1).tolist()
        self.tolerance = problem.tolerance
        self.states = {state: i for i, state in enumerate(problem.states)}
        self.observations = {observation: i for i, observation in enumerate(problem.all_observations)}
        self.uses_state = problem.observation.uses_state
        self._flows: list[Mapping[Any, Number]] = []
        self.bar = slow_work("compiling", "rows", 3 * self.usable.size)  # of T, of Z or the joint of both, and R

    # --- T and Z -------------------------------------------------------------------------------------------------

    def matrices(
        self,
    ) -> tuple[tuple[sparse.csr_array, ...], tuple[sparse.csr_array, ...] | None, tuple[sparse.csr_array, ...] | None]:
        """Return T, and Z or the joint of both: one matrix per action."""
        problem, spaces = self.problem, (self.problem.states, self.problem.all_actions)
        model, sensor = problem.transition, problem.observation
        given_t = model.matrices if isinstance(model, ArrayTransition) and model.spaces == spaces else None
        wanted = (*spaces, problem.all_observations)
        given_z = sensor.matrices if isinstance(sensor, ArrayObservation) and sensor.spaces == wanted else None
        transition, likelihood = [], []
        for a, action in enumerate(problem.all_actions):
            if given_t is None or given_z is None:
                self._flows = [self._flow(a, action, state) for state in self._with_progress(problem.states)]
            transition.append(self._transition(a, action) if given_t is None else self._taken(a, given_t[a]))
            if given_z is not None:
                likelihood.append(_floats(given_z[a], f"Z[{a}]"))
            else:
                likelihood.append(self._joint(action) if self.uses_state else self._observation(action))
        if given_z is None:
            self._add_terminals(likelihood)
        if self.uses_state:
            return tuple(transition), None, tuple(likelihood)
        return tuple(transition), tuple(likelihood), None

    def _with_progress(self, rows: Iterable[Any]) -> Iterator[Any]:
        for row in rows:
            yield row
            self.bar.update()

    def _flow(self, a: int, action: Any, state: Any) -> Mapping[Any, Number]:
        """Return the successors; none if the action is not legal or the state is terminal."""
        if not self.usable[a, self.states[state]]:
            return {}
        return self.problem.transition.distribution(state, action)

    def _taken(self, a: int, given: Any) -> sparse.csr_array:
        """Return a matrix of the model itself, with unit rows where the action is not legal."""
        matrix = _floats(given, f"T[{a}]")
        if self._always_usable[a]:
            return matrix
        usable = self.usable[a]
        kept = sparse.dia_array((usable.astype(np.float64)[None, :], [0]), shape=matrix.shape) @ matrix
        merged = sparse.csr_array(kept + sparse.dia_array(((~usable).astype(np.float64)[None, :], [0]), matrix.shape))
        merged.eliminate_zeros()
        return merged

    def _transition(self, a: int, action: Any) -> sparse.csr_array:
        """``[S, S']``; with the unit row where the action is not legal, which no plan uses."""
        rows: list[_Row] = []
        for i, (state, flow) in enumerate(zip(self.states, self._flows, strict=True)):
            if self.usable[a, i]:
                rows.append((self._reached(flow.keys(), action, state), flow.values()))
            else:
                rows.append(([i], [1]))
        return self._matrix(rows, len(self.states), f"transition under {brief(action)} from")

    def _reached(self, next_states: Collection[Any], action: Any, state: Any) -> list[int]:
        return positions_of(self.states, next_states, lambda: f"transition from {brief(state)} under {brief(action)}")

    def _observation(self, action: Any) -> sparse.csr_array:
        """``[S', O]``; the rows of states that the action cannot reach stay empty."""
        reached = {s for flow in self._flows for s, p in flow.items() if p != 0}
        rows = [self._seen(s, action, None) if s in reached else _EMPTY for s in self._with_progress(self.states)]
        return self._matrix(rows, len(self.observations), f"observation after {brief(action)} in", may_be_empty=True)

    def _joint(self, action: Any) -> sparse.csr_array:
        """``[S, O * S']``, for observations that depend on the previous state."""
        size = len(self.states)
        rows: list[_Row] = []
        for state, flow in zip(self._with_progress(self.states), self._flows, strict=True):
            columns: list[int] = []
            sums: list[Number] = []
            possible = positive_part(flow)
            for position, next_state in zip(self._reached(possible, action, state), possible, strict=True):
                seen, likelihoods = self._seen(next_state, action, state)
                columns += [o * size + position for o in seen]
                sums += [possible[next_state] * z for z in likelihoods]
            rows.append((columns, sums))
        return self._matrix(rows, size * len(self.observations), f"outcome of {brief(action)} from", may_be_empty=True)

    def _seen(self, next_state: Any, action: Any, state: Any) -> _Row:
        row = self.problem.observation_distribution(next_state, action, state)
        where = lambda: f"observation in {brief(next_state)} after {brief(action)}"  # noqa: E731
        return positions_of(self.observations, row.keys(), where), row.values()

    def _add_terminals(self, likelihood: list[sparse.csr_array]) -> None:
        """Fill the rows of terminal states, where a belief can be over terminal and nonterminal states."""
        if not (self.problem.has_mixed_start or any(self._meet(matrix) for matrix in likelihood)):
            return
        size = len(self.states)
        for a, action in enumerate(self.problem.all_actions):
            filled = np.diff(likelihood[a].indptr) > 0
            rows: list[_Row] = []
            for i, state in enumerate(self.states):
                seen, sums = self._seen(state, action, state) if self.terminal[i] and not filled[i] else _EMPTY
                rows.append(([o * size + i for o in seen] if self.uses_state else seen, sums))
            what = f"observation after {brief(action)} in"
            added = self._matrix(rows, likelihood[a].shape[1], what, may_be_empty=True)
            likelihood[a] = sparse.csr_array(likelihood[a] + added)

    def _meet(self, matrix: sparse.csr_array) -> bool:
        """Return whether a terminal and a nonterminal state share an observation."""
        if self.uses_state:
            observation, next_state = np.divmod(matrix.indices, len(self.states))
        else:
            observation, next_state = matrix.indices, np.repeat(np.arange(len(self.states)), np.diff(matrix.indptr))
        ends = self.terminal[next_state]
        return bool(np.isin(observation[ends], observation[~ends]).any())

    def _matrix(self, rows: Iterable[_Row], width: int, what: str, may_be_empty: bool = False) -> sparse.csr_array:
        """Return the matrix with one row per state; an error names the first invalid row."""

        def location(row: int) -> str:
            return f"{what} {brief(self.problem.states[row])}"

        columns: list[int] = []
        values: list[Number] = []
        counts: list[int] = []
        for positions, numbers in rows:
            columns.extend(positions)
            values.extend(numbers)
            counts.append(len(positions))
        owner = np.repeat(np.arange(len(counts)), counts)
        data = as_numbers(values, lambda i: location(owner[i]))
        if data.size and data.min() < 0:
            first = int(np.argmax(data < 0))
            raise ModelError(f"{location(owner[first])}: got {float(data[first])}; expected a probability in [0, 1].")
        kept = data > 0
        data, owner = data[kept], owner[kept]
        sums = np.bincount(owner, weights=data, minlength=len(counts))
        wrong = np.abs(sums - 1) > self.tolerance
        if may_be_empty:
            wrong &= sums > 0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ModelError(
                f"{location(row)}: got probabilities that sum to {float(sums[row])}; expected 1 (tolerance "
                f"{self.tolerance}). Call check_problem(problem) for every such row."
            )
        offsets = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(counts)))))
        indices = np.array(columns, dtype=np.int64)[kept]
        matrix = sparse.csr_array((data, indices, offsets), shape=(len(counts), width))
        matrix.sum_duplicates()
        return matrix

    # --- R -------------------------------------------------------------------------------------------------------

    def rewards(self, transition: Sequence[Any], observation: Sequence[Any] | None) -> Floats:
        """Return ``[A, S]``, the expected rewards; 0 where the action is not legal."""
        problem, model = self.problem, self.problem.reward_model
        spaces = (problem.states, problem.all_actions, problem.all_observations)
        if isinstance(model, ListedReward) and model.spaces == spaces and observation is not None:
            means = np.where(self.usable, model.expected(transition, observation), 0.0)
            for a, s in np.argwhere(~np.isfinite(means)).tolist():  # of finite rewards whose sum is too large
                as_float(means[a, s], f"reward of {brief(problem.all_actions[a])} in {brief(problem.states[s])}")
            return means
        pairs = [(problem.states[s], problem.all_actions[a]) for a, s in np.argwhere(self.usable).tolist()]
        expected = [problem.expected_reward(state, action) for state, action in self._with_progress(pairs)]
        values = np.zeros(self.usable.shape)
        values[self.usable] = as_numbers(expected, lambda i: f"reward of {brief(pairs[i][1])} in {brief(pairs[i][0])}")
        return values
