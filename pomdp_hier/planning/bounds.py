"""Bounds on the value of a d-step look-ahead, from the compiled problem: reward range, QMDP, FIB, blind policies.

All of them bound ``V_d``, the value of looking ``d`` actions ahead with fringe value ``L``:

    V_0(b) = L(b),    V_d(b) = max_a Q_d(b, a),    Q_d(b, a) = R(b, a) + gamma sum_o Pr(o | b, a) V_{d-1}(tau(b, a, o))

over the actions that are legal under ``b``; the value is 0 once the process is over. A bound is a table
``B[d - 1, a, s]``, read at a belief as ``sum_s b(s) B[d - 1, a, s]``. An upper bound holds for its own ``d`` and fringe
only: one of the infinite horizon does not bound a search whose rewards are negative.
"""

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats
from pomdp_hier.planning.decision import OutcomeRows, outcome_rows
from pomdp_hier.planning.float_range import horizon_sum, require_float_range
from pomdp_hier.planning.leaf_values import LeafVectors
from pomdp_hier.pomdp import TabularPOMDP


def _start(compiled: TabularPOMDP, depth: int, fringe: LeafVectors | None) -> LeafVectors:
    """Return the leaf values to start from, 0 by default.

    Raises:
        ModelError: Floats cannot hold the values.
    """
    require_float_range(compiled, horizon_sum(compiled.discount, depth))
    if fringe is not None:
        return fringe
    shape = (1, compiled.n_states)
    return LeafVectors(np.zeros(shape), np.ones(shape, dtype=bool))


def _at_states(vectors: Floats, legal: Bools) -> Floats:
    """``[S]``, the best of the legal vectors in each state; ``inf`` where none is legal, which bounds any value."""
    best: Floats = np.where(legal, vectors, -np.inf).max(axis=0)
    return np.where(legal.any(axis=0), best, np.inf)


def reward_range(compiled: TabularPOMDP) -> tuple[float, float]:
    """Return the least and the greatest ``R(s, a)`` over legal pairs; terminal states count as 0.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> reward_range(POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1], [1]]], R=[[3, -1]]).compiled)
        (-1.0, 3.0)
    """
    rewards = compiled.reward[compiled.legal]
    return float(rewards.min()), float(rewards.max())


def range_bound(compiled: TabularPOMDP, depth: int, fringe: LeafVectors | None = None) -> Floats:
    """``[depth, A, S]``: the action's own reward, then the greatest reward at every step and the greatest fringe value.

    ``B_d(s, a) = R(s, a) + gamma U_{d-1}`` with ``U_d = max(R) + gamma U_{d-1}`` and ``U_0 = max(L)``; terminal states
    are worth 0. Admissible for every problem and every fringe that is at most its greatest value at a state.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> range_bound(POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1], [1]]], R=[[3, -1]]).compiled, 2)
        array([[[ 3., -1.]],
        <BLANKLINE>
               [[ 6.,  2.]]])
    """
    fringe = _start(compiled, depth, fringe)
    _, greatest = reward_range(compiled)
    ahead = float(_at_states(fringe.vectors, fringe.legal).max())
    table = np.empty((depth, compiled.n_actions, compiled.n_states))
    for d in range(depth):
        later = _discounted(compiled, np.array(ahead))
        table[d] = compiled.reward + np.where(compiled.terminal, 0.0, later)
        ahead = greatest + float(later)
    return table


def qmdp_bound(compiled: TabularPOMDP, depth: int, fringe: LeafVectors | None = None) -> Floats:
    """``[depth, A, S]``: the d-step value of a searcher who sees the state from the next step on.

    ``B_d(s, a) = R(s, a) + gamma sum_s' T(s, a, s') max_a' B_{d-1}(s', a')``, with ``L`` at the states in place of the
    maximum for ``d = 1``. Admissible when ``L(b) <= sum_s b(s) L(e_s)``, which holds for every maximum of linear
    functions; seeing the state then never hurts.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> two = POMDP.from_arrays(T=[[[1, 0], [0, 1]]] * 2, Z=[[[1], [1]]] * 2, R=[[1, 0], [0, 1]]).compiled
        >>> (qmdp_bound(two, 2) @ two.initial).tolist()  # knows the state after one step
        [[0.5, 0.5], [1.5, 1.5]]

    References:
        Littman, Cassandra and Kaelbling (1995).
    """
    fringe = _start(compiled, depth, fringe)
    ahead = _at_states(fringe.vectors, fringe.legal)
    legal: Bools = compiled.legal
    if compiled.legal_after is not None:  # the last observation is not known here: any action that some of them allows
        legal = legal & np.any(compiled.legal_after, axis=0, keepdims=True).T
    table = np.empty((depth, compiled.n_actions, compiled.n_states))
    for d in range(depth):
        for a, matrix in enumerate(compiled.transition):
            table[d, a] = compiled.reward[a] + _discounted(compiled, _product(matrix, ahead))
        ahead = _at_states(table[d], legal)
    return table


def _discounted(compiled: TabularPOMDP, values: Floats) -> Floats:
    """``gamma * values``, where a discount of 0 also silences an infinite bound."""
    return values * compiled.discount if compiled.discount else np.zeros_like(values)


def _product(matrix: sparse.csr_array, vector: Floats) -> Floats:
    """Return the sparse product in which a stored 0 times an infinite bound is 0."""
    if not np.isfinite(vector).all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    result: Floats = matrix @ vector
    return result


def fib_bound(compiled: TabularPOMDP, depth: int, fringe: LeafVectors | None = None) -> Floats:
    """``[depth, A, S]``: the d-step fast informed bound, never above `qmdp_bound`.

    ``B_d(s, a) = R(s, a) + gamma sum_o max_a' sum_s' p(s', o | s, a) B_{d-1}(s', a')``, with the vectors of the
    fringe in place of ``B_0``; ``a'`` runs over the actions that are legal in every state which ``(s, a, o)`` leads to.
    Admissible when ``L`` is at most a maximum of linear functions, which are then the vectors of the fringe.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> two = POMDP.from_arrays(T=[[[1, 0], [0, 1]]] * 2, Z=[[[1], [1]]] * 2, R=[[1, 0], [0, 1]]).compiled
        >>> (fib_bound(two, 2) @ two.initial).tolist()
        [[0.5, 0.5], [1.5, 1.5]]

    References:
        Hauskrecht (2000), section 4.3.
    """
    fringe = _start(compiled, depth, fringe)
    rows = [outcome_rows(compiled, a) for a in range(compiled.n_actions)]
    at_fringe = [_usable(r, fringe.legal, fringe.legal_after) for r in rows]
    inside = [_usable(r, compiled.legal, compiled.legal_after) for r in rows]
    vectors, usable = fringe.vectors, at_fringe
    table = np.empty((depth, compiled.n_actions, compiled.n_states))
    for d in range(depth):
        for a, outcomes in enumerate(rows):
            values = outcomes.matrix @ np.where(np.isfinite(vectors), vectors, 0.0).T
            values = _infinite_where(outcomes, vectors, values)
            best = np.where(usable[a], values, -np.inf).max(axis=1)
            best = np.where(usable[a].any(axis=1), best, np.inf)  # no action is legal there: the search will say so
            ahead = np.bincount(outcomes.state, weights=best, minlength=compiled.n_states)
            table[d, a] = compiled.reward[a] + _discounted(compiled, ahead.astype(np.float64))
        vectors, usable = table[d], inside
    return table


def _infinite_where(outcomes: OutcomeRows, vectors: Floats, values: Floats) -> Floats:
    unbounded = ~np.isfinite(vectors)
    if not unbounded.any():
        return values
    return np.where(outcomes.matrix @ unbounded.T.astype(np.float64) > 0, np.inf, values)


def _usable(outcomes: OutcomeRows, legal: Bools, legal_after: Bools | None) -> Bools:
    """``[M, K]``: the vector is legal in every state that the outcome leads to, and after its observation."""
    if legal.all():
        usable = np.ones((outcomes.matrix.shape[0], len(legal)), dtype=bool)
    else:
        usable = np.asarray(outcomes.matrix @ (~legal).T.astype(np.float64)) == 0
    if legal_after is not None:
        usable &= legal_after[outcomes.observation]
    return usable


def blind_bound(compiled: TabularPOMDP, depth: int, fringe: LeafVectors | None = None) -> Floats:
    """``[depth, A, S]``, a lower bound: the d-step value of the same action over and over.

    ``B_d(s, a) = R(s, a) + gamma sum_s' T(s, a, s') B_{d-1}(s', a)``, with ``B_0(s, a) = F[k, s]`` for the fringe's own
    vector of the action, or else one for all actions; ``-inf`` where the action cannot be repeated. Admissible when
    ``L`` is the maximum of its vectors.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
        >>> two = POMDP.from_arrays(T=[[[1, 0], [0, 1]]] * 2, Z=[[[1], [1]]] * 2, R=[[1, 0], [0, 1]]).compiled
        >>> (blind_bound(two, 2) @ two.initial).tolist()
        [[0.5, 0.5], [1.0, 1.0]]

    References:
        Hauskrecht (1997).
    """
    fringe = _start(compiled, depth, fringe)
    shape = (compiled.n_actions, compiled.n_states)
    vectors, after = np.where(fringe.legal, fringe.vectors, -np.inf), fringe.legal_after
    if len(vectors) not in (1, compiled.n_actions):  # one of them: legal in most states, and the greatest of those
        k = np.lexsort((fringe.vectors.sum(axis=1), fringe.legal.sum(axis=1)))[-1:]
        vectors, after = vectors[k], None if after is None else after[:, k]
    ahead = np.broadcast_to(vectors, shape).copy()
    repeatable: Bools = compiled.legal
    if compiled.legal_after is not None:
        repeatable = repeatable & np.all(compiled.legal_after, axis=0, keepdims=True).T
    if after is not None:
        ahead[np.broadcast_to(~np.all(after, axis=0, keepdims=True).T, shape)] = -np.inf
    if not fringe.exact:
        ahead[:] = -np.inf
    table = np.empty((depth, *shape))
    for d in range(depth):
        for a, matrix in enumerate(compiled.transition):
            table[d, a] = compiled.reward[a] + _discounted(compiled, _product(matrix, ahead[a]))
        table[d][~repeatable] = -np.inf
        ahead = table[d]
    return table
