"""Certificates of values: what one states, and the verifier, which shares no code with any solver."""

from pomdp_hier.planning.certificates.verify import VerifiedBounds, verify

__all__ = ["VerifiedBounds", "verify"]
