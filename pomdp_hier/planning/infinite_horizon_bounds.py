"""Bounds of the endless, discounted horizon: QMDP and two informed bounds above, blind policies below.

Each is a table ``[A, S]``, read at a belief as ``max_a sum_s b(s) B[a, s]`` over legal actions. They bound the optimal
value, not a search of finite depth, for which `pomdp_hier.planning.bounds` has others. All solve linear equations or
iterate to a residual that is added, so that they do bound.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from pomdp_hier._arguments import check_integer
from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.decision import TERMINAL_VALUE
from pomdp_hier.planning.float_range import horizon_sum, require_float_range
from pomdp_hier.planning.point_based.initial_bounds import blind_plans, blind_stage, informed_bound, outcome_groups
from pomdp_hier.planning.point_based.model_arrays import solver_model
from pomdp_hier.planning.point_based.tib import tighter_informed_bound
from pomdp_hier.pomdp import TabularPOMDP

_SWEEPS = 50  # backups before, and between, exact values of the best policy so far
_SOLVED = 5_000  # states up to which linear equations are solved


def mdp_values(
    compiled: TabularPOMDP,
    *,
    horizon: int | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 100_000,
) -> tuple[Floats, int]:
    """Return ``[A, S]``, the Q values of the problem whose state is seen, and how many backups they took.

    ``Q(s, a) = R(s, a) + gamma sum_s' T(s, a, s') max_a' Q(s', a')``, -inf where the action is not legal, 0 in terminal
    states. Where legality is by the last observation, an action counts as legal if it is after some observation.

    Args:
        compiled: The problem as arrays.
        horizon: How many actions remain; ``None`` goes on until no value changes by more than ``tolerance``. With a
            discount below 1, what has not settled after 50 backups goes on from the exact value of the best policy so
            far, and again after 50 more (modified policy iteration).
        tolerance: The largest change of a value at which to stop, relative to the greatest value.
        max_iterations: How many backups to try.

    Raises:
        ParameterError: The horizon is below 1.
        ModelError: Floats cannot hold the values.
        PlanningError: The values did not settle.

    Example:
        >>> from pomdp_hier.pomdp import POMDP
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
    legal = compiled.legal.copy()
    if compiled.legal_after is not None:
        legal &= np.any(compiled.legal_after, axis=0).reshape(-1, 1)
    legal[:, compiled.terminal] = True
    values = np.zeros(compiled.n_states)
    for iteration in range(1, (max_iterations if horizon is None else horizon) + 1):
        ahead = np.stack([matrix @ values for matrix in compiled.transition])
        with np.errstate(over="ignore"):  # without a discount, values may grow beyond every float
            q = np.where(legal, compiled.reward + compiled.discount * ahead, -np.inf)
        best = np.where(compiled.terminal, TERMINAL_VALUE, q.max(axis=0))
        change = float(np.abs(best - values).max(initial=0.0))
        values = best
        if horizon is None and change <= tolerance * float(np.abs(values).max(initial=0.0)):
            return q, iteration
        if horizon is not None and change == 0:  # and for any number of actions more
            return q, iteration
        if not np.isfinite(values).all():
            break
        if horizon is None and compiled.discount < 1 and iteration % _SWEEPS == 0 and len(values) <= _SOLVED:
            values = _value_of(compiled, q.argmax(axis=0))
    else:
        if horizon is not None:
            return q, horizon
    remedy = "a larger tolerance" if compiled.discount < 1 else "a discount below 1"
    raise PlanningError(
        f"discount: got {compiled.discount}, with values that still change by {change:.3g} after {iteration:,} backups"
        f"; expected values that settle. Set a horizon, or {remedy}."
    )


def _value_of(compiled: TabularPOMDP, choice: Ints) -> Floats:
    """``[S]``, the value of taking an action by state: ``v = (I - gamma T)^-1 R``, 0 in terminal states."""
    rows = sparse.vstack([*compiled.transition], format="csr")[choice * compiled.n_states + np.arange(len(choice))]
    running = np.where(compiled.terminal, 0.0, 1.0)
    kept = sparse.dia_array((compiled.discount * running[None, :], [0]), shape=rows.shape) @ rows
    reward = running * compiled.reward[choice, np.arange(len(choice))]
    solved: Floats = splu(sparse.csc_array(sparse.eye_array(len(choice)) - kept)).solve(reward)
    return solved


def infinite_horizon_qmdp(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, the value of one who sees the state from the next step on; -inf where not legal.

    Raises:
        PlanningError: The values do not settle, as without a discount and without an end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> infinite_horizon_qmdp(tiger().compiled).round(3).tolist()
        [[189.0, 189.0], [90.0, 200.0], [200.0, 90.0]]

    References:
        Littman, Cassandra and Kaelbling (1995).
    """
    q, _ = mdp_values(compiled)
    legal = np.isfinite(q)
    values = np.where(compiled.terminal, 0.0, q.max(axis=0))
    ahead = np.stack([matrix @ values for matrix in compiled.transition])
    short = float(np.abs(np.where(legal, compiled.reward + compiled.discount * ahead - q, 0.0)).max())
    more = short / (1 - compiled.discount) if compiled.discount < 1 else 0.0
    return np.where(legal & ~compiled.terminal, q + more, np.where(compiled.terminal, 0.0, -np.inf))


def infinite_horizon_fib(compiled: TabularPOMDP) -> Floats:
    """Return the fast informed bound ``[A, S]`` by policy iteration, at most `infinite_horizon_qmdp` up to rounding.

    Raises:
        ModelError: Values may grow without end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> infinite_horizon_fib(tiger().compiled).round(3).tolist()
        [[87.179, 87.179], [-17.179, 92.821], [92.821, -17.179]]

    References:
        Hauskrecht (2000), section 4.3.
    """
    return infinite_horizon_table(compiled, "fib").at_start


def infinite_horizon_tib(compiled: TabularPOMDP) -> Floats:
    """Return the tighter informed bound ``[A, S]`` at known states, at most `infinite_horizon_fib` up to rounding.

    It is `infinite_horizon_fib` where a problem is so large that a sweep would take very long.

    Raises:
        ModelError: Values may grow without end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> infinite_horizon_tib(tiger().compiled).round(1).tolist()
        [[53.3, 53.3], [-52.8, 57.2], [57.2, -52.8]]

    References:
        Krale, Koops, Junges, Simão and Jansen (2025).
    """
    return infinite_horizon_table(compiled, "tib").at_start


def infinite_horizon_blind(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, a lower bound: the value of the same action over and over; -inf where no plan is legal.

    Where the action may not be legal after an observation, the plan goes on with the first that always is.

    Raises:
        ModelError: Values may grow without end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> infinite_horizon_blind(tiger().compiled).round(3).tolist()
        [[-20.0, -20.0], [-955.0, -845.0], [-845.0, -955.0]]

    References:
        Hauskrecht (1997).
    """
    return infinite_horizon_table(compiled, "blind").at_start


@dataclass(frozen=True, eq=False)
class InfiniteHorizonTable:
    """A bound at known states, for each set of actions that an observation can leave legal.

    Attributes:
        tables: ``[C, A, S]``, 0 where the process is over, -inf where not legal.
        kind_after: ``[O + 1]``, which of the C sets is legal after each observation, and at the start.
    """

    tables: Floats = field(repr=False)
    kind_after: Ints = field(repr=False)

    @property
    def at_start(self) -> Floats:
        """``[A, S]``, the table for what is legal at the start."""
        table: Floats = self.tables[self.kind_after[-1]]
        return table


def infinite_horizon_table(compiled: TabularPOMDP, name: Literal["fib", "tib", "blind"]) -> InfiniteHorizonTable:
    """Return one of the bounds for everything that may be legal.

    Raises:
        ModelError: Values may grow indefinitely, or floats cannot hold them.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> infinite_horizon_table(tiger().compiled, "blind").tables.shape
        (1, 3, 2)
    """
    model = solver_model(compiled)
    require_float_range(compiled, float(model.slack.max(initial=1.0)))
    groups = outcome_groups(model)
    if name == "blind":
        table = blind_stage(model, blind_plans(model, groups), None)
    else:
        table = informed_bound(model, groups)
        table = tighter_informed_bound(model, groups, table)[0] if name == "tib" else table
    full = np.full((int(model.kind_after.max()) + 1, compiled.n_actions, compiled.n_states), -np.inf)
    full[:, :, compiled.terminal] = 0.0
    full[model.kind, :, model.state] = table.T
    return InfiniteHorizonTable(full, model.kind_after)
