"""What nodes are called for people: one function for drawings, reports, tables and messages."""

import numpy as np
import pytest

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames, label_text

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
    with pytest.raises(ParameterError, match="names: got 2 names for 3 items and 5 nodes"):
        NodeNames(PLAIN, ["a", "b"])
    with pytest.raises(ParameterError, match="names: got 'abc'"):
        NodeNames(PLAIN, "abc")
    with pytest.raises(ParameterError, match="4 names"):
        PLAIN.to_text(names=["a", "b", "c", "d"])
    with pytest.raises(IndexError):
        NodeNames(PLAIN)[5]


def test_paths_are_text() -> None:
    assert [label_text(label) for label in (("Home", 3), (), None, 1.5)] == ["Home / 3", "(root)", "None", "1.5"]
