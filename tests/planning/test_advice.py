"""Advice in messages of planners: an input that raises, and the same input with the advice taken, which works."""

import numpy as np
import pytest

from pomdp_hier import POMDP, compare_policies, policy_value
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.planning import (
    POUCT,
    RTBSS,
    AlphaVectorPolicy,
    FiniteStateController,
    ThresholdPolicy,
    solve,
    value_iteration,
    write_policy,
)
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.problems import cheese_maze, tiger

ENDLESS = tiger(discount=1)
LEAKY = POMDP.from_arrays(T=[[[0.5, 0.50625], [0, 1.0]]], Z=[[[1], [1]]], R=[[1, 1]], discount=0.9999, tolerance=0.01)
LESS = POMDP.from_arrays(T=[[[0.5, 0.50625], [0, 1.0]]], Z=[[[1], [1]]], R=[[1, 1]], discount=0.9937, tolerance=0.01)
ONCE = tiger(discount=0.5)
TWO_STEPS = solve(ONCE, horizon=2).controller()
CIRCLES = FiniteStateController(ENDLESS, np.array([0]), np.zeros((1, 2), dtype=int))
LONG = FiniteStateController(cheese_maze(), np.zeros(300, dtype=int), np.zeros((300, 7), dtype=int))
ILLEGAL = AlphaVectorPolicy(np.array([[-np.inf, 1.0]]), np.array([0]))


def apart(legal):
    """Two states that an observation does not distinguish."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "same",
        reward=lambda s, a: 1,
        initial_belief={"left": 0.5, "right": 0.5},
        discount=0.5,
        legal_actions=legal,
        actions=["go left", "go right", "wait"],
    )


def told():
    """After a first observation more is legal than at the start."""
    return POMDP(
        transition=lambda s, a: {"here": 0.5, "there": 0.5},
        observation=lambda s, a: s,
        reward=lambda s, a: 1,
        initial_belief={"here": 1},
        discount=0.5,
        legal_actions=lambda o: ["go", "stay"] if o == "there" else ["go"],
        legal_by="observation",
        actions=["go", "stay"],
    )


SEEN = told()

ADVICE = [  # what raises, the advice, the same with the advice taken
    (lambda _: solve(ENDLESS), "Set horizon=100", lambda _: solve(ENDLESS, horizon=100, max_trials=1)),
    (lambda _: solve(ENDLESS), "a discount below 1.", lambda _: solve(tiger(discount=0.9), max_trials=1)),
    (lambda _: solve(LEAKY), "a discount below 0.9937.", lambda _: solve(LESS, max_trials=1)),
    (lambda _: solve(LEAKY), "Set horizon=100", lambda _: solve(LEAKY, horizon=100, max_trials=1)),
    (
        lambda _: solve(SEEN).bounds({"there": 1}),
        "Solve with this belief and observation.",
        lambda _: solve(SEEN, belief={"there": 1}, observation="there").bounds({"there": 1}, observation="there"),
    ),
    (
        lambda _: solve(apart(lambda s: [f"go {s}"])),
        "add an action that waits.",
        lambda _: solve(apart(lambda s: [f"go {s}", "wait"])),
    ),
    (lambda _: solve(ONCE).bounds({"tiger-left": 1}, to_go=1), "None", lambda _: solve(ONCE).bounds({"tiger-left": 1})),
    (
        lambda _: mdp_values(ENDLESS.compiled, max_iterations=900),
        "Set a horizon",
        lambda _: mdp_values(ENDLESS.compiled, horizon=9),
    ),
    (
        lambda _: mdp_values(ENDLESS.compiled, max_iterations=900),
        "a discount below 1.",
        lambda _: mdp_values(ONCE.compiled),
    ),
    (
        lambda _: mdp_values(ONCE.compiled, tolerance=0.1, max_iterations=2),
        "a larger tolerance.",
        lambda _: mdp_values(ONCE.compiled, tolerance=0.9, max_iterations=2),
    ),
    (
        lambda _: value_iteration(tiger(), 3, max_vectors=4),
        "horizon lower",
        lambda _: value_iteration(tiger(), 1, max_vectors=4),
    ),
    (lambda _: value_iteration(tiger(), 3, max_vectors=4), "Set it higher", lambda _: value_iteration(tiger(), 3)),
    (lambda _: value_iteration(tiger(), 3, max_vectors=4), "use RTBSS", lambda _: RTBSS(3).decide(tiger())),
    (
        lambda _: policy_value(TWO_STEPS, ONCE),
        "Set horizon to its number of actions",
        lambda _: policy_value(TWO_STEPS, ONCE, horizon=2),
    ),
    (
        lambda _: policy_value(TWO_STEPS, ONCE),
        "solve with horizon=None.",
        lambda _: compare_policies([solve(ONCE).controller()], ONCE),
    ),
    (lambda _: CIRCLES.value(), "policy_value with a horizon", lambda _: policy_value(CIRCLES, ENDLESS, horizon=3)),
    (
        lambda _: CIRCLES.value(),
        "a discount below 1.",
        lambda _: FiniteStateController(ONCE, CIRCLES.actions, CIRCLES.after).value(),
    ),
    (lambda _: LONG.exact_values, "Call minimised()", lambda _: LONG.minimised().value(exact=True)),
    (lambda _: LONG.value(exact=True), "value() with exact=False.", lambda _: LONG.value(exact=False)),
    (
        lambda folder: write_policy(ILLEGAL, folder / "p.alpha"),
        "Write the controller as a .pg file.",
        lambda folder: write_policy(TWO_STEPS, folder / "p.pg"),
    ),
    (
        lambda _: RTBSS(1, leaf_value="fib").decide(ENDLESS),
        "Pass value_iteration(problem, n)",
        lambda _: RTBSS(1, leaf_value=value_iteration(ENDLESS, 2)).decide(ENDLESS),
    ),
    (
        lambda _: RTBSS(1, leaf_value=solve(cheese_maze())).decide(tiger()),
        "Take the solution of this problem.",
        lambda _: RTBSS(1, leaf_value=solve(tiger())).decide(tiger()),
    ),
    (
        lambda _: ThresholdPolicy([], otherwise="sing").decide(tiger()),
        "Add a rule with threshold 0",
        lambda _: ThresholdPolicy([("tiger-left", 0, "listen")], otherwise="sing").decide(tiger()),
    ),
    (
        lambda _: POUCT(depth=2, simulations=3).decide(tiger()),
        "expected at least 4",
        lambda _: POUCT(depth=2, simulations=4, seed=1).decide(tiger()),
    ),
]


@pytest.mark.parametrize(("wrong", "advice", "right"), ADVICE)
def test_advice_works(wrong, advice, right, tmp_path):
    with pytest.raises(PomdpHierError) as caught:
        wrong(tmp_path)
    assert advice in str(caught.value)
    right(tmp_path)
