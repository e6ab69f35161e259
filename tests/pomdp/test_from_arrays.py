from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from pomdp_hier import POMDP, BayesUpdater, compare_updaters
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.errors import ModelError
from tests.random_problems import exact_arrays, random_arrays

T = [[[0.5, 0.5], [0.0, 1.0]]]
Z = [[[1.0, 0.0], [0.25, 0.75]]]
R = [[1.0, 0.0]]


def test_names_default_to_numbers_and_the_start_to_uniform():
    problem = POMDP.from_arrays(T, Z, R)
    assert (problem.states, problem.all_actions, problem.all_observations) == ((0, 1), (0,), (0, 1))
    assert dict(problem.initial_belief) == {0: 0.5, 1: 0.5}


def test_names_are_used_where_they_are_given():
    problem = POMDP.from_arrays(T, Z, R, states="ab", actions=["go"], observations="xy", initial_belief=[1, 0])
    assert problem.successors("a", "go") == {"a": 0.5, "b": 0.5}
    assert problem.joint(problem.initial_belief, "go")["y"] == {"b": 0.375}
    assert problem.expected_reward("a", "go") == 1.0


@pytest.mark.parametrize("n_axes", [2, 3, 4])
def test_rewards_of_each_shape_are_expected_alike_by_the_models_and_the_compiled_form(n_axes):
    arrays = random_arrays(np.random.default_rng(n_axes), 5, 3, 4)
    rewards = arrays.R[..., 0, 0] if n_axes == 2 else arrays.R[..., 0] if n_axes == 3 else arrays.R
    problem = POMDP.from_arrays(arrays.T, arrays.Z, rewards)
    full = np.broadcast_to(rewards.reshape(rewards.shape + (1,) * (4 - n_axes)), arrays.R.shape)
    expected = np.einsum("ast,ato,asto->as", arrays.T, arrays.Z, full)
    assert np.allclose(problem.compiled.reward, expected, atol=1e-14, rtol=0)
    named = [[problem.expected_reward(s, a) for s in problem.states] for a in problem.all_actions]
    assert np.allclose(named, expected, atol=1e-14, rtol=0)


def test_sparse_matrices_are_taken_as_they_are():
    arrays = random_arrays(np.random.default_rng(0), 6, 2, 3)
    sparse_problem = POMDP.from_arrays(
        [sparse.coo_array(m) for m in arrays.T], [sparse.csc_array(m) for m in arrays.Z], arrays.R
    )
    dense = POMDP.from_arrays(arrays.T, arrays.Z, arrays.R).compiled
    for one, other in zip(sparse_problem.compiled.transition, dense.transition, strict=True):
        assert (one != other).nnz == 0
    assert np.array_equal(sparse_problem.compiled.reward, dense.reward)


def test_terminal_rows_become_unit_rows():
    problem = POMDP.from_arrays([[[0.0, 1.0], [1.0, 0.0]]], Z, [[1.0, 5.0]], terminal=[1])
    assert problem.compiled.transition[0].toarray().tolist() == [[0, 1], [0, 1]]
    assert problem.compiled.reward.tolist() == [[1, 0]]


def test_fractions_stay_exact():
    arrays = exact_arrays(np.random.default_rng(1), 4, 2, 3)
    problem = arrays.problem()
    assert all(isinstance(p, Fraction) for p in problem.initial_belief.values())
    joint = problem.joint(problem.initial_belief, 1)
    assert sum(sum(row.values()) for row in joint.values()) == 1
    assert isinstance(problem.expected_reward(0, 0), Fraction)
    assert np.allclose(problem.compiled.reward[1, 2], float(problem.expected_reward(2, 1)), atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[[0.5, 0.4], [0, 1]]], Z, R), r"T\[0, 0\]: .*sums to 0\.9; expected 1 .* Divide"),
        (([[[1.5, -0.5], [0, 1]]], Z, R), r"T\[0, 0, 1\]: got -0\.5; expected a probability"),
        (([[[np.nan, 1], [0, 1]]], Z, R), r"T\[0, 0, 0\]: got nan"),
        ((T, [[[1, 0]]], R), r"Z\[0\]: got shape \(1, 2\); expected 2 rows"),
        ((T, Z * 2, R), "Z: got 2 actions; expected 1"),
        ((T, Z, [[1.0]]), r"R: got shape \(1, 1\)"),
        ((T, Z, [[np.inf, 0]]), r"R\[0, 0\]: got inf"),
        (([[0.5, 0.5]], Z, R), r"T\[0\]: .*shape \(2,\); expected a matrix"),
        (([], Z, R), "T: got no action"),
        (
            (np.array([[[Fraction(1, 2), Fraction(1, 3)], [Fraction(0), Fraction(1)]]], dtype=object), Z, R),
            r"T\[0, 0\]: .*sums to 5/6; expected 1",
        ),
    ],
)
def test_arrays_that_are_no_problem_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        POMDP.from_arrays(*arguments)


def test_wrong_counts_of_names_are_refused():
    with pytest.raises(ModelError, match="states: got 3 names"):
        POMDP.from_arrays(T, Z, R, states="abc")
    with pytest.raises(ModelError, match="initial_belief: got shape \\(3,\\)"):
        POMDP.from_arrays(T, Z, R, initial_belief=[1, 0, 0])


def test_a_looser_tolerance_holds_for_all_that_follows():
    loose = POMDP.from_arrays([[[0.5, 0.49999], [0, 1]]], Z, R, initial_belief=[0.5, 0.49999], tolerance=1e-4)
    assert loose.compiled.transition[0][0, 1] == 0.49999  # and nothing was rescaled
    assert loose.predict(loose.initial_belief, 0)[1] == pytest.approx(0.74998, abs=1e-4)


def test_rewards_may_be_a_function_of_names():
    problem = POMDP.from_arrays(T, Z, lambda s, a, t: 10 * s + t, states=[3, 4])
    assert problem.compiled.reward.tolist() == [[33.5, 44.0]]


def test_predictions_on_arrays_keep_the_looser_tolerance_too():
    loose = POMDP.from_arrays([[[0.5, 0.49999], [0, 1]]], Z, R, tolerance=1e-4)
    updater = TabularUpdater(loose)
    assert sum(updater.predict(loose.initial_belief, 0).values()) == pytest.approx(1, abs=1e-4)
    assert compare_updaters(BayesUpdater(loose), updater, loose, depth=3, tolerance=1e-13).agrees


def test_rows_of_unequal_length_are_refused_with_their_place():
    with pytest.raises(ModelError, match=r"T\[0\]: got rows"):
        POMDP.from_arrays(T=[[[0.5, 0.5], [1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]])


def test_a_zero_that_a_sparse_matrix_holds_is_a_probability():
    stored = sparse.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    problem = POMDP.from_arrays([np.ones((1, 1))], [stored], [[0]])
    assert problem.observation_distribution(0, 0, 0) == {1: 1.0}


STAY = np.array([[[0.5, 0.5], [0.1, 0.9]]])  # T[a, s, s'] whose columns do not sum to 1
SEEN = np.array([[[0.9, 0.0, 0.1], [0.2, 0.8, 0.0]]])  # Z[a, s', o]


@pytest.mark.parametrize(
    ("arrays", "advice", "taken"),
    [
        ((STAY.transpose(0, 2, 1), SEEN, R), "[matrix.T for matrix in T]", lambda T, Z, R: ([m.T for m in T], Z, R)),
        ((STAY, SEEN.transpose(0, 2, 1), R), "[matrix.T for matrix in Z]", lambda T, Z, R: (T, [m.T for m in Z], R)),
        (
            ([sparse.csr_array(STAY[0].T)], SEEN, R),
            "[matrix.T for matrix in T]",
            lambda T, Z, R: ([m.T for m in T], Z, R),
        ),
        ((STAY.swapaxes(0, 1), SEEN, R), "numpy.swapaxes(T, 0, 1)", lambda T, Z, R: (np.swapaxes(T, 0, 1), Z, R)),
        ((STAY, SEEN.swapaxes(0, 1), R), "numpy.swapaxes(Z, 0, 1)", lambda T, Z, R: (T, np.swapaxes(Z, 0, 1), R)),
        ((STAY, SEEN, [[1], [0]]), "numpy.swapaxes(R, 0, 1)", lambda T, Z, R: (T, Z, np.swapaxes(R, 0, 1))),
        ((STAY * 2, SEEN, R), "Divide each row by its sum", lambda T, Z, R: (T / T.sum(axis=2, keepdims=True), Z, R)),
        ((STAY.astype(str), SEEN, R), "array.astype(float)", lambda T, Z, R: (T.astype(float), Z, R)),
        ((STAY, SEEN.astype(str).astype(object), R), "astype(float)", lambda T, Z, R: (T, Z.astype(float), R)),
        ((STAY, SEEN, [["1", "0"]]), "array.astype(float)", lambda T, Z, R: (T, Z, np.asarray(R).astype(float))),
    ],
)
def test_the_advice_on_arrays_is_followed(arrays, advice, taken):
    with pytest.raises(ModelError) as caught:
        POMDP.from_arrays(*arrays)
    assert advice in str(caught.value)
    problem = POMDP.from_arrays(*taken(*arrays))
    assert problem.compiled.transition[0].toarray().tolist() == STAY[0].tolist()
    assert problem.compiled.observation[0].toarray().tolist() == SEEN[0].tolist()


def test_a_row_of_zeros_is_not_to_be_divided():
    with pytest.raises(ModelError, match=r"T\[0, 1\]: .*sums to 0\.0; expected 1 .* Give each state an outcome"):
        POMDP.from_arrays([[[0.5, 0.5], [0, 0]]], SEEN, R)
