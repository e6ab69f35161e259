"""The Hierarchy Quality for Search: the paper's model as an instance of the general framework, and its engine.

A name is imported when it is first used, so that scoring does not wait for what plans POMDPs.
"""

from typing import TYPE_CHECKING

from pomdp_hier._lazy import attach

if TYPE_CHECKING:
    from pomdp_hier.hqs.baselines import Appraisal, appraise, shuffled_scores
    from pomdp_hier.hqs.belief import ClosedFormUpdater
    from pomdp_hier.hqs.calibrate import calibrate_delta
    from pomdp_hier.hqs.comparison import compare
    from pomdp_hier.hqs.diagnostics.moves import apply_move, suggest_moves
    from pomdp_hier.hqs.diagnostics.reading import Diagnosis, confusions, diagnose, lost_items, worst_nodes
    from pomdp_hier.hqs.diagnostics.structure import check_structure
    from pomdp_hier.hqs.distributed.score import evaluate_distributed
    from pomdp_hier.hqs.engine.rules import Clairvoyant, LookAhead, OneStep, SearchRoot, StoppingRule
    from pomdp_hier.hqs.examples import load_amazon12, load_dvd
    from pomdp_hier.hqs.generic import evaluate_generic
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
    from pomdp_hier.hqs.policies import (
        AlgorithmOne,
        ClairvoyantSearch,
        FixedLevel,
        OptimalSearch,
        PlansInEnvironment,
        look_ahead,
        paper_readings,
    )
    from pomdp_hier.hqs.policy_table import compare_search_policies
    from pomdp_hier.hqs.presets import PAPER_TABLE, PAPER_TEXT
    from pomdp_hier.hqs.profile import delta_profile
    from pomdp_hier.hqs.reproduction import reproduce
    from pomdp_hier.hqs.result import HQSResult
    from pomdp_hier.hqs.reward import node_rewards, paper_reward
    from pomdp_hier.hqs.sample import Sample
    from pomdp_hier.hqs.score import evaluate, hqs_samples, hqs_score, oracle_value
    from pomdp_hier.hqs.scorer import hqs_scorer

__all__ = [
    "PAPER_TABLE",
    "PAPER_TEXT",
    "AlgorithmOne",
    "Appraisal",
    "Clairvoyant",
    "ClairvoyantSearch",
    "ClosedFormUpdater",
    "Descend",
    "Diagnosis",
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
    "apply_move",
    "appraise",
    "calibrate_delta",
    "check_structure",
    "compare",
    "compare_search_policies",
    "confusions",
    "delta_profile",
    "diagnose",
    "evaluate",
    "evaluate_distributed",
    "evaluate_generic",
    "hqs_samples",
    "hqs_score",
    "hqs_scorer",
    "load_amazon12",
    "load_dvd",
    "look_ahead",
    "lost_items",
    "node_rewards",
    "oracle_value",
    "paper_readings",
    "paper_reward",
    "reproduce",
    "search_environment",
    "search_environment_from_guidance",
    "search_problem",
    "search_problem_from_guidance",
    "shuffled_scores",
    "suggest_moves",
    "temperatures",
    "three_node",
    "worst_nodes",
]

_HOMES = {
    "PAPER_TABLE": "pomdp_hier.hqs.presets",
    "PAPER_TEXT": "pomdp_hier.hqs.presets",
    "AlgorithmOne": "pomdp_hier.hqs.policies",
    "Appraisal": "pomdp_hier.hqs.baselines",
    "Clairvoyant": "pomdp_hier.hqs.engine.rules",
    "ClairvoyantSearch": "pomdp_hier.hqs.policies",
    "ClosedFormUpdater": "pomdp_hier.hqs.belief",
    "Descend": "pomdp_hier.hqs.model",
    "Diagnosis": "pomdp_hier.hqs.diagnostics.reading",
    "FixedLevel": "pomdp_hier.hqs.policies",
    "Found": "pomdp_hier.hqs.model",
    "HQSResult": "pomdp_hier.hqs.result",
    "LookAhead": "pomdp_hier.hqs.engine.rules",
    "Node": "pomdp_hier.hqs.model",
    "NotFound": "pomdp_hier.hqs.model",
    "OneStep": "pomdp_hier.hqs.engine.rules",
    "OptimalSearch": "pomdp_hier.hqs.policies",
    "PlansInEnvironment": "pomdp_hier.hqs.policies",
    "Sample": "pomdp_hier.hqs.sample",
    "Search": "pomdp_hier.hqs.model",
    "SearchRoot": "pomdp_hier.hqs.engine.rules",
    "SearchState": "pomdp_hier.hqs.model",
    "StoppingRule": "pomdp_hier.hqs.engine.rules",
    "apply_move": "pomdp_hier.hqs.diagnostics.moves",
    "appraise": "pomdp_hier.hqs.baselines",
    "calibrate_delta": "pomdp_hier.hqs.calibrate",
    "check_structure": "pomdp_hier.hqs.diagnostics.structure",
    "compare": "pomdp_hier.hqs.comparison",
    "compare_search_policies": "pomdp_hier.hqs.policy_table",
    "confusions": "pomdp_hier.hqs.diagnostics.reading",
    "delta_profile": "pomdp_hier.hqs.profile",
    "diagnose": "pomdp_hier.hqs.diagnostics.reading",
    "evaluate": "pomdp_hier.hqs.score",
    "evaluate_distributed": "pomdp_hier.hqs.distributed.score",
    "evaluate_generic": "pomdp_hier.hqs.generic",
    "hqs_samples": "pomdp_hier.hqs.score",
    "hqs_score": "pomdp_hier.hqs.score",
    "hqs_scorer": "pomdp_hier.hqs.scorer",
    "load_amazon12": "pomdp_hier.hqs.examples",
    "load_dvd": "pomdp_hier.hqs.examples",
    "look_ahead": "pomdp_hier.hqs.policies",
    "lost_items": "pomdp_hier.hqs.diagnostics.reading",
    "node_rewards": "pomdp_hier.hqs.reward",
    "oracle_value": "pomdp_hier.hqs.score",
    "paper_readings": "pomdp_hier.hqs.policies",
    "paper_reward": "pomdp_hier.hqs.reward",
    "reproduce": "pomdp_hier.hqs.reproduction",
    "search_environment": "pomdp_hier.hqs.model",
    "search_environment_from_guidance": "pomdp_hier.hqs.model",
    "search_problem": "pomdp_hier.hqs.model",
    "search_problem_from_guidance": "pomdp_hier.hqs.model",
    "shuffled_scores": "pomdp_hier.hqs.baselines",
    "suggest_moves": "pomdp_hier.hqs.diagnostics.moves",
    "temperatures": "pomdp_hier.hqs.guidance",
    "three_node": "pomdp_hier.hqs.model",
    "worst_nodes": "pomdp_hier.hqs.diagnostics.reading",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
