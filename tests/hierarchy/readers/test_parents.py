"""Parent tables from CSV, frames, dictionaries and rows."""

from pathlib import Path

import numpy as np
import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from tests.extras import optional

pd = optional("pandas")
pl = optional("polars")

TREE = Hierarchy.from_edges([("r", "a"), ("a", "x"), ("a", "y"), ("r", "z")], items=["x", "y", "z"])
COLUMNS = {"id": ["x", "y", "z", "a", "r"], "parent": ["a", "a", "r", "r", None]}


@pytest.mark.parametrize(
    "source",
    [
        "id,parent\nx,a\ny,a\nz,r\na,r\nr,\n",
        b"\xef\xbb\xbfid;parent\r\nx;a\r\n y ; a\r\n\r\nz;r\r\na;r\r\nr;\r\n",
        'Parent_ID\tname\tid\na\t"X, 1"\tx\na\tY\ty\nr\tZ\tz\nr\tA\ta\n\tR\tr\n',
        COLUMNS,
        dict(zip(*COLUMNS.values(), strict=True)),
        list(zip(*COLUMNS.values(), strict=True)),
        [{"id": "x", "parent": "a"}, {"id": "y", "parent": "a"}, {"id": "z", "parent": "r"},
         {"id": "a", "parent": "r"}, {"id": "r"}],
        lambda: pd.DataFrame(COLUMNS),
        lambda: pl.DataFrame(COLUMNS),
    ],
)  # fmt: skip
def test_the_same_table_in_every_form(source: object) -> None:
    tree = Hierarchy.from_parents(source() if callable(source) else source)
    assert tree == TREE
    assert tree.labels == ("x", "y", "z", "a", "r")


def test_columns_may_be_named_and_files_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("key,up\nr,\n0,r\n1,r\n", encoding="utf-8")
    assert Hierarchy.from_parents(path, id="key", parent="up") == Hierarchy.from_children([[0, 1]], 2)
    assert Hierarchy.from_parents(str(path), n_items=2, id="key", parent="up").item_labels == ("0", "1")
    assert Hierarchy.from_parents(str(path), items=[1, 0], id="key", parent="up").item_labels == ("1", "0")
    with pytest.raises(ReaderError, match="columns: got 'key', 'up'"):
        Hierarchy.from_parents(path)
    with pytest.raises(ParameterError, match="column: got 'top'"):
        Hierarchy.from_parents(path, parent="top", id="key")
    with pytest.raises(ParameterError, match="delimiter: got 'ab'"):
        Hierarchy.from_parents(path, delimiter="ab")


def test_numbers_with_blanks_are_still_numbers() -> None:
    frame = pd.DataFrame({"id": [0, 1, 2, 3], "parent": [2, 2, 3, float("nan")]})
    with pytest.warns(HierarchyWarning, match="1 node with one child"):
        assert Hierarchy.from_parents(frame).labels is None
    with pytest.warns(HierarchyWarning, match="1 duplicate row dropped, to 'a'"):
        Hierarchy.from_parents([("r", None), ("a", "r"), ("b", "r"), ("a", "r")])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("id,parent\na,\nb,d\nd,c\nc,b\n", "cycle of 3 nodes, 'b', 'd', 'c'"),
        ("id,parent\na,\nb,\nc,b\n", "2 roots, 'a', 'b'"),
        ("id,parent\na,\nb,b\n", "2 roots, 'a', 'b'"),
        ("id,parent\na,\nb,q\nc,q\n", r"1 parent without a row, 'q' \(first as the parent of 'b'\)"),
        ("id,parent\na,\n,a\n", "row 2: got no id"),
        ("id,parent\nb,q\nc,r\n", "2 roots, 'q', 'r'"),
        ("id,parent\na,\nb,a\nb,\n", "row 3: got 'b' without a parent"),
        ("id,parent\na,\nb,a\nc,b\nc,a\n", r"'c' \(parents 'b', 'a'\)"),
        ("id,parent\na,\nb\n", "line 3: got 1 cell; expected 2"),
        ('id,parent\na,\n"b,a\n', "line 3: cannot be decoded"),
        ("id,id\na,b\n", "got 'id' twice"),
        ("\n\n", "the text: got an empty"),
        ("id,parent\n", "expected at least one item"),
        (b"id,parent\na,\xe9\n", "got 0xe9 as byte 12"),
        ({"id": ["a"], "parent": [None, "a"]}, "not lists of one length"),
        ([("a", None), ("b",)], "row 2: got .*; expected 2 cells"),
        ([("a", None), (["b"], "a")], "row 2: got .*ids of text or numbers"),
        (7, "got 7; expected CSV"),
    ],
)
def test_wrong_tables_are_refused(source: object, text: str) -> None:
    with pytest.raises(HierarchyError, match=text):
        Hierarchy.from_parents(source)


@pytest.mark.parametrize(
    "source",
    [
        "code,parent,name\nA,,Animals\nB,A,Birds\nC,A,Cats\n",
        "name,code,parent\nAnimals,A,0\nBirds,B,A\nCats,C,A\n",
        "name,key,parent_code\nAnimals,A,-1\nBirds,B,A\nCats,C,A\n",
        "name,level,key,Parent Code\nAnimals,1,A,null\nBirds,2,B,A\nCats,2,C,A\n",
    ],
)
def test_the_ids_are_in_the_column_that_holds_the_parents(source: str) -> None:
    assert Hierarchy.from_parents(source).labels == ("B", "C", "A")


BROADER = "http://www.w3.org/2004/02/skos/core#broader"


@pytest.mark.parametrize("name", ["broader", "skos:broader", BROADER, f"<{BROADER}>", "Broader "])
@pytest.mark.parametrize("node", ["concept", "uri", "skos:Concept"])
@pytest.mark.parametrize("read", [Hierarchy.from_parents, Hierarchy.from_edges])
def test_skos_goes_by_its_usual_names_and_the_top_needs_no_row(read, node: str, name: str) -> None:
    tree = read(f"prefLabel,{node},{name}\nEx,x,a\nWhy,y,a\nAy,a,r\nZed,z,r\n")
    assert tree == TREE
    assert tree.labels == (("x", "y", "z", "a", "r") if read == Hierarchy.from_parents else tree.labels)


def test_a_column_wins_over_the_named_one_only_if_it_holds_the_parents_far_better() -> None:
    cut_off = "id,rank,parent\n2,1,1\n3,2,1\n4,3,2\n5,4,2\n"  # the row of 1 is missing, and every rank is there
    assert Hierarchy.from_parents(cut_off).labels == ("3", "4", "5", "2", "1")


@pytest.mark.parametrize("none", [0, -1, "0", "-1", None, float("nan"), "", "NULL"])
def test_a_parent_of_none(none: object) -> None:
    assert Hierarchy.from_parents([(1, none), (2, 1), (3, 1)]).labels == (2, 3, 1)


def test_zero_is_a_parent_where_it_has_a_row_and_numbers_may_have_a_point() -> None:
    assert Hierarchy.from_parents("id,parent\n0,\n1,0\n2,0\n").labels == ("1", "2", "0")
    assert Hierarchy.from_parents("id,parent\n1,\n2,1.0\n3,1.0\n").labels == ("2", "3", "1")
    with pytest.raises(HierarchyError, match=r"2 roots, '1', '2'.*add_root=True"):
        Hierarchy.from_parents("id,parent\n1,0\n2,0\n3,1\n4,2\n")


def test_several_parents_and_roots_when_asked() -> None:
    rows = [("r", None), ("s", None), ("x", "r"), ("x", "s"), ("y", "s")]
    with pytest.warns(HierarchyWarning, match="the first is kept: 'x'"):
        tree = Hierarchy.from_parents(rows, add_root=True, on_multiple_parents="first")
    assert tree.labels == ("x", "y", "r", "s", None)


@pytest.mark.parametrize("parents", [[2, 2, -1], [2, 2, None], np.array([2, 2, -1])])
def test_an_array_of_parents_is_sent_to_the_class(parents):
    with pytest.raises(ReaderError, match=r"-1 at the root, to Hierarchy\(parents, n_items\)"):
        Hierarchy.from_parents(parents)
    assert Hierarchy([2, 2, -1], 2).items(2).tolist() == [0, 1]


@pytest.mark.parametrize("table", ["id,up\na,\nb,a\n", "id\na\n", "up,parent\na,a\na,b\n"])
def test_a_table_that_lacks_one_of_its_columns_says_which_it_has(table: str) -> None:
    with pytest.raises(ReaderError, match=r"expected 'id' and 'parent'\. Name them with id= and parent="):
        Hierarchy.from_parents(table)
