"""Recorded searches of people: reading them, the temperature that fits them, and predicted beside observed choices.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.searches.comparison import predicted_and_observed
    from pomdp_hier.searches.fit import fit_delta
    from pomdp_hier.searches.reading import read_searches

__all__ = ["fit_delta", "predicted_and_observed", "read_searches"]

_HOMES = {
    "pomdp_hier.searches.comparison": "predicted_and_observed",
    "pomdp_hier.searches.fit": "fit_delta",
    "pomdp_hier.searches.reading": "read_searches",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
