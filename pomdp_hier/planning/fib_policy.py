"""The policy of the fast informed bound."""

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.planning.endless_bounds import endless_fib
from pomdp_hier.planning.policies import QMDPPolicy
from pomdp_hier.pomdp import TabularPOMDP

__all__ = ["FIBPolicy"]


class FIBPolicy(QMDPPolicy):
    """Takes the action that would be best if the state were told one step late.

    ``a = argmax_a sum_s b(s) Q_FIB(s, a)``, with the table of `pomdp_hier.planning.endless_bounds.endless_fib`. Unlike
    `QMDPPolicy` it knows that observations matter; like it, it takes them to be better than they are. For endless,
    discounted runs.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> decision = FIBPolicy().decide(tiger())
        >>> decision.action, round(decision.value, 3)
        ('listen', 87.179)

    References:
        Hauskrecht (2000), section 4.3.
    """

    def __init__(self) -> None:
        super().__init__()

    def _solve(self, compiled: TabularPOMDP) -> tuple[NDArray[np.float64], int]:
        return endless_fib(compiled), 0

    def __repr__(self) -> str:
        return "FIBPolicy()"
