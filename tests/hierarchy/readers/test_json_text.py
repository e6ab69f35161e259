"""JSON: which form it is, what an object says, depth, and what breaks."""

import gzip
import io
import json
from pathlib import Path

import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ReaderError
from pomdp_hier.hierarchy import Hierarchy

TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)


def test_lists_are_children_if_no_id_occurs_twice_else_edges() -> None:
    assert Hierarchy.from_json([[0, 1], [2, 3], [4, 5]]) == TREE
    assert Hierarchy.from_json([[6, 4], [6, 5], [4, 0], [4, 1], [5, 2], [5, 3]]) == TREE
    assert Hierarchy.from_json([["r", "a"]]).labels == ("a", "r")
    assert Hierarchy.from_json([[1, 0]], form="edges").n_nodes == 2
    assert Hierarchy.from_json([[0, 1], [3, 2]], n_items=3).root == 4


def test_an_object_says_which() -> None:
    assert Hierarchy.from_json({"children": [[0, 1], [2, 3], [4, 5]], "n_items": 4}) == TREE
    assert Hierarchy.from_json({"children": [[0, 1]], "n_leaves": 2}).n_items == 2
    edges = {"edges": [["r", "x"], ["r", "y"]], "items": ["y", "x"], "singletons": True}
    tree = Hierarchy.from_json(edges)
    assert (tree.item_labels, tree.singletons) == (("y", "x"), True)
    assert not Hierarchy.from_json(edges, singletons=False).singletons
    assert Hierarchy.from_json(edges, items=["x", "y"]).item_labels == ("x", "y")
    assert Hierarchy.from_json({"children": [[0, 1]], "items": ["a", "b"]}).labels == ("a", "b", 2)


def test_nested_objects_are_read() -> None:
    nested = {"name": "r", "children": [{"name": "a", "children": [{"name": "x"}, {"name": "y"}]}, {"name": "z"}]}
    tree = Hierarchy.from_json(json.dumps(nested))
    assert tree.labels == ("x", "y", "z", "r", "a")
    assert Hierarchy.from_json(nested, items=["z", "x", "y"]).item_labels == ("z", "x", "y")
    assert Hierarchy.from_json([nested]) == Hierarchy.from_json([nested], form="nested") == tree
    with pytest.raises(ReaderError, match="expected an object"):
        Hierarchy.from_json(b"3", form="nested")


def test_paths_files_bytes_and_byte_order_marks(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    text = TREE.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    for source in (path, str(path), text, text.encode(), b"\xef\xbb\xbf" + text.encode(), io.StringIO(text)):
        assert Hierarchy.from_json(source) == TREE
    with path.open("rb") as file:
        assert Hierarchy.from_json(file) == TREE


def test_it_comes_back_as_it_was() -> None:
    with pytest.warns(HierarchyWarning, match="2 nodes with one child"):
        tree = Hierarchy.from_edges([("r", "é"), ("é", ("a", 1)), (("a", 1), 2), (("a", 1), 3.5)], singletons=True)
    back = Hierarchy.from_json(tree.to_json())
    assert (back.labels, back.to_children(), back.singletons) == (tree.labels, tree.to_children(), True)
    with pytest.raises(ReaderError, match="labels: got one"):
        Hierarchy.from_children([[0, 1]], 2, labels=[object(), 1]).to_json()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("[[0, 1], [2, 3", r"JSON: .* line 1, column 15 \(character 14 of 14\)"),
        (b"[[0, 1]\xff]", "got 0xff as byte 7"),
        ("[[0, NaN]]", "got NaN"),
        ("[[" + "9" * 5000 + "]]", "JSON: cannot be decoded"),
        ("{}", "expected either"),
        ('{"edges": [], "children": []}', "expected either"),
        ('{"children": [[0]], "n_items": "2"}', "got '2' for n_items"),
        ('{"children": [[0]], "n_items": 1000000000000}', "expected each item in a list"),
        ('{"children": [[0, 1]], "singletons": 1}', "got 1 for singletons"),
        ('{"edges": [["r", "a"]], "items": "a"}', "got 'a' for items"),
        ('{"edges": [["r", "a"]], "items": [{}]}', r"items\[0\]: got {}"),
        ("[1, 2]", "edge 0: got 1"),
        ("[]", "children: got lists without a node"),
        ("no/such/file.json", "got 'no/such/file.json'"),
        ("nul\0byte", "cannot be read as a file"),
        (7, "got 7; expected a path"),
        ([["r", "a"], ["r"]], "edge 1: got"),
    ],
)
def test_what_breaks_is_said(source: object, text: str) -> None:
    with pytest.raises(HierarchyError, match=text):
        Hierarchy.from_json(source)  # type: ignore[arg-type]


def test_flat_records_and_what_contradicts_itself() -> None:
    rows = [{"id": "r", "parent": None}, {"id": "a", "parent": "r"}, {"id": "b", "parent": "r"}]
    assert Hierarchy.from_json(rows).labels == ("a", "b", "r")
    for source in (
        {"edges": [["r", "x"], ["r", "y"]], "items": ["y", "x"], "n_items": 3},
        {"children": [[0, 1]], "n_items": 2, "n_leaves": 3},
        {"children": [[0, 1]], "n_items": 3, "items": ["a", "b"]},
    ):
        with pytest.raises(ReaderError, match=r"differ .n_items is"):
            Hierarchy.from_json(source)
    with pytest.raises(ReaderError, match="'labels' beside 'edges'"):
        Hierarchy.from_json({"edges": [["r", "x"]], "labels": ["a", "b"]})


def test_items_name_and_order_the_items_of_children_lists() -> None:
    assert Hierarchy.from_json([[0, 1], [3, 2]], items=["a", "b", "c"]).labels == ("a", "b", "c", 3, 4)
    said = {"children": [[0, 1], [3, 2]], "labels": ["a", "b", "c", "p", "r"]}
    tree = Hierarchy.from_json(said, items=["c", "a", "b"])
    assert tree.labels == ("c", "a", "b", "p", "r")
    assert tree == Hierarchy.from_children([[1, 2], [3, 0]], 3)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"#NEXUS\nbegin trees;\n", "a NEXUS file"),
        (b"<?xml version='1.0'?><phyloxml><phylogeny/></phyloxml>", "a PhyloXML file"),
        (b"<!DOCTYPE html><html></html>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a git-lfs pointer"),
        (b"\x80\x04\x95\x0b\x00\x00\x00", "a pickle"),
        (b"PK\x03\x04" + b"\0" * 22 + b"\x13\0\0\0[Content_Types].xml", "an Excel"),
        (b"", "empty"),
        (b"\xff\xfe[\0", "UTF-16"),
    ],
)
def test_neighbouring_formats_are_named_by_every_reader_of_text(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "tree.txt"
    path.write_bytes(content)
    readers = (Hierarchy.from_json, Hierarchy.from_newick, Hierarchy.from_paths, Hierarchy.from_parents,
               Hierarchy.from_edges, Hierarchy.from_bertopic)  # fmt: skip
    for read in readers:
        for source in (path, str(path), content, io.BytesIO(content)):
            with pytest.raises(ReaderError, match=what):
                read(source)
        if what in ("a NEXUS file", "an HTML page"):
            with pytest.raises(ReaderError, match=what):
                read(content.decode())


def test_trees_in_gzip(tmp_path: Path) -> None:
    for name, read, text in (
        ("t.json.gz", Hierarchy.from_json, TREE.to_json()),
        ("t.nwk.gz", Hierarchy.from_newick, TREE.to_newick()),
        ("t.csv.gz", Hierarchy.from_parents, "id,parent\nr,\na,r\nb,r\n"),
        ("t.csv.gz", Hierarchy.from_paths, "what,where\na,H/K\nb,H/B\n"),
    ):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()))
        options = {"item": "what"} if "what" in text else {}
        assert read(path, **options) == read(text, **options, **({"form": "table"} if options else {}))


@pytest.mark.parametrize(
    "text",
    [
        '{"children": [' * 200_000 + '{"name": "a"}' + "]}" * 200_000,
        "[" * 200_000 + "]" * 200_000,
        '[{"id": ' + "9" * 5_000 + ', "parent": null}]',
    ],
    ids=["objects", "lists", "digits"],
)
def test_what_the_parser_cannot_hold_is_an_error_of_the_reader(text: str) -> None:
    with pytest.raises(ReaderError, match=r"^JSON: .*Write a deep tree as edges or Newick"):
        Hierarchy.from_json(text)


def test_a_deep_tree_is_read_by_the_formats_that_the_error_names() -> None:
    depth = 20_000
    edges = [[f"c{at}", f"c{at + 1}"] for at in range(depth)] + [["c0", "a"], [f"c{depth}", "b"]]
    newick = "(a," + "(" * depth + "b" + ")" * depth + ");"
    for read, text in ((Hierarchy.from_json, json.dumps(edges)), (Hierarchy.from_newick, newick)):
        with pytest.warns(UserWarning, match="with one child"):
            assert read(text).height == depth


def test_open_brackets_without_an_end_are_refused() -> None:
    with pytest.raises(ReaderError, match="JSON: "):
        Hierarchy.from_json("[" * 200_000)
