"""The parts that a search rests on, each by itself: beliefs, pruning, first plans, what errors add up to, units."""

import time

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.planning import solve, verify
from pomdp_hier.planning.point_based.blind_policies import blind_plans
from pomdp_hier.planning.point_based.model_arrays import solver_model
from pomdp_hier.problems import rock_sample, tiger
from tests.small_problems import KINDS, small_problem


@pytest.fixture
def stage():
    return solve(rock_sample(), precision=0, max_trials=7, engine="numpy").search.stages[-1]


def test_a_belief_is_admitted_once_and_what_comes_is_counted(stage):
    keys = np.array(list(stage.by_key), dtype=np.uint64)
    known = np.array(list(stage.by_key.values()))
    rows = [stage.pool.row(node) for node in known.tolist()]
    offsets = np.append(0, np.cumsum([len(index) for index, _ in rows]))
    index, weight = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    count, changes = stage.pool.count, stage.n_changes
    assert 0 in known
    assert stage.admit(offsets, index, weight, keys).tolist() == known.tolist()
    assert (stage.pool.count, stage.n_changes) == (count, changes)
    one = int(known[np.argmax(np.diff(offsets))])  # another belief under its key: of fewer states
    index, weight = stage.pool.row(one)
    other = stage.admit(np.array([0, 1]), index[:1], np.ones(1), keys[known == one])
    assert other.tolist() == [count]
    assert stage.pool.row(one)[0].tolist() == index.tolist()
    assert stage.n_changes == changes + 1
    stage.add_point(one, float(stage.pool.upper[one]) - 1.0, stage.reasons.get(one, (None,) * stage.model.n_actions))
    stage.add_vector(stage.archive[0], stage.actions[0], stage.after[0])
    assert stage.n_changes == changes + 3


def test_what_is_pruned_changes_no_bound(stage):
    beliefs = [stage.pool.row(node) for node in range(stage.pool.count)]
    upper = [stage.bounds(*belief)[1] for belief in beliefs]
    points, vectors = stage.points.count, stage.in_use
    stage.prune_points()
    assert stage.points.count < points
    assert [stage.bounds(*belief)[1] for belief in beliefs] == pytest.approx(upper, abs=1e-9)
    best = [stage.children[node].get(int(q.argmax())) for node, q in stage.q_upper.items()]
    served = {*stage.q_upper, *(node for children in best if children for node in children.node.tolist())}
    served = [stage.pool.row(node) for node in served]
    lower = [stage.bounds(*belief)[0] for belief in served]
    stage.prune_vectors()
    assert stage.in_use < vectors
    assert [stage.bounds(*belief)[0] for belief in served] == pytest.approx(lower, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_a_backup_adds_up_to_no_more_than_the_slack(kind):
    assert solver_model(tiger().compiled).slack.tolist() == pytest.approx([20, 20])  # 1 / (1 - 0.95)
    for seed in range(4):
        model = solver_model(small_problem(seed, kind=kind).compiled)
        indptr, column, probability, size = model.layout
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        ahead = np.bincount(row, weights=probability * model.slack[column % size], minlength=model.legal.size)
        more = 1 + model.discount * ahead.reshape(model.legal.shape).max(axis=0)
        assert (model.slack >= more * (1 - 1e-9)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_blind_plan_goes_on_with_what_is_legal_in_all_that_may_follow(kind):
    for seed in range(8):
        model = solver_model(small_problem(seed, kind=kind).compiled)
        plans, (indptr, column, _, size) = blind_plans(model), model.layout
        for a in range(model.n_actions):
            for o in range(model.n_observations):
                met = set()
                for s in np.flatnonzero(model.legal[a]).tolist():
                    row = slice(indptr[a * size + s], indptr[a * size + s + 1])
                    observed, state = np.divmod(column[row], size)
                    met |= set(state[observed == o].tolist())
                usable = [b for b in range(model.n_actions) if model.legal[b, sorted(met)].all()]
                assert plans[a, o] == (a if a in usable else usable[0] if usable else -1)


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_certificates_are_as_tight_in_any_unit(scale):
    even, hears = [[0.5, 0.5]] * 2, [[0.85, 0.15], [0.15, 0.85]]
    problem = POMDP.from_arrays(  # the tiger
        T=[np.eye(2), even, even],
        Z=[hears, even, even],
        R=np.array([[-1, -1], [-100, 10], [10, -100]]) * scale,
        discount=0.95,
    )
    solution = solve(problem, precision=scale, engine="numpy")
    bounds = verify(solution.certificate(), problem)
    assert 0 <= (solution.lower - float(bounds.lower)) / scale < 1e-6
    assert 0 <= (float(bounds.upper) - solution.upper) / scale < 1e-6


def test_the_history_tells_the_processor_time_since_the_call():
    began = time.process_time()
    seconds = [one.seconds for one in solve(tiger(), max_trials=5).history]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] <= time.process_time() - began
