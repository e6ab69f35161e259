"""Every public door of planning and simulation: mappings do for beliefs, and what is none has an own error."""

from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief, compare_updaters
from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.planning import (
    POMCP,
    POUCT,
    RTBSS,
    AndOrTree,
    Decision,
    QMDPPolicy,
    RandomPolicy,
    ThresholdPolicy,
    solve,
    value_iteration,
)
from pomdp_hier.planning.policies import FirstAction, FunctionPolicy
from pomdp_hier.simulation import compare_policies, mdp_value, policy_value, simulate
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from tests.pomdp_models import tiger

BELIEF = {"left": 0.25, "right": 0.75}
POLICIES = {
    "RTBSS plain": RTBSS(2, engine="plain"),
    "RTBSS arrays": RTBSS(2, engine="arrays"),
    "FirstAction": FirstAction(),
    "RandomPolicy": RandomPolicy(0),
    "FunctionPolicy": FunctionPolicy(lambda belief: "listen" if belief["left"] == 0.25 else 1 / 0),
    "QMDPPolicy": QMDPPolicy(horizon=2),
    "ThresholdPolicy": ThresholdPolicy([("right", 0.7, "open-left")], "listen"),
    "FiniteHorizonSolution": value_iteration(tiger(), 2),
    "POUCT": POUCT(depth=1, simulations=20, seed=0),
    "POMCP": POMCP(depth=1, simulations=20, seed=0),
}
READERS = {name: policy.decide for name, policy in POLICIES.items()} | {
    "AndOrTree.build": lambda problem, belief: AndOrTree.build(problem, belief, depth=1),
    "AndOrTree.find": lambda problem, belief: AndOrTree.build(problem, BELIEF, depth=1).find(belief),
    "AndOrTree.explain": lambda problem, belief: AndOrTree.build(problem, BELIEF, depth=1).explain(belief),
    "FiniteHorizonSolution.value": lambda problem, belief: POLICIES["FiniteHorizonSolution"].value(belief),
    "FiniteHorizonSolution.action": lambda problem, belief: POLICIES["FiniteHorizonSolution"].action(belief),
    "action_probabilities": lambda problem, belief: POLICIES["RandomPolicy"].action_probabilities(problem, belief),
}


def told(answer):
    return answer.action if isinstance(answer, Decision) else repr(answer)


@pytest.mark.parametrize("door", READERS)
def test_a_mapping_does_for_a_belief_and_another_thing_is_refused(door):
    ask = READERS[door]
    answers = {told(ask(tiger(), given)) for given in (Belief(BELIEF), BELIEF, MappingProxyType(BELIEF))}
    assert len(answers) == 1 or door in ("RandomPolicy", "POUCT", "POMCP")  # these draw
    for wrong in ({"left": 0.25, "right": 0.5}, {"left": -0.25, "right": 1.25}, {}, "left", [0.25, 0.75], 1.5):
        with pytest.raises(PomdpHierError, match="belief"):
            ask(tiger(), wrong)


@pytest.mark.parametrize("name", POLICIES)
def test_another_thing_than_a_problem_is_refused(name):
    for wrong in (None, BELIEF, "tiger"):
        with pytest.raises(PomdpHierError, match="expected a POMDP"):
            POLICIES[name].decide(wrong, BELIEF)


@pytest.mark.parametrize(
    "ask",
    [
        lambda wrong: value_iteration(wrong, 1),
        lambda wrong: AndOrTree.build(wrong, depth=1),
        lambda wrong: simulate(FirstAction(), wrong),
        lambda wrong: simulate(FirstAction(), tiger(), wrong or "none"),
        lambda wrong: simulate_in_pomdp_py(FirstAction(), wrong),
        lambda wrong: simulate_in_pomdp_py(FirstAction(), tiger(), wrong or "none"),
        lambda wrong: policy_value(FirstAction(), wrong),
        lambda wrong: policy_value(FirstAction(), tiger(), wrong or "none"),
        lambda wrong: compare_policies([FirstAction()], wrong),
        lambda wrong: mdp_value(wrong),
    ],
)
def test_functions_refuse_another_thing_than_a_problem(ask):
    for wrong in (None, BELIEF, "tiger"):
        with pytest.raises(PomdpHierError, match="expected a POMDP"):
            ask(wrong)


def with_else() -> POMDP:
    """The tiger with models that have an answer for every word."""
    return POMDP(
        transition=lambda s, a: s if a == "listen" else {"left": 0.5, "right": 0.5},
        observation=lambda s, a: {s: 0.85, {"left": "right", "right": "left"}[s]: 0.15},
        reward=lambda s, a: -1 if a == "listen" else 10,
        initial_belief={"left": 0.5, "right": 0.5},
        legal_actions=["listen", "open-left", "open-right"],
    )


class Misspelt:
    def decide(self, problem, belief=None, *, observation=None):
        return Decision("opne-left")


class MisspeltNowAndThen(Misspelt):
    def action_probabilities(self, problem, belief, *, observation=None):
        return {"listen": 0.5, "opne-left": 0.5}


class Bare(Misspelt):
    def decide(self, problem, belief=None, *, observation=None):
        return "listen"


@pytest.mark.parametrize(
    "run",
    [
        lambda policy: simulate(policy, with_else(), n_episodes=1, horizon=1),
        lambda policy: simulate_in_pomdp_py(policy, with_else(), n_episodes=1, horizon=1),
        lambda policy: policy_value(policy, with_else(), horizon=1),
        lambda policy: compare_policies([policy], with_else(), horizon=1),
        lambda policy: compare_policies([policy], with_else(), method="monte-carlo", n_episodes=1, horizon=1),
    ],
)
def test_an_action_that_is_none_earns_nothing(run):
    policies = (Misspelt(), MisspeltNowAndThen(), lambda belief: "opne-left", lambda belief: ["listen"])
    for policy in policies:
        with pytest.raises(PomdpHierError, match=r"policy: got .* from"):
            run(policy)
    with pytest.raises(PomdpHierError, match=r"got 'listen' from .*; expected a Decision"):
        run(Bare())


WRONG = [0, -1, 1.5, "2", True, None, float("nan")]


@pytest.mark.parametrize(
    ("make", "name", "allowed"),
    [
        (lambda v: RTBSS(v), "depth", []),
        (lambda v: AndOrTree.build(tiger(), depth=v), "depth", []),
        (lambda v: AndOrTree.build(tiger(), depth=1, max_nodes=v), "max_nodes", []),
        (lambda v: POUCT(depth=v), "depth", []),
        (lambda v: POUCT(simulations=v), "simulations", []),
        (lambda v: POMCP(particles=v), "particles", []),
        (lambda v: QMDPPolicy(horizon=v).decide(tiger()), "horizon", [None]),
        (lambda v: value_iteration(tiger(), v), "horizon", [0]),
        (lambda v: POLICIES["FiniteHorizonSolution"].value(BELIEF, to_go=v), "to_go", [0, None]),
        (lambda v: solve(tiger(), horizon=2).bounds(BELIEF, to_go=v), "to_go", [0, None]),
        (lambda v: simulate(FirstAction(), tiger(), n_episodes=1, horizon=v), "horizon", [0, None]),
        (lambda v: policy_value(FirstAction(), tiger(discount=0.5), horizon=v), "horizon", [0, None]),
        (lambda v: policy_value(FirstAction(), tiger(), horizon=1, max_beliefs=v), "max_beliefs", []),
        (lambda v: simulate(FirstAction(), tiger(), n_episodes=v, horizon=1), "n_episodes", []),
    ],
)
def test_counts_are_whole_numbers(make, name, allowed):
    for value in WRONG:
        if value in allowed:
            make(value)
        else:
            with pytest.raises(PomdpHierError, match=f"^{name}: got .*; expected an integer of"):
                make(value)


UPDATERS = (BayesUpdater(tiger()), BayesUpdater(tiger()), tiger())
FIRST = FirstAction()


@pytest.mark.parametrize(
    ("make", "name", "allowed"),
    [
        (lambda v: solve(tiger(), horizon=1, precision=v), "precision", [0]),
        (lambda v: solve(tiger(), horizon=1, time_limit=v), "time_limit", [0, None]),
        (lambda v: solve(tiger(), horizon=1, memory_limit=v), "memory_limit", [0, None]),
        (lambda v: solve(tiger(), horizon=1, max_trials=v), "max_trials", [0, None]),
        (lambda v: RTBSS(1, tie_tolerance=v), "tie_tolerance", [0]),
        (lambda v: RTBSS(1, merge_tolerance=v), "merge_tolerance", [0, None]),
        (lambda v: RTBSS(1, budget=v), "budget", [None]),
        (lambda v: POUCT(exploration=v), "exploration", [0, None]),
        (lambda v: value_iteration(tiger(), 1, tolerance=v), "tolerance", [0]),
        (lambda v: compare_updaters(*UPDATERS, depth=1, tolerance=v), "tolerance", [0]),
        (lambda v: compare_updaters(*UPDATERS, depth=v), "depth", []),
        (lambda v: compare_updaters(*UPDATERS, depth=1, max_histories=v), "max_histories", []),
        (lambda v: simulate(FIRST, tiger(), n_episodes=2, horizon=1, half_width=v), "half_width", [None]),
        (lambda v: policy_value(FIRST, tiger(discount=0.5), truncation_error=v), "truncation_error", []),
        (lambda v: simulate(FIRST, tiger(), n_episodes=2, horizon=1, confidence=v), "confidence", []),
        (lambda v: compare_policies([FIRST], tiger(), horizon=1, mdp_value=v), "mdp_value", [0, -1, None]),
        (lambda v: compare_policies([FIRST], tiger(), horizon=1, trace=v), "trace", [0]),
        (lambda v: compare_policies([FIRST], tiger(), horizon=1, solution=v), "solution", [None]),
    ],
)
def test_what_is_no_number_or_too_small_is_refused(make, name, allowed):
    for value in (0, -1, "2", 1j, [1], None, float("nan")):
        if value in allowed:
            make(value)
        elif name != "mdp_value" or value == value:
            with pytest.raises(PomdpHierError, match=f"^{name}"):
                make(value)


def test_an_mdp_value_of_any_kind_of_number_is_taken():
    for number in (Fraction(3, 2), np.float32(1.5), np.int64(1)):
        table = compare_policies([FIRST], tiger(), horizon=1, mdp_value=number)
        assert table.mdp_value == number
        assert table["FirstAction()"].mdp_regret == number + 1


def test_more_steps_than_a_solution_holds_and_unknown_observations_are_named():
    with pytest.raises(PomdpHierError, match=r"to_go: got 3.*2"):
        POLICIES["FiniteHorizonSolution"].value(BELIEF, to_go=3)
    with pytest.raises(PomdpHierError, match=r"to_go: got 3.*2"):
        solve(tiger(), horizon=2).bounds(BELIEF, to_go=3)
    with pytest.raises(PomdpHierError, match="to_go: got 1; expected None"):
        solve(tiger(), precision=1.0).bounds(BELIEF, to_go=1)
    by_observation = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0,
        initial_belief={"here": 1},
        legal_actions=lambda o: ["wait"],
        legal_by="observation",
        actions=["wait"],
    )
    with pytest.raises(PomdpHierError, match="observation: got 'p'; expected one of 'o'"):
        value_iteration(by_observation, 1).value({"here": 1}, observation="p")


def test_callables_that_give_no_numbers_are_named():
    with pytest.raises(PomdpHierError, match="leaf_value: got None from the callable"):
        RTBSS(1, lambda problem, belief: None).decide(tiger())
    with pytest.raises(PomdpHierError, match="upper_bound: got 'high' for action 'listen'"):
        RTBSS(2, upper_bound=lambda problem, belief, action, depth: "high").decide(tiger())
    for tolerance in ("0", float("nan"), float("inf"), -1):
        with pytest.raises(PomdpHierError, match="tie_tolerance: "):
            RTBSS(1, tie_tolerance=tolerance)
    with pytest.raises(PomdpHierError, match=r"merge_tolerance: got 1e-300"):
        RTBSS(1, merge_tolerance=1e-300)


class Rule:
    """A stopping rule of a hierarchy, which decides nowhere else."""

    def descend(self, eta, sizes, rewards, level):
        return eta > level


@pytest.mark.parametrize("run", [simulate, simulate_in_pomdp_py, policy_value])
@pytest.mark.parametrize("rule", [lambda eta, sizes, rewards, level: eta > level, Rule(), Rule().descend])
def test_a_stopping_rule_of_a_hierarchy_is_told_where_it_belongs(run, rule):
    with pytest.raises(ParameterError, match=r"descend\(eta, sizes, rewards, level\)"):
        run(rule, tiger(), horizon=1)
    with pytest.raises(ParameterError, match=r"got \(a, b, c, d, e\); expected \(belief\) or (?!.*Note)"):
        run(lambda a, b, c, d, e: "listen", tiger(), horizon=1)
