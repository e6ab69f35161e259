"""Which value is the greatest and which tie for it."""

from fractions import Fraction

import pytest

from pomdp_hier.planning.decision import is_tied, largest


def test_of_equal_values_the_first_stays():
    for values in ([1, 1.0], [1.0, 1], [Fraction(1), 1.0]):
        assert type(largest(values)) is type(values[0])


def test_an_expression_ties_with_itself_alone():
    x = pytest.importorskip("sympy").Symbol("x")
    assert is_tied(x, x)
    assert not is_tied(x, 1)
    assert not is_tied(1, x)
