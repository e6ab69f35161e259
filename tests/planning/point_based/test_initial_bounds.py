"""The initial bounds hold whenever they are left, and linear systems are solved by iteration too."""

import contextlib
import itertools
import signal

import numpy as np
import pytest
from scipy import sparse

from benchmarks.first_bounds import check, random_model, rock_sample_arrays
from pomdp_hier import POMDP
from pomdp_hier._progress import StoppedEarlyError, leaving
from pomdp_hier.errors import PlanningError, PomdpHierWarning
from pomdp_hier.planning import solve, value_bound, verify
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.planning.point_based import initial_bounds as bounds
from pomdp_hier.planning.point_based import linear_systems, model_arrays, on_numpy, search
from pomdp_hier.planning.point_based import solve as solving
from pomdp_hier.planning.point_based.blind_policies import blind_stage
from pomdp_hier.planning.point_based.model_arrays import solver_model
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.problems import cheese_maze, rock_sample, tiger
from tests.extras import few
from tests.small_problems import KINDS, small_problem


def stop_after(n):
    asked = itertools.count()
    return lambda: next(asked) >= n


def chain(rng, size, kind):
    if kind == "cycle":
        return sparse.csr_array((np.ones(size), (np.arange(size), np.roll(np.arange(size), -1))), shape=(size, size))
    if kind == "ends":  # a path without an entry in its last row
        return sparse.csr_array(np.eye(size, k=1))
    matrix = rng.random((size, size)) * (rng.random((size, size)) < (1 if kind == "dense" else 0.1))
    return sparse.csr_array(matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-9))


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("kind", ["cycle", "ends", "sparse", "dense"])
def test_systems_are_solved_by_iteration_as_directly(kind, unit, monkeypatch):
    monkeypatch.setattr(linear_systems, "DIRECT", 0)
    monkeypatch.setattr(linear_systems, "_MOST_DIRECT", 0)
    rng = np.random.default_rng(0)
    step = chain(rng, 60, kind)
    reward = rng.normal(size=60) * unit
    exact = np.linalg.solve(np.eye(60) - 0.95 * step.toarray(), reward)
    near = np.zeros(60)
    values, n_products = linear_systems.solved(step, reward, 0.95, near)
    assert values == pytest.approx(exact, abs=1e-7 * unit)
    assert n_products < 300
    assert linear_systems.solved(step, reward, 0.95, exact)[1] == 1
    left, _ = linear_systems.solved(step, reward, 0.95, near, stop_after(0))
    assert left.tolist() == near.tolist()


def test_systems_on_which_gradients_do_not_converge_are_solved_with_incomplete_factors_or_by_sweeps(monkeypatch):
    size, rng = 900, np.random.default_rng(1)  # a path with jumps back, along which values travel one state per step
    there = np.minimum(np.arange(size) + 1, size - 1)
    back = np.maximum(np.arange(size) - rng.integers(0, 3, size), 0)
    entries = np.repeat([0.9, 0.1], size), (np.tile(np.arange(size), 2), np.concatenate([there, back]))
    step, reward = sparse.csr_array(entries, shape=(size, size)), -np.ones(size)
    reward[-1] = 0.0
    exact = np.linalg.solve(np.eye(size) - 0.99 * step.toarray(), reward)
    monkeypatch.setattr(linear_systems, "_MOST_DIRECT", 0)
    values, n_products = linear_systems.solved(step, reward, 0.99, np.zeros(size))
    assert values == pytest.approx(exact, abs=1e-6)
    monkeypatch.setattr(linear_systems, "_MOST_FACTORED", 0)
    swept, n_more = linear_systems.solved(step, reward, 0.99, np.zeros(size))
    assert n_more > n_products
    assert np.abs(swept - exact).max() < 0.1 * np.abs(exact).max()


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_that_are_left_early_hold(kind, monkeypatch):
    for name in ("_PIECE", "_TERMS_AT_ONCE"):
        monkeypatch.setattr(bounds, name, 4)
    for name in ("DIRECT", "_MOST_DIRECT"):
        monkeypatch.setattr(linear_systems, name, 0)
    for seed in range(3):
        model = solver_model(small_problem(seed, kind=kind).compiled)
        outcomes = model.outcomes
        *_, last = bounds.initial_bounds(model)
        scale = 1e-7 * (1 + np.abs(last.informed[model.legal]).max(initial=0.0)) * float(model.slack.max())
        for n in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
            for left in bounds.initial_bounds(model, stop_after(n)):
                ahead = blind_stage(model, left.plans, left.blind)
                finite = np.isfinite(left.blind)
                assert (finite == np.isfinite(last.blind)).all()
                assert (left.blind[finite] <= ahead[finite] + scale).all()
                assert (left.blind[finite] <= last.blind[finite] + scale).all()
                assert (left.informed >= last.informed - scale).all()
                if left.rests_on is None:  # a table of FIB bounds the optimum if no backup raises it
                    backed = bounds.informed_stage(model, outcomes, left.informed)
                    assert (backed <= left.informed + scale).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_are_bounds_whatever_is_legal(kind, monkeypatch):
    for seed in range(6):
        problem = small_problem(seed, kind=kind, discount=0.9)
        model = solver_model(problem.compiled)
        mdp, fib = linear_systems.mdp_bound(model), bounds.informed_bound(model, model.outcomes)
        scale = 1e-9 * (1 + np.abs(mdp[model.legal]).max(initial=0.0))
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "_LARGEST_SYSTEM", 0)
            patch.setattr(linear_systems, "_LARGE", 0)
            swept = linear_systems.mdp_bound(model)
            assert (swept >= mdp - scale)[model.legal].all()
            informed = bounds.informed_bound(model, model.outcomes, start=swept)
            assert (informed >= fib - scale)[model.legal].all()
            assert (bounds.informed_stage(model, model.outcomes, informed) <= informed + scale)[model.legal].all()


def test_each_bound_is_at_most_the_one_before():
    for problem in (tiger(), cheese_maze(), random_model(60, 3, 4, 5)):
        tables = [value_bound(problem, kind) for kind in ("range", "qmdp", "fib", "tib")]
        for looser, tighter in itertools.pairwise(tables):
            assert (tighter <= looser + 1e-9 * np.abs(looser).max()).all()


def test_sweeps_of_fib_end_near_the_values_of_its_policies(monkeypatch):
    model = solver_model(random_model(30, 3, 4, 5).compiled)
    exact = bounds.informed_bound(model, model.outcomes)
    monkeypatch.setattr(bounds, "_LARGEST_SYSTEM", 0)
    swept = bounds.informed_bound(model, model.outcomes)
    assert (swept >= exact - 1e-9).all()
    assert (swept - exact).max() < 2e-3 * np.abs(exact).max()


@pytest.mark.parametrize("terminal", [None, [0]])
def test_sweeps_of_large_models_end_near_the_values_of_policies_with_a_certificate(terminal, monkeypatch):
    problem = random_model(6, 3, 3, 5, terminal=terminal)
    model = solver_model(problem.compiled)
    exact = linear_systems.mdp_bound(model)
    closest = solve(problem, precision=1e-3, max_trials=20, engine="numpy")
    monkeypatch.setattr(bounds, "_LARGEST_SYSTEM", 0)
    monkeypatch.setattr(linear_systems, "_LARGE", 0)
    monkeypatch.setattr(linear_systems, "POLICY_STEPS", 0)
    for sweeps in (1, 3, 20):
        monkeypatch.setattr(linear_systems, "_SWEEPS_OF_MDP", sweeps)
        swept = linear_systems.mdp_bound(model)
        assert (swept >= exact - 1e-9).all()
    if terminal is None:
        assert (swept - exact).max() < 1e-3 * np.abs(exact).max()
    solution = solve(problem, max_trials=3, engine="numpy")
    proved = verify(solution.certificate(), problem)
    assert float(proved.lower) <= solution.lower <= closest.upper
    assert closest.lower <= solution.upper <= float(proved.upper)


@pytest.mark.parametrize("horizon", [None, 6])
@pytest.mark.parametrize("make", [tiger, cheese_maze, lambda: random_model(12, 3, 4, None)])
def test_a_limit_of_no_time_gives_bounds_with_a_certificate(make, horizon):
    problem = make()
    solution = solve(problem, horizon=horizon, time_limit=0)
    assert (solution.status, solution.search.trials) == ("time", 0)
    proved = verify(solution.certificate(), problem)
    closer = solve(problem, horizon=horizon, max_trials=3, engine="numpy")
    assert float(proved.lower) <= closer.lower <= closer.upper <= float(proved.upper)


def test_blind_and_fib_come_first_in_the_history():
    problem = random_model(40, 4, 6, 8)
    solution = solve(problem, max_trials=1)
    start = problem.compiled.initial
    blind, fib, tib = (float((value_bound(problem, kind) @ start).max()) for kind in ("blind", "fib", "tib"))
    assert solution.history[1].lower == pytest.approx(blind)
    assert solution.history[1].upper == pytest.approx(fib)
    assert tib < fib
    assert solution.history[2].upper == pytest.approx(tib)


@pytest.mark.parametrize("step", ["mdp_bound", "informed_steps", "tighter_steps", "blind_values"])
def test_ctrl_c_leaves_what_is_being_computed(step, monkeypatch):
    usual = getattr(bounds, step)

    def pressed(*arguments):
        signal.raise_signal(signal.SIGINT)
        return usual(*arguments)

    monkeypatch.setattr(bounds, step, pressed)
    solution = solve(random_model(40, 4, 6, 8), max_trials=50)
    assert (solution.status, solution.search.trials) == ("interrupted", 0)
    assert solution.lower < solution.upper < np.inf


@pytest.mark.parametrize("dropped", [False, True])
def test_ctrl_c_leaves_the_loading_of_compiled_loops(dropped, monkeypatch):
    def loading(*arguments):
        with contextlib.suppress(KeyboardInterrupt) if dropped else contextlib.nullcontext():  # as in a finalizer
            signal.raise_signal(signal.SIGINT)
        assert dropped
        return on_numpy

    monkeypatch.setattr(solving, "_kernels", loading)
    solution = solve(random_model(40, 4, 6, 8), max_trials=50)
    assert (solution.status, solution.search.trials) == ("interrupted", 0)


def test_a_trial_is_left_at_the_limit(monkeypatch):
    asked = itertools.count()

    def look(search):
        if next(asked) == 7:
            raise StoppedEarlyError

    monkeypatch.setattr(Search, "_look", look)
    problem = cheese_maze()
    solution = solve(problem, max_trials=4, engine="numpy")
    assert next(asked) > 8
    proved = verify(solution.certificate(), problem)
    assert float(proved.lower) <= solution.lower <= solution.upper <= float(proved.upper)


def test_the_arrays_of_rock_sample_are_the_bundled_problem():
    rocks = ((0, 0), (0, 1))
    arrays = solve(rock_sample_arrays(2, rocks), precision=1e-6)
    bundled = solve(rock_sample(2, 2, rocks=rocks, discount=0.95), precision=1e-6)
    assert arrays.lower == pytest.approx(bundled.upper, abs=2e-6)


def test_a_model_that_memory_does_not_hold_is_rejected_with_what_it_takes(monkeypatch):
    monkeypatch.setattr(model_arrays, "memory_available", lambda: 5_000)
    assert solve(tiger(), max_trials=0).status == "trials"
    problem = random_model(10, 4, 6, None)
    n_outcomes = solver_model_without_limit(problem, monkeypatch).n_outcomes
    monkeypatch.setattr(model_arrays, "memory_available", lambda: 5_000)
    with pytest.raises(PlanningError, match=f"{n_outcomes:,} outcomes.*expected at most 78"):
        solve(problem)


def solver_model_without_limit(problem, monkeypatch):
    monkeypatch.setattr(model_arrays, "memory_available", lambda: 10**12)
    return solver_model(problem.compiled)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.05, 0.2, 1.0])
def test_bounds_of_random_problems_never_cross_and_are_certified(limit):
    for seed in range(2_000, 2_004 if limit == 1.0 else 2_008):
        check(seed, limit)


@pytest.mark.slow
def test_large_models_have_bounds_when_the_limit_is_reached():
    for problem in (random_model(2_000, 4, 10, 10), random_model(1_000, 3, 2, None)):
        _ = problem.compiled
        solution = solve(problem, time_limit=1)
        assert solution.status == "time"
        assert solution.upper - solution.lower < 60


@pytest.mark.parametrize("kind", KINDS)
def test_passes_over_the_beliefs_of_trials_raise_the_lower_bound_within_its_certificate(kind, monkeypatch):
    problem, lower = small_problem(4, kind=kind, discount=0.95), []
    for first in (10**9, 0):
        monkeypatch.setattr(search, "_FIRST", first)
        solution = solve(problem, precision=0, max_trials=3, engine="numpy")
        proved = verify(solution.certificate(), problem)
        assert float(proved.lower) <= solution.lower <= solution.upper + 1e-9
        assert solution.upper <= float(proved.upper)
        lower.append((solution.lower, solution.search.backups))
    assert lower[1][0] >= lower[0][0] - 1e-9


@pytest.mark.parametrize("side", [0, 1])
def test_a_pass_improves_one_bound_where_trials_have_been(side, monkeypatch):
    monkeypatch.setattr(search, "_FIRST", 10**9)
    problem = random_model(14, 3, 3, 4)
    solution = solve(problem, max_trials=4, engine="numpy")
    found, before, n_backups = solution.search, solution.search.bounds, solution.search.backups
    nodes, pool, schedule = [*found.stages[-1].q_upper], found.stages[-1].pool, search.Schedule()
    uppers = pool.upper[nodes]
    found._pass(schedule, side)
    assert n_backups < found.backups <= n_backups + len(found.stages[-1].q_upper)
    assert (found.bounds[0] > before[0], (pool.upper[nodes] < uppers).any()) == (side == 0, side == 1)
    assert schedule.due in (4 * search._GROWTH, 4 * search._GROWTH * search._PATIENCE)
    proved = verify(solution.certificate(), problem)
    assert float(proved.lower) <= found.bounds[0] <= found.bounds[1] <= float(proved.upper)


@pytest.mark.parametrize(("terminal", "before"), [(None, 0), ([0], 0), (None, 10**12)])
def test_trials_and_steps_of_tib_take_turns_after_a_first_share_of_trials(terminal, before, monkeypatch):
    monkeypatch.setattr("pomdp_hier.planning.point_based.solve._LONG_STEP", 0)
    monkeypatch.setattr("pomdp_hier.planning.point_based.solve._BEFORE_TIB", before)
    monkeypatch.setattr(search, "_PRODUCTS_PER_BELIEF", 3_000)
    problem, usual, taken = random_model(12, 3, 3, 4, terminal=terminal), Search.tighten, []

    def tighten(found, initial):
        taken.append(found.trials)
        before = found.bounds[1]
        usual(found, initial)
        index, weight = found.stages[-1].pool.row(found.root)
        informed = found.stages[-1].informed[:, index] @ weight
        assert found.bounds[1] <= min(before, informed.max()) + 1e-9

    monkeypatch.setattr(Search, "tighten", tighten)
    solution = solve(problem, precision=0, max_trials=6, engine="numpy")
    assert len(taken) == 1
    assert (taken[0] == 6) if before else (0 < taken[0] < 6)
    assert solution.search.stages[-1].rests_on is not None
    proved = verify(solution.certificate(), problem)
    assert solution.upper == pytest.approx(float(proved.upper), abs=1e-6)
    assert float(proved.lower) <= solution.lower <= solution.upper <= float(proved.upper)
    at_once = solve(problem, max_trials=0, engine="numpy")
    assert solution.upper <= at_once.upper + 1e-9


@pytest.mark.parametrize("share", [0.2, 0.8, 1.0])
def test_outcomes_are_products_of_transitions_and_likelihoods(share):
    rng = np.random.default_rng(3)
    T, Z = (
        rng.random((2, 7, 7)) * (rng.random((2, 7, 7)) < 0.6),
        rng.random((2, 7, 5)) * (rng.random((2, 7, 5)) < share),
    )
    T[..., 0] += 0.1
    Z[..., 2] += 0.1
    T, Z = (rows / rows.sum(axis=-1, keepdims=True) for rows in (T, Z))
    compiled = POMDP.from_arrays(T=T, Z=Z, R=np.zeros((2, 7)), discount=0.9).compiled
    for a in range(2):
        matrix = outcome_matrix(compiled, a)
        product = np.einsum("st,to->sot", T[a], Z[a]).reshape(7, 35)
        np.testing.assert_allclose(matrix.toarray(), product, rtol=1e-15)
        assert (matrix.nnz, matrix.has_sorted_indices) == (np.count_nonzero(product), True)


def blocks_of(n, monkeypatch):
    """Lay out outcomes in blocks of n, as those of a large model."""
    monkeypatch.setattr(model_arrays, "AT_ONCE", n)


@pytest.mark.parametrize("kind", KINDS)
def test_outcomes_laid_out_in_blocks_are_those_laid_out_at_once(kind, monkeypatch):
    for seed in range(4):
        problem = small_problem(seed, kind=kind)
        whole = solver_model(problem.compiled)
        _ = whole.layout
        with monkeypatch.context() as patch:
            blocks_of(1, patch)
            pieces = solver_model(problem.compiled)
            for one, other in zip(whole.layout, pieces.layout, strict=True):
                np.testing.assert_array_equal(one, other)
        for name in ("row", "observation", "usable"):
            np.testing.assert_array_equal(getattr(whole.outcomes, name), getattr(pieces.outcomes, name))
        row = np.repeat(np.arange(len(whole.layout[0]) - 1), np.diff(whole.layout[0]))
        sums = np.bincount(row, weights=whole.layout[2], minlength=whole.legal.size)
        assert whole.row_sums.ravel() == pytest.approx(sums, abs=1e-12)


@pytest.mark.parametrize("horizon", [None, 5])
@pytest.mark.parametrize("limit", ["time", "memory", "interrupted"])
@pytest.mark.parametrize("kind", few(2, ["legal by state", "ends", "plain", "observes the state left"]))
def test_a_layout_that_is_left_leaves_bounds_with_a_certificate(kind, limit, horizon, monkeypatch):
    blocks_of(1, monkeypatch)
    usual, calls = model_arrays.outcome_matrix, []

    def slow(*arguments):
        calls.append(1)
        if limit == "interrupted":
            signal.raise_signal(signal.SIGINT)
        return usual(*arguments)

    monkeypatch.setattr(model_arrays, "outcome_matrix", slow)
    given = {"time": {"time_limit": 0}, "memory": {"memory_limit": 1}, "interrupted": {}}[limit]
    for seed in (1, 2, 4):
        calls.clear()
        problem = small_problem(seed, kind=kind, discount=0.8)
        solution = solve(problem, horizon=horizon, precision=0, max_trials=9, engine="numpy", **given)
        found = solution.search
        assert found.trials == 0 or found.model.is_laid_out
        if found.model.is_laid_out:  # a single block
            continue
        assert solution.status == ("converged" if solution.gap == 0 and limit != "interrupted" else limit)
        assert len(calls) <= 1
        assert solution.policy.decide(problem).action in problem.actions(problem.initial_belief)
        proved = verify(solution.certificate(), problem)
        assert float(proved.lower) <= solution.lower <= solution.upper <= float(proved.upper)
        closer = solve(problem, horizon=horizon, precision=0, max_trials=9, engine="numpy", resume=solution)
        assert solution.lower - 1e-9 <= closer.lower <= closer.upper + 1e-9 <= solution.upper + 2e-9
        float(verify(closer.certificate(), problem).lower)


def test_bounds_of_a_large_model_come_before_its_outcomes(monkeypatch):
    problem = random_model(30, 3, 4, None)
    with monkeypatch.context() as patch:
        blocks_of(1, patch)
        patch.setattr(bounds, "_PIECE", 0)
        steps = bounds.initial_bounds(solver_model(problem.compiled))
        first, early = next(steps), next(steps)
    rewards = problem.compiled.reward
    assert float(first.informed.max()) == pytest.approx(rewards.max() + 0.95 * rewards.max() / 0.05)
    np.testing.assert_allclose(first.blind, np.repeat(rewards.min(axis=1, keepdims=True) / 0.05, 30, axis=1))
    start = problem.compiled.initial
    assert early.blind @ start == pytest.approx(value_bound(problem, "blind") @ start)
    assert early.informed @ start == pytest.approx(value_bound(problem, "qmdp") @ start)


def test_a_model_beyond_the_memory_has_the_bounds_that_need_no_outcomes(monkeypatch):
    blocks_of(1, monkeypatch)
    monkeypatch.setattr(model_arrays, "memory_available", lambda: 10)
    problem = random_model(12, 3, 4, None)
    for horizon in (None, 4):
        with pytest.warns(PomdpHierWarning, match=r"got 1,[0-9]+ outcomes .* expected at most 0"):
            solution = solve(problem, horizon=horizon)
        assert solution.status == "memory"
        assert float(verify(solution.certificate(), problem).lower) <= solution.lower < solution.upper


def test_reading_functions_is_left_at_the_limit_with_an_error(monkeypatch):
    monkeypatch.setattr(solving, "_LAST_SECONDS", -1.0)
    with pytest.raises(PlanningError, match=r"time_limit: got 0; expected .* arrays.* Raise time_limit\."):
        solve(tiger(), time_limit=0)
    problem = tiger()
    with pytest.raises(StoppedEarlyError), leaving(stop_after(3)):
        _ = problem.compiled
    assert problem.compiled.n_states == 2
    assert solve(problem, time_limit=0).status == "time"


def test_sums_of_outcomes_are_those_of_a_sort_bit_for_bit(monkeypatch):
    model = solver_model(random_model(40, 2, 5, None).compiled)
    rng = np.random.default_rng(0)
    for share in (0.05, 1.0):
        index = np.flatnonzero(rng.random(40) < share)
        weight = rng.dirichlet(np.ones(len(index)))
        found = []
        for wider in (0, 100):
            monkeypatch.setattr(on_numpy, "WIDER", wider)
            found.append(on_numpy.expand(model.layout, 1, index, weight, np.ones(40), 1e-10))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
