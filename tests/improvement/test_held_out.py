"""Gains on items that had no say, by hand."""

import numpy as np
import pytest

from pomdp_hier._intervals import mean_interval
from pomdp_hier.improvement.entry_point import Rest, fold_of
from pomdp_hier.improvement.search import Made, Proposal


def made(proposal, rises):
    return Made(proposal, 1, np.array(list(rises)), np.array(list(rises.values())))


def test_only_the_items_of_a_fold_are_counted_in_it():
    one, other, never = Proposal("move", (0,), 9, 8), Proposal("merge", (8,), 10, 9), Proposal("move", (7,), 9, 8)
    rest = Rest(0.95)
    assert rest.all().n_items == 0
    rest.add(np.array([0, 1, 2]), np.array([0.0, 0.3, -0.1]), [made(one, {1: 0.3, 5: 7.0}), made(other, {2: -0.1})])
    rest.add(np.array([3, 4, 5]), np.array([0.2, 0.0, 0.1]), [made(one, {1: 9.0, 3: 0.2, 5: 0.1})])
    for held, values in (
        (rest.all(), [0.0, 0.3, -0.1, 0.2, 0.0, 0.1]),
        (rest.of(one), [0.0, 0.3, 0.0, 0.2, 0.0, 0.1]),
        (rest.of(other), [0.0, 0.0, -0.1]),
    ):
        assert held.gain == pytest.approx(np.mean(values))
        assert held.interval == pytest.approx(mean_interval(np.array(values), 0.95))
        assert (held.n_items, held.confirmed) == (len(values), held.interval[0] > 0)
    assert (rest.of(never).n_items, rest.of(never).confirmed) == (0, False)


def test_the_same_split_is_known_again_whatever_number_its_cluster_has():
    rest = Rest(0.95)
    rest.add(np.array([0, 1]), np.array([0.5, 0.1]), [made(Proposal("split", (0, 1), 8, 12), {0: 0.5, 1: 0.1})])
    held = rest.of(Proposal("split", (0, 1), 8, 14))
    assert held.gain == pytest.approx(0.3)
    assert held.interval == pytest.approx(mean_interval(np.array([0.5, 0.1]), 0.95))


def test_every_item_is_in_one_fold_and_neighbours_in_different_ones():
    starts = np.random.default_rng(0).permutation(23)
    fold = fold_of(starts, 4, 1)
    assert np.bincount(fold).min() >= 5
    assert all(len(set(block)) == len(block) for block in np.array_split(fold[np.argsort(starts)][:20], 5))
    assert (fold_of(starts, 4, 1) == fold).all()
    assert (fold_of(starts, 4, 2) != fold).any()
