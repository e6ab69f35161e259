"""Problems from arrays: what `POMDP.from_arrays` checks and builds."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel, as_reward
from pomdp_hier.pomdp.numeric import Number, nearly_equal, total
from pomdp_hier.pomdp.problem import POMDP

__all__ = ["ArrayObservation", "ArrayReward", "ArrayTransition", "problem_from_arrays"]


class ArrayTransition(TransitionModel):
    """``T[a, s, s']`` as a model over names; the matrices are ``[S, S']``, sparse or of objects."""

    def __init__(self, matrices: Sequence[Any], states: Sequence[Any], actions: Sequence[Any]) -> None:
        self.matrices = tuple(matrices)
        self.spaces = (tuple(states), tuple(actions))
        self._states = tuple(states)
        self._state_index = {state: i for i, state in enumerate(states)}
        self._action_index = {action: i for i, action in enumerate(actions)}

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return _row(self.matrices[self._action_index[action]], self._state_index[state], self._states)


class ArrayObservation(ObservationModel):
    """``Z[a, s', o]`` as a model over names; the matrices are ``[S', O]``, sparse or of objects."""

    uses_state = False

    def __init__(
        self,
        matrices: Sequence[Any],
        states: Sequence[Any],
        actions: Sequence[Any],
        observations: Sequence[Any],
    ) -> None:
        self.matrices = tuple(matrices)
        self.spaces = (tuple(states), tuple(actions), tuple(observations))
        self._observations = tuple(observations)
        self._state_index = {state: i for i, state in enumerate(states)}
        self._action_index = {action: i for i, action in enumerate(actions)}

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return _row(self.matrices[self._action_index[action]], self._state_index[next_state], self._observations)


class ArrayReward(RewardModel):
    """``R[a, s]``, ``R[a, s, s']`` or ``R[a, s, s', o]`` as a model over names."""

    def __init__(
        self, array: NDArray[Any], states: Sequence[Any], actions: Sequence[Any], observations: Sequence[Any]
    ) -> None:
        self.array = array
        self.spaces = (tuple(states), tuple(actions), tuple(observations))
        self._state_index = {state: i for i, state in enumerate(states)}
        self._action_index = {action: i for i, action in enumerate(actions)}
        self._observation_index = {observation: i for i, observation in enumerate(observations)}

    @property
    def uses_next_state(self) -> bool:
        return self.array.ndim >= 3

    @property
    def uses_observation(self) -> bool:
        return self.array.ndim == 4

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        position: tuple[int, ...] = (self._action_index[action], self._state_index[state])
        if self.array.ndim >= 3:
            position += (self._state_index[next_state],)
        if self.array.ndim == 4:
            position += (self._observation_index[observation],)
        value = self.array[position]
        return value.item() if isinstance(value, np.generic) else value

    def expected(self, transition: Sequence[Any], observation: Sequence[Any]) -> NDArray[np.float64]:
        """Return ``[A, S]``, the mean over next states and observations, for CSR T ``[S, S']`` and Z ``[S', O]``."""
        try:
            array = self.array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError("R: not all entries are numbers; substitute the symbols before compiling") from error
        if array.ndim == 2:
            return array
        means = []
        for a, matrix in enumerate(transition):
            rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
            values = array[a, rows, matrix.indices]
            if array.ndim == 4:
                values = _row_sums(observation[a][matrix.indices].multiply(values))
            means.append(np.bincount(rows, weights=matrix.data * values, minlength=matrix.shape[0]))
        return np.array(means)


def _row_sums(matrix: Any) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.asarray(matrix.sum(axis=1)).ravel()
    return sums


def _row(matrix: Any, index: int, names: Sequence[Any]) -> dict[Any, Number]:
    """Return the entries of one row that are not 0, by name."""
    if sparse.issparse(matrix):
        span = slice(matrix.indptr[index], matrix.indptr[index + 1])
        return {names[j]: float(p) for j, p in zip(matrix.indices[span], matrix.data[span], strict=True) if p != 0}
    return {names[j]: p for j, p in enumerate(matrix[index]) if p != 0}


def _matrices(array: Any, name: str) -> list[Any]:
    """One 2-D matrix an action: CSR in float64, or an array of objects for exact numbers."""
    blocks = list(array) if not sparse.issparse(array) else [array]
    result: list[Any] = []
    for a, block in enumerate(blocks):
        if sparse.issparse(block):
            matrix = sparse.csr_array(block).astype(np.float64)
            matrix.sum_duplicates()
        else:
            try:
                dense = np.asarray(block)
            except ValueError as error:
                raise ModelError(f"{name}[{a}]: its rows differ in length; {name} is [a, s, .]") from error
            if dense.ndim != 2:
                raise ModelError(
                    f"{name}[{a}]: expected a matrix, got an array of shape {dense.shape}; {name} is [a, s, .]"
                )
            matrix = dense if dense.dtype == object else sparse.csr_array(dense.astype(np.float64))
        result.append(matrix)
    if not result:
        raise ModelError(f"{name}: no action; expected one matrix an action")
    return result


def _check_rows(matrices: list[Any], name: str, tolerance: float) -> None:
    for a, matrix in enumerate(matrices):
        if sparse.issparse(matrix):
            bad = np.flatnonzero(~np.isfinite(matrix.data) | (matrix.data < 0))
            if len(bad):
                row = int(np.searchsorted(matrix.indptr, bad[0], side="right") - 1)
                raise ModelError(
                    f"{name}[{a}, {row}, {matrix.indices[bad[0]]}]: {matrix.data[bad[0]]} is no probability in [0, 1]"
                )
            sums = _row_sums(matrix)
            wrong = np.flatnonzero(np.abs(sums - 1) > tolerance)
            if len(wrong):
                raise ModelError(
                    f"{name}[{a}, {wrong[0]}]: the row sums to {float(sums[wrong[0]])!r}, not to 1 "
                    f"(tolerance {tolerance}); {len(wrong)} such rows in this matrix; divide each by its sum"
                )
            continue
        for row, entries in enumerate(matrix):
            negative = next((p for p in entries if not p >= 0), None)
            if negative is not None:
                raise ModelError(f"{name}[{a}, {row}]: {negative} is not a probability in [0, 1]")
            if not nearly_equal(total(entries), 1, tolerance):
                raise ModelError(
                    f"{name}[{a}, {row}]: the row sums to {total(entries)}, not to 1; divide it by its sum"
                )


def _names(given: Sequence[Any] | None, count: int, what: str) -> tuple[Any, ...]:
    names = tuple(range(count)) if given is None else tuple(given)
    if len(names) != count:
        raise ModelError(f"{what}: {len(names)} names for {count} {what}; give one each, or none")
    return names


def problem_from_arrays(
    cls: type[POMDP],
    T: Any,
    Z: Any,
    R: Any,
    *,
    initial_belief: Any,
    discount: Number,
    states: Sequence[Any] | None,
    actions: Sequence[Any] | None,
    observations: Sequence[Any] | None,
    terminal: Collection[Any] | Callable[[Any], bool] | None,
    tolerance: float,
) -> POMDP:
    """Return the problem that the arrays describe; see `POMDP.from_arrays`."""
    transition, likelihood = _matrices(T, "T"), _matrices(Z, "Z")
    n_actions, n_states = len(transition), transition[0].shape[0]
    n_observations = likelihood[0].shape[1]
    if len(likelihood) != n_actions:
        raise ModelError(f"Z: {len(likelihood)} actions, but T has {n_actions}; expected Z[a, s', o]")
    for a in range(n_actions):
        if transition[a].shape != (n_states, n_states):
            raise ModelError(f"T[{a}]: shape {transition[a].shape}; expected ({n_states}, {n_states}) as T[a, s, s']")
        if likelihood[a].shape != (n_states, n_observations):
            raise ModelError(
                f"Z[{a}]: shape {likelihood[a].shape}; expected ({n_states}, {n_observations}) as Z[a, s', o]"
            )
    _check_rows(transition, "T", tolerance)
    _check_rows(likelihood, "Z", tolerance)
    state_names = _names(states, n_states, "states")
    action_names = _names(actions, n_actions, "actions")
    observation_names = _names(observations, n_observations, "observations")
    if isinstance(R, RewardModel) or callable(R):
        reward = as_reward(R)
    else:
        array = np.asarray(R)
        array = array if array.dtype == object else array.astype(np.float64)
        wanted = (n_actions, n_states, n_states, n_observations)
        if array.ndim not in (2, 3, 4) or array.shape != wanted[: array.ndim]:
            raise ModelError(
                f"R: shape {array.shape}; expected {wanted[:2]}, {wanted[:3]} or {wanted} as R[a, s, s', o]"
            )
        if array.dtype != object and not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ModelError(f"R{list(where)}: {array[where]} is not finite")
        reward = ArrayReward(array, state_names, action_names, observation_names)
    if initial_belief is None:
        start = Belief.uniform(state_names)
    elif isinstance(initial_belief, (Belief, Mapping)):
        start = initial_belief if isinstance(initial_belief, Belief) else Belief(initial_belief, tolerance=tolerance)
    else:
        vector = list(initial_belief)
        if len(vector) != n_states:
            raise ModelError(f"initial_belief: {len(vector)} entries for {n_states} states")
        numbers = (p.item() if isinstance(p, np.generic) else p for p in vector)
        start = Belief(zip(state_names, numbers, strict=True), tolerance=tolerance)
    return cls(
        transition=ArrayTransition(transition, state_names, action_names),
        observation=ArrayObservation(likelihood, state_names, action_names, observation_names),
        reward=reward,
        initial_belief=start,
        discount=discount,
        terminal=terminal,
        legal_actions=action_names,
        states=state_names,
        actions=action_names,
        observations=observation_names,
        tolerance=tolerance,
    )
