import numpy as np
import pytest
from hypothesis import given

from pomdp_hier import POMDP, BayesUpdater, compare_updaters
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.errors import ImpossibleObservationError, ModelError
from pomdp_hier.problems import tiger
from tests.random_problems import random_arrays, sizes_and_seed


@given(sizes_and_seed())
def test_both_forms_of_belief_are_updated_as_dense_bayes_does(drawn):
    arrays = random_arrays(*drawn)
    problem = arrays.problem()
    updater = TabularUpdater(problem)
    for a in problem.all_actions:
        assert np.allclose(updater.predict(arrays.start, a), arrays.start @ arrays.T[a], atol=1e-15)
        branches = {o: (p, b) for o, p, b in updater.branches(arrays.start, a)}
        for o in problem.all_observations:
            evidence, posterior = arrays.posterior(arrays.start, a, o)
            assert updater.evidence(problem.initial_belief, a, o) == pytest.approx(evidence, abs=1e-14)
            if evidence:
                assert np.allclose(updater.update(arrays.start, a, o), posterior, atol=1e-14, rtol=0)
                named = updater.update(problem.initial_belief, a, o)
                assert [named[s] for s in problem.states] == pytest.approx(posterior, abs=1e-14)
                assert branches[o][0] == pytest.approx(evidence, abs=1e-14)
                assert np.allclose(branches[o][1], posterior, atol=1e-14, rtol=0)
            else:
                assert o not in branches
                with pytest.raises(ImpossibleObservationError):
                    updater.update(arrays.start, a, o)


def test_it_agrees_with_bayes_on_observations_of_the_state_left():
    problem = POMDP(
        transition=lambda s, a: {(s + a) % 5: 0.7, s: 0.3},
        observation=lambda t, a, s: {"moved": 0.9, "stayed": 0.1} if t != s else {"stayed": 1.0},
        reward=lambda s, a: 0,
        initial_belief=dict.fromkeys(range(5), 0.2),
        legal_actions=[1, 2],
    )
    agreement = compare_updaters(BayesUpdater(problem), TabularUpdater(problem), problem, depth=4, tolerance=1e-14)
    assert agreement.agrees
    assert agreement.n_compared == 4 + 16 + 64 + 256


def test_names_and_shapes_are_checked():
    updater = TabularUpdater(tiger().compiled)
    with pytest.raises(ModelError, match="got 'sing'"):
        updater.update(np.array([0.5, 0.5]), "sing", "hear-left")
    with pytest.raises(ModelError, match=r"shape \(3,\)"):
        updater.predict(np.ones(3) / 3, "listen")


def test_the_belief_given_is_not_written_to():
    belief = np.array([0.5, 0.5])
    TabularUpdater(tiger()).update(belief, "listen", "hear-left")
    assert belief.tolist() == [0.5, 0.5]


def test_a_dict_is_a_belief_and_a_list_is_none():
    updater = TabularUpdater(tiger())
    assert updater.update({"tiger-left": 0.5, "tiger-right": 0.5}, "listen", "hear-left")["tiger-left"] == 0.85
    with pytest.raises(ModelError, match="expected a Belief or a dict"):
        updater.update([0.5, 0.5], "listen", "hear-left")
    with pytest.raises(ModelError, match="TabularUpdater: got 3"):
        TabularUpdater(3)
