"""Bounds of the endless, discounted horizon: QMDP and two informed bounds above, blind policies below.

Each is a table ``[A, S]``, read at a belief as ``max_a sum_s b(s) B[a, s]`` over legal actions. They bound the optimal
value, not a search of finite depth, for which `pomdp_hier.planning.bounds` has others. All solve linear equations or
iterate to a residual that is added, so that they do bound.
"""

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.planning.point_based.live import ILLEGAL, LiveModel, live_model
from pomdp_hier.planning.point_based.starting import blind_plans, blind_stage, informed_bound, outcome_groups
from pomdp_hier.planning.point_based.tighter import tighter_informed_bound
from pomdp_hier.planning.policies import mdp_values
from pomdp_hier.pomdp import TabularPOMDP

__all__ = ["endless_blind", "endless_fib", "endless_qmdp", "endless_tib"]

Floats = NDArray[np.float64]


def endless_qmdp(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, the value of one who sees the state from the next step on; -inf where not legal.

    Raises:
        PlanningError: The values do not settle, as without a discount and without an end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> endless_qmdp(tiger().compiled).round(3).tolist()
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


def endless_fib(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, the fast informed bound, by policy iteration; never above `endless_qmdp` but for rounding.

    Raises:
        ModelError: Values may grow without end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> endless_fib(tiger().compiled).round(3).tolist()
        [[87.179, 87.179], [-17.179, 92.821], [92.821, -17.179]]

    References:
        Hauskrecht (2000), section 4.3.
    """
    model = live_model(compiled)
    return _over_all_states(model, informed_bound(model, outcome_groups(model)))


def endless_tib(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, the tighter informed bound at known states; never above `endless_fib` but for rounding.

    It is `endless_fib` where a problem is so large that a sweep would take very long.

    Raises:
        ModelError: Values may grow without end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> endless_tib(tiger().compiled).round(1).tolist()
        [[53.3, 53.3], [-52.8, 57.2], [57.2, -52.8]]

    References:
        Krale, Koops, Junges, Simão and Jansen (2025).
    """
    model = live_model(compiled)
    groups = outcome_groups(model)
    return _over_all_states(model, tighter_informed_bound(model, groups, informed_bound(model, groups))[0])


def endless_blind(compiled: TabularPOMDP) -> Floats:
    """Return ``[A, S]``, a lower bound: the value of the same action over and over; -inf where no plan is legal.

    Where the action may not be legal after an observation, the plan goes on with the first that always is.

    Raises:
        ModelError: Values may grow without end.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> endless_blind(tiger().compiled).round(3).tolist()
        [[-20.0, -20.0], [-955.0, -845.0], [-845.0, -955.0]]

    References:
        Hauskrecht (1997).
    """
    model = live_model(compiled)
    plans = blind_plans(model, outcome_groups(model))
    return _over_all_states(model, blind_stage(model, plans, None))


def _over_all_states(model: LiveModel, table: Floats) -> Floats:
    """Return a table over live states as one over all states, for what is legal at the start."""
    compiled = model.compiled
    full = np.full((compiled.n_actions, compiled.n_states), -np.inf)
    full[:, compiled.terminal] = 0.0
    here = np.flatnonzero(model.kind == model.kind_after[-1])
    full[:, model.state[here]] = np.where(table[:, here] > ILLEGAL / 1e20, table[:, here], -np.inf)
    return full
