"""Entanglement by its definition, and untangling against every order of the children."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import entanglement
from pomdp_hier.measures.tree_distances import untangle
from tests.hierarchy_oracle import samples

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
@settings(max_examples=15, deadline=None)
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
