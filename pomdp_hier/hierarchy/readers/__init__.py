"""Readers, one format a file; each returns parents and labels in arrays."""

from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays

__all__ = ["TreeArrays"]
