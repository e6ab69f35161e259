"""Functions of the user: each gets what the names of its parameters say, or is rejected before it is called."""

import inspect
import pickle
from functools import partial

import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief, compare_updaters
from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.planning import RTBSS, ThresholdPolicy
from pomdp_hier.planning.policies import FunctionPolicy, as_policy
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.signatures import SIGNATURES, bind
from pomdp_hier.problems import tiger

VALUES = {
    "state": "left",
    "action": "act",
    "next_state": "reached",
    "observation": "seen",
    "belief": "b",
    "problem": "p",
}
S, A, N, O = "left", "act", "reached", "seen"  # noqa: E741


def function_of(parameters):
    """A function of these parameters that returns what it got, by name."""
    names = [name.split("=")[0].strip("* ") for name in parameters.split(",") if name.strip(" *")]
    return eval(f"lambda {parameters}: [{', '.join(names)}]")


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("transition", "s, a", [S, A]),
        ("transition", "x, u", [S, A]),
        ("transition", "cell, move", [S, A]),
        ("transition", "a, s", [A, S]),
        ("transition", "a, x", [A, S]),
        ("transition", "action, state", [A, S]),
        ("transition", "s, a, p=0.5", [S, A, 0.5]),
        ("transition", "s, a, T=0.5", [S, A, 0.5]),
        ("transition", "s, move='north'", [S, A]),
        ("transition", "*both", [(S, A)]),
        ("transition", "s, *, a", [S, A]),
        ("observation", "s, a", [N, A]),
        ("observation", "state, action", [N, A]),
        ("observation", "x, u", [N, A]),
        ("observation", "a, s", [A, N]),
        ("observation", "next_state, a", [N, A]),
        ("observation", "t, a, s", [N, A, S]),
        ("observation", "next_state, action, state", [N, A, S]),
        ("observation", "s, a, state", [N, A, S]),
        ("observation", "s, a, prev", [N, A, S]),
        ("observation", "cell, a, state", [N, A, S]),
        *(
            ("observation", f"s, a, {name}", [S, A, N])
            for name in ("next_state", "sp", "s_next", "s2", "nextState", "s_")
        ),
        ("observation", "cell, a, target", [S, A, N]),
        ("observation", "sp, s", [N, S]),
        ("observation", "s, a, next_state=None", [S, A, N]),
        ("observation", "s, a, Z=3", [N, A, 3]),
        ("reward", "s, a", [S, A]),
        ("reward", "cell, move", [S, A]),
        ("reward", "action, state", [A, S]),
        ("reward", "s, a, t", [S, A, N]),
        ("reward", "cell, a, target", [S, A, N]),
        ("reward", "s1, a, s2", [S, A, N]),
        ("reward", "s, sp, a", [S, N, A]),
        ("reward", "s, sp", [S, N]),
        ("reward", "s, a, o", [S, A, O]),
        ("reward", "s, a, obs, next_state", [S, A, O, N]),
        ("reward", "x, u, y, z", [S, A, N, O]),
        ("reward", "s, a, _", [S, A, N]),
        ("reward", "s, a, factor=2", [S, A, 2]),
        ("reward", "s, a, *rest", [S, A, (N, O)]),
        ("terminal", "x", [S]),
        ("terminal", "t", [S]),
        ("updater", "b, a, o", ["b", A, O]),
        ("updater", "x, y, z", ["b", A, O]),
        ("updater", "observation, belief, action", [O, "b", A]),
        ("policy", "x", ["b"]),
        ("policy", "x, y", ["p", "b"]),
        ("policy", "belief, problem", ["b", "p"]),
        ("policy", "b, o", ["b", O]),
        ("policy", "x, y, z", ["p", "b", O]),
        ("leaf", "belief, problem", ["b", "p"]),
    ],
)
def test_a_parameter_gets_what_its_name_says(kind, parameters, expected):
    bound = bind(kind, function_of(parameters))
    assert bound.call(*[VALUES[role] for role in SIGNATURES[kind].roles[: bound.count]]) == expected


@pytest.mark.parametrize(
    ("kind", "parameters", "named"),
    [
        ("transition", "s", None),
        ("transition", "s, a, sp", "sp"),
        ("transition", "s, o", "o"),
        ("observation", "s", None),
        ("observation", "s, a, o", "o"),
        ("observation", "o, s, a", "o"),
        ("observation", "x, u, y", "x"),
        ("observation", "state, a, s", "state"),
        ("observation", "cell, a, s", "cell"),
        ("reward", "s", None),
        ("reward", "s, n, a", "n"),
        ("reward", "s, a, x", "x"),
        ("reward", "s, a, state", "state"),
        ("reward", "s, a, t, o, more", None),
        ("terminal", "a", "a"),
        ("terminal", "s, a", "a"),
        ("updater", "belief, action", None),
        ("policy", "s", "s"),
        ("policy", "", None),
        ("leaf", "x, y, z", None),
    ],
)
def test_what_has_no_reading_or_two_is_rejected_with_the_signature(kind, parameters, named):
    wanted = SIGNATURES[kind]
    with pytest.raises(wanted.error) as caught:
        bind(kind, function_of(parameters))
    message = str(caught.value)
    assert message.startswith(f"{kind}: got ({parameters}); expected {wanted}")
    assert named is None or f"'{named}'" in message


@pytest.mark.parametrize(
    ("parameters", "renamed"), [("s, n, a", "s, next_state, a"), ("s, a, x", "s, a, next_state"), ("s, a, state",) * 2]
)
def test_the_new_name_that_a_rejection_suggests_is_taken(parameters, renamed):
    with pytest.raises(ModelError) as caught:
        bind("reward", function_of(parameters))
    assert "such as to 'next_state'" in str(caught.value)
    bind("reward", function_of(renamed.replace("s, a, state", "s, a, next_state")))


def test_no_reading_depends_on_the_order_of_known_names():
    long = {"next_state": "next_state", "state": "previous_state", "action": "action"}
    for order in (
        ("next_state", "action", "state"),
        ("state", "next_state", "action"),
        ("action", "state", "next_state"),
    ):
        bound = bind("observation", function_of(", ".join(long[role] for role in order)))
        assert bound.call(N, A, S) == [VALUES[role] for role in order]


def test_parts_of_functions_objects_and_builtins_are_bound():
    class Chart:
        def __call__(self, s, a, sp):
            return [s, a, sp]

    assert bind("observation", Chart()).call(N, A, S) == [S, A, N]
    assert bind("transition", partial(lambda table, s, a: [table, s, a], "T")).call(S, A) == ["T", S, A]
    assert bind("transition", partial(lambda s, p, a: [s, p, a], p=0.5)).call(S, A) == [S, 0.5, A]
    assert bind("transition", max).call(1, 2) == 2  # it does not tell its parameters
    assert inspect.signature(bind("reward", lambda s, a: 1).call)  # a function in the documented order stays itself


def chart(s, a, next_state):
    return {"quiet": 0.9, "loud": 0.1} if next_state == "new" else {"quiet": 0.2, "loud": 0.8}


def wear(**changes):
    given = {
        "transition": lambda s, a: {"new": 0.5, "worn": 0.5} if s == "new" else "worn",
        "observation": chart,
        "reward": lambda s, sp: 5.0 if s == "new" and sp == "worn" else 0.0,
        "initial_belief": {"new": 1.0},
        "legal_actions": ["run"],
        "discount": 0.9,
    }
    return POMDP(**(given | changes))


def test_models_by_names_have_the_numbers_of_models_by_place():
    named = wear()
    placed = wear(
        observation=lambda t, a: chart(None, a, t), reward=lambda s, a, t: 5.0 if (s, t) == ("new", "worn") else 0
    )
    for problem in (named, placed):
        assert BayesUpdater(problem).update({"new": 1.0}, "run", "loud")["worn"] == pytest.approx(0.8 / 0.9)
        assert problem.reward({"new": 1.0}, "run") == 2.5
        assert problem.compiled.reward.tolist() == [[2.5, 0.0]]
    seen = wear(reward=lambda s, a, o: 10.0 if o == "loud" else 0.0)  # seen without the next state
    assert seen.reward({"new": 1.0}, "run") == pytest.approx(10 * (0.5 * 0.1 + 0.5 * 0.8))
    assert pickle.loads(pickle.dumps(bind("observation", chart).call))(N, A, S) == chart(S, A, N)


class Backwards(ObservationModel):
    def distribution(self, s, a, next_state):
        return {}


class Paid(RewardModel):
    def reward(self, state, action, observation):
        return 0


class Turned(TransitionModel):
    def distribution(self, action, state):
        return {}


@pytest.mark.parametrize(
    ("argument", "model", "method"),
    [
        ("observation", Backwards(), "distribution"),
        ("reward", Paid(), "reward"),
        ("transition", Turned(), "distribution"),
    ],
)
def test_a_method_keeps_the_order_of_the_class_that_it_overrides(argument, model, method):
    with pytest.raises(ModelError, match=rf"^{argument}: got .*; expected .*{method}"):
        wear(**{argument: model})


def test_rules_are_held_to_what_they_are_given():
    assert wear(terminal=lambda x: x == "worn").is_terminal("worn")
    with pytest.raises(ModelError, match=r"^terminal: got \(belief\)"):
        wear(terminal=lambda belief: False)
    with pytest.raises(ModelError, match=r"^legal_actions: got \(o\)"):
        wear(legal_actions=lambda o: ["run"])
    with pytest.raises(ModelError, match=r"^legal_actions: got \(s\)"):
        wear(legal_actions=lambda s: ["run"], legal_by="observation", actions=["run"])
    with pytest.raises(ParameterError, match=r"^rules: got \(belief\)"):
        ThresholdPolicy([(lambda belief: True, 0.5, "run")], otherwise="run")


def test_updaters_and_policies_by_names():
    problem = tiger()
    bayes = BayesUpdater(problem)
    turned = lambda observation, action, belief: bayes.update(belief, action, observation)  # noqa: E731
    assert compare_updaters(bayes, turned, problem, depth=2, tolerance=1e-12).agrees

    class Deaf:
        def update(self, action, belief, observation):
            return belief

    assert as_updater(Deaf(), problem).update(problem.initial_belief, "listen", "hear-left") == problem.initial_belief

    class Whole:
        update = evidence = predict = branches = lambda self, action, belief, observation: belief

    with pytest.raises(ModelError, match=r"^updater: got \(action, belief, observation\)"):
        as_updater(Whole(), problem)
    sure = Belief({"tiger-left": 1.0})
    assert FunctionPolicy(lambda belief, problem: problem.all_actions[len(belief)]).decide(problem, sure).action == (
        "open-left"
    )

    class Turned:
        def decide(self, belief, problem=None, *, observation=None):
            return "listen"

    with pytest.raises(ParameterError, match=r"decide\(belief, problem=None, \*, observation=None\)"):
        as_policy(Turned())


def test_bounds_by_names():
    problem = tiger()
    expected = RTBSS(2, leaf_value=lambda problem, belief: belief["tiger-left"]).decide(problem)
    turned = RTBSS(2, leaf_value=lambda b, p: b["tiger-left"], upper_bound=lambda belief, problem, a, k: 1e3)
    assert turned.decide(problem).value == expected.value
    with pytest.raises(ParameterError, match=r"^upper_bound: got \(problem, belief\)"):
        RTBSS(2, upper_bound=lambda problem, belief: 1)
