"""JSON deeper than the parser of the standard library goes, and numbers longer than Python reads."""

import json

import pytest

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy import Hierarchy


@pytest.mark.parametrize(
    "text",
    [
        '{"children": [' * 200_000 + '{"name": "a"}' + "]}" * 200_000,
        "[" * 200_000 + "]" * 200_000,
        '[{"id": ' + "9" * 5_000 + ', "parent": null}]',
    ],
    ids=["objects", "lists", "digits"],
)
def test_what_the_parser_cannot_hold_is_an_error_of_the_reader(text: str) -> None:
    with pytest.raises(ReaderError, match=r"^JSON: .*Write a deep tree as edges or Newick"):
        Hierarchy.from_json(text)


def test_a_deep_tree_is_read_by_the_formats_that_the_error_names() -> None:
    depth = 50_000
    edges = [[f"c{at}", f"c{at + 1}"] for at in range(depth)] + [["c0", "a"], [f"c{depth}", "b"]]
    newick = "(a," + "(" * depth + "b" + ")" * depth + ");"
    for read, text in ((Hierarchy.from_json, json.dumps(edges)), (Hierarchy.from_newick, newick)):
        with pytest.warns(UserWarning, match="with one child"):
            assert read(text).height == depth


def test_open_brackets_without_an_end_are_refused() -> None:
    with pytest.raises(ReaderError, match="JSON: "):
        Hierarchy.from_json("[" * 200_000)
