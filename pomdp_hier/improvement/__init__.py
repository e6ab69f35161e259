"""Edits of a tree that raise its score, each with its exact gain and its gain on held-out items.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.improvement.decisions import apply_decisions, read_decisions
    from pomdp_hier.improvement.entry_point import improve
    from pomdp_hier.improvement.regroup import regroup
    from pomdp_hier.improvement.result import apply_edits

__all__ = ["apply_decisions", "apply_edits", "improve", "read_decisions", "regroup"]

_HOMES = {
    "pomdp_hier.improvement.decisions": "apply_decisions read_decisions",
    "pomdp_hier.improvement.result": "apply_edits",
    "pomdp_hier.improvement.entry_point": "improve",
    "pomdp_hier.improvement.regroup": "regroup",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
