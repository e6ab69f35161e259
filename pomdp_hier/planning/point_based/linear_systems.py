"""Linear systems of the values of policies, interruptible: a partial solution is a bound all the same.

For any v, ``v - max(v - r - gamma P v) slack`` is at most the solution of ``v = r + gamma P v``. So a system that was
solved only in part gives a lower bound too. The residual is all that has to be known of it.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._progress import Stop, never
from pomdp_hier.planning.point_based.model_arrays import SolverModel

POLICY_STEPS = 200  # of policy iteration at most
_LARGE = 2_000_000  # entries, beyond which sweeps come before the systems of the underlying MDP
_SWEEPS_OF_MDP = 20
_SETTLED = 1e-6  # relative to the greatest value: the rest by which sweeps suffice
DIRECT = 600  # unknowns that are solved directly: factors fill in
_MOST_DIRECT = 4_000  # unknowns that are solved directly with at most two entries each
_MOST_FACTORED = 10_000  # unknowns of which incomplete factors are made, with at most three entries each
_DROPPED = 1e-3
_FILL = 5
_MOST_STEPS = 150  # products
_BREAKDOWN = 1e-30  # ratio of two products below which the iteration restarts


def solved(
    step: sparse.csr_array,
    reward: Floats,
    discount: float,
    near: Floats,
    stop: Stop = never,
    *,
    precision: float = 1e-12,
) -> tuple[Floats, int]:
    """Return an approximate solution ``[M]`` of ``v = r + gamma P v``, and the number of products with P.

    Args:
        step: ``[M, M]``, P.
        reward: ``[M]``, r.
        discount: gamma.
        near: ``[M]``, the start of the iteration for a large system.
        stop: Whether to leave a large system with what has been reached.
        precision: The residual of a large system, relative to the rewards.
    """
    from scipy.sparse.linalg import spilu, spsolve

    size = len(reward)
    if size <= DIRECT or (size <= _MOST_DIRECT and step.nnz <= 2 * size):
        system = sparse.csc_array(sparse.eye_array(size, format="csc") - discount * step.tocsc())
        return np.asarray(spsolve(system, reward)), 0
    unit = float(np.abs(reward).max(initial=0.0)) or 1.0  # squares of rewards may exceed floats
    right, work = reward / unit, _Work(step, discount, stop)
    target = precision * _norm(right)
    values, rest = _iterated(work, right, near / unit, target, np.copy)
    if rest > target and len(right) <= _MOST_FACTORED and step.nnz <= 3 * len(right) and not stop():
        system = sparse.csc_array(sparse.eye_array(len(right), format="csc") - discount * step.tocsc())
        with suppress(RuntimeError):  # a factor with a zero on its diagonal
            factors = spilu(system, drop_tol=_DROPPED, fill_factor=_FILL)
            values, rest = _iterated(work, right, values, target, factors.solve)
    most = work.n_products + 2 * _MOST_STEPS
    while rest > target and work.n_products < most and not stop():
        values = values + work.residual(right, values)
        if work.n_products % _MOST_STEPS == 0:
            rest = _norm(work.residual(right, values))
    return values * unit, work.n_products


@dataclass
class _Work:
    """Products with the matrix of a system ``v - gamma P v = r``, counted."""

    step: sparse.csr_array
    discount: float
    stop: Stop
    n_products: int = 0

    def times(self, v: Floats) -> Floats:
        """Return ``v - gamma P v``."""
        self.n_products += 1
        product: Floats = v - self.discount * (self.step @ v)
        return product

    def residual(self, right: Floats, v: Floats) -> Floats:
        """Return ``r - v + gamma P v``, by which a step of the process changes the values."""
        return right - self.times(v)


def _iterated(
    work: _Work, right: Floats, near: Floats, target: float, improve: Callable[[Floats], Floats]
) -> tuple[Floats, float]:
    """Return the iterate of the least residual, and its norm, by the stabilised biconjugate gradients.

    It restarts where it breaks down, as on a system of cycles. SciPy's ends there. Its products are those of BLAS too,
    whose waiting threads count as CPU seconds of the process.

    Args:
        work: The products with the matrix.
        right: The right side.
        near: The first iterate.
        target: The norm of the residual at which to end.
        improve: An approximation to the inverse of the matrix.

    Source: van der Vorst (1992), Bi-CGSTAB.
    """
    values, best, least = near.copy(), near, np.inf
    residual = work.residual(right, values)
    most, restart = work.n_products + _MOST_STEPS, True
    while True:
        size = _norm(residual)
        if size < least:
            best, least = values.copy(), size
        if size <= target or not math.isfinite(size) or work.n_products >= most or work.stop():
            return best, least
        if restart:
            shadow, way, rho = residual, residual, size * size
        ahead_of = improve(way)
        ahead = work.times(ahead_of)
        along = _dot(shadow, ahead)
        alpha = rho / along if along else 0.0
        part = residual - alpha * ahead
        change_of = improve(part)
        change = work.times(change_of)
        steady = _dot(change, change)
        omega = _dot(change, part) / steady if steady else 1.0
        values += alpha * ahead_of + omega * change_of
        residual = part - omega * change
        rho, before = _dot(shadow, residual), rho
        restart = not (abs(rho) > _BREAKDOWN * before and omega and alpha)
        if restart:
            values += residual
            residual = work.residual(right, values)
        else:
            way = residual + (rho / before) * (alpha / omega) * (way - omega * ahead)


def _norm(v: Floats) -> float:
    return math.sqrt(_dot(v, v))


def _dot(one: Floats, other: Floats) -> float:
    return float(np.einsum("i,i->", one, other))


def controller_values(
    model: SolverModel, actions: Ints, after: Ints, guess: Floats | None = None, stop: Stop = never
) -> tuple[Floats, int]:
    """Return ``[N, n]``, lower bounds on the values of a controller's nodes, and the number of products with P.

    With action ``a_k`` at node k and node ``k'(o)`` after observation o, the values solve
    ``v_k(s) = R(s, a_k) + gamma sum_o sum_s' p(s', o | s, a_k) v_k'(o)(s')``. A value is -inf where the controller can
    reach an action that is not legal.

    Args:
        model: The problem, whose `slack` is finite.
        actions: ``[N]``, the action of each node.
        after: ``[N, O]``, the next node after each observation; -1 where none is legal.
        guess: ``[N, n]``, the start of the iteration for a large system.
        stop: Whether to leave a large system. The values are lower bounds still.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> listen, _ = controller_values(solver_model(tiger().compiled), np.array([0]), np.array([[0, 0]]))
        >>> listen.round(6).tolist()
        [[-20.0, -20.0]]
    """
    (indptr, column_of, probability, size) = model.layout
    order = np.argsort(actions, kind="stable")  # node by node is then action by action
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    following = np.where(after < 0, -1, rank[after])[order]
    columns, values, lengths = [], [], []
    for a in np.unique(actions).tolist():
        first, last = indptr[a * size], indptr[(a + 1) * size]
        observation, state = np.divmod(column_of[first:last], size)
        then = following[actions[order] == a][:, observation]
        columns.append(np.where(then < 0, -1, then * size + state).ravel())
        values.append(np.tile(probability[first:last], len(then)))
        lengths.append(np.tile(np.diff(indptr[a * size : (a + 1) * size + 1]), len(then)))
    column, value, length = np.concatenate(columns), np.concatenate(values), np.concatenate(lengths)
    lost = _lost(model, actions[order], column, length)
    reward = np.where(lost, 0.0, model.reward[actions[order]].ravel())
    if lost.any():
        row = np.repeat(np.arange(len(length)), length)
        kept = ~lost[row]
        column, value, length = column[kept], value[kept], np.bincount(row[kept], minlength=len(length))
    step = sparse.csr_array((value, column, np.append(0, np.cumsum(length))), shape=(len(length),) * 2)
    near = np.zeros_like(reward) if guess is None else guess[order].ravel()
    near = np.where(lost | ~np.isfinite(near), 0.0, near)
    slack = np.tile(model.slack, len(actions))
    below, n_products = below_solution(step, reward, model.discount, slack, near, stop)
    return np.where(lost, -np.inf, below).reshape(len(actions), size)[rank], n_products


def _lost(model: SolverModel, actions: Ints, column: Ints, length: Ints) -> Bools:
    """Return ``[N n]``, whether a pair of node and state can reach an illegal action, or no node."""
    lost: Bools = ~model.legal[actions].ravel()
    if not lost.any() and column.min(initial=0) >= 0:
        return lost
    row = np.repeat(np.arange(len(length)), length)
    lost[row[column < 0]] = True
    before = -1
    while int(lost.sum()) != before:  # a predecessor of a lost pair is lost as well
        before = int(lost.sum())
        lost[row[lost[column]]] = True
    return lost


def below_solution(
    step: sparse.csr_array, reward: Floats, discount: float, slack: Floats, near: Floats, stop: Stop
) -> tuple[Floats, int]:
    """Return the solution of ``v = r + gamma P v``, less the residual and rounding errors.

    Args:
        step: ``[M, M]``, P.
        reward: ``[M]``, r.
        discount: gamma.
        slack: ``[M]``, the accumulated error of an error of 1 per step.
        near: ``[M]``, the start of the iteration for a large system.
        stop: Whether to leave it.
    """
    values, n_products = solved(step, reward, discount, near, stop)
    short = float((values - discount * (step @ values) - reward).max(initial=0.0))
    below: Floats = values - (max(0.0, short) + 1e-15 * float(np.abs(values).max(initial=0.0))) * slack
    return below, n_products + 1


# --- the underlying MDP ----------------------------------------------------------------------------------------------


def mdp_bound(model: SolverModel, stop: Stop = never) -> Floats:
    """Return ``[A, n]``, at least the Q values of the underlying MDP, by policy iteration; -inf where not legal.

    For any values v, ``v + max(H v - v) slack`` bounds the values from above, and so does the least of several bounds.

    Args:
        model: The problem, whose `slack` is finite.
        stop: Whether to return the bound so far.
    """
    size, flat = model.size, model.reward.ravel()
    somewhere = model.legal.any(axis=0)

    upper = np.where(somewhere, max(0.0, float(flat.max(initial=0.0))) * model.slack, 0.0)
    values, chosen = upper, np.full(size, -1)
    large = sum(step.nnz for step in model.steps) > _LARGE
    for _ in range(_SWEEPS_OF_MDP if large else 0):  # which take less time than one system, and mostly suffice
        if stop():
            break
        best = np.where(somewhere, _stepped(model, values).max(axis=0), 0.0)
        scale = float(np.abs(values).max(initial=0.0))
        fall = (values - best)[somewhere]
        fallen = lowered(values, best, fall, model) + 1e-15 * scale * model.slack
        values = upper = np.where(somewhere, fallen, 0.0)
        if float(np.ptp(fall)) * float(model.slack.max()) <= _SETTLED * scale:
            return _stepped(model, upper)
    tied = even(size)
    for _ in range(POLICY_STEPS):
        q = _stepped(model, values)
        best = np.where(somewhere, q.max(axis=0), 0.0)
        scale = float(np.abs(values).max(initial=0.0))
        short = max(0.0, float((best - values).max(initial=0.0)))
        upper = np.minimum(upper, values + (short + 1e-15 * scale) * model.slack)
        choice = q.argmax(axis=0)
        if chosen[0] >= 0:
            choice = np.where(q[chosen, np.arange(size)] >= best - tied * scale, chosen, choice)
        if (choice == chosen).all() or stop():
            break
        chosen = choice
        rows = chosen * size + np.arange(size)
        step = _chosen_rows(model, chosen)
        values, _ = solved(step, np.where(somewhere, flat[rows], 0.0), model.discount, values, stop)
    return _stepped(model, upper)


def lowered(values: Floats, backed: Floats, fall: Floats, model: SolverModel) -> Floats:
    """Return an upper bound from one that a backup lowers by the least fall or more everywhere.

    If ``H v <= v - d``, then H does not raise ``v - d / (1 - m)`` either, where it keeps at least the part m of a fall.

    Source: MacQueen (1966), the bounds of value iteration.
    """
    least = max(0.0, float(fall.min(initial=np.inf))) if fall.size else 0.0
    bound: Floats = np.minimum(backed, values - least / (1 - model.share_kept) if model.share_kept < 1 else values)
    return bound


def mdp_stage(model: SolverModel, ahead: Floats | None) -> Floats:
    """Return ``[A, n]``, the Q values of the underlying MDP with one action more to go; -inf where not legal.

    Args:
        model: The problem.
        ahead: ``[A, n]``, those with one action less; ``None`` for 0.
    """
    values = np.zeros(model.size)
    if ahead is not None:
        values = np.where(model.legal.any(axis=0), ahead.max(axis=0, initial=-np.inf), 0.0)
    return _stepped(model, values)


def _stepped(model: SolverModel, values: Floats) -> Floats:
    """Return ``[A, n]``, the Q values of each action with the values ``[n]`` of the next state."""
    ahead = np.stack([step @ values for step in model.steps])
    return np.where(model.legal, model.reward + model.discount * ahead, -np.inf)


def _chosen_rows(model: SolverModel, chosen: Ints) -> sparse.csr_array:
    """Return the probabilities ``[n, n]`` of the next states under one action per state."""
    order = np.argsort(chosen, kind="stable")
    parts = [step[order[chosen[order] == a]] for a, step in enumerate(model.steps)]
    return sparse.csr_array(sparse.vstack(parts, format="csr")[np.argsort(order)])


def even(unknowns: int) -> float:
    """Return the relative difference at which values count as tied: the error of the solutions."""
    return 1e-13 if unknowns <= DIRECT else 1e-11
