"""Vectors of a controller: the value of each of its nodes in every state, as one linear system.

With action ``a_k`` at node k and node ``k'(o)`` after observation o,
``v_k(s) = R(s, a_k) + gamma sum_o sum_s' p(s', o | s, a_k) v_k'(o)(s')``.
"""

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier.planning.point_based.model_arrays import SolverModel

_SMALL_SYSTEM = 4_000
_MOST_STEPS = 300


def controller_values(
    model: SolverModel, actions: Ints, after: Ints, guess: Floats | None = None
) -> tuple[Floats, int]:
    """Return ``[N, n]``, at most the values of a controller's nodes, and how many products with P that took.

    A value is -inf where the controller can reach an action that is not legal.

    Args:
        model: The problem, whose `slack` is finite.
        actions: ``[N]``, the action of each node.
        after: ``[N, O]``, the next node after each observation; -1 where there is none that is legal.
        guess: ``[N, n]``, where to begin, if the system is large.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> listen, _ = controller_values(solver_model(tiger().compiled), np.array([0]), np.array([[0, 0]]))
        >>> listen.round(6).tolist()
        [[-20.0, -20.0]]
    """
    size = model.size
    order = np.argsort(actions, kind="stable")  # node by node is then action by action
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    following = np.where(after < 0, -1, rank[after])[order]
    columns, values, lengths = [], [], []
    for a in np.unique(actions).tolist():
        first, last = model.indptr[a * size], model.indptr[(a + 1) * size]
        observation, state = np.divmod(model.column[first:last], size)
        then = following[actions[order] == a][:, observation]
        columns.append(np.where(then < 0, -1, then * size + state).ravel())
        values.append(np.tile(model.probability[first:last], len(then)))
        lengths.append(np.tile(np.diff(model.indptr[a * size : (a + 1) * size + 1]), len(then)))
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
    solved, n_products = _below_solution(step, reward, model.discount, np.tile(model.slack, len(actions)), near)
    return np.where(lost, -np.inf, solved).reshape(len(actions), size)[rank], n_products


def _lost(model: SolverModel, actions: Ints, column: Ints, length: Ints) -> Bools:
    """Return ``[N n]``, whether a node comes from a state to an action that is not legal, or to no node."""
    lost: Bools = ~model.legal[actions].ravel()
    if not lost.any() and column.min(initial=0) >= 0:
        return lost
    row = np.repeat(np.arange(len(length)), length)
    lost[row[column < 0]] = True
    before = -1
    while int(lost.sum()) != before:  # whoever can come to what is lost is lost as well
        before = int(lost.sum())
        lost[row[lost[column]]] = True
    return lost


def _below_solution(
    step: sparse.csr_array, reward: Floats, discount: float, slack: Floats, near: Floats
) -> tuple[Floats, int]:
    """Return the solution of ``v = r + gamma P v``, less what the solver leaves and rounding may have added.

    For any v, ``v - max(v - r - gamma P v) slack`` is at most the solution.

    Args:
        step: ``[M, M]``, P.
        reward: ``[M]``, r.
        discount: gamma.
        slack: ``[M]``, what an error of 1 a step can add up to.
        near: ``[M]``, where a large system begins.
    """
    from scipy.sparse.linalg import LinearOperator, bicgstab, spsolve

    n_products = 0

    def applied(v: Floats) -> Floats:
        nonlocal n_products
        n_products += 1
        left: Floats = v - discount * (step @ v)
        return left

    if len(reward) <= _SMALL_SYSTEM:
        system = sparse.csc_array(sparse.eye_array(len(reward), format="csc") - discount * step.tocsc())
        values = np.asarray(spsolve(system, reward))
    else:
        system = LinearOperator(step.shape, matvec=applied, dtype=np.float64)
        unit = float(np.abs(reward).max(initial=0.0)) or 1.0  # squares of rewards need not be floats
        values, _ = bicgstab(system, reward / unit, x0=near / unit, rtol=1e-10, atol=0.0, maxiter=_MOST_STEPS)
        values *= unit
        if not np.isfinite(values).all():
            values = np.zeros_like(reward)
    short = float((applied(values) - reward).max(initial=0.0))
    below: Floats = values - (max(0.0, short) + 1e-15 * float(np.abs(values).max(initial=0.0))) * slack
    return below, n_products
