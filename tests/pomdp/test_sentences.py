"""What this room says of its values: each in its place, with another on either side."""

import io
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief, State, check_problem
from pomdp_hier.errors import ModelError, PomdpFileError
from pomdp_hier.pomdp.models import ObservationModel, TransitionModel
from pomdp_hier.pomdp.pomdp_file import read_pomdp, write_pomdp
from pomdp_hier.pomdp.problem import Tables
from pomdp_hier.problems import tiger


def model(**changes):
    """Two states, one action; any part of it may be another."""
    parts = {
        "transition": lambda s, a: {"here": 0.5, "there": 0.5},
        "observation": lambda s, a: "o",
        "reward": lambda s, a: 1,
        "initial_belief": {"here": 1},
        "legal_actions": ["go"],
        "discount": 0.5,
    }
    return POMDP(**(parts | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"transition": lambda s, a: {"here": "x"}},
            "transition under 'go' from 'here': got the text 'x'",
        ),
        (
            {"transition": lambda s, a: {"here": -0.5, "there": 1.5}},
            "transition under 'go' from 'here': got -0.5",
        ),
        (
            {"observation": lambda s, a: {"o": 0.25}},
            "observation after 'go' in 'here': got probabilities that sum to 0.25; expected 1 (tolerance 1e-09)",
        ),
        ({"reward": lambda s, a: "x"}, "reward of 'go' in 'here': got the text 'x'"),
        ({"reward": lambda s, a: np.inf}, "reward of 'go' in 'here': got inf"),
        (
            {"states": ["here"]},
            "transition from 'here' under 'go': got 'there'; expected a name of the problem's space of 1",
        ),
        (
            {"observations": ["p", "q"]},
            "observation in 'here' after 'go': got 'o'; expected a name of the problem's space of 2",
        ),
        ({"states": ["here", "here"]}, "states: got 'here' twice"),
        ({"states": ["here", ["x"]]}, "states: got ['x']"),
    ],
)
def test_what_cannot_be_compiled(changes, words):
    with pytest.raises(ModelError, match=f"^{re.escape(words)}"):
        _ = model(**changes).compiled


def test_arrays():
    with pytest.raises(ModelError, match=re.escape("T[0]: got shape (1, 2); expected (1, 1) as T[a, s, s']")):
        POMDP.from_arrays(T=[[[1, 0]]], Z=[[[1]]], R=[[0]])
    T = np.array([[[1, 0], [0, 1]], [[Fraction(1), Fraction(0)], [Fraction(3, 2), Fraction(-1, 2)]]], dtype=object)
    with pytest.raises(ModelError, match=re.escape("T[1, 1, 1]: got -1/2; expected a probability in [0, 1]")):
        POMDP.from_arrays(T=T, Z=[[[1], [1]]] * 2, R=[[0, 0]] * 2)
    with pytest.raises(ModelError, match=re.escape("belief: got shape (3,); expected (2,), one number per state")):
        tiger().compiled.belief(np.ones(3))


WALK = (
    "discount: 1\nstates: here there\nactions: go\nobservations: o\nT: go uniform\nO: go uniform\nR: go : * : * : o 1"
)


@pytest.mark.parametrize(
    "problem",
    [
        POMDP.from_arrays(T=[[[1, 0], [0, 1]]], Z=[[[1], [1]]], R=[[0, 0]], states=["here", "there"]),
        read_pomdp(io.StringIO(WALK)),
    ],
    ids=["arrays", "file"],
)
def test_states_and_observations_that_are_not_there(problem):
    (go,) = problem.all_actions
    said = re.escape("state: got 'hree'; expected one of the problem's 2 states, 'here', 'there'")
    for ask in (
        lambda: BayesUpdater(problem).predict({"hree": 1}, go),
        lambda: problem.reward({"hree": 1}, go),
        lambda: problem.transition.distribution("hree", go),
        lambda: problem.observation.distribution("hree", go),
    ):
        with pytest.raises(ModelError, match=said):
            ask()


@dataclass(frozen=True)
class Place(State):
    """A state with a text of its own, which ``print`` shows."""

    name: str

    def __str__(self):
        return f"<{self.name}>"


def test_a_belief():
    one = Belief({"a": 0.25, "b": 0.75})
    assert (repr(one), str(one)) == ("Belief({'a': 0.25, 'b': 0.75})", "{'a': 0.25, 'b': 0.75}")
    named = Belief({Place("c1"): Fraction(3, 4), ("x", 1): Fraction(1, 4)})
    assert str(named) == "{<c1>: 3/4, ('x', 1): 1/4}"
    assert repr(named).startswith("Belief({Place(name='c1'): Fraction(3, 4)")
    many = Belief.uniform(range(8))
    assert repr(many).endswith(" 5: 0.125, ... 2 more})")
    assert str(many).endswith(" 5: 0.125, ... 2 more}")
    with pytest.raises(ModelError, match=r"belief: got -2 .*'a'"):
        Belief.normalized({"a": -2, "b": 3})


def test_a_problem():
    problem = tiger()
    assert repr(problem) == "<POMDP: states not enumerated yet, discount 0.95>"
    _ = problem.compiled
    assert repr(problem) == "<POMDP: 2 states, 3 actions, 2 observations, discount 0.95>"


class Leaves(TransitionModel):
    """Goes from the end, and draws and weighs other states than it lists."""

    def distribution(self, state, action):
        return {"there": 1}

    def sample(self, state, action):
        return "here"

    def probability(self, next_state, state, action):
        return 0.125


class Breaks(ObservationModel):
    def distribution(self, next_state, action):
        raise KeyError("lost")


def test_faults():
    problem = model(
        transition=Leaves(), observation=Breaks(), terminal=["here"], initial_belief={"there": 0.5, "here": 0.5}
    )
    faults = [str(fault) for fault in check_problem(problem)]
    for words in (
        "terminal-not-absorbing: terminal state 'here' under 'go': got 'there'",
        "inconsistent-samples: transition from 'there' under 'go', outcome 'here': got 1.000 of 200 samples",
        "inconsistent-probability: transition from 'there' under 'go', outcome 'there': got probability() says 0.125",
        "model-error: observation in 'there' after 'go': got KeyError: 'lost'",
    ):
        assert any(fault.startswith(words) for fault in faults), (words, faults)


def test_files():
    with pytest.raises(PomdpFileError, match=r"^<stream>:1:1: got .* with NUL in it"):
        read_pomdp(io.BytesIO(b"\0\1\0\1"))
    sympy = pytest.importorskip("sympy")
    with pytest.raises(ModelError, match=r"^R: 0 : here: the reward: got r"):
        write_pomdp(model(reward=lambda s, a: sympy.Symbol("r"), legal_actions=[0]), io.StringIO())
    with pytest.raises(ModelError, match=r"^O: go : here: got 'o'"):
        write_pomdp(model(observations=["p", "q"]), io.StringIO())


def test_rewards_by_observation_are_written_in_their_places():
    seen = model(observation=lambda s, a: {"o": 0.5, "p": 0.5}, reward=lambda s, a, t, o: 2 if o == "p" else 7)
    file = io.StringIO()
    write_pomdp(seen, file)
    assert "R: go : here : there : p 2.0" in file.getvalue().splitlines()


def test_tables_in_a_notebook():
    third = Fraction(1, 3)
    problem = model(transition=lambda s, a: {"here": third, "there": 1 - third}, reward=lambda s, a: -third)
    tables = Tables(problem)
    text = tables._repr_html_()
    assert text.index("<style>") < text.index('<div class="pomdp-tables"><p>2 states, 1 actions, 1 observations')
    assert text.index("<h4>Transition</h4>") < text.index("T(s, go, s") < text.index("<h4>Observation</h4>")
    part = tables.R[0]._repr_html_()
    assert part.index("<style>") < part.index('<div class="pomdp-tables"><table><caption>R(s, a)<small></small>')
    assert "</caption><thead><tr><th>s \\ a</th><th>go</th></tr></thead><tbody><tr><th>here</th><td>&minus;" in part
    assert '&minus;<span class="f"><i>1</i><i>3</i></span></td></tr>' in part
    short = Tables(problem, limit=1)
    assert "T(s, go, s&#x27;)<small>  (1 rows and 1 columns not shown)</small></caption>" in short.T[0].html()
