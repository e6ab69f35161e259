"""The softmax of similarities, and its limits."""

import numpy as np
import pytest

from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs.guidance import check_temperature, guidance, temperatures


def test_the_papers_example():
    assert guidance([0.0610, 0.0277], 0.005)[0] == pytest.approx(0.9987, abs=5e-5)


def test_one_child_is_certain_to_the_last_bit():
    assert guidance([[1e300], [-3.7]], 1e-300).tolist() == [[1.0], [1.0]]


def test_nothing_overflows():
    np.testing.assert_array_equal(guidance([1e4, 0.0, -1e4], 1e-5), [1, 0, 0])
    np.testing.assert_array_equal(guidance([5.0, 1.0], 0.01, 1.1, level=10_000), [0.5, 0.5])
    np.testing.assert_array_equal(guidance([5.0, 1.0], 5e-324), [1, 0])
    assert temperatures(3, 0.5, 2.0) == 4.0


def test_rows_are_items():
    table = guidance([[0.0, 1.0, 2.0], [7.0, 7.0, 7.0]], 1.0)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(table[0], np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), rtol=1e-15)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.nan, np.inf])
def test_deltas_that_are_no_temperature(delta):
    with pytest.raises(ParameterError, match="delta: got"):
        check_temperature(delta, 1.0)


def test_a_nu_below_1_cools_down_to_certainty():
    assert guidance([0.0, np.log(2.0)], 2.0, 0.5, level=1)[1] == pytest.approx(2 / 3)
    assert guidance([0.0, 1e-9], 0.01, 0.5, level=10_000).tolist() == [0.0, 1.0]
    assert guidance([1.0, 1.0], 0.01, 0.5, level=10_000).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("nu", [0.0, -0.5, np.nan, np.inf])
def test_nus_that_are_no_factor(nu):
    with pytest.raises(ParameterError, match="nu: got"):
        guidance([1.0], 0.1, nu)


@pytest.mark.parametrize("value", ["0.1", [0.1, 0.2], None])
def test_a_temperature_that_is_no_number_is_refused(value):
    with pytest.raises(ParameterError, match=r"delta: got .*; expected a positive number"):
        check_temperature(value, 1.0)
    with pytest.raises(ParameterError, match="nu: got"):
        check_temperature(0.1, value)
