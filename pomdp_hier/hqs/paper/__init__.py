"""The paper's case study: its data, its settings, and a check of every printed figure.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.hqs.model import three_node
    from pomdp_hier.hqs.paper.reproduction import PAPER_TABLE, PAPER_TEXT, load_amazon12, load_dvd, reproduce

__all__ = ["PAPER_TABLE", "PAPER_TEXT", "load_amazon12", "load_dvd", "reproduce", "three_node"]

_HOMES = {
    "pomdp_hier.hqs.model": "three_node",
    "pomdp_hier.hqs.paper.reproduction": "PAPER_TABLE PAPER_TEXT load_amazon12 load_dvd reproduce",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
