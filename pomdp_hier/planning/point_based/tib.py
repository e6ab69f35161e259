"""The tighter informed bound: the fast informed bound for one who learns the state an action later.

The fast informed bound lets the state be known before each action. Here only the state before the *last* action is
known, and what was observed since: after action a in state s and observation o one believes ``beta(s, a, o)``. With a
value for each of these beliefs and each action,

    ``Q(beta, a) = R(beta, a) + gamma sum_o max_a' sum_s beta(s) Pr(o | s, a) Q(beta(s, a, o), a')``

which is at least the optimum, as that is convex in the belief, and at most the fast informed bound.

Source: Krale, Koops, Junges, Simão and Jansen (2025), Tighter value-function approximations for POMDPs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier.planning.point_based.model_arrays import Outcomes, SolverModel, best_usable
from pomdp_hier.planning.point_based.on_numpy import rounded_bits

_MOST_TERMS = 15_000_000  # products a sweep for each action, in some hundreds of megabytes
_MOST_WORK = 1_000_000_000  # products in all, some seconds
_LEAST_WEIGHT = 1e-290  # below, floats and certificates do not hold the ratios of two beliefs' weights
_SWEEPS = 200
_SETTLED = 1e-4  # of the greatest value: a sweep that changes less is the last


@dataclass(frozen=True, eq=False)
class OutcomeBeliefs:
    """The beliefs that one action leads to from a known state, with a bound of each action's value.

    Attributes:
        belief: ``[B, n]`` CSR, of mass 1, without repetition.
        value: ``[B, A]``, -inf where the action is not legal.
        row: ``[G]``, which of the beliefs each outcome of the `Outcomes` leads to.
        outcomes: The outcomes.
    """

    belief: sparse.csr_array
    value: Floats
    row: Ints
    outcomes: Outcomes


def tighter_informed_bound(
    model: SolverModel, outcomes: Outcomes, informed: Floats
) -> tuple[Floats, OutcomeBeliefs | None]:
    """Return ``[A, n]``, the bound at known states, and what it rests on.

    Each sweep over the beliefs goes from a bound to a bound that is no greater, so that they may end at any time.

    Args:
        model: The problem, whose `slack` is finite.
        outcomes: Its outcomes.
        informed: ``[A, n]``, the fast informed bound; it is what comes back, with ``None``, where the problem is so
            large that a sweep would take long, or has probabilities that are almost 0.
    """
    belief, mass, row = _beliefs(outcomes)
    degree = np.bincount(outcomes.row % model.size, minlength=model.size)
    if not len(row) or int(degree[belief.indices].sum()) > _MOST_TERMS or belief.data.min() < _LEAST_WEIGHT:
        return informed, None
    legal = np.asarray(belief @ (~model.legal).T.astype(np.float64)) == 0
    earned = np.asarray(belief @ np.where(model.legal, model.reward, 0.0).T)
    value = np.where(legal, np.asarray(belief @ np.where(model.legal, informed, 0.0).T), 0.0)
    scale = float(np.abs(value).max(initial=0.0))
    step, owner, usable = _step(model, outcomes, belief, mass, row)

    def backup(value: Floats) -> Floats:
        ahead = best_usable(np.asarray(step @ value), usable)
        total = np.bincount(owner, weights=ahead, minlength=earned.size).reshape(earned.shape)
        return np.where(legal, earned + model.discount * total, 0.0)

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
    """Return the beliefs after the outcomes, the probability of each outcome, and which belief it leads to."""
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
        The matrix; ``[M]``, which belief and action each row is of; ``[M, A]``, the actions that are legal after it.
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
