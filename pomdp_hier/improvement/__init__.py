"""From a score to a better tree: edits that raise it, each with its exact gain, and what holds of them on other items.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.improvement.edits import apply_edits
    from pomdp_hier.improvement.entry_point import improve
    from pomdp_hier.improvement.result import Edit, HeldOutGain, Improvement

__all__ = ["Edit", "HeldOutGain", "Improvement", "apply_edits", "improve"]

_HOMES = {
    "pomdp_hier.improvement.edits": "apply_edits",
    "pomdp_hier.improvement.entry_point": "improve",
    "pomdp_hier.improvement.result": "Edit HeldOutGain Improvement",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
