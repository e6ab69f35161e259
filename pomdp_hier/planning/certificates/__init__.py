"""Certificates of values: what one states, and the verifier, which shares no code with any solver."""
