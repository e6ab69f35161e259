"""Which actions tie, and which are pruned, by hand: at the root, below it, with and without a tolerance."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning import RTBSS, AndOrTree
from pomdp_hier.planning.decision import best_and_tied, is_tied, largest
from pomdp_hier.planning.rtbss.planner import has_exact_numbers, has_symbols
from pomdp_hier.planning.rtbss.recursive import Pruning, check_bound
from tests.pomdp_models import tiger

F = Fraction


def stay(**rewards) -> POMDP:
    """One state; each action earns what it is worth, again and again."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: rewards[a],
        initial_belief={"here": 1},
        legal_actions=list(rewards),
    )


@pytest.mark.parametrize(
    ("value", "best", "tolerance", "tied"),
    [
        (1.0, 1.25, 0.25, True),
        (1.0, 1.25, 0.2, False),
        (F(1), F(5, 4), 0.25, True),
        (F(1), F(5, 4), 0, False),
        (F(1), F(5, 4), 0.2, False),
        (1, 1.0, 0.0, True),
        (float("inf"), float("inf"), 0.0, True),
        (-float("inf"), float("inf"), 5.0, False),
    ],
)
def test_a_tie_is_within_the_tolerance_whatever_the_numbers(value, best, tolerance, tied):
    assert is_tied(value, best, tolerance) is tied


def test_expressions_tie_with_themselves_alone():
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y", positive=True)
    assert is_tied(x, x)
    assert not is_tied(x, y, 100.0)
    assert best_and_tied({"a": x, "b": x + 1, "c": x + 1}) == (x + 1, ("b", "c"))
    assert best_and_tied({"a": x, "b": y}) == (sympy.Max(x, y), ())


def test_the_first_of_equals_is_the_greatest():
    assert type(largest([1, 1.0, 1])) is int
    assert best_and_tied({"a": 0.9, "b": 1.0, "c": 0.95}, 0.06) == (1.0, ("b", "c"))


@pytest.mark.parametrize("engine", ["plain", "arrays"])
@pytest.mark.parametrize("number", [float, lambda text: F(text)])
def test_the_tolerance_of_ties_holds_at_the_root_through_pruning(engine, number):
    problem = stay(a=number("0.9"), b=number("1"), c=number("0.5"))
    for bound in ("fib", "qmdp"):  # these are the values themselves, so that all but b could be pruned
        decision = RTBSS(2, upper_bound=bound, engine=engine, tie_tolerance=0.15).decide(problem)
        assert decision.ties == ("a", "b")
        assert decision.stats["status"] == {"a": "exact", "b": "exact", "c": "pruned"}
        assert RTBSS(2, upper_bound=bound, engine=engine).decide(problem).ties == ("b",)
        tree = AndOrTree.build(problem, depth=2, prune=True, tie_tolerance=0.15)
        assert [tree.and_nodes[i].action for i in tree.or_nodes[0].best] == ["a", "b"]
        below = [n for n in tree.or_nodes if n.depth == 1]
        statuses = {c.action: c.status for n in below for c in (tree.and_nodes[i] for i in n.actions)}
        assert statuses == {"a": "pruned", "b": "expanded", "c": "pruned"}  # within the tolerance, but not at the root
        assert [tree.and_nodes[i].action for i in tree.backup().or_nodes[0].best] == ["a", "b"]


def test_ties_below_the_root_are_pruned_unless_they_are_wanted():
    problem = stay(a=1.0, b=1.0)
    options = {"engine": "plain", "merge_tolerance": None}
    first = RTBSS(3, ties="first", **options).decide(problem)
    every = RTBSS(3, ties="all", **options).decide(problem)
    assert first.ties == every.ties == ("a", "b")
    # by hand: both actions of the root; below each of them a chain of two nodes, or a tree of 1 + 2
    assert (first.stats["nodes"], first.stats["pruned"]) == (5, 4)
    assert (every.stats["nodes"], every.stats["pruned"]) == (7, 0)
    for tie, expanded in (("first", 2 + 2 + 2), ("all", 2 + 4 + 8)):
        tree = AndOrTree.from_planner(RTBSS(3, ties=tie, **options), problem)
        assert sum(child.status == "expanded" for child in tree.and_nodes) == expanded


def test_what_is_skipped():
    def bound(belief, action, depth):
        return 0.0

    first = Pruning(bound, slack=0.5, tie_tolerance=0.25)
    assert first.skips(1.0, 1.0)
    assert not first.skips(1.25, 1.0)
    assert not first.skips(1.0, 1.75, at_root=True)
    assert first.skips(1.0, 1.8, at_root=True)
    every = Pruning(bound, keep_ties=True, slack=0.5, tie_tolerance=0.25)
    assert not every.skips(1.0, 1.0)
    assert not every.skips(1.0, 1.5)
    assert every.skips(1.0, 1.6)
    exact = Pruning(bound, keep_ties=True)
    assert not exact.skips(F(1, 3), F(1, 3), at_root=True)  # the float of 1/3 lies below it
    assert not exact.skips(F(1, 3), F(1, 3))
    assert exact.skips(F(1, 3) - F(1, 10**20), F(1, 3), at_root=True)
    assert not first.skips(float("inf"), float("inf"), at_root=True)
    assert not first.skips(1.0, None)
    assert not first.skips(None, 1.0)


def test_actions_are_tried_by_falling_bounds():
    bounds = {"a": 1.0, "b": 3.0, "c": 2.0}
    pruning = Pruning(lambda belief, action, depth: bounds[action] * depth)
    start = Belief.certain("here")
    assert pruning.ranked(start, "abc", 2) == [("b", 6.0), ("c", 4.0), ("a", 2.0)]
    assert Pruning().ranked(start, "abc", 2) == [("a", None), ("b", None), ("c", None)]


@pytest.mark.parametrize(
    ("value", "upper", "slack", "wrong"),
    [
        (1.0, 1.0 - 1e-10, 0.0, False),
        (1.0, 1.0 - 1e-8, 0.0, True),
        (1.0, 0.9, 0.2, False),
        (1.0, 0.7, 0.2, True),
        (F(1), F(1) - F(1, 10**20), 0.0, True),
        (0.1 + 0.2, F(3, 10), 0.0, False),  # a float beside an exact number is rounded all the same
        (F(3, 10), 0.1 * 3 - 1e-10, 0.0, False),
        (1e9, 1e9 - 0.5, 0.0, False),
    ],
)
def test_a_bound_is_wrong_where_it_lies_below_by_more_than_rounding(value, upper, slack, wrong):
    if wrong:
        with pytest.raises(PlanningError, match=r"^upper_bound: got .*'a' with 1"):
            check_bound(value, upper, "a", 1, slack)
    else:
        check_bound(value, upper, "a", 1, slack)


def test_a_callable_bound_is_not_called_wrong_where_beliefs_are_merged_coarsely():
    problem = tiger()
    exact = RTBSS(3, prune=False, merge_tolerance=None)

    def sharp(problem, belief, action, depth):
        planner = RTBSS(depth, prune=False, merge_tolerance=None, engine="plain")
        return planner.decide(problem, belief).q_values[action]

    assert RTBSS(3, upper_bound=sharp).decide(problem).value == pytest.approx(exact.decide(problem).value)
    RTBSS(3, upper_bound=sharp, merge_tolerance=0.6).decide(problem)  # all beliefs of a depth are one: values are off


def test_convex_leaf_values_below_its_states_prunes_nothing_that_wins():
    """Leaf values far below those at the states: the lower bound of one repeated action must not use the states."""

    def doubtful(problem, belief):
        return -50.0 * (1 - max(belief.values()))

    for depth in (2, 3):
        plain = RTBSS(depth, doubtful).decide(tiger())
        declared = RTBSS(depth, doubtful, convex=True).decide(tiger())
        assert declared.value == pytest.approx(plain.value, abs=1e-12)
        assert declared.action == plain.action


def test_which_numbers_keep_to_the_plain_search():
    sympy = pytest.importorskip("sympy")
    x = sympy.Symbol("x", positive=True)
    third = Belief({"left": F(1, 3), "right": F(2, 3)})
    start = Belief({"here": 1})
    assert has_exact_numbers(tiger(), third)
    assert not has_exact_numbers(tiger(), tiger().initial_belief)
    assert not has_exact_numbers(stay(a=1), start)  # integers count as floats
    assert has_exact_numbers(stay(a=F(1, 2)), start)
    assert has_exact_numbers(stay(a=F(1, 2), b=0.5), start)
    assert not has_symbols(stay(a=F(1, 2), b=0.5))
    assert has_symbols(stay(a=F(1, 2), b=x))
    assert has_exact_numbers(stay(a=0.5, b=x), start)


def test_in_pomdp_pys_loop_the_last_observation_says_what_is_legal():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "door",
        reward=lambda s, a: 1.0 if a == "leave" else 0.0,
        initial_belief={"here": 1},
        legal_actions=lambda o: ["wait", "leave"] if o == "door" else ["wait"],
        legal_by="observation",
        actions=["wait", "leave"],
    )

    class Agent:
        belief = problem.initial_belief
        history = ()

    planner = RTBSS(1, problem=problem)
    assert planner.plan(Agent()) == "wait"
    Agent.history = (("wait", "door"),)
    assert planner.plan(Agent()) == "leave"


def test_what_merged_beliefs_can_be_off_is_allowed_for():
    table = np.array([[[1.0, -4.0, 2.0]], [[np.inf, 0.0, 1.0]]])
    pruning = Pruning.by_table(stay(a=1), table, merge_tolerance=1e-6, keep_ties=False, tie_tolerance=0.0)
    assert pruning.slack == pytest.approx(4e-11)
    assert pruning.check_slack == pytest.approx(4e-11 + 1e-6 * 3 * 4 * 2)


def test_one_number_that_is_exact_makes_a_problem_exact_wherever_it_stands():
    def seen(half):
        return POMDP(
            transition=lambda s, a: "there",
            observation=lambda t, a, s: {"o": half, "p": 1 - half} if s == "there" else {"o": 0.5, "p": 0.5},
            reward=lambda s, a: 1.0,
            initial_belief={"here": 1.0},
            legal_actions=["go"],
        )

    start = Belief({"here": 1.0})
    assert has_exact_numbers(seen(F(1, 2)), start)
    assert not has_exact_numbers(seen(0.5), start)
    assert has_exact_numbers(seen(0.5), Belief({"here": F(1, 3), "there": 2 / 3}, tolerance=1e-9))
    x = pytest.importorskip("sympy").Symbol("x")
    some = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1,
        initial_belief={"a": x, "b": 1 - x, "c": 0},
        legal_actions=["go"],
    )
    assert has_symbols(some)
