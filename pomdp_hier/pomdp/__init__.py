"""POMDP models: base classes of the three models, and the bridge to pomdp-py."""

from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.pomdp_py_bridge import to_agent, to_environment

__all__ = ["ObservationModel", "RewardModel", "TransitionModel", "to_agent", "to_environment"]
