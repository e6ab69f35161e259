"""Finite-state controllers and policies of alpha vectors: exact values, files of other solvers, drawings."""

from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.controllers.exact_values import AlphaVectorPolicy
from pomdp_hier.planning.controllers.files import (
    read_alpha,
    read_policy_graph,
    read_policy_xml,
    write_alpha,
    write_policy_graph,
    write_policy_xml,
)
from pomdp_hier.planning.controllers.formats import PolicyGraph

__all__ = [
    "AlphaVectorPolicy",
    "FiniteStateController",
    "PolicyGraph",
    "read_alpha",
    "read_policy_graph",
    "read_policy_xml",
    "write_alpha",
    "write_policy_graph",
    "write_policy_xml",
]
