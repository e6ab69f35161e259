"""Newick: names and quotes, what is dropped, positions of errors, a million levels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy


def test_names_quotes_comments_and_lengths() -> None:
    text = "[&R] (('it''s a \"b\"':1.5e-3,\"two, (2)\":-2)'in;side'[x[y]z]:.5,\n_c_d:1e5[&&NHX:S=a])top:0;\n[end]"
    tree = Hierarchy.from_newick(text)
    assert tree.labels == ('it\'s a "b"', "two, (2)", "_c_d", "top", "in;side")


def test_support_values_are_no_names() -> None:
    assert Hierarchy.from_newick("((a,b)0.98:1,c)100;").labels == ("a", "b", "c", None, None)
    assert Hierarchy.from_newick("((a,b)0.98:1,c)root;").labels == ("a", "b", "c", "root", "0.98")


def test_numbers_are_rows_and_items_join() -> None:
    assert Hierarchy.from_newick("(2,(1,0));") == Hierarchy.from_children([[0, 1], [3, 2]], 3)
    assert Hierarchy.from_newick("(b,(c,a));", items=["a", "b", "c"]).item_labels == ("a", "b", "c")
    assert Hierarchy.from_newick("(9,(7,8));", items=[7, 8, 9]).item_labels == ("7", "8", "9")
    with pytest.raises(HierarchyError, match=r"missing.*'d'; surplus.*'b', 'c'"):
        Hierarchy.from_newick("(b,(c,a));", items=["a", "d"])
    with pytest.raises(HierarchyError, match="surplus in the tree: 'c'"):
        Hierarchy.from_newick("(b,(c,a));", items=["a", "b"])
    assert Hierarchy.from_newick("only;").labels == ("only",)


def test_a_name_twice() -> None:
    with pytest.raises(HierarchyError, match="in the tree several times: 'a'"):
        Hierarchy.from_newick("((a,b),(a,c));")
    assert Hierarchy.from_newick("((a,b),(a,c));", on_multiple_parents="duplicate").item_labels == ("a", "b", "c", "a")
    with pytest.warns(HierarchyWarning, match="1 empty cluster dropped, without items: 'a'"):
        first = Hierarchy.from_newick("((a,b),(a,c));", on_multiple_parents="first")
    assert first == Hierarchy.from_newick("((0,1),(2));")
    assert Hierarchy.from_newick("((a,b)a,(c,d)a);").item_labels == ("a", "b", "c", "d")  # categories may share names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("((a,b),c", r"position 8\): got the end of the text with 1 open bracket"),
        ("((a,", "with 2 open brackets"),
        ("(a,b)", "with 0 open brackets"),
        ("(a,,b);", r"line 1, column 4 \(position 3\): got ','"),
        ("(a,\n(b,));", r"line 2, column 4 \(position 7\): got '\)'"),
        ("();", r"position 1\): .*the name of a leaf"),
        ("(a,'');", "the name of a leaf"),
        (";", r"position 0\): got ';'"),
        ("(a,b));", r"position 5\): got '\)' outside"),
        ("a,b;", r"position 1\): got ',' outside"),
        ("(a;", r"position 2\): got ';' inside"),
        ("(a,b);(c,d);", r"position 6\): got '\(' after the final"),
        ("(a:,b);", r"position 3\): got ','; expected a length"),
        ("(a:x,b);", r"position 3\): got 'x'; expected a length"),
        ("(a:nan,b);", "got 'nan'; expected a length"),
        ("(a:1_0,b);", "got '1_0'; expected a length"),
        ("(a:1:2,b);", r"position 4\): got a second ':'"),
        ("(a b,c);", "got 'b'; expected ','"),
        ("(a(b),c);", r"position 2\): got '\('; expected ','"),
        ("(a,b[c[d]);", r"position 4\): got a comment"),
        ("(a]b);", r"position 2\): got '\]'"),
        ("(a,'b);", r"position 3\): got a quote"),
        ("(a,b)\ud800", "got"),
    ],
)
def test_errors_say_where(text: str, message: str) -> None:
    with pytest.raises(ReaderError, match=message):
        Hierarchy.from_newick(text.encode("utf-8", "replace") if ";" not in text else text)


@given(st.lists(st.text(min_size=1).filter(lambda text: text.isprintable() or "\n" in text), min_size=2, unique=True))
def test_any_name_comes_back(names: list[str]) -> None:
    names = [name for name in names if not any("\ud800" <= char <= "\udfff" for char in name)]
    if len(names) < 2:
        return
    tree = Hierarchy.from_children([list(range(len(names)))], len(names), labels=[*names, "top (1)"])
    back = Hierarchy.from_newick(tree.to_newick(), items=names)
    assert back == tree
    assert back.labels == tree.labels


def test_names_that_are_not_unique_cannot_be_written() -> None:
    tree = Hierarchy.from_children([[0, 1]], 2, labels=["a", "a"])
    with pytest.raises(ParameterError, match="one distinct name per item"):
        tree.to_newick()
    assert tree.to_newick(names=["a", "b"]) == "(a,b);"


@pytest.mark.slow
def test_a_million_levels() -> None:
    depth = 1_000_000
    with pytest.warns(HierarchyWarning, match="999,998 nodes with one child"):
        tree = Hierarchy.from_newick("(" * depth + "a,b" + ")" * (depth - 1) + ",c);")
    assert tree.height == depth - 1


def test_many_comments_are_stepped_over_one_by_one():
    # Searching through all that follow after each took seconds for so many; a test of time would fail on slow machines.
    assert Hierarchy.from_newick(f"(a,b){'[]' * 20_000};").n_items == 2
    assert Hierarchy.from_newick("(a[x],b[y[z]])[w];").item_labels == ("a", "b")
