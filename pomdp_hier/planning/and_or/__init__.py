"""AND-OR trees: as data, grown from a planner, and written as text, DOT, TikZ, Mermaid and JSON."""

from pomdp_hier.planning.and_or.tree import AndOrTree

__all__ = ["AndOrTree"]
