"""Planning: decisions, policies, RTBSS, bounds, AND-OR trees and exact values."""

from pomdp_hier.planning.decision import Decision, Policy

__all__ = ["Decision", "Policy"]
