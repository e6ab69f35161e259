"""RTBSS: the planner, its plain recursion, its search on arrays, and what both leave out."""

from pomdp_hier.planning.rtbss.planner import RTBSS

__all__ = ["RTBSS"]
