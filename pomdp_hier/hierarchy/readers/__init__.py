"""Readers, one format a file; each returns plain parent arrays and labels."""

from pomdp_hier.hierarchy.readers.plain import PlainTree

__all__ = ["PlainTree"]
