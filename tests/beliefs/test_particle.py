import numpy as np
import pytest
from hypothesis import given, settings

from pomdp_hier import BayesUpdater, Belief
from pomdp_hier.beliefs import ParticleUpdater
from pomdp_hier.errors import ImpossibleObservationError, ModelError, ParameterError
from pomdp_hier.problems import tiger
from tests.random_problems import random_arrays, sizes_and_seed


@settings(max_examples=15, deadline=None)
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
