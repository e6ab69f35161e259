"""Updaters of functions and of weighted samples."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from pomdp_hier import BayesUpdater, Belief
from pomdp_hier.beliefs import BeliefUpdater, ParticleUpdater, TabularUpdater
from pomdp_hier.beliefs.updaters import CompleteUpdater, FunctionUpdater, as_updater
from pomdp_hier.errors import ImpossibleObservationError, ModelError, ParameterError
from pomdp_hier.problems import tiger
from tests.random_problems import random_arrays, sizes_and_seed

PROBLEM = tiger(accuracy=Fraction(17, 20), discount=Fraction(19, 20))


class Minimal:
    def update(self, belief, action, observation):
        return belief

    def evidence(self, belief, action, observation):
        return Fraction(1, 2)


def test_the_updaters_fulfil_the_protocols():
    for updater in (BayesUpdater(PROBLEM), TabularUpdater(PROBLEM), FunctionUpdater(lambda b, a, o: b, PROBLEM)):
        assert isinstance(updater, CompleteUpdater)
        assert as_updater(updater, PROBLEM) is updater
    assert isinstance(Minimal(), BeliefUpdater)
    assert not isinstance(Minimal(), CompleteUpdater)


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
    assert updater.evidence(PROBLEM.initial_belief, "listen", "hear-left") == Fraction(1, 2)
    assert [p for _, p, _ in updater.branches(PROBLEM.initial_belief, "open-left")] == [Fraction(1, 2)] * 2


def test_no_updater_means_bayes():
    b = PROBLEM.initial_belief
    assert list(as_updater(None, PROBLEM).branches(b, "listen")) == list(BayesUpdater(PROBLEM).branches(b, "listen"))


@pytest.mark.parametrize("given", [("update",), ("update", "evidence"), ("branches",), ("branches", "predict")])
def test_whatever_methods_an_object_has_answer_and_bayes_the_rest(given):
    def answer_for(updater):
        b = PROBLEM.initial_belief
        return {
            "update": updater.update(b, "listen", "hear-left"),
            "evidence": updater.evidence(b, "listen", "hear-left"),
            "branches": [p for _, p, _ in updater.branches(b, "listen")],
            "predict": updater.predict(b, "listen"),
        }

    methods = {
        "update": lambda self, b, a, o: Belief.certain("tiger-left"),
        "evidence": lambda self, b, a, o: Fraction(1, 7),
        "branches": lambda self, b, a: [("hear-left", Fraction(1, 5), Belief.certain("tiger-right"))],
        "predict": lambda self, b, a: Belief.certain("tiger-left"),
    }
    expected = answer_for(BayesUpdater(PROBLEM))
    expected["predict"] = Belief.certain("tiger-left") if "predict" in given else expected["predict"]
    if "update" in given:
        expected["update"] = Belief.certain("tiger-left")
    if "evidence" in given:
        expected["evidence"] = Fraction(1, 7)
        expected["branches"] = [Fraction(1, 7)] * 2
    if "branches" in given:
        expected["update"], expected["evidence"] = Belief.certain("tiger-right"), Fraction(1, 5)
        expected["branches"] = [Fraction(1, 5)]
    some = type("Some", (), {name: methods[name] for name in given})()
    assert answer_for(as_updater(some, PROBLEM)) == expected


def test_what_is_in_none_of_the_branches_is_impossible():
    silent = type("Silent", (), {"branches": lambda self, b, a: []})()
    updater = as_updater(silent, PROBLEM)
    assert updater.evidence(PROBLEM.initial_belief, "listen", "hear-left") == 0
    with pytest.raises(ImpossibleObservationError, match="got 'hear-left'"):
        updater.update(PROBLEM.initial_belief, "listen", "hear-left")


def test_expressions_are_simplified_in_evidence_and_posterior():
    sympy = pytest.importorskip("sympy")
    p = sympy.Symbol("p", positive=True)
    problem = tiger(accuracy=p, discount=1)
    updater = as_updater(None, problem, simplify=sympy.simplify)
    (observation, evidence, posterior), _ = updater.branches(problem.initial_belief, "listen")
    assert (observation, evidence, posterior["tiger-left"]) == ("hear-left", sympy.Rational(1, 2), p)
    assert updater.update(problem.initial_belief, "listen", "hear-left") == posterior
    assert updater.evidence(problem.initial_belief, "listen", "hear-left") == evidence
    by_function = as_updater(lambda b, a, o: b, problem, simplify=sympy.simplify)
    assert [likely for _, likely, _ in by_function.branches(problem.initial_belief, "listen")] == [evidence, evidence]


def test_a_function_that_gives_no_distribution_is_refused():
    with pytest.raises(ModelError, match="sum to 1/2"):
        as_updater(lambda b, a, o: {"x": Fraction(1, 2)}, PROBLEM).update(PROBLEM.initial_belief, "listen", "hear-left")


def test_what_is_no_updater_is_refused():
    with pytest.raises(ParameterError, match="updater: got 3"):
        as_updater(3, PROBLEM)


@pytest.mark.parametrize("make", [BayesUpdater, TabularUpdater])
@pytest.mark.parametrize("observation", ["hear-right", "never-heard-of"])
def test_an_impossible_observation_names_belief_action_and_observation(make, observation):
    updater = make(tiger(accuracy=1.0))
    belief = Belief.certain("tiger-left")
    assert updater.evidence(belief, "listen", observation) == 0
    with pytest.raises(
        ImpossibleObservationError,
        match=rf"'{observation}', which has probability 0 after action 'listen' under .*'tiger-left'",
    ):
        updater.update(belief, "listen", observation)


def test_a_class_or_a_function_of_other_arguments_is_refused_at_once():
    with pytest.raises(ParameterError, match=r"got the class BayesUpdater"):
        as_updater(BayesUpdater, tiger())
    with pytest.raises(ModelError, match=r"expected \(belief, action, observation\)"):
        as_updater(lambda belief, action: belief, tiger())


@given(sizes_and_seed())
def test_many_particles_come_close_to_bayes(drawn):
    problem = random_arrays(*drawn).problem()
    exact = BayesUpdater(problem)
    for a in problem.all_actions:
        particles = ParticleUpdater(problem, n_particles=20_000, seed=1)
        for o, p, belief in particles.branches(problem.initial_belief, a):
            evidence = exact.evidence(problem.initial_belief, a, o)
            assert p == pytest.approx(evidence, abs=0.02)
            if evidence > 0.05:
                posterior = exact.update(problem.initial_belief, a, o)
                assert [belief[s] for s in problem.states] == pytest.approx(
                    [posterior[s] for s in problem.states], abs=0.06
                )


def test_the_evidence_is_an_unbiased_estimate():
    problem = tiger()
    belief = Belief({"tiger-left": 0.3, "tiger-right": 0.7})
    updater = ParticleUpdater(problem, n_particles=7, seed=0)
    estimates = [updater.evidence(belief, "listen", "hear-left") for _ in range(4000)]
    assert np.mean(estimates) == pytest.approx(0.3 * 0.85 + 0.7 * 0.15, abs=0.004)


def test_the_seed_decides_everything():
    runs = []
    for seed in (5, 5, 6):
        updater = ParticleUpdater(tiger(), n_particles=50, seed=seed)
        belief = tiger().initial_belief
        for action in ("listen", "open-left", "listen"):
            belief = updater.update(belief, action, "hear-left")
        runs.append(belief)
    assert runs[0] == runs[1] != runs[2]


def test_the_prediction_is_a_belief_of_shares():
    belief = ParticleUpdater(tiger(), n_particles=40, seed=0).predict(tiger().initial_belief, "open-left")
    assert sum(belief.values()) == pytest.approx(1)
    assert (belief["tiger-left"] * 40) % 1 == pytest.approx(0, abs=1e-9)


def test_particles_that_cannot_make_the_observation_are_an_error_that_says_so():
    with pytest.raises(ImpossibleObservationError, match=r"got 'hear-right'.* of 10 particles"):
        ParticleUpdater(tiger(accuracy=1.0), n_particles=10, seed=0).update(
            Belief.certain("tiger-left"), "listen", "hear-right"
        )
    with pytest.raises(ParameterError, match="n_particles: got 0"):
        ParticleUpdater(tiger(), n_particles=0)


def test_something_else_than_a_problem_or_a_belief_is_refused():
    with pytest.raises(ModelError, match="ParticleUpdater: got 3"):
        ParticleUpdater(3)
    with pytest.raises(ModelError, match="expected a Belief or a dict"):
        ParticleUpdater(tiger(), seed=1).predict([0.5, 0.5], "listen")


def test_one_particle_is_enough_for_a_belief():
    posterior = ParticleUpdater(tiger(), n_particles=1, seed=0).update(tiger().initial_belief, "listen", "hear-left")
    assert len(posterior) == 1
