"""Tree files of every format: told by ending and content, read with the options that people need, or refused."""

import io
import json
import re

import numpy as np
import pytest

from pomdp_hier.cli import main

PARENTS = "id,parent\nall,\nland,all\nsea,all\nant,land\nbee,land\ncod,sea\neel,sea\n"
EDGES = "parent,child\nall,land\nall,sea\nland,ant\nland,bee\nsea,cod\nsea,eel\n"
PATHS = "item,path\nant,all > land\nbee,all > land\ncod,all > sea\neel,all > sea\n"
LEVELS = "item,l1,l2\nant,all,land\nbee,all,land\ncod,all,sea\neel,all,sea\n"
LINES = "all > land > ant\nall > land > bee\nall > sea > cod\nall > sea > eel\n"
NEWICK = "((ant,bee)land,(cod,eel)sea)all;"
NESTED = (
    '{"name": "all", "children": [{"name": "land", "children": [{"name": "ant"}, {"name": "bee"}]}, '
    '{"name": "sea", "children": [{"name": "cod"}, {"name": "eel"}]}]}'
)
JSON_EDGES = json.dumps([row.split(",") for row in EDGES.splitlines()[1:]])
CHILDREN = '{"children": [[0, 1], [2, 3], [4, 5]], "labels": ["ant", "bee", "cod", "eel"]}'
TOPICS = "Parent_ID,Parent_Name,Child_Left_ID,Child_Right_ID\n4,x,0,1\n5,y,2,3\n6,z,4,5\n"


def shown(capsys, path, *options: str) -> str:
    assert main(["show", str(path), "--ascii", *options]) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("warning: ") for line in captured.err.splitlines())
    return captured.out


def refused(capsys, path, *options: str, code: int = 1) -> str:
    assert main(["show", str(path), *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    line = captured.err.splitlines()[-1]
    assert line.startswith("error: ")
    assert "=" not in line.replace("==", "") or code == 2, "remedies are options, not arguments of Python"
    return line


WRITTEN = {
    "a.nwk": NEWICK,
    "a.newick": NEWICK,
    "a.tree": NEWICK,
    "a.tre": "[&R] " + NEWICK,
    "parents.csv": PARENTS,
    "parents.tsv": PARENTS.replace(",", "\t"),
    "edges.csv": EDGES,
    "swapped.csv": "\ufeffSource;Target\n" + EDGES.partition("\n")[2].replace(",", ";"),
    "child.csv": "child,parent\nall,\n" + "".join(f"{b},{a}\n" for a, b in json.loads(JSON_EDGES)),
    "broader.csv": "concept,http://www.w3.org/2004/02/skos/core#broader\n"
    + "".join(f"{b},{a}\n" for a, b in json.loads(JSON_EDGES)),
    "narrower.csv": EDGES.replace("parent,child", "concept,narrower"),
    "triples.csv": "subject,predicate,object\n" + "".join(f"{b},skos:broader,{a}\n" for a, b in json.loads(JSON_EDGES)),
    "paths.csv": PATHS,
    "levels.csv": LEVELS,
    "lines.txt": "# a comment\n" + LINES,
    "nested.json": NESTED,
    "edges.json": JSON_EDGES,
    "children.json": CHILDREN,
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("piped", [False, True])
def test_formats_are_recognised_by_ending_and_content(tmp_path, capsys, monkeypatch, name, piped):
    path = tmp_path / name
    path.write_text(WRITTEN[name], encoding="utf-8")
    if piped:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    drawn = shown(capsys, "-" if piped else path)
    assert "4 items" in drawn.splitlines()[0]
    assert re.findall(r"(\w+), (\w+)$", drawn, re.MULTILINE) == [("ant", "bee"), ("cod", "eel")]


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("newick", NEWICK),
        ("parents", PARENTS),
        ("edges", EDGES),
        ("edges", JSON_EDGES),
        ("paths", PATHS),
        ("paths", LINES),
        ("nested", NESTED),
        ("json", NESTED),
        ("children", CHILDREN),
        ("linkage", "[[0, 1, 1.0, 2], [2, 3, 1.5, 2], [4, 5, 2.0, 4]]"),
        ("bertopic", TOPICS),
    ],
)
def test_a_format_can_be_given(tmp_path, capsys, form, content):
    (tmp_path / "tree.dat").write_text(content, encoding="utf-8")
    assert "4 items" in shown(capsys, tmp_path / "tree.dat", "--tree-format", form, "--no-singletons")


def test_linkages_and_other_arrays(tmp_path, capsys):
    merges = np.array([[0, 1, 0.5, 2], [2, 3, 0.7, 2], [4, 5, 0.9, 4]])
    np.save(tmp_path / "z.npy", merges)
    np.savez(tmp_path / "z.npz", ward=merges, single=merges[:, :2])
    np.save(tmp_path / "e.npy", np.array([[6, 4], [6, 5], [4, 0], [4, 1], [5, 2], [5, 3]]))
    (tmp_path / "z.json").write_text(json.dumps(merges.tolist()), encoding="utf-8")
    expected = shown(capsys, tmp_path / "z.npy").partition("\n")[2]
    assert expected.count("\n") == 7
    assert shown(capsys, tmp_path / "z.npz", "--tree-key", "ward").partition("\n")[2] == expected
    assert shown(capsys, tmp_path / "z.npz", "--tree-key", "single").partition("\n")[2] == expected
    assert shown(capsys, tmp_path / "z.json").partition("\n")[2] == expected
    of_edges = shown(capsys, tmp_path / "e.npy", "--tree-format", "edges").partition("\n")[2]
    assert of_edges == shown(capsys, tmp_path / "z.npy", "--no-singletons").partition("\n")[2]
    np.save(tmp_path / "c.npy", merges[:, :2].astype(np.int32))
    assert of_edges == shown(capsys, tmp_path / "c.npy", "--tree-format", "children").partition("\n")[2]
    assert "fractions" in refused(capsys, tmp_path / "z.npy", "--tree-format", "children")
    assert "got newick for an array" in refused(capsys, tmp_path / "z.npy", "--tree-format", "newick")


def test_an_array_on_standard_input(capsys, monkeypatch):
    content = io.BytesIO()
    np.save(content, np.array([[0, 1, 0.5, 2], [3, 2, 0.7, 3]]))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.getvalue())))
    assert "3 items, 5 clusters" in shown(capsys, "-")


@pytest.mark.parametrize("content", [PARENTS, EDGES, PATHS, LEVELS])
def test_tables_in_parquet(tmp_path, capsys, content):
    pq = pytest.importorskip("pyarrow.parquet")
    csv = pytest.importorskip("pyarrow.csv")
    pq.write_table(csv.read_csv(io.BytesIO(content.encode())), tmp_path / "t.parquet")
    assert "4 items" in shown(capsys, tmp_path / "t.parquet")


def test_columns_and_separators(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("sku,name,where\n1,Ant,all/land\n2,Bee,all/land\n3,Cod,all/sea\n", encoding="utf-8")
    drawn = shown(capsys, table, "--item-column", "name", "--path-column", "where", "--sep", "/")
    assert "Ant, Bee" in drawn
    table.write_text("sku,a,note,b\n1,all,x,land\n2,all,y,sea\n", encoding="utf-8")
    assert "`- sea" in shown(capsys, table, "--levels", "a, b")
    table.write_text("node,above\nr,\na,r\nb,r\n", encoding="utf-8")
    assert "a, b" in shown(capsys, table, "--parent-column", "above")
    table.write_text("key,parent\nr,\na,r\nb,r\n", encoding="utf-8")
    assert "a, b" in shown(capsys, table)
    table.write_text("key,other,parent\nr,r,\na,a,r\nb,b,r\n", encoding="utf-8")
    assert "--item-column and --parent-column" in refused(capsys, table)
    assert "a, b" in shown(capsys, table, "--item-column", "key")
    (tmp_path / "l.txt").write_text("all::land\nall::sea\nall::land\n", encoding="utf-8")
    drawn = shown(capsys, tmp_path / "l.txt", "--sep", "::", "--path-ends-in", "category")
    assert "3 items" in drawn
    assert "0, 2" in drawn


def test_trees_of_untidy_files(tmp_path, capsys):
    def file(name: str, content: str):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    trailing = file("trailing.csv", "item,path\na,Food > Tea > \nb, Food>Tea \n")
    assert "a, b" in shown(capsys, trailing)
    same = file("same.csv", "item,path\na,Sea|Wild\nb,Land|Wild\n")
    assert shown(capsys, same).count("Wild") == 2
    gap = file("gap.csv", "item,l1,l2,l3\na,Food,Tea,Green\nb,Food,,Green\n")
    assert "row 2" in refused(capsys, gap)
    assert "2 items" in shown(capsys, gap, "--blank-levels", "skip")
    twice = file("twice.csv", "item,path\na,Food > Tea\na,Gifts > Tea\nb,Gifts > Mugs\n")
    said = refused(capsys, twice)
    assert "'a' (parents ('Food', 'Tea'), ('Gifts', 'Tea'))" in said
    assert said.endswith("pass --on-multiple-parents first or duplicate.")
    assert "3 items" in shown(capsys, twice, "--on-multiple-parents", "duplicate")
    google = file("shop.txt", "# Version 1\n7 - Food\n8 - Food > Tea\n")
    assert "`- Tea (1 item): 8" in shown(capsys, google)
    assert "cycle of 2 nodes, 'a', 'b'" in refused(capsys, file("cycle.csv", "id,parent\nr,\na,b\nb,a\n"))
    roots = file("roots.csv", "id,parent\nr,\ns,\na,r\nb,s\n")
    assert "2 roots, 'r', 's'" in refused(capsys, roots)
    assert "2 items" in shown(capsys, roots, "--add-root")
    dag = file("dag.json", '[["r","a"],["r","b"],["a","x"],["b","x"]]')
    assert "'x' (parents 'a', 'b')" in refused(capsys, dag)
    assert "one child" not in shown(capsys, file("chain.json", '[["r","u"],["u","a"],["u","b"],["r","c"]]'))
    assert "1 item, 1 cluster" in shown(capsys, file("one.json", '{"edges": [["r","x"]], "items": ["x"]}'))
    assert "Owl; (barn)" in shown(capsys, file("q.nwk", "('Owl; (barn)':1,[a [nested] note]B:2)r;"))
    assert "position" in refused(capsys, file("empty-name.nwk", "((A:1e-5,B:-0.1),,C);"))
    assert "2 open brackets" in refused(capsys, file("cut.nwk", "((A,B),(C"))
    assert "got node 0 in rows 0 and 1" in refused(capsys, file("again.json", "[[0, 1, 1.0, 2], [0, 2, 2.0, 2]]"))
    assert "3 items" in shown(capsys, file("inversion.json", "[[0, 1, 2.0, 2], [3, 2, 1.5, 3]]"))
    partial = file("partial.json", '{"n_leaves": 5, "children": [[0, 1], [2, 3]]}')
    assert "3 roots" in refused(capsys, partial)
    assert "5 items" in shown(capsys, partial, "--add-root")
    inner = file("inner.json", '{"edges": [["r","a"],["a","b"],["r","c"]], "items": ["a","b","c"]}')
    assert "3 items" in shown(capsys, inner)
    assert "'a'" in refused(capsys, inner, "--internal-items", "error")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"", "got an empty file"),
        ("t", b" \n", "got an empty file"),
        ("t.nex", b"#NEXUS\nbegin trees;", "Export the tree as Newick"),
        ("t.csv", b"\xff\xfea,b", "UTF-8"),
        ("t.csv", b'item,path\na,"x', "quote"),
        ("t.npy", b"\x93NUMPY\x01", "t.npy: cannot be decoded"),
        ("t.npz", b"PK\x03\x04junk", ".npz"),
        ("t.parquet", b"PAR1\x15junk", "Parquet"),
        ("t.json", b"((A,B),C);", "expected JSON"),
        ("t.nwk", b"[1, 2]", "Newick"),
        ("t.csv", b"parent,child\nr\n", "cells"),
    ],
)
def test_errors_in_trees_are_one_line(tmp_path, capsys, name, content, said):
    (tmp_path / name).write_bytes(content)
    assert main(["show", str(tmp_path / name)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize("header", ["term,hypernym", "hyponym,term", "x,y,z"])
def test_links_of_unknown_names_are_no_paths(tmp_path, capsys, header):
    rows = [row.split(",") for row in EDGES.splitlines()[1:]]
    rows = [row[::-1] for row in rows] if header.startswith("term") else rows
    (tmp_path / "t.csv").write_text(
        f"{header}\n" + "".join(",".join([*row, "k"][: header.count(",") + 1]) + "\n" for row in rows), encoding="utf-8"
    )
    assert "which share the names" in refused(capsys, tmp_path / "t.csv")
    columns = header.split(",")[:2][:: -1 if header.startswith("term") else 1]
    told = ("--parent-column", columns[0], "--item-column", columns[1])
    assert "4 items" in shown(capsys, tmp_path / "t.csv", "--tree-format", "edges", *told)
