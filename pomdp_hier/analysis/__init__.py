"""Analysis of a score: baselines, sensitivity to delta, diagnosis, suggested moves, and comparisons.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.analysis.baselines import appraise
    from pomdp_hier.analysis.comparison import compare
    from pomdp_hier.analysis.diagnosis import diagnose
    from pomdp_hier.analysis.levels import best_cut, score_by_levels
    from pomdp_hier.analysis.moves import apply_moves, suggest_moves
    from pomdp_hier.analysis.policy_comparison import compare_search_policies
    from pomdp_hier.analysis.settings_sweep import delta_sweep, hqs_scorer
    from pomdp_hier.analysis.structure import check_structure

__all__ = [
    "apply_moves",
    "appraise",
    "best_cut",
    "check_structure",
    "compare",
    "compare_search_policies",
    "delta_sweep",
    "diagnose",
    "hqs_scorer",
    "score_by_levels",
    "suggest_moves",
]

_HOMES = {
    "pomdp_hier.analysis.baselines": "appraise",
    "pomdp_hier.analysis.diagnosis": "diagnose",
    "pomdp_hier.analysis.levels": "best_cut score_by_levels",
    "pomdp_hier.analysis.settings_sweep": "delta_sweep hqs_scorer",
    "pomdp_hier.analysis.moves": "apply_moves suggest_moves",
    "pomdp_hier.analysis.comparison": "compare",
    "pomdp_hier.analysis.policy_comparison": "compare_search_policies",
    "pomdp_hier.analysis.structure": "check_structure",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
