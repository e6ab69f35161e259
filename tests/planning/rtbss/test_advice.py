"""Errors of the look-ahead that give advice: the input, a part of the advice, and the same input with it taken."""

from fractions import Fraction

import pytest

from pomdp_hier import POMDP, BayesUpdater
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning import RTBSS, AndOrTree, solve
from pomdp_hier.problems import tiger

TIGER = tiger(discount=0.5)


def first(belief):
    return "listen"


def low(problem, belief, action, depth):
    return -1e9


def leaf(problem, belief):
    return 5


def doubt(problem, belief):
    """A leaf that is concave."""
    return 100 * min(belief["tiger-left"], belief["tiger-right"])


def stay(reward, **more):
    """One state and two actions."""
    given = {"initial_belief": {"here": 1}, "legal_actions": ["a", "b"], "discount": Fraction(1, 2), **more}
    return POMDP(transition=lambda s, a: s, observation=lambda s, a: "o", reward=lambda s, a: reward[a], **given)


THIRDS = stay({"a": Fraction(1, 3), "b": 0})
SURE = {"prune": False, "merge_tolerance": 1e-9}
ADVICE = [
    ({"depth": 2, "fallback": first}, TIGER, "Pass budget", {"budget": 100}),
    ({"depth": 2, "fallback": first}, TIGER, "leave out fallback", {"fallback": None}),
    ({"depth": 2, "engine": "arrays", "leaf_value": leaf}, TIGER, "Pass one of them", {"engine": "plain"}),
    ({"depth": 2, "engine": "arrays", "leaf_value": leaf}, TIGER, "Pass one of them", {"engine": "auto"}),
    ({"depth": 2, "engine": "arrays", "upper_bound": low}, TIGER, "leave out upper_bound", {"upper_bound": "fib"}),
    ({"depth": 2, "engine": "arrays", "updater": BayesUpdater(TIGER)}, TIGER, "leave out updater", {"updater": None}),
    ({"depth": 2, "budget": 1}, TIGER, "Raise budget", {"budget": 10**6}),
    ({"depth": 2, "budget": 1}, TIGER, "lower depth", {"depth": 1}),
    ({"depth": 2, "budget": 1}, TIGER, "name a fallback", {"fallback": first}),
    ({"depth": 300, "engine": "plain", **SURE}, TIGER, "Lower depth", {"depth": 2}),
    ({"depth": 300, "engine": "plain", **SURE}, TIGER, ", or pass engine='arrays'", {"engine": "arrays"}),
    ({"depth": 300, **SURE}, THIRDS, "pass engine='arrays'", {"engine": "arrays"}),
    (
        {"depth": 300, "leaf_value": leaf, "updater": BayesUpdater(TIGER), **SURE},
        TIGER,
        "leave out leaf_value and updater and pass engine='arrays'",
        {"leaf_value": "zero", "updater": None, "engine": "arrays"},
    ),
    ({"depth": 2, "upper_bound": low}, TIGER, "Pass prune=False", {"prune": False}),
    ({"depth": 2, "upper_bound": low}, TIGER, "upper_bound='fib'", {"upper_bound": "fib"}),
    ({"depth": 2, "leaf_value": doubt, "convex": True}, TIGER, "Pass prune=False", {"prune": False}),
    ({"depth": 2, "leaf_value": doubt, "convex": True}, TIGER, "convex=False", {"convex": False}),
]


@pytest.mark.parametrize(("arguments", "problem", "advice", "taken"), ADVICE)
def test_advice_that_is_taken_works(arguments, problem, advice, taken):
    with pytest.raises((ParameterError, PlanningError)) as error:
        RTBSS(**arguments).decide(problem)
    assert advice in str(error.value)
    assert RTBSS(**{**arguments, **taken}).decide(problem).action in problem.all_actions


def test_nothing_but_a_lower_depth_is_advised_where_nothing_else_helps():
    sympy = pytest.importorskip("sympy")
    by_belief = stay({"a": 1, "b": 0}, legal_actions=lambda b: ["a"], legal_by="belief", actions=["a", "b"])
    for problem in (by_belief, stay({"a": sympy.Symbol("x"), "b": 0})):
        with pytest.raises(PlanningError, match=r"Lower depth\.$"):
            RTBSS(300).decide(problem)
    assert RTBSS(3).decide(by_belief).action == "a"


def test_symbols_are_replaced_or_kept_in_a_tree():
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y")
    with pytest.raises(PlanningError, match=r"Substitute numbers for the symbols, or build an AndOrTree"):
        RTBSS(1).decide(stay({"a": x, "b": y}))
    tree = AndOrTree.build(stay({"a": x, "b": y}), depth=1)
    assert tree.value == sympy.Max(x, y)
    with pytest.raises(ParameterError, match=r"Substitute numbers for the symbols, and build the tree again"):
        tree.policy()
    assert RTBSS(1).decide(stay({"a": 1, "b": 2})).action == "b"
    assert AndOrTree.build(stay({"a": 1, "b": 2}), depth=1).policy() == {(): "b"}


def test_a_bound_that_is_not_a_number_is_refused():
    for bound in (float("nan"), "x", None):
        with pytest.raises(PlanningError, match=r"^upper_bound: got .* for action 'listen'; expected a number"):
            RTBSS(2, upper_bound=lambda problem, belief, action, depth, bound=bound: bound).decide(TIGER)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_tree_of_too_many_nodes(depth):
    with pytest.raises(PlanningError, match=r"^max_nodes: got 9; .* Raise max_nodes") as error:
        AndOrTree.build(TIGER, depth=depth, max_nodes=9)
    assert ("lower depth" in str(error.value)) == (depth > 1)
    assert AndOrTree.build(TIGER, depth=depth, max_nodes=10**4).policy()[()] == "listen"
    assert AndOrTree.build(TIGER, depth=1, max_nodes=10).value == -1


def test_a_tree_that_json_cannot_hold():
    long, deep = 10**5_000, ()
    for _ in range(2_000):
        deep = (deep,)
    for state in (long, deep):
        problem = POMDP(
            transition=lambda s, a: s,
            observation=lambda s, a: "o",
            reward=lambda s, a: 1,
            initial_belief={state: 1},
            legal_actions=["a"],
        )
        with pytest.raises(ParameterError, match=r"Shorten the names, or round the numbers"):
            AndOrTree.build(problem, depth=1).to_json()
    assert AndOrTree.build(stay({"a": 1, "b": 0}), depth=1).to_json()


def test_a_solution_is_named_by_itself_where_arrays_cannot_call_it():
    solution = solve(TIGER, precision=1.0)
    with pytest.raises(ParameterError, match=r"^engine: got 'arrays' with upper_bound"):
        RTBSS(2, upper_bound=solution, engine="arrays")
    assert RTBSS(2, leaf_value=solution, engine="arrays").decide(TIGER).action == "listen"


def test_an_updater_that_is_a_name_is_not_passed_over_by_arrays():
    with pytest.raises(ParameterError, match=r"^engine: got 'arrays' with updater"):
        RTBSS(2, updater="particles", engine="arrays")
