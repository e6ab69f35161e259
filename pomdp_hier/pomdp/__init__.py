"""What a POMDP is: spaces, beliefs, models, the problem itself, and its compiled form."""

from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.checks import ModelIssue, check_problem
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import Action, Observation, State
from pomdp_hier.pomdp.tables import Table, Tables
from pomdp_hier.pomdp.tabular import TabularPOMDP

__all__ = [
    "POMDP",
    "Action",
    "Belief",
    "ModelIssue",
    "Observation",
    "ObservationModel",
    "RewardModel",
    "State",
    "Table",
    "Tables",
    "TabularPOMDP",
    "TransitionModel",
    "check_problem",
]
