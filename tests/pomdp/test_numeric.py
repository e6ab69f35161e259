"""Arithmetic of floats, fractions and symbols, and the ends of the floats."""

import io
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

from pomdp_hier import POMDP, check_problem
from pomdp_hier.errors import ModelError, PomdpFileError, PomdpHierError
from pomdp_hier.pomdp.numeric import is_exact, is_nonnegative, is_symbolic, nearly_equal, sampled_outcome, total
from pomdp_hier.pomdp.pomdp_file import read_pomdp, write_pomdp


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


LARGEST = "1.7976931348623157e308"
LONG = "9" * 400
FILE = """discount: {discount}
values: reward
states: 2
actions: 1
observations: 2
start: {start}
T: 0
{row}
0.25 0.75
O: 0
1 0
{seen}
R: 0 : * : * : * {reward}
"""
FINE = {"discount": "0.9", "start": "0.5 0.5", "row": "0.5 0.5", "seen": "0 1", "reward": "1"}


def file(**changes):
    return FILE.format(**(FINE | changes))


def test_weights_whose_sum_no_float_holds_are_normalized():
    problem = read_pomdp(file(start="1e308 1e308", row=f"{LARGEST} {LARGEST}", seen=f"1e308 {LARGEST}"), normalize=True)
    assert problem.initial_belief.get_histogram() == {0: 0.5, 1: 0.5}
    compiled = problem.compiled
    assert compiled.transition[0].toarray().tolist() == [[0.5, 0.5], [0.25, 0.75]]
    share = float(Fraction(10**308) / (Fraction(10**308) + Fraction(float(LARGEST))))
    assert compiled.observation[0].toarray()[1] == pytest.approx([share, 1 - share], rel=1e-15)


def test_weights_below_the_normal_floats_are_normalized():
    problem = read_pomdp(file(start="5e-324 5e-324", row="1e-320 1e-320"), normalize=True)
    assert problem.initial_belief.get_histogram() == {0: 0.5, 1: 0.5}
    assert problem.compiled.transition[0].toarray()[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("reward", [LARGEST, "-" + LARGEST, "1e308", "1e-320", "-5e-324", "1e-400", "0." + LONG])
def test_rewards_that_a_float_holds_are_kept(reward):
    assert read_pomdp(file(reward=reward)).compiled.reward.tolist() == [[float(reward)] * 2]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"discount": "1e308"}, 1),
        ({"discount": LONG}, 1),
        ({"start": "1e308 1e308"}, 6),
        ({"row": "1e308 -1e308"}, 8),
        ({"row": f"{LONG} 0"}, 8),
        ({"seen": "1e-320 1e-320"}, 12),
        ({"reward": "1e309"}, 13),
        ({"reward": LONG}, 13),
        ({"reward": "1e99999999999"}, 13),
    ],
)
def test_what_no_float_holds_is_rejected_with_its_line(changes, line, exact):
    with pytest.raises(PomdpFileError, match=rf"^<text>:{line}:"):
        read_pomdp(file(**changes), exact=exact)


def test_a_mean_beyond_the_floats_is_named():
    off = file(row="0.500004 0.500004", reward=LARGEST) + f"R: 0 : 0 : 0 : * {LARGEST}\n"
    with pytest.raises(ModelError, match=r"^reward of 0 in 0: got inf"):
        _ = read_pomdp(off).compiled


ENDS = [
    1e308,
    float(LARGEST),
    -float(LARGEST),
    1e-320,
    10**400,
    -(10**400),
    Fraction(10**400, 3),
    Fraction(1, 10**400),
    float("inf"),
    float("nan"),
    1j,
    np.longdouble(10) ** 400,
    Decimal("1e400"),
    Decimal("0.5"),
    None,
    "1e308",
    [1],
    np.datetime64("2020"),
]


@pytest.mark.parametrize("n", ENDS, ids=[f"{i}" for i in range(len(ENDS))])
def test_arrays_and_functions_end_in_numbers_or_in_an_error_of_the_package(n):
    T, Z, R = [[[0.5, 0.5], [0.25, 0.75]]], [[[1, 0], [0, 1]]], [[1, -1]]
    parts = {"transition": lambda s, a: {0: 0.5, 1: 0.5}, "observation": lambda s, a: "o", "reward": lambda s, a: 1}
    parts |= {"initial_belief": {0: 0.5, 1: 0.5}, "legal_actions": ["x"]}
    makers = [
        lambda: POMDP.from_arrays([[[n, n], [0.25, 0.75]]], Z, R),
        lambda: POMDP.from_arrays(T, [[[n, n], [0, 1]]], R),
        lambda: POMDP.from_arrays(T, Z, [[n, -1]]),
        lambda: POMDP.from_arrays(T, Z, [[[n, n], [n, 1]]]),
        lambda: POMDP.from_arrays(T, Z, [[[[n, n], [n, n]], [[n, n], [n, 1]]]]),
        lambda: POMDP.from_arrays(T, Z, R, initial_belief=[n, n]),
        lambda: POMDP.from_arrays(T, Z, R, discount=n),
        lambda: POMDP.from_arrays(T, Z, R, tolerance=n),
        lambda: POMDP(**parts | {"transition": lambda s, a: {0: n, 1: n}}),
        lambda: POMDP(**parts | {"observation": lambda s, a: {0: n, 1: n}}),
        lambda: POMDP(**parts | {"reward": lambda s, a: n}),
        lambda: POMDP(**parts | {"reward": lambda s, a, t: n}),
        lambda: POMDP(**parts | {"initial_belief": {0: n, 1: n}}),
    ]
    uses = [
        lambda p: p.compiled,
        lambda p: p.reward(p.initial_belief, p.all_actions[0]),
        lambda p: list(map(str, check_problem(p))),
        lambda p: str(p.tables()),
        lambda p: write_pomdp(p, io.StringIO()),
    ]
    for make in makers:
        try:
            problem = make()
        except PomdpHierError:
            continue
        for use in uses:
            try:
                use(problem)
            except PomdpHierError:
                continue
    finite = POMDP(**parts | {"reward": lambda s, a: Decimal("0.5")})
    assert finite.compiled.reward.tolist() == [[0.5, 0.5]]
