"""Exact POMDPs on pomdp-py, and HQS, a score of how well a hierarchy supports search.

The POMDP framework (`POMDP`, `solve`, `RTBSS`, `AndOrTree`, …) does not import the hierarchy code. HQS (`Hierarchy`,
`hqs_score`, `evaluate`, …) is one application of it. Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach
from pomdp_hier._version import __version__

if TYPE_CHECKING:
    from pomdp_hier.analysis import appraise, compare, diagnose
    from pomdp_hier.beliefs.comparison import compare_updaters
    from pomdp_hier.beliefs.updaters import BayesUpdater, BeliefUpdater
    from pomdp_hier.features.loading import load_features
    from pomdp_hier.filing import find_misfiled
    from pomdp_hier.hierarchy import Hierarchy
    from pomdp_hier.hqs.model import three_node
    from pomdp_hier.hqs.score import evaluate, hqs_samples, hqs_score
    from pomdp_hier.hqs.search_length import expected_search_length
    from pomdp_hier.improvement import improve
    from pomdp_hier.planning import RTBSS, AndOrTree, solve, value_iteration, verify
    from pomdp_hier.pomdp.belief import Belief
    from pomdp_hier.pomdp.checks import check_problem
    from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
    from pomdp_hier.pomdp.pomdp_file import read_pomdp, write_pomdp
    from pomdp_hier.pomdp.problem import POMDP
    from pomdp_hier.pomdp.spaces import Action, Observation, State
    from pomdp_hier.searches import fit_delta, predicted_and_observed, read_searches
    from pomdp_hier.simulation import compare_policies, policy_value, run_experiment, simulate

__all__ = [
    "POMDP",
    "RTBSS",
    "Action",
    "AndOrTree",
    "BayesUpdater",
    "Belief",
    "BeliefUpdater",
    "Hierarchy",
    "Observation",
    "ObservationModel",
    "RewardModel",
    "State",
    "TransitionModel",
    "__version__",
    "appraise",
    "check_problem",
    "compare",
    "compare_policies",
    "compare_updaters",
    "diagnose",
    "evaluate",
    "expected_search_length",
    "find_misfiled",
    "fit_delta",
    "hqs_samples",
    "hqs_score",
    "improve",
    "load_features",
    "policy_value",
    "predicted_and_observed",
    "read_pomdp",
    "read_searches",
    "run_experiment",
    "simulate",
    "solve",
    "three_node",
    "value_iteration",
    "verify",
    "write_pomdp",
]

_HOMES = {
    "pomdp_hier.analysis": "appraise compare diagnose",
    "pomdp_hier.beliefs.comparison": "compare_updaters",
    "pomdp_hier.beliefs.updaters": "BayesUpdater BeliefUpdater",
    "pomdp_hier.features.loading": "load_features",
    "pomdp_hier.filing": "find_misfiled",
    "pomdp_hier.hierarchy": "Hierarchy",
    "pomdp_hier.hqs.model": "three_node",
    "pomdp_hier.hqs.score": "evaluate hqs_samples hqs_score",
    "pomdp_hier.hqs.search_length": "expected_search_length",
    "pomdp_hier.improvement": "improve",
    "pomdp_hier.planning": "RTBSS AndOrTree solve value_iteration verify",
    "pomdp_hier.pomdp.belief": "Belief",
    "pomdp_hier.pomdp.checks": "check_problem",
    "pomdp_hier.pomdp.models": "ObservationModel RewardModel TransitionModel",
    "pomdp_hier.pomdp.pomdp_file": "read_pomdp write_pomdp",
    "pomdp_hier.pomdp.problem": "POMDP",
    "pomdp_hier.pomdp.spaces": "Action Observation State",
    "pomdp_hier.searches": "fit_delta predicted_and_observed read_searches",
    "pomdp_hier.simulation": "compare_policies policy_value run_experiment simulate",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
