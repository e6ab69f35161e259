"""What RTBSS looks ahead to: bounds of the endless horizon and value functions, with every other option."""

import itertools
import pickle

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning import RTBSS, AndOrTree, solve, value_bound, value_iteration
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.simulation import policy_value
from tests.exact_oracle import exact_value
from tests.pomdp_models import random_fractions, search_tree, tiger
from tests.small_problems import KINDS, small_problem

NAMES = ("qmdp", "fib", "blind")
SEEDS = {"plain": 4, "ends": 7, "legal by state": 5, "legal by observation": 4, "observes the state left": 1}

MOST_SLOW = [kind if kind == "legal by state" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]


def read(problem, table):
    """A table ``[A, S]`` at a belief, by its definition."""
    index, actions = problem.compiled.state_index, problem.compiled.action_index
    return lambda belief: max(
        sum(p * table[actions[a], index[s]] for s, p in belief.items()) for a in problem.actions(belief)
    )


def check_a_solution_above_any_leaf(problem, prunes_at_0):
    """What a solution says from above holds for leaves below the optimum alone; for others nothing is pruned."""
    endless, three = solve(problem, precision=0.5, max_trials=5), solve(problem, horizon=3)
    short = value_iteration(problem, 2)
    leaves = ("zero", "immediate", *NAMES, endless, three, endless.controller(), three.controller(), short)
    leaves += (lambda p, b: 3.0,)
    below = {"blind", endless}
    for leaf, depth in itertools.product(leaves, (2, 3, 4)):
        truth = RTBSS(depth, leaf, prune=False, engine="plain").decide(problem).value
        for bound, tie in itertools.product((endless, three), ("first", "all")):
            decision = RTBSS(depth, leaf, bound, ties=tie).decide(problem)
            assert decision.value == pytest.approx(truth, abs=1e-9)
            if bound is three:
                assert decision.stats["pruning"] == (leaf == "zero" and depth <= 3)
            elif leaf in ("zero", "immediate"):
                assert decision.stats["pruning"] == prunes_at_0
            else:
                assert decision.stats["pruning"] == (leaf in below or leaf is leaves[7])
    other = RTBSS(2, endless, endless, updater=lambda belief, action, observation: belief).decide(problem)
    assert not other.stats["pruning"]


@pytest.mark.parametrize(("seed", "gains"), [(9, False), pytest.param(6, True, marks=pytest.mark.slow)])
def test_a_solution_above_any_leaf(seed, gains):
    check_a_solution_above_any_leaf(small_problem(seed, kind="plain", discount=0.8), gains)


@pytest.mark.parametrize("kind", MOST_SLOW)
def test_every_leaf_with_every_option(kind):
    problem = small_problem(SEEDS[kind], kind=kind, discount=0.8)
    solution = solve(problem, precision=0.5, max_trials=5)
    leaves = (*NAMES, value_iteration(problem, 2), solution, solution.controller())
    for leaf, depth in itertools.product(leaves, (1, 2)):
        values = []
        for engine, bound, prune in itertools.product(("plain", "arrays"), ("fib", "qmdp", "range"), (True, False)):
            planner = RTBSS(depth, leaf, bound, engine=engine, prune=prune, tie_tolerance=1e-9)
            values.append(planner.decide(problem))
            assert values[-1].stats["pruning"] == (prune and depth > 1)
        others = (
            {"ties": "all"},
            {"merge_tolerance": None},
            {"merge_tolerance": 1e-12},
            {"budget": 10**6, "fallback": FirstAction()},
            {"updater": BayesUpdater(problem)},
            {"upper_bound": lambda p, b, a, d: 1e9},
        )
        values += [RTBSS(depth, leaf, tie_tolerance=1e-9, **options).decide(problem) for options in others]
        assert [v.value for v in values] == pytest.approx([values[0].value] * len(values), abs=1e-9)
        assert {v.ties for v in values} == {values[0].ties}
        if problem.legal_by == "state" and leaf in NAMES:
            leaf_value = read(problem, value_bound(problem, leaf))
            assert values[0].value == pytest.approx(exact_value(problem, horizon=depth, final_value=leaf_value))


@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_is_asked_for_what_is_legal_after_each_observation(kind):
    for seed in range(3):
        problem = small_problem(seed, kind=kind, discount=0.8)
        solution = solve(problem, precision=0.1, max_trials=4, engine="numpy")
        belief, compiled = problem.initial_belief, problem.compiled
        ahead = []
        for action in problem.actions(belief):
            a = compiled.action_index[action]
            bounds = float(compiled.reward[a] @ compiled.initial) * np.ones(2)
            for o, probability, posterior in compiled.branches(compiled.initial, a):
                seen = compiled.observations[o] if kind == "legal by observation" else None
                then = solution.bounds(compiled.belief(posterior), observation=seen)
                bounds += compiled.discount * probability * np.array(then)
            assert solution.action_bound(problem, belief, action, 1) == pytest.approx(bounds[1])
            ahead.append(bounds[0])
        assert RTBSS(1, solution).decide(problem).value == pytest.approx(max(ahead))


@pytest.mark.parametrize("kind", MOST_SLOW)
def test_on_which_side_of_the_optimum_they_are_and_that_looking_further_helps(kind):
    problem = small_problem(SEEDS[kind], kind=kind, discount=0.8)
    solution = solve(problem, precision=1e-2, max_trials=20)
    value = {leaf: [RTBSS(d, leaf).decide(problem).value for d in (1, 2, 3)] for leaf in (*NAMES, solution)}
    for above in ("qmdp", "fib"):
        one, two, three = value[above]
        assert one + 1e-9 >= two >= three - 1e-9 >= solution.lower - 2e-9
    for below in ("blind", solution):
        one, two, three = value[below]
        assert one - 1e-9 <= two <= three + 1e-9 <= solution.upper + 2e-9
    assert all(fib <= qmdp + 1e-9 for fib, qmdp in zip(value["fib"], value["qmdp"], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_is_worth_as_a_leaf_what_its_lower_bound_is(kind):
    problem = small_problem(SEEDS[kind], kind=kind, discount=0.8)
    solution, compiled = solve(problem, precision=0.1, max_trials=5), problem.compiled
    compared = 0
    for a in compiled.legal_actions(compiled.initial).tolist():
        for o, _, posterior in compiled.branches(compiled.initial, a):
            belief, observation = compiled.belief(posterior), compiled.observations[o]
            seen = observation if problem.legal_by == "observation" else None
            lower = solution.bounds(belief, observation=seen)[0]
            assert solution.leaf.value(compiled, belief, seen) == pytest.approx(lower, abs=1e-12)
            compared += 1
    assert compared


@pytest.mark.slow
def test_a_leaf_from_below_is_what_the_policy_earns_at_least():
    earns_less = 0
    for seed, leaf in itertools.product(range(3), NAMES):
        problem = small_problem(seed, kind=KINDS[seed % 2], discount=0.25)
        planner = RTBSS(1, leaf)
        earned, promised = policy_value(planner, problem, truncation_error=0.1), planner.decide(problem).value
        assert leaf != "blind" or earned.value >= promised - earned.error - 1e-9
        earns_less += leaf != "blind" and earned.value < promised - earned.error - 1e-9
    assert earns_less  # QMDP and FIB promise more than can be earned


@pytest.mark.parametrize("discount", [1.0, 0.95])
def test_alpha_vectors_as_a_leaf_are_so_many_more_steps(discount):
    problem = tiger(discount=discount)
    for depth, steps in ((1, 0), (1, 3), (3, 1)):
        whole = value_iteration(problem, depth + steps).value(problem.initial_belief)
        assert RTBSS(depth, value_iteration(problem, steps)).decide(problem).value == pytest.approx(whole)


@pytest.mark.parametrize("leaf", NAMES)
def test_where_the_run_ends_no_discount_is_needed(leaf):
    eta = {("c0", "c1"): 0.7, ("c0", "c2"): 0.3, ("c1", "c3"): 0.6, ("c1", "c4"): 0.4}
    rewards = {"c0": 0.1, "c1": 0.5, "c2": 0.6, "c3": 0.9, "c4": 0.8}
    problem = search_tree({"c0": ["c1", "c2"], "c1": ["c3", "c4"]}, lambda c, d: eta[c, d], rewards)
    exact = exact_value(problem, horizon=5)
    for engine in ("plain", "arrays"):
        assert RTBSS(4, leaf, engine=engine).decide(problem).value == pytest.approx(exact)
        one = RTBSS(1, leaf, engine=engine).decide(problem).value
        assert one <= exact + 1e-12 if leaf == "blind" else one >= exact - 1e-12


@pytest.mark.parametrize("leaf", [pytest.param("qmdp", marks=pytest.mark.slow), "fib", "blind"])  # 100,000 backups
def test_a_run_without_end_and_discount_has_no_endless_value(leaf):
    with pytest.raises(PlanningError, match=rf"'{leaf}' .*value_iteration\(problem, n\)"):
        RTBSS(2, leaf).decide(tiger(discount=1))


def test_exact_numbers_stand_beside_leaves_in_floats():
    problem = random_fractions(3)
    for leaf in NAMES:
        plain, arrays = (RTBSS(2, leaf, engine=engine).decide(problem) for engine in ("auto", "arrays"))
        assert plain.stats["engine"] == "plain"
        assert float(plain.value) == pytest.approx(arrays.value)


def test_trees_and_other_processes_know_the_leaves():
    for leaf in (*NAMES, value_iteration(tiger(), 2), solve(tiger(), precision=1.0)):
        planner = RTBSS(2, leaf)
        assert AndOrTree.build(tiger(), depth=2, leaf_value=leaf).value == pytest.approx(planner.decide(tiger()).value)
        again = pickle.loads(pickle.dumps(planner))
        assert again.decide(tiger()).value == planner.decide(tiger()).value


def test_what_has_no_leaf_is_refused():
    with pytest.raises(ParameterError, match=r"'best'.*'zero', 'immediate', 'qmdp', 'fib', 'blind'"):
        RTBSS(2, "best")
    with pytest.raises(ParameterError, match=r"^leaf_value: got array"):
        RTBSS(2, np.zeros((2, 2)))
    other = value_iteration(small_problem(4, kind="plain", discount=0.8), 1)
    for engine in ("plain", "arrays"):
        with pytest.raises(ParameterError, match=r"got the leaf values of 3 states.*2"):
            RTBSS(2, other, engine=engine).decide(tiger())
    by_belief = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0,
        initial_belief={"here": 1},
        discount=0.5,
        legal_actions=lambda b: ["wait"],
        legal_by="belief",
        actions=["wait"],
    )
    with pytest.raises(ModelError, match="a function of the belief"):
        RTBSS(2, "fib").decide(by_belief)


def test_where_no_action_can_follow_blindly_there_is_no_blind_leaf():
    """What may follow `on` depends on which way it led, which the observation after it does not say."""
    after = {"start": {"left": 0.5, "right": 0.5}, "left": "far left", "right": "far right"}
    legal = {"start": ["on"], "left": ["on"], "right": ["on"], "far left": ["back left"], "far right": ["back right"]}
    problem = POMDP(
        transition=lambda s, a: after.get(s, s.removeprefix("far ")),
        observation=lambda s, a: "far" if s.startswith("far") else s,
        reward=lambda s, a: 1.0,
        initial_belief={"start": 1},
        discount=0.5,
        legal_actions=legal.__getitem__,
        actions=["on", "back left", "back right"],
    )
    for engine in ("plain", "arrays"):
        with pytest.raises(PlanningError, match="leaf_value: got 'blind'"):
            RTBSS(2, "blind", engine=engine).decide(problem)
        assert RTBSS(2, "fib", engine=engine).decide(problem).value == pytest.approx(2)
