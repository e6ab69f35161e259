"""Pruning of alpha vectors, held against what is best on every piece of the simplex, worked out without programs."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from pomdp_hier.errors import PlanningError
from pomdp_hier.planning import alpha_vectors
from pomdp_hier.planning.alpha_vectors import Points, prune, prune_together

TOLERANCE = 1e-10


def best_on_an_interval(vectors):
    """The vectors of two states that alone are best somewhere: between the crossings, in fractions."""
    lines = [(Fraction(left), Fraction(right)) for left, right in vectors.tolist()]
    cuts = {Fraction(0), Fraction(1)}
    for (a, b), (c, d) in itertools.combinations(lines, 2):
        if (slope := (b - a) - (d - c)) != 0:
            cuts.add((c - a) / slope)
    ends = sorted(cut for cut in cuts if 0 <= cut <= 1)
    found = set()
    for x in [(one + other) / 2 for one, other in itertools.pairwise(ends)]:
        values = [left + x * (right - left) for left, right in lines]
        found |= {i for i, value in enumerate(values) if value == max(values)}
    return found


def greatest_margin(vectors, i):
    """``max_b min_k b (v_i - v_k)`` over the simplex, at the corners of the program's polytope: all of them."""
    size, gaps = vectors.shape[1], vectors[i] - np.delete(vectors, i, axis=0)
    rows = np.concatenate([np.column_stack([gaps, -np.ones(len(gaps))]), np.eye(size, size + 1)])  # >= 0
    margins = []
    for active in itertools.combinations(range(len(rows)), size):
        system = np.vstack([rows[list(active)], np.append(np.ones(size), 0)])
        if abs(np.linalg.det(system)) > 1e-9:
            corner = np.linalg.solve(system, np.eye(size + 1)[-1])
            if (rows @ corner >= -1e-9).all():
                margins.append(corner[-1])
    return max(margins)


@pytest.mark.parametrize("seed", range(8))
def test_what_stays_of_two_states_is_what_is_best_on_an_interval(seed):
    rng = np.random.default_rng(seed)
    vectors = np.unique(rng.integers(-9 - 3 * seed, 9, size=(3 + 2 * seed, 2)), axis=0)
    vectors = rng.permutation(vectors)
    points = Points(2)
    for _ in range(2):  # the second time with the beliefs of the first
        assert set(prune(vectors.astype(float), TOLERANCE, points).tolist()) == best_on_an_interval(vectors)


@pytest.mark.parametrize("seed", range(6))
def test_what_stays_of_three_states_has_a_margin(seed):
    rng = np.random.default_rng(seed)
    vectors = np.unique(rng.integers(-6, 7, size=(7, 3)), axis=0).astype(float)
    expected = {i for i in range(len(vectors)) if greatest_margin(vectors, i) > 1e-9}
    assert set(prune(vectors, TOLERANCE, Points(3)).tolist()) == expected


def tangents(n, lift):
    """Return tangents of a parabola at 0, 1, ..., n, and between each two a line so much above where they cross.

    The tangent at ``i`` is ``2 i x - i^2`` for ``x`` in [0, n]; neighbours cross at ``i + 1/2``, at ``i^2 + i``.
    """
    at = np.arange(n + 1.0)
    between = at[:-1] + 0.5
    lines = [np.column_stack([-(at**2), 2 * n * at - at**2])]
    height = between**2 - 0.25 + lift - 2 * between * between  # at x = 0
    lines.append(np.column_stack([height, height + 2 * n * between]))
    return np.concatenate(lines)


@pytest.mark.parametrize("order", [1, -1])
def test_many_vectors_that_are_best_close_by_one_another(order):
    n = 16
    for lift, kept in ((-1e-3, n + 1), (0, n + 1), (1e-3, 2 * n + 1)):
        vectors = tangents(n, lift)[::order]
        expected = sorted(np.arange(len(vectors))[::order][:kept])
        assert prune(vectors, TOLERANCE, Points(2)).tolist() == expected


@pytest.mark.parametrize("lift", [1e-3, -1e-3])
def test_a_vector_is_held_against_more_rivals_until_one_of_them_or_a_belief_is_proof(lift, monkeypatch):
    """The first two rivals are far off, since the beliefs that should tell which are close are in disorder."""
    monkeypatch.setattr(alpha_vectors, "_NEAR", 1)
    n = 16
    vectors, kept, waiting = tangents(n, lift), np.arange(n + 1), np.arange(n + 1, 2 * n + 1)
    beliefs = np.column_stack([1 - kept / n, kept / n])[::-1]
    search = alpha_vectors._asked(vectors, waiting, kept, beliefs, 1.0, TOLERANCE)
    asked, found, margins = alpha_vectors._answered([search])[0]
    assert asked.tolist() == waiting.tolist()
    assert margins == pytest.approx(np.full(n, lift))
    assert (vectors[asked] * found).sum(axis=1) - (found @ vectors[kept].T).max(axis=1) == pytest.approx(margins)


def test_what_is_left_out_is_no_better_than_the_tolerance():
    vectors = tangents(20, 1e-3)
    belief = np.linspace(0, 1, 20 * 8 + 1)
    values = vectors @ np.stack([1 - belief, belief])
    for tolerance, left_out in ((1e-7, False), (1e-4, True)):  # of the greatest entry, 400: 0.00004 and 0.04
        kept = prune(vectors, tolerance, Points(2))
        assert (len(kept) < len(vectors)) is left_out
        lost = (values.max(axis=0) - values[kept].max(axis=0)).max()
        assert (0 < lost <= tolerance * 400) if left_out else lost == 0


def test_of_equal_vectors_one_stays_and_what_only_ties_goes():
    assert prune(np.array([[1.0, 2.0]] * 3), TOLERANCE, Points(2)).tolist() in ([0], [1], [2])
    assert len(prune(np.zeros((2, 2)), TOLERANCE, Points(2))) == 1
    assert prune(np.array([[0.0, 4], [4, 0], [2, 2]]), TOLERANCE, Points(2)).tolist() == [0, 1]
    assert prune(np.array([[0.0, 4], [4, 0], [0, 3.5], [3, -1]]), TOLERANCE, Points(2)).tolist() == [0, 1]
    one_state = np.array([[1.0], [3.0], [2.0]])
    assert prune(one_state, TOLERANCE, Points(1)).tolist() == [1]


def test_plans_of_other_legality_are_compared_where_both_are_legal_alone():
    illegal = -np.inf
    vectors = np.array(
        [
            [5.0, illegal, 1.0],  # legal in fewer states than the last, above it in one
            [1.0, illegal, 1.0],  # below the last wherever it is legal
            [illegal, illegal, illegal],
            [2.0, illegal, 2.0],  # a tie with the first and the next, in the middle between them
            [-1.0, illegal, 3.0],
            [1.0, 1.0, 1.0],
        ]
    )
    assert prune(vectors, TOLERANCE, Points(3)).tolist() == [0, 4, 5]


def test_a_plan_whose_action_is_legal_more_often_stays_beside_a_better_one():
    vectors = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 3.0]])
    seldom, often = [True, False], [True, True]
    assert prune(vectors, TOLERANCE, Points(2), np.array([often, seldom, seldom])).tolist() == [0, 1, 2]
    assert prune(vectors, TOLERANCE, Points(2), np.array([seldom, often, often])).tolist() == [1, 2]
    assert prune(vectors, TOLERANCE, Points(2), np.array([often, often, seldom])).tolist() == [1, 2]
    nowhere = np.array([[1.0, 1.0], [-np.inf, -np.inf]])
    assert prune(nowhere, TOLERANCE, Points(2), np.array([seldom, often])).tolist() == [0]


def test_points_are_remembered_once_and_normalised_over_the_states_in_question():
    points = Points(3)
    everywhere = np.arange(3)
    assert points.over(everywhere, 1).tolist() == [[1 / 3] * 3, [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    for _ in range(2):
        points.add(np.array([0, 2]), np.array([[0.25, 0.75], [1, 0]]))  # the second is a corner
    assert points.over(everywhere, 1)[4:].tolist() == [[0.25, 0, 0.75]]
    assert points.over(np.array([1, 2]), 1).tolist() == [[0.5, 0.5], [1, 0], [0, 1], [0, 1]]
    assert len(points.over(everywhere, 10**7)) == 1


def test_beliefs_where_vectors_were_best_spare_programs(monkeypatch):
    solved = []
    games = alpha_vectors._solved_games
    monkeypatch.setattr(alpha_vectors, "_solved_games", lambda gaps: solved.append(gaps) or games(gaps))
    points, vectors = Points(2), tangents(12, 0.1)
    assert len(prune(vectors, TOLERANCE, points)) == 25
    assert solved
    solved.clear()
    assert len(prune(vectors + 1, TOLERANCE, points)) == 25
    assert not solved


@pytest.mark.parametrize("most", [1, 200, 50_000])
def test_sets_pruned_together_are_those_pruned_alone(monkeypatch, most):
    rng = np.random.default_rng(5)
    sets = [rng.normal(size=(size, 4)) for size in (1, 3, 40, 12, 30)]
    sets[2][::3, 0] = sets[4][::2, 1] = sets[4][::3, 3] = -np.inf
    sets.append(tangents(12, 0.1))
    expected = [prune(vectors, TOLERANCE, Points(vectors.shape[1])).tolist() for vectors in sets]
    asked, games = [], alpha_vectors._solved_games
    monkeypatch.setattr(alpha_vectors, "_LP_ENTRIES", most)
    monkeypatch.setattr(alpha_vectors, "_solved_games", lambda gaps: asked.append(gaps.shape) or games(gaps))
    points = Points(4)
    assert [found.tolist() for found in prune_together(sets[:-1], TOLERANCE, points)] == expected[:-1]
    assert all(np.prod(shape) <= most or shape[0] == 1 for shape in asked)
    assert prune_together([*sets[-1:] * 2], TOLERANCE, Points(2))[1].tolist() == expected[-1]
    assert prune_together([], TOLERANCE, points) == []


def test_a_program_that_fails_is_an_error(monkeypatch):
    failed = SimpleNamespace(status=4, message="numerical difficulties")
    monkeypatch.setattr(alpha_vectors, "_MOST_PIVOTS", 0)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *args, **options: failed)
    with pytest.raises(PlanningError, match=r"2 vectors.*numerical difficulties"):
        prune(np.array([[0.0, 4], [4, 0], [2, 1.5]]), TOLERANCE, Points(2))


@pytest.mark.parametrize("compared", [0, 10**9])
def test_vectors_that_others_equal_or_exceed_are_the_same_by_either_comparison(monkeypatch, compared):
    monkeypatch.setattr(alpha_vectors, "_COMPARED", compared)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        vectors = rng.integers(0, 4, (int(rng.integers(1, 12)), 3)).astype(float)
        vectors[rng.random(vectors.shape) < 0.1] = -np.inf
        labels = rng.random((len(vectors), 2)) < 0.7 if seed % 2 else None
        rows = vectors if labels is None else np.hstack([vectors, labels])
        expected = [
            i
            for i, row in enumerate(rows)
            if not any((row <= other).all() and ((row < other).any() or j < i) for j, other in enumerate(rows))
        ]
        assert alpha_vectors._not_dominated(vectors, labels).tolist() == expected
