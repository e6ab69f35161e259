"""The bounds that a search starts from: the fast informed bound above (`tighter` has a closer one), plans below.

Both solve linear equations where the horizon has no end: value iteration would take ``log(eps) / log(gamma)`` sweeps,
policy iteration takes a few. What rounding may have taken off is found from the residual of the equations and added.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier.planning.point_based.controller_values import controller_values
from pomdp_hier.planning.point_based.model_arrays import SolverModel

_LARGEST_SYSTEM = 30_000
_SWEEPS = 1_000


@dataclass(frozen=True, eq=False)
class Groups:
    """The outcomes of a `SolverModel`, one row for each action, state and observation that can follow.

    Attributes:
        matrix: ``[G, n]`` CSR, ``p(s', o | s, a)``.
        row: ``[G]``, ``a n + s``.
        observation: ``[G]``.
        usable: ``[G, A]``, bool: the action is legal wherever the outcome can lead to.
    """

    matrix: sparse.csr_array
    row: Ints
    observation: Ints
    usable: Bools


def outcome_groups(model: SolverModel) -> Groups:
    """Return the outcomes by action, state and observation.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> outcome_groups(solver_model(tiger().compiled)).matrix.shape
        (12, 2)
    """
    row = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    observation, state = np.divmod(model.column, model.size)
    present, group = np.unique(row * model.n_observations + observation, return_inverse=True)
    matrix = sparse.csr_array((model.probability, (group.ravel(), state)), shape=(len(present), model.size))
    if model.legal.all():
        usable = np.ones((len(present), model.n_actions), dtype=bool)
    else:
        usable = np.asarray(matrix @ (~model.legal).T.astype(np.float64)) == 0
    return Groups(matrix, *np.divmod(present, model.n_observations), usable)


# --- above -----------------------------------------------------------------------------------------------------------


def informed_stage(model: SolverModel, groups: Groups, ahead: Floats | None) -> Floats:
    """Return ``[A, n]``, one backup of the fast informed bound.

    ``Q(a, s) = R(s, a) + gamma sum_o max_a' sum_s' p(s', o | s, a) Q(a', s')``; -inf where ``a`` is not legal.

    Args:
        model: The problem.
        groups: Its outcomes.
        ahead: ``[A, n]``, the bound with one action less to go; ``None`` where nothing follows.
    """
    q = model.reward.copy()
    if ahead is not None:
        best = best_usable(_values_after(groups, ahead), groups.usable)
        q += model.discount * np.bincount(groups.row, weights=best, minlength=q.size).reshape(q.shape)
    return np.where(model.legal, q, -np.inf)


def best_usable(values: Floats, usable: Bools) -> Floats:
    """Return ``[M]``, the greatest usable value of each row; 0 where none is, of which the search says if it meets it.

    Args:
        values: ``[M, A]``.
        usable: ``[M, A]``.
    """
    best: Floats = np.full(len(values), -np.inf)
    for a in range(values.shape[1]):  # numpy's maximum along a short axis takes three times as long
        np.maximum(best, values[:, a], out=best, where=usable[:, a])
    return _finite(best)


def _values_after(groups: Groups, q: Floats) -> Floats:
    """Return ``[G, A]``, the value of each action after each outcome, -inf where it is not legal there."""
    values: Floats = np.where(groups.usable, groups.matrix @ np.where(np.isfinite(q), q, 0.0).T, -np.inf)
    return values


def _finite(values: Floats) -> Floats:
    """Return the values with 0 where no action is legal, of which the search says when it meets it."""
    return np.where(np.isfinite(values), values, 0.0)


def informed_bound(model: SolverModel, groups: Groups) -> Floats:
    """Return ``[A, n]``, the fast informed bound of the endless horizon, at least its fixed point.

    Policy iteration: with the best action after each outcome held fast, the bound is the solution of a linear system.

    Args:
        model: The problem, whose `slack` is finite.
        groups: Its outcomes.

    Source: Hauskrecht (2000), section 4.3.
    """
    size = model.reward.size
    q = np.where(model.legal, float(model.reward.max(initial=0.0)) * model.slack, -np.inf)
    if size <= _LARGEST_SYSTEM:
        chosen: Ints | None = None
        q = informed_stage(model, groups, q)
        for _ in range(_SWEEPS):
            values = _values_after(groups, q)
            best = values.argmax(axis=1)
            if chosen is not None:  # what ties with the choice of before, up to rounding, does not take its place
                row = np.arange(len(best))
                least = values[row, chosen] + 1e-13 * float(np.abs(_finite(values)).max(initial=0.0))
                best = np.where(values[row, best] > least, best, chosen)
                if (best == chosen).all():
                    break
            chosen = best
            q = np.where(model.legal, _solve(model, groups, best), -np.inf)
    else:
        for _ in range(_SWEEPS):  # from above, each sweep is a bound
            q = informed_stage(model, groups, q)
    short = (informed_stage(model, groups, q)[model.legal] - q[model.legal]).max(initial=0.0)
    scale = float(np.abs(q[model.legal]).max(initial=0.0))
    return q + (float(short) + 1e-15 * scale) * model.slack


def _solve(model: SolverModel, groups: Groups, chosen: Ints) -> Floats:
    """Return ``[A, n]``, the values when each outcome is followed by the chosen action."""
    from scipy.sparse.linalg import spsolve

    size = model.reward.size
    entries = groups.matrix.tocoo()
    shape = (size, size)
    place = chosen[entries.row] * model.size + entries.col
    step = sparse.csc_array((entries.data, (groups.row[entries.row], place)), shape=shape)
    step.sum_duplicates()
    system = sparse.csc_array(sparse.eye_array(size, format="csc") - model.discount * step)
    values: Floats = np.asarray(spsolve(system, model.reward.ravel())).reshape(model.reward.shape)
    return values


# --- below -----------------------------------------------------------------------------------------------------------


def blind_plans(model: SolverModel, groups: Groups) -> Ints:
    """Return ``[A, O]``, what follows each action if it is repeated, or the first that is legal where it may not be.

    It is -1 where no one action is always legal.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> model = solver_model(tiger().compiled)
        >>> blind_plans(model, outcome_groups(model)).tolist()
        [[0, 0], [1, 1], [2, 2]]
    """
    after = np.repeat(np.arange(model.n_actions), model.n_observations).reshape(model.n_actions, -1)
    if model.legal.all():
        return after
    place = (groups.row // model.size) * model.n_observations + groups.observation
    flat = np.ones((after.size, model.n_actions), dtype=bool)
    np.logical_and.at(flat, place, groups.usable)
    usable: Bools = flat.reshape(*after.shape, -1)
    for a in range(model.n_actions):
        for o in range(model.n_observations):
            if not usable[a, o, a]:
                after[a, o] = int(usable[a, o].argmax()) if usable[a, o].any() else -1
    return after


def blind_stage(model: SolverModel, plans: Ints, ahead: Floats | None) -> Floats:
    """Return ``[A, n]``, the values of the plans with one action more to go than ``ahead``.

    Args:
        model: The problem.
        plans: ``[A, O]``, what follows each action and observation.
        ahead: ``[A, n]``, their values with one action less; ``None`` for the endless horizon, in equilibrium.
    """
    if ahead is None:
        return controller_values(model, np.arange(model.n_actions), plans)[0]
    row = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    observation, state = np.divmod(model.column, model.size)
    then = plans[row // model.size, observation]
    place = then * model.size + state
    lost = ~model.legal.ravel()
    lost[row[then < 0]] = True
    then_values = ahead.ravel()[place]
    lost[row[then_values == -np.inf]] = True
    then_values = np.where(np.isfinite(then_values), then_values, 0.0)
    values = np.bincount(row, weights=model.probability * then_values, minlength=lost.size)
    flat = model.reward.ravel() + model.discount * values
    return np.where(lost, -np.inf, flat).reshape(model.reward.shape)
