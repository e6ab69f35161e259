"""Simulation: the exact and the Monte Carlo value of a policy in an environment, and policies side by side."""

from pomdp_hier.simulation.comparison import (
    ComparisonRow,
    PolicyComparison,
    compare_policies,
    compare_values,
    mdp_value,
)
from pomdp_hier.simulation.episodes import Episode, Step
from pomdp_hier.simulation.exact import PolicyValue, Visit, policy_value
from pomdp_hier.simulation.monte_carlo import SimulationResult, simulate
from pomdp_hier.simulation.pomdp_py_loop import simulate_in_pomdp_py

__all__ = [
    "ComparisonRow",
    "Episode",
    "PolicyComparison",
    "PolicyValue",
    "SimulationResult",
    "Step",
    "Visit",
    "compare_policies",
    "compare_values",
    "mdp_value",
    "policy_value",
    "simulate",
    "simulate_in_pomdp_py",
]
