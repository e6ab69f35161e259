import itertools
import pickle
from dataclasses import dataclass
from fractions import Fraction

import pytest
import sympy

from pomdp_hier import POMDP, Belief, State
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.problem import require_problem

HALF = Fraction(1, 2)


def corridor(**changes):
    """Cells 0..3; forward succeeds half the time; 3 is terminal. One sees whether one is at an even cell."""
    return POMDP(
        **{
            "transition": lambda s, a: {s + 1: HALF, s: HALF} if a == "forward" else {max(s - 1, 0): 1},
            "observation": lambda s, a: "even" if s % 2 == 0 else "odd",
            "reward": lambda s, a, t: 10 if t == 3 else -1,
            "initial_belief": {0: HALF, 1: HALF},
            "terminal": [3],
            "legal_actions": ["forward", "back"],
            "discount": HALF,
        }
        | changes
    )


def test_the_spaces_are_found_in_the_order_in_which_they_are_met():
    problem = corridor()
    assert "not enumerated" in repr(problem)
    assert problem.states == (0, 1, 2, 3)
    assert problem.all_actions == ("forward", "back")
    assert problem.all_observations == ("odd", "even")
    assert "4 states" in repr(problem)


def test_given_spaces_are_kept_in_their_order():
    problem = corridor(states=[3, 2, 1, 0, 7], observations=["even", "odd", "none"])
    assert problem.states == (3, 2, 1, 0, 7)
    assert problem.all_observations == ("even", "odd", "none")


def test_a_terminal_state_is_absorbing_and_earns_nothing():
    problem = corridor()
    assert problem.successors(3, "forward") == {3: 1}
    assert problem.step_reward(3, "forward", 3) == problem.expected_reward(3, "back") == 0
    assert problem.is_terminal_belief(Belief.certain(3))
    assert not problem.is_terminal_belief(Belief({3: 0.5, 2: 0.5}))
    assert problem.actions(Belief.certain(3)) == ()


def test_rewards_are_expected_over_successors():
    problem = corridor()
    assert problem.expected_reward(2, "forward") == Fraction(9, 2)
    assert problem.reward(Belief({2: HALF, 0: HALF}), "forward") == Fraction(7, 4)


def test_rewards_may_depend_on_the_observation():
    problem = corridor(
        observation=lambda s, a: {"hit": Fraction(1, 4), "miss": Fraction(3, 4)},
        reward=lambda s, a, t, o: 8 if o == "hit" else 0,
    )
    assert problem.expected_reward(0, "back") == 2


def test_observations_may_depend_on_the_state_left():
    problem = corridor(observation=lambda t, a, s: "moved" if t != s else "stayed")
    assert problem.joint(problem.initial_belief, "forward") == {
        "moved": {1: Fraction(1, 4), 2: Fraction(1, 4)},
        "stayed": {0: Fraction(1, 4), 1: Fraction(1, 4)},
    }
    assert problem.observation_probabilities(problem.initial_belief, "forward") == {"moved": HALF, "stayed": HALF}
    assert problem.predict(problem.initial_belief, "forward")[1] == HALF


def test_the_joint_holds_what_is_possible_and_nothing_else():
    problem = corridor(transition=lambda s, a: {s + 1: 1, s: 0})
    assert problem.joint(Belief.certain(0), "forward") == {"odd": {1: 1}}
    assert problem.observations(Belief.certain(0), "forward") == ("odd",)


def test_legal_by_state():
    problem = corridor(legal_actions=lambda s: ["forward"] if s == 0 else ["back", "forward"])
    assert problem.all_actions == ("forward", "back")
    assert problem.actions(Belief.certain(1)) == ("back", "forward")
    assert problem.actions() == ("forward",)  # what all states of the belief allow
    assert problem.actions(Belief({0: 0.5, 3: 0.5})) == ("forward",)  # terminal states have no say


def test_no_legal_action_is_an_error():
    problem = corridor(legal_actions=lambda s: ["forward"] if s == 0 else ["back"])
    with pytest.raises(ModelError, match="all 2 states"):
        problem.actions()


def test_legal_by_observation():
    rules = {None: ["forward"], "even": ["forward", "back"], "odd": ["back"]}
    problem = corridor(legal_actions=rules.get, legal_by="observation", actions=["forward", "back"])
    assert problem.actions() == ("forward",)
    assert problem.actions(observation="odd") == ("back",)
    with pytest.raises(ModelError, match="Pass actions="):
        assert corridor(legal_actions=rules.get, legal_by="observation").states


def test_legal_by_belief():
    problem = corridor(
        legal_actions=lambda b: ["forward"] if b[0] > b[1] else ["back"],
        legal_by="belief",
        actions=["forward", "back"],
    )
    assert problem.actions(Belief.certain(0)) == ("forward",)
    assert problem.states == (0, 1, 2, 3)
    with pytest.raises(ModelError, match="a function of the belief"):
        assert problem.compiled


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": 1.5}, r"discount: got 1\.5; expected a number in \[0, 1\]\.$"),
        ({"discount": float("nan")}, "discount: got nan"),
        ({"legal_actions": []}, "got no action"),
        ({"legal_actions": ["a", "a"]}, "got 'a' twice"),
        ({"legal_actions": "forward"}, r"legal_actions: .*'forward'; .*\['forward'\]"),
        ({"legal_actions": None}, "legal_actions: .*None"),
        ({"terminal": "end"}, "terminal: .*'end'"),
        ({"terminal": 3}, "terminal: .*3; expected"),
        ({"states": [[1], [2]]}, "cannot be hashed"),
        ({"legal_by": "mood"}, "legal_by: got 'mood'"),
        ({"transition": 5}, "transition: got 5"),
        ({"initial_belief": {0: 0.5}}, "sum to 0.5"),
    ],
)
def test_arguments_that_cannot_be_are_refused(change, message):
    with pytest.raises(ModelError, match=message):
        corridor(**change)


def test_an_infinite_problem_is_given_up():
    with pytest.raises(ModelError, match="got more than 50"):
        assert corridor(terminal=None, max_states=50).states


def test_models_need_not_answer_for_terminal_states_that_are_recognised():
    problem = POMDP(
        transition={("work", "go"): {"work": 0.5, "done": 0.5}},
        observation={("work", "go"): "busy", ("done", "go"): "bell"},
        reward={("work", "go"): -1},
        initial_belief={"work": 1},
        terminal=["done"],
        legal_actions=["go"],
    )
    assert problem.all_observations == ("busy", "bell")
    assert problem.compiled.reward.tolist() == [[-1, 0]]


def test_what_terminal_states_show_is_asked_where_a_belief_mixes_them_with_others():
    asked = []

    def observation(s, a):
        asked.append((s, a))
        return "dark" if a == "go" else ("over" if s == "done" else "light")

    problem = POMDP(
        transition=lambda s, a: {"work": 0.5, "done": 0.5} if a == "go" else s,
        observation=observation,
        reward=lambda s, a: -1,
        initial_belief={"work": 1},
        terminal=lambda s: s == "done",
        legal_actions=["go", "look"],
    )
    assert problem.all_observations == ("dark", "light", "over")
    assert ("done", "look") in asked
    tabular = problem.compiled
    mixed = tabular.predict(tabular.initial, 0)
    assert tabular.outcomes(mixed, 1).sum() == pytest.approx(1)


def test_symbols_go_through_a_problem():
    p = sympy.Symbol("p", positive=True)
    problem = corridor(transition=lambda s, a: {s + 1: p, s: 1 - p})
    assert sympy.simplify(problem.expected_reward(2, "forward") - (11 * p - 1)) == 0
    assert problem.states == (0, 1, 2, 3)


@dataclass(frozen=True)
class Cell(State):
    place: int


class Walk(TransitionModel):
    def distribution(self, state, action):
        return {Cell(1 - state.place): 1}


class See(ObservationModel):
    def distribution(self, next_state, action):
        return {next_state.place: 1}


class Earn(RewardModel):
    def reward(self, state, action):
        return state.place


def test_a_problem_of_models_is_pickled_with_all_it_knows():
    problem = POMDP(
        transition=Walk(),
        observation=See(),
        reward=Earn(),
        initial_belief={Cell(0): 1},
        terminal=[Cell(9)],
        legal_actions=["go"],
    )
    assert problem.compiled.n_states == 2
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.states == problem.states == (Cell(0), Cell(1))
    assert copy.compiled.reward.tolist() == problem.compiled.reward.tolist()
    assert copy.is_terminal(Cell(9))


def test_from_functions_is_the_constructor():
    assert POMDP.from_functions(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: 0,
        initial_belief={"x": 1},
        legal_actions=["stay"],
    ).states == ("x",)


def a_problem(**changes):
    given = {
        "transition": lambda s, a: s,
        "observation": lambda s, a: "seen",
        "reward": lambda s, a: 0,
        "initial_belief": {"here": 1},
        "legal_actions": ["wait"],
    }
    return POMDP(**{**given, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": 95}, "Write 95 % as 0.95"),
        ({"discount": "0.95"}, "discount: got '0.95'; .* without quotes"),
        ({"legal_actions": {"here": ["wait"]}}, "legal_actions: .*; expected actions, or a function"),
        ({"initial_belief": ["here"]}, "expected a dict"),
    ],
)
def test_what_people_write_by_mistake_is_refused_with_a_remedy(change, message):
    with pytest.raises(ModelError, match=message):
        a_problem(**change)


def test_actions_given_as_a_set_stand_in_one_order_in_every_run():
    assert a_problem(legal_actions={"wait", "go", "look", "turn"}).all_actions == ("go", "look", "turn", "wait")


def test_states_that_compare_by_identity_are_named_where_exploring_gives_up():
    class Place(State):
        pass

    with pytest.raises(ModelError, match=r"such as .*Make Place a frozen dataclass"):
        print(a_problem(transition=lambda s, a: Place(), max_states=20).states)


def test_something_else_in_the_place_of_a_problem_is_named():
    require_problem(a_problem(), "decide")
    with pytest.raises(ModelError, match=r"decide: got \{'here': 1\}"):
        require_problem({"here": 1}, "decide")


def test_iterators_without_end_are_refused_and_those_that_end_are_read(monkeypatch):
    monkeypatch.setattr("pomdp_hier._io.formats._MOST_YIELDED", 2_000)
    monkeypatch.setattr("pomdp_hier._io.formats._PIECE", 1_000)
    given = {"transition": lambda s, a: s, "observation": lambda s, a: s, "reward": lambda s, a: 0, "discount": 0.9}
    start = {"a": 1}
    for name in ("legal_actions", "states", "actions", "observations", "terminal"):
        with pytest.raises(ModelError, match=rf"{name}: got a count.*3,000"):
            POMDP(**{**given, "initial_belief": start, "legal_actions": ["x"], name: itertools.count()})
    with pytest.raises(ModelError, match=r"belief: got a generator.*3,000"):
        Belief((state, 0.5) for state in itertools.count())
    for endless in (itertools.count(), itertools.repeat([[1.0]])):
        with pytest.raises(ModelError, match="3,000 values and goes on"):
            POMDP.from_arrays(endless, endless, endless)
    with pytest.raises(ModelError, match="T: got 3"):
        POMDP.from_arrays(3, 3, 3)
    assert Belief(iter([("a", 1)])) == Belief({"a": 1})
    assert list(POMDP(**given, initial_belief=start, legal_actions=iter("xy")).all_actions) == ["x", "y"]
