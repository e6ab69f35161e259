"""The owner's loop: proposals, decisions on them, the better tree in its own format, and what stays rejected."""

import csv
import io
import json
import sys

import numpy as np
import pytest

from pomdp_hier import Hierarchy
from pomdp_hier._io.workbooks import workbook_text
from pomdp_hier.cli import main
from pomdp_hier.cli.console import write_table
from pomdp_hier.errors import FileFormatError, ParameterError
from pomdp_hier.improvement import apply_decisions, read_decisions
from pomdp_hier.improvement.decisions import Decision, kept_nodes

SHELVES = ("boots", "coats", "hats", "bags")
HOME = {f"i{k:02}": SHELVES[k // 10] for k in range(40)}
MISFILED = {"i03": "coats", "i14": "hats", "i25": "bags", "i36": "boots"}
FILED = {**HOME, **MISFILED}
ABOVE = {"boots": "feet", "coats": "body", "hats": "body", "bags": "feet"}
RANDOM = np.random.default_rng(0)
FEATURES = {item: np.eye(4)[SHELVES.index(home)] + 0.05 * RANDOM.random(4) for item, home in HOME.items()}


def clusters():
    return [*((shelf, ABOVE[shelf]) for shelf in SHELVES), *((top, "all") for top in ("feet", "body"))]


def as_parents(folder):
    rows = [
        "id,parent,price",
        "all,,",
        *(f"{a},{b}," for a, b in clusters()),
        *(f"{i},{s},7" for i, s in FILED.items()),
    ]
    return write(folder / "tree.csv", "\n".join(rows))


def as_edges(folder):
    rows = ["parent,child", *(f"{b},{a}" for a, b in clusters()), *(f"{s},{i}" for i, s in FILED.items())]
    return write(folder / "tree.csv", "\n".join(rows))


def as_paths(folder):
    rows = ["item,path,price", *(f"{i},{ABOVE[s]} > {s},7" for i, s in FILED.items())]
    return write(folder / "tree.csv", "\n".join(rows))


def as_newick(folder):
    groups = {s: ",".join(i for i, t in FILED.items() if t == s) for s in SHELVES}
    tops = {top: ",".join(f"({groups[s]}){s}" for s in SHELVES if ABOVE[s] == top) for top in ("feet", "body")}
    return write(folder / "tree.nwk", f"({','.join(f'({inside}){top}' for top, inside in tops.items())})all;")


def as_json(folder):
    tree = Hierarchy.from_parents({**FILED, **dict(clusters()), "all": None})
    return write(folder / "tree.json", tree.to_json())


FORMATS = (as_parents, as_edges, as_paths, as_newick, as_json)


def write(path, text):
    path.write_text(text + "\n", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["id,a,b,c,d", *(f"{item}," + ",".join(map(repr, row.tolist())) for item, row in FEATURES.items())]
    write(tmp_path / "x.csv", "\n".join(rows))
    return tmp_path


def table(path, **decisions):
    """Return the rows of a table, with decisions and notes written into the rows of these items."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["decision"], row["note"] = decisions.get(row["item_id"], ("", ""))
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=";")  # as a spreadsheet may write it
        writer.writeheader()
        writer.writerows(rows)
    return rows


def shelves(path, capsys):
    """Return the shelf of each item in a tree file, as the package reads it."""
    capsys.readouterr()
    assert main(["inspect", str(path), "--json"]) == 0
    assert main(["show", str(path), "--ascii", "--max-items", "99"]) == 0
    found = {}
    for line in capsys.readouterr().out.splitlines():
        name, _, items = line.lstrip("|-` ").partition(" (")
        if name.split(" / ")[-1] in SHELVES and ": " in items:
            found |= dict.fromkeys(items.split(": ")[1].split(", "), name.split(" / ")[-1])
    return {item: found[item] for item in sorted(found)}


@pytest.mark.parametrize(
    "made", [pytest.param(made, marks=[] if made is as_paths else pytest.mark.slow) for made in FORMATS]
)
def test_the_loop_closes_twice_in_every_format(folder, capsys, made):
    tree = made(folder)
    ending = tree.suffix
    assert main(["misfiled", "x.csv", tree.name, "-o", "moves.csv", "--quiet"]) == 0
    decisions = {"i03": ("accept", "clearly"), "i14": (" Reject", "stays: for the window"), "i25": ("ACCEPT", "")}
    rows = table("moves.csv", **decisions)
    assert {row["item_id"] for row in rows[:4]} == set(MISFILED)
    assert main(["apply", tree.name, "moves.csv", "-o", f"better{ending}", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "2 accepted edits carried out, 1 rejected, 37 without a decision" in said
    expected = {**FILED, "i03": "boots", "i25": "hats"}
    assert shelves(f"better{ending}", capsys) == expected
    if made in (as_parents, as_paths):
        before, after = (path.read_text(encoding="utf-8").splitlines() for path in (tree, folder / f"better{ending}"))
        assert len(before) == len(after)
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 2  # names are spelled as before
    second = ["misfiled", "x.csv", f"better{ending}", "--decided", "moves.csv", "-o", "second.csv"]
    assert main(second) == 0
    assert "1 item known to be in the right place" in capsys.readouterr().out
    rows = table("second.csv", i36=("accept", ""), i25=("reject", "right now"))
    assert rows[0]["item_id"] == "i36"
    assert "i14" not in {row["item_id"] for row in rows}
    assert main(["apply", "x.csv", f"better{ending}", "second.csv", "-o", f"best{ending}", "--delta", "0.1"]) == 0
    assert "score " in capsys.readouterr().out
    assert shelves(f"best{ending}", capsys) == {**HOME, "i14": "hats"}
    arguments = ["improve", "x.csv", f"best{ending}", "--folds", "0", "--kinds", "move", "--quiet", "--delta", "0.1"]
    assert main([*arguments, "--edits-out", "free.json"]) == 0
    assert main([*arguments, "--edits-out", "kept.json", "--decided", "moves.csv"]) == 0
    moved = [
        {node for row in json.loads((folder / name).read_text()) for node in row["node_ids"].split("; ")}
        for name in ("free.json", "kept.json")
    ]
    assert "i14" in moved[0]
    assert "i14" not in moved[1]


def test_decisions_that_no_longer_apply_are_reported_and_the_others_applied(folder, capsys):
    as_parents(folder)
    write(
        folder / "moves.csv",
        "item_id,source_id,target_id,decision\n"
        "i03,coats,boots,accept\ni03,coats,hats,accept\ni14,coats,boots,accept\nnone,coats,boots,accept\n"
        "i25,bags,shoes,accept\ni36,boots,,accept\ni36,boots,bags,accept\n",
    )
    assert main(["apply", "tree.csv", "moves.csv", "-o", "better.csv"]) == 0
    out = capsys.readouterr().out
    assert "2 accepted edits carried out" in out
    assert "5 accepted edits no longer fit" in out
    for said in (
        "row 2, move i03 from coats to hats: i03 is below boots.",
        "row 3, move i14 from coats to boots: i14 is below hats.",
        "row 4, move none from coats to boots: no node is called 'none'",
        "row 5, move i25 from bags to shoes: no node is called 'shoes'",
        "row 6, move i36 from boots: no target is given",
    ):
        assert said in out
    assert shelves("better.csv", capsys) == {**FILED, "i03": "boots", "i36": "bags"}


TREE = Hierarchy.from_parents({**FILED, **dict(clusters()), "all": None})


def rows(*edits):
    return [Decision(at, *edit) for at, edit in enumerate(edits, start=1)]


def test_later_rows_name_clusters_that_earlier_rows_make():
    split = ("split", "i00; i01", "boots", "new 99", "accept")
    into = ("move", "i02", "boots", "new 99", "accept")
    found = apply_decisions(TREE, rows(split, into))
    new = int(found.tree.parent[found.tree.node("i00")])
    assert sorted(found.tree.item_labels[item] for item in found.tree.items(new)) == ["i00", "i01", "i02"]
    assert not found.misfits
    without = apply_decisions(TREE, rows((*split[:-1], "reject"), into))
    assert [reason for _, reason in without.misfits] == ["'new 99' was not made."]
    merged = apply_decisions(TREE, rows(("merge", "hats", "body", "coats", "accept")))
    assert {merged.tree.labels[merged.tree.parent[merged.tree.node(item)]] for item in ("i15", "i22")} == {"coats"}
    assert "hats" not in merged.tree.labels
    gone = apply_decisions(TREE, rows(("merge", "hats", "all", "coats", "accept")))
    assert [reason for _, reason in gone.misfits] == ["hats is below body."]


def test_rejections_keep_nodes_while_they_are_where_they_were():
    kept, misfits = kept_nodes(
        TREE,
        rows(
            ("move", "i03; i14", "coats", "boots", "reject"),
            ("move", "i03", "coats", "boots", "reject"),
            ("split", "i00", "boots", "new 50", "reject"),
            ("move", "i25", "bags", "hats", "accept"),
        ),
    )
    assert [TREE.labels[node] for node in kept] == ["i03", "boots"]
    assert [reason for _, reason in misfits] == ["i14 is below hats."]


def test_ids_with_separators_and_formulas_are_found():
    tree = Hierarchy.from_parents({"=1; 2": "a; b", "2": "a; b", "x": "c", "a; b": "all", "c": "all", "all": None})
    found = apply_decisions(tree, rows(("move", "'=1; 2; 2", "a; b", "c", "accept")))
    assert not found.misfits
    assert {found.tree.labels[found.tree.parent[found.tree.node(item)]] for item in ("=1; 2", "2", "x")} == {"c"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item_id,source_id,target_id,decision\na,b,c,maybe\n", "row 1, decision: got 'maybe'"),
        ("item_id,source_id,decision\na,b,accept\n", "got no column 'target_id'"),
        ("a,b\n1,2\n", "got no column 'node_ids'"),
        ("item_id,kind,source_id,target_id,decision\na,swap,b,c,accept\n", "row 1, kind: got 'swap'"),
    ],
)
def test_tables_that_are_no_decisions(tmp_path, text, said):
    with pytest.raises(FileFormatError, match=said):
        read_decisions(write(tmp_path / "moves.csv", text))
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_decisions(tmp_path / "none.csv")


def test_json_and_parquet_hold_decisions_as_well(folder, capsys):
    tree = as_parents(folder)
    for ending in ("json", "parquet"):
        if ending == "parquet":
            pytest.importorskip("pyarrow")
        assert main(["misfiled", "x.csv", tree.name, "-o", f"moves.{ending}", "--quiet", "--force"]) == 0
        found = read_decisions(folder / f"moves.{ending}")
        assert {row.nodes for row in found[:4]} == set(MISFILED)
        assert {row.decision for row in found} == {""}


def test_a_workbook_goes_round_as_a_table_of_text_does(folder, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    tree = as_paths(folder)
    assert main(["misfiled", "x.csv", tree.name, "-o", "moves.xlsx", "--quiet"]) == 0
    book = openpyxl.load_workbook("moves.xlsx")
    sheet = book.worksheets[0]
    head = [cell.value for cell in sheet[1]]
    assert sheet.data_validations.dataValidation[0].formula1 == '"accept,reject"'
    for row in sheet.iter_rows(min_row=2):
        if row[head.index("item_id")].value == "i03":
            row[head.index("decision")].value = "Accept"
    book.save("moves.xlsx")
    assert main(["apply", tree.name, "moves.xlsx", "-o", "better.csv"]) == 0
    assert "1 accepted edit carried out" in capsys.readouterr().out
    assert shelves("better.csv", capsys) == {**FILED, "i03": "boots"}


def test_a_workbook_holds_texts_and_numbers_as_they_are(tmp_path):
    pytest.importorskip("openpyxl")
    columns = {"id": ["=1+1", "a\x07b", "007", "-"], "n": [7, 0.5, float("nan"), -1], "ok": [True, False, True, False]}
    write_table(str(tmp_path / "t.xlsx"), columns, False)
    found = list(
        csv.DictReader(io.StringIO(workbook_text((tmp_path / "t.xlsx").read_bytes(), "t.xlsx", FileFormatError)))
    )
    assert [row["id"] for row in found] == ["=1+1", "a b", "007", "-"]
    assert [row["n"] for row in found] == ["7", "0.5", "", "-1"]
    assert [row["ok"] for row in found] == ["TRUE", "FALSE", "TRUE", "FALSE"]
    for damaged in (b"", b"PK\x03\x04", (tmp_path / "t.xlsx").read_bytes()[:-40]):
        with pytest.raises(FileFormatError, match=r"t\.xlsx: cannot be decoded"):
            workbook_text(damaged, "t.xlsx", FileFormatError)


def test_a_workbook_names_its_extra_before_the_work(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    tree = as_paths(folder)
    assert main(["misfiled", "x.csv", tree.name, "-o", "moves.xlsx"]) == 1
    assert "pip install 'pomdp-hier[excel]'" in capsys.readouterr().err


ROW = {"item_id": "a", "source_id": "s", "target_id": "t", "decision": "accept"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("moves.json", json.dumps([ROW, {"item_id": "b"}])),
        ("moves.json", json.dumps([ROW, {**ROW, "Decision": "reject"}])),
        ("moves.json", "[" * 100_000),
        ("moves.csv", "item_id,source_id,target_id\n"),
        ("moves.csv", "item_id,source_id,target_id,decision,Decision\na,s,t,accept,reject\n"),
        ("moves.xlsx", "PK\3\4 and no workbook"),
    ],
)
def test_tables_of_decisions_are_whole_and_unambiguous(tmp_path, name, content):
    with pytest.raises(FileFormatError, match=name):
        read_decisions(write(tmp_path / name, content))


def test_a_damaged_parquet_file_of_decisions_is_reported(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(FileFormatError, match="Parquet"):
        read_decisions(write(tmp_path / "moves.parquet", "PAR1 and no table"))


@pytest.mark.parametrize(
    "rows", [5, "x", [ROW], [Decision(1, "move", "boots", "feet", "body", "ACCEPT")]], ids=["5", "x", "dict", "ACCEPT"]
)
def test_decisions_of_another_form_are_not_passed_over(rows):
    tree = Hierarchy.from_paths({"boots": "feet", "hat": "body", "shoe": "feet"})
    for function in (apply_decisions, kept_nodes):
        with pytest.raises(ParameterError, match="decision"):
            function(tree, rows)


@pytest.mark.parametrize("target", ["shoes", "new 1"])
def test_a_split_into_a_node_that_exists_does_not_fit(target):
    tree = Hierarchy.from_paths({"boots": "coats", "parka": "coats", "shoe": "shoes", "pump": "shoes", "cap": "hats"})
    rows = [
        Decision(1, "split", "boots", "coats", "new 1", "accept"),
        Decision(2, "split", "shoe", "shoes", target, "accept"),
        Decision(3, "move", "cap", "hats", "shoes", "accept"),
    ]
    found = apply_decisions(tree, rows)
    assert [row.row for row in found.done] == [1, 3]
    assert [(row.row, target in reason) for row, reason in found.misfits] == [(2, True)]
