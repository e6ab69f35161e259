"""Where in a hierarchy searchers get lost, which items, and what to move."""

from typing import TYPE_CHECKING

from pomdp_hier._lazy import attach

if TYPE_CHECKING:
    from pomdp_hier.hqs.diagnostics.moves import Move, apply_move, suggest_moves
    from pomdp_hier.hqs.diagnostics.reading import (
        Confusion,
        Diagnosis,
        LostItem,
        NodeReport,
        confusions,
        diagnose,
        lost_items,
        worst_nodes,
    )
    from pomdp_hier.hqs.diagnostics.structure import StructureReport, check_structure

__all__ = [
    "Confusion",
    "Diagnosis",
    "LostItem",
    "Move",
    "NodeReport",
    "StructureReport",
    "apply_move",
    "check_structure",
    "confusions",
    "diagnose",
    "lost_items",
    "suggest_moves",
    "worst_nodes",
]

_HOMES = {
    "Confusion": "pomdp_hier.hqs.diagnostics.reading",
    "Diagnosis": "pomdp_hier.hqs.diagnostics.reading",
    "LostItem": "pomdp_hier.hqs.diagnostics.reading",
    "Move": "pomdp_hier.hqs.diagnostics.moves",
    "NodeReport": "pomdp_hier.hqs.diagnostics.reading",
    "StructureReport": "pomdp_hier.hqs.diagnostics.structure",
    "apply_move": "pomdp_hier.hqs.diagnostics.moves",
    "check_structure": "pomdp_hier.hqs.diagnostics.structure",
    "confusions": "pomdp_hier.hqs.diagnostics.reading",
    "diagnose": "pomdp_hier.hqs.diagnostics.reading",
    "lost_items": "pomdp_hier.hqs.diagnostics.reading",
    "suggest_moves": "pomdp_hier.hqs.diagnostics.moves",
    "worst_nodes": "pomdp_hier.hqs.diagnostics.reading",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
