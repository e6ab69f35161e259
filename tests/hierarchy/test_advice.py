"""Advice in errors of the readers: the same input with the advice taken is read, in Python and on the command line."""

import warnings

import pytest

from pomdp_hier.cli import main
from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy import Hierarchy

EDGES, PARENTS, PATHS = Hierarchy.from_edges, Hierarchy.from_parents, Hierarchy.from_paths
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
]  # fmt: skip
FORMATS = {EDGES: "edges", PARENTS: "parents", PATHS: "paths"}


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
