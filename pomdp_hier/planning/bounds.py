"""Bounds on the optimal value as tables of actions and states: QMDP, FIB, TIB, the reward range, blind policies.

A table is read at a belief as ``max_a sum_s b(s) B[a, s]`` over legal actions. Over an infinite horizon it bounds the
optimal value. Over ``d`` actions it bounds ``V_d``, the value of a look-ahead to leaf values ``L``:

    V_0(b) = L(b),    V_d(b) = max_a Q_d(b, a),    Q_d(b, a) = R(b, a) + gamma sum_o Pr(o | b, a) V_{d-1}(tau(b, a, o))

An upper bound holds for its own horizon and leaf values: an infinite-horizon bound does not hold for a look-ahead whose
rewards are negative.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints, check_choice, check_integer
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning.alpha_vectors import LeafVectors
from pomdp_hier.planning.decision import TERMINAL_VALUE
from pomdp_hier.planning.float_range import horizon_sum, require_float_range
from pomdp_hier.planning.point_based.blind_policies import blind_plans, blind_stage, blind_values, repeated
from pomdp_hier.planning.point_based.initial_bounds import informed_bound, informed_stage, tighter_informed_bound
from pomdp_hier.planning.point_based.linear_systems import solved
from pomdp_hier.planning.point_based.model_arrays import SolverModel, solver_model, state_model
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.tabular import TabularPOMDP

Kind = Literal["blind", "fib", "tib", "qmdp", "range"]

_KINDS = ("blind", "fib", "tib", "qmdp", "range")
_MDP_SWEEPS = 50  # backups before, and between, exact values of the best policy so far


def value_bound(problem: POMDP, kind: Kind, horizon: int | None = None) -> Floats:
    """Return a bound on the optimal value as a table ``[A, S]``.

    Args:
        problem: The problem.
        kind: ``"blind"``, the same action at every step, a lower bound (Hauskrecht 1997). The others are upper bounds.
            ``"qmdp"`` assumes full observability after one action (Littman, Cassandra and Kaelbling 1995). ``"fib"`` is
            the fast informed bound, at most QMDP (Hauskrecht 2000, section 4.3). ``"tib"`` is the tighter informed
            bound, at most FIB, for an infinite horizon only (Krale and others 2025). ``"range"`` is the greatest reward
            at every step.
        horizon: The number of actions; ``None`` for an infinite horizon.

    Returns:
        ``B[a, s]``, read at a belief as ``max_a sum_s b(s) B[a, s]`` over legal actions; 0 at terminal states, -inf
        where an action is not legal. If a blind action may not be legal after an observation, the finite-horizon bound
        is -inf. The infinite-horizon bound then continues with the first action that is always legal.

    Raises:
        ParameterError: The kind is unknown, the horizon is below 1, or the kind has no finite-horizon bound.
        ModelError: Values may grow without bound, or floats cannot hold them.
        PlanningError: The values of the underlying MDP do not converge.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> {kind: value_bound(tiger(), kind).mean(axis=1).max().round(1).item() for kind in ("blind", "tib", "qmdp")}
        {'blind': -20.0, 'tib': 53.3, 'qmdp': 189.0}
        >>> value_bound(tiger(), "fib", horizon=2)[0].tolist()
        [8.5, 8.5]
    """
    require_problem(problem, "value_bound")
    check_choice("kind", kind, _KINDS)
    compiled = problem.compiled
    if horizon is not None:
        check_integer("horizon", horizon, 1, unit="actions")
        if kind == "tib":
            raise ParameterError(f"kind: got 'tib' with horizon={horizon}; expected an infinite horizon. Pass 'fib'.")
        return _at_start(compiled, bound_tables(compiled, kind, horizon)[-1])
    if kind == "qmdp":
        return _at_start(compiled, infinite_horizon_qmdp(compiled))
    if kind == "range":
        return _at_start(compiled, _infinite_horizon_range(compiled))
    return infinite_horizon_table(compiled, kind).at_start


def _at_start(compiled: TabularPOMDP, table: Floats) -> Floats:
    """Return the table with -inf for actions that are not legal at the start, and 0 at terminal states."""
    legal = compiled.legal if compiled.legal_after is None else compiled.legal & compiled.legal_after[-1][:, None]
    return np.where(compiled.terminal, 0.0, np.where(legal, table, -np.inf))


def bound_tables(compiled: TabularPOMDP, kind: str, depth: int, leaf: LeafVectors | None = None) -> Floats:
    """Return ``[depth, A, S]``, the bounds of a look-ahead by the number of actions to go.

    An upper bound is admissible where ``L(b) <= sum_s b(s) L(e_s)``, as for every maximum of linear functions. The
    lower bound is admissible where ``L`` equals the maximum of its vectors.

    Args:
        compiled: The problem.
        kind: ``"blind"``, ``"fib"``, ``"qmdp"`` or ``"range"``.
        depth: The number of actions.
        leaf: The leaf values, 0 by default.

    Raises:
        ModelError: Floats cannot hold the values.

    Example:
        >>> from pomdp_hier import POMDP
        >>> two = POMDP.from_arrays(T=[[[1, 0], [0, 1]]] * 2, Z=[[[1], [1]]] * 2, R=[[1, 0], [0, 1]]).compiled
        >>> (bound_tables(two, "fib", 2) @ two.initial).tolist()  # the state is known after one step
        [[0.5, 0.5], [1.5, 1.5]]
        >>> (bound_tables(two, "blind", 2) @ two.initial).tolist()
        [[0.5, 0.5], [1.0, 1.0]]
    """
    require_float_range(compiled, horizon_sum(compiled.discount, depth))
    if leaf is None:
        shape = (1, compiled.n_states)
        leaf = LeafVectors(np.zeros(shape), np.ones(shape, dtype=bool))
    return {"blind": _blind_tables, "fib": _fib_tables, "qmdp": _qmdp_tables, "range": _range_tables}[kind](
        compiled, depth, leaf
    )


# --- the reward range ------------------------------------------------------------------------------------------------


def reward_range(compiled: TabularPOMDP) -> tuple[float, float]:
    """Return the least and the greatest ``R(s, a)`` over legal pairs; terminal states count as 0.

    Example:
        >>> from pomdp_hier import POMDP
        >>> reward_range(POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1], [1]]], R=[[3, -1]]).compiled)
        (-1.0, 3.0)
    """
    rewards = compiled.reward[compiled.legal]
    return float(rewards.min()), float(rewards.max())


def _range_tables(compiled: TabularPOMDP, depth: int, leaf: LeafVectors) -> Floats:
    """``B_d(s, a) = R(s, a) + gamma U_{d-1}`` with ``U_d = max(R) + gamma U_{d-1}`` and ``U_0 = max(L)``."""
    _, greatest = reward_range(compiled)
    ahead = float(_at_states(leaf.vectors, leaf.legal).max())
    table = np.empty((depth, compiled.n_actions, compiled.n_states))
    for d in range(depth):
        later = _discounted(compiled, np.array(ahead))
        table[d] = compiled.reward + np.where(compiled.terminal, 0.0, later)
        ahead = greatest + float(later)
    return table


def _infinite_horizon_range(compiled: TabularPOMDP) -> Floats:
    require_float_range(compiled, horizon_sum(compiled.discount, None))
    _, greatest = reward_range(compiled)
    if compiled.discount == 1 and greatest != 0:
        raise PlanningError(
            f"kind: got 'range' with a greatest reward of {greatest:g} at discount 1; expected a discount below 1. "
            "Set a horizon."
        )
    later = compiled.discount * greatest / (1 - compiled.discount) if greatest else 0.0
    return compiled.reward + later


# --- the underlying MDP ----------------------------------------------------------------------------------------------


def mdp_values(
    compiled: TabularPOMDP,
    *,
    horizon: int | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 100_000,
) -> tuple[Floats, int]:
    """Return ``[A, S]``, the Q values of the underlying MDP, and the number of backups.

    ``Q(s, a) = R(s, a) + gamma sum_s' T(s, a, s') max_a' Q(s', a')``, -inf where the action is not legal, 0 in terminal
    states. Where legality is by the last observation, an action counts as legal if it is after some observation.

    Args:
        compiled: The problem as arrays.
        horizon: The number of actions; ``None`` continues until no value changes by more than ``tolerance``. With a
            discount below 1, values that have not converged after 50 backups continue from the exact value of the best
            policy so far. The same is done after 50 more (modified policy iteration).
        tolerance: The largest change of a value at convergence, relative to the greatest value.
        max_iterations: The most backups.

    Raises:
        ParameterError: The horizon is below 1.
        ModelError: Floats cannot hold the values.
        PlanningError: The values did not converge.

    Example:
        >>> from pomdp_hier import POMDP
        >>> two = POMDP.from_arrays(T=[[[0, 1], [0, 1]]], Z=[[[1], [1]]], R=[[1, 2]], discount=0.5).compiled
        >>> q, n = mdp_values(two, horizon=2)
        >>> q
        array([[2., 3.]])

    References:
        Littman, Cassandra and Kaelbling (1995), section 4.1; Puterman (1994), section 6.5.
    """
    if horizon is not None:
        check_integer("horizon", horizon, 1, unit="actions")
    require_float_range(compiled, horizon_sum(compiled.discount, horizon))
    legal = _legal_somewhere(compiled) | compiled.terminal
    values = np.zeros(compiled.n_states)
    for iteration in range(1, (max_iterations if horizon is None else horizon) + 1):
        with np.errstate(over="ignore"):  # without a discount, values may grow beyond every float
            q = np.where(legal, _mdp_backup(compiled, values), -np.inf)
        best = np.where(compiled.terminal, TERMINAL_VALUE, q.max(axis=0))
        change = float(np.abs(best - values).max(initial=0.0))
        values = best
        if horizon is None and change <= tolerance * float(np.abs(values).max(initial=0.0)):
            return q, iteration
        if horizon is not None and change == 0:  # and for any number of actions more
            return q, iteration
        if not np.isfinite(values).all():
            break
        if horizon is None and compiled.discount < 1 and iteration % _MDP_SWEEPS == 0:
            values = _value_of(compiled, q.argmax(axis=0), values)
    else:
        if horizon is not None:
            return q, horizon
    remedy = "a larger tolerance" if compiled.discount < 1 else "a discount below 1"
    raise PlanningError(
        f"discount: got {compiled.discount}, with values that still change by {change:.3g} after {iteration:,} backups"
        f"; expected values that converge. Set a horizon, or {remedy}."
    )


def _legal_somewhere(compiled: TabularPOMDP) -> Bools:
    """Return ``[A, S]``, whether the action is legal in the state, after some observation where these decide."""
    legal: Bools = compiled.legal
    return legal if compiled.legal_after is None else legal & np.any(compiled.legal_after, axis=0).reshape(-1, 1)


def _mdp_backup(compiled: TabularPOMDP, values: Floats) -> Floats:
    """Return ``[A, S]``, ``R(s, a) + gamma sum_s' T(s, a, s') v(s')``."""
    return compiled.reward + _discounted(
        compiled, np.stack([_product(matrix, values) for matrix in compiled.transition])
    )


def _value_of(compiled: TabularPOMDP, choice: Ints, near: Floats) -> Floats:
    """Return ``[S]``, the value of one action per state, or ``near`` where that is closer."""
    rows = sparse.vstack([*compiled.transition], format="csr")[choice * compiled.n_states + np.arange(len(choice))]
    running = np.where(compiled.terminal, 0.0, 1.0)
    kept = sparse.csr_array(sparse.dia_array((running[None, :], [0]), shape=rows.shape) @ rows)
    reward = running * compiled.reward[choice, np.arange(len(choice))]
    found, _ = solved(kept, reward, compiled.discount, near, precision=1e-13)
    before, after = (np.abs(reward + compiled.discount * (kept @ v) - v).max() for v in (near, found))
    return found if after < before else near


def infinite_horizon_qmdp(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, the infinite-horizon QMDP values; -inf where no observation makes the action legal.

    Raises:
        PlanningError: The values do not converge.
    """
    q, _ = mdp_values(compiled)
    legal = np.isfinite(q)
    values = np.where(compiled.terminal, 0.0, q.max(axis=0))
    short = float(np.abs(np.where(legal, _mdp_backup(compiled, values) - q, 0.0)).max())
    more = short / (1 - compiled.discount) if compiled.discount < 1 else 0.0
    return np.where(legal & ~compiled.terminal, q + more, np.where(compiled.terminal, 0.0, -np.inf))


def _qmdp_tables(compiled: TabularPOMDP, depth: int, leaf: LeafVectors) -> Floats:
    """``B_d(s, a) = R(s, a) + gamma sum_s' T(s, a, s') max_a' B_{d-1}(s', a')``, with ``L`` as ``max_a' B_0``."""
    ahead, legal = _at_states(leaf.vectors, leaf.legal), _legal_somewhere(compiled)
    table = np.empty((depth, compiled.n_actions, compiled.n_states))
    for d in range(depth):
        table[d] = _mdp_backup(compiled, ahead)
        ahead = _at_states(table[d], legal)
    return table


def _at_states(vectors: Floats, legal: Bools) -> Floats:
    """``[S]``, the best of the legal vectors in each state; ``inf`` where none is legal, which bounds any value."""
    best: Floats = np.where(legal, vectors, -np.inf).max(axis=0)
    return np.where(legal.any(axis=0), best, np.inf)


def _discounted(compiled: TabularPOMDP, values: Floats) -> Floats:
    """``gamma * values``, which is 0 for a discount of 0 and an infinite bound."""
    return values * compiled.discount if compiled.discount else np.zeros_like(values)


def _product(matrix: sparse.csr_array, vector: Floats) -> Floats:
    """Return the sparse product in which a stored 0 times an infinite bound is 0."""
    if not np.isfinite(vector).all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    result: Floats = matrix @ vector
    return result


# --- the fast informed bound and blind policies ----------------------------------------------------------------------


def _fib_tables(compiled: TabularPOMDP, depth: int, leaf: LeafVectors) -> Floats:
    model = state_model(compiled)
    outcomes = model.outcomes
    vectors, legal = leaf.vectors[:, model.state], leaf.legal[:, model.state]
    usable = np.asarray(outcomes.matrix @ (~legal).T.astype(np.float64)) == 0
    if leaf.legal_after is not None:
        usable &= leaf.legal_after[outcomes.observation]
    inside = outcomes.usable
    if compiled.legal_after is not None:
        inside = inside & compiled.legal_after[outcomes.observation]
    stages = []
    for _ in range(depth):
        vectors = informed_stage(model, outcomes, vectors, usable, np.inf)
        stages.append(vectors)
        usable = inside
    return _over_all_states(model, stages)


def _over_all_states(model: SolverModel, stages: list[Floats]) -> Floats:
    """Return tables ``[A, n]`` of nonterminal states as one table ``[depth, A, S]``, 0 at terminal states."""
    compiled = model.compiled
    table = np.zeros((len(stages), compiled.n_actions, compiled.n_states))
    for d, stage in enumerate(stages):
        table[d][:, model.state] = stage
    return table


def _blind_tables(compiled: TabularPOMDP, depth: int, leaf: LeafVectors) -> Floats:
    """``B_d(s, a) = R(s, a) + gamma sum_s' T(s, a, s') B_{d-1}(s', a)``, -inf where the action cannot be repeated.

    ``B_0(s, a)`` is the leaf vector of the action, or else one vector for all actions.
    """
    model = state_model(compiled)
    vectors, after = np.where(leaf.legal, leaf.vectors, -np.inf), leaf.legal_after
    if len(vectors) not in (1, compiled.n_actions):  # one of them: legal in most states, and the greatest of those
        k = np.lexsort((leaf.vectors.sum(axis=1), leaf.legal.sum(axis=1)))[-1:]
        vectors, after = vectors[k], None if after is None else after[:, k]
    ahead = np.broadcast_to(vectors[:, model.state], (model.n_actions, model.size)).copy()
    if after is not None:
        ahead[np.broadcast_to(~np.all(after, axis=0, keepdims=True).T, ahead.shape)] = -np.inf
    if not leaf.exact:
        ahead[:] = -np.inf
    once = np.zeros(model.n_actions, dtype=bool) if compiled.legal_after is None else ~compiled.legal_after.all(axis=0)
    stages = []
    for _ in range(depth):
        ahead = blind_stage(model, repeated(model), ahead if model.discount else np.zeros_like(ahead))
        ahead[once] = -np.inf
        stages.append(ahead)
    return _over_all_states(model, stages)


# --- infinite horizon, by what is legal ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InfiniteHorizonTable:
    """A bound at known states, for each set of actions that an observation can leave legal.

    Attributes:
        tables: ``[C, A, S]``, 0 at terminal states, -inf where not legal.
        kind_after: ``[O + 1]``, which of the C sets is legal after each observation, and at the start.
    """

    tables: Floats = field(repr=False)
    kind_after: Ints = field(repr=False)

    @property
    def at_start(self) -> Floats:
        """``[A, S]``, the table for what is legal at the start."""
        table: Floats = self.tables[self.kind_after[-1]]
        return table


def infinite_horizon_table(compiled: TabularPOMDP, kind: Literal["fib", "tib", "blind"]) -> InfiniteHorizonTable:
    """Return one of the bounds for every set of legal actions.

    TIB is FIB where the problem is so large that a sweep would take long.

    Raises:
        ModelError: Values may grow without bound, or floats cannot hold them.
    """
    model = solver_model(compiled)
    require_float_range(compiled, float(model.slack.max(initial=1.0)))
    model.lay_out()
    if kind == "blind":
        table = blind_values(model, blind_plans(model))
    else:
        table = informed_bound(model, model.outcomes)
        table = tighter_informed_bound(model, model.outcomes, table)[0] if kind == "tib" else table
    full = np.full((int(model.kind_after.max()) + 1, compiled.n_actions, compiled.n_states), -np.inf)
    full[:, :, compiled.terminal] = 0.0
    full[model.kind, :, model.state] = table.T
    return InfiniteHorizonTable(full, model.kind_after)
