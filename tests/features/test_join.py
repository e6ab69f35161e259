"""Feature rows are joined to items by id, and what does not match is listed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import FeatureError
from pomdp_hier.features.items import join_rows, match_ids


@given(st.permutations(list(range(20))))
def test_any_order_of_rows_is_undone(order):
    rows = join_rows(order, range(20))
    assert [order[row] for row in rows] == list(range(20))


def test_text_ids_match_items_by_their_text():
    assert join_rows(["1", "0"], [0, 1]).tolist() == [1, 0]


def test_everything_that_does_not_match_is_listed():
    match = match_ids(["a", "b", "a", "x"], ["a", "b", "c", "b"])
    assert match.rows.tolist() == [0, 1, -1, 1]
    assert (match.missing, match.surplus) == (("c",), ("x",))
    assert (match.doubled_rows, match.doubled_items) == (("a",), ("b",))
    with pytest.raises(FeatureError) as caught:
        join_rows(["a", "b", "a", "x"], ["a", "b", "c", "b"])
    for part in ("1 item without a feature row ('c')", "('x')", "('a')"):
        assert part in str(caught.value)


def test_the_copies_of_an_item_share_its_row():
    assert join_rows(["b", "a"], ["a", "b", "a"]).tolist() == [1, 0, 1]


def test_surplus_rows_can_be_left_out_and_long_lists_are_cut():
    assert join_rows(["x", "a"], ["a"], surplus="drop").tolist() == [1]
    with pytest.raises(FeatureError, match=r"12 items without .*12 in all"):
        join_rows([100], list(range(12)), surplus="drop")
