"""The Hierarchy Quality for Search: the paper's model as an instance of the general framework, and its scores.

A name is imported when it is first used, so that scoring does not wait for what plans POMDPs.
"""

from typing import TYPE_CHECKING

from pomdp_hier._lazy import attach

if TYPE_CHECKING:
    from pomdp_hier.hqs.belief import ClosedFormUpdater
    from pomdp_hier.hqs.calibration import calibrate_delta
    from pomdp_hier.hqs.generic import evaluate_generic
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
        ClairvoyantSearch,
        FixedLevel,
        OptimalSearch,
        PlansInEnvironment,
        look_ahead,
        paper_readings,
    )
    from pomdp_hier.hqs.result import HQSResult
    from pomdp_hier.hqs.reward import node_rewards, paper_reward
    from pomdp_hier.hqs.sampling import Sample
    from pomdp_hier.hqs.score import evaluate, hqs_samples, hqs_score, oracle_value
    from pomdp_hier.hqs.temperature import temperatures
    from pomdp_hier.scorer.rules import Clairvoyant, LookAhead, OneStep, SearchRoot, StoppingRule

__all__ = [
    "PAPER_TABLE",
    "PAPER_TEXT",
    "AlgorithmOne",
    "Clairvoyant",
    "ClairvoyantSearch",
    "ClosedFormUpdater",
    "Descend",
    "FixedLevel",
    "Found",
    "HQSResult",
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
    "evaluate_generic",
    "hqs_samples",
    "hqs_score",
    "load_amazon12",
    "load_dvd",
    "look_ahead",
    "node_rewards",
    "oracle_value",
    "paper_readings",
    "paper_reward",
    "reproduce",
    "search_environment",
    "search_environment_from_guidance",
    "search_problem",
    "search_problem_from_guidance",
    "temperatures",
    "three_node",
]

_HOMES = {
    "PAPER_TABLE": "pomdp_hier.hqs.paper.presets",
    "PAPER_TEXT": "pomdp_hier.hqs.paper.presets",
    "AlgorithmOne": "pomdp_hier.hqs.policies",
    "Clairvoyant": "pomdp_hier.scorer.rules",
    "ClairvoyantSearch": "pomdp_hier.hqs.policies",
    "ClosedFormUpdater": "pomdp_hier.hqs.belief",
    "Descend": "pomdp_hier.hqs.model",
    "FixedLevel": "pomdp_hier.hqs.policies",
    "Found": "pomdp_hier.hqs.model",
    "HQSResult": "pomdp_hier.hqs.result",
    "LookAhead": "pomdp_hier.scorer.rules",
    "Node": "pomdp_hier.hqs.model",
    "NotFound": "pomdp_hier.hqs.model",
    "OneStep": "pomdp_hier.scorer.rules",
    "OptimalSearch": "pomdp_hier.hqs.policies",
    "PlansInEnvironment": "pomdp_hier.hqs.policies",
    "Sample": "pomdp_hier.hqs.sampling",
    "Search": "pomdp_hier.hqs.model",
    "SearchRoot": "pomdp_hier.scorer.rules",
    "SearchState": "pomdp_hier.hqs.model",
    "StoppingRule": "pomdp_hier.scorer.rules",
    "calibrate_delta": "pomdp_hier.hqs.calibration",
    "evaluate": "pomdp_hier.hqs.score",
    "evaluate_generic": "pomdp_hier.hqs.generic",
    "hqs_samples": "pomdp_hier.hqs.score",
    "hqs_score": "pomdp_hier.hqs.score",
    "load_amazon12": "pomdp_hier.hqs.paper.examples",
    "load_dvd": "pomdp_hier.hqs.paper.examples",
    "look_ahead": "pomdp_hier.hqs.policies",
    "node_rewards": "pomdp_hier.hqs.reward",
    "oracle_value": "pomdp_hier.hqs.score",
    "paper_readings": "pomdp_hier.hqs.policies",
    "paper_reward": "pomdp_hier.hqs.reward",
    "reproduce": "pomdp_hier.hqs.paper.reproduction",
    "search_environment": "pomdp_hier.hqs.model",
    "search_environment_from_guidance": "pomdp_hier.hqs.model",
    "search_problem": "pomdp_hier.hqs.model",
    "search_problem_from_guidance": "pomdp_hier.hqs.model",
    "temperatures": "pomdp_hier.hqs.temperature",
    "three_node": "pomdp_hier.hqs.model",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
