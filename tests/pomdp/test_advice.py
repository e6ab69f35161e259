"""Advice that errors give is taken here: the input, the advice, and the same input with the advice taken."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pomdp_py
import pytest
import sympy

from pomdp_hier import POMDP, BayesUpdater, Belief, State, check_problem, compare_updaters
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.planning import RTBSS
from pomdp_hier.pomdp import ObservationModel, TransitionModel, to_agent
from pomdp_hier.pomdp.models import as_transition
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import tiger


def two(**changes: Any) -> POMDP:
    """Two states, one action; any part of it may be another."""
    parts: dict[str, Any] = {
        "transition": lambda s, a: {"a": 0.5, "b": 0.5},
        "observation": lambda s, a: "o",
        "reward": lambda s, a: 1.0,
        "initial_belief": {"a": 0.5, "b": 0.5},
        "legal_actions": ["go"],
        "discount": 0.9,
    }
    return POMDP(**(parts | changes))


class Place:
    """A state that compares by identity."""

    def __init__(self, n: int) -> None:
        self.n = n


@dataclass(frozen=True)
class Cell(State):
    n: int


class Walk(pomdp_py.TransitionModel):
    """Single probabilities and samples, as pomdp-py has them, over states that it does not list."""

    def probability(self, next_state, state, action):
        return 1.0 if next_state == state else 0.0

    def sample(self, state, action):
        raise TypeError("no sample yet")


def agent(transition=None, **models):
    base = to_agent(tiger())
    return pomdp_py.Agent(
        base.belief,
        base.policy_model,
        transition_model=transition or base.transition_model,
        observation_model=base.observation_model,
        reward_model=models.get("reward", base.reward_model),
    )


FILE = """discount: 0.9
states: a b
actions: go
observations: x
{}
T: go : a {}
T: go : b 0 1
O: * uniform
R: * : * : * : * 1
"""


def file(row: str = "0.5 0.5", start: str = "start: 0.5 0.5", **options: Any) -> Any:
    return read_pomdp(FILE.format(start, row), **options).compiled


class Case(NamedTuple):
    wrong: Callable[[], Any]
    advice: str
    taken: Callable[[], Any]


EXACT = tiger(accuracy=Fraction(3, 4))
LEGAL_BY_BELIEF = {"legal_actions": lambda b: ["go"], "legal_by": "belief", "actions": ["go"]}
DIFFERENT = {"legal_actions": lambda s: [s], "actions": ["a", "b"]}
TURNED = {("go", "a"): "a", ("go", "b"): "b"}

RAISED: dict[str, Case] = {
    "class": Case(
        lambda: as_transition(TransitionModel), "Call TransitionModel()", lambda: as_transition(TransitionModel())
    ),
    "updater class": Case(
        lambda: as_updater(BayesUpdater, tiger()),
        "Call BayesUpdater(problem)",
        lambda: as_updater(BayesUpdater(tiger()), tiger()),
    ),
    "no outcome": Case(
        lambda: two(observation=lambda s, a: None).compiled,
        'Return a name such as "nothing"',
        lambda: two(observation=lambda s, a: "nothing").compiled,
    ),
    "pairs": Case(
        lambda: two(transition=lambda s, a: [("a", 1.0)]).compiled,
        "for several outcomes a dict",
        lambda: two(transition=lambda s, a: {"a": 0.5, "b": 0.5}).compiled,
    ),
    "dict without an entry": Case(
        lambda: two(transition={("a", "go"): "a"}).compiled,
        "Add it, or use a function",
        lambda: two(transition={("a", "go"): "a", ("b", "go"): "b"}).compiled,
    ),
    "dict with turned keys": Case(
        lambda: two(transition=TURNED).compiled,
        "the other order of keys",
        lambda: two(transition={key[::-1]: value for key, value in TURNED.items()}).compiled,
    ),
    "misspelt key": Case(
        lambda: two(transition={("a", "go"): "a", ("b", "go"): "b"}, legal_actions=["goo"]).compiled,
        "the nearest name, 'go'",
        lambda: two(transition={("a", "go"): "a", ("b", "go"): "b"}, legal_actions=["go"]).compiled,
    ),
    "percent": Case(lambda: two(discount=95), "Write 95 % as 0.95", lambda: two(discount=0.95)),
    "text": Case(lambda: two(discount="0.9"), "without quotes", lambda: two(discount=0.9)),
    "text in a belief": Case(
        lambda: two(initial_belief={"a": "1"}), "without quotes", lambda: two(initial_belief={"a": 1})
    ),
    "text as reward": Case(
        lambda: two(reward=lambda s, a: "1").compiled, "without quotes", lambda: two(reward=lambda s, a: 1).compiled
    ),
    "one action": Case(lambda: two(legal_actions="go"), "Write ['go']", lambda: two(legal_actions=["go"])),
    "one terminal state": Case(lambda: two(terminal="a"), "Write ['a']", lambda: two(terminal=["a"])),
    "no tolerance": Case(lambda: two(tolerance="x"), "Use 1e-9", lambda: two(tolerance=1e-9)),
    "actions twice": Case(lambda: two(actions=["go", "go"]), "Remove one of the two", lambda: two(actions=["go"])),
    "not-hashable": Case(lambda: two(states=[["a"], ["b"]]), "Use a string", lambda: two(states=["a", "b"])),
    "weights": Case(
        lambda: Belief({"a": 1, "b": 3}), "Use Belief.normalized", lambda: Belief.normalized({"a": 1, "b": 3})
    ),
    "states alone": Case(
        lambda: Belief(["a", "b", "c"]), "Belief.uniform(states)", lambda: Belief.uniform(["a", "b", "c"])
    ),
    "actions by belief": Case(
        lambda: two(**LEGAL_BY_BELIEF | {"actions": None}).states,
        "Pass actions=[...]",
        lambda: two(**LEGAL_BY_BELIEF).states,
    ),
    "arrays by belief": Case(
        lambda: two(**LEGAL_BY_BELIEF).compiled,
        "Plan on the problem itself, with RTBSS",
        lambda: RTBSS(2, leaf_value="zero", upper_bound="range").decide(two(**LEGAL_BY_BELIEF)),
    ),
    "arrays by belief, other advice": Case(
        lambda: two(**LEGAL_BY_BELIEF).compiled,
        "make them depend on the state",
        lambda: two(legal_actions=lambda s: ["go"], actions=["go"]).compiled,
    ),
    "states by identity": Case(
        lambda: two(transition=lambda s, a: Place(1), initial_belief={Place(0): 1}, max_states=9).states,
        "Make Place a frozen dataclass",
        lambda: two(transition=lambda s, a: Cell(1), initial_belief={Cell(0): 1}, max_states=9).states,
    ),
    "many states": Case(
        lambda: two(transition=lambda s, a: min(s + 1, 20), initial_belief={0: 1}, max_states=9).states,
        "pass a larger max_states",
        lambda: two(transition=lambda s, a: min(s + 1, 20), initial_belief={0: 1}, max_states=21).states,
    ),
    "no action in common": Case(
        lambda: two(**DIFFERENT).actions(),
        "Make the state terminal",
        lambda: two(**DIFFERENT, terminal=["a"]).actions(),
    ),
    "no action in common, other advice": Case(
        lambda: two(**DIFFERENT).actions(),
        "add an action that waits",
        lambda: two(legal_actions=lambda s: [s, "wait"], actions=["a", "b", "wait"]).actions(),
    ),
    "no action in common, on arrays": Case(
        lambda: two(**DIFFERENT).compiled.legal_actions(np.array([0.5, 0.5])),
        "Make the state terminal",
        lambda: two(**DIFFERENT, terminal=["a"]).compiled.legal_actions(np.array([0.5, 0.5])),
    ),
    "dict of actions": Case(
        lambda: two(legal_actions={"a": ["go"]}),
        "or a function of the state",
        lambda: two(legal_actions=lambda s: ["go"], actions=["go"]),
    ),
    "not-in-space": Case(
        lambda: two(states=["a"], initial_belief={"a": 1}).compiled,
        "Add it to the space",
        lambda: two(states=["a", "b"], initial_belief={"a": 1}).compiled,
    ),
    "misspelt outcome": Case(
        lambda: two(observations=["open", "shut"], observation=lambda s, a: "opne").compiled,
        "use the nearest name, 'open'",
        lambda: two(observations=["open", "shut"], observation=lambda s, a: "open").compiled,
    ),
    "misspelt action": Case(
        lambda: tiger().reward(tiger().initial_belief, "lisen"),
        "the nearest name, 'listen'",
        lambda: tiger().reward(tiger().initial_belief, "listen"),
    ),
    "observation in a list": Case(
        lambda: BayesUpdater(tiger()).update(tiger().initial_belief, "listen", ["hear-left"]),
        "Use a string",
        lambda: BayesUpdater(tiger()).update(tiger().initial_belief, "listen", "hear-left"),
    ),
    "symbols": Case(
        lambda: two(reward=lambda s, a: sympy.Symbol("r")).compiled,
        "Substitute numbers for its symbols",
        lambda: two(reward=lambda s, a: sympy.Symbol("r").subs("r", 2)).compiled,
    ),
    "too large": Case(
        lambda: two(reward=lambda s, a: 10**400).compiled,
        "Use a larger unit",
        lambda: two(reward=lambda s, a: 10).compiled,
    ),
    "rows of a model": Case(
        lambda: two(transition=lambda s, a: {"a": 0.5}).compiled,
        "Call check_problem(problem)",
        lambda: check_problem(two(transition=lambda s, a: {"a": 0.5}))[0].value == 0.5 or 1 / 0,
    ),
    "no tolerance for floats": Case(
        lambda: compare_updaters(BayesUpdater(two()), TabularUpdater(two()), two(), depth=1),
        "such as 1e-12. Give one",
        lambda: compare_updaters(BayesUpdater(two()), TabularUpdater(two()), two(), depth=1, tolerance=1e-12),
    ),
    "floats, other advice": Case(
        lambda: compare_updaters(None, BayesUpdater(two()), two(), depth=1),
        "use fractions alone",
        lambda: compare_updaters(
            None, BayesUpdater(tiger(accuracy=Fraction(3, 4))), tiger(accuracy=Fraction(3, 4)), depth=1
        ),
    ),
    "types that do not mix": Case(
        lambda: two(reward=lambda s, a, t: 10**400).reward({"a": 0.5, "b": 0.5}, "go"),
        "fractions alone",
        lambda: two(
            reward=lambda s, a, t: 10**400,
            transition=lambda s, a: {"a": Fraction(1, 2), "b": Fraction(1, 2)},
            initial_belief={"a": Fraction(1)},
        ).reward({"a": Fraction(1)}, "go"),
    ),
    "POMDP of pomdp-py": Case(
        lambda: POMDP.from_agent(pomdp_py.POMDP(agent(), None)),
        "Pass its .agent",
        lambda: POMDP.from_agent(pomdp_py.POMDP(agent(), None).agent),
    ),
    "no sample": Case(
        lambda: POMDP.from_agent(agent(Walk())).states,
        "pass states=[...]",
        lambda: POMDP.from_agent(agent(Walk()), states=agent().belief.support).states,
    ),
    "samples of whole models": Case(
        lambda: POMDP.from_agent(agent(), n_samples=10), "Leave it out", lambda: POMDP.from_agent(agent())
    ),
    "not a problem": Case(lambda: check_problem([1]), "Make one with POMDP(...)", lambda: check_problem(two())),
    "file: row of weights": Case(
        lambda: file("0.5 0.4"), "pass normalize=True", lambda: file("0.5 0.4", normalize=True)
    ),
    "file: wider tolerance": Case(
        lambda: file("0.5 0.4"), "pass tolerance=0.2", lambda: file("0.5 0.4", tolerance=0.2)
    ),
    "file: nearly 1": Case(
        lambda: file("0.5 0.4998"), "pass tolerance=0.0003", lambda: file("0.5 0.4998", tolerance=0.0003)
    ),
    "file: exact": Case(
        lambda: file("0.333 0.666", exact=True),
        "or pass normalize=True",
        lambda: file("0.333 0.666", exact=True, normalize=True),
    ),
    "file: start": Case(
        lambda: file(start="start: 0.5 0.4"),
        "pass normalize=True",
        lambda: file(start="start: 0.5 0.4", normalize=True),
    ),
    "file: long exponent": Case(
        lambda: file("1e-9999 1", exact=True), "Read it with exact=False", lambda: file("1e-9999 1", exact=False)
    ),
    **{
        f"terminal {answer!r}": Case(
            lambda answer=answer: two(terminal=lambda s: answer).compiled,
            "expected True or False. Return one of them.",
            lambda answer=answer: two(terminal=lambda s: bool(answer)),
        )
        for answer in (None, "no", [], 2, 0.5)
    },
    "file: no tolerance": Case(lambda: file(tolerance=2), "Use 1e-5", lambda: file(tolerance=1e-5)),
}


@pytest.mark.parametrize("name", RAISED)
def test_the_advice_of_an_error_is_taken(name):
    wrong, advice, taken = RAISED[name]
    with pytest.raises(PomdpHierError) as caught:
        wrong()
    message = str(caught.value)
    assert advice in message, message
    assert ": got " in message, message
    assert "; expected " in message, message
    taken()


def test_advice_that_cannot_work_is_not_given():
    for row, options in (("0 0", {}), ("0 0", {"normalize": True}), ("0.333 0.666", {"exact": True})):
        with pytest.raises(PomdpHierError) as caught:
            file(row, **options)
        message = str(caught.value)
        assert "tolerance=" not in message, message
        assert ("normalize=" in message) == (row != "0 0"), message
    for weights in ({"a": 0}, {"a": float("inf")}):
        with pytest.raises(PomdpHierError) as caught:
            Belief(weights)
        assert "normalized" not in str(caught.value)


class Doubtful(ObservationModel):
    """A model whose probability is not that of its distribution, unless it is left out."""

    def distribution(self, next_state, action):
        return {"o": 0.5, "p": 0.5}

    def probability(self, observation, next_state, action):
        return 0.4


class Plain(ObservationModel):
    def distribution(self, next_state, action):
        return {"o": 0.5, "p": 0.5}


class Rows(TransitionModel):
    def distribution(self, state, action):
        return 3


def ends(reward=1.0, **changes):
    leaves = {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 1.0}}
    return two(transition=lambda s, a: leaves[s], reward=lambda s, a: reward if s == "b" else 1.0, **changes)


FOUND: dict[str, Case] = {
    "row-sum": Case(
        lambda: two(transition=lambda s, a: {"a": 0.5, "b": 0.4}),
        "Divide the row by its sum",
        lambda: two(transition=lambda s, a: {"a": 0.5 / 0.9, "b": 0.4 / 0.9}),
    ),
    "invalid-probability": Case(
        lambda: two(transition=lambda s, a: {"a": "1"}, terminal=[]),
        "without quotes",
        lambda: two(transition=lambda s, a: {"a": 1}, terminal=[]),
    ),
    "reward-not-finite": Case(
        lambda: two(reward=lambda s, a: "1"), "without quotes", lambda: two(reward=lambda s, a: 1)
    ),
    "invalid-distribution": Case(
        lambda: two(transition=Rows()),
        "a dict from outcome to probability",
        lambda: two(transition=lambda s, a: {"a": 0.5, "b": 0.5}),
    ),
    "not-hashable": Case(
        lambda: two(observation=lambda s, a: ["o"]), "Use strings", lambda: two(observation=lambda s, a: "o")
    ),
    "too-many-states": Case(
        lambda: two(transition=lambda s, a: min(s + 1, 20), initial_belief={0: 1}, max_states=9, terminal=[]),
        "pass a larger max_states",
        lambda: two(transition=lambda s, a: min(s + 1, 20), initial_belief={0: 1}, max_states=21, terminal=[]),
    ),
    "inconsistent-equality": Case(
        lambda: two(transition=lambda s, a: Place(1), initial_belief={Place(0): 1}, max_states=9, terminal=[]),
        "Use a frozen dataclass on pomdp_hier's State",
        lambda: two(transition=lambda s, a: Cell(1), initial_belief={Cell(0): 1}, max_states=9, terminal=[]),
    ),
    "no-legal-action": Case(
        lambda: two(legal_actions=lambda s: [], actions=["go"]),
        "Make the state terminal, or add one",
        lambda: two(legal_actions=lambda s: ["go"], actions=["go"]),
    ),
    "not-in-space": Case(
        lambda: two(states=["a"], initial_belief={"a": 1}),
        "List the outcome",
        lambda: two(states=["a", "b"], initial_belief={"a": 1}),
    ),
    "terminal-not-absorbing": Case(
        lambda: two(terminal=["b"], reward=lambda s, a: 0.0),
        "Let the transition model return {state: 1}",
        lambda: ends(reward=0.0, terminal=["b"]),
    ),
    "terminal-reward": Case(
        lambda: ends(terminal=["b"]), "Let the reward model return 0 for it", lambda: ends(reward=0.0, terminal=["b"])
    ),
    "possible-terminal": Case(lambda: ends(), "pass terminal=[]", lambda: ends(terminal=[])),
    "inconsistent-legal-actions": Case(
        lambda: two(legal_actions=lambda s: ["go", s], actions=["go", "a", "b"]),
        "Give both the same",
        lambda: two(legal_actions=lambda s: ["go", "a", "b"], actions=["go", "a", "b"]),
    ),
    "inconsistent-legal-actions, other advice": Case(
        lambda: two(legal_actions=lambda s: ["go", s], actions=["go", "a", "b"], initial_belief={"a": 1}),
        "distinguish them by the observation",
        lambda: two(
            legal_actions=lambda s: ["go", s],
            actions=["go", "a", "b"],
            initial_belief={"a": 1},
            observation=lambda s, a: s,
        ),
    ),
    "inconsistent-probability": Case(
        lambda: two(observation=Doubtful()), "Override distribution() alone", lambda: two(observation=Plain())
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_advice_of_check_problem_is_taken(name):
    wrong, advice, taken = FOUND[name]
    fault = next(f for f in check_problem(wrong()) if f.code == name.split(",")[0])
    assert advice in fault.remedy, fault
    assert ": got " in str(fault)
    assert fault.remedy.startswith("expected ")
    assert check_problem(taken()) == []
