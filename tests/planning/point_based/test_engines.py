"""Both engines are one algorithm: the same bounds to rounding after the same number of trials."""

import importlib.util

import numpy as np
import pytest

from pomdp_hier.planning import solve, verify
from pomdp_hier.problems import cheese_maze, rock_sample, tiger
from tests.small_problems import small_problem

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def same(problem, n_trials, horizon=None):
    found = [
        solve(problem, horizon=horizon, precision=0, max_trials=n_trials, engine=engine)
        for engine in ("numpy", "numba")
    ]
    lower, upper = zip(*((s.lower, s.upper) for s in found), strict=True)
    assert lower[0] == pytest.approx(lower[1], rel=1e-9, abs=1e-9)
    assert upper[0] == pytest.approx(upper[1], rel=1e-9, abs=1e-9)
    return found


def test_engines_agree():
    same(tiger(), 20)
    same(cheese_maze(), 10)
    same(small_problem(8), 10, horizon=4)


def test_machine_code_gives_certificates_too():
    _, fast = same(rock_sample(), 6)
    assert float(verify(fast.certificate(), rock_sample()).upper) == pytest.approx(fast.upper)


def test_the_same_input_gives_the_same_bits():
    one, two = (solve(cheese_maze(), precision=0, max_trials=15) for _ in range(2))
    assert (one.lower, one.upper) == (two.lower, two.upper)
    assert np.array_equal(one.alpha_vectors, two.alpha_vectors)
