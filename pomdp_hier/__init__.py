"""Exact POMDPs on pomdp-py, and HQS: how well a hierarchy supports search."""

__version__ = "0.1.0"
