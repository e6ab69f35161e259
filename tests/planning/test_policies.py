"""Policies for any problem: what they choose, and what they refuse."""

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning import Decision, Policy, value_iteration
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.planning.policies import (
    FirstAction,
    FunctionPolicy,
    QMDPPolicy,
    RandomPolicy,
    ThresholdPolicy,
    action_probabilities,
    as_policy,
)
from tests.pomdp_models import tiger


def corridor() -> POMDP:
    """Three cells and a terminal exit; leaving is legal in the last cell only and earns 5, a step costs 1."""
    return POMDP(
        transition=lambda s, a: "out" if a == "leave" else min(s + 1, 2),
        observation=lambda s, a: s,
        reward=lambda s, a: 5.0 if a == "leave" else -1.0,
        initial_belief={0: 1},
        terminal=["out"],
        legal_actions=lambda s: ["leave"] if s == 2 else ["step"],
    )


def test_every_policy_is_a_policy():
    for policy in (FirstAction(), RandomPolicy(0), ThresholdPolicy([], "listen"), QMDPPolicy(), as_policy(lambda b: 1)):
        assert isinstance(policy, Policy)
        assert "object at" not in repr(policy)


def test_first_action_is_the_first_legal_one():
    assert FirstAction().decide(tiger()).action == "listen"
    assert FirstAction().decide(corridor(), Belief.certain(2)).action == "leave"


def test_random_policy_repeats_with_its_seed_and_takes_all_actions():
    problem = tiger()
    runs = [[policy.decide(problem).action for _ in range(200)] for policy in (RandomPolicy(7), RandomPolicy(7))]
    assert runs[0] == runs[1]
    assert set(runs[0]) == set(problem.all_actions)
    assert [RandomPolicy(1).seeded(7).decide(problem).action] == runs[0][:1]


def test_random_policy_spreads_over_legal_actions_only():
    probabilities, decision = action_probabilities(RandomPolicy(0), corridor(), Belief.certain(2))
    assert probabilities == {"leave": 1.0}
    assert decision is None


def test_a_decided_policy_has_one_action():
    probabilities, decision = action_probabilities(FirstAction(), tiger(), tiger().initial_belief)
    assert probabilities == {"listen": 1}
    assert decision == Decision("listen")


@pytest.mark.parametrize(
    ("left", "action"),
    [(0.5, "listen"), (0.9, "open-right"), (0.90001, "open-right"), (0.89999, "listen"), (0.05, "open-left")],
)
def test_threshold_is_reached_at_equality(left, action):
    policy = ThresholdPolicy([("left", 0.9, "open-right"), ({"right"}, 0.9, "open-left")], otherwise="listen")
    assert policy.decide(tiger(), Belief({"left": left, "right": 1 - left})).action == action


def test_threshold_takes_events_as_functions_and_passes_over_illegal_actions():
    policy = ThresholdPolicy([(lambda s: s != "out", 0.5, "leave")], otherwise="step")
    assert policy.decide(corridor(), Belief.certain(0)).action == "step"
    assert policy.decide(corridor(), Belief.certain(2)).action == "leave"


def test_threshold_refuses_what_cannot_be():
    with pytest.raises(ParameterError, match=r"threshold 1\.5 of 'left'"):
        ThresholdPolicy([("left", 1.5, "open-right")], otherwise="listen")
    with pytest.raises(PlanningError, match="otherwise: got 'wait'"):
        ThresholdPolicy([], otherwise="wait").decide(tiger())


def test_mdp_values_of_tiger_have_a_closed_form():
    # Seeing the state, one opens the right door for ever: V = 10 / (1 - gamma).
    q, _ = mdp_values(tiger().compiled, tolerance=1e-13)
    best = 10 / 0.05
    assert q == pytest.approx(
        np.array([[-1 + 0.95 * best] * 2, [-100 + 0.95 * best, best], [best, -100 + 0.95 * best]]), abs=1e-9
    )


def test_mdp_values_at_discount_one_settle_at_terminals_and_count_the_horizon():
    compiled = corridor().compiled
    q, backups = mdp_values(compiled)
    assert backups == 4  # the way out is three actions long; the fourth backup changes nothing
    step, leave = compiled.action_index["step"], compiled.action_index["leave"]
    order = [compiled.state_index[s] for s in (0, 1, 2, "out")]
    assert q[step, order].tolist() == [3.0, 4.0, -np.inf, 0.0]
    assert q[leave, order].tolist() == [-np.inf, -np.inf, 5.0, 0.0]
    assert mdp_values(compiled, horizon=1)[0][step, order[0]] == -1.0


def test_mdp_values_that_never_settle_are_refused():
    with pytest.raises(PlanningError, match="Set a horizon"):
        mdp_values(tiger(discount=1).compiled, max_iterations=50)
    with pytest.raises(ParameterError, match="horizon: got 0"):
        mdp_values(tiger().compiled, horizon=0)


def test_qmdp_never_listens_for_the_sake_of_knowing():
    decision = QMDPPolicy().decide(tiger(), Belief({"left": 0.6, "right": 0.4}))
    assert decision.q_values["listen"] == pytest.approx(-1 + 0.95 * 200)
    assert decision.q_values["open-right"] == pytest.approx(0.6 * 200 + 0.4 * (-100 + 0.95 * 200))
    assert decision.action == "listen"  # only since a wrong door costs more than a step
    cheap = QMDPPolicy().decide(tiger(), Belief({"left": 0.95, "right": 0.05}))
    assert cheap.action == "open-right"


def test_qmdp_keeps_ties_and_serves_two_problems_in_turn():
    policy = QMDPPolicy(horizon=1)
    one, other = tiger(), corridor()
    assert policy.decide(other).q_values == {"step": -1.0}
    assert policy.decide(one).ties == ("listen",)
    even = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: float(s == a),
        initial_belief={"h": 0.5, "t": 0.5},
        legal_actions=["t", "h"],
    )
    assert policy.decide(even).ties == ("t", "h")


@pytest.mark.parametrize(("horizon", "value"), [(1, -1), (2, -1.95), (3, 2.3098), (4, 1.795544)])
def test_value_iteration_of_tiger_has_the_known_values(horizon, value):
    decision = value_iteration(tiger(), horizon).decide(tiger())
    assert decision.action == "listen"
    assert decision.value == pytest.approx(value, abs=1e-5)


def test_a_finite_horizon_solution_runs_its_horizon_down():
    problem = tiger()
    policy = value_iteration(problem, 3)
    sure = Belief({"left": 0.85, "right": 0.15})
    assert policy.at_step(0).decide(problem, sure).action == "listen"
    assert policy.at_step(2).decide(problem, sure).value == -1  # one action left: 0.85 * 10 - 15 < -1
    assert policy.at_step(2).decide(problem, sure).value == value_iteration(problem, 1).decide(problem, sure).value


def test_functions_of_one_two_and_three_arguments():
    problem = tiger()
    for function in (
        lambda belief: "listen",
        lambda problem, belief: problem.all_actions[0],
        lambda problem, belief, observation: "listen" if observation is None else "open-left",
    ):
        assert as_policy(function).decide(problem).action == "listen"
    assert as_policy(lambda belief: Decision("open-left", value=2)).decide(problem).value == 2


def test_what_is_no_policy_is_refused():
    with pytest.raises(ParameterError, match=r"^policy: got the class FirstAction"):
        as_policy(FirstAction)
    with pytest.raises(ParameterError, match=r"^policy: got 'one-step'"):
        as_policy("one-step")
    with pytest.raises(ParameterError, match=r"got \(\); expected \(belief\)"):
        FunctionPolicy(lambda: "listen")
    with pytest.raises(
        PlanningError,
        match=r"policy: got 'sleep' from",
    ):
        as_policy(lambda belief: "sleep").decide(tiger())
    with pytest.raises(PlanningError, match="terminal"):
        FirstAction().decide(corridor(), Belief.certain("out"))


def test_a_decide_without_the_observation_is_refused_before_it_is_called():
    class Short:
        def decide(self, problem, belief=None):
            return Decision("listen")

    said = r"^policy: .* decide\(problem, belief=None\); expected decide\(problem, belief=None, \*, observation=None\)"
    with pytest.raises(ParameterError, match=said):
        as_policy(Short())


def test_rules_that_are_no_triples_and_a_problem_in_the_place_of_a_policy_are_refused():
    with pytest.raises(ParameterError, match=r"rules: got 'heads'"):
        ThresholdPolicy("heads", 0.9)
    with pytest.raises(ParameterError, match="expected triples"):
        ThresholdPolicy([("heads", 0.9)], otherwise="look")
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: 0,
        initial_belief={"here": 1},
        legal_actions=["wait"],
    )
    with pytest.raises(ParameterError, match=r"^policy: got .*the policy before"):
        as_policy(problem)
    assert FirstAction().decide(problem, {"here": 1.0}).action == "wait"


def test_a_decision_prints_its_values_and_names_bounds():
    decision = Decision("b", 0.1 + 0.2, {"a": 1.0, "b": 0.1 + 0.2}, ("b", "c"), {"status": {"a": "pruned"}})
    assert str(decision) == "'b', value 0.3 ('a' at most 1, 'b' 0.3); tied: 'b', 'c'"
    assert str(Decision("b")) == "'b'"
