"""The Hierarchy Quality for Search: the paper's model as an instance of the general framework, and its scores.

A name is imported when it is first used, so that scoring does not wait for what plans POMDPs.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier._engines.rules import HindsightRule, LookAhead, OneStep, SearchRoot, StoppingRule
    from pomdp_hier.hqs.belief import ClosedFormUpdater
    from pomdp_hier.hqs.calibration import calibrate_delta
    from pomdp_hier.hqs.guidance import temperatures
    from pomdp_hier.hqs.model import (
        Descend,
        Found,
        Node,
        NotFound,
        Search,
        SearchState,
        search_environment,
        search_environment_from_guidance,
        search_problem,
        search_problem_from_guidance,
        three_node,
    )
    from pomdp_hier.hqs.paper.examples import load_amazon12, load_dvd
    from pomdp_hier.hqs.paper.presets import PAPER_TABLE, PAPER_TEXT
    from pomdp_hier.hqs.paper.reproduction import reproduce
    from pomdp_hier.hqs.policies import (
        AlgorithmOne,
        FixedLevel,
        HindsightSearch,
        OptimalSearch,
        PlansInEnvironment,
        paper_readings,
        rtbss_policy,
    )
    from pomdp_hier.hqs.result import HQSResult
    from pomdp_hier.hqs.reward import node_rewards, paper_reward
    from pomdp_hier.hqs.sampling import Sample
    from pomdp_hier.hqs.score import evaluate, hqs_samples, hqs_score, oracle_value

__all__ = [
    "PAPER_TABLE",
    "PAPER_TEXT",
    "AlgorithmOne",
    "ClosedFormUpdater",
    "Descend",
    "FixedLevel",
    "Found",
    "HQSResult",
    "HindsightRule",
    "HindsightSearch",
    "LookAhead",
    "Node",
    "NotFound",
    "OneStep",
    "OptimalSearch",
    "PlansInEnvironment",
    "Sample",
    "Search",
    "SearchRoot",
    "SearchState",
    "StoppingRule",
    "calibrate_delta",
    "evaluate",
    "hqs_samples",
    "hqs_score",
    "load_amazon12",
    "load_dvd",
    "node_rewards",
    "oracle_value",
    "paper_readings",
    "paper_reward",
    "reproduce",
    "rtbss_policy",
    "search_environment",
    "search_environment_from_guidance",
    "search_problem",
    "search_problem_from_guidance",
    "temperatures",
    "three_node",
]

_HOMES = {
    "pomdp_hier.hqs.belief": "ClosedFormUpdater",
    "pomdp_hier.hqs.calibration": "calibrate_delta",
    "pomdp_hier.hqs.model": (
        "Descend Found Node NotFound Search SearchState search_environment search_environment_from_guidance "
        "search_problem search_problem_from_guidance three_node"
    ),
    "pomdp_hier.hqs.paper.examples": "load_amazon12 load_dvd",
    "pomdp_hier.hqs.paper.presets": "PAPER_TABLE PAPER_TEXT",
    "pomdp_hier.hqs.paper.reproduction": "reproduce",
    "pomdp_hier.hqs.policies": (
        "AlgorithmOne HindsightSearch FixedLevel OptimalSearch PlansInEnvironment rtbss_policy paper_readings"
    ),
    "pomdp_hier.hqs.result": "HQSResult",
    "pomdp_hier.hqs.reward": "node_rewards paper_reward",
    "pomdp_hier.hqs.sampling": "Sample",
    "pomdp_hier.hqs.score": "evaluate hqs_samples hqs_score oracle_value",
    "pomdp_hier.hqs.guidance": "temperatures",
    "pomdp_hier._engines.rules": "HindsightRule LookAhead OneStep SearchRoot StoppingRule",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
