"""Advice on arrays, functions and agents is taken: the input, the advice, the input with it taken, and the value."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pomdp_py
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief, check_problem, read_pomdp, simulate, solve, write_pomdp
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.planning import RTBSS
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.pomdp import RewardModel, to_agent
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import policy_value
from tests.pomdp.test_advice import FILE, two

STAY = np.eye(2)
MOVES = np.array([[[0.0, 1.0], [0.0, 1.0]]] * 3)  # three actions, all to the second state
SEES = np.array([[[1.0, 0.0], [0.5, 0.5]]] * 3)
EARNS = np.array([[1.0, 2.0]] * 3)


def value(T=MOVES, Z=SEES, R=EARNS, **others):
    """The value of two steps from the first state, 1 + 2 by default."""
    problem = POMDP.from_arrays(T=T, Z=Z, R=R, initial_belief=[1, 0], discount=1, **others)
    return RTBSS(2).decide(problem).value


def follows(s, a):
    return {"b": 1.0}


def shown(s, a):
    return "o"


def earned(s, a):
    return 2.0


class Turned(RewardModel):
    """Another order of arguments than that of the method that it overrides."""

    def reward(self, action, state):
        return 2.0


class InOrder(RewardModel):
    def reward(self, state, action):
        return 2.0


LASTING = {
    "observation": lambda next_state, a, state: state,
    "transition": lambda s, a: "b",
    "initial_belief": {"a": 1},
}
KEPT = {  # the previous state as a part of the next one
    "transition": lambda s, a: (s[1], "b"),
    "observation": lambda next_state, a: next_state[0],
    "initial_belief": {("a", "a"): 1},
}
ENTROPY = {"belief_reward": lambda b: -sum(p**2 for p in b.values())}
LISTEN = to_agent(tiger())
STATES = list(LISTEN.belief)
LISTENED = LISTEN.policy_model.get_all_actions()


class Chances(pomdp_py.TransitionModel):
    """Probabilities alone: no samples, no list of states."""

    def __init__(self, p=1.0):
        self.p = p

    def probability(self, next_state, state, action):
        return self.p if next_state == state else 0.0


class Sampled(Chances):
    def sample(self, state, action):
        return state


class Moves(Chances):
    """Samples of the other state than that of the probabilities."""

    def sample(self, state, action):
        return STATES[1 - STATES.index(state)]


class Listed(Chances):
    def get_all_states(self):
        return STATES


class NoReward(pomdp_py.RewardModel):
    def sample(self, state, action, next_state):
        raise TypeError("no sample yet")


class NoActions(pomdp_py.RolloutPolicy):
    pass


def agent(belief=None, policy=None, **models):
    parts = {f"{name}_model": getattr(LISTEN, f"{name}_model") for name in ("transition", "observation", "reward")}
    parts |= {f"{name}_model": model for name, model in models.items()}
    return pomdp_py.Agent(belief or LISTEN.belief, policy or LISTEN.policy_model, **parts)


def stays(given, **settings):
    """The probability to stay in the first state."""
    problem = POMDP.from_agent(given, **settings)
    return problem.transition.distribution(STATES[0], next(iter(LISTENED)))[STATES[0]]


def kept_row():
    return POMDP.from_arrays(T=[STAY], Z=[STAY], R=[[1, 2]]).successors(0, 0)


class Case(NamedTuple):
    wrong: Callable[[], Any]
    advice: str
    taken: Callable[[], Any]
    expected: Any


def many_objects(n):
    objects = {k: pomdp_py.Histogram({pomdp_py.ObjectState("o", {"x": x}): 0.1 for x in range(10)}) for k in range(n)}
    return POMDP.from_agent(agent(pomdp_py.OOBelief(objects))).initial_belief


ONE_NAME = "observation: x\n"
WRONG_SECTION = FILE.format("start: 0.5 0.5", "0 1").replace("observations: x\n", "observations: x\nrewards: y\n")
POMDPX = '<?xml version="1.0"?><pomdpx version="1.0"><Discount>0.5</Discount></pomdpx>'

RAISED: dict[str, Case] = {
    "row is read-only": Case(
        lambda: kept_row().update({1: 0}),
        "change a copy, dict(row)",
        lambda: dict(kept_row()) | {1: 0},
        {0: 1, 1: 0},
    ),
    "belief is immutable": Case(
        lambda: tiger().initial_belief.__setitem__("tiger-left", 1),
        "build a new one from a dict",
        lambda: Belief({"tiger-left": 1})["tiger-left"],
        1,
    ),
    "sum of rewards": Case(
        lambda: RTBSS(2).decide(two(reward=lambda s, a: 1e308, discount=1)),
        "Write all rewards in a larger unit",
        lambda: RTBSS(2).decide(two(reward=lambda s, a: 1e308 / 1e306, discount=1)).value,
        200,
    ),
    "parameter of two meanings": Case(
        lambda: two(reward=lambda s, n, a: 1.0),
        "rename it, such as to 'next_state'",
        lambda: two(reward=lambda s, next_state, a: 3.0 * (next_state == "b")).reward({"a": 1}, "go"),
        1.5,
    ),
    "parameter that is not given": Case(
        lambda: two(transition=lambda s, a, o: "b"),
        "Remove 'o', or rename it",
        lambda: dict(two(transition=lambda s, a: "b").transition.distribution("a", "go")),
        {"b": 1},
    ),
    "two parameters of one meaning": Case(
        lambda: two(transition=lambda s, state: "b"),
        "Rename 'state', such as to 'action'",
        lambda: dict(two(transition=lambda s, action: "b").transition.distribution("a", "go")),
        {"b": 1},
    ),
    "three parameters": Case(
        lambda: two(transition=lambda x, y, z: "b"),
        "Write the parameters so",
        lambda: dict(two(transition=lambda state, action: "b").transition.distribution("a", "go")),
        {"b": 1},
    ),
    "order of a method": Case(
        lambda: two(reward=Turned()).reward({"a": 1}, "go"),
        "Write the parameters of reward in this order",
        lambda: two(reward=InOrder()).reward({"a": 1}, "go"),
        2,
    ),
    "functions that cannot be pickled": Case(
        lambda: pickle.dumps(two()),
        "Define it there with def",
        lambda: pickle.loads(
            pickle.dumps(two(transition=follows, observation=shown, reward=earned, legal_actions=["go"]))
        ).reward({"a": 1}, "go"),
        2,
    ),
    "previous state for pomdp-py": Case(
        lambda: to_agent(two(**LASTING)),
        "Make the previous state a part of the next state",
        lambda: to_agent(two(**KEPT)).belief[two(**KEPT).states[0]],
        1,
    ),
    "observation of probability 0": Case(
        lambda: BayesUpdater(two()).update(Belief({"a": 1}), "go", "p"),
        "Correct the observation or the model",
        lambda: BayesUpdater(two()).update(Belief({"a": 1}), "go", "o")["b"],
        0.5,
    ),
    "belief reward": Case(
        lambda: solve(two(**ENTROPY)),
        "RTBSS or AndOrTree with leaf_value='zero'",
        lambda: RTBSS(1, leaf_value="zero").decide(two(**ENTROPY)).value,
        0.5,
    ),
    "belief reward, other advice": Case(
        lambda: simulate(FirstAction(), two(**ENTROPY)),
        "policy_value or simulate with a horizon",
        lambda: policy_value(RTBSS(1, leaf_value="zero"), two(**ENTROPY), horizon=1).value,
        0.5,
    ),
    "T with swapped states": Case(
        lambda: value(T=MOVES.swapaxes(1, 2)),
        "Give [matrix.T for matrix in T]",
        lambda: value(T=[matrix.T for matrix in MOVES.swapaxes(1, 2)]),
        3,
    ),
    "T with s first": Case(
        lambda: value(T=np.swapaxes(MOVES, 0, 1)),
        "Give numpy.swapaxes(T, 0, 1)",
        lambda: value(T=np.swapaxes(np.swapaxes(MOVES, 0, 1), 0, 1)),
        3,
    ),
    "Z with s' first": Case(
        lambda: value(Z=np.swapaxes(SEES, 0, 1)),
        "Give numpy.swapaxes(Z, 0, 1)",
        lambda: value(Z=np.swapaxes(np.swapaxes(SEES, 0, 1), 0, 1)),
        3,
    ),
    "R with s first": Case(
        lambda: value(R=EARNS.T), "Give numpy.swapaxes(R, 0, 1)", lambda: value(R=np.swapaxes(EARNS.T, 0, 1)), 3
    ),
    "weights": Case(
        lambda: value(T=MOVES * 4),
        "Divide each row by its sum",
        lambda: value(T=MOVES * 4 / (MOVES * 4).sum(axis=2, keepdims=True)),
        3,
    ),
    "no outcome": Case(
        lambda: value(T=[[[0, 1], [0, 0]]] * 3),
        "Give each state an outcome, such as itself",
        lambda: value(T=[[[0, 1], [0, 1]]] * 3),
        3,
    ),
    "weights beyond the floats": Case(
        lambda: value(T=[[[1e308, 1.5e308], [0, 1]]] * 3),
        "by its largest entry, and then each row by its sum",
        lambda: value(T=[[[1 / 2.5, 1.5 / 2.5], [0, 1]]] * 3),
        2.6,
    ),
    "misspelt action of arrays": Case(
        lambda: POMDP.from_arrays(T=[STAY], Z=[STAY], R=[[1, 2]], actions=["wait"]).transition.distribution(0, "wiat"),
        "Use the nearest name, 'wait'",
        lambda: dict(
            POMDP.from_arrays(T=[STAY], Z=[STAY], R=[[1, 2]], actions=["wait"]).transition.distribution(0, "wait")
        ),
        {0: 1},
    ),
    "text in arrays": Case(
        lambda: value(R=EARNS.astype(str)),
        "Convert it with array.astype(float)",
        lambda: value(R=EARNS.astype(str).astype(float)),
        3,
    ),
    "tolerance of arrays": Case(lambda: value(tolerance=1), "Use 1e-9", lambda: value(tolerance=1e-9), 3),
    "tolerance of a check": Case(
        lambda: check_problem(two(), tolerance=-1), "Use 1e-9", lambda: check_problem(two(), tolerance=1e-9), []
    ),
    "reward of an agent": Case(
        lambda: POMDP.from_agent(agent(reward=NoReward())).reward(LISTEN.belief, next(iter(LISTENED))),
        "pass a reward model with the problem",
        lambda: POMDP.from_agent(agent(reward=LISTEN.reward_model)).reward(LISTEN.belief, LISTEN_ACTION),
        -1,
    ),
    "problem for an agent": Case(
        lambda: POMDP.from_agent(tiger()), "It is a POMDP already", lambda: tiger().discount, 0.95
    ),
    "no agent": Case(lambda: POMDP.from_agent(None), "Pass one", lambda: stays(agent()), 1),
    "agent without actions": Case(
        lambda: POMDP.from_agent(agent(policy=NoActions())),
        "Pass actions=[...]",
        lambda: stays(agent(policy=NoActions()), actions=list(LISTENED)),
        1,
    ),
    "no samples to count": Case(
        lambda: POMDP.from_agent(agent(transition=Listed()), n_samples=10),
        "Pass states=[...]",
        lambda: stays(agent(transition=Listed()), states=STATES),
        1,
    ),
    "neither samples nor states": Case(
        lambda: POMDP.from_agent(agent(transition=Chances())),
        "Pass states=[...]",
        lambda: stays(agent(transition=Chances()), states=STATES),
        1,
    ),
    "too many objects": Case(lambda: many_objects(7), "Use fewer objects", lambda: len(many_objects(2)), 100),
    "no probability to divide by": Case(
        lambda: stays(agent(transition=Sampled(0.0)), normalize=True),
        "Change the model",
        lambda: stays(agent(transition=Sampled(0.5)), normalize=True),
        1,
    ),
    "no probability to divide by, other advice": Case(
        lambda: stays(agent(transition=Sampled(0.0)), normalize=True),
        "n_samples=1000",
        lambda: stays(agent(transition=Sampled(0.0)), normalize=True, n_samples=1000),
        1,
    ),
    "generative agent": Case(
        lambda: POMDP.from_agent(agent(transition=None)), "Add one", lambda: stays(agent(transition=Sampled())), 1
    ),
    "file: unknown section": Case(
        lambda: read_pomdp(WRONG_SECTION),
        "Remove it, or correct the name",
        lambda: read_pomdp(WRONG_SECTION.replace("rewards: y\n", "")).discount,
        0.9,
    ),
    "file: POMDPX": Case(
        lambda: read_pomdp(POMDPX + "\n"),
        "pass them to POMDP.from_arrays",
        value,
        3,
    ),
    "file: previous state": Case(
        lambda: write_pomdp(two(**LASTING), "no.pomdp"),
        "Make the previous state a part of the next state",
        lambda: write_pomdp(two(**KEPT), "yes.pomdp") or read_pomdp("yes.pomdp").discount,
        0.9,
    ),
}
LISTEN_ACTION = next(action for action in LISTENED if "listen" in str(action))


@pytest.mark.parametrize("name", RAISED)
def test_the_advice_of_an_error_is_taken(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, advice, taken, expected = RAISED[name]
    with pytest.raises((PomdpHierError, TypeError)) as caught:
        wrong()
    assert advice in str(caught.value)
    result = taken()
    assert result == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_functions_inside_others_are_pickled_by_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    with pytest.raises(PomdpHierError, match="or pickle with cloudpickle"):
        pickle.dumps(two())
    assert pickle.loads(cloudpickle.dumps(two(reward=lambda s, a: 4.0))).reward({"a": 1}, "go") == 4


def test_samples_that_are_not_those_of_the_probabilities():
    def issues(transition, **settings):
        return check_problem(POMDP.from_agent(agent(transition=transition), states=STATES, terminal=[], **settings))

    wrong = issues(Moves())
    assert {issue.code for issue in wrong} >= {"inconsistent-samples"}
    assert "Change sample() or probability(), or count samples: from_agent(n_samples=1000)" in wrong[0].remedy
    assert issues(Sampled()) == issues(Moves(), n_samples=1000) == []


def test_a_terminal_state_that_is_none_is_removed_or_named_rightly():
    states = {"transition": lambda s, a: "end", "initial_belief": {"a": 1}}
    for wrong, advice, right in (
        (["ende"], "Use the nearest name, 'end', or remove it", ["end"]),
        (["zzz"], "Remove it", []),
    ):
        assert advice in check_problem(two(**states, reward=lambda s, a: 0.0, terminal=wrong))[0].remedy
        assert check_problem(two(**states, reward=lambda s, a: 0.0, terminal=right)) == []
    listed = {
        "transition": lambda s, a: "zzz" if s == "zzz" else "end",
        "initial_belief": {"a": 1},
        "states": ["a", "end", "zzz"],
    }
    assert check_problem(two(**listed, reward=lambda s, a: 0.0, terminal=["end", "zzz"])) == []
