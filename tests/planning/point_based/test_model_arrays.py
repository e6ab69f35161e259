"""The values of a controller as vectors of the search, against the linear system over all states."""

import numpy as np
import pytest

from pomdp_hier.planning import FiniteStateController, solve
from pomdp_hier.planning.point_based import linear_systems as module
from pomdp_hier.planning.point_based import search
from pomdp_hier.planning.point_based.model_arrays import solver_model
from pomdp_hier.problems import maze_4x3, tiger
from tests.extras import few
from tests.small_problems import KINDS, small_problem


@pytest.mark.parametrize("direct", [True, False], ids=["factored", "iterated"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "legal by observation"])
@pytest.mark.parametrize("seed", few(2, range(5)))
def test_values_are_those_of_the_controller_and_never_above(seed, kind, direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(module, "DIRECT", 0)
        monkeypatch.setattr(module, "_MOST_DIRECT", 0)
    problem = small_problem(seed, kind=kind)
    model = solver_model(problem.compiled)
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, model.n_actions, 6)
    after = rng.integers(0, 6, (6, model.n_observations))
    values, _ = module.controller_values(model, actions, after)
    truth = FiniteStateController(problem, actions, after).values[:, model.state]
    assert ((values == -np.inf) == (truth == -np.inf)).all()
    held = truth > -np.inf
    scale = 1 + np.abs(truth[held]).max(initial=0.0)
    assert (values[held] <= truth[held] + 1e-12 * scale).all()
    assert np.abs(values[held] - truth[held]).max(initial=0.0) <= 1e-7 * scale


def test_a_solver_that_ends_early_gives_less_and_not_more(monkeypatch):
    monkeypatch.setattr(module, "DIRECT", 0)
    monkeypatch.setattr(module, "_MOST_DIRECT", 0)
    monkeypatch.setattr(module, "_MOST_FACTORED", 0)
    monkeypatch.setattr(module, "_MOST_STEPS", 1)
    model = solver_model(maze_4x3(discount=0.95).compiled)
    actions = np.zeros(3, dtype=np.int64)
    after = np.ones((3, model.n_observations), dtype=np.int64)
    early, n_products = module.controller_values(model, actions, after)
    monkeypatch.setattr(module, "_MOST_STEPS", 300)
    whole, n_more = module.controller_values(model, actions, after)
    assert n_products < n_more
    assert (early < whole).all()


def test_evaluating_the_controller_raises_the_lower_bound(monkeypatch):
    with_values = solve(tiger(), precision=1e-9, max_trials=12, engine="numpy")
    monkeypatch.setattr(search, "_BYTES_PER_ENTRY", 10**9)
    too_large = solve(tiger(), precision=1e-9, max_trials=12, memory_limit=10**9, engine="numpy")
    monkeypatch.setattr(search, "_WORK_PER_BELIEF", 0)  # never worth its time
    without = solve(tiger(), precision=1e-9, max_trials=12, engine="numpy")
    assert without.lower < with_values.lower <= min(with_values.upper, without.upper)
    assert too_large.lower == without.lower
    monkeypatch.undo()
    monkeypatch.setattr(search, "_MOST_ENTRIES", 0)
    assert solve(tiger(), precision=1e-9, max_trials=12, engine="numpy").lower == without.lower
