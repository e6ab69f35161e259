"""The parser without recursion against the standard library's."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier.errors import HierarchyWarning, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.readers.json_text import parse_deep_json

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)),
    max_leaves=15,
)
PIECES = st.sampled_from([*'[]{},:"-0123.eE \n\\u', "true", "null", "NaN", '"a"', "[]", "{}"])


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(VALUES, st.sampled_from([None, 1]))
def test_values_come_out_as_the_standard_library_has_them(value: Any, indent: int | None) -> None:
    assert parse_deep_json(json.dumps(value, indent=indent)) == value


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_the_same_text_is_refused(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda name: json.loads(""))
    except json.JSONDecodeError:
        with pytest.raises(ReaderError, match="JSON"):
            parse_deep_json(text)
    else:
        assert parse_deep_json(text) == expected


@pytest.mark.slow
def test_a_nested_tree_of_many_levels() -> None:
    depth = 50_000
    text = '{"children": [' * depth + '{"name": "a"}' + "]}" * depth
    with pytest.warns(HierarchyWarning, match="49,999 nodes with one child"):
        assert Hierarchy.from_json(text).height == depth - 1
    with pytest.raises(ReaderError, match="not JSON: 100000 brackets still open"):
        Hierarchy.from_json("[" * 100_000)
    with pytest.raises(ReaderError, match="edge 0 is"):
        Hierarchy.from_json("[" * 100_000 + "]" * 100_000)
