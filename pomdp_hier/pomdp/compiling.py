"""Compilation of a problem to arrays, for `POMDP.compiled`."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats
from pomdp_hier._progress import slow_work
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.array_models import ArrayObservation, ArrayTransition, ListedReward, Rows, floats
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.numeric import Number, as_float, positive_part
from pomdp_hier.pomdp.spaces import nearest
from pomdp_hier.pomdp.tabular import TabularPOMDP

# A row of a matrix: the columns, and the number in each.
_Row: TypeAlias = tuple[Sequence[int], Collection[Number]]
_EMPTY: _Row = ((), ())


def compile_problem(problem: CorePOMDP, *, tolerance: float | None = None) -> TabularPOMDP:
    """Return the problem as arrays, in float64.

    Models on arrays over the problem's spaces are used unchanged. Other models are called once per nonterminal state
    and legal action.

    Example:
        >>> from pomdp_hier import POMDP
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait"])
        >>> compile_problem(stay).reward
        array([[1.]])
    """
    if problem.legal_by == "belief":
        raise ModelError(
            "legal_actions: got a function of the belief; expected one of the state or the observation, for arrays. "
            "Plan on the problem itself, with RTBSS, or make them depend on the state."
        )
    terminal = np.array([problem.is_terminal(s) for s in problem.states], dtype=bool)
    legal, legal_after = _legality(problem, terminal)
    builder = _Builder(problem, legal, terminal, problem.tolerance if tolerance is None else tolerance)
    with builder.bar:
        transition, observation, joint = builder.matrices()
    initial = np.zeros(len(problem.states))
    believed = problem.initial_belief
    initial[_positions(builder.states, believed.keys(), lambda: "initial belief")] = _numbers(
        list(believed.values()), lambda _: "initial belief"
    )
    return TabularPOMDP(
        states=problem.states,
        actions=problem.all_actions,
        observations=problem.all_observations,
        transition=transition,
        observation=observation,
        joint=joint,
        reward=builder.rewards(transition, observation),
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


def _positions(index: Mapping[Any, int], values: Collection[Hashable], where: Callable[[], str]) -> list[int]:
    """Return the index of each value in a space; ``where`` returns the location for an error."""
    try:
        return list(map(index.__getitem__, values))
    except KeyError as error:
        strange = next(value for value in values if value not in index)
        raise ModelError(
            f"{where()}: got {brief(strange)}; expected a name of the problem's space of {len(index)}. "
            f"Add it to the space, or use {nearest(strange, index) or 'another'}."
        ) from error


def _numbers(values: Sequence[Number], where: Callable[[int], str]) -> Floats:
    """Return the values as floats; an error names the first that is not a number."""
    try:
        with np.errstate(over="ignore"):
            numbers = np.fromiter(values, np.float64, len(values))
        if any(issubclass(kind, str | bytes) for kind in set(map(type, values))):  # which numpy reads as numbers
            numbers[:] = np.nan
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(len(values), np.nan)
    if not np.isfinite(numbers).all():
        return np.array([as_float(value, where(i)) for i, value in enumerate(values)])
    return numbers


def _floats(matrix: Any, where: str) -> sparse.csr_array:
    """Return a matrix of an array model as CSR in float64, unchanged if it is one already."""
    if sparse.issparse(matrix):
        return matrix
    return matrix.floats(where) if isinstance(matrix, Rows) else sparse.csr_array(floats(matrix, where))


class _Builder:
    """The matrices of one problem from its models, with a check of each row."""

    def __init__(self, problem: CorePOMDP, legal: Bools, terminal: Bools, tolerance: float) -> None:
        self.problem = problem
        self.terminal = terminal
        self.usable = legal & ~terminal
        self._always_usable: list[bool] = np.all(self.usable, axis=1).tolist()
        self.tolerance = tolerance
        self.states = {state: i for i, state in enumerate(problem.states)}
        self.observations = {observation: i for i, observation in enumerate(problem.all_observations)}
        self.uses_state = problem.observation.uses_state
        self._flows: list[Mapping[Any, Number]] = []
        self.bar = slow_work("compiling", "rows", 2 * self.usable.size)  # of T, and of Z or the joint of both

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

    def _with_progress(self, states: Iterable[Any]) -> Iterator[Any]:
        for state in states:
            yield state
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
        return _positions(self.states, next_states, lambda: f"transition from {brief(state)} under {brief(action)}")

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
        return _positions(self.observations, row.keys(), where), row.values()

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
        data = _numbers(values, lambda i: location(owner[i]))
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
        expected = [problem.expected_reward(state, action) for state, action in pairs]
        values = np.zeros(self.usable.shape)
        values[self.usable] = _numbers(expected, lambda i: f"reward of {brief(pairs[i][1])} in {brief(pairs[i][0])}")
        return values
