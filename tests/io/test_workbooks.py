"""Workbooks as input: every kind of file from a sheet equals the same table as CSV; what a sheet hides is an error."""

import csv
import gzip
import io
import sys
import warnings
import zipfile
from datetime import datetime

import numpy as np
import pytest

from pomdp_hier import Hierarchy, load_features
from pomdp_hier._io.workbooks import workbook_text
from pomdp_hier.cli import main
from pomdp_hier.errors import DataWarning, FeatureError, MissingExtraError, ReaderError

FEATURES = [["id", "x", "y"], [1, 2, 0], [2, 1.5, 0], [3, 0, 1], [4, 0, 2.25]]
PARENTS = [["id", "parent", "price"], ["all", None, None], ["a", "all", 1], ["b", "all", 2]]
PARENTS += [[item, home, 5] for item, home in ((1, "a"), (2, "a"), (3.0, "b"), (4, "b"))]
EDGES = [["parent", "child"], *([row[1], row[0]] for row in PARENTS[2:])]
PATHS = [["item", "path"], *([item, f"all > {home}"] for item, home in ((1, "a"), (2, "a"), (3, "b"), (4, "b")))]
NAMES = [["id", "name"], [1, "one"], [2, "two"], [3, "three"], [4, "four"], ["a", "first"]]


def save(path, **sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return book


def as_csv(rows):
    text = io.StringIO()
    cells = [[int(c) if isinstance(c, float) and c.is_integer() else c for c in row] for row in rows]
    csv.writer(text, lineterminator="\n").writerows(cells)
    return text.getvalue()


def same(one, other):
    return np.array_equal(one.parent, other.parent) and one.labels == other.labels


@pytest.mark.parametrize(
    ("rows", "read"),
    [(PARENTS, Hierarchy.from_parents), (EDGES, Hierarchy.from_edges), (PATHS, Hierarchy.from_paths)],
)
def test_a_sheet_is_the_tree_of_its_csv(tmp_path, rows, read):
    save(
        tmp_path / "t.xlsx", tree=[[None], *([None, *row] for row in rows[:3]), [], *([None, *row] for row in rows[3:])]
    )
    expected = read(as_csv(rows))
    assert same(read(tmp_path / "t.xlsx"), expected)
    assert same(read(f"{tmp_path}/t.xlsx#tree"), expected)
    with open(tmp_path / "t.xlsx", "rb") as stream:
        assert same(read(stream), expected)
    assert {"1", "3"} <= set(expected.item_labels)  # 3.0 is "3"


def test_features_from_a_sheet(tmp_path):
    save(tmp_path / "x.xlsx", features=FEATURES)
    found = load_features(tmp_path / "x.xlsx")
    assert found.ids == ("1", "2", "3", "4")
    assert found.columns == ("x", "y")
    assert np.array_equal(found.matrix, np.array([row[1:] for row in FEATURES[1:]]))
    weighted = load_features(tmp_path / "x.xlsx", weight_column="y")
    assert weighted.weights.tolist() == [0, 0, 1, 2.25]
    with pytest.raises(FeatureError, match=r"got an Excel .*workbook"):
        load_features(io.BytesIO(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))


def test_one_workbook_holds_features_tree_and_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save("shop.xlsx", features=FEATURES, tree=PARENTS, names=NAMES)
    (tmp_path / "x.csv").write_text(as_csv(FEATURES))
    (tmp_path / "t.csv").write_text(as_csv(PARENTS))
    (tmp_path / "n.csv").write_text(as_csv(NAMES))
    printed = []
    for x, tree, names in (("x.csv", "t.csv", "n.csv"), ("shop.xlsx", "shop.xlsx#tree", "shop.xlsx#names")):
        assert main(["misfiled", x, tree, "--names", names, "-o", "-", "--quiet"]) == 0
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out
    assert "three" in printed[1].out
    assert printed[1].err.count("'features' is read, the first of 'features', 'tree', 'names'") == 1
    assert main(["misfiled", "shop.xlsx#features", "t.csv", "-o", "shop.xlsx", "--force"]) == 2
    assert "the same file as the input FEATURES" in capsys.readouterr().err


def test_accepted_moves_of_a_sheet_are_written_as_csv(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save("t.xlsx", other=NAMES, tree=PARENTS)
    save("m.xlsx", notes=[["x"]], moves=[["item_id", "source_id", "target_id", "decision"], [3.0, "b", "a", "accept"]])
    assert main(["apply", "t.xlsx#tree", "m.xlsx#moves", "-o", "better.csv"]) == 0
    assert (tmp_path / "better.csv").read_text() == as_csv(PARENTS).replace("3,b,5", "3,a,5")


def test_the_first_sheet_that_shows_is_read(tmp_path):
    book = save(tmp_path / "t.xlsx", hidden=NAMES, tree=PARENTS)
    book["hidden"].sheet_state = "hidden"
    book.save(tmp_path / "t.xlsx")
    assert same(Hierarchy.from_parents(tmp_path / "t.xlsx"), Hierarchy.from_parents(as_csv(PARENTS)))
    save(tmp_path / "t.xlsx", tree=PARENTS, other=NAMES)
    with pytest.warns(DataWarning, match=r"t\.xlsx#other"):
        Hierarchy.from_parents(tmp_path / "t.xlsx")


def changed(path, change):
    book = save(path, tree=PARENTS)
    change(book["tree"])
    book.save(path)


def fill(cell, value):
    return lambda sheet: sheet.__setitem__(cell, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sheet: sheet.merge_cells("B5:B6"), "merged cells B5:B6"),
        (fill("B5", '="a"'), "cell B5: got a formula without a value"),
        (fill("B5", "#REF!"), "cell B5: got the error #REF!"),
    ],
)
def test_cells_without_their_value_are_errors(tmp_path, change, message):
    changed(tmp_path / "t.xlsx", change)
    with pytest.raises(ReaderError, match=message):
        Hierarchy.from_parents(tmp_path / "t.xlsx")


def test_dates_are_text_and_said(tmp_path):
    changed(tmp_path / "t.xlsx", fill("A5", datetime(2024, 1, 2)))
    with pytest.warns(DataWarning, match="cell A5 the first of 1"):
        tree = Hierarchy.from_parents(tmp_path / "t.xlsx")
    assert "2024-01-02" in tree.item_labels


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"id,parent\nall,\n1,all\n", None), (b"PK\x03\x04" + b"\0" * 22 + b"\x13\0\0\0[Content_Types].xml", "decoded")],
)
def test_files_that_are_not_workbooks(tmp_path, content, message):
    pytest.importorskip("openpyxl")
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(FeatureError, match=message or "expected a workbook"):
        load_features(tmp_path / "t.xlsx")


def test_an_unknown_sheet_names_the_others(tmp_path):
    save(tmp_path / "t.xlsx", tree=PARENTS, other=NAMES)
    with pytest.raises(ReaderError, match=r"no sheet 'Tree'.*'tree', 'other'"):
        Hierarchy.from_parents(f"{tmp_path}/t.xlsx#Tree")


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
CELLS = (
    ("A1", 't="s"><v>0</v>'),
    ("B1", 't="s"><v>1</v>'),
    ("A2", "><v>7</v>"),
    ("B2", 't="str"><f>LOWER("A")</f><v>a</v>'),
    ("A3", "><f>A2+1</f><v>8.0</v>"),
    ("B3", 't="inlineStr"><is><t>a</t></is>'),
    ("A5", "><v>9</v>"),
    ("B5", 't="inlineStr"><is><r><t>b</t></r><r><t>c</t></r></is>'),
)
PARTS = {  # as a spreadsheet program lays it out: shared strings, formulas with values, an absolute path
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="{KIND}.sheet'
    '.main+xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/worksheets/s.xml" ContentType="{KIND}.worksheet+xml"/>'
    f'<Override PartName="/xl/strings.xml" ContentType="{KIND}.sharedStrings+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" '
    f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets><sheet name="Tabelle 1" sheetId="1" r:id="r1"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{OFFICE}/worksheet" Target="/xl/worksheets/s.xml"/><Relationship Id="r2" Type="{OFFICE}/sharedStrings" '
    'Target="strings.xml"/></Relationships>',
    "xl/strings.xml": f"<sst {MAIN}><si><t>item</t></si><si><t>path; of categories</t></si></sst>",
    "xl/worksheets/s.xml": f'<worksheet {MAIN}><dimension ref="A1"/><sheetData>'
    + "".join(
        f'<row r="{row}">{"".join(f"""<c r="{at}" {cell}</c>""" for at, cell in CELLS if at[1:] == row)}</row>'
        for row in "1235"
    )
    + "</sheetData></worksheet>",
}


def test_a_workbook_of_another_program(tmp_path):
    pytest.importorskip("openpyxl")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        for name, text in PARTS.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
    content = (tmp_path / "t.xlsx").read_bytes()
    assert workbook_text(content, "t.xlsx#Tabelle 1", ReaderError) == (
        '"item","path; of categories"\n7,a\n8,a\n\n9,bc\n'
    )
    tree = Hierarchy.from_paths(tmp_path / "t.xlsx", path="path; of categories", item="item", ends_in="category")
    assert tree.item_labels == ("7", "8", "9")
    with gzip.open(tmp_path / "t.xlsx.gz", "wb") as packed:
        packed.write(content)
    again = Hierarchy.from_paths(tmp_path / "t.xlsx.gz", path="path; of categories", item="item", ends_in="category")
    assert same(tree, again)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    save(tmp_path / "t.xlsx", tree=PARENTS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for read in (load_features, Hierarchy.from_parents):
        with pytest.raises(MissingExtraError, match=r"pomdp-hier\[excel\]"):
            read(tmp_path / "t.xlsx")


def test_texts_of_a_sheet_and_what_was_taken(tmp_path, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    texts = [["id", "title"], [1, "red boots"], [2, "black boots"], [3, "warm coat"], [4, None]]
    save("x.xlsx", features=texts)
    (tmp_path / "t.csv").write_text(as_csv(PARENTS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["score", "x.xlsx", "t.csv"]) == 1
        assert "--text-column title" in capsys.readouterr().err
        assert main(["score", "x.xlsx", "t.csv", "--text-column", "title"]) == 0
    said = capsys.readouterr().err
    assert "TF-IDF of 'title', 5 terms in 4 texts (ids such as '1'); 1 text without a term" in said
