"""Advice in errors of the readers: the same input with the advice taken is read, in Python and on the command line."""

import warnings

import pytest

from pomdp_hier.cli import main
from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy import Hierarchy

EDGES, PARENTS, PATHS = Hierarchy.from_edges, Hierarchy.from_parents, Hierarchy.from_paths
JSON, NEWICK = Hierarchy.from_json, Hierarchy.from_newick
DAG = "parent,child\nr,a\nr,b\na,x\na,y\nb,x\nb,z\n"
ITEM = ["--item-column"]
LEVELS = "p,one,two\n1,Food,Tea\n2,Food,Tea\n3,Food,Milk\n"

# The reader, its input, the arguments advised, and the words of the command line for them.
ADVICE = [
    (EDGES, DAG, {"on_multiple_parents": "first"}, ["--on-multiple-parents", "first"]),
    (EDGES, DAG, {"on_multiple_parents": "duplicate"}, ["--on-multiple-parents", "duplicate"]),
    (EDGES, "parent,child\nr,a\ns,b\n", {"add_root": True}, ["--add-root"]),
    (EDGES, "up,down\nr,a\nr,b\n", {"parent": "up", "child": "down"}, ["--parent-column", "up", *ITEM, "down"]),
    (EDGES, "r,a\nr,b\nb,c\n", {"header": False}, ["--no-header"]),
    (EDGES, "r a\nr b\nb c\n", {"header": False, "delimiter": " "}, ["--no-header", "--delimiter", " "]),
    (PARENTS, "key,up\nr,\na,r\nb,r\n", {"id": "key", "parent": "up"}, [*ITEM, "key", "--parent-column", "up"]),
    (PARENTS, "r\t|\tr\n1\t|\tr\n2\t|\tr\n", {"header": False, "id": "1", "parent": "3"}, None),
    (PATHS, "Food\n  Tea\n  Milk\n", {"form": "outline"}, ["--tree-format", "outline"]),
    (PATHS, "a,b,c\na,b,d\n", {"sep": ","}, ["--sep", ","]),
    (PATHS, "Tea;A.1\nMilk;A.2\n", {"header": False, "item": "1", "path": "2"}, None),
    (PATHS, LEVELS, {"item": "p"}, ["--item-column", "p"]),
    (PATHS, LEVELS, {"levels": ["one", "two"], "ends_in": "category"}, None),
    (PATHS, "item,l1,l2\na,,Tea\nb,Food,\n", {"blank_levels": "skip"}, ["--blank-levels", "skip"]),
    (PATHS, "A/x\nA/y\nA/x\n", {"ends_in": "category"}, ["--path-ends-in", "category"]),
    (PATHS, "item,path\na,r\na,s\nb,s\nc,r\n", {"on_multiple_parents": "first"}, ["--on-multiple-parents", "first"]),
    (PATHS, "id,size\nr,\nr.a,3\nr.b,4\n", {"path": "id", "sep": "."}, ["--path-column", "id", "--sep", "."]),
    (PARENTS, "id,parent\nr,r\ns,\na,r\nb,r\nc,s\nd,s\n", {"add_root": True}, ["--add-root"]),
    (PARENTS, "id,parent\nr,\na,r\nb,r\nx,a\nx,b\ny,a\nz,b\n", {"on_multiple_parents": "duplicate"},
     ["--on-multiple-parents", "duplicate"]),
    (JSON, '[["r","a"],["r","b"],["a","x"],["b","x"],["a","y"],["b","z"]]', {"on_multiple_parents": "first"},
     ["--on-multiple-parents", "first"]),
    (JSON, '[["r","a"],["r","b"],["s","c"],["s","d"]]', {"add_root": True}, ["--add-root"]),
    (NEWICK, "((a,b)x,(a,c)y)r;", {"on_multiple_parents": "first"}, ["--on-multiple-parents", "first"]),
]  # fmt: skip
FORMATS = {EDGES: "edges", PARENTS: "parents", PATHS: "paths", JSON: "json", NEWICK: "newick"}


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize(("reader", "text", "taken", "options"), ADVICE)
def test_advice_that_is_taken_works(reader, text, taken, options, tmp_path, capsys):
    given = {"form": "table"} if text == LEVELS else {}
    with pytest.raises(HierarchyError) as caught:
        reader(text, **given)
    argument = next(iter(taken))
    assert f"{argument}=" in str(caught.value)
    assert reader(text, **given, **taken).n_items > 0
    if options is None:
        return
    path = tmp_path / ("tree.csv" if text == LEVELS else "tree.txt")
    path.write_text(text, encoding="utf-8")
    plain = [] if "--tree-format" in options else ["--tree-format", FORMATS[reader]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["show", str(path), "--tree-format", FORMATS[reader]]) == 1
        said = capsys.readouterr().err
        assert options[0] in said
        assert "=" not in said.replace(str(path), "")
        assert main(["show", str(path), *plain, *options]) == 0


# The reader, its input, what the error says, and the reader and the input after the advice is taken.
EDITS = [
    (EDGES, "parent,child\nr,a\na,a\nr,b\n", "row 2: got 'a' .* Remove the row", EDGES, "parent,child\nr,a\nr,b\n"),
    (EDGES, [("r", "a"), ("a", "b"), ("b", "a")], "Remove one of these links", EDGES, [("a", "b")]),
    (EDGES, [("r", "a"), ("r", None)], "edge 1: got .* remove the edge", EDGES, [("r", "a")]),
    (EDGES, "p,p\nr,a\n", "Rename one", EDGES, "parent,child\nr,a\n"),
    (PARENTS, "id,parent\nr,\na,r\nb,q\n", "parent without a row, 'q'.* Add the rows", PARENTS,
     "id,parent\nr,\nq,r\na,r\nb,q\n"),
    (PARENTS, "id,parent\nR,\na,r\n", "correct the ids. A similar id is 'R'", PARENTS, "id,parent\nR,\na,R\n"),
    (PARENTS, "id,parent\nr,\n,r\nb,r\n", "row 2: got no id, .*Add it", PARENTS, "id,parent\nr,\na,r\nb,r\n"),
    (PARENTS, "id,parent\na,\nb,a\nb,\n", "row 3: got 'b' .*Remove one", PARENTS, "id,parent\na,\nb,a\n"),
    (PARENTS, "v3\t\t\nid\tparent\tname\nr\t\tR\na\tr\tA\n", "Remove lines above", PARENTS,
     "id\tparent\tname\nr\t\tR\na\tr\tA\n"),
    (PARENTS, [2, 2, -1], r"to Hierarchy\(parents, n_items\)", lambda parents: Hierarchy(parents, 2), [2, 2, -1]),
    (PATHS, "#A > x\n#A > y\n", "comment=None", lambda text: PATHS(text, comment=None), "#A > x\n#A > y\n"),
    (PATHS, "en: Tea\nfr: The\n<en:Tea\nen: Mint\n", "parent and child", EDGES, "parent,child\nTea,Mint"),
    (PATHS, "- a: 1\n- b: 2\n", "from_json", JSON, '{"r": ["a", "b"]}'),
    (PATHS, "(a,\nb);", "from_newick", NEWICK, "(a,\nb);"),
    (PATHS, '[["r", "a"],\n["r", "b"]]', "from_json", JSON, '[["r", "a"],\n["r", "b"]]'),
    (JSON, ["A > x", "A > y"], "the list to from_paths", PATHS, ["A > x", "A > y"]),
    (JSON, {"name": "r", "sub": [{"name": "a"}, {"name": "b"}]}, "Rename it", JSON,
     {"name": "r", "children": [{"name": "a"}, {"name": "b"}]}),
    (JSON, {"name": "r", "sub": [{"name": "a"}]}, "children='sub' to from_nodes",
     lambda value: Hierarchy.from_nodes(value, children="sub"), {"name": "r", "sub": [{"name": "a"}]}),
    (JSON, '{"r": ' * 9_000 + "null" + "}" * 9_000, "as edges", NEWICK, "(" * 9_000 + "a" + ")" * 9_000 + ";"),
    (JSON, '[["r", NaN], ["r", "b"]]', "Remove it", JSON, '[["r", "b"]]'),
    (Hierarchy, [5, 5, -1], "Correct it", lambda parents: Hierarchy(parents, 2), [2, 2, -1]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize("row", EDITS, ids=[said for _, _, said, _, _ in EDITS])
def test_input_that_is_corrected_as_advised_is_read(row):
    reader, source, said, better_reader, better = row
    with pytest.raises(HierarchyError, match=said):
        reader(source, 2) if reader is Hierarchy else reader(source)
    assert better_reader(better).n_items > 0
