"""Rewards that depend on the belief: RTBSS, AND-OR trees, exact values and simulations against enumeration."""

import io
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, AndOrTree, compare_policies, policy_value, simulate, solve, value_iteration, write_pomdp
from pomdp_hier.errors import ModelError
from pomdp_hier.planning import RTBSS, FIBPolicy, QMDPPolicy, value_bound
from pomdp_hier.pomdp import to_agent, to_environment
from tests.extras import few


def negative_entropy(belief):
    return sum(p * math.log(p) for p in belief.values() if p > 0)


def largest(belief):
    return max(belief.values())


def uncertain(belief, action):  # not convex: greatest in the middle
    return (1.5 if action == 0 else 1.0) * (1 - sum(p * p for p in belief.values()))


def exact_squares(belief):
    return sum(p * p for p in belief.values())


def random_problem(seed, function, *, terminal=(), legal=None):
    rng = np.random.default_rng(seed)
    n_states, n_actions, n_observations = rng.integers(2, 4), 2, 2

    def rows(*shape):
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])

    T, Z = rows(n_actions, n_states, n_states), rows(n_actions, n_states, n_observations)
    R = rng.normal(size=(n_actions, n_states))
    return POMDP(
        transition=lambda s, a: dict(enumerate(T[a, s])),
        observation=lambda s2, a: dict(enumerate(Z[a, s2])),
        reward=lambda s, a: R[a, s],
        initial_belief=dict(enumerate(rows(1, n_states)[0])),
        legal_actions=legal or [0, 1],
        terminal=list(terminal),
        discount=float(rng.uniform(0.5, 1)),
        belief_reward=function,
    ), (T, Z, R)


def enumerated(problem, arrays, function, depth, belief=None):
    """Return the best value over all plans of a depth, by recursion over numpy beliefs."""
    T, Z, R = arrays
    belief = np.array([problem.initial_belief[s] for s in range(len(R[0]))]) if belief is None else belief
    running = np.array([not problem.is_terminal(s) for s in range(len(belief))])
    if depth == 0 or not belief[running].any():
        return 0.0
    best = -np.inf
    for a in range(len(T)):
        named = {s: p for s, p in enumerate(belief) if p > 0}
        extra = function(named, a) if function is uncertain else function(named)
        value = R[a] @ (belief * running) + belief[running].sum() * extra
        moved = (belief * running) @ T[a]
        for s in np.flatnonzero(~running):
            moved[s] += belief[s]
        for o in range(Z.shape[2]):
            joint = moved * Z[a][:, o]
            if joint.sum() > 0:
                rest = enumerated(problem, arrays, function, depth - 1, joint / joint.sum())
                value += problem.discount * joint.sum() * rest
        best = max(best, value)
    return best


@pytest.mark.parametrize("function", [negative_entropy, largest, uncertain])
@pytest.mark.parametrize("terminal", [(), (0,)], ids=["none-terminal", "terminal"])
@pytest.mark.parametrize("seed", few(1, range(4)))
def test_values_are_those_of_all_plans(seed, function, terminal):
    problem, arrays = random_problem(seed, function, terminal=terminal)
    best = enumerated(problem, arrays, function, 3)
    for settings in ({}, {"ties": "all"}, {"prune": False}, {"upper_bound": "range"}, {"merge_tolerance": None}):
        decision = RTBSS(depth=3, **settings).decide(problem)
        assert decision.value == pytest.approx(best, abs=1e-12)
        assert not decision.stats["pruning"]
    assert AndOrTree.build(problem, depth=3).value == pytest.approx(best, abs=1e-12)


class Looking:
    """The optimal policy of a finite horizon, step by step."""

    def __init__(self, depth):
        self.depth = depth

    def at_step(self, step):
        return RTBSS(depth=self.depth - step)

    def decide(self, problem, belief=None, *, observation=None):
        return RTBSS(depth=self.depth).decide(problem, belief, observation=observation)


@pytest.mark.parametrize("function", [negative_entropy, uncertain])
@pytest.mark.parametrize("terminal", [(), (0,)], ids=["none-terminal", "terminal"])
def test_the_optimal_policy_has_the_value_of_the_search(function, terminal):
    problem, arrays = random_problem(11, function, terminal=terminal)
    best = enumerated(problem, arrays, function, 3)
    assert float(policy_value(Looking(3), problem, horizon=3).value) == pytest.approx(best, abs=1e-12)
    fixed = RTBSS(depth=1)
    value = float(policy_value(fixed, problem, horizon=3).value)
    sampled = simulate(fixed, problem, n_episodes=500, horizon=3)
    assert abs(sampled.value - value) < 4 * sampled.standard_error
    table = compare_policies({"optimal": Looking(3), "greedy": fixed}, problem, horizon=3)
    assert table["optimal"].value == pytest.approx(best, abs=1e-12)
    assert table.mdp_value is None


def test_a_function_may_bound_the_search():
    problem, arrays = random_problem(3, largest)
    most = max(float(np.abs(arrays[2]).max()), 0.0) + 1.0  # largest(b) <= 1
    calls = []

    def bound(problem, belief, action, depth):
        calls.append(depth)
        return sum(most * problem.discount**k for k in range(depth))

    decision = RTBSS(depth=3, upper_bound=bound).decide(problem)
    assert decision.value == pytest.approx(enumerated(problem, arrays, largest, 3), abs=1e-12)
    assert calls


def test_the_entropy_of_two_states_in_symbols():
    """By hand: rho = p ln p + q ln q now, and after a look of accuracy 1 the entropy is 0."""
    sympy = pytest.importorskip("sympy")
    p = sympy.Symbol("p", positive=True)

    def entropy(belief):
        return sum(x * sympy.log(x) for x in belief.values())

    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: 0,
        initial_belief={"left": p, "right": 1 - p},
        legal_actions=["look"],
        belief_reward=entropy,
    )
    tree = AndOrTree.build(problem, depth=2)
    assert sympy.simplify(tree.value - (p * sympy.log(p) + (1 - p) * sympy.log(1 - p))) == 0
    noisy = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {s: Fraction(3, 4), "other": Fraction(1, 4)},
        reward=lambda s, a: -1,
        initial_belief={"left": Fraction(1, 2), "right": Fraction(1, 2)},
        legal_actions=["look"],
        belief_reward=exact_squares,
    )
    # 2 steps: (1/2 - 1) + [3/4 * (1 - 1) + 1/4 * (1/2 - 1)] = -1/2 - 1/8
    assert AndOrTree.build(noisy, depth=2).value == Fraction(-5, 8)
    assert policy_value(lambda belief: "look", noisy, horizon=2).value == Fraction(-5, 8)


@pytest.mark.parametrize(
    "use",
    [
        lambda problem: solve(problem),
        lambda problem: value_iteration(problem, 2),
        lambda problem: value_bound(problem, "fib"),
        lambda problem: QMDPPolicy().decide(problem),
        lambda problem: FIBPolicy().decide(problem),
        lambda problem: RTBSS(depth=2, engine="arrays").decide(problem),
        lambda problem: RTBSS(depth=2, leaf_value="fib").decide(problem),
        lambda problem: to_agent(problem),
        lambda problem: to_environment(problem),
        lambda problem: write_pomdp(problem, io.StringIO()),
        lambda problem: simulate(RTBSS(depth=1), problem, n_episodes=2),
    ],
)
def test_what_is_linear_in_the_belief_raises(use):
    problem, _ = random_problem(0, negative_entropy)
    with pytest.raises(ModelError, match="belief_reward: got a function"):
        use(problem)


@pytest.mark.parametrize(("value", "shown"), [(math.nan, "nan"), ("1", "'1'"), (None, "None"), (math.inf, "inf")])
def test_a_reward_is_a_finite_number(value, shown):
    problem, _ = random_problem(0, lambda belief: value)
    with pytest.raises(ModelError, match=f"belief_reward of 0: got {shown}"):
        problem.reward(problem.initial_belief, 0)


def test_a_function_of_other_arguments_is_an_error():
    for wrong in (3, lambda state, action: 0, lambda: 0):
        with pytest.raises(ModelError, match="belief_reward: got"):
            random_problem(0, wrong)
    problem, _ = random_problem(0, lambda action, belief: action)  # by name, in any order
    plain, _ = random_problem(0, None)
    for action in (0, 1):
        difference = problem.reward(problem.initial_belief, action) - plain.reward(plain.initial_belief, action)
        assert difference == pytest.approx(action)
    assert [problem.has_belief_reward, plain.has_belief_reward] == [True, False]


def test_a_function_of_a_module_is_pickled_and_another_named():
    models = {"transition": {(0, 0): {0: 1}}, "observation": {(0, 0): {0: 1}}, "reward": {(0, 0): 1}}
    settings = {"initial_belief": {0: 1}, "legal_actions": [0]}
    kept = pickle.loads(pickle.dumps(POMDP(**models, **settings, belief_reward=largest)))
    assert kept.reward({0: 1}, 0) == 2
    with pytest.raises(ModelError, match="belief_reward"):
        pickle.dumps(POMDP(**models, **settings, belief_reward=lambda belief: 0))


def test_every_setting_of_the_search_agrees():
    problem, arrays = random_problem(5, uncertain)
    best = enumerated(problem, arrays, uncertain, 2)
    for upper, ties, prune, merge, convex in itertools.product(
        ["fib", "qmdp", "range"], ["first", "all"], [True, False], [None, 0.0], [True, False]
    ):
        search = RTBSS(2, upper_bound=upper, ties=ties, prune=prune, merge_tolerance=merge, convex=convex)
        assert search.decide(problem).value == pytest.approx(best, abs=1e-12)
