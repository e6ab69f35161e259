"""Two trees are compared by the names of their items; the figures are scikit-bio's and DendroPy's."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from pomdp_hier.analysis import compare
from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import (
    bakers_gamma,
    cophenetic_correlation,
    entanglement,
    hai,
    robinson_foulds,
    triplet_distance,
)
from pomdp_hier.measures.tree_distances import untangle
from tests.measure_oracle import meeting
from tests.newick_pairs import COPHENETIC, ROBINSON_FOULDS, newick_pairs

MEASURES = (robinson_foulds, triplet_distance, bakers_gamma, cophenetic_correlation, entanglement, hai)
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


@pytest.mark.parametrize("measure", MEASURES)
def test_numbers_do_not_matter_where_both_have_names(measure):
    rng = np.random.default_rng(5)
    for one, other in PAIRS[:60]:
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


@pytest.mark.parametrize("measure", [*MEASURES, untangle])
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
