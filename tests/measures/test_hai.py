"""HAI against the definition taken literally, pair by pair."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.paper.examples import load_amazon12
from pomdp_hier.measures.tree_distances import hai
from tests.hierarchy_oracle import samples


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


@settings(max_examples=40, deadline=None)
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
