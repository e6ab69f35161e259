"""RTBSS: the planner, its recursion, its search on arrays, and their pruning."""

from pomdp_hier.planning.rtbss.planner import RTBSS

__all__ = ["RTBSS"]
