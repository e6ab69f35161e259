"""The searches command, and the section on searches in the report."""

import csv
import json

import numpy as np
import pytest

from pomdp_hier import Hierarchy, diagnose, fit_delta, predicted_and_observed, read_searches
from pomdp_hier.cli import main
from pomdp_hier.errors import ParameterError
from pomdp_hier.report import write_report
from pomdp_hier.searches.comparison import COLUMNS

RIGHT = {"a": 28, "b": 3, "c": 4, "d": 27, "e": 28, "f": 29}  # of 30
FEATURES = {"a": (1, 0.1), "b": (1, 0.2), "c": (0.2, 1), "d": (0.1, 1), "e": (0.2, 1), "f": (1, 0.1)}
ONE, OTHER = "Home", "Garden"


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Six items under two categories, of which people miss b by its label and c by its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "features.csv").write_text("id,x,y\n" + "".join(f"{k},{x},{y}\n" for k, (x, y) in FEATURES.items()))
    places = {item: ONE if item in "abc" else OTHER for item in FEATURES}
    (tmp_path / "tree.csv").write_text("item,path\n" + "".join(f"{k},{v}\n" for k, v in places.items()))
    rows = ["who,aim,way"]
    for item, right in RIGHT.items():
        own, wrong = (ONE, OTHER) if item in "abc" else (OTHER, ONE)
        rows += [f"p{p},{item},{own if p < right else wrong}" for p in range(30)]
    (tmp_path / "searches.csv").write_text("\n".join(rows) + "\n")
    return ["features.csv", "tree.csv", "searches.csv", "--columns=item=aim", "--columns", "path=way"]


def test_printed_lines(inputs, capsys):
    assert main(["searches", *inputs, "--delta=0.2", "--quiet"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("180 searches of 180 searchers for 6 items")
    assert any(line.startswith("delta ") and "from 180 choices" in line for line in said)
    listed = {tuple(line.split(":")[0].split()) for line in said[said.index("largest misfits, by item") + 1 :]}
    assert listed == {("label", "b"), ("place", "c"), ("features", "f")}


def test_the_table_and_the_json_are_those_of_the_functions(inputs, capsys):
    tree = Hierarchy.from_paths({item: ONE if item in "abc" else OTHER for item in FEATURES})
    X = np.array([FEATURES[item] for item in tree.item_labels], dtype=float)
    read = read_searches("searches.csv", tree, columns={"item": "aim", "path": "way"})
    fit = fit_delta(X, tree, read)
    shown = predicted_and_observed(X, tree, read, **fit.settings)
    assert main(["searches", *inputs, "--by=item", "-o", "items.csv", "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["delta"] == fit.delta
    assert told["verdict"] == fit.verdict
    assert [row["id"] for row in told["misfits"]["item"]] == [row["id"] for row in shown.misfits("item")]
    with open("items.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS["item"]
    assert [float(row["predicted"]) for row in rows] == [row["predicted"] for row in shown.to_rows("item")]
    assert main(["searches", *inputs, "-o", "-", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("id,name,level,")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--columns=aim"], "expected ROLE=NAME"),
        (["--columns=goal=aim"], "columns: got 'goal'; expected one of 'search'"),
        (["--nu=cold"], "expected a number or 'fitted'"),
        (["--nu=0"], "--nu: got 0.0; expected a positive number"),
        (["--links=none.csv"], "none.csv: got a path that cannot be read"),
        (["--out=items.txt"], "--out: got items.txt"),
        (["--force"], "--force has no effect without --out"),
    ],
)
def test_invalid_options_are_one_line(inputs, capsys, changes, words):
    try:
        code = main(["searches", *inputs, *changes, "--quiet"])
    except SystemExit as end:  # of argparse
        code = end.code
    assert code in (1, 2)
    assert words in capsys.readouterr().err


def test_standard_input_is_one_file(inputs, capsys):
    assert main(["searches", "-", "tree.csv", "-"]) == 2
    assert "SEARCHES and --links: got - for several" in capsys.readouterr().err


def test_an_empty_file_is_named_once(inputs, tmp_path, capsys):
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert main(["searches", *inputs[:2], str(empty)]) == 1
    assert f"error: {empty}: got an empty file" in capsys.readouterr().err


def test_errors_name_options(inputs, capsys):
    assert main(["searches", *inputs[:3], "--quiet"]) == 1
    assert "searches.csv: columns: got 'who', 'aim', 'way'; expected 'item'. Name it with --columns." in (
        capsys.readouterr().err
    )
    with open("searches.csv", "a") as file:
        file.write("p1,vase,Home\n")
    assert main(["searches", *inputs, "--quiet"]) == 1
    assert "leave these searches out: --unknown-items drop" in capsys.readouterr().err
    assert main(["searches", *inputs, "--quiet", "--unknown-items=drop"]) == 0
    assert "1 search for items that the tree lacks, left out: 'vase'" in capsys.readouterr().out


def test_the_report_has_a_section(inputs, capsys):
    given = [*inputs[:2], "--searches=searches.csv", *inputs[3:], "--shuffles=0", "--n-moves=0", "--quiet"]
    assert main(["report", *given, "-o", "report.html"]) == 0
    with open("report.html", encoding="utf-8") as file:
        page = file.read()
    assert "<h2>Recorded searches</h2>" in page
    for words in ("gain over uniform", "look at its label", "look at the place of the item", "most often instead"):
        assert words in page
    assert main(["report", *inputs[:2], "--start=first", "-o", "other.html"]) == 2
    assert "--start has no effect without --searches" in capsys.readouterr().err


def test_a_report_takes_searches_of_its_tree_alone():
    X = np.array(list(FEATURES.values()), dtype=float)
    tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], 6)
    other = Hierarchy.from_children([[0, 1, 3], [2, 4, 5], [6, 7]], 6)
    read = read_searches([(p, x, 0, 6 + (p + x) % 2) for p in range(4) for x in range(6)], tree)
    fit = fit_delta(X, tree, read, n_bootstrap=20)
    shown = predicted_and_observed(X, tree, read, n_bootstrap=20)
    page = write_report(diagnose(X, tree), searches=shown)
    assert "Recorded searches" in page
    assert "gain over uniform" not in page
    for options in ({"searches": shown}, {"delta_fit": fit}):
        with pytest.raises(ParameterError, match="searches: got those of Hierarchy"):
            write_report(diagnose(X, other), **options)
    with pytest.raises(ParameterError, match="searches: got a Searches"):
        write_report(diagnose(X, tree), searches=read)
    with pytest.raises(ParameterError, match="delta_fit: got a float"):
        write_report(diagnose(X, tree), delta_fit=0.1)
