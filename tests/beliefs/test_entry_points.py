"""Every function of pomdp and beliefs that takes a belief or an action, asked for all of them alike."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief, beliefs
from pomdp_hier.beliefs import ParticleUpdater, TabularUpdater
from pomdp_hier.beliefs.updaters import FunctionUpdater
from pomdp_hier.errors import ModelError, PomdpHierError
from pomdp_hier.planning import AndOrTree, solve, value_iteration
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.pomdp import to_agent, to_environment
from pomdp_hier.pomdp.pomdp_py_bridge import HistoryPolicy
from pomdp_hier.pomdp.tabular import TabularPOMDP
from pomdp_hier.simulation import policy_value, simulate
from tests.exact_oracle import exact_value

TIGER = POMDP(  # plain functions with an "else", which would answer for any action
    transition=lambda s, a: s if a == "listen" else {"left": 0.5, "right": 0.5},
    observation=lambda s, a: {s: 0.85, "left" if s == "right" else "right": 0.15} if a == "listen" else "nothing",
    reward=lambda s, a: -1 if a == "listen" else -100 if a == f"open-{s}" else 10,
    initial_belief={"left": 0.5, "right": 0.5},
    legal_actions=["listen", "open-left", "open-right"],
)
SURE = POMDP(
    **{name: getattr(TIGER, name) for name in ("transition", "observation", "initial_belief")},
    reward=TIGER.reward_model,
    legal_actions=TIGER.all_actions,
    belief_reward=lambda belief: belief.get("left", 0),
)
HALF = {"left": 0.5, "right": 0.5}


def updaters() -> list[Any]:
    return [
        BayesUpdater(TIGER),
        TabularUpdater(TIGER),
        ParticleUpdater(TIGER, 50, seed=0),
        FunctionUpdater(lambda b, a, o: b, TIGER),
    ]


# name -> a call with a belief and an action
BELIEF_DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "POMDP.as_belief": lambda b, a: TIGER.as_belief(b),
    "POMDP.is_terminal_belief": lambda b, a: TIGER.is_terminal_belief(b),
    "POMDP.actions": lambda b, a: TIGER.actions(b),
    "POMDP.reward": lambda b, a: TIGER.reward(b, a),
    "POMDP.belief_reward": lambda b, a: SURE.belief_reward(b, a),
    "POMDP.joint": lambda b, a: TIGER.joint(b, a),
    "POMDP.flows": lambda b, a: TIGER.flows(b, a),
    "POMDP.numerators": lambda b, a: TIGER.numerators(b, a, "left"),
    "POMDP.predict": lambda b, a: TIGER.predict(b, a),
    "POMDP.observation_probabilities": lambda b, a: TIGER.observation_probabilities(b, a),
    "POMDP.observations": lambda b, a: TIGER.observations(b, a),
    "TabularPOMDP.vector": lambda b, a: TIGER.compiled.vector(b),
    "to_agent": lambda b, a: to_agent(TIGER, b).belief,
    "HistoryPolicy": lambda b, a: HistoryPolicy(TIGER, b).get_all_actions(history=()),
    **{
        f"{type(updater).__name__}.{method}": lambda b, a, updater=updater, method=method: list(
            getattr(updater, method)(b, a)
        )
        for updater in updaters()
        for method in ("predict", "branches")
    },
    "BayesUpdater.evidences": lambda b, a: BayesUpdater(TIGER).evidences(b, a),
    **{
        f"{type(updater).__name__}.{method}": lambda b, a, updater=updater, method=method: getattr(updater, method)(
            b, a, "left"
        )
        for updater in updaters()
        for method in ("update", "evidence")
    },
}
WEIGHTS = {"POMDP.joint", "POMDP.flows", "POMDP.numerators"}  # linear in any weights of states


@pytest.mark.parametrize("door", BELIEF_DOORS)
def test_a_dict_does_for_a_belief(door: str) -> None:
    ask = BELIEF_DOORS[door]
    if not door.startswith("ParticleUpdater"):  # which draws anew
        assert str(ask(HALF, "listen")) == str(ask(Belief(HALF), "listen"))
    ask(HALF, "listen")


@pytest.mark.parametrize("door", BELIEF_DOORS)
@pytest.mark.parametrize("wrong", [5, "left", None, ["left"], {"left": 0.4}, {"left": 2, "right": -1}])
def test_what_is_no_belief_is_refused_at_every_door(door: str, wrong: Any) -> None:
    if (door == "POMDP.actions" and wrong is None) or (door == "to_agent" and wrong is None):
        return  # the initial belief
    if door in WEIGHTS and isinstance(wrong, dict):
        return
    with pytest.raises(ModelError, match="belief"):
        BELIEF_DOORS[door](wrong, "listen")


def test_a_planner_takes_a_dict_of_a_mass_that_its_problem_allows() -> None:
    loose = POMDP.from_arrays([np.eye(2)], [np.eye(2)], [[1.0, 2.0]], tolerance=1e-4, discount=0.5)
    rounded = {0: 0.33333, 1: 0.66666}  # sums to 0.99999; worth 0.33333 * 1 + 0.66666 * 2 a step
    worth = 1.66665 * 1.5
    assert BayesUpdater(loose).evidence(rounded, 0, 0) == pytest.approx(0.33333)
    assert FirstAction().decide(loose, rounded).action == 0
    assert len(AndOrTree.build(loose, rounded, depth=1)) == 4
    assert exact_value(loose, rounded, horizon=2) == pytest.approx(worth)
    assert value_iteration(loose, 2).value(rounded) == pytest.approx(worth)
    solution = solve(loose, belief=rounded, horizon=2)
    assert solution.lower == pytest.approx(worth)
    assert solution.bounds(rounded)[0] == pytest.approx(worth)


def test_an_impossible_observation_is_told_of_a_dict_too() -> None:
    for updater in updaters()[:3]:
        with pytest.raises(ModelError, match="got 'growl', which has probability 0"):
            updater.update(HALF, "listen", "growl")


@pytest.mark.parametrize("method", ["update", "evidence"])
def test_an_observation_in_a_list_is_told_of(method: str) -> None:
    for updater in updaters()[:3]:
        with pytest.raises(ModelError, match=r"observation: got \['left'\]"):
            getattr(updater, method)(HALF, "listen", ["left"])


def test_no_function_that_takes_a_belief_is_forgotten() -> None:
    owners = [POMDP, TabularPOMDP, *(getattr(beliefs, name) for name in beliefs.__all__)]
    found = {
        f"{owner.__name__}.{name}"
        for owner in owners
        if inspect.isclass(owner) and not getattr(owner, "_is_protocol", False)
        for name, member in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and "belief" in inspect.signature(member).parameters
    }
    on_arrays = {f"TabularPOMDP.{name}" for name in ("predict", "outcome", "outcomes", "branches", "legal_actions")}
    assert found - set(BELIEF_DOORS) == on_arrays


WITHOUT_ACTION = {
    "POMDP.as_belief",
    "POMDP.is_terminal_belief",
    "POMDP.actions",
    "TabularPOMDP.vector",
    "to_agent",
    "HistoryPolicy",
}
ACTION_DOORS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda a, ask=ask: ask(HALF, a) for name, ask in BELIEF_DOORS.items() if name not in WITHOUT_ACTION},
    "POMDP.successors": lambda a: TIGER.successors("left", a),
    "POMDP.observation_distribution": lambda a: TIGER.observation_distribution("left", a, None),
    "POMDP.step_reward": lambda a: TIGER.step_reward("left", a, "left"),
    "POMDP.expected_reward": lambda a: TIGER.expected_reward("left", a),
    "ProblemAgent.update": lambda a: to_agent(TIGER).update(a, "left"),
    "ProblemEnvironment.state_transition": lambda a: to_environment(TIGER, seed=0).state_transition(a, execute=False),
    "ProblemEnvironment.execute": lambda a: to_environment(TIGER, seed=0).execute(a),
    "simulate": lambda a: simulate(lambda b: a, TIGER, n_episodes=1, seed=0, horizon=1),
    "policy_value": lambda a: policy_value(lambda b: a, TIGER, horizon=1),
}


@pytest.mark.parametrize("door", ACTION_DOORS)
@pytest.mark.parametrize("wrong", ["opne-left", ["listen"]])
def test_an_action_that_is_not_the_problems_is_refused_at_every_door(door: str, wrong: Any) -> None:
    with pytest.raises(PomdpHierError, match=r"^(action|policy)|not legal|3 actions"):
        ACTION_DOORS[door](wrong)


def test_an_array_of_another_length_is_no_belief() -> None:
    with pytest.raises(ModelError, match=r"shape \(3,\)"):
        TabularUpdater(TIGER).update(np.ones(3) / 3, "listen", "left")
