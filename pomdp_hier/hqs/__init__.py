"""Hierarchy Quality for Search (HQS): the paper's search POMDP, its belief update and its policies.

The scores (`evaluate`, `hqs_score`, `hqs_samples`) are in `pomdp_hier`. Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier._engines.task import LookAhead, StoppingRule
    from pomdp_hier.hqs.generic import search_environment, search_problem
    from pomdp_hier.hqs.inputs import calibrate_delta
    from pomdp_hier.hqs.model import ClosedFormUpdater
    from pomdp_hier.hqs.policies import FixedLevel, rtbss_policy
    from pomdp_hier.hqs.return_search import exhaustive_policy, return_search_problem

__all__ = [
    "ClosedFormUpdater",
    "FixedLevel",
    "LookAhead",
    "StoppingRule",
    "calibrate_delta",
    "exhaustive_policy",
    "return_search_problem",
    "rtbss_policy",
    "search_environment",
    "search_problem",
]

_HOMES = {
    "pomdp_hier._engines.task": "LookAhead StoppingRule",
    "pomdp_hier.hqs.inputs": "calibrate_delta",
    "pomdp_hier.hqs.model": "ClosedFormUpdater",
    "pomdp_hier.hqs.policies": "FixedLevel rtbss_policy",
    "pomdp_hier.hqs.return_search": "exhaustive_policy return_search_problem",
    "pomdp_hier.hqs.generic": "search_environment search_problem",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
