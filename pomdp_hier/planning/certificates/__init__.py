"""Certificates of values: what one states, and the verifier, which shares no code with any solver."""

from pomdp_hier.planning.certificates.claims import VerifiedBounds
from pomdp_hier.planning.certificates.verify import verify

__all__ = ["VerifiedBounds", "verify"]
