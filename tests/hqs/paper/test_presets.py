"""The presets are what the paper's text and its table stand for, and cannot be changed."""

import pytest

from pomdp_hier.hqs.paper import PAPER_TABLE, PAPER_TEXT


def test_their_settings():
    assert dict(PAPER_TEXT) == {"delta": 0.01, "nu": 1.0, "tie": "search"}
    assert dict(**PAPER_TABLE) == {"delta": 0.005, "nu": 1.0, "tie": "descend"}


@pytest.mark.parametrize("preset", [PAPER_TEXT, PAPER_TABLE])
def test_they_are_immutable(preset):
    with pytest.raises(TypeError):
        preset["delta"] = 1.0
