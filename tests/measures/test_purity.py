"""Dendrogram purity and the branching nodes behind it, against loops over all pairs."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures import dendrogram_purity
from pomdp_hier.measures.lca_pairs import branching_nodes, neighbour_ancestors
from tests.hierarchy_oracle import samples
from tests.measure_oracle import meeting, pairs


@settings(max_examples=40, deadline=None)
@given(samples(), st.data())
def test_purity_pair_by_pair(sample, data):
    tree = sample.hierarchy(data.draw(st.booleans()))
    labels = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=tree.n_items, max_size=tree.n_items))
    shares = []
    for i, j, node in pairs(tree):
        if labels[i] == labels[j] is not None:
            shares.append(Counter(labels[k] for k in tree.items(node).tolist())[labels[i]] / tree.sizes[node])
    found = dendrogram_purity(tree, labels)
    assert np.isnan(found) if not shares else found == pytest.approx(np.mean(shares), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(samples(), st.data())
def test_branching_nodes_are_the_meeting_points_of_each_class(sample, data):
    tree = sample.hierarchy()
    classes = np.array(data.draw(st.lists(st.integers(3, 5), min_size=tree.n_items, max_size=tree.n_items)))
    expected = {(classes[i], node) for i, j, node in pairs(tree) if classes[i] == classes[j]}
    found = branching_nodes(tree, np.arange(tree.n_items), classes)
    rows = list(zip(found.classes.tolist(), found.nodes.tolist(), strict=True))
    assert set(rows) == expected
    assert len(rows) == len(expected)
    for (name, node), count, above in zip(rows, found.counts, found.above, strict=True):
        assert count == (classes[tree.items(node)] == name).sum()
        higher = [
            other for kind, other in rows if kind == name and other != node and tree.sizes[other] >= tree.sizes[node]
        ]
        higher = [other for other in higher if set(tree.items(node)) <= set(tree.items(other))]
        lowest = max(higher, key=lambda other: tree.levels[other], default=-1)
        assert (rows[above][1] if above >= 0 else -1) == (lowest if lowest in higher else -1)


@settings(max_examples=30, deadline=None)
@given(samples())
def test_neighbours_meet_where_they_meet(sample):
    tree = sample.hierarchy()
    order = tree.item_order.tolist()
    expected = [meeting(tree, i, j) for i, j in pairwise(order)]
    assert neighbour_ancestors(tree).tolist() == expected


def test_arrays_of_labels_and_a_long_ladder():
    n_items = 20_000
    ladder = Hierarchy.from_children([[0, 1], *([n_items + k, k + 2] for k in range(n_items - 2))], n_items)
    assert dendrogram_purity(ladder, np.zeros(n_items, dtype=int)) == pytest.approx(1)
    halves = dendrogram_purity(ladder, np.arange(n_items) % 2)
    assert 0.5 <= halves < 0.501


def test_one_label_an_item_is_needed():
    with pytest.raises(ParameterError, match="labels: got 3"):
        dendrogram_purity(Hierarchy.from_children([[0, 1]], 2), ["a", "b", "c"])
    with pytest.raises(ParameterError, match=r"labels\[0\]: got \[1.0, 0.0\]"):
        dendrogram_purity(Hierarchy.from_children([[0, 1]], 2), np.eye(2))
    with pytest.raises(HierarchyError, match=r"got 'tree\.csv'"):
        dendrogram_purity("tree.csv", ["a", "b"])
