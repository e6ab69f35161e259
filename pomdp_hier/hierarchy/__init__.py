"""Hierarchies: a rooted tree over items in flat arrays, its readers and writers. Knows no features, POMDP or HQS."""

from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["Hierarchy"]
