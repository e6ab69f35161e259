"""Text of other structures than paths: refused with the way to read it, which works."""

import json

import pytest

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError, ReaderError
from pomdp_hier.hierarchy import Hierarchy
from tests.extras import optional

pd = optional("pandas")
FOOD = {("Food", "Fruit", "Apple"), ("Food", "Fruit", "Pear"), ("Food", "Bread"), ("Drink", "Tea"), ("Drink", "Milk")}


@pytest.mark.parametrize(
    "mark",
    ["›", "»", "→", "->", "-->", ">>", "=>", "::", ";", "\\", "--", "/", "|", ">", "—>", "~>", "&gt;", "&raquo;", "||"],
)
@pytest.mark.parametrize("space", ["", " "])
def test_the_separator_that_most_paths_have_is_taken(mark, space):
    sep = f"{space}{mark}{space}"
    tree = Hierarchy.from_paths([sep.join(path) for path in sorted(FOOD)])
    assert set(tree.item_labels) == FOOD
    rows = Hierarchy.from_paths({f"item {at}": sep.join(path) for at, path in enumerate(sorted(FOOD))})
    assert {("Food", "Fruit"), ("Drink",)} <= set(rows.labels)


@pytest.mark.parametrize("mark", [" • ", " — ", " – ", "⇒", "~", "__", "^", "<", "＞", "\x1f", ".", " - "])
def test_a_mark_between_all_names_is_never_passed_over_in_silence(mark):
    paths = [mark.join(path) for path in sorted(FOOD)]
    for source in (paths, "\n".join(paths)):
        with pytest.warns(HierarchyWarning, match=rf"in {len(paths)}\)\. Pass sep="):
            assert set(Hierarchy.from_paths(source).item_labels) == {(path,) for path in paths}
    assert set(Hierarchy.from_paths(paths, sep=mark).item_labels) == FOOD


def test_marks_that_stand_in_names_are_not_asked_about():
    names = ["Johnson & Johnson", "Rock 'n' Roll", "C++", "e-mail", "St. John's (Wort)", "#1", "100 %"]
    assert Hierarchy.from_paths(names, sep=None).n_items == len(names)


def test_a_separator_of_all_paths_beats_one_of_a_few():
    lineages = [f"k__Bacteria; p__P{i % 3}; g__G{i}" for i in range(9)]
    for odd in ("k__Bacteria; p__P1; g__A/B", "k__Bacteria; p__P1; g__A\\B"):
        assert Hierarchy.from_paths([*lineages, odd]).node(("k__Bacteria",)) >= 10
    with pytest.warns(HierarchyWarning, match="'/' in 3, ';' in 3 of 3 paths"):
        Hierarchy.from_paths(["a;b/c", "a;d/c", "b;d/c"])


OUTLINES = {
    "spaces": "Food\n  Fruit\n    Apple\n    Pear\n  Bread\nDrink\n  Tea\n  Milk\n",
    "tabs": "Food\n\tFruit\n\t\tApple\n\t\tPear\n\tBread\nDrink\n\tTea\n\tMilk\n",
    "bullets": "- Food\n  - Fruit\n    - Apple\n    - Pear\n  - Bread\n- Drink\n  - Tea\n  - Milk\n",
    "org": "* Food\n** Fruit\n*** Apple\n*** Pear\n** Bread\n* Drink\n** Tea\n** Milk\n",
    "drawn": "Food\n├── Fruit\n│   ├── Apple\n│   └── Pear\n└── Bread\nDrink\n├── Tea\n└── Milk\n",
    "drawn in ASCII": "Food\n|-- Fruit\n|   |-- Apple\n|   `-- Pear\n`-- Bread\nDrink\n|-- Tea\n`-- Milk\n",
}


@pytest.mark.parametrize("kind", OUTLINES)
@pytest.mark.parametrize("as_list", [False, True])
def test_an_outline_is_read_when_it_is_said_to_be_one(kind, as_list):
    source = OUTLINES[kind].splitlines() if as_list else OUTLINES[kind]
    with pytest.raises(ReaderError, match=r'got an outline.* Pass form="outline"\.'):
        Hierarchy.from_paths(source)
    assert set(Hierarchy.from_paths(source, form="outline").item_labels) == FOOD


def test_headings_are_an_outline_and_no_comments():
    text = "# Food\n## Fruit\n### Apple\n### Pear\n## Bread\n# Drink\n## Tea\n## Milk\n"
    with pytest.raises(ReaderError, match=r"got comments alone.*comment=None"):
        Hierarchy.from_paths(text, form="outline")
    assert set(Hierarchy.from_paths(text, form="outline", comment=None).item_labels) == FOOD


def test_an_indentation_between_two_others_names_its_row():
    with pytest.raises(ReaderError, match=r"row 3: got 'Bread' behind 2 characters"):
        Hierarchy.from_paths("Food\n    Fruit\n  Bread\n", form="outline")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<a>\n <b/>x\n</a>\n", "XML"),
        ("<python><pandas>\n<java>\n", "stand in < and >"),
        ('"A > B"\n"A > C"\n', 'stand in " and "'),
        ("| a | b |\n|---|---|\n| x | y |\n", "stand in |"),
        ("['A', 'B']\n['A', 'C']\n", "JSON"),
        ("format-version: 1.2\n\n[Term]\nid: a\nname: A\n", "OBO"),
        ("@prefix skos: <http://x> .\n:a skos:broader :b .\n", "RDF"),
        ("<http://a> <http://broader> <http://b> .\n<http://c> <http://broader> <http://b> .\n", "RDF"),
        ("digraph G {\n  a -> b;\n  a -> c;\n}\n", "DOT"),
        ("graph [\n  node [\n", "GML"),
        ("((A,B),C);\n", "Newick"),
        ('{"a": 1}\n{"a": 2}\n', "JSON"),
        ("\\\\section{A}\n\\\\subsection{B}\n", "LaTeX"),
        ("Food:\n  Fruit:\n    - Apple\n", "YAML"),
        ('[1] "A" "B"\n[2] "C"\n', "R printout"),
        ("A\0B\nC\0\n", "NUL"),
        ("1 Food\n1.1 Fruit\n1.2 Bread\n", "codes before names"),
        ("11 Agriculture\n111 Crops\n1111 Grain\n", "codes before names"),
        ("Food   Fruit   Apple\nFood   Fruit   Pear\nDrink  Tea     Green\n", "columns of spaces"),
        ("   l1    l2\n1  Food  Fruit\n2  Food  Bread\n", "columns of spaces"),
        ("r a\nr b\na c\n", "pairs of names"),
        ("Feature ID\tTaxon\nf1\tA;B\nf2\tA;C\n", "table of 2 columns"),
        ("1\t|\t1\t|\n2\t|\t1\t|\n", "table of 4 columns"),
        ("Breast;A01.236\nNipples;A01.236.500\n", "table of 2 columns"),
        ("101,1015,cats\n101,1016,dogs\n", "table of 3 columns"),
    ],
)
def test_what_is_no_list_of_paths_is_named(text, what):
    text = text.replace("\\\\", "\\")
    for source in (text, [line for line in text.splitlines() if line.strip()]):
        with pytest.raises(ReaderError, match=r"^text: got") as caught:
            Hierarchy.from_paths(source)
        assert what in str(caught.value)
        tree = Hierarchy.from_paths(source, sep="~", on_multiple_parents="first")  # a separator that is given is taken
        assert tree.height == 0


def test_names_with_marks_are_a_flat_list_with_a_word():
    for mark in (" - ", ":", "."):
        with pytest.warns(HierarchyWarning, match="separator: got none in 3 paths"):
            assert Hierarchy.from_paths([f"x{mark}a", f"x{mark}b", f"y{mark}c"]).height == 0
    assert Hierarchy.from_paths(["Heat", "Dr. No", "Alien"]).height == 0


LINKS = "r\ta\nr\tb\na\tc\na\td\n"


def test_a_table_without_a_header_is_said_to_be_one_and_read():
    wanted = {"b", "c", "d"}
    with pytest.raises(ReaderError, match=r"columns: got 'r', 'a'"):
        Hierarchy.from_edges(LINKS)
    assert set(Hierarchy.from_edges(LINKS, header=False).item_labels) == wanted
    assert set(Hierarchy.from_edges(LINKS, header=False, parent="1", child="2").item_labels) == wanted
    assert set(Hierarchy.from_edges(LINKS.replace("\t", " "), header=False, delimiter=" ").item_labels) == wanted
    with pytest.warns(HierarchyWarning, match=r"'r' .*header=False"):
        Hierarchy.from_edges(LINKS, parent="r", child="a", add_root=True)
    parents = "".join("\t".join(line.split("\t")[::-1]) + "\n" for line in LINKS.splitlines())
    assert set(Hierarchy.from_parents(parents, header=False).item_labels) == wanted
    with pytest.raises(ReaderError, match=r"header: got '101', 'Food'; .*header=False"):
        Hierarchy.from_paths("101,Food\n102,Food\n", form="table")
    assert Hierarchy.from_paths("Food,Tea\nFood,Milk\n", header=False).n_items == 2
    assert Hierarchy.from_paths("7;A.b\n8;A.c\n", header=False, item="1", path="2", sep=".").item_labels == ("7", "8")
    for call in (Hierarchy.from_edges, Hierarchy.from_parents, Hierarchy.from_paths):
        with pytest.raises(ParameterError, match=r"^header: got False"):
            call([("r", "a"), ("r", "b")], header=False)
    with pytest.raises(ParameterError, match=r"^header: got False"):
        Hierarchy.from_paths("a/b\nc/d\n", header=False, form="lines")


def test_a_root_that_is_its_own_parent_is_taken_for_the_root_with_a_word():
    dump = "".join(f"{a}\t|\t{b}\t|\tno rank\t|\n" for a, b in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
    with pytest.raises(ReaderError, match=r"twice; .* header=False"):
        Hierarchy.from_parents(dump)
    with pytest.warns(HierarchyWarning, match="row 1: '1' is its own parent"):
        tree = Hierarchy.from_parents(dump, header=False, id="1", parent="3")
    assert tree.item_labels == ("3", "4", "5")


def test_json_lines_and_lists_of_parents_are_read():
    rows = [
        {"alias": "food", "title": "Food", "parents": []},
        {"alias": "tea", "title": "Tea", "parents": ["food"]},
        {"alias": "bars", "title": "Bars", "parents": ["food"]},
    ]
    for source in (rows, json.dumps(rows), "\n".join(map(json.dumps, rows))):
        assert set(Hierarchy.from_json(source).item_labels) == {"tea", "bars"}
    assert Hierarchy.from_parents(pd.DataFrame(rows), id="alias", parent="parents").n_items == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"Baby": {"id": "537", "Bath": {"id": "46"}}}, "key 'id': got '537'"),
        (["A > B", "A > C"], "from_paths"),
        ({"@graph": [{"@id": "a"}]}, "JSON-LD"),
        ({"name": "r", "subcategories": [{"name": "a"}, {"name": "b"}]}, "children='subcategories'"),
        ({"all": [{"name": "r", "child": [{"name": "a"}, {"name": "b"}]}]}, "children='child'"),
    ],
)
def test_json_of_another_form_is_refused_with_its_reader(value, said):
    with pytest.raises(ReaderError, match=said):
        Hierarchy.from_json(value)


def test_two_spellings_of_a_category_are_one_with_a_word():
    rows = {"a": "Food > Tea", "b": "food > Tea", "c": "Food > TEA", "d": "Toys"}
    with pytest.warns(HierarchyWarning, match=r"2 categories.*'food' as 'Food', 'TEA' as 'Tea'"):
        tree = Hierarchy.from_paths(rows)
    assert tree.items(tree.node(("Food", "Tea"))).tolist() == [0, 1, 2]
    with pytest.warns(HierarchyWarning, match="1 category written in one spelling"):
        lines = Hierarchy.from_paths(["Food > Tea", "food > tea", "food > Milk"])
    assert lines.item_labels == (("Food", "Tea"), ("Food", "tea"), ("Food", "Milk"))  # items are no categories
    assert Hierarchy.from_paths({"a": "Food > Tea", "b": "Toys > tea", "c": "Food", "d": "Toys"}).n_nodes == 9


def test_several_paths_in_a_line_are_said():
    with pytest.warns(HierarchyWarning, match=r"'>' in 3, '\|' in 1 of 3 paths"):
        Hierarchy.from_paths({"a": "Food > Tea", "b": "Food > Tea | Food > Milk", "c": "Food > Milk"})


def test_two_spellings_of_an_id_are_said():
    with pytest.warns(HierarchyWarning, match="'a' and 'A '"):
        Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x"), ("a", "z"), ("A ", "y"), ("A ", "w")], add_root=True)
    with pytest.raises(HierarchyError, match=r"'Food'.*'food'"):
        Hierarchy.from_parents("id,parent\nr,\nfood,r\ntea,Food\n")


def test_ids_and_roots_as_catalogues_write_them():
    table = "Unique ID\tParent ID\tName\n1\t1\tApps\n2\t1\tMaps\n3\t1\tMusic\n4\t4\tTools\n5\t4\tSaws\n6\t4\tNails\n"
    with pytest.warns(HierarchyWarning, match=r"row 1: '1' .*first of 2"):
        tree = Hierarchy.from_parents(table, add_root=True)
    assert tree.item_labels == ("2", "3", "5", "6")
    mixed = table.replace("4\t4\tTools", "4\t\tTools")  # one root is its own parent, one has none
    with pytest.raises(HierarchyError, match="2 roots, '1', '4'"):
        Hierarchy.from_parents(mixed)
    with pytest.warns(HierarchyWarning, match="row 1: '1' is its own parent"):
        assert Hierarchy.from_parents(mixed, add_root=True) == tree


@pytest.mark.parametrize("reader", ["from_paths", "from_parents", "from_edges"])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("# tiger\ndiscount: 0.95\nvalues: reward\nstates: 2\nactions: 3\nobservations: 2\nT:0\nidentity\n", "POMDP"),
        ("en: Fruits, fruit\nfr: Fruits\n\n<en:Fruits\nen: Apples\nfr: Pommes\n", "names by language"),
        (
            "stopwords:fr: aux,au\n\n# fruits\nen: Fruits\nwikidata:en: Q1\nnl_be: Vrucht\nen: Tea\n",
            "names by language",
        ),
    ],
)
def test_text_of_other_programs_is_refused_by_name(reader, text, what):
    with pytest.raises(ReaderError, match=rf"text: got .*{what}"):
        getattr(Hierarchy, reader)(text)


@pytest.mark.parametrize("above", ["# made 2026, by me\n", "\n# made 2026\n#, and more\n\n", "\ufeff# made\n"])
@pytest.mark.parametrize(
    ("reader", "table"),
    [
        ("from_parents", "id,parent\nr,\na,r\nb,r\n"),
        ("from_parents", "#id,parent\nr,\na,r\nb,r\n"),
        ("from_edges", "parent;child\nr;a\nr;b\n"),
        ("from_paths", "item,path\na,r\nb,s\n"),
    ],
)
def test_comments_above_a_table_are_not_its_header(above, reader, table):
    if not table.startswith("#"):
        assert getattr(Hierarchy, reader)(above + table).item_labels == ("a", "b")
    assert getattr(Hierarchy, reader)(table).item_labels == ("a", "b")


def test_tags_that_begin_with_the_mark_of_a_comment_are_rows():
    assert Hierarchy.from_edges("#r,#a\n#r,#b\n", header=False).item_labels == ("#a", "#b")


def test_a_column_of_sizes_is_not_taken_for_paths():
    table = "id,size\nflare,\nflare.data,\nflare.data.Set,586\nflare.data.Row,9\nflare.Sort,68\n"
    with pytest.raises(ReaderError, match=r"got numbers in 'size'.* path=, .* sep="):
        Hierarchy.from_paths(table)
    tree = Hierarchy.from_paths(table, path="id", sep=".")
    assert tree.item_labels == (("flare", "data", "Set"), ("flare", "data", "Row"), ("flare", "Sort"))
    assert Hierarchy.from_paths("id,cluster\na,0\nb,1\nc,0\nd,1\n").n_nodes == 7


def test_lines_above_the_names_of_columns_are_said():
    with pytest.raises(ReaderError, match=r"got 2 columns without a name"):
        Hierarchy.from_parents("Taxonomy 3.1\t\t\nid\tparent\tname\nr\t\tRoot\na\tr\tA\n")
