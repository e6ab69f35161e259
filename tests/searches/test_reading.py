"""One search in every form that `read_searches` takes, and what it says of what cannot be joined."""

import io
from itertools import product

import numpy as np
import pytest

from pomdp_hier import Hierarchy, read_searches
from pomdp_hier.errors import DataWarning, FileFormatError, HierarchyError, ParameterError, ReaderError
from tests.extras import optional

pd = optional("pandas")

TREE = Hierarchy.from_paths(
    {
        "sponge": "Home > Bath",
        "towel": "Home > Bath",
        "lamp": "Home > Light",
        "tent": "Garden > Camp",
        "gnome": "Garden",
    }
    | {"torch": "Garden > Light"}
)
LONG = "searcher,item,step,node\nAnn,lamp,1,Home\nAnn,lamp,3,Home > Light\nAnn,lamp,2,Bath\nBob,tent,1,Garden > Camp\n"
WAY = [("Home",), ("Home", "Bath"), ("Home", "Light"), ("Garden", "Camp")]


def labels(searches):
    return [None if node < 0 else TREE.labels[node] for node in searches.nodes.tolist()]


def forms():
    rows = [line.split(",") for line in LONG.splitlines()]
    columns = {name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}
    yield "csv", LONG
    yield "tsv", LONG.replace(",", "\t")
    yield "semicolons, other order", "\n".join(";".join(reversed(row)) for row in rows) + "\n"
    yield "open file", io.StringIO(LONG)
    yield "columns", columns
    yield "records", [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    yield "tuples", [tuple(row) for row in rows[1:]]
    yield "numbers of steps", columns | {"step": [1, 3.0, 2, 1]}
    yield "times", columns | {"step": ["10:01", "10:03", "10:02", "10:01"]}
    yield "paths as tuples", columns | {"node": [("Home",), ("Home", "Light"), ("Home", "Bath"), ["Garden", "Camp"]]}


@pytest.mark.parametrize(("name", "source"), list(forms()), ids=[name for name, _ in forms()])
def test_a_long_table_in_any_form(name, source):
    found = read_searches(source, TREE)
    assert labels(found) == WAY
    assert found.searchers == ("Ann", "Bob")
    assert [TREE.labels[item] for item in found.items] == ["lamp", "tent"]
    assert found.offsets.tolist() == [0, 3, 4]
    assert found.found.tolist() == [True, True]


def test_a_data_frame_and_a_file(tmp_path):
    frame = pd.read_csv(io.StringIO(LONG))
    (tmp_path / "searches.csv").write_text(LONG)
    for source in (frame, tmp_path / "searches.csv", str(tmp_path / "searches.csv")):
        assert labels(read_searches(source, TREE)) == WAY


@pytest.mark.parametrize(
    ("paths", "options"),
    [
        (["Home > Bath > <back> > Light", "Garden > Camp"], {}),
        (["Home|Bath|<back>|Light", "Garden|Camp"], {}),
        (["Home;Bath;<;Light", "Garden;Camp"], {"sep": ";", "back": "<"}),
        (["Home > Bath > UP > Light", "Garden > Camp"], {"back": ("<back>", "UP")}),
        ([["Home", "Bath", "<back>", "Light"], ["Garden", "Camp"]], {}),
    ],
)
def test_one_path_per_row(paths, options):
    found = read_searches({"target": ["lamp", "tent"], "path": paths}, TREE, **options)
    assert labels(found) == [("Home",), ("Home", "Bath"), ("Home",), ("Home", "Light"), ("Garden",), ("Garden", "Camp")]
    assert found.returns.tolist() == [False, False, True, False, False, False]
    assert found.searchers == (1, 2)


def test_columns_by_name_and_searches_by_id():
    rows = {"who": ["a"] * 4, "aim": ["lamp"] * 4, "k": [1, 2, 1, 2], "page": ["Home", "Light", "Garden", "Camp"]}
    named = {"searcher": "who", "item": "aim", "step": "k", "node": "page"}
    by_search = named | {"search": "no"}
    with pytest.raises(ReaderError, match=r"row 3: got step 1 of row 1 again.*columns="):
        read_searches(rows, TREE, columns=named)
    found = read_searches(rows | {"no": ["x", "x", "y", "y"]}, TREE, columns=by_search)
    assert labels(found) == [("Home",), ("Home", "Light"), ("Garden",), ("Garden", "Camp")]
    assert found.found.tolist() == [True, False]
    with pytest.raises(ReaderError, match=r"row 1: .*'lamp', 'tent'"):
        read_searches(
            rows | {"aim": ["lamp", "tent"] * 2, "no": ["x", "x", "y", "y"]}, TREE, columns=named | {"search": "no"}
        )


def test_a_name_of_several_nodes_is_the_child_of_the_last_one():
    found = read_searches({"item": ["lamp", "torch"], "path": ["Home > Light", "Garden > Light"]}, TREE)
    assert labels(found)[1::2] == [("Home", "Light"), ("Garden", "Light")]
    with pytest.warns(DataWarning, match=r"1 click .*'Light'"):
        found = read_searches({"item": ["lamp"], "path": [["Light", "Home"]]}, TREE)
    assert labels(found) == [None, ("Home",)]


def test_an_id_goes_before_a_path_of_that_name():
    tree = Hierarchy.from_paths({"Art": "Art", "Monet": "Art"})
    found = read_searches({"item": ["Monet"], "path": [["Art"]]}, tree)
    assert tree.labels[found.nodes[0]] == "Art"


def test_clicks_outside_are_counted_and_said():
    with pytest.warns(DataWarning, match=r"2 clicks .*'help', 'cart'") as caught:
        found = read_searches({"item": ["lamp"], "path": ["Home > help > <back> > Light > cart"]}, TREE)
    assert len(caught) == 1
    assert labels(found) == [("Home",), None, ("Home",), ("Home", "Light"), None]
    assert (found.n_outside, len(found.notes)) == (2, 1)
    assert "2 clicks" in found.notes[0]


def test_steps_back_beyond_the_start_and_searches_without_clicks_are_counted():
    with pytest.warns(DataWarning, match=r"1 step back .*; 1 search"):
        found = read_searches({"item": ["lamp", "tent"], "path": ["<back> > Home", ""]}, TREE)
    assert found.offsets.tolist() == [0, 2, 2]
    assert found.found.tolist() == [False, False]


def test_unknown_items():
    rows = {"item": ["lamp", "vase", "jug", "vase"], "path": ["Home"] * 4}
    with pytest.raises(ReaderError, match=r"item: got 'vase', 'jug' in 3 searches"):
        read_searches(rows, TREE)
    with pytest.warns(DataWarning, match=r"3 searches .*'vase', 'jug'"):
        found = read_searches(rows, TREE, unknown_items="drop")
    assert len(found) == 1
    with pytest.raises(ReaderError, match="item: got 'Bath'"):  # a category is not an item
        read_searches({"item": ["Bath"], "path": ["Home"]}, TREE, unknown_items="drop")


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ({"item": ["lamp"], "path": ["x > y"]}, {}, "node: got 'x', 'y'"),
        (
            {"item": ["lamp"], "walk": ["Home"]},
            {},
            "columns: got 'item', 'walk'",
        ),
        ({"path": ["Home"], "who": [1]}, {}, r"columns: .*; expected 'item'. Name it with columns="),
        ({"item": ["lamp"], "node": ["Home"]}, {}, "expected 'searcher'"),
        ({"user": [1, 1], "item": ["lamp"] * 2, "node": ["Home"] * 2, "step": [1, "x"]}, {}, "got steps 1, 'x'"),
        ({"user": [1], "item": ["lamp"], "node": ["Home"], "step": [float("nan")]}, {}, "row 1: got no step"),
        ({"user": [{}], "item": ["lamp"], "node": ["Home"]}, {}, "row 1: got {} as the searcher"),
        ({"user": [1], "item": [{}], "node": ["Home"]}, {}, "row 1: got {} as the item"),
        ({"search": [{}], "item": ["lamp"], "path": ["Home"]}, {}, "row 1: got {} as the searcher"),
        ({"user": [1], "item": ["lamp"], "node": [{}], "step": [10**400]}, {}, "node: got '{}'"),
        ({"item": ["lamp"], "path": ["Home"]}, {"links": [("x", "y")]}, "links: got 'x'"),
        ("item,path\nlamp\n", {}, "line 2: got 1 cell"),
        ("nothing.csv", {}, "cannot be read as a file"),
    ],
)
def test_what_cannot_be_joined_is_named(source, options, words):
    with pytest.raises(ReaderError, match=words) as caught:
        read_searches(source, TREE, **options)
    assert isinstance(caught.value, FileFormatError | HierarchyError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "top"}, "start: got 'top'"),
        ({"unknown_items": "skip"}, "unknown_items: got 'skip'"),
        ({"back": ""}, "back: got ''"),
        ({"back": [3]}, r"back: got \[3\]"),
        ({"back": 3}, "back: got 3"),
        ({"sep": ""}, "sep: got ''"),
        ({"columns": {"item": "aim"}}, "column: got 'aim'"),
        ({"columns": "item"}, "columns: got 'item'; expected a dict"),
        ({"columns": {"goal": "item"}}, "columns: got 'goal'"),
        ({"columns": {"node": "path", "path": "path"}}, "columns: .*expected 'node' or 'path', not both"),
        ({"columns": {"step": "item"}}, "columns: .*expected no 'step' with one path per row"),
    ],
)
def test_arguments_that_cannot_be_are_named(options, words):
    with pytest.raises(ParameterError, match=words):
        read_searches({"item": ["lamp"], "path": ["Home > Light"]}, TREE, **options)


def test_a_tree_and_nothing_else():
    with pytest.raises(HierarchyError, match="hierarchy: got"):
        read_searches(LONG, [[0, 1]])


def test_an_item_is_a_path_or_an_id_and_a_path_of_one_click_needs_no_list():
    tree = Hierarchy.from_paths(["Home > Bath > sponge", "Home > Bath > towel", "Home > lamp"])
    rows = {"item": [["Home", "lamp"], "Home > lamp", ("Home", "lamp"), "lamp"], "path": [["Home"]] * 4}
    assert len(set(read_searches(rows, tree).items.tolist())) == 1
    numbers = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    found = read_searches({"item": [0, 3], "path": [4, "5"]}, numbers, back=())
    assert found.nodes.tolist() == [4, 5]


def test_ids_that_are_numbers_and_numbers_as_ids():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    for node, step in product((4, "4", 4.0, np.int64(4)), (0, "0")):
        assert read_searches([("p", 0, step, node)], tree).nodes.tolist() == [4]


def test_links_are_pairs_of_nodes():
    links = {"source": ["lamp", "lamp", "tent", "x"], "target": ["Home", "torch", "gnome", "tent"]}
    with pytest.warns(DataWarning, match=r"1 link .*'x'"):
        found = read_searches({"item": ["tent"], "path": [["lamp", "torch"]]}, TREE, start="first", links=links)
    lamp = TREE.node("lamp")
    low, high = found.link_offsets[lamp : lamp + 2]
    assert {TREE.labels[node] for node in found.links[low:high]} == {("Home",), "torch"}


def test_a_selection():
    found = read_searches(LONG, TREE)
    one = found.select(np.array([False, True]))
    assert (one.searchers, labels(one), one.offsets.tolist()) == (("Bob",), WAY[3:], [0, 1])
    assert "1 search of 1 searcher for 1 item, 1 click, 100% found" in repr(one)
    with pytest.raises(ParameterError, match="chosen: got"):
        found.select([1])


PAIRS = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)


@pytest.mark.parametrize("step", [int, str])
def test_steps_in_nanoseconds_are_distinct(step):
    began = 1_700_000_000_000_000_001
    rows = [("ann", 0, step(began + 1), 5), ("ann", 0, step(began), 4)]
    assert read_searches(rows, PAIRS).nodes.tolist() == [4, 5]


def test_times_without_leading_zeros_are_in_order():
    rows = [("ann", 0, "2024-05-31 10:15:00.25", 4), ("ann", 0, "2024-05-31 9:30:00", 5)]
    rows.append(("ann", 0, "2024-05-31 10:15:00.5", 5))
    assert read_searches(rows, PAIRS).nodes.tolist() == [5, 4, 5]


def test_a_path_with_a_nul_is_read():
    with pytest.warns(DataWarning, match="outside"):
        found = read_searches([{"item": 0, "path": "x\0y > 5 > <back>"}], PAIRS)
    assert found.nodes.tolist() == [-1, 5, -1]


def test_after_a_click_outside_a_name_of_several_nodes_is_not_the_root():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=["a", "b", "c", "d", "shop", "tools", "shop"])
    with pytest.warns(DataWarning, match="several nodes"):
        found = read_searches([{"item": "a", "path": "tools > elsewhere > shop"}], tree)
    assert found.nodes.tolist() == [5, -1, -1]
