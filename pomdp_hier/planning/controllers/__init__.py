"""Finite-state controllers and policies of alpha vectors: exact values, files of other solvers, drawings."""

from pomdp_hier.planning.controllers.controller import Controller
from pomdp_hier.planning.controllers.exact_values import VectorPolicy
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
    "Controller",
    "PolicyGraph",
    "VectorPolicy",
    "read_alpha",
    "read_policy_graph",
    "read_policy_xml",
    "write_alpha",
    "write_policy_graph",
    "write_policy_xml",
]
