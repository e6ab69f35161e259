"""The outcomes of an action as one sparse matrix, laid out for products with many beliefs or many value vectors."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Ints
from pomdp_hier.pomdp import TabularPOMDP

__all__ = ["OutcomeRows", "outcome_matrix", "outcome_rows"]


def outcome_matrix(compiled: TabularPOMDP, action: int) -> sparse.csr_array:
    """``[S, O * S']``, ``p(s', o | s, a)`` at column ``o * S + s'``, without stored zeros.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> tiny = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]]).compiled
        >>> outcome_matrix(tiny, 0).toarray()
        array([[0.5, 0. , 0. , 0.5],
               [0. , 0. , 0. , 1. ]])
    """
    size = compiled.n_states
    if compiled.observation is None:
        matrix = (compiled.joint or ())[action].copy()
    else:
        likelihood = compiled.observation[action].tocoo()
        columns = likelihood.col.astype(np.int64) * size + likelihood.row
        spread = sparse.csr_array(
            (likelihood.data, (likelihood.row, columns)), shape=(size, size * compiled.n_observations)
        )
        matrix = sparse.csr_array(compiled.transition[action] @ spread)
    matrix.eliminate_zeros()
    return matrix


@dataclass(frozen=True, eq=False)
class OutcomeRows:
    """The outcomes that can happen, one row for each ``(s, o)``.

    Attributes:
        matrix: ``[M, S']`` CSR, ``p(s', o | s, a)``.
        state, observation: ``[M]``, which ``(s, o)`` each row is.
    """

    matrix: sparse.csr_array
    state: Ints
    observation: Ints


def outcome_rows(compiled: TabularPOMDP, action: int) -> OutcomeRows:
    """Return the outcomes of the action as rows ``(s, o)``, those that cannot happen left out."""
    size, count = compiled.n_states, compiled.n_observations
    flat = outcome_matrix(compiled, action).tocoo()
    observation, next_state = np.divmod(flat.col.astype(np.int64), size)
    key = flat.row.astype(np.int64) * count + observation
    present, position = np.unique(key, return_inverse=True)
    matrix = sparse.csr_array((flat.data, (position, next_state)), shape=(len(present), size))
    state, seen = np.divmod(present, count)
    return OutcomeRows(matrix, state, seen)
