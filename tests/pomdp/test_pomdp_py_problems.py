"""pomdp-py's own finite problems, brought in with one call each: the table of the benchmark, small."""

import warnings
from typing import Any

import pytest

pytest.importorskip("matplotlib")  # pomdp-py's load_unload loads it

from benchmarks import pomdp_py_problems as table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "faults", "slack"),
    [
        ("tiger", (2, 3, 2), set(), 100),
        ("rocksample 3 × 3, 2 rocks", (48, 7, 3), set(), 10),
        ("load_unload", (20, 2, 3), {"inconsistent-equality"}, 80),
        ("tag, 12 cells", (156, 5, 13), {"terminal-not-absorbing", "terminal-reward"}, 15),
        ("mos 3 × 3, 1 object", (569, 6, 11), {"terminal-not-absorbing"}, 400),
    ],
)
def test_a_problem_comes_in_is_checked_and_earns_the_same(
    name: str, sizes: Any, faults: set[str], slack: float
) -> None:
    with table.made_to_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, make, search = next(case for case in table.cases() if case[0] == name)
        row = table.one_row(name, make, search, 3)
    assert (row["states"], row["actions"], row["observations"]) == sizes
    assert set(row["issues"]) == faults
    for planner in ("there", "out again"):  # too few runs to tell more than that none of them misses the goal
        (one, half), (other, other_half) = row["here"]["return"], row[planner]["return"]
        assert abs(one - other) <= 2 * (half + other_half) + slack
