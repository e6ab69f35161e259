"""POMDP models: base classes of the three models, and the bridge to pomdp-py.

A name is imported when it is first used. So are the two modules of pomdp-py that import SciPy's statistics and
optimisation, which take most of its start-up time.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach, postpone

if TYPE_CHECKING:
    from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
    from pomdp_hier.pomdp.pomdp_py_bridge import to_agent, to_environment

__all__ = ["ObservationModel", "RewardModel", "TransitionModel", "to_agent", "to_environment"]

_HOMES = {
    "pomdp_hier.pomdp.models": "ObservationModel RewardModel TransitionModel",
    "pomdp_hier.pomdp.pomdp_py_bridge": "to_agent to_environment",
}

postpone(
    "pomdp_py",
    {"pomdp_py.representations.distribution.gaussian": "Gaussian", "pomdp_py.algorithms.bsp.blqr": "BLQR"},
)
__getattr__, __dir__ = attach(__name__, _HOMES, globals())
