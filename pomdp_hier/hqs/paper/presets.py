"""The two settings of the paper's case study: what its text states, and what its table needs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PAPER_TEXT: Mapping[str, Any] = MappingProxyType({"delta": 0.01, "nu": 1.0, "tie": "search"})
"""The paper's text: temperature 0.01, and Algorithm 1's strict comparison, which searches on a tie."""

PAPER_TABLE: Mapping[str, Any] = MappingProxyType({"delta": 0.005, "nu": 1.0, "tie": "descend"})
"""What the paper's Table 1 was computed with: temperature 0.005, and a tie descends."""
