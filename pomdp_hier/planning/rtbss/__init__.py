"""RTBSS: the planner, its plain recursion, its search on arrays, and the values at its fringe."""

from pomdp_hier.planning.rtbss.fringe import ConvexFringe, StopValue
from pomdp_hier.planning.rtbss.planner import RTBSS

__all__ = ["RTBSS", "ConvexFringe", "StopValue"]
