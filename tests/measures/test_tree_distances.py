"""Distances of two trees, entanglement and orders of leaves, by definition and by names."""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, pearsonr, spearmanr

from pomdp_hier.analysis import compare
from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.measures import (
    bakers_gamma,
    cophenetic_correlation,
    entanglement,
    hai,
    robinson_foulds,
    triplet_distance,
)
from pomdp_hier.measures.lca_pairs import cost_of_sharing
from pomdp_hier.measures.tree_distances import TripletDistance, common_clusters, untangle
from tests.hierarchy_oracle import samples
from tests.measure_oracle import meeting
from tests.newick_pairs import COPHENETIC, ROBINSON_FOULDS, newick_pairs


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
def test_robinson_foulds_counts_the_clusters_that_one_tree_has(trees):
    one, other = map(clusters, trees)
    assert robinson_foulds(*trees, normalized=False) == len(one ^ other)
    count = len(one) + len(other)
    assert robinson_foulds(*trees) == (len(one ^ other) / count if count else 0.0)


@given(two_trees())
def test_common_clusters_have_the_same_items(trees):
    one, other = trees
    inside = [frozenset(one.items(node).tolist()) for node in range(one.n_nodes)]
    for node, found in enumerate(common_clusters(one, other).tolist()):
        same = [k for k, items in enumerate(inside) if items == frozenset(other.items(node).tolist())]
        assert found == min(same, key=lambda k: one.levels[k], default=-1)


@given(two_trees())
def test_triplets_are_those_that_the_trees_do_not_say_alike(trees):
    one, other = trees
    n = one.n_items
    unlike = sum(says(one, *t) != says(other, *t) for t in combinations(range(n), 3))
    found = triplet_distance(one, other)
    assert found.distance == unlike / comb(n, 3)
    assert (found.low, found.high, found.n_samples) == (found.distance, found.distance, 0)


@pytest.mark.parametrize("heights", ["sizes", "levels"])
@given(two_trees())
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


def distance(tree: Hierarchy, i: int, j: int) -> Fraction:
    """d(i, j) of the definition, from the two paths of clusters."""
    if i == j:
        return Fraction(0)
    shared = [node for node in tree.path(i).tolist() if node in set(tree.path(j).tolist())]
    closest = shared[-1]
    return Fraction(0) if tree.is_leaf[closest] else Fraction(int(tree.sizes[closest]), tree.n_items)


def brute_force(tree: Hierarchy, reference: Hierarchy) -> Fraction:
    n = tree.n_items
    pairs = [(i, j) for i in range(n) for j in range(n)]
    return 1 - sum(abs(distance(tree, i, j) - distance(reference, i, j)) for i, j in pairs) / n**2


@given(st.data())
def test_the_definition_pair_by_pair(data):
    n_items = data.draw(st.integers(1, 9))
    tree, reference = (data.draw(samples(n_items=n_items)).hierarchy(data.draw(st.booleans())) for _ in range(2))
    assert hai(tree, reference) == float(brute_force(tree, reference))
    assert hai(tree, reference) == hai(reference, tree)
    assert hai(tree, tree) == 1


@pytest.mark.parametrize(("name", "printed"), [("B", 0.6389), ("C", 0.4583), ("D", 0.5833), ("E", 0.8542)])
def test_the_paper(name, printed):
    shelves = load_amazon12().hierarchies
    assert round(hai(shelves[name], shelves["A"]), 4) == printed


def test_every_item_a_cluster_of_its_own_gives_other_figures():
    trees = load_amazon12().hierarchies
    as_drawn = trees["A"]
    apart = {name: Hierarchy.from_children(tree.to_children(), 12, singletons=True) for name, tree in trees.items()}
    found = [round(hai(apart[name], apart["A"]), 3) for name in "BCDE"]
    assert found == [0.708, 0.727, 0.667, 0.860]
    assert hai(as_drawn, apart["A"]) < 1


def test_large_and_deep_in_little_memory():
    n_items = 2000
    ladder = Hierarchy.from_children([[0, 1], *([n_items + k, k + 2] for k in range(n_items - 2))], n_items)
    flat = Hierarchy.from_children([list(range(n_items))], n_items)
    # flat: every distance is 0; ladder: item j joins all earlier ones in a cluster of j + 1, the first two in a leaf
    expected = 1 - Fraction(2 * sum(j * (j + 1) for j in range(2, n_items)), n_items**3)
    assert hai(ladder, flat) == float(expected)
    assert np.isclose(hai(ladder, flat), 1 / 3, atol=1e-3)


def test_another_number_of_items_is_refused():
    with pytest.raises(HierarchyError, match=r"2 .* 3 "):
        hai(Hierarchy.from_children([[0, 1]], 2), Hierarchy.from_children([[0, 1, 2]], 3))


def test_features_in_the_place_of_a_tree_are_refused():
    with pytest.raises(HierarchyError, match="expected a Hierarchy"):
        hai([[1.0, 0.0]], Hierarchy.from_children([[0, 1]], 2))
    with pytest.raises(HierarchyError, match="expected a Hierarchy"):
        hai(Hierarchy.from_children([[0, 1]], 2), [[1.0, 0.0]])


BY_NAME = (robinson_foulds, triplet_distance, bakers_gamma, cophenetic_correlation, entanglement, hai)
PAIRS = [tuple(map(Hierarchy.from_newick, pair)) for pair in newick_pairs()]
ABCD, BDAC, OTHER = (Hierarchy.from_newick(x) for x in ("((a,b),(c,d));", "((b,d),(a,c));", "((a,b),(c,e));"))


def heights(tree: Hierarchy) -> dict[tuple[str, str], int]:
    """The size of the cluster in which any two names meet."""
    found = {}
    for i, j in combinations(range(tree.n_items), 2):
        names = sorted((tree.labels[i], tree.labels[j]))
        found[tuple(names)] = int(tree.sizes[meeting(tree, i, j)])
    return found


def first_met(high: dict[tuple[str, str], int], three: tuple[str, ...]) -> tuple[str, str] | None:
    """The two of three names that meet first."""
    least, second, _ = sorted(combinations(three, 2), key=high.__getitem__)
    return least if high[least] < high[second] else None


def test_robinson_foulds_is_scikit_bios_and_dendropys():
    assert [robinson_foulds(*pair, normalized=False) for pair in PAIRS] == [*map(int, ROBINSON_FOULDS.split())]


def test_the_cophenetic_correlation_is_scikit_bios():
    expected = [*map(float, COPHENETIC.split())]
    np.testing.assert_allclose([cophenetic_correlation(*pair) for pair in PAIRS], expected, atol=6e-4)


def test_triplets_and_bakers_gamma_are_those_of_the_names():
    for one, other in PAIRS[:60]:
        high, its = heights(one), heights(other)
        triples = [*combinations(sorted(one.item_labels), 3)]
        apart = sum(first_met(high, three) != first_met(its, three) for three in triples)
        assert triplet_distance(one, other) == pytest.approx(apart / len(triples))
        if len(set(high.values())) > 1 < len(set(its.values())):
            expected = spearmanr([high[pair] for pair in high], [its[pair] for pair in high]).statistic
            assert bakers_gamma(one, other) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", BY_NAME)
def test_numbers_do_not_matter_where_both_have_names(measure):
    rng = np.random.default_rng(5)
    for one, other in PAIRS[:15]:
        expected = measure(one, Hierarchy.from_newick(other.to_newick(), items=one.item_labels))
        renumbered = other.permuted(rng.permutation(other.n_items), with_labels=True)
        assert measure(one, renumbered) == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert measure(renumbered, one) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_untangled_trees_keep_their_numbers_and_names():
    for one, other in PAIRS[:60]:
        left, right = untangle(one, other)
        assert entanglement(left, right) <= entanglement(one, other)
        for before, after in ((one, left), (other, right)):
            assert after.labels == before.labels
            np.testing.assert_array_equal(after.parent, before.parent)


@pytest.mark.parametrize("measure", [*BY_NAME, untangle])
def test_other_names_are_refused_and_the_advice_goes_by_number(measure):
    with pytest.raises(HierarchyError, match=r"'d' .* 'e' ") as caught:
        measure(ABCD, OTHER)
    advice = str(caught.value).rsplit(": tree = ", 1)[1]
    by_number = [eval(advice, {"Hierarchy": Hierarchy, "tree": tree}) for tree in (ABCD, OTHER)]
    assert by_number[0].labels is None
    if measure is not untangle:
        assert measure(*by_number) == measure(ABCD, ABCD)


def test_names_that_several_items_have_are_refused_unless_they_are_in_the_same_order():
    twice, turned = (Hierarchy.from_children([[0, 1], [2, 3]], 3, labels=names) for names in ([*"aab"], [*"aba"]))
    assert robinson_foulds(twice, twice) == 0
    with pytest.raises(HierarchyError, match="'a' twice in the first tree"):
        robinson_foulds(twice, turned)


def test_a_tree_that_does_not_name_its_items_is_compared_by_number():
    bare = Hierarchy.from_children(BDAC.to_children(), 4)
    numbers = Hierarchy.from_children(BDAC.to_children(), 4, labels=["0", "1", "2", "3"])
    for tree in (bare, numbers):
        assert robinson_foulds(ABCD, tree) == robinson_foulds(tree, ABCD) == 0
    assert robinson_foulds(ABCD, BDAC) == 1


def test_a_number_and_its_text_are_one_name():
    one = Hierarchy.from_newick("((7,8),(9,10));")
    other = Hierarchy.from_edges([("x", 7), ("x", 8), ("y", 9), ("y", 10), ("r", "x"), ("r", "y")], items=[9, 7, 10, 8])
    assert robinson_foulds(one, other) == 0


def test_compare_refuses_other_names_too():
    with pytest.raises(ParameterError, match=r"'d' in tree 'one' .* 'e' in tree 'two'"):
        compare(np.eye(4), {"one": ABCD, "two": OTHER})
    apart = Hierarchy.from_newick("((p,q),(r,s));")
    with pytest.raises(ParameterError, match=r"'a', 'b', 'c', 'd' in tree 'one' .* 'p', 'q', 'r', 's' in tree 'two'"):
        compare(np.eye(4), {"one": ABCD, "two": apart})


STRAIGHT = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)


def every_order(tree):
    for children in product(*(permutations(kids) for kids in tree.to_children())):
        yield Hierarchy.from_children([list(kids) for kids in children], tree.n_items)


@pytest.mark.parametrize("power", [0.5, 1, 1.5, 2])
def test_entanglement_by_its_definition(power):
    other = Hierarchy.from_children([[2, 0], [3, 1], [4, 5]], 4)  # 2 0 3 1: 0 and 3 move by 1, 1 by 2, 2 by 2
    worst = 2 * 3**power + 2 * 1
    assert entanglement(STRAIGHT, other, power=power) == pytest.approx((1 + 2**power + 2**power + 1) / worst)
    assert entanglement(other, STRAIGHT, power=power) == entanglement(STRAIGHT, other, power=power)


@given(st.data())
def test_untangling_tangles_nothing_and_keeps_the_trees(data):
    n_items = data.draw(st.integers(1, 8))
    one, other = (data.draw(samples(n_items=n_items)).hierarchy() for _ in range(2))
    found = untangle(one, other)
    assert found == (one, other)
    assert all(np.array_equal(new.parent, old.parent) for new, old in zip(found, (one, other), strict=True))
    assert entanglement(*found) <= entanglement(one, other)


def test_a_tree_and_its_shuffled_copy_are_untangled_whole():
    rng = np.random.default_rng(0)
    names = ["ant", "bee", "cat", "dog", "elk", "fox"]
    one = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7, 8]], 6, labels=names)
    for _ in range(10):
        children = [rng.permutation(kids).tolist() for kids in one.to_children()]
        found = untangle(one, Hierarchy.from_children(children, 6, labels=names))
        assert entanglement(*found) == 0
        assert found[1].item_labels == tuple(names)


def test_untangling_comes_near_the_best_of_all_orders():
    rng = np.random.default_rng(1)
    shortfall = []
    for _ in range(4):
        trees = []
        for _ in range(2):
            items = rng.permutation(6).tolist()
            trees.append(Hierarchy.from_children([items[:2], items[2:4], [6, 7], [8, *items[4:]]], 6))
        best = min(entanglement(trees[0], order) for order in every_order(trees[1]))
        best = min(best, *(entanglement(order, trees[1]) for order in every_order(trees[0])))
        shortfall.append(entanglement(*untangle(*trees)) - best)
    assert np.mean(shortfall) < 0.05


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(HierarchyError, match=r"4 .* 2 "):
        entanglement(STRAIGHT, Hierarchy.from_children([[0, 1]], 2))
    with pytest.raises(HierarchyError, match=r"4 .* 2 .* untangling"):
        untangle(STRAIGHT, Hierarchy.from_children([[0, 1]], 2))
    for power in (0, -1, float("nan"), float("inf"), True, "long"):
        with pytest.raises(ParameterError, match="power"):
            entanglement(STRAIGHT, STRAIGHT, power=power)
