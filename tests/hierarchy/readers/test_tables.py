"""Data frames need narwhals and say so; the columns a caller names must exist."""

import sys

import pytest

from pomdp_hier.errors import MissingExtraError, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.readers.tables import read_csv
from tests.extras import optional

pd = optional("pandas")


def test_a_frame_without_narwhals_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"id": ["r", "a"], "parent": [None, "r"]})
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pomdp-hier\[frames\]'"):
        Hierarchy.from_parents(frame)


def test_what_only_looks_like_a_frame_is_refused() -> None:
    class Odd:
        columns = ("id",)
        shape = (1, 1)

    with pytest.raises(ReaderError, match=r"source .Odd.: .* expected a data frame"):
        Hierarchy.from_parents(Odd())


def test_comments_above_the_header_and_quotes() -> None:
    table = read_csv('# made by hand\n\n#\na,b\n"x, #1","y\nz"\n#2,w\n', comment="#")
    assert table.columns == ["a", "b"]
    assert table.rows == [["x, #1", "y\nz"], ["#2", "w"]]


def test_a_frame_with_numbers_as_columns_is_read() -> None:
    frame = pd.DataFrame([["Food", "Tea"], ["Food", "Milk"]])
    assert Hierarchy.from_paths(frame).item_labels == (("Food", "Tea"), ("Food", "Milk"))
