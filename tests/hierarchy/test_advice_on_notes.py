"""Advice in warnings of the readers, and on frames and names, is taken: the input, the advice, and the tree with it."""

import warnings
from functools import partial

import pytest

from pomdp_hier import Hierarchy
from pomdp_hier.errors import HierarchyError, HierarchyWarning
from tests.extras import optional

pl = optional("polars")
LEVELS = "one,two\n1,tea\n2,milk\n3,salt\n"
CODES = {("tea", "1"), ("milk", "2"), ("salt", "3")}
TABLE = partial(Hierarchy.from_paths, form="table")


def twice(name="x"):
    """A tree as dictionaries, with two leaves of which one has this name, and the other is x."""
    first = {"name": "a", "children": [{"name": "x"}, {"name": "y"}]}
    return {"name": "all", "children": [first, {"name": "b", "children": [{"name": name}, {"name": "z"}]}]}


# The reader, its input, what the warning says, the input and the arguments with the advice taken, and all names.
NOTES = [
    (
        Hierarchy.from_edges,
        "parent,child\nall,tea\nall,Tea\ntea,a\nTea,b\n",
        "ids of categories that differ in case or blanks alone: 'tea' and 'Tea'. Write them in one spelling",
        "parent,child\nall,tea\ntea,a\ntea,b\nall,c\n",
        {},
        {"a", "b", "c"},
    ),
    (
        Hierarchy.from_json,
        twice(),
        "1 name of several items: 'x'; .*Name each item differently",
        twice("w"),
        {},
        set("wxyz"),
    ),
    (
        Hierarchy.from_paths,
        ["a > b/c", "a > b/d"],
        "separator: '>' taken; '>' in 2, '/' in 2 of 2 paths. Pass sep= to choose another",
        ["a > b/c", "a > b/d"],
        {"sep": "/"},
        {("a > b", "c"), ("a > b", "d")},
    ),
    (
        Hierarchy.from_paths,
        ["tea/green", "milk", "mug"],
        "separator: got none in .* Pass sep= to choose one",
        ["tea/green", "milk", "mug"],
        {"sep": "/"},
        {("tea", "green"), ("milk",), ("mug",)},
    ),
    (
        Hierarchy.from_paths,
        ["food ~ a > 1", "food ~ b > 2", "food ~ c > 3"],
        "no two of the 3 paths share a top category .*Pass another separator than '>' with sep=",
        ["food ~ a > 1", "food ~ b > 2", "food ~ c > 3"],
        {"sep": "~"},
        {("food", "a > 1"), ("food", "b > 2"), ("food", "c > 3")},
    ),
    (TABLE, LEVELS, "Name the columns with levels=", LEVELS, {"levels": ["two", "one"]}, CODES),
    (TABLE, LEVELS, "or item=", LEVELS, {"item": "one"}, {"1", "2", "3"}),
]


@pytest.mark.parametrize(("read", "given", "said", "better", "settings", "names"), NOTES, ids=[n[2] for n in NOTES])
def test_advice_of_a_warning_that_is_taken_works(read, given, said, better, settings, names):
    with pytest.warns(HierarchyWarning, match=said):
        read(given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = read(better, **settings)
    assert not [str(one.message) for one in caught if said.split(":")[0][:20] in str(one.message)]
    assert set(tree.item_labels) == names


def test_names_of_newick_with_spaces_are_quoted():
    with pytest.raises(HierarchyError, match="Quote a name with spaces"):
        Hierarchy.from_newick("(green tea,milk)all;")
    assert Hierarchy.from_newick("('green tea',milk)all;").item_labels == ("green tea", "milk")


def test_a_lazy_frame_is_collected():
    frame = pl.DataFrame({"id": ["all", "a", "b"], "parent": [None, "all", "all"]})
    with pytest.raises(HierarchyError, match="Collect a lazy one"):
        Hierarchy.from_parents(frame.lazy())
    assert Hierarchy.from_parents(frame.lazy().collect()).item_labels == ("a", "b")


def test_a_tree_that_cannot_be_changed_is_built_anew():
    tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
    with pytest.raises(AttributeError, match="Build another one"):
        tree.parent = [3, 4, 3, 4, -1]
    assert Hierarchy([3, 4, 3, 4, -1], 3).parent.tolist() == [3, 4, 3, 4, -1]


def test_nodes_with_one_child_are_removed():
    with pytest.warns(HierarchyWarning, match=r"Remove them with collapse_unary\(\)"):
        tree = Hierarchy.from_paths({"a": "all > only", "b": "all > only", "c": "all > only"})
    assert tree.n_nodes - tree.n_items == 3  # the root, all and only
    assert tree.collapse_unary().to_children() == [[0, 1, 2]]
