"""Linkage matrices: against SciPy's own reading, and every way they can be bad."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import centroid, linkage, to_tree
from scipy.spatial.distance import pdist

from pomdp_hier.errors import HierarchyWarning, ReaderError
from pomdp_hier.hierarchy import Hierarchy


@pytest.mark.parametrize("method", ["single", "average", "ward", "complete"])
def test_nodes_hold_what_scipy_says(method: str) -> None:
    X = np.random.default_rng(3).normal(size=(40, 3))
    Z = linkage(X, method)
    tree = Hierarchy.from_linkage(Z)
    assert (tree.n_nodes, tree.singletons, bool(tree.is_cluster.all())) == (79, True, True)
    _, nodes = to_tree(Z, rd=True)
    for node in nodes:
        assert sorted(tree.items(node.id).tolist()) == sorted(node.pre_order())
        if not node.is_leaf():
            assert tree.children(node.id).tolist() == [node.left.id, node.right.id]


def test_an_inversion_is_read_with_a_warning() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    Z = centroid(pdist(X))
    inverted = sum(any(c >= 60 and Z[int(c) - 60, 2] > row[2] for c in row[:2]) for row in Z)
    assert inverted
    with pytest.warns(HierarchyWarning, match=f"not monotone: {inverted} inversion"):
        tree = Hierarchy.from_linkage(Z)
    assert tree == Hierarchy.from_linkage(Z[:, :2])
    with pytest.warns(HierarchyWarning, match="1 negative height, the first in row 0"):
        Hierarchy.from_linkage([[0, 1, -1e-3, 2], [2, 3, 1.0, 3]])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_equal_heights_and_rounded_ones_are_no_inversion(kind: type) -> None:
    rows = np.array([[0, 1, 3.0, 2], [2, 3, 3.0, 2], [4, 5, 3.0, 4]], dtype=kind)
    assert Hierarchy.from_linkage(rows).n_items == 4
    rows[2, 2] = np.nextafter(kind(3), kind(0))
    rows[0, 2] = -np.finfo(kind).eps
    assert Hierarchy.from_linkage(rows).n_items == 4
    rows[2, 2] = kind(3) * (1 - 100 * np.finfo(kind).eps)
    with pytest.warns(HierarchyWarning, match="1 inversion, the first in row 2"):
        Hierarchy.from_linkage(rows)
    rows[2, 2] = 3
    rows[0, 2] = -100 * np.finfo(kind).eps
    with pytest.warns(HierarchyWarning, match="1 negative height"):
        Hierarchy.from_linkage(rows)


@pytest.mark.parametrize(
    ("Z", "text"),
    [
        ([[0, 1, 0.1, 2], [1, 2, 0.2, 3]], "got node 1 in rows 0 and 1"),
        ([[1, 1, 0.1, 2]], "got node 1 in rows 0 and 0"),
        ([[0, 3, 0.1, 2], [1, 2, 0.2, 3]], r"got the nodes \[0, 3\] in row 0; expected two of 0..2,"),
        ([[0, -1, 0.1, 2]], r"got the nodes \[0, -1\] in row 0"),
        ([[0, 1, np.nan, 2]], "NaN in row 0"),
        ([[0, 1.5, 1, 2]], "expected integers"),
        ([[0, np.inf, 1, 2]], "expected integers"),
        ([[0, 1, 1, 3]], "got 3 items in row 0; expected 2"),
        ([[0, 1, 1, 2, 5]], r"shape \(1, 5\)"),
        ([0, 1], r"shape \(2,\)"),
        ([[0, 1], [2]], "expected a matrix of numbers"),
        ([["a", "b"]], "expected a matrix of numbers"),
    ],
)
def test_a_bad_linkage_is_refused(Z: object, text: str) -> None:
    with pytest.raises(ReaderError, match=text):
        Hierarchy.from_linkage(Z)  # type: ignore[arg-type]


def test_no_rows_are_one_item_and_labels_name_items() -> None:
    assert Hierarchy.from_linkage(np.empty((0, 4))).n_nodes == 1
    assert Hierarchy.from_linkage([[0, 1, 1, 2]], labels=["a", "b"]).labels == ("a", "b", 2)


def test_items_that_are_all_the_same_are_no_inversion() -> None:
    assert Hierarchy.from_linkage(linkage(np.zeros((5, 2)), "average")).n_nodes == 9
