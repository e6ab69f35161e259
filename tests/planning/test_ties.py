"""Which value is the greatest and which tie for it."""

from fractions import Fraction

from pomdp_hier.planning.ties import largest


def test_of_equal_values_the_first_stays():
    for values in ([1, 1.0], [1.0, 1], [Fraction(1), 1.0]):
        assert type(largest(values)) is type(values[0])
