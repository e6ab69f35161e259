"""Exact POMDPs on pomdp-py, and HQS: how well a hierarchy supports search.

The general framework (`POMDP`, `Belief`, `BayesUpdater`, `RTBSS`, `AndOrTree`, …) knows nothing of hierarchies; HQS
(`Hierarchy`, `hqs_score`, `evaluate`, …) is one instantiation of it. A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._lazy import attach

if TYPE_CHECKING:
    from pomdp_hier.beliefs import (
        BayesUpdater,
        BeliefUpdater,
        ParticleUpdater,
        TabularUpdater,
        assert_updaters_agree,
        compare_updaters,
    )
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
    )
    from pomdp_hier.measures import hai
    from pomdp_hier.planning import RTBSS, AndOrTree, Decision, Policy, StopValue
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
    from pomdp_hier.simulation import compare_policies, policy_value, simulate

__version__ = "0.1.0"

__all__ = [
    "PAPER_TABLE",
    "PAPER_TEXT",
    "POMDP",
    "RTBSS",
    "Action",
    "AndOrTree",
    "BayesUpdater",
    "Belief",
    "BeliefUpdater",
    "Decision",
    "HQSResult",
    "Hierarchy",
    "Observation",
    "ObservationModel",
    "ParticleUpdater",
    "Policy",
    "RewardModel",
    "State",
    "StopValue",
    "StoppingRule",
    "TabularPOMDP",
    "TabularUpdater",
    "TransitionModel",
    "assert_updaters_agree",
    "compare_policies",
    "compare_updaters",
    "evaluate",
    "hai",
    "hqs_samples",
    "hqs_score",
    "load_amazon12",
    "load_dvd",
    "policy_value",
    "simulate",
]

_HOMES = {
    **dict.fromkeys(
        (
            "BayesUpdater",
            "BeliefUpdater",
            "ParticleUpdater",
            "TabularUpdater",
            "assert_updaters_agree",
            "compare_updaters",
        ),
        "pomdp_hier.beliefs",
    ),
    **dict.fromkeys(("Hierarchy",), "pomdp_hier.hierarchy"),
    **dict.fromkeys(
        (
            "HQSResult",
            "PAPER_TABLE",
            "PAPER_TEXT",
            "StoppingRule",
            "evaluate",
            "hqs_samples",
            "hqs_score",
            "load_amazon12",
            "load_dvd",
        ),
        "pomdp_hier.hqs",
    ),
    **dict.fromkeys(("hai",), "pomdp_hier.measures"),
    **dict.fromkeys(
        (
            "RTBSS",
            "AndOrTree",
            "Decision",
            "Policy",
            "StopValue",
        ),
        "pomdp_hier.planning",
    ),
    **dict.fromkeys(
        (
            "Action",
            "Belief",
            "Observation",
            "ObservationModel",
            "POMDP",
            "RewardModel",
            "State",
            "TabularPOMDP",
            "TransitionModel",
        ),
        "pomdp_hier.pomdp",
    ),
    **dict.fromkeys(
        (
            "compare_policies",
            "policy_value",
            "simulate",
        ),
        "pomdp_hier.simulation",
    ),
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
