"""What people ask after the score: baselines, the sweep over delta, where searchers get lost, and what to move.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._lazy import attach

if TYPE_CHECKING:
    from pomdp_hier.appraisal.baselines import Appraisal, appraise, shuffled_scores
    from pomdp_hier.appraisal.diagnosis import (
        Confusion,
        Diagnosis,
        LostItem,
        NodeReport,
        confusions,
        diagnose,
        lost_items,
        worst_nodes,
    )
    from pomdp_hier.appraisal.levels import BestCut, LevelsAdvice, best_cut, levels_advice
    from pomdp_hier.appraisal.model_selection import hqs_scorer
    from pomdp_hier.appraisal.moves import Move, apply_move, apply_moves, suggest_moves
    from pomdp_hier.appraisal.policy_comparison import compare_search_policies
    from pomdp_hier.appraisal.structure import StructureReport, check_structure
    from pomdp_hier.appraisal.sweep import delta_sweep
    from pomdp_hier.appraisal.tree_comparison import compare

__all__ = [
    "Appraisal",
    "BestCut",
    "Confusion",
    "Diagnosis",
    "LevelsAdvice",
    "LostItem",
    "Move",
    "NodeReport",
    "StructureReport",
    "apply_move",
    "apply_moves",
    "appraise",
    "best_cut",
    "check_structure",
    "compare",
    "compare_search_policies",
    "confusions",
    "delta_sweep",
    "diagnose",
    "hqs_scorer",
    "levels_advice",
    "lost_items",
    "shuffled_scores",
    "suggest_moves",
    "worst_nodes",
]

_HOMES = {
    "Appraisal": "pomdp_hier.appraisal.baselines",
    "Confusion": "pomdp_hier.appraisal.diagnosis",
    "Diagnosis": "pomdp_hier.appraisal.diagnosis",
    "LostItem": "pomdp_hier.appraisal.diagnosis",
    "Move": "pomdp_hier.appraisal.moves",
    "NodeReport": "pomdp_hier.appraisal.diagnosis",
    "StructureReport": "pomdp_hier.appraisal.structure",
    "apply_move": "pomdp_hier.appraisal.moves",
    "apply_moves": "pomdp_hier.appraisal.moves",
    "appraise": "pomdp_hier.appraisal.baselines",
    "check_structure": "pomdp_hier.appraisal.structure",
    "compare": "pomdp_hier.appraisal.tree_comparison",
    "compare_search_policies": "pomdp_hier.appraisal.policy_comparison",
    "confusions": "pomdp_hier.appraisal.diagnosis",
    "delta_sweep": "pomdp_hier.appraisal.sweep",
    "diagnose": "pomdp_hier.appraisal.diagnosis",
    "BestCut": "pomdp_hier.appraisal.levels",
    "LevelsAdvice": "pomdp_hier.appraisal.levels",
    "best_cut": "pomdp_hier.appraisal.levels",
    "levels_advice": "pomdp_hier.appraisal.levels",
    "hqs_scorer": "pomdp_hier.appraisal.model_selection",
    "lost_items": "pomdp_hier.appraisal.diagnosis",
    "shuffled_scores": "pomdp_hier.appraisal.baselines",
    "suggest_moves": "pomdp_hier.appraisal.moves",
    "worst_nodes": "pomdp_hier.appraisal.diagnosis",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
