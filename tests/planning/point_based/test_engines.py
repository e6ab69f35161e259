"""Both engines are one algorithm: the same bounds to rounding after the same number of trials."""

import importlib.util

import numpy as np
import pytest

from pomdp_hier import _imports
from pomdp_hier.planning import solve, verify
from pomdp_hier.planning.point_based.solve import COMPILATION
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


def test_compiled_loops_give_certificates_too():
    _, fast = same(rock_sample(), 6)
    assert float(verify(fast.certificate(), rock_sample()).upper) == pytest.approx(fast.upper)


def test_the_same_input_gives_the_same_bits():
    one, two = (solve(cheese_maze(), precision=0, max_trials=15) for _ in range(2))
    assert (one.lower, one.upper) == (two.lower, two.upper)
    assert np.array_equal(one.alpha_vectors, two.alpha_vectors)


@pytest.mark.parametrize(("cached", "chosen"), [(True, "on_numba"), (False, "on_numpy")])
def test_compilation_counts_in_the_choice_of_an_engine(monkeypatch, cached, chosen):
    monkeypatch.setattr(_imports, "is_cached", lambda source, name: cached)
    search = solve(rock_sample(), max_trials=0).search
    assert search.kernels.__name__.endswith(chosen)
    assert solve(rock_sample(), max_trials=0, time_limit=0.5).search.kernels.__name__.endswith("on_numpy")
    assert solve(tiger(), max_trials=0).search.kernels.__name__.endswith("on_numpy")


def test_the_loops_whose_compilation_is_counted_are_those_there_are():
    from pomdp_hier.planning.point_based import on_numba

    assert set(COMPILATION) == {name for name, value in vars(on_numba).items() if hasattr(value, "py_func")}


def test_a_search_compiles_nothing_that_was_not_compiled_before_its_first_trial(monkeypatch):
    from pomdp_hier.planning.point_based import on_numba, search

    solve(tiger(), max_trials=0, engine="numba")  # compiles the loops on a tiny problem
    compiled = {name: len(getattr(on_numba, name).signatures) for name in COMPILATION}
    monkeypatch.setattr(search, "_FIRST", 0)
    monkeypatch.setattr("pomdp_hier.planning.point_based.solve._LONG_STEP", 0)
    solve(rock_sample(), max_trials=4, engine="numba")
    assert {name: len(getattr(on_numba, name).signatures) for name in COMPILATION} == compiled
