"""Bounds of the endless, discounted horizon: QMDP and two informed bounds above, blind policies below.

Each is a table ``[A, S]``, read at a belief as ``max_a sum_s b(s) B[a, s]`` over legal actions. They bound the optimal
value, not a search of finite depth, for which `pomdp_hier.planning.bounds` has others. All solve linear equations or
iterate to a residual that is added, so that they do bound.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.planning.float_range import require_float_range
from pomdp_hier.planning.mdp import mdp_values
from pomdp_hier.planning.point_based.live import live_model
from pomdp_hier.planning.point_based.starting import blind_plans, blind_stage, informed_bound, outcome_groups
from pomdp_hier.planning.point_based.tighter import tighter_informed_bound
from pomdp_hier.pomdp import TabularPOMDP

__all__ = ["EndlessTable", "endless_blind", "endless_fib", "endless_qmdp", "endless_table", "endless_tib"]


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
    return endless_table(compiled, "fib").at_start


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
    return endless_table(compiled, "tib").at_start


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
    return endless_table(compiled, "blind").at_start


@dataclass(frozen=True, eq=False)
class EndlessTable:
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


def endless_table(compiled: TabularPOMDP, name: Literal["fib", "tib", "blind"]) -> EndlessTable:
    """Return one of the bounds for everything that may be legal.

    Raises:
        ModelError: Values may grow indefinitely, or floats cannot hold them.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> endless_table(tiger().compiled, "blind").tables.shape
        (1, 3, 2)
    """
    model = live_model(compiled)
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
    return EndlessTable(full, model.kind_after)
