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
    "pomdp_hier.appraisal.baselines": "Appraisal appraise shuffled_scores",
    "pomdp_hier.appraisal.diagnosis": (
        "Confusion Diagnosis LostItem NodeReport confusions diagnose lost_items worst_nodes"
    ),
    "pomdp_hier.appraisal.levels": "BestCut LevelsAdvice best_cut levels_advice",
    "pomdp_hier.appraisal.model_selection": "hqs_scorer",
    "pomdp_hier.appraisal.moves": "Move apply_move apply_moves suggest_moves",
    "pomdp_hier.appraisal.policy_comparison": "compare_search_policies",
    "pomdp_hier.appraisal.structure": "StructureReport check_structure",
    "pomdp_hier.appraisal.sweep": "delta_sweep",
    "pomdp_hier.appraisal.tree_comparison": "compare",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
