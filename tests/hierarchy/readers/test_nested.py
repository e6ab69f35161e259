"""Children lists, and node objects of anytree, bigtree and treelib, dictionaries and other classes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy

TREE = Hierarchy.from_children([[0, 1], [3, 2]], 3)


def test_anytree() -> None:
    anytree = pytest.importorskip("anytree")
    root = anytree.Node("r")
    a = anytree.Node("a", parent=root)
    anytree.Node("x", parent=a)
    anytree.Node("x", parent=a)
    anytree.Node("z", parent=root)
    with pytest.warns(HierarchyWarning, match="1 name of several items: 'x'; .*one row"):
        tree = Hierarchy.from_nodes(root)
    assert tree == TREE
    assert tree.labels == ("x", "x", "z", "r", "a")
    with pytest.raises(HierarchyError, match="in the tree several times: 'x'"):
        Hierarchy.from_nodes(root, items=["x", "z"])


def test_bigtree() -> None:
    bigtree = pytest.importorskip("bigtree")
    root = bigtree.list_to_tree(["r/a/x", "r/a/y", "r/z"])
    assert Hierarchy.from_nodes(root) == TREE
    assert Hierarchy.from_nodes(root, items=["z", "y", "x"]).item_labels == ("z", "y", "x")


def test_treelib() -> None:
    treelib = pytest.importorskip("treelib")
    tree = treelib.Tree()
    with pytest.raises(ReaderError, match="empty"):
        Hierarchy.from_nodes(tree)
    tree.create_node("Root", "r")
    for name, parent in (("a", "r"), ("x", "a"), ("y", "a"), ("z", "r")):
        tree.create_node("same tag", name, parent=parent)
    assert Hierarchy.from_nodes(tree) == TREE
    assert Hierarchy.from_nodes(tree).labels == ("x", "y", "z", "r", "a")


def test_the_manners_of_dendropy_and_of_methods() -> None:
    class Node:
        def __init__(self, label: str | None, below: list["Node"], taxon: str | None = None) -> None:
            self.label, self.below = label, below
            self.taxon = None if taxon is None else SimpleNamespace(label=taxon)

        def child_nodes(self) -> list["Node"]:
            return self.below

    root = Node(None, [Node("a", [Node(None, [], "x"), Node(None, [], "y")]), Node(None, [], "z")])
    assert Hierarchy.from_nodes(SimpleNamespace(seed_node=root)).labels == ("x", "y", "z", None, "a")
    assert Hierarchy.from_nodes(root) == TREE


def test_functions_and_keys() -> None:
    below: dict[str, list[str]] = {"r": ["a", "z"], "a": ["x", "y"]}
    assert Hierarchy.from_nodes("r", children=lambda name: below.get(name, []), name=str) == TREE
    nested = {"n": "r", "kids": [{"n": "a", "kids": [{"n": "x"}, {"n": "y"}]}, {"n": "z"}]}
    assert Hierarchy.from_nodes(nested, children="kids", name="n") == TREE
    with pytest.raises(ReaderError, match=r"node: got dict without title"):
        Hierarchy.from_nodes(nested, children="kids", name="title")
    with pytest.raises(ReaderError, match=r"node: got object without children or child_nodes"):
        Hierarchy.from_nodes(object())
    with pytest.raises(ReaderError, match=r"root: got 'tree\.json'"):
        Hierarchy.from_nodes("tree.json")
    with pytest.raises(ReaderError, match="expected a list of nodes"):
        Hierarchy.from_nodes({"children": "ab"})
    with pytest.raises(ReaderError, match=r"names\[1\]: got \{\}"):
        Hierarchy.from_nodes({"children": [{"name": {}}]})


def test_cycles_and_several_parents_of_one_object() -> None:
    a: dict[str, Any] = {"name": "a", "children": []}
    b = {"name": "b", "children": [a]}
    a["children"].append(b)
    with pytest.raises(HierarchyError, match="cycle of 2 nodes"):
        Hierarchy.from_nodes({"name": "r", "children": [a]})
    with pytest.raises(HierarchyError, match="cycle of 2 nodes"):
        Hierarchy.from_nodes(a)
    shared = {"name": "x"}
    dag = {"name": "r", "children": [{"name": "p", "children": [shared]}, {"name": "q", "children": [shared]}]}
    with pytest.raises(HierarchyError, match=r"'x' \(parents 'p', 'q'\)"):
        Hierarchy.from_nodes(dag)
    with pytest.warns(HierarchyWarning, match="1 copy"):
        assert Hierarchy.from_nodes(dag, on_multiple_parents="duplicate").n_items == 2


def test_a_deep_chain_of_objects() -> None:
    node: Any = SimpleNamespace(name="leaf", children=())
    for _ in range(20_000):
        node = SimpleNamespace(name=None, children=(node,))
    with pytest.warns(HierarchyWarning, match="19,999 nodes with one child"):
        assert Hierarchy.from_nodes(node).height == 19_999
    while node.children:  # freed level by level: dropping the chain at once would recurse in the interpreter
        node = node.children[0]


def test_names_as_keys_in_both_readers() -> None:
    nest = {"r": {"a": ["x", "y"], "z": None}}
    for read in (Hierarchy.from_nodes, Hierarchy.from_json):
        tree = read(nest)
        assert (tree, tree.labels) == (TREE, ("x", "y", "z", "r", "a"))
        assert read({"a": ["x", "y"], "z": []}).labels == ("x", "y", "z", None, "a")  # several keys need a root
        assert read([nest]) == read({"r": {"children": [{"a": {"children": ["x", "y"]}}, "z"]}}) == TREE
        with pytest.raises(HierarchyError, match=r"'x' \(parents 'a', 'b'\)"):
            read({"a": ["x", "y"], "b": ["x"]})
        with pytest.raises(ReaderError, match="got 3"):
            read({"a": {"x": 3}, "b": ["y"]})
        with pytest.raises(HierarchyError, match="2 roots, "):
            read([{"name": "r", "children": [{"name": "a"}]}, {"name": "s", "children": [{"name": "b"}]}])
    loop: dict[str, Any] = {}
    loop["a"] = {"b": loop, "c": ["x"]}
    with pytest.raises(HierarchyError, match="cycle"):
        Hierarchy.from_nodes(loop)


def test_one_nested_root_in_a_list() -> None:
    root = {"name": "r", "children": [{"name": "a", "children": [{"name": "x"}, {"name": "y"}]}, {"name": "z"}]}
    assert Hierarchy.from_nodes([root]) == Hierarchy.from_json([root]) == TREE


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
    with pytest.warns(HierarchyWarning, match=r"1 node with several parents.*: 1"):
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
