"""Trees written back in the format that they came in: the same text, but for nodes that moved."""

import csv
import io

import pytest

from pomdp_hier.errors import HierarchyError, ReaderError
from pomdp_hier.hierarchy import Hierarchy, writing_back
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.readers.paths import separator
from pomdp_hier.hierarchy.writing_back import FORMATS, written_like

PARENTS = "id,parent,price\nall,,\ntea,all,\nmilk,all,\nsalt,milk,2\nmint,tea,3\noat,milk,1\n"
MARKED = "code;parent_id;name\nr;0;All\na;r;Tea\nb;r;Milk\n1;a;Salt\n2;a;Mint\n3;b;Oat\n"
EDGES = "parent,child,since\nall,tea,1\nall,milk,1\nmilk,salt,2\ntea,mint,3\nmilk,oat,4\n"
SKOS = "broader,narrower\nall,tea\nall,milk\nmilk,salt\ntea,mint\nmilk,oat\n"
BROADER = "concept,skos:broader\ntea,all\nmilk,all\nsalt,milk\nmint,tea\noat,milk\n"
PATHS = "sku,path,stock\nsalt,Food > Milk,4\nmint,Food > Tea,5\noat,Food > Milk,6\n"
BARE = "sku,category\nsalt,Food/Milk\nmint,Food/Tea\noat,Food/Milk\n"
LEVELS = "item,l1,l2\nsalt,Food,Milk\nmint,Food,Tea\noat,Food,Milk\n"
LINES = "Food > Milk > salt\nFood > Tea > mint\nFood > Milk > oat\n"
NEWICK = "((salt,oat)milk,(mint)tea)all;"

SOURCES = {
    "parents": (PARENTS, "parents", Hierarchy.from_parents),
    "parents with 0 for none": (MARKED, "parents", Hierarchy.from_parents),
    "edges": (EDGES, "edges", Hierarchy.from_edges),
    "skos": (SKOS, "edges", Hierarchy.from_edges),
    "skos broader": (BROADER, "parents", Hierarchy.from_parents),
    "paths": (PATHS, "paths", Hierarchy.from_paths),
    "bare paths": (BARE, "paths", Hierarchy.from_paths),
    "levels": (LEVELS, "paths", Hierarchy.from_paths),
    "lines": (LINES, "paths", Hierarchy.from_paths),
}


def changed(tree, change):
    draft = Draft(tree)
    draft.apply(change(draft))
    return draft.tree()


def last(label):
    return label[-1] if isinstance(label, tuple) and label else label


def node(tree, name):
    return next(k for k, label in enumerate(tree.labels) if last(label) == name)


def moved(tree, name, target):
    return changed(tree, lambda draft: draft.moved(node(tree, name), node(tree, target)))


def rows(text):
    delimiter = ";" if ";" in text.splitlines()[0] else ","
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.parametrize("kind", SOURCES)
def test_an_unchanged_tree_is_the_same_text(kind):
    text, form, read = SOURCES[kind]
    assert written_like(read(text), text, form) == text


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", SOURCES)
def test_an_item_that_moved_is_read_again_where_it_is_now(kind, ends):
    text, form, read = SOURCES[kind]
    text = text.replace("\n", ends)
    item, target = ("1", "b") if kind == "parents with 0 for none" else ("salt", "Tea" if "Food" in text else "tea")
    tree = moved(read(text), item, target)
    written = written_like(tree, text, form)
    again = read(written)
    assert {last(label) for label in again.item_labels} == {last(label) for label in tree.item_labels}
    where = {last(label): last(again.labels[again.parent[k]]) for k, label in enumerate(again.item_labels)}
    assert where[item] == target
    if form != "paths" or kind != "lines":
        assert list(rows(written)[0]) == list(rows(text)[0])
        others = [{k: v for k, v in row.items() if k in ("price", "since", "stock", "name")} for row in rows(written)]
        assert others == [{k: v for k, v in row.items() if k in others[0]} for row in rows(text)]
    assert written.count("\r\n") == (written.count("\n") if ends == "\r\n" else 0)


def test_a_cluster_that_is_gone_loses_its_row_and_a_new_one_gets_one():
    tree = Hierarchy.from_parents(PARENTS)
    gone = changed(tree, lambda draft: draft.without([node(tree, "milk")]))
    written = rows(written_like(gone, PARENTS, "parents"))
    assert [row["id"] for row in written] == ["all", "tea", "salt", "mint", "oat"]
    assert {row["id"]: row["parent"] for row in written} == {
        "all": "",
        "tea": "all",
        "salt": "all",
        "mint": "tea",
        "oat": "all",
    }
    split = changed(tree, lambda draft: draft.parted(node(tree, "milk"), [node(tree, "salt")]))
    named = Hierarchy(split.parent, 3, labels=[label if label is not None else "new" for label in split.labels])
    new = [row for row in rows(written_like(named, PARENTS, "parents")) if row["id"] not in PARENTS]
    assert len(new) == 1
    assert (new[0]["parent"], new[0]["price"]) == ("all", "")


@pytest.mark.parametrize("text", [PATHS, LINES])
def test_what_parts_the_paths_is_looked_for_once_a_source(text, monkeypatch):
    looked = []

    def looks(paths, how):
        looked.append(len(paths))
        return separator(paths, how)

    monkeypatch.setattr(writing_back, "separator", looks)
    assert written_like(Hierarchy.from_paths(text), text, "paths") == text
    assert looked == [3]


def test_newick_and_json():
    tree = Hierarchy.from_newick(NEWICK)
    assert Hierarchy.from_newick(written_like(tree, NEWICK, "newick")) == tree
    for form in ("json", "children", "nested"):
        assert Hierarchy.from_json(written_like(tree, "", form)) == tree


def test_a_name_with_the_separator_in_it_is_escaped():
    text = "sku,path\nsalt,Food > Salt \\> Pepper\nmint,Food > Tea\noat,Food > Tea\n"
    tree = Hierarchy.from_paths(text)
    assert ("Food", "Salt > Pepper") in tree.labels
    written = written_like(moved(tree, "mint", "Salt > Pepper"), text, "paths")
    assert Hierarchy.from_paths(written).item_labels == ("salt", "mint", "oat")
    assert rows(written)[1]["path"] == "Food > Salt \\> Pepper"


@pytest.mark.parametrize(
    ("tree", "source", "form", "error", "told"),
    [
        (Hierarchy.from_newick("((a,b)x,(c)x)r;"), PARENTS, "parents", HierarchyError, "two nodes have the id 'x'"),
        (Hierarchy.from_paths("1 - A\n2 - A > B\n"), "1 - A\n2 - A > B\n", "paths", HierarchyError, "write .json"),
        (Hierarchy.from_children([[0, 1]], 2), "", "linkage", ReaderError, "form is 'linkage'; a tree can be"),
        (
            Hierarchy.from_newick("(a,b)r;"),
            PATHS.replace("sku", "x").replace("path", "y"),
            "edges",
            ReaderError,
            "expected 'parent' and 'child'",
        ),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tree, source, form, error, told):
    with pytest.raises(error, match=told):
        written_like(tree, source, form)


def test_more_levels_than_the_table_has_are_refused():
    tree = Hierarchy.from_paths(LEVELS)
    deeper = moved(tree, "Tea", "Milk")
    with pytest.raises(HierarchyError, match="item 'mint' has 3 levels now, and the table 2"):
        written_like(deeper, LEVELS, "paths")
    assert set(FORMATS) >= {form for _, form, _ in SOURCES.values()}
