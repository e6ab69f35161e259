"""TabularPOMDP: a problem compiled to arrays over one frozen index, so that updates and plans cost sparse products."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, brief
from pomdp_hier.pomdp.problem import POMDP

__all__ = ["TabularPOMDP", "compile_problem"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class TabularPOMDP:
    """A POMDP as arrays; build one with ``problem.compiled``.

    The order of ``states``, ``actions`` and ``observations`` is the index of every array (S, A, O are their numbers).

    Attributes:
        states, actions, observations: the names, in index order.
        transition: one CSR matrix ``[S, S']`` an action, ``T[a][s, s']``; a terminal state's row is the unit row.
        observation: one CSR matrix ``[S', O]`` an action, ``Z[a][s', o]``; ``None`` where it depends on the state left.
        joint: only then: one CSR matrix ``[S, O * S']`` an action, ``p(s', o | s, a)`` at column ``o * S + s'``.
        reward: ``[A, S]``, the expected reward ``R(s, a)``; 0 for terminal states.
        discount: gamma.
        initial: ``[S]``, the initial belief.
        terminal: ``[S]``, bool.
        legal: ``[A, S]``, bool: the action is legal in the state (all of them where legality is by observation).
        legal_after: ``[O + 1, A]``, bool, where legality is by the last observation (the last row: before any).

    Example:
        >>> tiny = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]]).compiled
        >>> tiny.predict(tiny.initial, 0)
        array([0.25, 0.75])
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

    def __post_init__(self) -> None:
        for array in (self.reward, self.initial, self.terminal, self.legal, self.legal_after):
            if array is not None:
                array.flags.writeable = False

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
        """The position of each state."""
        return {state: i for i, state in enumerate(self.states)}

    @cached_property
    def action_index(self) -> dict[Any, int]:
        """The position of each action."""
        return {action: i for i, action in enumerate(self.actions)}

    @cached_property
    def observation_index(self) -> dict[Any, int]:
        """The position of each observation."""
        return {observation: i for i, observation in enumerate(self.observations)}

    @cached_property
    def _pushes(self) -> tuple[sparse.csr_array, ...]:
        """The transposes ``[S', S]`` in CSR, so that a prediction is one matrix-vector product."""
        return tuple(matrix.T.tocsr() for matrix in self.transition)

    @cached_property
    def _likelihoods(self) -> tuple[sparse.csr_array, ...]:
        """``Z[a]`` transposed to ``[O, S']`` in CSR: the likelihood of an observation is one row."""
        return tuple(matrix.T.tocsr() for matrix in self.observation or ())

    @cached_property
    def _joint_pushes(self) -> tuple[sparse.csr_array, ...]:
        return tuple(matrix.T.tocsr() for matrix in self.joint or ())

    def predict(self, belief: Floats, action: int) -> Floats:
        """``[S']``, the state after the action and before the observation: ``sum_s b(s) T(s, a, s')``."""
        prediction: Floats = self._pushes[action] @ belief
        return prediction

    def outcome(self, belief: Floats, action: int, observation: int) -> Floats:
        """``[S']``, ``p(s', o | b, a)``: the numerator of Bayes' rule for one observation; its sum is the evidence."""
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
        """``[O, S']``, ``p(s', o | b, a)`` for every observation at once, sparse, in one product."""
        if self.observation is None:
            flat = self._joint_pushes[action] @ belief
            return sparse.csr_array(flat.reshape(self.n_observations, self.n_states))
        matrix = self._likelihoods[action]
        data = matrix.data * self.predict(belief, action)[matrix.indices]
        return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)

    def legal_actions(self, belief: Floats, observation: int | None = None) -> NDArray[np.int64]:
        """The positions of the legal actions under the belief; empty once every state of the support is terminal.

        Raises:
            ModelError: no action is legal in all states of the support.
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
                f"legal_actions: no action is legal under a belief over {int(alive.sum())} states (the first: "
                f"{brief(first)}); make the state terminal, or give an action that waits"
            )
        return positions

    def vector(self, belief: Belief) -> Floats:
        """``[S]``, the belief as an array.

        Raises:
            ModelError: a state of the belief is not a state of the problem.
        """
        array = np.zeros(self.n_states)
        for state, probability in belief.items():
            if state not in self.state_index:
                raise ModelError(f"belief: {brief(state)} is not one of the problem's {self.n_states} states")
            array[self.state_index[state]] = float(probability)
        return array

    def belief(self, vector: ArrayLike) -> Belief:
        """The array ``[S]`` as a belief over named states."""
        array = np.asarray(vector, dtype=np.float64)
        return Belief({self.states[i]: float(array[i]) for i in np.flatnonzero(array)})


def compile_problem(problem: POMDP, *, tolerance: float = 1e-9) -> TabularPOMDP:
    """The problem as arrays, in float64; every state is visited once for each action.

    Raises:
        ModelError: legal actions depend on the belief; a row does not sum to 1 within ``tolerance``, leaves the spaces,
            or is not a number. `check_problem` lists all such faults at once.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait"])
        >>> compile_problem(stay).reward
        array([[1.]])
    """
    if problem.legal_by == "belief":
        raise ModelError(
            "legal_actions: they depend on the belief, which arrays cannot say; plan on the problem itself "
            "(BayesUpdater, RTBSS without compiling), or make them depend on the state"
        )
    builder = _Builder(problem, tolerance)
    uses_state = problem.observation.uses_state
    terminal = np.array([problem.is_terminal(s) for s in problem.states], dtype=bool)
    legal, legal_after = _legality(problem, terminal)
    transition = tuple(builder.transition(a) for a in problem.all_actions)
    initial = np.zeros(len(problem.states))
    for state, probability in problem.initial_belief.items():
        initial[builder.position(builder.states, state, "initial belief")] = float(probability)
    return TabularPOMDP(
        states=problem.states,
        actions=problem.all_actions,
        observations=problem.all_observations,
        transition=transition,
        observation=None if uses_state else tuple(builder.observation(a) for a in problem.all_actions),
        joint=tuple(builder.joint(a) for a in problem.all_actions) if uses_state else None,
        reward=np.array([builder.rewards(a, legal[i]) for i, a in enumerate(problem.all_actions)], dtype=np.float64),
        discount=float(problem.discount),
        initial=initial,
        terminal=terminal,
        legal=legal,
        legal_after=legal_after,
    )


def _legality(problem: POMDP, terminal: Bools) -> tuple[Bools, Bools | None]:
    """``[A, S]`` by state, and ``[O + 1, A]`` where legality is by observation."""
    actions, states = problem.all_actions, problem.states
    legal = np.ones((len(actions), len(states)), dtype=bool)
    if problem.legal_by == "observation":
        over = Belief.certain(states[int(np.argmin(terminal))])
        sets = [set(problem.actions(over, o)) for o in (*problem.all_observations, None)]
        return legal, np.array([[a in allowed for a in actions] for allowed in sets], dtype=bool)
    for i, state in enumerate(states):
        if not terminal[i]:
            allowed = set(problem.actions(Belief.certain(state)))
            legal[:, i] = [a in allowed for a in actions]
    return legal, None


class _Builder:
    """Walks the models of a problem into matrices, checking each row as it goes by."""

    def __init__(self, problem: POMDP, tolerance: float) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.states = {state: i for i, state in enumerate(problem.states)}
        self.observations = {observation: i for i, observation in enumerate(problem.all_observations)}

    def position(self, index: Mapping[Any, int], value: Hashable, where: str) -> int:
        if value not in index:
            raise ModelError(
                f"{where}: {brief(value)} is not in the problem's space of {len(index)}; add it, or mend the model"
            )
        return index[value]

    def _legal_in(self, action: Any, state: Any) -> bool:
        problem = self.problem
        if problem.is_terminal(state) or problem.legal_by != "state":
            return True
        return action in problem.actions(Belief.certain(state))

    def transition(self, action: Any) -> sparse.csr_array:
        """``[S, S']``; where the action is not legal the row is the unit row, which no plan ever uses."""

        def row(state: Any) -> Iterable[tuple[int, Number]]:
            if not self._legal_in(action, state):
                return [(self.states[state], 1)]
            where = f"transition from {brief(state)} under {brief(action)}"
            return [
                (self.position(self.states, s, where), p) for s, p in self.problem.successors(state, action).items()
            ]

        return self._matrix(row, len(self.states), f"transition under {brief(action)} from")

    def observation(self, action: Any) -> sparse.csr_array:
        """``[S', O]``; only states that the action can reach are asked, the others keep an empty row."""
        reached = {s: None for state in self.states for s in self._successors(state, action)}

        def row(next_state: Any) -> Iterable[tuple[int, Number]]:
            if next_state not in reached:
                return []
            where = f"observation in {brief(next_state)} after {brief(action)}"
            distribution = self.problem.observation_distribution(next_state, action, None)
            return [(self.position(self.observations, o, where), p) for o, p in distribution.items()]

        return self._matrix(row, len(self.observations), f"observation after {brief(action)} in", empty_is_fine=True)

    def joint(self, action: Any) -> sparse.csr_array:
        """``[S, O * S']``, for observations that depend on the state that was left."""
        size = len(self.states)

        def row(state: Any) -> Iterable[tuple[int, Number]]:
            entries = []
            for next_state, probability in self._successors(state, action).items():
                where = f"observation in {brief(next_state)} after {brief(action)}"
                distribution = self.problem.observation_distribution(next_state, action, state)
                for o, likelihood in distribution.items():
                    column = self.position(self.observations, o, where) * size + self.states[next_state]
                    entries.append((column, probability * likelihood))
            return entries

        return self._matrix(row, size * len(self.observations), f"outcome of {brief(action)} from", empty_is_fine=True)

    def _successors(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return self.problem.successors(state, action) if self._legal_in(action, state) else {}

    def rewards(self, action: Any, legal: Bools) -> list[float]:
        values = []
        for state, allowed in zip(self.states, legal, strict=True):
            reward = self.problem.expected_reward(state, action) if allowed else 0.0
            values.append(self._number(reward, f"reward of {brief(action)} in {brief(state)}"))
        return values

    def _number(self, value: Number, where: str) -> float:
        try:
            number = float(value)
        except TypeError as error:
            raise ModelError(
                f"{where}: {brief(value)} is not a number; substitute the symbols before compiling"
            ) from error
        if not np.isfinite(number):
            raise ModelError(f"{where}: {number} is not finite")
        return number

    def _matrix(self, row: Any, width: int, what: str, empty_is_fine: bool = False) -> sparse.csr_array:
        data: list[float] = []
        columns: list[int] = []
        offsets = [0]
        for state in self.states:
            start = len(data)
            for column, probability in row(state):
                number = self._number(probability, f"{what} {brief(state)}")
                if number < 0:
                    raise ModelError(f"{what} {brief(state)}: the probability {number} is negative")
                if number > 0:
                    columns.append(column)
                    data.append(number)
            mass = sum(data[start:])
            if abs(mass - 1) > self.tolerance and not (empty_is_fine and len(data) == start):
                raise ModelError(
                    f"{what} {brief(state)}: the probabilities sum to {mass!r}, not to 1 (tolerance {self.tolerance}); "
                    "check_problem lists every such row"
                )
            offsets.append(len(data))
        shape = (len(self.states), width)
        matrix = sparse.csr_array((np.array(data), np.array(columns, dtype=np.int64), np.array(offsets)), shape=shape)
        matrix.sum_duplicates()
        return matrix
