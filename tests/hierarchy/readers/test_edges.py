"""Edges and networkx graphs: who is an item, which opt-ins there are, what is refused."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from tests.extras import optional

pd = optional("pandas")

FRUIT = [("all", "citrus"), ("citrus", "lime"), ("citrus", "lemon"), ("all", "fig")]


def test_items_are_the_leaves_as_they_appear_or_as_listed() -> None:
    assert Hierarchy.from_edges(FRUIT).labels == ("lime", "lemon", "fig", "all", "citrus")
    tree = Hierarchy.from_edges(FRUIT, items=["fig", "lime", "lemon"])
    assert tree.item_labels == ("fig", "lime", "lemon")
    assert tree.items(tree.node("citrus")).tolist() == [1, 2]


def test_integers_keep_their_numbers() -> None:
    edges = [[5, 4], [5, 0], [4, 3], [4, 1], [4, 2]]
    for tree in (Hierarchy.from_edges(edges, n_items=4), Hierarchy.from_edges(np.array(edges))):
        assert (tree.root, tree.labels) == (5, None)
        assert tree.children(5).tolist() == [4, 0]
        assert tree.items(4).tolist() == [3, 1, 2]
    other = Hierarchy.from_edges([[90, 70], [90, 0], [70, 1], [70, 2]], n_items=3)
    assert other.labels == (0, 1, 2, 90, 70)


def test_what_a_category_lost_or_never_had_is_dropped() -> None:
    with pytest.warns(HierarchyWarning, match=r"1 empty cluster.*'nuts'"):
        tree = Hierarchy.from_edges([*FRUIT, ("all", "nuts")], items=["lime", "lemon", "fig"])
    assert tree == Hierarchy.from_edges(FRUIT)
    with pytest.warns(HierarchyWarning, match=r"'lime'; 1 empty cluster.*'sour'"):
        tree = Hierarchy.from_edges([*FRUIT, ("all", "sour"), ("sour", "lime")], on_multiple_parents="first")
    assert tree == Hierarchy.from_edges(FRUIT)


def test_missing_doubled_and_surplus_items_are_listed() -> None:
    with pytest.raises(HierarchyError, match=r"'kiwi'; surplus in the tree: 'fig'; .*'lime'"):
        Hierarchy.from_edges(FRUIT, items=["lime", "lime", "lemon", "kiwi"])
    with pytest.raises(HierarchyError, match=r"n_items: got 100000000000000, .*5 nodes.* 0, 1, 2"):
        Hierarchy.from_edges(FRUIT, n_items=10**14)
    with pytest.raises(HierarchyError, match="missing from the tree: 1"):
        Hierarchy.from_edges([(5, 0), (5, 2)], n_items=3)
    with pytest.raises(ParameterError, match=r"items\[0\]: got \[\]"):
        Hierarchy.from_edges(FRUIT, items=[[]])  # type: ignore[list-item]


def test_an_item_with_nodes_below_is_a_leaf_of_its_own_or_an_error() -> None:
    items = ["citrus", "lime", "lemon", "fig"]
    with pytest.warns(HierarchyWarning, match=r"1 item with nodes below.*'citrus'"):
        tree = Hierarchy.from_edges(FRUIT, items=items)
    assert tree.path(0).tolist() == [4, 5]
    assert sorted(tree.items(5).tolist()) == [0, 1, 2]
    with pytest.raises(HierarchyError, match="1 item with nodes below, 'citrus'"):
        Hierarchy.from_edges(FRUIT, items=items, items_at_inner="error")


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ([("r", "a"), ("b", "b")], "edge 1: got 'b' as its own parent"),
        ([("r", "x"), ("a", "b"), ("b", "c"), ("c", "a")], "cycle of 3 nodes"),
        ([("r", "a"), ("a", "b"), ("b", "a"), ("b", "x")], "cycle of 2 nodes, 'a', 'b'|cycle of 2 nodes, 'b', 'a'"),
        ([("r", "a"), ("s", "b")], "2 roots, 'r', 's'"),
        ([("r", "x"), ("r", "a"), ("a", "x")], r"'x' \(parents 'r', 'a'\)"),
        ([("r", None)], "edge 0: got .*; expected two ids"),
        ([("r", float("nan"))], "expected two ids"),
        ([("r", "a", 1.0)], r"got \('r', 'a', 1.0\); expected a pair"),
        ([("r", ["a"])], "ids of text or numbers"),
        (["ra"], "edge 0: got 'ra'"),
        ("parent,child\nr,a\nb,b\n", "row 2: got 'b' as its own parent"),
        ("parent,child\nr,a\nr, \n", "row 2: got .*; expected two ids"),
        ("up,down\nr,a\n", "columns: got 'up', 'down'"),
        ([7], "edge 0: got 7"),
        (7, "edges: got 7"),
        ([], "expected at least one item"),
    ],
)
def test_wrong_edges_are_refused(edges: object, text: str) -> None:
    with pytest.raises(HierarchyError, match=text):
        Hierarchy.from_edges(edges)  # type: ignore[arg-type]


def test_doubled_edges_and_one_child_nodes_warn_once_with_counts() -> None:
    with pytest.warns(HierarchyWarning, match=r"2 duplicate edges.*'a', 'r'; 2 nodes") as found:
        Hierarchy.from_edges([("s", "r"), ("r", "a"), ("r", "a"), ("s", "r"), ("a", "x"), ("a", "y")])
    assert len(found) == 1
    assert found[0].filename == __file__


def test_several_parents_are_copied_everything_below_with_them() -> None:
    edges = [("r", "a"), ("r", "b"), ("a", "s"), ("b", "s"), ("s", "x"), ("s", "y"), ("b", "z")]
    with pytest.warns(HierarchyWarning, match=r"1 node with several parents.*3 copies\): 's'"):
        tree = Hierarchy.from_edges(edges, on_multiple_parents="duplicate")
    assert sorted(tree.item_labels) == ["x", "x", "y", "y", "z"]
    assert tree.rows(["z", "y", "x"]).tolist() == [{"x": 2, "y": 1, "z": 0}[str(name)] for name in tree.item_labels]
    with pytest.warns(HierarchyWarning):
        tree = Hierarchy.from_edges(edges, items=["z", "y", "x"], on_multiple_parents="duplicate")
    assert tree.item_labels[:3] == ("z", "y", "x")
    assert sorted(tree.item_labels[3:]) == ["x", "y"]


def test_copies_without_end_are_refused() -> None:
    ladder = [(f"n{k}", f"{side}{k}") for k in range(60) for side in "ab"]
    ladder += [(f"{side}{k}", f"n{k + 1}") for k in range(60) for side in "ab"]
    with pytest.raises(HierarchyError, match="more than 5,000,000 nodes"):
        Hierarchy.from_edges(ladder, on_multiple_parents="duplicate")


def test_forests_get_a_root_when_asked() -> None:
    tree = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("s", "c")], add_root=True)
    assert tree.labels == ("a", "b", "c", "r", "s", None)
    assert tree.children(tree.root).tolist() == [3, 4]


def test_a_sole_item_is_a_tree() -> None:
    assert Hierarchy.from_edges([], n_items=1).n_nodes == 1
    assert Hierarchy.from_edges([], items=["only"]).labels == ("only",)


def test_tables_of_edges(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("child;parent\n" + "".join(f"{child}; {parent}\n" for parent, child in FRUIT), encoding="utf-8")
    frame = pd.DataFrame(FRUIT, columns=["source", "target"])
    columns = {"up": [up for up, _ in FRUIT], "down": [down for _, down in FRUIT]}
    for tree in (
        Hierarchy.from_edges(path),
        Hierarchy.from_edges(path.read_text(encoding="utf-8")),
        Hierarchy.from_edges(frame),
        Hierarchy.from_edges(columns, parent="up", child="down"),
    ):
        assert tree == Hierarchy.from_edges(FRUIT)
    assert Hierarchy.from_edges("parent,child\n2,0\n2,1\n", n_items=2).item_labels == ("0", "1")


def test_networkx_both_ways() -> None:
    tree = Hierarchy.from_edges(FRUIT)
    graph = tree.to_networkx()
    assert nx.is_arborescence(graph)
    assert graph.nodes[3] == {"label": "all", "size": 3, "is_item": False}
    assert Hierarchy.from_networkx(graph) == tree
    assert Hierarchy.from_networkx(nx.DiGraph(FRUIT)) == tree
    lone = nx.DiGraph()
    lone.add_node("only")
    assert Hierarchy.from_networkx(lone).labels == ("only",)
    graph = nx.DiGraph(FRUIT)
    graph.add_node("stray")
    with pytest.raises(HierarchyError, match="2 roots, 'stray', 'all'"):
        Hierarchy.from_networkx(graph)
    with pytest.raises(ReaderError, match="expected a DiGraph"):
        Hierarchy.from_networkx(nx.Graph(FRUIT))


def test_child_before_parent_is_asked_about_where_that_would_make_a_tree():
    with pytest.raises(HierarchyError, match=r"exchanged"):
        Hierarchy.from_edges([("ant", "insects"), ("bee", "insects"), ("insects", "all")])
    with pytest.raises(HierarchyError, match="several parents") as caught:
        Hierarchy.from_edges([("a", "x"), ("b", "x"), ("a", "y")])
    assert "(child, parent)" not in str(caught.value)


NARROWER = "http://www.w3.org/2004/02/skos/core#narrower"
TREE_OF_TEA = Hierarchy.from_edges([("all", "tea"), ("all", "oat"), ("tea", "mint"), ("tea", "sage")])


@pytest.mark.parametrize(
    "text",
    [
        f"concept,{NARROWER}\nall,tea\nall,oat\ntea,mint\ntea,sage\n",
        "narrower,uri\ntea,all\noat,all\nmint,tea\nsage,tea\n",
        "subject,predicate,object\ntea,skos:prefLabel,Tea\ntea,skos:broader,all\noat,skos:broader,all\n"
        "all,skos:narrower,oat\nmint,skos:broader,tea\nsage,skos:broader,tea\n",
        f"subject,predicate,object\nall,{NARROWER},tea\nall,{NARROWER},oat\ntea,{NARROWER},mint\ntea,{NARROWER},sage\n",
    ],
)
def test_skos_narrower_and_triples(text):
    assert Hierarchy.from_edges(text) == TREE_OF_TEA


def test_triples_without_links_say_what_they_hold():
    with pytest.raises(ReaderError, match=r"^predicate: got 'preflabel'"):
        Hierarchy.from_edges("subject,predicate,object\ntea,skos:prefLabel,Tea\n")
