"""Advice in errors of the readers: the same input with the advice taken is read, in Python and on the command line."""

import gzip
import io
import warnings
from functools import partial
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy.cluster.hierarchy import to_tree
from scipy.sparse import coo_array

from pomdp_hier.cli import main
from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.arrays import dense
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.flat import FlatTree, require_hierarchy
from pomdp_hier.hierarchy.writing_back import written_like

EDGES, PARENTS, PATHS = Hierarchy.from_edges, Hierarchy.from_parents, Hierarchy.from_paths
JSON, NEWICK, NODES = Hierarchy.from_json, Hierarchy.from_newick, Hierarchy.from_nodes
DAG = "parent,child\nr,a\nr,b\na,x\na,y\nb,x\nb,z\n"
ITEM = ["--item-column"]
LINKS = "one,two\na,b\nb,c\nb,d\n"
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
    (PATHS, LINKS, {"levels": ["one", "two"]}, ["--levels", "one,two"]),
    (PATHS, "1,2\na,b\na,c\n", {"levels": ["1", "2"]}, ["--levels", "1,2"]),
    (PATHS, "1,2\na,b\na,c\n", {"header": False}, ["--no-header"]),
    (PATHS, "item\na\nb\n", {"path": "item"}, ["--path-column", "item"]),
    (PATHS, "/".join(map(str, range(1_200))) + "\n", {"sep": "|"}, ["--sep", "|"]),
    (PATHS, "a;b;1\nc;d;2\n", {"item": "3", "path": "2", "header": False}, None),
    (PATHS, "a;b;1\nc;d;2\n", {"levels": ["1", "2"], "header": False}, None),
    (PARENTS, "r,r\na,r\nb,r\n", {"header": False}, ["--no-header"]),
]  # fmt: skip
TABLES = (LEVELS, LINKS, "1,2\na,b\na,c\n", "item\na\nb\n")
FORMATS = {EDGES: "edges", PARENTS: "parents", PATHS: "paths", JSON: "json", NEWICK: "newick"}


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize(("reader", "text", "taken", "options"), ADVICE)
def test_advice_that_is_taken_works(reader, text, taken, options, tmp_path, capsys):
    given = {"form": "table"} if text in TABLES else {}
    with pytest.raises(HierarchyError) as caught:
        reader(text, **given)
    argument = next(iter(taken))
    assert f"{argument}=" in str(caught.value)
    assert reader(text, **given, **taken).n_items > 0
    if options is None:
        return
    path = tmp_path / ("tree.csv" if text in TABLES else "tree.txt")
    path.write_text(text, encoding="utf-8")
    plain = [] if "--tree-format" in options else ["--tree-format", FORMATS[reader]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["show", str(path), "--tree-format", FORMATS[reader]]) == 1
        said = capsys.readouterr().err
        assert options[0] in said
        assert "=" not in said.replace(str(path), "")
        assert main(["show", str(path), *plain, *options]) == 0


def _doubling(depth):
    """Return links in which each of two nodes per level has both nodes of the level above as parents."""
    return [(f"{at}{up}", f"{at + 1}{down}") for at in range(depth) for up in "ab" for down in "ab"]


def _joined(choice):
    return lambda links: EDGES(links, on_multiple_parents=choice, add_root=True)


def _two_items(parents):
    return Hierarchy(parents, 2)


OUTLINE = partial(PATHS, form="outline")


OBO = "format-version: 1.2\n[Term]\nid: A\nis_a: B\n"
GML = 'graph [\n directed 1\n node [ id 0 label "r" ]\n node [ id 1 label "a" ]\n edge [ source 0 target 1 ]\n]\n'

# The reader, its input, what the error says, and the reader and the input after the advice is taken.
EDITS = [
    (EDGES, "parent,child\nr,a\na,a\nr,b\n", "row 2: got 'a' .* Remove the row", EDGES, "parent,child\nr,a\nr,b\n"),
    (EDGES, [("r", "a"), ("a", "b"), ("b", "a")], "Remove one of these links", EDGES, [("a", "b")]),
    (EDGES, [("r", "a"), ("r", None)], "edge 1: got .* remove the edge", EDGES, [("r", "a")]),
    (EDGES, "p,p\nr,a\n", "Rename one", EDGES, "parent,child\nr,a\n"),
    (PARENTS, "id,parent\nr,\na,r\nb,q\n", "parent without a row, 'q'.* Add the rows", PARENTS,
     "id,parent\nr,\nq,r\na,r\nb,q\n"),
    (PARENTS, "id,parent\nR,\na,r\n", "correct the ids. A similar id is 'R'", PARENTS, "id,parent\nR,\na,R\n"),
    (PARENTS, "id,parent\nr,\n,r\nb,r\n", "row 2: got no id", PARENTS, "id,parent\nr,\na,r\nb,r\n"),
    (PARENTS, "id,parent\na,\nb,a\nb,\n", "row 3: got 'b' .*Remove one", PARENTS, "id,parent\na,\nb,a\n"),
    (PARENTS, "v3\t\t\nid\tparent\tname\nr\t\tR\na\tr\tA\n", "Remove lines above", PARENTS,
     "id\tparent\tname\nr\t\tR\na\tr\tA\n"),
    (PARENTS, [2, 2, -1], r"to Hierarchy\(parents, n_items\)", _two_items, [2, 2, -1]),
    (PATHS, "#A > x\n#A > y\n", "comment=None", lambda text: PATHS(text, comment=None), "#A > x\n#A > y\n"),
    (PATHS, "en: Tea\nfr: The\n<en:Tea\nen: Mint\n", "parent and child", EDGES, "parent,child\nTea,Mint"),
    (PATHS, "- a: 1\n- b: 2\n", "from_json", JSON, '{"r": ["a", "b"]}'),
    (PATHS, "(a,\nb);", "from_newick", NEWICK, "(a,\nb);"),
    (PATHS, '[["r", "a"],\n["r", "b"]]', "from_json", JSON, '[["r", "a"],\n["r", "b"]]'),
    (JSON, ["A > x", "A > y"], "the list to from_paths", PATHS, ["A > x", "A > y"]),
    (JSON, {"name": "r", "sub": [{"name": "a"}, {"name": "b"}]}, "Rename or remove it", JSON,
     {"name": "r", "children": [{"name": "a"}, {"name": "b"}]}),
    (JSON, {"name": "r", "sub": [{"name": "a"}]}, "children='sub' to from_nodes",
     lambda value: Hierarchy.from_nodes(value, children="sub"), {"name": "r", "sub": [{"name": "a"}]}),
    (JSON, '{"r": ' * 200_000 + "null" + "}" * 200_000, "as edges", NEWICK, "(" * 9_000 + "a" + ")" * 9_000 + ";"),
    (JSON, '[["r", NaN], ["r", "b"]]', "Remove it", JSON, '[["r", "b"]]'),
    (_two_items, [5, 5, -1], "parent of node 0: got 5", _two_items, [2, 2, -1]),
    (_two_items, [2, 2.5, -1], "parent: .* Give integers", _two_items, [2, 2, -1]),
    (_two_items, [[2], [2, 3]], "parent: .* Give integers", _two_items, [2, 2, -1]),
    (_two_items, [], "parents: got no nodes.* Add", _two_items, [2, 2, -1]),
    (EDGES, [3, 4], "edge 0: got 3", EDGES, [(3, 4)]),
    (_joined("duplicate"), _doubling(25), "copies would be more than 5,000,000", _joined("first"), _doubling(25)),
    (PARENTS, [["r", None], [["a"], "r"]], "row 2: got ", PARENTS, [["r", None], ["a", "r"]]),
    (PARENTS, "id,parent,parent\nr,,\na,r,\n", "Rename one", PARENTS, "id,parent,other\nr,,\na,r,\n"),
    (PARENTS, "no/such.csv", "Correct the path", PARENTS, "id,parent\nr,\na,r\n"),
    (JSON, "[[0, 1]", "line 1, column 8 .* Give the whole", JSON, "[[0, 1]]"),
    (JSON, {"@context": "x", "@graph": []}, "parent and child to from_edges", EDGES, "parent,child\nTea,Mint"),
    (JSON, {"name": "r", "children": [{"name": "a", "sub": [{"name": "x"}]}, {"name": "b"}]}, "'a': .*'sub'.* Rename",
     JSON, {"name": "r", "children": [{"name": "a", "children": [{"name": "x"}]}, {"name": "b"}]}),
    (JSON, {"name": "r", "children": [{"name": "a"}], "child_nodes": [{"name": "b"}]}, "Rename or remove it",
     JSON, {"name": "r", "children": [{"name": "a"}, {"name": "b"}]}),
    (NODES, {"r": 3.5}, "node: got .* Write each node", NODES, {"name": "r"}),
    (NODES, {"r": 3.5}, "name= to from_nodes", lambda node: NODES(node, name="r"), {"r": 3.5}),
    (NODES, [{"name": "r", "children": [{"size": 1}, {"name": "b"}]}], "node: got .* Write each node", NODES,
     {"name": "r", "children": [{"name": "a", "size": 1}, {"name": "b"}]}),
    (NODES, {"r": {"children": 3}}, "got 3; .* Give a list", NODES, {"r": {"children": ["x"]}}),
    (NODES, SimpleNamespace(below=[]), "Pass children=", lambda node: NODES(node, children="below"),
     SimpleNamespace(below=[])),
    (PATHS, [["a", ["b"]], ["a", "c"]], "row 1: got .*Give the path alone", PATHS, [["a", "b"], ["a", "c"]]),
    (PATHS, "/".join(map(str, range(1_200))) + "\n", "as edges", EDGES, [(at, at + 1) for at in range(1_200)]),
    (PATHS, "item,one,two\nx,a,b\ny,b,c\nz,b,d\n", "parent=", lambda text: EDGES(text, parent="one"), LINKS),
    # Other formats in lines of text: the text that is advised, written out.
    (PATHS, "a\0 > b\nc > d\n", "Save it as UTF-8", PATHS, "a > b\nc > d\n"),
    (PATHS, "<a>\n x\n</a>", "parent and child to from_edges", EDGES, "parent,child\na,x\n"),
    (PATHS, OBO, "parent and child to from_edges", EDGES, "parent,child\nB,A\n"),
    (PATHS, OBO, r"from_networkx\(obonet.*reverse\(\)\)", lambda links: Hierarchy.from_networkx(links.reverse()),
     nx.MultiDiGraph([("A", "B"), ("C", "B")])),
    (PATHS, "@prefix s: <http://x#> .\n<a> s:broader <b> .\n", "subject, predicate and object to from_edges", EDGES,
     "subject,predicate,object\na,broader,b\n"),
    (PATHS, "digraph g {\n r -> a;\n}\n", "parent and child to from_edges", EDGES, "parent,child\nr,a\n"),
    (PATHS, GML, "read it with networkx", lambda text: Hierarchy.from_networkx(nx.parse_gml(text)), GML),
    (PATHS, "\\begin{itemize}\n\\item Tea\n\\end{itemize}\n", "Give each line its path with >", PATHS, "Food > Tea\n"),
    (PATHS, "[1] Tea\n[2] Milk\n", "write.csv", PATHS, '"","item","path"\n"1","Tea","Food"\n"2","Milk","Food"\n'),
    (PATHS, "discount: .9\nstates: 2\nactions: 2\nobservations: 2\n", "Give a tree", PATHS, "Food > Tea\n"),
    (PATHS, '"Food > Tea"\n"Food > Milk"\n', "Give the names of each path without", PATHS, "Food > Tea\nFood > Milk\n"),
    (PATHS, '"Food","Tea"\n"Food","Milk"\n', "as a list", PATHS, [["Food", "Tea"], ["Food", "Milk"]]),
    (PATHS, "Food:\n  Tea:\n  - x\n  - y\n", "from_json", JSON, {"Food": {"Tea": ["x", "y"]}}),
    (PATHS, "Food  Tea\nFood  Milk\n", "CSV", lambda text: PATHS(text, levels=["1", "2"], header=False),
     "Food,Tea\nFood,Milk\n"),
    (PATHS, "  Food Tea\nFood   Milk\n", "CSV", lambda text: PATHS(text, levels=["1", "2"], header=False),
     "Food,Tea\nFood,Milk\n"),
    (PATHS, "r a\nr b\na c\n", "as edges, with header=False and delimiter", lambda text: EDGES(
        text, header=False, delimiter=" "), "r a\nr b\na c\n"),
    (PATHS, "A1 Tea\nA1.2 Mint\nA2 Milk\n", 'sep="."', lambda text: PATHS(text, sep="."),
     "item,path\nTea,A1\nMint,A1.2\nMilk,A2\n"),
    (PATHS, "A1 Tea\nA12 Mint\n", "id and parent", PARENTS, "id,parent\nA1,\nA12,A1\n"),
    (OUTLINE, "Food\n  Tea\n  -- \n", "row 3: .*Remove the line", OUTLINE, "Food\n  Tea\n"),
    (OUTLINE, "Food\n    Tea\n  Milk\n", "0, 4. Indent it as", OUTLINE, "Food\n    Tea\n    Milk\n"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize("row", EDITS, ids=[said for _, _, said, _, _ in EDITS])
def test_input_that_is_corrected_as_advised_is_read(row):
    reader, source, said, better_reader, better = row
    with pytest.raises(HierarchyError, match=said):
        reader(source)
    assert better_reader(better).n_items > 0


class _Fitted:
    children_, n_leaves_ = [[0, 1], [3, 2]], 3


Z, KEPT = [[0, 1, 1, 2], [3, 2, 2, 3]], np.array([4, 4, 5, 5, 6, 6, -1])
TOPICS = {"Parent_ID": ["2"], "Child_Left_ID": ["0"], "Child_Right_ID": ["1"]}
LINKAGE, LISTS, HDBSCAN, LABELS = (
    Hierarchy.from_linkage, Hierarchy.from_children, Hierarchy.from_hdbscan, Hierarchy.from_labels)  # fmt: skip
BERTOPIC, SKLEARN = Hierarchy.from_bertopic, Hierarchy.from_sklearn


class _EmptyTreelib:
    root, is_branch = None, True

    def children(self, name):
        return []


def _fitted(labels):
    """Read a model of three rows that is cut into two clusters."""
    children = np.array([[0, 1], [3, 2]])
    return SKLEARN(SimpleNamespace(children_=children, n_leaves_=3, labels_=labels, n_clusters_=2))


def _bisected(labels):
    leaves = [SimpleNamespace(label=label, left=None, right=None) for label in (0, 1)]
    return SKLEARN(SimpleNamespace(_bisecting_tree=SimpleNamespace(left=leaves[0], right=leaves[1]), labels_=labels))


def _condensed(sizes):
    rows = [(3, 0, 1.0, sizes[0]), (3, 1, 1.0, sizes[1]), (3, 2, 1.0, sizes[2])]
    return np.array(rows, dtype=[("parent", int), ("child", int), ("lambda_val", float), ("child_size", int)])


def _draft():
    return Draft(FlatTree(KEPT, 4, labels=list("abcdefr")))


# The call, what its error says, and the call after the advice is taken.
CALLS = [
    (lambda: LINKAGE([[0, 1, np.nan, 2]]), "NaN in row 0", lambda: LINKAGE([[0, 1, 1, 2]])),
    (lambda: LINKAGE([[0, 1.5, 1, 2]]), "row 0; expected integers", lambda: LINKAGE([[0, 1, 1, 2]])),
    (
        lambda: LINKAGE([[0, 9, 1, 2], Z[1]]),
        r"row 0; expected two of 0\.\.2,",
        lambda: LINKAGE([[0, 2, 1, 2], [3, 1, 2, 3]]),
    ),
    (lambda: LINKAGE([Z[0], [0, 2, 2, 3]]), "rows 0 and 1.*Correct one", lambda: LINKAGE(Z)),
    (
        lambda: LINKAGE([[0, 1, 1, 5], Z[1]]),
        "got 5 items.*expected 2.*leave it out",
        lambda: LINKAGE([r[:3] for r in Z]),
    ),
    (
        lambda: LINKAGE(to_tree(np.array(Z, float)).left),
        "root of the whole tree",
        lambda: LINKAGE(to_tree(np.array(Z, float))),
    ),
    (lambda: NODES(to_tree(np.array(Z, float))), "to from_linkage", lambda: LINKAGE(to_tree(np.array(Z, float)))),
    (lambda: HDBSCAN(_condensed([1, 2, 1])), "Give the whole table", lambda: HDBSCAN(_condensed([1, 1, 1]))),
    (lambda: HDBSCAN({"a": 1}), "condensed_tree_ or its single", lambda: HDBSCAN(_condensed([1, 1, 1]))),
    (
        lambda: BERTOPIC({"a": [1]}),
        r"Give the table of topic_model.hierarchical_topics\(docs\)",
        lambda: BERTOPIC(TOPICS),
    ),
    (
        lambda: BERTOPIC({**TOPICS, "Topics": [[0]]}),
        "topics 1; expected.*unchanged",
        lambda: BERTOPIC({**TOPICS, "Topics": [[0, 1]]}),
    ),
    (lambda: BERTOPIC(TOPICS, topics=[0, 7]), "topics: got 7", lambda: BERTOPIC(TOPICS, topics=[0, 1])),
    (lambda: BERTOPIC({**TOPICS, "Parent_ID": ["x"]}), "row 1: got the topic 'x'", lambda: BERTOPIC(TOPICS)),
    (lambda: LISTS([[0, 1]], n_items=5), "Add them, or correct the number", lambda: LISTS([[0, 1]], n_items=2)),
    (lambda: LISTS([[0, 1], [2, 9]]), r"children\[1\]: got 9; expected", lambda: LISTS([[0, 1], [2, 3]])),
    (
        lambda: LISTS([[0, 1], [2, 4]], n_items=3),
        r"children\[1\]: got its own.*Remove",
        lambda: LISTS([[0, 1], [2, 3]], n_items=3),
    ),
    (
        lambda: LISTS([[0, 1], [1, 2], [3, 4]], n_items=3),
        "Remove them",
        lambda: LISTS([[0, 1], [2], [3, 4]], n_items=3),
    ),
    (
        lambda: LISTS([[0, 1], [1, 2], [3, 4]], n_items=3),
        "pass on_mul",
        lambda: LISTS([[0, 1], [1, 2], [3, 4]], n_items=3, on_multiple_parents="first"),
    ),
    (
        lambda: HDBSCAN(SimpleNamespace(condensed_tree_=1, fit=1), tree="single_linkage"),
        "Fit it, or pass another tree=",
        lambda: HDBSCAN(SimpleNamespace(condensed_tree_=_condensed([1, 1, 1]), fit=1), tree="condensed"),
    ),
    (lambda: Hierarchy([2, 2, -1], 9), r"n_items: got 9 .*expected 1\.\.3", lambda: Hierarchy([2, 2, -1], 2)),
    (lambda: Hierarchy([3, 3, 4, 4, -1], 4), "or n_items", lambda: Hierarchy([3, 3, 4, 4, -1], 3)),
    (
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "a"]).node("a"),
        "nodes 0, 1; .* Use the number",
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "a"]).items(0),
    ),
    (lambda: NODES({"n": "r"}, children="kids", name="title"), "Pass name=", lambda: NODES({"n": "r"}, name="n")),
    (lambda: _fitted([0, 0, 2]), r"got 0, 2 .* 0\.\.1 for 3, by n_clusters_.*Fit", lambda: _fitted([0, 0, 1])),
    (lambda: _fitted([0, 1, 1]), r"got 0 and 1 .* row 0 of children_.*Fit", lambda: _fitted([0, 0, 1])),
    (lambda: _bisected([0, 1, 2]), r"got 2; expected 0\.\.1, by the bisections. Fit", lambda: _bisected([0, 1, 1])),
    (lambda: _bisected([0, 0, 0]), "got 1 for 0 rows; expected some.* Fit", lambda: _bisected([0, 1, 1])),
    (
        lambda: PATHS("a > b\n", form="lines", header=False),
        "header: got False for lines; .*Leave out form",
        lambda: PATHS("a > b\n", header=False),
    ),
    (
        lambda: PATHS(io.TextIOWrapper(io.BytesIO("Café > x".encode("latin-1")), "utf-8")),
        "Open it with its encoding",
        lambda: PATHS(io.TextIOWrapper(io.BytesIO("Café > x".encode("latin-1")), "latin-1")),
    ),
    (
        lambda: PATHS(io.TextIOWrapper(io.BytesIO(gzip.compress(b"A > x")), "utf-8")),
        "packed with gzip; .*Open it as a file of bytes",
        lambda: PATHS(io.BytesIO(gzip.compress(b"A > x"))),
    ),
    (lambda: NODES(_EmptyTreelib()), "Add a root", lambda: NODES({"name": "r"})),
    (lambda: LISTS([[]]), r"Give \[\[0\]\] for", lambda: LISTS([[0]])),
    (lambda: SKLEARN(object()), "Fit it", lambda: SKLEARN(_Fitted())),
    (lambda: SKLEARN(object()), "to from_labels", lambda: LABELS([0, 1, 0])),
    (
        lambda: JSON({"edges": [["r", "a"], ["r", "b"]], "children": []}),
        "Remove or rename",
        lambda: JSON({"edges": [["r", "a"], ["r", "b"]]}),
    ),
    (
        lambda: JSON({"children": [[0, 1]], "n_items": 3, "n_leaves": 2}),
        "leave it out",
        lambda: JSON({"children": [[0, 1]], "n_leaves": 2}),
    ),
    (
        lambda: JSON({"edges": [["r", "a"], ["r", "b"]], "labels": ["a"]}),
        "Leave out 'labels'",
        lambda: JSON({"edges": [["r", "a"], ["r", "b"]]}),
    ),
    (lambda: NODES("a"), "pass children=", lambda: NODES("r", children=lambda one: ["a", "b"] if one == "r" else [])),
    (
        lambda: NODES({"r": {"a": 3.5, "b": ["c"]}}),
        "expected a dictionary.*Remove the key",
        lambda: NODES({"r": {"b": ["c"]}}),
    ),
    (lambda: PATHS("item,path\na,x\nb,\n"), "row 2.*remove the row", lambda: PATHS("item,path\na,x\n")),
    (lambda: PATHS("item,l1,l2\na,x,y\nb,,\n"), "row 2.*remove the row", lambda: PATHS("item,l1,l2\na,x,y\n")),
    (lambda: PATHS("item,path\na,x\n,x\n"), "row 2: got no item id", lambda: PATHS("item,path\na,x\nb,x\n")),
    (
        lambda: PATHS("item,path\na,x\nb,x>y\n", items_at_inner="error"),
        'pass items_at_inner="leaf"',
        lambda: PATHS("item,path\na,x\nb,x>y\n", items_at_inner="leaf"),
    ),
    (lambda: PATHS([]), "Give at least one", lambda: PATHS(["a > x", "a > y"])),
    (
        lambda: PARENTS("id,parent\nr,\na,r\n", parent="up"),
        "column: got 'up'; expected one of 'id', 'parent'",
        lambda: PARENTS("id,parent\nr,\na,r\n", parent="parent"),
    ),
    (
        lambda: PARENTS({"id": ["r", "a"], "parent": [None]}),
        "lists of one length",
        lambda: PARENTS({"id": ["r", "a"], "parent": [None, "r"]}),
    ),
    (
        lambda: PARENTS([{"id": "r", "parent": None}, {"id": "a", "parent": "r"}], header=False),
        "Leave it out",
        lambda: PARENTS([{"id": "r", "parent": None}, {"id": "a", "parent": "r"}]),
    ),
    (
        lambda: EDGES("subject,predicate,object\na,is,b\nc,is,b\n"),
        "Remove the column, and name",
        lambda: EDGES("child,parent\na,b\nc,b\n"),
    ),
    (lambda: EDGES([("r",), ("r", "b")]), "edge 0.*expected a pair", lambda: EDGES([("r", "a"), ("r", "b")])),
    (
        lambda: EDGES([("r", ["a"]), ("r", "b")]),
        "edge 0.*expected ids",
        lambda: EDGES([("r", "a"), ("r", "b")]),
    ),
    (lambda: EDGES(5), "list of pairs", lambda: EDGES([("r", "a")])),
    (
        lambda: EDGES([("r", "a"), ("a", "b"), ("r", "c")], items=["a", "b", "c"], items_at_inner="error"),
        'pass items_at_inner="leaf"',
        lambda: EDGES([("r", "a"), ("a", "b"), ("r", "c")], items=["a", "b", "c"], items_at_inner="leaf"),
    ),
    (
        lambda: EDGES([("r", "a"), ("r", "b")], items=["a", "z"]),
        "Correct the ids",
        lambda: EDGES([("r", "a"), ("r", "b")], items=["a", "b"]),
    ),
    (
        lambda: EDGES([(2, 0), (2, 1)], n_items=3, items=[0, 1]),
        "Leave one out",
        lambda: EDGES([(2, 0), (2, 1)], n_items=2),
    ),
    (lambda: EDGES([(2, 0), (2, 1)], n_items=5), "n_items", lambda: EDGES([(2, 0), (2, 1)], n_items=2)),
    (
        lambda: Hierarchy.from_networkx(nx.path_graph(3)),
        r"nx.bfs_tree\(graph, root\)",
        lambda: Hierarchy.from_networkx(nx.bfs_tree(nx.path_graph(3), 0)),
    ),
    (lambda: Hierarchy([2.5, 2, -1], 2), "Give integers", lambda: Hierarchy([2, 2, -1], 2)),
    (lambda: Hierarchy([-1], 0), "n_items", lambda: Hierarchy([2, 2, -1], 2)),
    (
        lambda: Hierarchy([2, 2, -1], 2, labels=[["a"], "b"]),
        "such as text",
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "b"]),
    ),
    (
        lambda: Hierarchy([2, 2, -1], 2, order=[0, 0, 2]),
        "order",
        lambda: Hierarchy([2, 2, -1], 2, order=[0, 1, 2]),
    ),
    (lambda: Hierarchy([2, 2, -1], 2).node("z"), "such as 0, 1", lambda: Hierarchy([2, 2, -1], 2).node(1)),
    (
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "b"]).rows(["a", "z"]),
        "Correct the ids",
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "b"]).rows(["b", "a"]),
    ),
    (
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "a"]).to_newick(),
        "as names=",
        lambda: Hierarchy([2, 2, -1], 2, labels=["a", "a"]).to_newick(names=["a", "b"]),
    ),
    (
        lambda: Hierarchy([2, 2, -1], 2, labels=["\ud800", "b"]).to_newick("/dev/null"),
        "Give other names",
        lambda: Hierarchy([2, 2, -1], 2).to_newick("/dev/null", names=["a", "b"]),
    ),
    (
        lambda: Hierarchy([2, 2, -1], 2, labels=["\ud800", "b"]).to_newick("/dev/null"),
        "write JSON",
        lambda: Hierarchy([2, 2, -1], 2, labels=["\ud800", "b"]).to_json("/dev/null"),
    ),
    (lambda: _draft().moved(4, 4), "target.*Choose one", lambda: _draft().moved(4, 5)),
    (lambda: _draft().merged([4], 6), "Move it instead", lambda: _draft().moved(4, 6)),
    (lambda: _draft().moved("e", 5), r"hierarchy.node\(label\)", lambda: _draft().moved(_draft().given.node("e"), 5)),
    (
        lambda: dense("edges", coo_array(np.eye(2))),
        r"Give .toarray\(\)",
        lambda: dense("edges", coo_array(np.eye(2)).toarray()),
    ),
    (lambda: require_hierarchy([2, 2, -1]), "Build one", lambda: require_hierarchy(Hierarchy([2, 2, -1], 2))),
    (
        lambda: written_like(Hierarchy([2, 2, -1], 2), "", "labels", EDGES),
        "as JSON",
        lambda: Hierarchy([2, 2, -1], 2).to_json(),
    ),
]


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize(("call", "said", "better"), CALLS, ids=[said for _, said, _ in CALLS])
def test_call_that_is_corrected_as_advised_works(call, said, better):
    with pytest.raises((HierarchyError, ParameterError), match=said):
        call()
    better()


TRIPLES = "subject,predicate,object\na,broader,r\nb,broader,r\nr,prefLabel,x\n"
ONE_PATH = "item,path\na,x\nb,x\n"
MOVED = ["a", "b", "c", (), ("Food",), ("Food", "Milk"), ("Food", "Tea"), ("Toys",), ("Toys", "Milk")]
TWO_LEVELS = "item,l1,l2\na,Food,Milk\nb,Food,Tea\nc,Toys,Milk\n"
# The parents, labels and format of a tree that the text of its source cannot hold, the text, and the reason.
UNWRITABLE = [
    ([2, 2, -1], ["a", "a", "r"], "newick", "(a,b)r;", "one distinct name per item"),
    ([2, 2, -1], ["a", "a", "r"], "parents", "id,parent\nr,\na,r\nb,r\n", "two nodes with the id 'a'"),
    ([2, 2, -1], ["a", "b", None], "edges", "parent,child\nr,a\nr,b\n", "without an id"),
    ([3, 2, -1, 2], ["a", "b", "r", "new"], "edges", TRIPLES, "new clusters; expected none in triples"),
    ([2, 4, -1, 2, 3], ["a", "b", (), ("x",), ("x", "y")], "paths", ONE_PATH, "item 'a' below no category"),
    (
        [5, 6, 8, -1, 3, 4, 5, 3, 7],
        MOVED,
        "paths",
        TWO_LEVELS,
        "3 levels for item .b.; .* at most 2",
    ),
    ([3, 4, -1, 2, 2], ["a", "b", (), ("x",), ("x",)], "paths", ONE_PATH, "two categories with the path 'x'"),
    ([3, 3, 3, -1, 3], [("A", "x/y"), ("A", "x/z"), ("A", "B"), (), ("A",)], "paths", "A > x/y\nA > x/z\nA > B\n",
     "read as another one"),
    ([5, 6, 8, -1, 3, 3, 4, 3, 7], MOVED, "paths", TWO_LEVELS, "cannot be read again"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize(("parents", "labels", "form", "text", "said"), UNWRITABLE, ids=[row[-1] for row in UNWRITABLE])
def test_tree_that_its_format_cannot_hold_is_written_as_json(parents, labels, form, text, said):
    read = getattr(Hierarchy, f"from_{form}")
    tree = Hierarchy(parents, read(text).n_items, labels=labels)
    with pytest.raises(HierarchyError, match=rf"target: got .*{said}.*Write \.json"):
        written_like(tree, text, form, read)
    again = JSON(tree.to_json())
    assert (again, again.labels) == (tree, tree.labels)
