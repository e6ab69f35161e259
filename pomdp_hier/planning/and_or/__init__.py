"""AND-OR trees, built by a planner and written as text, DOT, TikZ, Mermaid and JSON."""

from pomdp_hier.planning.and_or.tree import AndOrTree

__all__ = ["AndOrTree"]
