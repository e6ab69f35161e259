"""Simulation: the exact and the Monte Carlo value of a policy in an environment, and comparisons of policies."""

from pomdp_hier.simulation.comparison import compare_policies
from pomdp_hier.simulation.exact import mdp_value, policy_value
from pomdp_hier.simulation.experiment import run_experiment
from pomdp_hier.simulation.monte_carlo import simulate

__all__ = ["compare_policies", "mdp_value", "policy_value", "run_experiment", "simulate"]
