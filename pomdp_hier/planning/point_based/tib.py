"""The tighter informed bound (TIB): an upper bound at most FIB, in which the state is known one action later.

FIB assumes that the state is known before each action. TIB assumes the state before the *last* action, and the
observation since: the belief after action a in state s and observation o is ``beta(s, a, o)``. With a value for each of
these beliefs and each action,

    ``Q(beta, a) = R(beta, a) + gamma sum_o max_a' sum_s beta(s) Pr(o | s, a) Q(beta(s, a, o), a')``

This is at least the optimal value, which is convex in the belief, and at most FIB.

Source: Krale, Koops, Junges, Simão and Jansen (2025), Tighter value-function approximations for POMDPs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier.planning.point_based.model_arrays import Outcomes, SolverModel, best_usable
from pomdp_hier.planning.point_based.on_numpy import rounded_bits

_MOST_TERMS = 15_000_000  # products per sweep and action, in some hundreds of megabytes
_MOST_WORK = 1_000_000_000  # products in all, some seconds
_LEAST_WEIGHT = 1e-290  # below, floats and certificates do not represent the ratio of two weights
_SWEEPS = 200
_SETTLED = 1e-4  # relative to the greatest value: a sweep that changes less is the last


@dataclass(frozen=True, eq=False)
class OutcomeBeliefs:
    """The beliefs after one action from a known state, with a bound of each action's value.

    Attributes:
        belief: ``[B, n]`` CSR, distinct rows that sum to 1.
        value: ``[B, A]``, -inf where the action is not legal.
        row: ``[G]``, the belief after each of the outcomes.
        outcomes: The outcomes.
    """

    belief: sparse.csr_array
    value: Floats
    row: Ints
    outcomes: Outcomes


def tighter_informed_bound(
    model: SolverModel, outcomes: Outcomes, informed: Floats
) -> tuple[Floats, OutcomeBeliefs | None]:
    """Return ``[A, n]``, the bound at known states, and the bounds at the beliefs after outcomes.

    Each sweep over the beliefs lowers the bound, so that the iteration can stop at any time.

    Args:
        model: The problem, whose `slack` is finite.
        outcomes: Its outcomes.
        informed: ``[A, n]``, FIB. It is returned, with ``None``, if a sweep would take long, or if probabilities are
            almost 0.
    """
    belief, mass, row = _beliefs(outcomes)
    degree = np.bincount(outcomes.row % model.size, minlength=model.size)
    if not len(row) or int(degree[belief.indices].sum()) > _MOST_TERMS or belief.data.min() < _LEAST_WEIGHT:
        return informed, None
    legal = np.asarray(belief @ (~model.legal).T.astype(np.float64)) == 0
    immediate = np.asarray(belief @ np.where(model.legal, model.reward, 0.0).T)
    value = np.where(legal, np.asarray(belief @ np.where(model.legal, informed, 0.0).T), 0.0)
    scale = float(np.abs(value).max(initial=0.0))
    step, owner, usable = _step(model, outcomes, belief, mass, row)

    def backup(value: Floats) -> Floats:
        ahead = best_usable(np.asarray(step @ value), usable)
        total = np.bincount(owner, weights=ahead, minlength=immediate.size).reshape(immediate.shape)
        return np.where(legal, immediate + model.discount * total, 0.0)

    for _ in range(min(_SWEEPS, _MOST_WORK // max(1, step.nnz * model.n_actions))):
        before, value = value, np.minimum(value, backup(value))
        if float((before - value).max()) <= _SETTLED * scale:
            break
    short = max(0.0, float((backup(value) - value).max())) + 1e-15 * scale
    value += short * np.asarray(belief @ model.slack)[:, None]
    best = best_usable(mass[:, None] * value[row], outcomes.usable)
    ahead = np.bincount(outcomes.row, weights=best, minlength=model.reward.size).reshape(model.reward.shape)
    table = np.where(model.legal, model.reward + model.discount * ahead, -np.inf)
    return table, OutcomeBeliefs(belief, np.where(legal, value, -np.inf), row, outcomes)


def _beliefs(outcomes: Outcomes) -> tuple[sparse.csr_array, Floats, Ints]:
    """Return the beliefs after the outcomes, the probability of each outcome, and its belief."""
    matrix = outcomes.matrix
    mass = np.asarray(matrix.sum(axis=1)).ravel()
    indptr, index = matrix.indptr.tolist(), matrix.indices.astype(np.int64)
    weight = matrix.data / np.repeat(mass, np.diff(matrix.indptr))
    bits = rounded_bits(weight)
    places: dict[tuple[bytes, bytes], int] = {}
    row = np.empty(len(mass), dtype=np.int64)
    first: list[int] = []
    for g in range(len(mass)):
        span = slice(indptr[g], indptr[g + 1])
        key = index[span].tobytes(), bits[span].tobytes()
        row[g] = places.setdefault(key, len(first))
        if row[g] == len(first):
            first.append(g)
    scaled = sparse.csr_array((weight, matrix.indices, matrix.indptr), shape=matrix.shape)
    return sparse.csr_array(scaled[first]), mass, row


def _step(
    model: SolverModel, outcomes: Outcomes, belief: sparse.csr_array, mass: Floats, row: Ints
) -> tuple[sparse.csr_array, Ints, Bools]:
    """Return ``[M, B]``, ``beta(s) Pr(o | s, a)`` at ``beta(s, a, o)`` for each belief, action and observation.

    Returns:
        The matrix; ``[M]``, the belief and action of each row; ``[M, A]``, the actions that are legal after it.
    """
    action, state = np.divmod(outcomes.row, model.size)
    parts, owners, usable = [], [], []
    for a in range(model.n_actions):
        here = np.flatnonzero(action == a)
        spread = sparse.csr_array((mass[here], (state[here], np.arange(len(here)))), shape=(model.size, len(here)))
        terms = sparse.coo_array(belief @ spread)
        key = terms.coords[0].astype(np.int64) * model.n_observations + outcomes.observation[here[terms.coords[1]]]
        present, place = np.unique(key, return_inverse=True)
        entries = (terms.data, (place.ravel(), row[here[terms.coords[1]]]))
        parts.append(sparse.csr_array(entries, shape=(len(present), belief.shape[0])))
        owners.append(present // model.n_observations * model.n_actions + a)
        if model.legal.all():
            usable.append(np.ones((len(present), model.n_actions), dtype=bool))
        else:
            barred = (~outcomes.usable[here[terms.coords[1]]]).astype(np.float64)
            shape = (len(present), len(barred))
            members = sparse.csr_array((np.ones(len(barred)), (place.ravel(), np.arange(len(barred)))), shape=shape)
            usable.append(np.asarray(members @ barred) == 0)
    return sparse.csr_array(sparse.vstack(parts)), np.concatenate(owners), np.concatenate(usable)
