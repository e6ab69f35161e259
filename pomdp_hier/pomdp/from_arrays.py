"""Problems from arrays: what `POMDP.from_arrays` checks and builds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier.errors import ModelError
from pomdp_hier.files.memory import held
from pomdp_hier.pomdp.array_models import ArrayObservation, ArrayReward, ArrayTransition, row_sums
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.models import RewardModel, as_reward
from pomdp_hier.pomdp.numeric import brief, nearly_equal, total

__all__ = ["arguments_from_arrays"]


def _matrices(array: Any, name: str) -> list[Any]:
    """One 2-D matrix an action: CSR in float64, or an array of objects for exact numbers."""
    array = [array] if sparse.issparse(array) else held(name, array, ModelError)
    if not isinstance(array, Iterable):
        raise ModelError(f"{name}: {brief(array)} is no array; {name} is [a, s, .]")
    blocks = list(array)
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
            sums = row_sums(matrix)
            wrong = np.flatnonzero(np.abs(sums - 1) > tolerance)
            if len(wrong):
                raise ModelError(
                    f"{name}[{a}, {wrong[0]}]: the row sums to {float(sums[wrong[0]])}, not to 1 "
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
    array = np.asarray(R)
    array = array if array.dtype == object else array.astype(np.float64)
    wanted = (len(actions), len(states), len(states), len(observations))
    if array.ndim not in (2, 3, 4) or array.shape != wanted[: array.ndim]:
        raise ModelError(f"R: shape {array.shape}; expected {wanted[:2]}, {wanted[:3]} or {wanted} as R[a, s, s', o]")
    if array.dtype != object and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(f"R{list(where)}: {array[where]} is not finite")
    return ArrayReward(array, states, actions, observations)


def _start(given: Any, states: tuple[Any, ...], tolerance: float) -> Belief:
    if given is None:
        return Belief.uniform(states)
    if isinstance(given, (Belief, Mapping)):
        return as_belief(given, tolerance)
    vector = list(given)
    if len(vector) != len(states):
        raise ModelError(f"initial_belief: {len(vector)} entries for {len(states)} states")
    numbers = (p.item() if isinstance(p, np.generic) else p for p in vector)
    return Belief(zip(states, numbers, strict=True), tolerance=tolerance)
