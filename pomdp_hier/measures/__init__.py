"""Other measures of a hierarchy, to stand beside HQS."""

from pomdp_hier.measures.hai import hai

__all__ = ["hai"]
