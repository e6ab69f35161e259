"""Models on arrays: one matrix per action for T and Z, an array for R."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomdp_hier._arguments import Floats, Ints, is_real
from pomdp_hier._io.formats import held
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.models import Kept, ObservationModel, RewardModel, TransitionModel, as_reward
from pomdp_hier.pomdp.numeric import (
    Number,
    as_float,
    is_finite,
    is_nonnegative,
    is_number,
    is_symbolic,
    is_text,
    nearly_equal,
    shown,
    total,
)
from pomdp_hier.pomdp.spaces import distinct, nearest


@dataclass(frozen=True, slots=True)
class Rows:
    """Sparse rows (CSR): row ``i`` has ``values[indptr[i]:indptr[i+1]]`` in the same part of ``columns``, ascending."""

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
    """The index of each value in a space; an unknown value raises `ModelError`."""

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
        self.rows = Kept(self._row)
        self.matrices = tuple(matrices)
        self.spaces = (tuple(states), tuple(actions))
        self._states = tuple(states)
        self._state_index = Positions("state", states)
        self._action_index = Positions("action", actions)

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return self.rows[state, action]

    def _row(self, state: Any, action: Any) -> dict[Any, Number]:
        return _row(self.matrices[self._action_index[action]], self._state_index[state], self._states)


class ArrayObservation(ObservationModel):
    """``Z[a, s', o]`` as a model over names; the matrices are ``[S', O]``, sparse or of objects."""

    uses_state = False

    def __init__(
        self, matrices: Sequence[Any], states: Sequence[Any], actions: Sequence[Any], observations: Sequence[Any]
    ) -> None:
        self.rows = Kept(self._row)
        self.matrices = tuple(matrices)
        self.spaces = (tuple(states), tuple(actions), tuple(observations))
        self._observations = tuple(observations)
        self._state_index = Positions("state", states)
        self._action_index = Positions("action", actions)

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return self.rows[next_state, action]

    def _row(self, next_state: Any, action: Any) -> dict[Any, Number]:
        return _row(self.matrices[self._action_index[action]], self._state_index[next_state], self._observations)


class ListedReward(RewardModel):
    """A reward model over listed spaces, with the expected rewards of all states and actions at once."""

    spaces: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]

    def expected(self, transition: Sequence[Any], observation: Sequence[Any]) -> Floats:
        """Return ``[A, S]``, the expected rewards, for CSR T ``[S, S']`` and Z ``[S', O]``."""
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
    """Return the array in float64."""
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
        pairs = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
        return {names[j]: p for j, p in pairs if p != 0}
    if isinstance(matrix, Rows):
        return {names[j]: p for j, p in matrix.row(index)}
    return {names[j]: p for j, p in enumerate(matrix[index]) if p != 0}


_SHAPES = {"T": "[a, s, s']", "Z": "[a, s', o]", "R": "[a, s], [a, s, s'] or [a, s, s', o]"}


def _array(values: Any, name: str) -> NDArray[Any]:
    """Return numbers as an array: in float64, or of objects where they are exact."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ModelError(f"{name}: got rows that differ in length; expected {_SHAPES[name[0]]}.") from error
    if array.dtype.kind in "US" or (array.dtype == object and any(map(is_text, array.flat))):
        text = next(filter(is_text, array.flat))
        raise ModelError(
            f"{name}: got the text {brief(str(text))}; expected numbers. Convert it with array.astype(float)."
        )
    if array.dtype.kind not in "biufO":  # complex numbers, times, records
        raise ModelError(f"{name}: got an array of {array.dtype}; expected real numbers.")
    if array.dtype != object:
        with np.errstate(over="ignore"):  # of a longer kind of float, whose infinity is rejected as one
            return array.astype(np.float64)
    strange = next((value for value in array.flat if not is_number(value)), None)
    if strange is not None:
        raise ModelError(f"{name}: got {brief(strange)}; expected numbers.")
    return array


def _matrices(array: Any, name: str) -> list[Any]:
    """Return one 2-D matrix per action: CSR in float64, or an array of objects for exact numbers."""
    array = [array] if sparse.issparse(array) else held(name, array, ModelError)
    if isinstance(array, str | bytes) or not isinstance(array, Iterable):
        raise ModelError(f"{name}: got {brief(array)}; expected an array {_SHAPES[name]}.")
    result: list[Any] = []
    for a, block in enumerate(array):
        if sparse.issparse(block):
            matrix = sparse.csr_array(block).astype(np.float64)
            matrix.sum_duplicates()
        else:
            dense = _array(block, f"{name}[{a}]")
            if dense.ndim != 2:
                raise ModelError(
                    f"{name}[{a}]: got an array of shape {dense.shape}; expected a matrix of {_SHAPES[name]}."
                )
            matrix = dense if dense.dtype == object else sparse.csr_array(dense)
        result.append(matrix)
    if not result:
        raise ModelError(f"{name}: got no action; expected one matrix per action.")
    return result


_SWAPPED = "The columns sum to 1: the axes may be swapped. Give [matrix.T for matrix in {}], if they are."


def _wrong_sums(matrix: Any, axis: int, tolerance: float) -> list[tuple[int, Number]]:
    """Return the rows (axis 1) or columns (axis 0) that do not sum to 1, each with its sum."""
    if not sparse.issparse(matrix):
        sums = enumerate(map(total, matrix if axis == 1 else matrix.T))
        return [(i, row_sum) for i, row_sum in sums if not nearly_equal(row_sum, 1, tolerance)]
    with np.errstate(over="ignore"):
        masses = np.asarray(matrix.sum(axis=axis)).ravel()
    wrong = np.flatnonzero(~(np.abs(masses - 1) <= tolerance))
    return list(zip(wrong.tolist(), masses[wrong].tolist(), strict=True))


def _check_rows(matrices: list[Any], name: str, tolerance: float) -> None:
    for a, matrix in enumerate(matrices):
        for row, column, value in _strange_entries(matrix):
            raise ModelError(f"{name}[{a}, {row}, {column}]: got {shown(value)}; expected a probability in [0, 1].")
        for row, row_sum in _wrong_sums(matrix, 1, tolerance):
            raise ModelError(
                f"{name}[{a}, {row}]: got a row that sums to {shown(row_sum)}; expected 1 (tolerance {tolerance}). "
                f"{_remedy(matrices, name, row_sum, tolerance)}"
            )


def _strange_entries(matrix: Any) -> Iterator[tuple[int, int, Number]]:
    if not sparse.issparse(matrix):
        for (row, column), value in np.ndenumerate(matrix):
            if not is_nonnegative(value):
                yield row, column, value
        return
    for i in np.flatnonzero(~np.isfinite(matrix.data) | (matrix.data < 0)):
        row = int(np.searchsorted(matrix.indptr, i, side="right") - 1)
        yield row, int(matrix.indices[i]), float(matrix.data[i])


def _remedy(matrices: list[Any], name: str, row_sum: Number, tolerance: float) -> str:
    """Return what to do about a row that does not sum to 1."""
    if not any(_wrong_sums(matrix, 0, tolerance) for matrix in matrices):
        return _SWAPPED.format(name)
    if not is_symbolic(row_sum) and row_sum == 0:
        return "Give each state an outcome, such as itself where it stays."
    if not is_symbolic(row_sum) and row_sum == math.inf:
        return "Divide the row by its largest entry, and then each row by its sum, if the entries are weights."
    return "Divide each row by its sum, if the entries are weights."


def _names(given: Sequence[Any] | None, count: int, what: str) -> tuple[Any, ...]:
    names = tuple(range(count)) if given is None else distinct(what, given)
    if len(names) != count:
        raise ModelError(f"{what}: got {len(names)} names; expected {count}, one per {what[:-1]}. None numbers them.")
    return names


def arguments_from_arrays(
    T: Any,
    Z: Any,
    R: Any,
    *,
    initial_belief: Any,
    states: Sequence[Any] | None,
    actions: Sequence[Any] | None,
    observations: Sequence[Any] | None,
    tolerance: float,
) -> dict[str, Any]:
    """Return the arguments of the problem that the arrays describe; see `POMDP.from_arrays`."""
    if not (is_real(tolerance) and 0 <= tolerance < 1):
        raise ModelError(f"tolerance: got {brief(tolerance)}; expected a number in [0, 1). Use 1e-9, for example.")
    transition, likelihood = _matrices(T, "T"), _matrices(Z, "Z")
    n_actions, n_states = len(transition), transition[0].shape[0]
    n_observations = likelihood[0].shape[1]
    for a, matrix in enumerate(transition):
        if matrix.shape != (n_states, n_states):
            turned = matrix.shape == (n_states, n_actions)  # T[s, a, s'], cut along s
            remedy = " The axes may be [s, a, s']. Give numpy.swapaxes(T, 0, 1), if they are." if turned else ""
            raise ModelError(
                f"T[{a}]: got shape {matrix.shape}; expected ({n_states}, {n_states}) as T[a, s, s'].{remedy}"
            )
    if len(likelihood) != n_actions:
        turned = (len(likelihood), likelihood[0].shape[0]) == (n_states, n_actions)
        remedy = " The axes may be [s', a, o]. Give numpy.swapaxes(Z, 0, 1), if they are." if turned else ""
        raise ModelError(f"Z: got {len(likelihood)} actions; expected {n_actions}, as in T, as Z[a, s', o].{remedy}")
    for a, matrix in enumerate(likelihood):
        if matrix.shape != (n_states, n_observations):
            wanted = f"{n_states} rows" if a == 0 else f"({n_states}, {n_observations})"
            remedy = ""
            if matrix.shape[1] == n_states and not _wrong_sums(matrix, 0, tolerance):
                remedy = f" {_SWAPPED.format('Z')}"
            raise ModelError(f"Z[{a}]: got shape {matrix.shape}; expected {wanted} as Z[a, s', o].{remedy}")
    _check_rows(transition, "T", tolerance)
    _check_rows(likelihood, "Z", tolerance)
    state_names = _names(states, n_states, "states")
    action_names = _names(actions, n_actions, "actions")
    observation_names = _names(observations, n_observations, "observations")
    return {
        "transition": ArrayTransition(transition, state_names, action_names),
        "observation": ArrayObservation(likelihood, state_names, action_names, observation_names),
        "reward": _reward(R, state_names, action_names, observation_names),
        "initial_belief": _start(initial_belief, state_names, tolerance),
        "legal_actions": action_names,
        "states": state_names,
        "actions": action_names,
        "observations": observation_names,
        "tolerance": tolerance,
    }


def _reward(R: Any, states: tuple[Any, ...], actions: tuple[Any, ...], observations: tuple[Any, ...]) -> RewardModel:
    if isinstance(R, RewardModel) or callable(R):
        return as_reward(R)
    array = _array(R, "R")
    wanted = (len(actions), len(states), len(states), len(observations))
    if array.ndim not in (2, 3, 4) or array.shape != wanted[: array.ndim]:
        remedy = ""
        if array.ndim > 1 and array.swapaxes(0, 1).shape == wanted[: array.ndim]:
            remedy = " The axes may be [s, a, ...]. Give numpy.swapaxes(R, 0, 1), if they are."
        raise ModelError(
            f"R: got shape {array.shape}; expected {wanted[:2]}, {wanted[:3]} or {wanted} as R[a, s, s', o].{remedy}"
        )
    strange: list[tuple[int, ...]] = []
    if array.dtype == object:
        strange = [where for where, value in np.ndenumerate(array) if not is_finite(value)]
    elif not np.isfinite(array).all():
        strange = list(map(tuple, np.argwhere(~np.isfinite(array)).tolist()))
    if strange:
        value = array.tolist()
        for i in strange[0]:
            value = value[i]
        raise ModelError(f"R{list(strange[0])}: got {brief(value)}; expected a finite number.")
    return ArrayReward(array, states, actions, observations)


def _start(given: Any, states: tuple[Any, ...], tolerance: float) -> Belief:
    if given is None:
        return Belief.uniform(states)
    if isinstance(given, (Belief, Mapping)):
        return as_belief(given, tolerance)
    vector = _array(list(given) if isinstance(given, Iterable) else given, "initial_belief")
    if vector.shape != (len(states),):
        raise ModelError(f"initial_belief: got shape {vector.shape}; expected ({len(states)},), one number per state.")
    return Belief(zip(states, vector.tolist(), strict=True), tolerance=tolerance)


def positions_of(index: Mapping[Any, int], values: Collection[Hashable], where: Callable[[], str]) -> list[int]:
    """Return the index of each value in a space; ``where`` returns the location for an error."""
    try:
        return list(map(index.__getitem__, values))
    except KeyError as error:
        strange = next(value for value in values if value not in index)
        raise ModelError(
            f"{where()}: got {brief(strange)}; expected a name of the problem's space of {len(index)}. "
            f"Add it to the space, or use {nearest(strange, index) or 'another'}."
        ) from error


def as_numbers(values: Sequence[Number], where: Callable[[int], str]) -> Floats:
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
