"""Small classic problems, built with the public API."""

from pomdp_hier.problems.tiger import tiger

__all__ = ["tiger"]
