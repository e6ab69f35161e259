"""Finite-state controllers: exact values, policy files of other solvers, drawings."""
