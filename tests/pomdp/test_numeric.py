from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

from pomdp_hier.pomdp.numeric import is_exact, is_nonnegative, is_symbolic, nearly_equal, sampled_outcome, total


@pytest.mark.parametrize(
    ("value", "symbolic", "exact"),
    [
        (1, False, True),
        (0.5, False, False),
        (np.float64(0.5), False, False),
        (np.int64(1), False, True),
        (Fraction(1, 2), False, True),
        (Decimal("0.5"), False, False),
        (sympy.Rational(1, 2), False, True),
        (sympy.Symbol("x"), True, True),
        (sympy.sqrt(2), True, True),
        ("0.5", False, False),
        (None, False, False),
    ],
)
def test_kinds_of_numbers(value, symbolic, exact):
    assert is_symbolic(value) is symbolic
    assert is_exact(value) is exact


@pytest.mark.parametrize("value", [0, 0.0, 1e-300, Fraction(1, 3), sympy.Symbol("x"), sympy.sqrt(2), Decimal(0)])
def test_nonnegative_values(value):
    assert is_nonnegative(value)


@pytest.mark.parametrize("value", [-1, -1e-300, float("nan"), "1", None, 1j, -sympy.sqrt(2), sympy.I])
def test_values_that_are_no_probability(value):
    assert not is_nonnegative(value)


def test_sums_of_floats_are_correctly_rounded():
    assert total([1e16, 1.0, -1e16]) == 1.0
    assert total([0.1] * 10) == 1.0


def test_sums_keep_exact_numbers_exact():
    assert total([Fraction(1, 3), Fraction(2, 3)]) == Fraction(1)
    assert isinstance(total([Fraction(1, 3), 1]), Fraction)
    x = sympy.Symbol("x")
    assert total([x, 1 - x]) == 1


def test_sums_of_infinities_do_not_raise():
    assert np.isnan(total([float("inf"), float("-inf")]))
    assert total([float("inf"), 1.0]) == float("inf")


def test_equality_has_no_tolerance_for_exact_numbers():
    assert not nearly_equal(Fraction(10**12 - 1, 10**12), 1, 1e-3)
    x = sympy.Symbol("x")
    assert nearly_equal((x + 1) ** 2 - x**2 - 2 * x, 1, 0)
    assert not nearly_equal(x, 1, 1e-3)
    assert not nearly_equal(float("nan"), 1, 1e-3)
    assert not nearly_equal(float("inf"), 1, 1e-3)


def test_drawing_covers_the_distribution_and_skips_zeros():
    weights = {"none": 0.0, "a": 0.25, "b": 0.75, "never": 0}
    assert [sampled_outcome(weights, u) for u in (0.0, 0.2499, 0.25, 0.999999999999)] == ["a", "a", "b", "b"]
