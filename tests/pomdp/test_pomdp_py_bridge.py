"""The bridge to pomdp-py's agents and environments, and its wrapped values."""

import copy
import pickle
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pomdp_py
import pytest

from pomdp_hier import POMDP, Action, Belief, State
from pomdp_hier.errors import ImpossibleObservationError, ModelError
from pomdp_hier.planning import RTBSS
from pomdp_hier.pomdp import to_agent, to_environment
from pomdp_hier.pomdp.pomdp_py_bridge import HistoryPolicy
from pomdp_hier.pomdp.spaces import (
    TERMINAL_OBSERVATION,
    BridgedAction,
    BridgedObservation,
    BridgedState,
    seeded_random,
    unwrapped,
)
from pomdp_hier.problems import tiger


def treasure(**changes: Any) -> POMDP:
    """A box of three, one with a treasure: peek, or open one; the end is not observed any further."""
    boxes = (1, 2, 3)
    observation = {((b, False), "peek"): {b: 0.5, "?": 0.5} for b in boxes}
    observation |= {((b, True), f"open-{k}"): {"gold" if b == k else "dust": 1} for b in boxes for k in boxes}
    arguments: dict[str, Any] = {
        "transition": lambda s, a: {s if a == "peek" else (s[0], True): 1},
        "observation": observation,
        "reward": lambda s, a: -0.1 if a == "peek" else (10 if a == f"open-{s[0]}" else -10),
        "initial_belief": {(b, False): 1 / 3 for b in boxes},
        "discount": 0.9,
        "terminal": lambda s: s[1],
        "legal_actions": ("peek", "open-1", "open-2", "open-3"),
    }
    return POMDP(**(arguments | changes))


def by_observation(observation: Any) -> list[str]:
    """Boxes can be opened only once something was seen."""
    return ["peek"] if observation is None else ["peek", "open-1", "open-2", "open-3"]


def test_the_agent_has_the_models_of_the_problem() -> None:
    problem = tiger()
    agent = to_agent(problem, name="hunter")
    assert agent.name == "hunter"
    assert [unwrapped(s) for s in agent.all_states] == list(problem.states)
    assert [unwrapped(a) for a in agent.all_actions] == list(problem.all_actions)
    assert [unwrapped(o) for o in agent.all_observations] == list(problem.all_observations)
    for state in agent.all_states:
        for action in agent.all_actions:
            s, a = state.value, action.value
            for next_state in agent.all_states:
                expected = problem.successors(s, a).get(next_state.value, 0)
                assert agent.transition_model.probability(next_state, state, action) == expected
                assert agent.reward_model.sample(state, action, next_state) == problem.step_reward(s, a, None)
            for o in agent.all_observations:
                expected = problem.observation_distribution(s, a, None).get(o.value, 0)
                assert agent.observation_model.probability(o, state, action) == expected


def test_pomdp_pys_own_exact_value_agrees() -> None:
    problem = tiger()
    agent = to_agent(problem)
    value = pomdp_py.value(
        agent.belief,
        agent.all_states,
        agent.all_actions,
        agent.all_observations,
        agent.transition_model,
        agent.observation_model,
        agent.reward_model,
        0.95,
        horizon=2,
    )
    assert value == pytest.approx(RTBSS(depth=2).decide(problem).value, abs=1e-12)


def test_the_agent_updates_by_bayes_rule() -> None:
    agent = to_agent(tiger())
    agent.update("listen", "hear-left")
    agent.update(BridgedAction("listen"), BridgedObservation("hear-left"))
    assert agent.belief["tiger-left"] == pytest.approx(0.85**2 / (0.85**2 + 0.15**2), abs=1e-15)
    assert agent.history == (("listen", "hear-left"),) * 2
    with pytest.raises(ImpossibleObservationError, match="got 'growl'"):
        agent.update("listen", "growl")
    assert len(agent.history) == 2


def test_the_end_is_absorbing_earns_nothing_and_leaves_an_action() -> None:
    problem = treasure()
    agent = to_agent(problem)
    end, peek = BridgedState((1, True)), BridgedAction("peek")
    assert agent.transition_model.distribution(end, peek) == {end: 1}
    assert agent.reward_model.sample(end, peek, end) == 0
    assert agent.observation_model.distribution(end, peek) == {TERMINAL_OBSERVATION: 1}
    assert agent.observation_model.distribution(end, BridgedAction("open-1")) == {"gold": 1}
    assert agent.valid_actions(state=end) == ["peek"]
    agent.update("open-1", "gold")
    agent.update("peek", TERMINAL_OBSERVATION)
    assert agent.belief[(1, True)] == 1
    assert len(agent.valid_actions(history=agent.history)) == 1


def test_the_end_is_observed_where_the_start_already_holds_it() -> None:
    seen = {((b, end), a): "same" for b in (1, 2) for end in (True, False) for a in ("peek", "open-1")}
    problem = treasure(
        observation=seen, initial_belief={(1, False): 0.5, (2, True): 0.5}, legal_actions=("peek", "open-1")
    )
    agent = to_agent(problem)
    assert agent.observation_model.distribution(BridgedState((2, True)), BridgedAction("peek")) == {"same": 1}


@pytest.mark.parametrize("legal_by", ["state", "observation", "belief"])
def test_legal_actions_depend_on_the_history_alone(legal_by: str) -> None:
    everything = ("peek", "open-1", "open-2", "open-3")
    rules: dict[str, Any] = {
        "state": lambda s: ["peek", f"open-{s[0]}", "open-3"],
        "observation": by_observation,
        "belief": lambda b: [a for a in everything if a == "peek" or b[(int(a[-1]), False)] >= 0.5],
    }
    problem = treasure(legal_actions=rules[legal_by], legal_by=legal_by, actions=everything)
    policy = HistoryPolicy(problem, problem.initial_belief)
    expected: dict[str, dict[tuple[Any, ...], tuple[str, ...]]] = {
        "state": {
            (): ("peek", "open-3"),
            (("peek", "?"),): ("peek", "open-3"),
            (("peek", "?"), ("peek", 2)): ("peek", "open-2", "open-3"),
        },
        "observation": {(): ("peek",), (("peek", "?"),): everything, (("peek", "?"), ("peek", 2)): everything},
        "belief": {(): ("peek",), (("peek", "?"),): ("peek",), (("peek", "?"), ("peek", 2)): ("peek", "open-2")},
    }
    for history, actions in expected[legal_by].items():
        for box in (1, 2, 3):  # whatever state came by first
            assert policy.get_all_actions(state=BridgedState((box, False)), history=history) == list(actions)
    after = (("peek", 3), ("open-3", "gold"))
    assert policy.get_all_actions(history=after) == ["peek"]
    assert policy.get_all_actions(history=(*after, ("peek", TERMINAL_OBSERVATION))) == ["peek"]
    assert policy.rollout(BridgedState((1, True)), after) == "peek"
    assert policy.rollout(BridgedState((2, False)), ()) in rules.get("state")((2, False))
    with pytest.raises(ModelError, match=r"history: got .*'peek'"):
        HistoryPolicy(problem, problem.initial_belief, history=(("peek", 1),))._belief_after((("peek", 2),))


def test_an_observation_of_the_state_left_cannot_be_bridged() -> None:
    problem = POMDP(
        transition=lambda s, a: 1 - s,
        observation=lambda s, a, state: state,
        reward=lambda s, a: s,
        initial_belief={0: 1},
        legal_actions=["flip"],
    )
    with pytest.raises(ModelError, match="depend on the previous state"):
        to_agent(problem)
    assert to_environment(problem, seed=1).execute("flip") == (0, 0)


def test_the_environment_draws_from_its_own_seed_and_earns_exact_rewards() -> None:
    problem = treasure()
    before = random.getstate()
    runs = []
    for _ in range(2):
        environment = to_environment(problem, seed=3)
        runs.append([unwrapped(environment.state), *(environment.execute("peek") for _ in range(20))])
    assert random.getstate() == before
    assert runs[0] == runs[1]
    assert len(set(runs[0][1:])) == 2
    assert all(reward == -0.1 for _, reward in runs[0][1:])  # not -0.10000000149
    environment = to_environment(problem, (2, False), seed=0)
    assert environment.state_transition("peek", execute=False) == ((2, False), -0.1)
    assert not environment.is_terminal
    assert environment.state_transition("open-2") == 10
    assert environment.is_terminal
    assert environment.execute("peek") == (TERMINAL_OBSERVATION, 0)


def test_frequencies_in_the_environment_are_the_probabilities() -> None:
    environment = to_environment(tiger(), "tiger-left", seed=1)
    heard = [environment.execute("listen")[0] for _ in range(4000)]
    assert heard.count("hear-left") / 4000 == pytest.approx(0.85, abs=4 * np.sqrt(0.85 * 0.15 / 4000))


def test_a_reward_that_depends_on_the_observation_is_its_mean_for_pomdp_py_and_exact_in_execute() -> None:
    problem = POMDP.from_arrays(
        [[[1.0]]], [[[0.25, 0.75]]], [[[[4.0, 8.0]]]], states=["s"], actions=["a"], observations=["x", "y"]
    )
    agent = to_agent(problem)
    s, a = agent.all_states[0], agent.all_actions[0]
    assert agent.reward_model.sample(s, a, s) == 7
    environment = to_environment(problem, seed=0)
    assert {environment.execute("a") for _ in range(50)} == {("x", 4), ("y", 8)}
    assert environment.state_transition("a") == 7


@dataclass(frozen=True)
class Cell(State):
    row: int


@dataclass(frozen=True)
class Go(Action):
    step: int


def test_states_and_actions_that_are_pomdp_pys_stay_what_they_are() -> None:
    problem = POMDP(
        transition=lambda s, a: Cell(s.row + a.step) if s.row < 2 else s,
        observation=lambda s, a: s.row,
        reward=lambda s, a: 1,
        initial_belief={Cell(0): 1},
        legal_actions=[Go(1)],
    )
    agent = to_agent(problem)
    assert agent.all_states == [Cell(0), Cell(1), Cell(2)]
    assert agent.valid_actions() == [Go(1)]
    back = POMDP.from_agent(agent)
    assert back.states == (Cell(0), Cell(1), Cell(2))
    assert back.successors(Cell(0), Go(1)) == {Cell(1): 1}


@pytest.mark.parametrize(
    "problem",
    [
        tiger(),
        treasure(),
        treasure(legal_actions=lambda s: ["peek", "open-3"]),
        treasure(legal_actions=by_observation, legal_by="observation", actions=["peek", "open-1", "open-2", "open-3"]),
    ],
    ids=["tiger", "everywhere", "by-state", "by-observation"],
)
def test_there_and_back_is_the_same_problem(problem: POMDP) -> None:
    back = POMDP.from_agent(to_agent(problem))
    assert back.discount == problem.discount
    assert back.initial_belief == problem.initial_belief
    assert set(back.states) == set(problem.states)
    assert back.all_actions == problem.all_actions
    one, other = RTBSS(depth=3).decide(problem), RTBSS(depth=3).decide(back)
    assert one.action == other.action
    assert one.q_values == pytest.approx({unwrapped(a): v for a, v in other.q_values.items()}, abs=1e-12)


def test_rtbss_plans_for_a_bridged_agent_in_pomdp_pys_loop() -> None:
    agent, environment, planner = to_agent(treasure()), to_environment(treasure(), seed=4), RTBSS(depth=3)
    total = 0.0
    for step in range(20):
        action = planner.plan(agent)
        observation, reward = environment.execute(action)
        total += 0.9**step * reward
        if environment.is_terminal:
            break
        agent.update(action, observation)
    assert environment.is_terminal
    assert reward == 10
    assert total == pytest.approx(10 * 0.9**step - 0.1 * sum(0.9**i for i in range(step)), abs=1e-12)


class ForeignTransition(pomdp_py.TransitionModel):
    def probability(self, next_state: Any, state: Any, action: Any) -> float:
        return 1.0 if next_state == state else 0.0

    def get_all_states(self) -> set[Any]:
        return {pomdp_py.SimpleState("left"), pomdp_py.SimpleState("right")}


class ForeignObservation(pomdp_py.ObservationModel):
    def probability(self, observation: Any, next_state: Any, action: Any) -> float:
        return 0.75 if observation.data == next_state.data else 0.25

    def get_all_observations(self) -> set[Any]:
        return {pomdp_py.SimpleObservation("left"), pomdp_py.SimpleObservation("right")}


class ForeignReward(pomdp_py.RewardModel):
    def sample(self, state: Any, action: Any, next_state: Any) -> float:
        return 0.1 if state.data == action.name else -0.1


class ForeignPolicy(pomdp_py.PolicyModel):
    def get_all_actions(self, state: Any = None, history: Any = None) -> list[Any]:
        return [pomdp_py.SimpleAction("left"), pomdp_py.SimpleAction("right")]


def foreign_agent(**changes: Any) -> pomdp_py.Agent:
    start = pomdp_py.Histogram({pomdp_py.SimpleState("left"): 0.5, pomdp_py.SimpleState("right"): 0.5})
    arguments: dict[str, Any] = {
        "init_belief": start,
        "policy_model": ForeignPolicy(),
        "transition_model": ForeignTransition(),
        "observation_model": ForeignObservation(),
        "reward_model": ForeignReward(),
    }
    return pomdp_py.Agent(**(arguments | changes))


@pytest.mark.parametrize("asks", ["state", "anything", "nothing"])
def test_legal_actions_are_those_of_the_policy_model_whatever_it_can_be_asked(asks: str) -> None:
    actions = ForeignPolicy().get_all_actions()

    def of_the_state(state: Any) -> list[Any]:
        return actions if state is None else [a for a in actions if a.name == state.data]

    class Policy(pomdp_py.PolicyModel):
        if asks == "state":

            def get_all_actions(self, state: Any = None) -> list[Any]:
                return of_the_state(state)

        elif asks == "anything":

            def get_all_actions(self, **known: Any) -> list[Any]:
                return of_the_state(known.get("state"))

        else:

            def get_all_actions(self) -> list[Any]:
                return actions

    problem = POMDP.from_agent(foreign_agent(policy_model=Policy()), discount=0.5, terminal=[], actions=actions)
    legal = problem.actions(Belief.certain(pomdp_py.SimpleState("left")))
    assert [action.name for action in legal] == (["left", "right"] if asks == "nothing" else ["left"])


def test_an_agent_of_pomdp_pys_own_becomes_a_problem() -> None:
    problem = POMDP.from_agent(foreign_agent(), discount=0.5, terminal=[])
    left, right = pomdp_py.SimpleState("left"), pomdp_py.SimpleState("right")
    go = pomdp_py.SimpleAction("left")
    assert problem.states == (left, right)  # a set, put in order
    assert problem.discount == 0.5
    assert problem.successors(left, go) == {left: 1}
    assert problem.observation_probabilities(problem.initial_belief, go) == pytest.approx(
        {pomdp_py.SimpleObservation("left"): 0.5, pomdp_py.SimpleObservation("right"): 0.5}
    )
    assert problem.expected_reward(left, go) == 0.1
    assert problem.compiled.reward.tolist() == [[0.1, -0.1], [-0.1, 0.1]]


def test_what_an_agent_does_not_say_is_asked_for() -> None:
    class Silent(pomdp_py.TransitionModel):
        def probability(self, next_state: Any, state: Any, action: Any) -> float:
            return 1.0 if next_state == state else 0.0

    agent = foreign_agent(transition_model=Silent())
    with pytest.raises(ModelError, match=r"states: .* Pass states="):
        POMDP.from_agent(agent)
    states = [pomdp_py.SimpleState("left"), pomdp_py.SimpleState("right")]
    assert POMDP.from_agent(agent, states=states).states == tuple(states)
    with pytest.raises(ModelError, match="no reward model"):
        POMDP.from_agent(foreign_agent(reward_model=None))
    with pytest.raises(ModelError, match="over finitely many states"):
        POMDP.from_agent(foreign_agent(init_belief=pomdp_py.Gaussian([0.0], [[1.0]])))


def test_the_current_belief_is_where_the_problem_begins() -> None:
    agent = to_agent(tiger(), Belief({"tiger-left": 0.25, "tiger-right": 0.75}))
    assert POMDP.from_agent(agent).initial_belief["tiger-left"] == 0.25
    agent.update("listen", "hear-left")
    assert POMDP.from_agent(agent).initial_belief["tiger-left"] == agent.belief["tiger-left"]


def test_a_problem_in_the_place_of_an_agent_is_refused():
    with pytest.raises(ModelError, match=r"expected a pomdp_py.Agent"):
        RTBSS(depth=1).plan(tiger())


def test_the_belief_of_an_agent_with_weighted_particles_is_the_one_that_it_samples_from():
    agent = to_agent(tiger())
    left, right = agent.belief.support
    models = (agent.policy_model, agent.transition_model, agent.observation_model, agent.reward_model)
    plain = pomdp_py.Agent(pomdp_py.WeightedParticles([(left, 0.2), (right, 0.6), (left, 0.2)]), *models)
    assert POMDP.from_agent(plain).initial_belief[left] == pytest.approx(0.4, abs=1e-12)
    random.seed(0)
    assert sum(plain.belief.random() == left for _ in range(4000)) / 4000 == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("kind", [BridgedState, BridgedAction, BridgedObservation])
def test_bridged_values_equal_what_they_hold(kind: type) -> None:
    one, same, other = kind("x"), kind("x"), kind(("x", 1))
    assert one == same
    assert one == "x"
    assert one != other
    assert other != "x"
    assert {"x": 1}[one] == 1
    assert {one: 1}["x"] == 1
    assert (repr(one), str(one), str(other)) == ("'x'", "x", "('x', 1)")
    assert copy.deepcopy(one) is one
    assert pickle.loads(pickle.dumps(other)) == other
    assert unwrapped(one) == "x"
    assert BridgedState("x") != BridgedObservation("x")


def test_seeded_random_restores_the_global_state_even_after_an_error() -> None:
    random.seed(5)
    before = random.getstate()

    def draw_and_fail() -> None:
        with seeded_random(1):
            random.random()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        draw_and_fail()
    assert random.getstate() == before
