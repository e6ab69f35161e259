"""Children lists: numbering, child order, and every way they can be wrong."""

import numpy as np
import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError
from pomdp_hier.hierarchy import Hierarchy


def test_list_k_belongs_to_node_n_plus_k_and_keeps_its_order() -> None:
    tree = Hierarchy.from_children([[6, 5], [2, 0], [3, 1]], 4)
    assert tree.root == 4
    assert tree.items(4).tolist() == [3, 1, 2, 0]
    assert tree.to_children() == [[6, 5], [2, 0], [3, 1]]
    assert Hierarchy.from_children(np.array([[0, 1], [2, 3]]), 3).root == 4
    assert Hierarchy.from_children(np.array([[0.0, 1.0], [2.0, 3.0]])).n_items == 3


def test_an_item_beside_clusters_is_a_cluster_and_items_in_a_list_are_not() -> None:
    tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
    assert tree.is_cluster.tolist() == [False, False, True, True, True]
    assert tree.with_singletons(True).is_cluster.all()


def test_one_child_chains_are_kept_without_a_warning() -> None:
    assert Hierarchy.from_children([[0, 1], [2], [3]], 2).path(0).tolist() == [4, 3, 2]


def test_an_empty_cluster_is_dropped_with_a_warning() -> None:
    with pytest.warns(HierarchyWarning, match="1 empty cluster dropped, without items: 3"):
        tree = Hierarchy.from_children([[0, 1], [], [2, 3]], 2)
    assert (tree.n_nodes, tree.root) == (4, 3)


@pytest.mark.parametrize(
    ("children", "n_items", "text"),
    [
        ([[0, 1], [1, 2, 3]], 3, r"1 node with several parents, 1 .*in the lists 0, 1"),
        ([[0, 0, 1]], 2, "node 0 in the lists 0, 0"),
        ([[0, 1], [2, 9]], 3, r"children\[1\]: got 9; .* 0\.\.4 \(3 items and 2 lists\)"),
        ([[0, 1, -1]], 3, r"children\[0\]: got -1"),
        ([[0, 1, 2]], 2, r"children\[0\]: got its own node 2"),
        ([[0, 3], [1, 2]], 2, "cycle of 2 nodes, 2, 3"),
        ([[0, 1]], 3, "2 roots, 2, 3"),
        ([[0, 1]], 10**15, "children: .* without 2, 3, 4, 5, 6, ..."),
        ([[0, 1.5]], 2, r"children\[0\]: got 1.5; expected integer"),
        ([[0], [True, 2]], 2, r"children\[1\]: got True"),
        ([[0], 7], 2, r"children\[1\]: got 7; expected a list"),
        ([[0, 10**30]], 2, "children: got the node 1000"),
        ("01", 2, "expected a list of lists"),
        ([], 2, "without 0, 1; expected|2 roots"),
    ],
)
def test_wrong_lists_are_refused_by_name(children: object, n_items: int, text: str) -> None:
    with pytest.raises(HierarchyError, match=text):
        Hierarchy.from_children(children, n_items)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_items", [0, -1, 1.5, True, "3"])
def test_n_items_is_a_positive_integer(n_items: object) -> None:
    with pytest.raises(ParameterError, match="n_items: got"):
        Hierarchy.from_children([[0]], n_items)  # type: ignore[arg-type]


def test_opt_ins() -> None:
    assert Hierarchy.from_children([[0, 1], [2]], 3, add_root=True) == Hierarchy.from_children([[0, 1], [2], [3, 4]], 3)
    twice = [[0, 1], [1, 2], [3, 4]]
    labels = ["a", "b", "c", "p", "q", "r"]
    with pytest.warns(HierarchyWarning, match="1 node with several parents, of which the first is kept: 1"):
        first = Hierarchy.from_children(twice, 3, labels=labels, on_multiple_parents="first")
    assert first == Hierarchy.from_children([[0, 1], [2], [3, 4]], 3)
    assert first.labels == tuple(labels)
    with pytest.warns(HierarchyWarning, match=r"1 copy\): 1"):
        both = Hierarchy.from_children(twice, 3, labels=labels, on_multiple_parents="duplicate")
    assert both == Hierarchy.from_children([[0, 1], [3, 2], [4, 5]], 4)
    assert both.item_labels == ("a", "b", "c", "b")
    assert both.rows(["c", "b", "a"]).tolist() == [2, 1, 0, 1]
    with pytest.raises(ParameterError, match="on_multiple_parents: got 'last'"):
        Hierarchy.from_children(twice, 3, on_multiple_parents="last")  # type: ignore[arg-type]
