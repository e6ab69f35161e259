from fractions import Fraction

import pytest

from pomdp_hier.beliefs import BayesUpdater, BeliefUpdater, FullUpdater, FunctionUpdater, TabularUpdater, as_updater
from pomdp_hier.errors import ImpossibleObservationError, ModelError, ParameterError
from pomdp_hier.pomdp import Belief
from pomdp_hier.problems import tiger

PROBLEM = tiger(accuracy=Fraction(17, 20), discount=Fraction(19, 20))


class Minimal:
    def update(self, belief, action, observation):
        return belief

    def evidence(self, belief, action, observation):
        return Fraction(1, 2)


def test_the_updaters_fulfil_the_protocols():
    for updater in (BayesUpdater(PROBLEM), TabularUpdater(PROBLEM), FunctionUpdater(lambda b, a, o: b, PROBLEM)):
        assert isinstance(updater, FullUpdater)
        assert as_updater(updater, PROBLEM) is updater
    assert isinstance(Minimal(), BeliefUpdater)
    assert not isinstance(Minimal(), FullUpdater)


def test_a_function_becomes_an_updater_whose_other_answers_are_those_of_bayes():
    updater = as_updater(lambda b, a, o: {"tiger-left": 1}, PROBLEM)
    b = PROBLEM.initial_belief
    assert updater.update(b, "listen", "hear-left") == Belief.certain("tiger-left")
    assert updater.evidence(b, "listen", "hear-left") == Fraction(1, 2)
    assert updater.evidence(b, "listen", "never") == 0
    assert updater.predict(b, "open-left") == b
    assert [(o, p) for o, p, _ in updater.branches(b, "listen")] == [
        ("hear-left", Fraction(1, 2)),
        ("hear-right", Fraction(1, 2)),
    ]


def test_an_object_with_two_methods_is_completed():
    updater = as_updater(Minimal(), PROBLEM)
    assert updater.evidence(None, None, None) == Fraction(1, 2)
    assert [p for _, p, _ in updater.branches(PROBLEM.initial_belief, "open-left")] == [Fraction(1, 2)] * 2


def test_a_function_that_gives_no_distribution_is_refused():
    with pytest.raises(ModelError, match="sum to 1/2"):
        as_updater(lambda b, a, o: {"x": Fraction(1, 2)}, PROBLEM).update(PROBLEM.initial_belief, "listen", "hear-left")


def test_what_is_no_updater_is_refused():
    with pytest.raises(ParameterError, match="updater: 3 has no update"):
        as_updater(3, PROBLEM)


@pytest.mark.parametrize("make", [BayesUpdater, TabularUpdater])
@pytest.mark.parametrize("observation", ["hear-right", "never-heard-of"])
def test_an_impossible_observation_names_belief_action_and_observation(make, observation):
    updater = make(tiger(accuracy=1.0))
    belief = Belief.certain("tiger-left")
    assert updater.evidence(belief, "listen", observation) == 0
    with pytest.raises(
        ImpossibleObservationError,
        match=rf"'{observation}' has probability 0 after action 'listen' under a belief over 1 states .*'tiger-left'",
    ):
        updater.update(belief, "listen", observation)


def test_a_class_or_a_function_of_other_arguments_is_refused_at_once():
    with pytest.raises(ParameterError, match=r"BayesUpdater is a class; pass an instance, BayesUpdater\(problem\)"):
        as_updater(BayesUpdater, tiger())
    with pytest.raises(ModelError, match=r"called with \(belief, action, observation\)"):
        as_updater(lambda belief, action: belief, tiger())
