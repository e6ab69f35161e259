"""Readers, one format a file; each returns parents and labels in arrays."""

from pomdp_hier.hierarchy.readers.tables import TreeArrays

__all__ = ["TreeArrays"]
