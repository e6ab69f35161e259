"""TabularPOMDP: a POMDP compiled to arrays, for fast belief updates and planning."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints, as_floats
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief, as_belief
from pomdp_hier.pomdp.numeric import Number

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
