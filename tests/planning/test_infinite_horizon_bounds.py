"""Infinite-horizon bounds against each other and against bounds that a solver closes."""

import pickle

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning import RTBSS, FIBPolicy, QMDPPolicy, solve, value_bound
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import cheese_maze, tiger
from pomdp_hier.simulation import compare_policies, policy_value
from tests.extras import few
from tests.pomdp_models import random_problem
from tests.small_problems import small_problem


@pytest.mark.parametrize("seed", few(2, range(6)))
def test_they_stand_in_order_around_the_optimum(seed):
    problem = small_problem(seed, kind="plain", discount=0.8)
    compiled, solution = problem.compiled, solve(problem, precision=1e-4, max_trials=60)
    qmdp, fib, tib, blind = (
        float((value_bound(problem, kind) @ compiled.initial).max()) for kind in ("qmdp", "fib", "tib", "blind")
    )
    assert blind <= solution.upper + 1e-9
    assert blind <= solution.lower + 1e-9
    assert solution.lower <= tib + 1e-9
    assert tib <= fib + 1e-8
    assert (value_bound(problem, "tib") <= value_bound(problem, "fib") + 1e-8).all()
    assert fib <= qmdp + 1e-8
    assert (value_bound(problem, "fib") <= value_bound(problem, "qmdp") + 1e-8).all()


def tib_by_definition(compiled, sweeps):
    """``[A, S]``, the tighter informed bound by its definition, belief by belief, from values that are surely above."""
    n = compiled.n_states
    p = [outcome_matrix(compiled, a).toarray().reshape(n, -1, n) for a in range(compiled.n_actions)]
    legal, live = compiled.legal, np.flatnonzero(~compiled.terminal)
    triples = [(a, s, o) for a in range(len(p)) for s in live if legal[a, s] for o in range(p[a].shape[1])]
    after = {(a, s, o): np.where(compiled.terminal, 0, p[a][s, o]) for a, s, o in triples}
    most = max(0.0, float(compiled.reward.max())) / (1 - compiled.discount)
    q = {(key, a): most * weights.sum() for key, weights in after.items() for a in range(len(p))}

    def backup(weights, a):
        here = np.flatnonzero(weights)
        value = float(weights @ compiled.reward[a])
        for o in range(p[a].shape[1]):
            leads = [s for s in here if after[a, s, o].any()]
            usable = [b for b in range(len(p)) if all(legal[b, after[a, s, o] > 0].all() for s in leads)]
            value += compiled.discount * max(sum(weights[s] * q[(a, s, o), b] for s in leads) for b in usable)
        return value

    for _ in range(sweeps):
        q = {
            ((c, s, o), a): backup(after[c, s, o], a)
            if after[c, s, o].any() and legal[a, after[c, s, o] > 0].all()
            else 0.0
            for c, s, o in triples
            for a in range(len(p))
        }
    table = np.where(compiled.terminal, 0.0, np.full(legal.shape, -np.inf))
    for s in live:
        for a in np.flatnonzero(legal[:, s]):
            table[a, s] = backup(np.eye(n)[s], a)
    return table


@pytest.mark.parametrize(("kind", "seed"), [("plain", 0), ("ends", 1), ("legal by state", 2)])
def test_the_tighter_bound_is_what_its_definition_says(kind, seed):
    problem = small_problem(seed, kind=kind, discount=0.5)
    compiled = problem.compiled
    found, defined = value_bound(problem, "tib"), tib_by_definition(compiled, 16)
    assert (np.isfinite(found) == np.isfinite(defined)).all()
    scale = float(np.abs(found[np.isfinite(found)]).max())
    assert np.where(np.isfinite(found), found - defined, 0) == pytest.approx(0, abs=3e-4 * scale)


def test_by_hand():
    assert value_bound(tiger(), "blind")[0] == pytest.approx(-20)
    assert np.isfinite(value_bound(cheese_maze(), "fib")).all()


def test_what_the_iteration_has_left_out_is_added():
    one = POMDP.from_arrays(T=[[[1.0]]], Z=[[[1.0]]], R=[[1.0]], discount=0.999)
    assert value_bound(one, "qmdp")[0, 0] == pytest.approx(1000, abs=2e-10)
    ends = POMDP.from_arrays(T=[[[0, 1], [0, 1]]], Z=[[[1], [1]]], R=[[3, 0]], discount=1.0, terminal=[1])
    assert value_bound(ends, "qmdp").tolist() == [[3, 0]]


@pytest.mark.parametrize("kind", ["legal by state", "legal by observation"])
def test_what_is_not_legal_at_the_start_is_worth_nothing(kind):
    left_out = 0
    for seed in range(6):
        problem = small_problem(seed, kind=kind, discount=0.5)
        compiled = problem.compiled
        legal = compiled.legal if compiled.legal_after is None else compiled.legal & compiled.legal_after[-1][:, None]
        for name in ("fib", "tib", "blind"):
            finite = np.isfinite(value_bound(problem, name))
            assert (finite <= legal).all()  # a state that cannot be met before any observation has no value there
            assert (finite == legal)[:, compiled.initial > 0].all()
        left_out += int((~legal).sum())
    assert left_out


@pytest.mark.parametrize("seed", few(2, range(6)))
def test_a_solution_is_a_leaf_and_a_bound_for_looking_ahead(seed):
    problem = small_problem(seed, kind="plain", discount=0.8)
    rough, fine = solve(problem, max_trials=1, precision=0), solve(problem, precision=1e-5, max_trials=100)
    values = [RTBSS(depth, leaf_value=rough, upper_bound=rough).decide(problem).value for depth in (1, 2, 3)]
    plain = RTBSS(2, leaf_value=lambda _, belief: rough.bounds(belief)[0]).decide(problem).value
    assert values[1] == pytest.approx(plain)
    assert all(rough.lower - 1e-9 <= value <= fine.upper + 1e-9 for value in values)


@pytest.mark.slow
def test_regret_is_bounded_from_both_sides():
    problem = tiger()
    solution = solve(problem, precision=1e-3)
    table = compare_policies(
        {"controller": solution.controller(), "listen": FirstAction()}, problem, solution=solution, mdp_value=False
    )
    low, high = table["controller"].optimality_gap
    assert low == 0 <= high <= 1e-3
    low, high = table["listen"].optimality_gap
    assert low <= 19.37136838 + 20 <= high
    assert high - low <= solution.gap + 1e-6
    assert "optimal value in [19.37" in str(table)
    found = table.to_dict()
    assert (found["optimum_low"], found["optimum_high"]) == (solution.lower, solution.upper)
    sampled = compare_policies([FirstAction()], problem, solution=solution, method="monte-carlo", n_episodes=3)
    assert sampled.rows[0].optimality_gap == pytest.approx((39.37, 39.37), abs=1e-2)


def test_a_solution_of_something_else_is_refused():
    for solution in (solve(tiger(accuracy=0.8)), solve(tiger(), horizon=2)):
        with pytest.raises(ParameterError, match=r"^solution: got one"):
            compare_policies([FirstAction()], tiger(), solution=solution)


def test_the_policy_of_fib_reads_its_table_and_never_expects_more_than_qmdp():
    for seed in range(5):
        problem = random_problem(seed, discount=0.9)
        table, index = value_bound(problem, "fib"), problem.compiled.action_index
        decision = FIBPolicy().decide(problem)
        vector = problem.compiled.vector(problem.initial_belief)
        support = np.flatnonzero(vector)
        for action, q in decision.q_values.items():
            assert q == pytest.approx(vector[support] @ table[index[action], support])
        assert decision.value == max(decision.q_values.values())
        assert decision.value <= QMDPPolicy().decide(problem).value + 1e-9
    again = pickle.loads(pickle.dumps(FIBPolicy()))
    assert again.decide(tiger()).action == "listen"
    assert policy_value(FIBPolicy(), tiger(), horizon=4).value >= policy_value(QMDPPolicy(), tiger(), horizon=4).value
