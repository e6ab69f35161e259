"""Where items are filed: which are in the wrong place, where they belong, and which features explain their places.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.filing.explanation import compare_features
    from pomdp_hier.filing.misfiled import find_misfiled

__all__ = ["compare_features", "find_misfiled"]

_HOMES = {
    "pomdp_hier.filing.explanation": "compare_features",
    "pomdp_hier.filing.misfiled": "find_misfiled",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
