"""Rewards and probabilities at the ends of the floats: right bounds, or an error that names the number."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, AndOrTree, policy_value, simulate
from pomdp_hier.errors import ModelError
from pomdp_hier.planning import solve, value_bound, value_iteration, verify
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.pomdp.numeric import total
from tests.exact_oracle import exact_value
from tests.small_problems import KINDS, small_problem

UNITS = [s * 2.0**k for s in (1, -1) for k in (-900, 266, 333, 900)]  # from 1e-271 to 1e270


def coin(reward: float, discount: float = 0.5) -> POMDP:
    """Two states that come by a fair coin, and a reward in one of them."""
    return POMDP(
        transition=lambda s, a: {"heads": 0.5, "tails": 0.5},
        observation=lambda s, a: s,
        reward=lambda s, a: reward if s == "heads" else 0.0,
        initial_belief={"heads": 0.5, "tails": 0.5},
        discount=discount,
        legal_actions=["wait", "look"],
    )


# Every unit and every seed once; the slow tests combine them.
@pytest.mark.parametrize(
    ("unit", "seed"),
    [pytest.param(unit, k, marks=[pytest.mark.slow] * (k != u % 5)) for u, unit in enumerate(UNITS) for k in range(5)],
)
def test_values_of_any_size_are_those_of_the_problem_in_another_unit(unit, seed):
    """Powers of two scale floats exactly. A negative unit turns the problem around, so that signs are met as well."""
    sign, size = np.sign(unit), abs(unit)
    kind = KINDS[seed % len(KINDS)]
    one = small_problem(seed, kind=kind, discount=0.8, unit=sign)
    problem = small_problem(seed, kind=kind, discount=0.8, unit=unit)
    truth = exact_value(one, horizon=3)
    scale = 1e-9 * max(1.0, float(np.abs(one.compiled.reward).max()))
    for horizon in (3, None):
        solution = solve(problem, horizon=horizon, precision=1e-3 * size, max_trials=200)
        assert solution.lower <= solution.upper + scale * size
        if horizon:
            assert solution.lower / size - scale <= truth <= solution.upper / size + scale
        else:
            reference = solve(one, precision=1e-3, max_trials=200)
            assert solution.lower / size <= reference.upper + scale
            assert reference.lower <= solution.upper / size + scale
        proved = verify(solution.certificate(), problem)
        assert proved.lower <= solution.lower + scale * size
        assert proved.upper >= solution.upper - scale * size


@pytest.mark.parametrize("reward", [-1e60, -1e80, -1e100, -1e101, -1e150, -1e250, 1e100, 1e150, 1e-100, -1e-250])
def test_no_reward_stands_for_what_is_not_legal(reward):
    for horizon, truth in ((None, reward), (2, 0.75 * reward)):
        solution = solve(coin(reward), horizon=horizon, precision=1e-3)
        tiny = 1e-9 * abs(reward)
        assert solution.lower - tiny <= truth <= solution.upper + tiny
        assert solution.gap <= max(1e-3, tiny)
        assert verify(solution.certificate(), coin(reward))


@pytest.mark.parametrize("reward", [1e308, -1e308, 9e307, 1e-320, -5e-324, 1e-300])
@pytest.mark.parametrize("horizon", [None, 3])
def test_rewards_whose_values_are_no_floats_are_named_before_any_work(reward, horizon):
    problem = coin(reward)
    compiled = problem.compiled
    depth = horizon or 3
    calls = [
        lambda: solve(problem, horizon=horizon),
        lambda: mdp_values(compiled, horizon=horizon),
        lambda: value_iteration(problem, depth),
        *(
            lambda kind=kind: value_bound(problem, kind, horizon)
            for kind in ("blind", "fib", "qmdp", "range", *(("tib",) if horizon is None else ()))
        ),
    ]
    for call in calls:
        with pytest.raises(ModelError) as caught:
            call()
        assert str(caught.value).startswith(f"reward: got {reward:.6g} (state 'heads', action 'wait'); expected at ")


def test_the_advice_to_take_another_unit_works():
    for reward, unit in ((1e308, 1e-300), (1e-320, 1e300)):
        assert solve(coin(reward * unit)).gap < 0.01 * max(1.0, abs(reward * unit))


def spread(reward: float) -> POMDP:
    """Two states that stay; rewards of either sign, or the same in both."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "dark",
        reward=lambda s, a: reward,
        initial_belief={"heads": 0.5, "tails": 0.5},
        discount=0.75,
        legal_actions=["wait"],
    )


def wait(belief):
    return "wait"


EXACT = {  # three actions, 37/16 of the reward; what is exact needs no more than a float for the result
    "policy_value": lambda problem: float(policy_value(wait, problem, horizon=3)),
    "AndOrTree": lambda problem: AndOrTree.build(problem, depth=3).value,
    "simulate": lambda problem: simulate(wait, problem, horizon=3, n_episodes=2, seed=0).value,
}


@pytest.mark.parametrize("called", EXACT)
@pytest.mark.parametrize("reward", [1e308, -1e308, 2.0**1023, 2.0**1022, -(2.0**1022), 2.0**490, 3.0])
def test_an_exact_value_is_correct_or_raises(called, reward):
    most = 1e150 if called == "simulate" else 1.8e308
    if abs(reward) * (37 / 16) < most:
        assert EXACT[called](spread(reward)) == reward * (37 / 16)
        return
    with pytest.raises(ModelError, match=r"^reward: got .* larger unit\.$"):
        EXACT[called](spread(reward))
    unit = 2.0**-700  # the advice
    assert EXACT[called](spread(reward * unit)) == reward * unit * (37 / 16)


def test_error_for_an_infinite_horizon_value_beyond_the_floats():
    with pytest.raises(ModelError, match="larger unit"):
        policy_value(wait, spread(1e308), truncation_error=1e300)
    assert float(policy_value(wait, spread(1e307), truncation_error=1e295)) == pytest.approx(4e307)


def test_partial_sums_beyond_the_floats_are_no_infinities():
    assert total([1e308, 1e308, -1e308, -1e308, 3.0]) == 3.0
    assert total([1e308, 1e308, float("-inf")]) == float("-inf")
    assert total([1e308, Fraction(10) ** 308, -1e308]) == 1e308


@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-300, 1e-200, 1e-160])
@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_probabilities_that_are_almost_0_count_for_nothing_but_what_is_legal(tiny, engine):
    if engine == "numba":
        pytest.importorskip("numba")

    def problem(p: float, legal) -> POMDP:
        return POMDP(
            transition=lambda s, a: {0: 0.5, 1: 0.5, 2: p} if s else {0: 1.0, 2: p},
            observation=lambda s, a: {0: 1.0, 1: p},
            reward=lambda s, a: float(s + a),
            initial_belief={0: 0.5, 1: 0.5, 2: p},
            discount=0.5,
            legal_actions=legal,
        )

    # by hand: v0 = 1 + v0 / 2, v1 = 2 + (v0 + v1) / 4; with one action less everywhere, v0 = 0, v1 = 1 + v1 / 4
    for legal, truth in ([0, 1], 8 / 3), (lambda s: [0, 1] if s < 2 else [0], 2 / 3):
        rare = problem(tiny, legal)
        solution = solve(rare, precision=1e-6, max_trials=100, engine=engine)
        assert solution.lower <= truth + 1e-6
        assert solution.upper >= truth - 1e-6
        assert verify(solution.certificate(), rare)


def test_a_precision_between_two_floats_ends_the_search():
    problem = small_problem(3, kind="plain", discount=0.99, unit=1e60)
    solution = solve(problem, time_limit=60)
    assert solution.status == "rounding"
    assert solution.gap <= 1e-9 * max(abs(solution.lower), abs(solution.upper))
