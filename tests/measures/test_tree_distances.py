"""Distances of two trees, held against their definitions pair by pair and triple by triple."""

from itertools import combinations
from math import comb, isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, pearsonr, spearmanr

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import (
    bakers_gamma,
    cophenetic_correlation,
    robinson_foulds,
    triplet_distance,
)
from pomdp_hier.measures.lca_pairs import cost_of_sharing
from pomdp_hier.measures.tree_distances import TripletDistance, common_clusters
from tests.hierarchy_oracle import samples
from tests.measure_oracle import meeting


def random_tree(rng, n):
    """A tree of n items that joins two to four at a time."""
    forest, children = list(range(n)), []
    while len(forest) > 1:
        rng.shuffle(forest)
        width = int(rng.integers(2, 5))
        children.append(forest[:width])
        forest = [*forest[width:], n + len(children) - 1]
    return Hierarchy.from_children(children, n)


TWO_HALVES = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
COMB = Hierarchy.from_children([[0, 1], [4, 2], [5, 3]], 4)
FLAT = Hierarchy.from_children([[0, 1, 2, 3]], 4)
MEASURES = (robinson_foulds, triplet_distance, bakers_gamma, cophenetic_correlation)


def clusters(tree):
    sets = {frozenset(tree.items(node).tolist()) for node in range(tree.n_items, tree.n_nodes)}
    return {s for s in sets if 1 < len(s) < tree.n_items}


def says(tree, i, j, k):
    """The pair of three items that meets below the third, or nothing."""
    meets = {pair: meeting(tree, *pair) for pair in combinations((i, j, k), 2)}
    lowest = min(meets, key=lambda pair: tree.sizes[meets[pair]])
    return None if len(set(meets.values())) == 1 else lowest


@st.composite
def two_trees(draw):
    n_items = draw(st.integers(3, 8))
    return tuple(draw(samples(n_items=n_items)).hierarchy() for _ in range(2))


@given(two_trees())
@settings(max_examples=20, deadline=None)
def test_robinson_foulds_counts_the_clusters_that_one_tree_has(trees):
    one, other = map(clusters, trees)
    assert robinson_foulds(*trees, normalized=False) == len(one ^ other)
    count = len(one) + len(other)
    assert robinson_foulds(*trees) == (len(one ^ other) / count if count else 0.0)


@given(two_trees())
@settings(max_examples=20, deadline=None)
def test_common_clusters_have_the_same_items(trees):
    one, other = trees
    inside = [frozenset(one.items(node).tolist()) for node in range(one.n_nodes)]
    for node, found in enumerate(common_clusters(one, other).tolist()):
        same = [k for k, items in enumerate(inside) if items == frozenset(other.items(node).tolist())]
        assert found == min(same, key=lambda k: one.levels[k], default=-1)


@given(two_trees())
@settings(max_examples=20, deadline=None)
def test_triplets_are_those_that_the_trees_do_not_say_alike(trees):
    one, other = trees
    n = one.n_items
    unlike = sum(says(one, *t) != says(other, *t) for t in combinations(range(n), 3))
    found = triplet_distance(one, other)
    assert found.distance == unlike / comb(n, 3)
    assert (found.low, found.high, found.n_samples) == (found.distance, found.distance, 0)


@pytest.mark.parametrize("heights", ["sizes", "levels"])
@given(two_trees())
@settings(max_examples=15, deadline=None)
def test_correlations_are_scipys_over_all_pairs(heights, trees):
    def of(tree, node):
        return tree.sizes[node] if heights == "sizes" else tree.height - tree.levels[node]

    n = trees[0].n_items
    x, y = ([float(of(tree, meeting(tree, *pair))) for pair in combinations(range(n), 2)] for tree in trees)
    for found, peer in ((bakers_gamma, spearmanr), (cophenetic_correlation, pearsonr)):
        value = found(*trees, heights=heights)
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert isnan(value)
        else:
            assert value == pytest.approx(peer(x, y).statistic, abs=1e-9)


def test_heights_of_linkages_give_the_classical_coefficient():
    from scipy.cluster.hierarchy import cophenet, linkage

    X = np.random.default_rng(0).normal(size=(12, 3))
    links = [linkage(X, method) for method in ("single", "complete")]
    one, other = map(Hierarchy.from_linkage, links)
    by_scipy = pearsonr(*map(cophenet, links)).statistic

    def heights(tree, Z):
        return np.concatenate([np.zeros(tree.n_nodes - len(X) - len(Z)), Z[:, 2]])

    given = {"heights": heights(one, links[0]), "other_heights": heights(other, links[1])}
    assert cophenetic_correlation(other, one, **given) == pytest.approx(by_scipy)
    assert bakers_gamma(one, other, **given) == pytest.approx(spearmanr(*map(cophenet, links)).statistic)


@pytest.mark.parametrize("unit", [1e-200, 1e-13, 1e200])
def test_the_unit_of_the_heights_does_not_count(unit):
    one, other = (Hierarchy.from_children(kids, 4) for kids in ([[0, 1], [4, 2], [5, 3]], [[0, 1], [2, 3], [4, 5]]))
    given = {"heights": np.array([1.0, 2.0, 4.0]), "other_heights": np.array([3.0, 1.0, 5.0])}
    found = cophenetic_correlation(other, one, **given)
    assert found == pytest.approx(pearsonr([1, 2, 4, 2, 4, 4], [3, 5, 5, 5, 5, 1]).statistic)
    in_units = {name: heights * unit for name, heights in given.items()}
    assert cophenetic_correlation(other, one, **in_units) == pytest.approx(found, abs=1e-12)
    assert isnan(cophenetic_correlation(other, one, heights=np.full(3, 0.1 * unit)))


def test_a_tree_is_not_apart_from_itself_however_it_is_numbered():
    rng = np.random.default_rng(3)
    for _ in range(5):
        tree = random_tree(rng, 30)
        other = Hierarchy.from_children([kids[::-1] for kids in tree.to_children()], 30)
        assert robinson_foulds(tree, other) == float(triplet_distance(tree, other)) == 0
        assert bakers_gamma(tree, other) == pytest.approx(1)


def test_one_child_more_changes_no_cluster_and_no_triplet():
    chain = Hierarchy.from_children([[0, 1], [4], [2, 3], [5, 6]], 4)
    for other in (TWO_HALVES, COMB, FLAT):
        assert robinson_foulds(chain, other) == robinson_foulds(TWO_HALVES, other)
        assert triplet_distance(chain, other) == triplet_distance(TWO_HALVES, other)


def test_values_by_hand():
    # Two halves: {0,1} {2,3}; the comb: {0,1} {0,1,2}. One of each is not shared.
    assert robinson_foulds(TWO_HALVES, COMB, normalized=False) == 2
    # Of 012 013 023 123 both say 01|2 and 01|3; the halves say 23|0 and 23|1, the comb 02|3 and 12|3.
    assert float(triplet_distance(TWO_HALVES, COMB)) == 0.5
    # A flat tree says nothing of the four triples that the halves resolve.
    assert float(triplet_distance(TWO_HALVES, FLAT)) == 1
    assert robinson_foulds(TWO_HALVES, FLAT) == 1
    assert isnan(bakers_gamma(TWO_HALVES, FLAT))


def test_trees_that_cannot_differ():
    for n in (1, 2):
        tree = Hierarchy.from_children([list(range(n))], n)
        assert robinson_foulds(tree, tree) == float(triplet_distance(tree, tree)) == 0
        assert isnan(bakers_gamma(tree, tree))
        assert isnan(cophenetic_correlation(tree, tree))


def test_draws_hold_the_exact_values():
    rng = np.random.default_rng(5)
    one, other = random_tree(rng, 60), random_tree(rng, 60)
    exact = float(triplet_distance(one, other))
    held = 0
    for seed in range(30):
        found = triplet_distance(one, other, exact_limit=0, n_samples=2_000, random_state=seed)
        assert found.n_samples == 2_000
        held += found.low <= exact <= found.high
    assert held >= 25  # 28.5 expected
    for measure in (bakers_gamma, cophenetic_correlation):
        sampled = measure(one, other, exact_limit=0, n_samples=200_000, random_state=1)
        assert sampled == pytest.approx(measure(one, other), abs=0.02)
        assert sampled == measure(one, other, exact_limit=0, n_samples=200_000, random_state=1)


@pytest.mark.slow
def test_large_counts_do_not_overflow():
    n = 200_000
    flat = Hierarchy.from_children([list(range(n))], n)
    half = n // 2
    halves = Hierarchy.from_children([list(range(half)), list(range(half, n)), [n, n + 1]], n)
    # The halves resolve each triple that is not within one of them; the flat tree none.
    assert float(triplet_distance(flat, halves)) == 1 - 2 * comb(half, 3) / comb(n, 3)


@pytest.mark.parametrize("measure", MEASURES)
def test_other_items_are_refused(measure):
    with pytest.raises(HierarchyError, match=r"4 .* 2 "):
        measure(TWO_HALVES, Hierarchy.from_children([[0, 1]], 2))
    with pytest.raises(HierarchyError):
        measure(TWO_HALVES, [[0, 1]])


@pytest.mark.parametrize("heights", ["tall", [1.0, 2.0], [1.0, float("nan"), 2.0]])
def test_heights_that_do_not_fit_are_refused(heights):
    with pytest.raises(ParameterError, match="heights"):
        bakers_gamma(TWO_HALVES, COMB, heights=heights)


def test_a_draw_has_wilsons_interval_and_is_made_only_beyond_the_limit():
    one, other = (Hierarchy.from_children(kids, 4) for kids in ([[0, 1], [4, 2], [5, 3]], [[0, 1], [2, 3], [4, 5]]))
    drawn = triplet_distance(one, other, exact_limit=0, n_samples=200, random_state=1)
    interval = binomtest(round(200 * drawn.distance), 200).proportion_ci(0.95, method="wilson")
    assert (drawn.low, drawn.high) == pytest.approx(tuple(interval), abs=1e-8)
    cost = cost_of_sharing(one, other)
    assert triplet_distance(one, other, exact_limit=cost).n_samples == 0
    assert triplet_distance(one, other, exact_limit=cost - 1, n_samples=10).n_samples == 10
    pair = Hierarchy.from_children([[0, 1]], 2)
    assert triplet_distance(pair, pair) == TripletDistance(0.0, 0.0, 0.0, 0)
