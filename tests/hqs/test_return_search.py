"""The search with return as a POMDP: its policy's value is the closed form, and its optimum is proved."""

import itertools
import warnings

import numpy as np
import pytest

from pomdp_hier import Hierarchy, check_problem, expected_search_length, policy_value, solve, verify
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hqs import exhaustive_policy, return_search_problem
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.return_search import GO, LOOK, UP, ReturnState, Step
from tests.hqs.test_search_length import random_case

GROUPS = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
X_GROUPS = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]


def against_the_closed_form(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        tree, X = random_case(rng, most=7)
        options = {"delta": float(rng.choice([0.05, 0.3, 2.0])), "nu": float(rng.choice([1.0, 1.3]))}
        options |= {"label_cost": float(rng.choice([0.0, 0.7])), "enter_own_singleton": bool(rng.integers(2))}
        item = int(rng.integers(tree.n_items))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            length = expected_search_length(X, tree, items=[item], **options).lengths[0]
            problem = return_search_problem(X, tree, item, known=True, **options)
        found = policy_value(exhaustive_policy, problem, horizon=100)
        assert not found.unfinished
        assert found.value == pytest.approx(-length, rel=1e-12), seed


def test_the_value_of_the_policy_is_the_closed_form():
    against_the_closed_form(range(20))


@pytest.mark.slow
def test_the_value_of_the_policy_is_the_closed_form_on_300_trees():
    against_the_closed_form(range(300))


def test_the_agent_plans_under_its_belief_and_acts_in_the_environment():
    shop = load_amazon12()
    tree, settings = shop.hierarchies["B"], {"similarity": "precomputed", "delta": 0.05}
    length = expected_search_length(shop.similarity, tree, **settings).lengths[3]
    problem = return_search_problem(shop.similarity, tree, 3, **settings)
    environment = return_search_problem(shop.similarity, tree, 3, known=True, **settings)
    assert check_problem(problem) == []
    assert len(problem.initial_belief) == 4  # leaf clusters
    found = policy_value(exhaustive_policy, problem, environment, horizon=60)
    assert found.value == pytest.approx(-length, rel=1e-12)


def in_this_order(leaves):
    """The expected number of items looked at, of (belief, size) pairs in an order."""
    total = before = 0.0
    for belief, size in leaves:
        total += belief * (before + (size + 1) / 2)
        before += size
    return total


@pytest.mark.parametrize("name", ["C", *(pytest.param(name, marks=pytest.mark.slow) for name in "ABE")])
def test_the_optimum_without_travel_is_the_order_by_belief_per_item(name):
    shop = load_amazon12()
    tree = shop.hierarchies[name]
    problem = return_search_problem(
        shop.similarity, tree, 5, similarity="precomputed", delta=0.05, chooses=True, found_reward=50
    )
    leaves = [(p, int(tree.sizes[state.target])) for state, p in problem.initial_belief.items()]
    best = min(map(in_this_order, itertools.permutations(leaves)))
    assert in_this_order(sorted(leaves, key=lambda leaf: -leaf[0] / leaf[1])) == pytest.approx(best, rel=1e-12)
    solution = solve(problem, horizon=24, precision=1e-6)
    assert solution.lower - 1e-9 <= 50 - best <= solution.upper + 1e-9
    proved = verify(solution.certificate(), problem)
    assert float(proved.lower) <= 50 - best <= float(proved.upper)
    exhaustive = policy_value(exhaustive_policy, problem, horizon=60)
    assert exhaustive.value < 50 - best


def test_travel_costs_steps():
    cost = {"delta": 0.1, "travel_cost": 0.5, "known": True}
    found = policy_value(exhaustive_policy, return_search_problem(X_GROUPS, GROUPS, 0, **cost), horizon=10)
    free = -expected_search_length(X_GROUPS, GROUPS, delta=0.1).lengths[0]
    wrong_first = (-free - 1.5) / 2
    assert found.value == pytest.approx(free - 0.5 * (1 + 2 * wrong_first), rel=1e-12)


def test_with_costs_alone_the_optimum_is_never_to_look():
    problem = return_search_problem(X_GROUPS, GROUPS, 0, delta=0.1, chooses=True)
    short = solve(problem, horizon=4, precision=1e-9)
    assert short.upper == pytest.approx(0.0)
    rewarded = return_search_problem(X_GROUPS, GROUPS, 0, delta=0.1, chooses=True, found_reward=10)
    assert solve(rewarded, horizon=8, precision=1e-6).lower > 8


def test_the_steps():
    problem = return_search_problem(X_GROUPS, GROUPS, 0, chooses=True, found_reward=3)
    for start in problem.initial_belief:
        assert problem.possible_actions(start) == (GO, Step("enter", 4), Step("enter", 5))
        (there,) = problem.successors(start, Step("enter", 5))
        assert problem.possible_actions(there) == (LOOK, UP)
        (looked,) = problem.successors(there, LOOK)
        if start.target == 5:
            assert looked.node is None
            assert problem.expected_reward(there, LOOK) == 1.5
        else:
            assert problem.expected_reward(there, LOOK) == -2
            assert problem.possible_actions(looked) == (UP,)
            (back,) = problem.successors(looked, UP)
            assert problem.possible_actions(back) == (GO, Step("enter", 4))


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"travel_cost": -1}, "travel_cost"),
        ({"found_reward": np.inf}, "found_reward"),
        ({"label_cost": -1}, "label_cost"),
        ({"chooses": 1}, "chooses"),
        ({"known": "yes"}, "known"),
        ({"item": 4}, "item"),
        ({"delta": 0}, "delta"),
    ],
)
def test_wrong_arguments(settings, argument):
    with pytest.raises(ParameterError, match=argument):
        return_search_problem(X_GROUPS, GROUPS, **{"item": 0, **settings})


def test_labels_of_the_root_are_read_until_something_was_looked_at():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    problem = return_search_problem(np.eye(4) + 0.1, tree, 0, label_cost=1.5, known=True)
    (state,) = problem.initial_belief
    inside, looked = ReturnState(state.target, 5), ReturnState(state.target, 5, frozenset({5}))
    back, known = ReturnState(state.target, 6), ReturnState(state.target, 6, frozenset({5}))
    assert problem.successors(inside, UP) == {back: 1}
    assert problem.successors(looked, UP) == {known: 1}
    assert [problem.step_reward(at, GO, inside) for at in (state, back)] == [-3, -3]
    assert problem.step_reward(known, GO, ReturnState(state.target, 4, frozenset({5}))) == 0
