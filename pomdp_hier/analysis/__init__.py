"""What people ask after the score: baselines, the sweep over delta, where searchers get lost, and what to move.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.analysis.baselines import Appraisal, appraise, shuffled_scores
    from pomdp_hier.analysis.comparison import compare, compare_search_policies
    from pomdp_hier.analysis.diagnosis import (
        Confusion,
        Diagnosis,
        LostItem,
        NodeReport,
        confusions,
        diagnose,
        lost_items,
        worst_nodes,
    )
    from pomdp_hier.analysis.levels import BestCut, LevelScores, best_cut, score_by_levels
    from pomdp_hier.analysis.moves import Move, apply_move, apply_moves, suggest_moves
    from pomdp_hier.analysis.settings_sweep import delta_sweep, hqs_scorer
    from pomdp_hier.analysis.structure import StructureReport, check_structure

__all__ = [
    "Appraisal",
    "BestCut",
    "Confusion",
    "Diagnosis",
    "LevelScores",
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
    "lost_items",
    "score_by_levels",
    "shuffled_scores",
    "suggest_moves",
    "worst_nodes",
]

_HOMES = {
    "pomdp_hier.analysis.baselines": "Appraisal appraise shuffled_scores",
    "pomdp_hier.analysis.diagnosis": (
        "Confusion Diagnosis LostItem NodeReport confusions diagnose lost_items worst_nodes"
    ),
    "pomdp_hier.analysis.levels": "BestCut LevelScores best_cut score_by_levels",
    "pomdp_hier.analysis.settings_sweep": "hqs_scorer delta_sweep",
    "pomdp_hier.analysis.moves": "Move apply_move apply_moves suggest_moves",
    "pomdp_hier.analysis.comparison": "compare_search_policies compare",
    "pomdp_hier.analysis.structure": "StructureReport check_structure",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
