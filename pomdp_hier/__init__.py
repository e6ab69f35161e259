"""Exact POMDPs on pomdp-py, and HQS: how well a hierarchy supports search.

The general framework (`POMDP`, `Belief`, `BayesUpdater`, `RTBSS`, `AndOrTree`, …) knows nothing of hierarchies; HQS
(`Hierarchy`, `hqs_score`, `evaluate`, …) is one instantiation of it. A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach
from pomdp_hier._version import __version__

if TYPE_CHECKING:
    from pomdp_hier.analysis import appraise, compare, diagnose
    from pomdp_hier.beliefs import (
        BayesUpdater,
        BeliefUpdater,
        ParticleUpdater,
        TabularUpdater,
        assert_updaters_agree,
        compare_updaters,
    )
    from pomdp_hier.distributed import evaluate_distributed
    from pomdp_hier.features.loading import load_features
    from pomdp_hier.filing import find_misfiled
    from pomdp_hier.hierarchy import Hierarchy
    from pomdp_hier.hqs import (
        PAPER_TABLE,
        PAPER_TEXT,
        HQSResult,
        StoppingRule,
        evaluate,
        hqs_samples,
        hqs_score,
        load_amazon12,
        load_dvd,
        search_environment,
        search_problem,
        three_node,
    )
    from pomdp_hier.improvement import improve
    from pomdp_hier.measures import hai
    from pomdp_hier.planning import RTBSS, AndOrTree, Decision, ImmediateValue, Policy
    from pomdp_hier.planning.pomdp_py_planners import POMCP, POUCT
    from pomdp_hier.pomdp import (
        POMDP,
        Action,
        Belief,
        Observation,
        ObservationModel,
        RewardModel,
        State,
        TabularPOMDP,
        TransitionModel,
    )
    from pomdp_hier.pomdp.checks import check_problem
    from pomdp_hier.pomdp.pomdp_file import read_pomdp, write_pomdp
    from pomdp_hier.simulation import compare_policies, policy_value, simulate

__all__ = [
    "PAPER_TABLE",
    "PAPER_TEXT",
    "POMCP",
    "POMDP",
    "POUCT",
    "RTBSS",
    "Action",
    "AndOrTree",
    "BayesUpdater",
    "Belief",
    "BeliefUpdater",
    "Decision",
    "HQSResult",
    "Hierarchy",
    "ImmediateValue",
    "Observation",
    "ObservationModel",
    "ParticleUpdater",
    "Policy",
    "RewardModel",
    "State",
    "StoppingRule",
    "TabularPOMDP",
    "TabularUpdater",
    "TransitionModel",
    "__version__",
    "appraise",
    "assert_updaters_agree",
    "check_problem",
    "compare",
    "compare_policies",
    "compare_updaters",
    "diagnose",
    "evaluate",
    "evaluate_distributed",
    "find_misfiled",
    "hai",
    "hqs_samples",
    "hqs_score",
    "improve",
    "load_amazon12",
    "load_dvd",
    "load_features",
    "policy_value",
    "read_pomdp",
    "search_environment",
    "search_problem",
    "simulate",
    "three_node",
    "write_pomdp",
]

_HOMES = {
    "pomdp_hier.analysis": "appraise compare diagnose",
    "pomdp_hier.beliefs": (
        "BayesUpdater BeliefUpdater ParticleUpdater TabularUpdater assert_updaters_agree compare_updaters"
    ),
    "pomdp_hier.distributed": "evaluate_distributed",
    "pomdp_hier.features.loading": "load_features",
    "pomdp_hier.filing": "find_misfiled",
    "pomdp_hier.hierarchy": "Hierarchy",
    "pomdp_hier.hqs": (
        "PAPER_TABLE PAPER_TEXT HQSResult StoppingRule evaluate hqs_samples hqs_score load_amazon12 load_dvd "
        "search_environment search_problem three_node"
    ),
    "pomdp_hier.improvement": "improve",
    "pomdp_hier.measures": "hai",
    "pomdp_hier.planning": "RTBSS AndOrTree Decision Policy ImmediateValue",
    "pomdp_hier.planning.pomdp_py_planners": "POMCP POUCT",
    "pomdp_hier.pomdp": (
        "POMDP Action Belief Observation ObservationModel RewardModel State TabularPOMDP TransitionModel"
    ),
    "pomdp_hier.pomdp.checks": "check_problem",
    "pomdp_hier.pomdp.pomdp_file": "read_pomdp write_pomdp",
    "pomdp_hier.simulation": "compare_policies policy_value simulate",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
