"""Models that are arrays: T and Z one matrix an action, R an array; `compiling` takes them over as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._messages import brief, counted, listed
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.known_names import nearest
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, as_float

__all__ = [
    "ArrayObservation",
    "ArrayReward",
    "ArrayTransition",
    "ListedReward",
    "Positions",
    "Rows",
    "floats",
    "row_sums",
]


@dataclass(frozen=True, slots=True)
class Rows:
    """Sparse rows: row ``i`` has ``values[indptr[i]:indptr[i+1]]`` in those ``columns``, which ascend."""

    indptr: Ints
    columns: Ints
    values: NDArray[Any]
    n_columns: int

    def row(self, index: int) -> list[tuple[int, Number]]:
        """Return the pairs of column and value of a row."""
        here = slice(self.indptr[index], self.indptr[index + 1])
        return list(zip(self.columns[here].tolist(), self.values[here].tolist(), strict=True))

    def sums(self) -> NDArray[Any]:
        """Return the sum of each row."""
        n_rows = len(self.indptr) - 1
        owner = np.repeat(np.arange(n_rows), np.diff(self.indptr))
        if self.values.dtype != object:
            return np.bincount(owner, weights=self.values, minlength=n_rows)
        sums = np.zeros(n_rows, dtype=object)
        np.add.at(sums, owner, self.values)
        return sums

    def largest(self) -> NDArray[Any]:
        """Return the largest value of each row; 1 for an empty one."""
        filled = np.flatnonzero(np.diff(self.indptr))
        largest = np.ones(len(self.indptr) - 1, dtype=self.values.dtype)
        if len(filled):
            largest[filled] = np.maximum.reduceat(self.values, self.indptr[filled])
        return largest

    def floats(self, where: str = "") -> sparse.csr_array:
        """Return the rows as a matrix in float64; ``where`` begins the message of an error."""
        shape = (len(self.indptr) - 1, self.n_columns)
        return sparse.csr_array((floats(self.values, where), self.columns, self.indptr), shape=shape)

    def scaled(self, divisors: NDArray[Any]) -> "Rows":
        """Return the rows, each divided by its divisor."""
        values = self.values / np.repeat(divisors, np.diff(self.indptr))
        return Rows(self.indptr, self.columns, values, self.n_columns)


class Positions(dict[Any, int]):
    """The position of each value in a space; a value that is not in it is an error of the package's own."""

    def __init__(self, what: str, values: Sequence[Any]) -> None:
        super().__init__((value, i) for i, value in enumerate(values))
        self.what = what

    def __missing__(self, value: Any) -> int:
        known = f"{counted(len(self), self.what)}, {listed(self)}"
        near = nearest(value, self)
        remedy = f" Use {near}." if near else ""
        raise ModelError(f"{self.what}: got {brief(value)}; expected one of the problem's {known}.{remedy}")


class ArrayTransition(TransitionModel):
    """``T[a, s, s']`` as a model over names; the matrices are ``[S, S']``, sparse or of objects."""

    def __init__(self, matrices: Sequence[Any], states: Sequence[Any], actions: Sequence[Any]) -> None:
        self.matrices = tuple(matrices)
        self.spaces = (tuple(states), tuple(actions))
        self._states = tuple(states)
        self._state_index = Positions("state", states)
        self._action_index = Positions("action", actions)

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
        self._state_index = Positions("state", states)
        self._action_index = Positions("action", actions)

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return _row(self.matrices[self._action_index[action]], self._state_index[next_state], self._observations)


class ListedReward(RewardModel):
    """A reward model over listed spaces, which gives the expected rewards of all states and actions at once."""

    spaces: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]

    def expected(self, transition: Sequence[Any], observation: Sequence[Any]) -> Floats:
        """Return ``[A, S]``, the means over what the rewards depend on, for CSR T ``[S, S']`` and Z ``[S', O]``."""
        raise NotImplementedError


class ArrayReward(ListedReward):
    """``R[a, s]``, ``R[a, s, s']`` or ``R[a, s, s', o]`` as a model over names."""

    def __init__(
        self, array: NDArray[Any], states: Sequence[Any], actions: Sequence[Any], observations: Sequence[Any]
    ) -> None:
        self.array = array
        self.spaces = (tuple(states), tuple(actions), tuple(observations))
        self._state_index = Positions("state", states)
        self._action_index = Positions("action", actions)
        self._observation_index = Positions("observation", observations)

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

    def expected(self, transition: Sequence[Any], observation: Sequence[Any]) -> Floats:
        array = floats(self.array, "R")
        if array.ndim == 2:
            return array
        means = []
        for a, matrix in enumerate(transition):
            rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
            values = array[a, rows, matrix.indices]
            if array.ndim == 4:
                values = row_sums(observation[a][matrix.indices].multiply(values))
            means.append(np.bincount(rows, weights=matrix.data * values, minlength=matrix.shape[0]))
        return np.array(means)


def floats(array: NDArray[Any], where: str) -> Floats:
    """Return the array in float64.

    Raises:
        ModelError: An entry has symbols, or is too large; the message begins with ``where``.
    """
    if array.dtype != object:
        return array.astype(np.float64)
    return np.array([as_float(value, where) for value in array.flat], dtype=np.float64).reshape(array.shape)


def row_sums(matrix: Any) -> Floats:
    sums: Floats = np.asarray(matrix.sum(axis=1)).ravel()
    return sums


def _row(matrix: Any, index: int, names: Sequence[Any]) -> dict[Any, Number]:
    """Return the entries of one row that are not 0, by name."""
    if sparse.issparse(matrix):
        span = slice(matrix.indptr[index], matrix.indptr[index + 1])
        return {names[j]: float(p) for j, p in zip(matrix.indices[span], matrix.data[span], strict=True) if p != 0}
    if isinstance(matrix, Rows):
        return {names[j]: p for j, p in matrix.row(index)}
    return {names[j]: p for j, p in enumerate(matrix[index]) if p != 0}
