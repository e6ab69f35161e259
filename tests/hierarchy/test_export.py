"""Writers of a tree, and the names of its nodes."""

from pathlib import Path

import numpy as np
import pytest

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames, label_text

TREE = Hierarchy.from_children(
    [[1, 0, 2], [5, 3, 7], [4]], 5, labels=["ox", "é", "c\nd", "🐢", "e", "trio", "top", "one"]
)


def test_a_drawing() -> None:
    assert TREE.to_text() == "top (5 items)\n├─ trio (3 items): é, ox, c\\nd\n├─ 🐢\n└─ one (1 item): e"
    assert TREE.to_text(ascii_only=True).splitlines()[1:3] == ["|- trio (3 items): \\xe9, ox, c\\nd", "|- \\U0001f422"]
    assert TREE.to_text(max_items=1, names=["a", "b", "c", "d", "e"]).splitlines()[1] == "├─ trio (3 items): b, …"
    with pytest.raises(ParameterError, match="max_lines: got 0;"):
        TREE.to_text(max_lines=0)


def test_a_drawing_that_stops_says_so() -> None:
    assert TREE.to_text(max_lines=2) == "top (5 items)\n├─ trio (3 items): é, ox, c\\nd\n… 2 clusters more of 4"
    wide = Hierarchy.from_children([list(range(1000))], 1000, singletons=True)
    assert len(wide.to_text(max_lines=10).splitlines()) == 11


def test_paths_are_drawn_by_their_last_name() -> None:
    tree = Hierarchy.from_paths({"a": "Home > Kitchen", "b": "Home > Bath"})
    assert tree.to_text() == ("(root) (2 items)\n└─ Home (2 items)\n   ├─ Kitchen (1 item): a\n   └─ Bath (1 item): b")


def test_a_blank_name_is_drawn_as_the_number() -> None:
    assert Hierarchy.from_children([[0, 1]], 2, labels=["", " "]).to_text() == "2 (2 items): 0, 1"


def test_edges_have_parents_first() -> None:
    edges = TREE.to_edges()
    assert edges.shape == (7, 2)
    known = {TREE.root}
    for parent, child in edges.tolist():
        assert parent in known
        known.add(child)
    assert Hierarchy.from_edges(edges, n_items=5) == TREE
    assert np.array_equal(Hierarchy.from_edges(edges, n_items=5).parent, TREE.parent)


def test_files_hold_what_is_returned(tmp_path: Path) -> None:
    for write, suffix in ((TREE.to_newick, "nwk"), (TREE.to_json, "json")):
        path = tmp_path / f"tree.{suffix}"
        text = write(path)
        assert path.read_text(encoding="utf-8") == text
    assert Hierarchy.from_newick(tmp_path / "tree.nwk", items=TREE.item_labels) == TREE
    assert Hierarchy.from_json(tmp_path / "tree.json").labels == TREE.labels


def test_counts_say_what_they_may_be() -> None:
    with pytest.raises(ParameterError, match="max_lines: got 0;"):
        TREE.to_text(max_lines=0)
    with pytest.raises(ParameterError, match="max_items: got -1;"):
        TREE.to_text(max_items=-1)
    assert TREE.to_text(max_items=0).splitlines()[1].startswith("├─ trio (3 items)")


def test_a_graph_has_each_node_with_its_label_size_and_kind() -> None:
    graph = TREE.to_networkx()
    assert set(graph.edges) == {(5, 1), (5, 0), (5, 2), (6, 5), (6, 3), (6, 7), (7, 4)}
    assert graph.graph == {"n_items": 5, "singletons": TREE.singletons}
    for node in range(8):
        expected = {"label": TREE.labels[node], "size": int(TREE.sizes[node]), "is_item": node < 5}
        assert graph.nodes[node] == expected
    bare = Hierarchy.from_children([[0, 1]], 2).to_networkx()
    assert [bare.nodes[node]["label"] for node in range(3)] == [0, 1, 2]


def test_newick_needs_a_name_of_its_own_for_each_item() -> None:
    for names in (["a", "a", "b", "c", "d"], ["a", "", "b", "c", "d"], ["a", "b"]):
        with pytest.raises(ParameterError, match="one distinct name per item"):
            TREE.to_newick(names=names)
    assert TREE.to_newick(names=["a", "b", "c", "d", "e"]) == "((b,a,c),d,(e));"
    paths = Hierarchy.from_paths({"a": "Home > Bath", "b": "Home > Bed", "c": "Work"})
    assert Hierarchy.from_newick(paths.to_newick()).n_items == 3


PLAIN = Hierarchy.from_children([[0, 1], [2, 3]], 3)
SHOP = Hierarchy.from_paths({"a": "Home > Bath", "b": "Home > Bed"})


def test_a_node_without_any_name_is_its_number() -> None:
    assert list(NodeNames(PLAIN)) == ["0", "1", "2", "3", "4"]
    assert list(NodeNames(PLAIN, in_words=True)) == ["item 0", "item 1", "item 2", "node 3", "node 4"]


def test_given_names_go_before_ids_and_ids_before_numbers() -> None:
    assert list(NodeNames(SHOP)) == ["a", "b", "(root)", "Home", "Home / Bath", "Home / Bed"]
    assert list(NodeNames(SHOP, ["A", ""])) == ["A", "b", "(root)", "Home", "Home / Bath", "Home / Bed"]
    assert NodeNames(SHOP, last_part=True)[3:] == ["Home", "Bath", "Bed"]
    assert NodeNames(SHOP, np.array(list("uvwxyz")))[5] == "z"


def test_a_table_of_names_meets_ids_by_themselves_or_their_text() -> None:
    assert list(NodeNames(PLAIN, {"0": "ant", 4: "all", "1": ""})) == ["ant", "1", "2", "3", "all"]
    assert NodeNames(SHOP, {"Home / Bath": "Tubs", ("Home",): "House", "(root)": "Shop"})[2:] == [
        "Shop", "House", "Tubs", "Home / Bed",
    ]  # fmt: skip


def test_an_unnamed_root_is_called_so_and_an_unnamed_node_is_not() -> None:
    tree = Hierarchy.from_newick("((A,B),(C,D)all_but_root);")
    assert NodeNames(tree)[4:] == ["(root)", "5", "all_but_root"]
    assert NodeNames(tree, in_words=True)[5] == "node 5"


def test_a_list_of_another_length_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"names: got 2 .*3 items and 5 nodes"):
        NodeNames(PLAIN, ["a", "b"])
    with pytest.raises(ParameterError, match="names: got 'abc'"):
        NodeNames(PLAIN, "abc")
    with pytest.raises(ParameterError, match="4 names"):
        PLAIN.to_text(names=["a", "b", "c", "d"])
    with pytest.raises(IndexError):
        NodeNames(PLAIN)[5]


def test_paths_are_text() -> None:
    assert [label_text(label) for label in (("Home", 3), (), None, 1.5)] == ["Home / 3", "(root)", "None", "1.5"]
