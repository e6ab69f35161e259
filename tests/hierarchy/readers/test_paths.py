"""Category paths: separators, escapes, blanks, ids, tables of levels; a category is its whole path."""

import io
from pathlib import Path

import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from tests.extras import optional

pd = optional("pandas")
pl = optional("polars")

SHOP = {"pan": ("Home", "Kitchen"), "pot": ("Home", "Kitchen"), "tap": ("Home",), "doll": ("Toys", "Kitchen")}
TREE = Hierarchy.from_children([[5, 7], [6, 2], [0, 1], [8], [3]], 4)


@pytest.mark.parametrize(
    "source",
    [
        {item: " > ".join(path) for item, path in SHOP.items()},
        "item,path\n" + "".join(f"{item},{'/'.join(path)}\n" for item, path in SHOP.items()),
        "# a comment\nid;category\n" + "".join(f"{item};{' | '.join(path)}\n" for item, path in SHOP.items()),
        "item,l1,l2\n" + "".join(f"{item},{','.join((*path, '')[:2])}\n" for item, path in SHOP.items()),
        lambda: pd.DataFrame({"item": list(SHOP), "one": [p[0] for p in SHOP.values()],
                              "two": [p[1] if len(p) > 1 else float("nan") for p in SHOP.values()]}),
        lambda: pl.DataFrame({"item": list(SHOP), "path": ["/".join(p) for p in SHOP.values()]}),
        [{"item": item, "path": ">".join(path)} for item, path in SHOP.items()],
        SHOP,
        list(SHOP.items()),
        [(item, " | ".join(path)) for item, path in SHOP.items()],
        {"item": list(SHOP), "path": ["/".join(path) for path in SHOP.values()]},
    ],
)  # fmt: skip
def test_the_same_paths_in_every_form(source: object) -> None:
    source = source() if callable(source) else source
    with pytest.warns(HierarchyWarning, match="1 node with one child"):
        tree = Hierarchy.from_paths(source)
    assert tree == TREE
    assert tree.item_labels == tuple(SHOP)
    assert tree.labels is not None
    assert {("Home", "Kitchen"), ("Toys", "Kitchen"), ()} <= set(tree.labels)
    assert tree.labels[tree.root] == ()


def test_bare_paths_end_in_their_item_or_in_the_category_of_the_row() -> None:
    tree = Hierarchy.from_paths(["Birds > Hawk", "Birds > Owl", "Newt"])
    assert tree == Hierarchy.from_children([[0, 1], [3, 2]], 3)
    assert tree.item_labels == (("Birds", "Hawk"), ("Birds", "Owl"), ("Newt",))
    with pytest.raises(HierarchyError, match=r"row 3: got the path of row 1 again, 'A / x'.*ends_in=\"category\""):
        Hierarchy.from_paths(["A/x", "A/y", "A/x"])
    rows = Hierarchy.from_paths(["A/x", "A/y", "A/x"], ends_in="category", items=None)
    assert rows.items(rows.node(("A", "x"))).tolist() == [0, 2]
    assert Hierarchy.from_paths(["B/x", "A", "A/y"]).n_items == 2  # a category may be listed too
    joined = Hierarchy.from_paths(["B/x", "A/y"], items=["A/y", ("B", "x")])
    assert joined.item_labels == (("A", "y"), ("B", "x"))
    assert Hierarchy.from_paths([("a/b", "c"), ["a/b", "d"]]).node(("a/b",)) == 3


def test_lines_with_ids_and_comments() -> None:
    text = "# version 1\n10 - Pets\n\n20 - Pets > Food - dry\n"
    tree = Hierarchy.from_paths(text)
    assert tree.item_labels == ("10", "20")
    assert tree.node(("Pets", "Food - dry")) > 1
    assert Hierarchy.from_paths(text, ends_in="item").labels == ("20", (), ("Pets",))
    assert Hierarchy.from_paths(text, items=[20, 10]).item_labels == ("20", "10")
    assert Hierarchy.from_paths(text.replace("20 - ", "")).item_labels == (("10 - Pets",), ("Pets", "Food - dry"))
    assert Hierarchy.from_paths("#1/a\n#1/b\n", comment=None).node(("#1",)) == 3


def test_separators_escapes_and_strip() -> None:
    assert Hierarchy.from_paths([r"a\/b / c\\", r"a\/b / d\x"], sep="/").item_labels == (
        ("a/b", "c\\"), ("a/b", "d\\x"),
    )  # fmt: skip
    with pytest.warns(HierarchyWarning, match="separator: '>' taken; '>' in 2, '/' in 2 of 2 paths. Pass sep="):
        assert Hierarchy.from_paths(["a/b > c", "a/b > d"]).node(("a/b",)) == 3
    assert Hierarchy.from_paths(["a::b", "a::c"], sep="::").node(("a",)) == 3
    assert Hierarchy.from_paths(["a\\b", "a\\c"], sep="\\").node(("a",)) == 3
    assert Hierarchy.from_paths([" a >b", " a >c"], strip=False).node((" a ",)) == 3
    assert Hierarchy.from_paths(["a>b", "a > c"], sep=" > ").node(("a",)) == 3
    assert Hierarchy.from_paths(["a\\>b", "c"], escape=None).node(("a\\", "b")) == 0
    with pytest.raises(ParameterError, match="sep: got ''"):
        Hierarchy.from_paths(["a"], sep="")


def test_blank_segments_warn_once_and_gaps_name_their_row() -> None:
    with pytest.warns(HierarchyWarning, match="empty segments dropped from 3 paths") as found:
        tree = Hierarchy.from_paths({"a": "Home > Kitchen > ", "b": "Home >> Kitchen", "c": " >Home>Kitchen "})
    assert len(found) == 1
    assert tree.items(tree.node(("Home", "Kitchen"))).tolist() == [0, 1, 2]
    gap = "item,l1,l2,l3\na,H,K,x\nb,H,,\nc,H,,x\n"
    with pytest.raises(ReaderError, match=r"row 3 \(item 'c'\): got .* level 2"):
        Hierarchy.from_paths(gap)
    with pytest.warns(HierarchyWarning, match="empty segments dropped from 1 path"):
        assert Hierarchy.from_paths(gap, blank_levels="skip").node(("H", "x")) > 3


def test_an_item_in_two_categories() -> None:
    text = "item,path\na,Home > Kitchen\na,Gifts > Kitchen\nb,Gifts\nc,Home > Bath\n"
    with pytest.raises(HierarchyError, match=r"'a' \(parents \('Home', 'Kitchen'\), \('Gifts', 'Kitchen'\)\)"):
        Hierarchy.from_paths(text)
    with pytest.warns(HierarchyWarning, match=r"'a'; 1 empty cluster.*Gifts"):
        first = Hierarchy.from_paths(text, on_multiple_parents="first")
    assert first.item_labels == ("a", "b", "c")
    with pytest.warns(HierarchyWarning, match="1 copy.: 'a'"):
        both = Hierarchy.from_paths(text, on_multiple_parents="duplicate")
    assert both.item_labels == ("a", "b", "c", "a")


def test_items_join_by_id_and_row_order_counts() -> None:
    assert Hierarchy.from_paths({2: "A", 0: "A", 1: "B"}).item_labels == (2, 0, 1)
    with pytest.raises(HierarchyError, match=r"missing.*'q'; surplus.*'pot'"):
        Hierarchy.from_paths({"pan": "A", "pot": "B"}, items=["pan", "q"])
    with pytest.raises(HierarchyError, match="surplus in the tree: 'pot'"):
        Hierarchy.from_paths({"pan": "A", "pot": "B"}, items=["pan"])
    with pytest.raises(HierarchyError, match="1 item in divided categories, 'b'"):
        Hierarchy.from_paths({"a": "H/K", "b": "H"}, items_at_inner="error")


SHOPIFY = """# categories
gid://x/ap           : Pets
gid://x/ap-1         : Pets > Live
gid://x/ap-2         : Pets > Supplies
gid://x/ap-2-1       : Pets > Supplies > Birds
gid://x/ap-2-2       : Pets > Supplies > Cats
"""


def test_ids_before_paths_are_taken_off_in_text_and_in_lists() -> None:
    tree = Hierarchy.from_paths(SHOPIFY)
    assert tree.item_labels[-2:] == ("gid://x/ap-2-1", "gid://x/ap-2-2")
    assert [tree.labels[node] for node in tree.children(tree.root)] == [("Pets",)]
    for source in (["1 - A", "2 - A > B"], "1 - A\n2 - A > B\n"):
        assert Hierarchy.from_paths(source).labels == ("1", "2", (), ("A",), ("A", "B"))
    with pytest.warns(HierarchyWarning):  # without paths behind them, words before a colon are no ids
        assert Hierarchy.from_paths(["Drama : Film", "Drama : Play"]).item_labels[0] == ("Drama : Film",)


def test_what_a_guessed_separator_makes_is_held_against_it() -> None:
    tree = Hierarchy.from_paths(["A\\x\\i", "A\\x\\j", "A\\y", "B\\z", "B\\w"])
    assert tree.node(("A", "x")) >= tree.n_items
    with pytest.warns(HierarchyWarning, match=r"separator: got none in 3 paths.*'\.' in 3.*Pass sep="):
        assert Hierarchy.from_paths(["A.x", "A.y", "B.z"]).height == 0
    with pytest.warns(HierarchyWarning, match=r"3 paths .*sep="):
        Hierarchy.from_paths(["k1 A > B", "k2 A > C", "k3 B > C"])
    assert Hierarchy.from_paths(["Heat", "Dr. No", "Alien"]).height == 0
    assert Hierarchy.from_paths(["A > x", "A > y", "B"]).height == 1


def test_files_are_read_by_their_ending(tmp_path: Path) -> None:
    table, lines = tmp_path / "t.csv", tmp_path / "t.txt"
    table.write_text("what,where\na,H/K\nb,H/B\n", encoding="utf-8")
    lines.write_text("H/a, b\nH/c\n", encoding="utf-8-sig")
    assert Hierarchy.from_paths(table, item="what").item_labels == ("a", "b")
    assert Hierarchy.from_paths(table, item="what", path="where").node(("H", "B")) > 1
    assert Hierarchy.from_paths(str(lines)).item_labels == (("H", "a, b"), ("H", "c"))
    assert Hierarchy.from_paths(io.StringIO("H/a\nH/c\n")).n_items == 2
    assert Hierarchy.from_paths("l1,l2\nH,a\nH,b\n", form="table").item_labels == (("H", "a"), ("H", "b"))
    assert Hierarchy.from_paths("x,l1,l2\n7,H,a\n7,H,b\n", levels=["l1", "l2"]).item_labels == (("H", "a"), ("H", "b"))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("item,path\na,H\nb, > \n", "row 2: got ' > ' as the path of item 'b'"),
        ("item,l1,l2\na,H,K\nb,,\n", r"row 2 \(item 'b'\): got blanks alone"),
        ("item,path\na,H\n,H\n", "row 2: got no item id"),
        ("item\na\n", "expected a path or levels"),
        ("item,path\n", "paths: got none"),
        ([], "paths: got none"),
        (7, "got 7; expected paths"),
        (["a", None], "row 1: got 'a'; expected a path|row 2"),
        ([["a"], "b"], "row 2: got 'b'"),
        ({"item": ["a"], "path": [None]}, "row 1: got the path None"),
        (["/".join("x" * 2000)], "paths: got one of 2,000 levels"),
        (b"item,path\na,\xff\n", "got 0xff as byte 12"),
    ],
)
def test_wrong_paths_are_refused(source: object, text: str) -> None:
    with pytest.raises(HierarchyError, match=text):
        Hierarchy.from_paths(source)


def test_a_list_in_the_place_of_a_segment_is_refused():
    with pytest.raises(ReaderError, match=r"row 1: got the segment \[1, 2\]"):
        Hierarchy.from_paths({"boots": ("shoes > winter", [1, 2]), "parka": ("coats", [1, 2])})


LINKS = "salt,milk\noat,milk\nmint,tea\nsage,tea\nmilk,all\ntea,all\n"


@pytest.mark.parametrize(
    "table",
    [
        "a,b\n" + LINKS,
        "b,a\n" + "".join(",".join(row.split(",")[::-1]) + "\n" for row in LINKS.split()),
        "id,term\n" + LINKS,
        "a,label,b\n" + "".join(row.replace(",", f",n{k},") + "\n" for k, row in enumerate(LINKS.split())),
        "sku,cluster\n1,0\n2,0\n3,1\n4,1\n5,2\n6,2\n",
    ],
)
def test_links_are_not_taken_for_paths(table):
    with pytest.raises(ReaderError, match=r"the names .*parent="):
        Hierarchy.from_paths(table, form="table")


def test_ids_are_not_taken_for_top_categories():
    table = "product,a,b\np1,Food,Tea\np2,Food,Tea\np3,Food,Milk\n"
    with pytest.raises(ReaderError, match=r"'product', .* item=, or .* levels="):
        Hierarchy.from_paths(table, form="table")
    assert Hierarchy.from_paths(table, item="product").item_labels == ("p1", "p2", "p3")


@pytest.mark.parametrize(
    "table",
    [
        "a,b\nFood,Food\nTea,Tea\nTea,Green\nTea,Black\nFood,Salt\n",  # a name that is repeated below
        "a,b\nFood,Tea\nFood,Milk\nToys,Tea\n",
        "sku,cluster\n0,1\n1,0\n2,1\n3,0\n",  # numbers of rows and of clusters, which as links are a ring
    ],
)
def test_categories_that_repeat_names_stay_paths(table):
    tree = Hierarchy.from_paths(table, form="table")
    assert tree.n_items == table.count("\n") - 1
    assert tree.n_items < tree.n_nodes
