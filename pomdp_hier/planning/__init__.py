"""Planning: decisions, policies, RTBSS, bounds, AND-OR trees and exact values."""

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
