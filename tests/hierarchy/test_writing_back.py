"""Trees written back in the format that they came in: the same text, but for nodes that moved."""

import contextlib
import csv
import io
import random
from functools import partial

import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy, writing_back
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.readers.path_rows import separator
from pomdp_hier.hierarchy.writing_back import FORMATS, written_like
from tests.tree_texts import LEVELS, LINES, PARENTS, PATHS, TREE_TEXTS

KINDS = pytest.mark.parametrize("kind", TREE_TEXTS)


def read(text, form):
    return getattr(Hierarchy, f"from_{form}")(text)


def write(tree, text, form):
    return written_like(tree, text, form, getattr(Hierarchy, f"from_{form}", None))


def changed(tree, change):
    draft = Draft(tree)
    draft.apply(change(draft))
    return draft.tree()


def last(label):
    return label[-1] if isinstance(label, tuple) and label else label


def node(tree, name):
    names = [str(last(label)).casefold() for label in tree.labels]
    return names.index(name.casefold() if name.casefold() in names else "7")


def moved(tree, name, target):
    return changed(tree, lambda draft: draft.moved(node(tree, name), node(tree, target)))


def rows(text):
    delimiter = ";" if ";" in text.splitlines()[0] else ","
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
@pytest.mark.parametrize("change", [str, str.rstrip, lambda text: text.replace("\n", "\r\n")], ids=["", "cut", "CRLF"])
@KINDS
def test_a_tree_as_it_was_is_the_same_text_and_one_with_a_move_differs_there_alone(kind, change, mark):
    text, form, changes = TREE_TEXTS[kind]
    expected = text
    for old, new in changes.items():
        assert text.count(old) == 1
        expected = expected.replace(old, new)
    tree = read(mark + change(text), form)
    assert write(tree, mark + change(text), form) == mark + change(text)
    new = moved(tree, "salt", "tea")
    assert write(new, mark + change(text), form) == mark + change(expected)
    assert clusters(read(expected, form)) == clusters(new)


def clusters(tree):
    """Return what is below each inner node, by what items are called among their siblings."""
    names = [str(last(label)) for label in tree.item_labels]
    return sorted(sorted(names[item] for item in tree.items(k)) for k in range(tree.n_items, tree.n_nodes))


def edited(tree, rng):
    """Return a tree after some edits of every kind, where they are possible."""
    draft = Draft(tree)
    for _ in range(rng.randint(1, 4)):
        inner = [k for k in draft.below if draft.below[k]]
        at, other = rng.choice(inner), rng.choice(inner)
        edit, arguments = rng.choice(
            [
                (draft.moved, (rng.randrange(tree.n_items), at)),
                (draft.moved, (other, at)),
                (draft.without, ([at],)),
                (draft.merged, ([other], at)),
                (draft.parted, (at, rng.sample(draft.below[at], max(1, len(draft.below[at]) // 2)))),
            ]
        )
        with contextlib.suppress(ParameterError):
            draft.apply(edit(*arguments))
    return draft.tree()


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 400), marks=pytest.mark.slow)], ids=str)
@KINDS
def test_a_tree_after_any_edits_is_read_again_or_refused(kind, seeds):
    text, form, _ = TREE_TEXTS[kind]
    tree, n_written = read(text, form), 0
    for seed in seeds:
        new = edited(tree, random.Random(seed))
        try:
            written = write(new, text, form)
        except HierarchyError:
            assert form in ("paths", "edges")  # an item without a category, more levels, triples with a new cluster
            continue
        n_written += 1
        assert clusters(read(written, form)) == clusters(new), seed
    assert n_written


def test_a_cluster_that_is_gone_loses_its_row_and_a_new_one_gets_one():
    tree = Hierarchy.from_parents(PARENTS)
    gone = changed(tree, lambda draft: draft.without([node(tree, "milk")]))
    written = rows(write(gone, PARENTS, "parents"))
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
    new = [row for row in rows(write(named, PARENTS, "parents")) if row["id"] not in PARENTS]
    assert len(new) == 1
    assert (new[0]["parent"], new[0]["price"]) == ("all", "")


@pytest.mark.parametrize("text", [PATHS, LINES])
def test_what_parts_the_paths_is_looked_for_once_a_source(text, monkeypatch):
    looked = []

    def looks(rows, how):
        looked.append(len(rows))
        return separator(rows, how)

    monkeypatch.setattr(writing_back, "separator", looks)
    assert write(Hierarchy.from_paths(text), text, "paths") == text
    assert looked == [3]


def test_a_name_with_the_separator_in_it_is_escaped():
    text = "sku,path\nsalt,Food > Salt \\> Pepper\nmint,Food > Tea\noat,Food > Tea\n"
    tree = Hierarchy.from_paths(text)
    assert ("Food", "Salt > Pepper") in tree.labels
    written = write(moved(tree, "mint", "Salt > Pepper"), text, "paths")
    assert Hierarchy.from_paths(written).item_labels == ("salt", "mint", "oat")
    assert rows(written)[1]["path"] == "Food > Salt \\> Pepper"


@pytest.mark.parametrize(
    ("tree", "source", "form", "error", "told"),
    [
        (Hierarchy.from_newick("((a,b)x,(c)x)r;"), PARENTS, "parents", HierarchyError, "'x'"),
        (Hierarchy.from_children([[0, 1]], 2), "", "linkage", ReaderError, "form: got 'linkage'"),
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
        write(tree, source, form)


def test_more_levels_than_the_table_has_are_refused():
    tree = Hierarchy.from_paths(LEVELS)
    deeper = moved(tree, "Tea", "Milk")
    with pytest.raises(HierarchyError, match="got 3 levels for item 'mint'"):
        write(deeper, LEVELS, "paths")
    assert {*FORMATS} == {"newick", *(form for _, form, _ in TREE_TEXTS.values())}


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
def test_newick_is_canonical_and_needs_one_name_per_item():
    tree = Hierarchy.from_newick("((salt:0.10,oat:2)milk:1[a],(mint:3)tea)all:0;")
    assert write(moved(tree, "salt", "tea"), "(a,b);", "newick") == "((oat)milk,(salt,mint)tea)all;\n"
    with pytest.raises(HierarchyError, match=r"distinct name per item"):
        write(Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x"), ("b", "x")], on_multiple_parents="duplicate"),
              "(a,b);", "newick")  # fmt: skip


def test_what_paths_cannot_hold_is_refused():
    text = "sku,path\na,Food > Tea\nb,Toys > Tea\nc,Toys > Cars\nd,Food > Salt\n"
    tree = Hierarchy.from_paths(text)
    both = changed(tree, lambda draft: draft.moved(tree.node(("Food", "Tea")), tree.node(("Toys",))))
    with pytest.raises(HierarchyError, match=r"got two .*'Toys / Tea'"):
        write(both, text, "paths")
    with pytest.raises(HierarchyError, match="got item 'a' below no category"):
        write(changed(tree, lambda draft: draft.moved(0, tree.root)), text, "paths")


def test_categories_without_items_stay_and_go_with_what_they_are_in():
    text = PARENTS + "empty,milk,\nemptier,empty,4\n"
    with_items = partial(Hierarchy.from_parents, items=["salt", "mint", "oat"])
    with pytest.warns(HierarchyWarning, match="2 empty clusters dropped"):
        tree = with_items(text)
    assert written_like(moved(tree, "salt", "tea"), text, "parents", with_items) == text.replace(
        "salt,milk", "salt,tea"
    )
    without = changed(tree, lambda draft: draft.without([node(tree, "milk")]))
    expected = PARENTS.replace("milk,all,\n", "").replace(",milk", ",all")
    assert written_like(without, text, "parents", with_items) == expected


def test_what_would_be_read_as_another_tree_is_refused():
    text = "A > x/y\nA > x/z\nA > B\n"  # once no ">" is left, the "/" is taken for the separator
    new = Hierarchy.from_paths(text).with_parents([3, 3, 3, -1, 3])
    with pytest.raises(HierarchyError, match="read as another one"):
        write(new, text, "paths")


def test_a_level_that_is_skipped_still_is():
    text = "item,l1,l2,l3\nsalt,Food,,Milk\nmint,Food,,Tea\nsage,Food,,Tea\noat,Food,,Milk\n"
    skipping = partial(Hierarchy.from_paths, blank_levels="skip")
    with pytest.warns(HierarchyWarning, match="empty segments"):
        tree = skipping(text)
    expected = text.replace("salt,Food,,Milk", "salt,Food,,Tea")
    assert written_like(moved(tree, "salt", "Tea"), text, "paths", skipping, blank_levels="skip") == expected


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
def test_what_could_not_be_read_again_is_refused_with_the_reason():
    text = "item,l1,l2\nsalt,Food,Milk\nmint,Food,Tea\noat,Toys,Milk\n"
    tree = Hierarchy.from_paths(text)
    new = changed(tree, lambda draft: draft.moved(tree.node(("Food", "Milk")), tree.root))
    with pytest.raises(HierarchyError, match=r"cannot be read again .*\(columns: got 'l1' and 'l2'"):
        write(new, text, "paths")


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
def test_further_parents_stay_until_they_are_gone():
    text = "parent,child\nall,tea\nall,milk\nmilk,salt\ntea,mint\nmilk,oat\ntea,oat\n"
    first = partial(Hierarchy.from_edges, on_multiple_parents="first")
    tree = first(text)
    expected = text.replace("milk,salt", "tea,salt")
    assert written_like(moved(tree, "salt", "tea"), text, "edges", first) == expected
    without = changed(tree, lambda draft: draft.without([node(tree, "tea")]))
    expected = "parent,child\nall,milk\nmilk,salt\nall,mint\nmilk,oat\n"
    assert written_like(without, text, "edges", first) == expected


def test_a_cell_in_quotes_stays_in_quotes():
    text = TREE_TEXTS["quoted"][0]
    assert write(moved(read(text, "parents"), "oat", "tea"), text, "parents") == text.replace('oat,"milk"', 'oat,"tea"')
