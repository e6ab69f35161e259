"""Linkages, and trees of scikit-learn, HDBSCAN and BERTopic."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.cluster.hierarchy import centroid, linkage, to_tree
from scipy.spatial.distance import pdist

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from tests.extras import optional

pd = optional("pandas")
cluster = optional("sklearn.cluster")

X = np.random.default_rng(5).normal(size=(40, 2)) + np.repeat([[0, 0], [9, 9]], 20, axis=0)


def test_sklearn_gives_scipys_tree() -> None:
    model = cluster.AgglomerativeClustering(n_clusters=None, distance_threshold=0.0, linkage="average").fit(X)
    tree = Hierarchy.from_sklearn(model)
    assert tree == Hierarchy.from_linkage(linkage(X, "average"))
    assert tree.singletons
    with pytest.raises(ReaderError, match="AgglomerativeClustering without children_"):
        Hierarchy.from_sklearn(cluster.AgglomerativeClustering())


@pytest.mark.parametrize(
    "settings", [{"n_clusters": 3}, {"n_clusters": None, "distance_threshold": 1.0}, {"linkage": "single"}]
)
def test_labels_of_another_fit_are_refused(settings) -> None:
    model = cluster.AgglomerativeClustering(**settings).fit(X)
    assert Hierarchy.from_sklearn(model).n_items == 40
    labels, last = model.labels_, model.n_clusters_ - 1
    model.labels_ = (labels + 1) % model.n_clusters_  # the same clusters
    assert Hierarchy.from_sklearn(model).n_items == 40
    for wrong in (labels - 1, labels[:-1], np.zeros(40, dtype=int)):
        model.labels_ = wrong
        with pytest.raises(ReaderError, match=rf"labels_: got .*; expected 0\.\.{last} for 40"):
            Hierarchy.from_sklearn(model)
    model.labels_ = np.roll(labels, 1)
    with pytest.raises(ReaderError, match=r"labels_: got .* row \d+"):
        Hierarchy.from_sklearn(model)


def test_scikit_learns_hdbscan_has_its_single_linkage_tree() -> None:
    model = cluster.HDBSCAN(copy=True).fit(X)
    expected = Hierarchy.from_linkage(linkage(X, "single"))
    for tree in (Hierarchy.from_hdbscan(model), Hierarchy.from_sklearn(model)):
        assert tree.n_items == 40
        assert tree.singletons
    core = cluster.HDBSCAN(min_samples=1, copy=True).fit(X)  # then the distances are the data's own
    found = Hierarchy.from_sklearn(core)
    assert {frozenset(found.items(k)) for k in range(40, 79)} == {frozenset(expected.items(k)) for k in range(40, 79)}
    with pytest.raises(ReaderError, match="without condensed_tree_"):
        Hierarchy.from_hdbscan(model, tree="condensed")
    with pytest.raises(ReaderError, match="HDBSCAN without"):
        Hierarchy.from_sklearn(cluster.HDBSCAN())


def test_a_partial_sklearn_tree_needs_a_root() -> None:
    near = np.abs(np.subtract.outer(np.arange(40), np.arange(40))) <= 1
    model = cluster.AgglomerativeClustering(n_clusters=7, compute_full_tree=False, connectivity=near).fit(X)
    with pytest.raises(HierarchyError, match=r"7 roots, .* \(7 in all\).*add_root=True"):
        Hierarchy.from_sklearn(model)
    tree = Hierarchy.from_sklearn(model, add_root=True)
    assert tree.children(tree.root).size == 7
    for below in tree.children(tree.root).tolist():
        assert np.unique(model.labels_[tree.items(below)]).size == 1


def condensed() -> np.ndarray:
    """Two clusters of three rows, one row that fell out at the root."""
    rows = [(7, 8, 0.1, 3), (7, 9, 0.1, 3), (7, 6, 0.2, 1), (8, 0, 1.0, 1), (8, 2, 1.0, 1), (8, 4, 1.0, 1)]
    rows += [(9, 1, 1.0, 1), (9, 3, 1.0, 1), (9, 5, 1.0, 1)]
    kinds = [("parent", np.intp), ("child", np.intp), ("lambda_val", float), ("child_size", np.intp)]
    return np.array(rows, dtype=kinds)


def test_hdbscan_condensed_trees_keep_row_numbers() -> None:
    table = condensed()
    model = SimpleNamespace(condensed_tree_=SimpleNamespace(to_numpy=lambda: table), fit=None)
    for source in (table, pd.DataFrame(table), model, model.condensed_tree_):
        tree = Hierarchy.from_hdbscan(source)
        assert (tree.n_items, tree.root, tree.labels) == (7, 7, None)
        assert sorted(tree.items(8).tolist()) == [0, 2, 4]
        assert tree.is_cluster[:7].tolist() == [False] * 6 + [True]
    with pytest.raises(ReaderError, match=r"single_linkage_tree_"):
        Hierarchy.from_hdbscan(model, tree="single_linkage")
    with pytest.raises(ReaderError, match=r"got a dict with"):
        Hierarchy.from_hdbscan({})


def test_hdbscan_single_linkage_trees() -> None:
    Z = linkage(X, "single")
    expected = Hierarchy.from_linkage(Z)
    names = ["left_node", "right_node", "value", "cluster_size"]
    structured = np.rec.fromarrays(list(Z.T), names=names)
    frame = pd.DataFrame(Z, columns=["left_child", "right_child", "distance", "size"])
    frame["parent"] = np.arange(40, 79)
    for source in (Z, structured, frame, SimpleNamespace(_single_linkage_tree_=structured)):
        assert Hierarchy.from_hdbscan(source, tree="single_linkage") == expected
    assert not Hierarchy.from_hdbscan(Z, singletons=False).singletons


def test_hdbscan_itself() -> None:
    hdbscan = pytest.importorskip("hdbscan")
    model = hdbscan.HDBSCAN(min_cluster_size=4).fit(X)
    tree = Hierarchy.from_hdbscan(model)
    assert tree.n_items == 40
    assert Hierarchy.from_hdbscan(model, tree="single_linkage").n_nodes == 79
    for label in range(2):
        rows = np.flatnonzero(model.labels_ == label)
        assert any(np.isin(rows, tree.items(node)).all() for node in tree.children(tree.root).tolist())


TOPICS = {
    "Parent_ID": ["4", "3"],
    "Parent_Name": ["all", "pets"],
    "Child_Left_ID": ["3", "0"],
    "Child_Right_ID": ["2", "1"],
}


def test_bertopic_topics_and_documents() -> None:
    topics = Hierarchy.from_bertopic(TOPICS)
    assert topics == Hierarchy.from_children([[0, 1], [3, 2]], 3)
    documents = Hierarchy.from_bertopic(TOPICS, topics=[2, 0, 1, 0])
    assert [documents.items(node).tolist() for node in documents.path(1)] == [[1, 3, 2, 0], [1, 3, 2], [1, 3]]
    with pytest.warns(HierarchyWarning, match=r"1 outlier document \(topic -1\)"):
        tree = Hierarchy.from_bertopic(TOPICS, topics=[2, 0, 1, -1])
    assert tree.children(tree.root).size == 3
    with pytest.warns(HierarchyWarning, match=r"1 empty cluster.*\('topic', 1\)"):
        Hierarchy.from_bertopic(TOPICS, topics=[2, 0])
    with pytest.raises(ReaderError, match="topics: got 9; "):
        Hierarchy.from_bertopic(TOPICS, topics=[9])
    with pytest.raises(ReaderError, match="got the columns 'a'"):
        Hierarchy.from_bertopic({"a": [1]})
    with pytest.raises(ReaderError, match="row 1: got the topic 'x'"):
        Hierarchy.from_bertopic([{"Parent_ID": "x", "Child_Left_ID": 0, "Child_Right_ID": 1}])


def test_bertopic_topics_that_no_row_reaches_are_hung_where_the_table_names_them() -> None:
    rows = [("5", [1, 2, 3], "1", "2"), ("6", [0, 1, 2, 3], "5", "0"), ("8", [0, 1, 2, 3, 4], "6", "4")]
    columns = ["Parent_ID", "Topics", "Child_Left_ID", "Child_Right_ID"]
    for order in (rows, rows[::-1], [(a, str(b), c, d) for a, b, c, d in rows]):
        table = pd.DataFrame(order, columns=columns)
        with pytest.warns(HierarchyWarning, match=r"1 topic .*: 3"):
            tree = Hierarchy.from_bertopic(table)
        assert tree.item_labels == (0, 1, 2, 3, 4)
        assert tree.parent[3] == tree.parent[1] != tree.parent[0]
    wrong = pd.DataFrame([("2", [0], "0", "1")], columns=columns)
    with pytest.raises(ReaderError, match="row 1: got children"):
        Hierarchy.from_bertopic(wrong)
    assert Hierarchy.from_bertopic(wrong.assign(Topics=None)).n_items == 2


def test_scipys_cluster_node_is_the_linkage_that_it_was_made_of():
    from scipy.cluster.hierarchy import linkage, to_tree

    X = np.random.default_rng(0).normal(size=(12, 3))
    Z = linkage(X, "average")
    assert Hierarchy.from_linkage(to_tree(Z)) == Hierarchy.from_linkage(Z)
    with pytest.raises(ReaderError, match=r"ClusterNode.* from_linkage"):
        Hierarchy.from_nodes(to_tree(Z))
    root = to_tree(Z)
    below = root.get_left() if root.get_left().get_count() > 1 else root.get_right()
    if below.get_count() < 12:
        with pytest.raises(ReaderError, match="the root"):
            Hierarchy.from_linkage(below)


def test_a_deep_cluster_node_does_not_recurse():
    from scipy.cluster.hierarchy import to_tree

    n = 3_000
    Z = np.array([[0 if k == 0 else n + k - 1, k + 1, k + 1.0, k + 2] for k in range(n - 1)])
    assert Hierarchy.from_linkage(to_tree(Z)).height == n - 1


def test_bisections_end_in_the_clusters_of_the_labels():
    cluster = pytest.importorskip("sklearn.cluster")
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = cluster.BisectingKMeans(6, random_state=0).fit(X)
    tree = Hierarchy.from_sklearn(model)
    same = tree.leaf_of_item[:, None] == tree.leaf_of_item
    assert np.array_equal(same, model.labels_[:, None] == model.labels_)
    inner = [node for node in range(40, tree.n_nodes) if not tree.is_leaf[node]]
    assert len(inner) == 5
    assert all(len(tree.children(node)) == 2 for node in inner)


def test_labels_that_the_bisections_do_not_have_are_named():
    cluster = pytest.importorskip("sklearn.cluster")
    for strategy in ("biggest_inertia", "largest_cluster"):
        model = cluster.BisectingKMeans(4, random_state=0, bisecting_strategy=strategy).fit(X)
        assert Hierarchy.from_sklearn(model).n_items == 40
        labels = model.labels_
        for wrong, told in ((7, "labels_: got 7; expected 0..3"), (-1, "labels_: got -1; expected 0..3")):
            model.labels_ = np.where(np.arange(40) == 5, wrong, labels)
            with pytest.raises(ReaderError, match=told):
                Hierarchy.from_sklearn(model)
        model.labels_ = np.where(labels == 2, 3, labels)
        with pytest.raises(ReaderError, match=r"labels_: got [23] for \d+ rows?"):
            Hierarchy.from_sklearn(model)
        model.labels_ = labels[:-1]
    with pytest.raises(ReaderError, match=r"labels_: got . for"):  # how large a cluster is, only this strategy keeps
        Hierarchy.from_sklearn(model)
    assert Hierarchy.from_sklearn(cluster.BisectingKMeans(1).fit(X)).n_nodes == 41


def test_labels_are_one_level():
    tree = Hierarchy.from_labels(["b", "a", "b", -1], items=["x", "y", "z", "w"])
    assert tree.to_children() == [[0, 2], [1], [3], [4, 5, 6]]
    assert tree.labels == ("x", "y", "z", "w", "b", "a", -1, None)
    assert Hierarchy.from_labels(np.array([1, 0, 1])).labels is None


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([], "labels: got none"),
        ("abc", "labels: got 'abc'"),
        (7, "labels: got 7"),
        ([1, None], "labels.1.: got None"),
        ([1.0, float("nan")], "labels.1.: got nan"),
        ([[1], [2]], "expected text or a number"),
    ],
)
def test_what_are_no_labels_is_refused(labels, told):
    with pytest.raises(ReaderError, match=told):
        Hierarchy.from_labels(labels)


def test_sizes_that_contradict_the_condensed_tree_are_refused():
    columns = {"parent": [5, 5, 5, 6, 6, 6], "child": [6, 0, 1, 2, 3, 4], "child_size": [3, 1, 1, 1, 1, 1]}

    def condensed(**changes):
        rows = {**columns, **changes}
        return np.rec.fromarrays([np.array(rows[name]) for name in rows], names=list(rows))

    assert Hierarchy.from_hdbscan(condensed()).sizes[6] == 3
    with pytest.raises(ReaderError, match="size 2 of node 6 in row 0; expected 3"):
        Hierarchy.from_hdbscan(condensed(child_size=[2, 1, 1, 1, 1, 1]))
    with pytest.raises(ReaderError, match="size 4 of node 1 in row 2; expected 1"):
        Hierarchy.from_hdbscan(condensed(child_size=[3, 1, 4, 1, 1, 1]))


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
