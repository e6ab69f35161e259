"""Text from outside, kept on one line and shortened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier._text import shortened

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"  # one character to a reader, five to Python


@given(st.text(max_size=60), st.integers(1, 40))
def test_no_more_than_so_many_characters_and_both_ends_kept(text, most):
    short = shortened(text, most)
    assert len(short) <= max(most, 1)
    head, _, tail = short.partition("…") if short != text else (text, "", "")
    assert text.startswith(head)
    assert text.endswith(tail)


@pytest.mark.parametrize("most", range(12, 24))
@pytest.mark.parametrize("sign", [FAMILY, "\U0001f44d\U0001f3fd", "e\u0301", "\u0915\u093f"])
def test_no_sign_is_cut_in_its_middle(sign, most):
    head, tail = shortened(f"ab{sign * 12}yz", most).split("…")
    assert head.removeprefix("ab").replace(sign, "") == tail.removesuffix("yz").replace(sign, "") == ""
