import pickle

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.tabular import prefers_dense
from tests.random_problems import exact_arrays, random_arrays, sizes_and_seed


def as_functions(arrays, problem):
    """The same problem from functions, which compiling has to walk."""
    n_states, n_observations = problem.compiled.n_states, problem.compiled.n_observations
    return POMDP(
        transition=lambda s, a: {t: arrays.T[a][s][t] for t in range(n_states)},
        observation=lambda t, a: {o: arrays.Z[a][t][o] for o in range(n_observations)},
        reward=lambda s, a, t, o: arrays.R[a][s][t][o],
        initial_belief=problem.initial_belief,
        legal_actions=problem.all_actions,
        states=problem.states,
        observations=problem.all_observations,
    )


@given(sizes_and_seed())
def test_walked_models_and_taken_arrays_compile_alike(drawn):
    arrays = random_arrays(*drawn)
    problem = arrays.problem()
    walked, taken = as_functions(arrays, problem).compiled, problem.compiled
    for a in range(taken.n_actions):
        assert np.array_equal(walked.transition[a].toarray(), taken.transition[a].toarray())
        reached = walked.transition[a].sum(axis=0) > 0
        assert np.array_equal(walked.observation[a].toarray()[reached], taken.observation[a].toarray()[reached])
    assert np.allclose(walked.reward, taken.reward, atol=1e-13, rtol=0)


@given(sizes_and_seed())
def test_state_dependent_observations_give_the_same_outcomes_as_the_models(drawn):
    arrays = exact_arrays(*drawn)
    base = arrays.problem()
    n = base.compiled.n_observations
    problem = POMDP(
        transition=base.transition,
        observation=lambda t, a, s: {(o + s) % n: p for o, p in enumerate(arrays.Z[a][t])},
        reward=base.reward_model,
        initial_belief=base.initial_belief,
        legal_actions=base.all_actions,
        states=base.states,
        observations=base.all_observations,
    )
    tabular = problem.compiled
    assert tabular.observation is None
    for a in problem.all_actions:
        joint = problem.joint(problem.initial_belief, a)
        dense = tabular.outcomes(tabular.initial, a).toarray()
        branches = {o: (p, posterior) for o, p, posterior in tabular.branches(tabular.initial, a)}
        assert set(branches) == set(joint)
        for o in problem.all_observations:
            row = [float(joint.get(o, {}).get(s, 0)) for s in problem.states]
            assert np.allclose(dense[o], row, atol=1e-15)
            assert np.allclose(tabular.outcome(tabular.initial, a, o), row, atol=1e-15)
            if o in branches:
                assert branches[o][0] == pytest.approx(sum(row), abs=1e-15)
                assert np.allclose(branches[o][1] * branches[o][0], row, atol=1e-15)


def test_an_illegal_action_stays_and_earns_nothing():
    def transition(s, a):
        if (s, a) == ("a", "jump"):
            raise AssertionError("asked about an action that is not legal")
        return "b"

    tabular = POMDP(
        transition=transition,
        observation=lambda s, a: s,
        reward=lambda s, a: 1,
        initial_belief={"a": 1},
        legal_actions=lambda s: ["walk"] if s == "a" else ["walk", "jump"],
    ).compiled
    assert tabular.legal.tolist() == [[True, True], [False, True]]
    assert tabular.transition[1].toarray().tolist() == [[1, 0], [0, 1]]
    assert tabular.reward.tolist() == [[1, 1], [0, 1]]
    assert tabular.legal_actions(np.array([0.5, 0.5])).tolist() == [0]


def test_legality_by_observation_is_a_table():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s,
        reward=lambda s, a: 0,
        initial_belief={"x": 0.5, "y": 0.5},
        legal_actions={None: ["look"], "x": ["look", "take"], "y": ["take"]}.get,
        legal_by="observation",
        actions=["look", "take"],
    )
    tabular = problem.compiled
    assert tabular.legal_after.tolist() == [[True, True], [False, True], [True, False]]
    assert tabular.legal_actions(tabular.initial).tolist() == [0]
    assert tabular.legal_actions(tabular.initial, 1).tolist() == [1]


def base(**changes):
    return POMDP(
        **{
            "transition": lambda s, a: {0: 0.5, 1: 0.5},
            "observation": lambda s, a: {"o": 1.0},
            "reward": lambda s, a: 0.0,
            "initial_belief": {0: 1},
            "legal_actions": ["go"],
            "states": [0, 1],
            "observations": ["o"],
        }
        | changes
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": lambda s, a: {0: 0.5, 1: 0.4}}, r"transition under 'go' from 0: .* sum to 0\.9"),
        ({"transition": lambda s, a: {0: 1.5, 1: -0.5}}, "expected a probability"),
        ({"transition": lambda s, a: {2: 1}}, "got 2; expected a name of the problem's space of 2"),
        ({"observation": lambda s, a: {"x": 1}}, "got 'x'; expected a name of the problem's space of 1"),
        ({"observation": lambda s, a: {"o": 0.9}}, "observation after 'go' in 0"),
        ({"reward": lambda s, a: float("inf")}, "reward of 'go' in 0: got inf"),
        ({"reward": lambda s, a: "much"}, "got the text 'much'"),
        ({"initial_belief": {5: 1}}, "initial belief: got 5"),
        ({"transition": lambda s, a: {0: 0.0, 1: 1.0 - s / 4}}, r"transition under 'go' from 1: .* sum to 0\.75"),
        ({"transition": lambda s, a: {0: 0.0, 1: 1.0} if s == 0 else {1: float("nan")}}, "from 1: got nan"),
        ({"transition": lambda s, a: {0: -1.0 * s, 1: 1.0}}, r"from 1: got -1\.0; expected a probability"),
        ({"observation": lambda s, a: {"o": 1.0} if s == 0 else {"o": "x"}}, "in 1: got the text 'x'"),
        ({"reward": lambda s, a: None if s else 0}, "reward of 'go' in 1: got None"),
    ],
)
def test_faults_are_found_in_compiling(change, message):
    with pytest.raises(ModelError, match=message):
        assert base(**change).compiled


def test_arrays_cannot_be_written_to_and_pickling_keeps_that():
    tabular = base().compiled
    copy = pickle.loads(pickle.dumps(tabular))
    for one in (tabular, copy):
        with pytest.raises(ValueError, match="read-only"):
            one.reward[0, 0] = 1
        with pytest.raises(ValueError, match="read-only"):
            one.transition[0].data[0] = 1
    assert copy.predict(copy.initial, 0).tolist() == [0.5, 0.5]
    assert copy.states == tabular.states


def test_beliefs_and_arrays_are_exchanged():
    tabular = base().compiled
    assert tabular.vector(Belief({1: 0.25, 0: 0.75})).tolist() == [0.75, 0.25]
    assert tabular.belief([0.75, 0.25]) == Belief({0: 0.75, 1: 0.25})
    with pytest.raises(ModelError, match="got 2"):
        tabular.vector(Belief.certain(2))
    with pytest.raises(ModelError, match="shape"):
        tabular.belief([1.0])
    with pytest.raises(ModelError, match="sum to"):
        tabular.belief([0.5, 0.4])


def test_products_are_the_same_whether_dense_or_sparse():
    rng = np.random.default_rng(3)
    for n, k in ((150, 2), (150, 75)):
        rows = np.zeros((n, n))
        for row in rows:
            row[rng.choice(n, k, replace=False)] = rng.dirichlet(np.ones(k))
        tabular = POMDP.from_arrays([rows], [np.ones((n, 1))], np.zeros((1, n))).compiled
        assert tabular.is_dense == (k == 75,)
        assert np.allclose(tabular.predict(tabular.initial, 0), tabular.initial @ rows, atol=1e-16)
    assert not prefers_dense(sparse.csr_array((101, 101)))


def test_a_large_sparse_problem_compiles_without_walking_names():
    n, rng = 10_000, np.random.default_rng(0)

    def rows(width, k):
        columns = rng.integers(0, width, size=(n, k))
        return sparse.csr_array((np.full(n * k, 1 / k), columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, width))

    problem = POMDP.from_arrays(
        [rows(n, 4) for _ in range(3)], [rows(20, 2) for _ in range(3)], np.zeros((3, n)), discount=0.9
    )
    problem.transition.distribution = None  # any walk would call it
    assert problem.compiled.predict(problem.compiled.initial, 0).sum() == pytest.approx(1)


def test_a_row_that_is_off_by_just_the_tolerance_is_compiled():
    leaky = POMDP(
        transition=lambda s, a: {"a": 0.75},
        observation=lambda s, a: "o",
        reward=lambda s, a, t: 4,
        initial_belief={"a": 1},
        legal_actions=["go"],
        tolerance=0.25,
    )
    assert leaky.compiled.reward[0, 0] == leaky.expected_reward("a", "go") == 3
