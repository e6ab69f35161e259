"""Misfiled items: probabilities that items are in the wrong place, and the places where they belong.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.filing.misfiled import find_misfiled

__all__ = ["find_misfiled"]

_HOMES = {"pomdp_hier.filing.misfiled": "find_misfiled"}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
