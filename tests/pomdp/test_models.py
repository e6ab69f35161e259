import random
from collections import Counter
from fractions import Fraction

import pomdp_py
import pytest

from pomdp_hier import Belief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.models import as_observation, as_reward, as_transition


class Walk(TransitionModel):
    def distribution(self, state, action):
        return {state + 1: Fraction(3, 4), state: Fraction(1, 4)}


def test_all_that_pomdp_py_asks_follows_from_the_distribution():
    walk = Walk()
    assert isinstance(walk, pomdp_py.TransitionModel)
    assert (walk.probability(1, 0, "go"), walk.probability(9, 0, "go")) == (Fraction(3, 4), 0)
    assert walk.argmax(0, "go") == 1
    random.seed(0)
    counts = Counter(walk.sample(0, "go") for _ in range(2000))
    assert counts[1] / 2000 == pytest.approx(0.75, abs=0.03)


def test_an_override_without_the_last_parameter_does_not_depend_on_it():
    class Short(ObservationModel):
        def distribution(self, next_state, action):
            return {"o": 1}

    class Long(ObservationModel):
        def distribution(self, next_state, action, state=None):
            return {state: 1}

    assert (Short().uses_state, Long().uses_state) == (False, True)
    assert Long().probability(None, 0, 0) == 1

    class Toll(RewardModel):
        def reward(self, state, action):
            return 1

    assert (Toll().uses_next_state, Toll().uses_observation) == (False, False)


@pytest.mark.parametrize(
    ("function", "next_state", "observation"),
    [
        (lambda s, a: 1, False, False),
        (lambda s, a, t: 1, True, False),
        (lambda s, a, t, o: 1, True, True),
        (lambda s, a, *rest: 1, True, True),
    ],
)
def test_functions_are_asked_with_as_many_arguments_as_they_take(function, next_state, observation):
    model = as_reward(function)
    assert (model.uses_next_state, model.uses_observation) == (next_state, observation)
    assert (
        model.reward("s", "a", "t", "o") == model.sample("s", "a", "t") == model.argmax("s", "a", "t") == 1
        or observation
    )


def test_distributions_in_any_form():
    assert as_transition(lambda s, a: "certain").distribution(0, 0) == {"certain": 1}
    assert as_transition(lambda s, a: Belief({"x": 0.5, "y": 0.5})).distribution(0, 0) == {"x": 0.5, "y": 0.5}
    assert as_transition(lambda s, a: pomdp_py.Histogram({"x": 1.0})).distribution(0, 0) == {"x": 1.0}
    assert as_transition({(0, "go"): {1: 1}}).distribution(0, "go") == {1: 1}
    assert as_observation({"home": "warm"}).distribution("home", "any") == {"warm": 1}
    assert as_observation(lambda t, a, s: s).distribution(1, "a", 0) == {0: 1}
    assert as_reward({(0, "go", 1): 5, (0, "go"): 2}).reward(0, "go", 3) == 2
    model = Walk()
    assert as_transition(model) is model


@pytest.mark.parametrize("make", [as_transition, as_observation, as_reward])
def test_what_is_no_model_is_refused(make):
    with pytest.raises(ModelError, match="got 3; expected a function, a dict"):
        make(3)


def test_a_missing_entry_is_named():
    with pytest.raises(ModelError, match=r"transition: .*without \(1, 'go'\)"):
        as_transition({(0, "go"): 1}).distribution(1, "go")


def test_an_outcome_that_cannot_be_hashed_is_named():
    with pytest.raises(ModelError, match=r"\[1, 2\], not hashable"):
        as_transition(lambda s, a: [1, 2]).distribution(0, 0)


@pytest.mark.parametrize(
    ("model", "arguments"), [(TransitionModel(), (0, 0)), (ObservationModel(), (0, 0)), (RewardModel(), (0, 0, 0))]
)
def test_a_model_without_its_method_says_which(model, arguments):
    method = model.reward if isinstance(model, RewardModel) else model.distribution
    with pytest.raises(NotImplementedError, match="must define"):
        method(*arguments)


def test_the_probability_of_a_reward():
    model = as_reward(lambda s, a: 2)
    assert (model.probability(2, 0, 0, 0), model.probability(1, 0, 0, 0)) == (1.0, 0.0)


def test_a_reward_model_may_look_at_the_first_two_parts_alone():
    class Toll(RewardModel):
        def reward(self, state, action):
            return state

    assert (Toll().sample(2, "go", 3), Toll().argmax(2, "go", 3), Toll().probability(2, 2, "go", 3)) == (2, 2, 1.0)


@pytest.mark.parametrize(("wrap", "model"), [(as_transition, TransitionModel), (as_reward, RewardModel)])
def test_a_class_in_the_place_of_its_instance_is_refused_at_once(wrap, model):
    with pytest.raises(ModelError, match=rf"{model.__name__}; .*{model.__name__}\(\)"):
        wrap(model)


def test_a_model_that_returns_nothing_or_pairs_is_told_what_to_return():
    with pytest.raises(ModelError, match="got None"):
        as_observation(lambda s, a: None).distribution("s", "a")
    with pytest.raises(ModelError, match=r"for several outcomes a dict, \{outcome: probability\}"):
        as_transition(lambda s, a: [("s", 0.5), ("t", 0.5)]).distribution("s", "a")
