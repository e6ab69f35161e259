"""The values of a problem whose state is seen: value iteration, helped on by exact values of the best policy so far."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.counts import require_count
from pomdp_hier.planning.float_range import horizon_sum, require_float_range
from pomdp_hier.planning.terminal import TERMINAL_VALUE
from pomdp_hier.pomdp import TabularPOMDP

__all__ = ["mdp_values"]

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
        require_count("horizon", horizon, 1, "actions")
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
