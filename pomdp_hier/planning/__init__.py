"""Planning: decisions, policies, RTBSS, bounds, AND-OR trees and exact values.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.planning.and_or.tree import AndOrTree
    from pomdp_hier.planning.bounds import value_bound
    from pomdp_hier.planning.certificates.verify import verify
    from pomdp_hier.planning.controllers.controller import FiniteStateController
    from pomdp_hier.planning.controllers.files import read_policy, write_policy
    from pomdp_hier.planning.decision import Decision, Policy
    from pomdp_hier.planning.leaf_values import ImmediateValue
    from pomdp_hier.planning.point_based.solve import solve
    from pomdp_hier.planning.policies import (
        AlphaVectorPolicy,
        FIBPolicy,
        QMDPPolicy,
        RandomPolicy,
        ThresholdPolicy,
    )
    from pomdp_hier.planning.pomdp_py_planners import POMCP, POUCT
    from pomdp_hier.planning.rtbss.planner import RTBSS
    from pomdp_hier.planning.value_iteration import value_iteration

__all__ = [
    "POMCP",
    "POUCT",
    "RTBSS",
    "AlphaVectorPolicy",
    "AndOrTree",
    "Decision",
    "FIBPolicy",
    "FiniteStateController",
    "ImmediateValue",
    "Policy",
    "QMDPPolicy",
    "RandomPolicy",
    "ThresholdPolicy",
    "read_policy",
    "solve",
    "value_bound",
    "value_iteration",
    "verify",
    "write_policy",
]

_HOMES = {
    "pomdp_hier.planning.and_or.tree": "AndOrTree",
    "pomdp_hier.planning.bounds": "value_bound",
    "pomdp_hier.planning.certificates.verify": "verify",
    "pomdp_hier.planning.controllers.controller": "FiniteStateController",
    "pomdp_hier.planning.controllers.files": "read_policy write_policy",
    "pomdp_hier.planning.decision": "Decision Policy",
    "pomdp_hier.planning.leaf_values": "ImmediateValue",
    "pomdp_hier.planning.point_based.solve": "solve",
    "pomdp_hier.planning.policies": "AlphaVectorPolicy FIBPolicy QMDPPolicy RandomPolicy ThresholdPolicy",
    "pomdp_hier.planning.pomdp_py_planners": "POMCP POUCT",
    "pomdp_hier.planning.rtbss.planner": "RTBSS",
    "pomdp_hier.planning.value_iteration": "value_iteration",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
