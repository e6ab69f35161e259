"""``pomdp-hier compare``: trees by file, joined by id, in text, JSON and tables."""

import csv
import io
import json
import sys

import numpy as np
import pytest

from pomdp_hier.analysis.comparison import APART, MEASURES, compare
from pomdp_hier.cli import main
from pomdp_hier.hqs.inputs import calibrate_delta
from pomdp_hier.hqs.score import evaluate
from tests.planted import clean_case, swapped


@pytest.fixture
def files(tmp_path):
    """Features, a clean tree and one with two subtrees swapped, and the classes of the items."""
    X, tree = clean_case()
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "clean.json").write_text(tree.to_json(), encoding="utf-8")
    (tmp_path / "swapped.json").write_text(swapped(tree)[0].to_json(), encoding="utf-8")
    (tmp_path / "classes.csv").write_text("id,name\n" + "".join(f"{k},{k // 5}\n" for k in range(45)), encoding="utf-8")
    return tmp_path


def run(capsys, *arguments) -> str:
    assert main(["compare", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_table_and_the_words(files, capsys):
    out = run(capsys, files / "x.npy", files / "swapped.json", files / "clean.json", "--delta", 0.02)
    lines = out.splitlines()
    assert lines[0].split() == ["clean", "swapped"]
    for key, line in zip(
        [key for key in MEASURES if key not in (*APART, "dendrogram_purity", "class_f_score")],
        lines[1:8],
        strict=True,
    ):
        assert line.startswith(f"{MEASURES[key].name} ")
        assert line.endswith(f"  {MEASURES[key].meaning}")
    assert lines[9].split() == ["distance", "to", "swapped", "clean"]
    assert all(line.startswith(named.name) for line, named in zip(lines[10:16], APART.values(), strict=True))
    assert "clean is better than swapped by 0." in out
    assert "items with the largest gains by clean over swapped" in out


def test_json_equals_the_result_of_the_function(files, capsys):
    X, tree = clean_case()
    arguments = (files / "x.npy", files / "clean.json", files / "swapped.json", "--labels", files / "classes.csv")
    report = json.loads(run(capsys, *arguments, "--delta", 0.02, "--json", "--top", 2))
    labels = [str(k // 5) for k in range(45)]
    found = compare(X, {"clean": tree, "swapped": swapped(tree)[0]}, labels=labels, delta=0.02)
    assert report["trees"] == found.to_rows()
    assert report["ranks"] == found.ranks()
    assert [pair["difference"] for pair in report["length_differences"]] == [found.length_differences[0].difference]
    assert report["differences"][0]["low"] == found.differences[0].low
    gains = found.gained_items("clean", "swapped", 2)
    assert [(entry["item"], entry["gain"]) for entry in report["items"]["clean over swapped"]] == gains


def test_values_of_every_item_as_a_table(files, capsys):
    X, tree = clean_case()
    arguments = (files / "x.npy", files / "clean.json", files / "swapped.json", "--delta", "calibrated", "--out", "-")
    assert main(["compare", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert "of 'clean' is at the lower bound, 0.0001" in captured.err
    rows = list(csv.DictReader(io.StringIO(captured.out)))
    trees = {"clean": tree, "swapped": swapped(tree)[0]}
    delta = calibrate_delta(X, trees).delta
    for name, case in trees.items():
        np.testing.assert_array_equal([float(row[name]) for row in rows], evaluate(X, case, delta=delta).values)


def test_items_are_joined_by_id(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("id,x,y\na,1,0\nb,0.9,0.1\nc,0,1\nd,0.1,1\n", encoding="utf-8")
    one = {"children": [[0, 1], [2, 3], [4, 5]], "labels": ["a", "b", "c", "d", "p", "q", "r"]}
    same = {"children": [[0, 3], [1, 2], [4, 5]], "labels": ["d", "a", "b", "c", "p", "q", "r"]}
    other = {"children": [[0, 1], [2, 3], [4, 5]], "labels": ["a", "c", "b", "e", "p", "q", "r"]}
    for name, tree in (("one", one), ("same", same), ("other", other)):
        (tmp_path / f"{name}.json").write_text(json.dumps(tree | {"n_items": 4}), encoding="utf-8")
    out = run(capsys, tmp_path / "x.csv", tmp_path / "one.json", tmp_path / "same.json", "--out", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["one"] for row in rows] == pytest.approx([row["same"] for row in rows])
    assert main(["compare", *(str(tmp_path / name) for name in ("x.csv", "one.json", "other.json"))]) == 1
    err = capsys.readouterr().err
    assert "'d' in " in err
    assert "'e' in " in err
    assert "--join position" in err
    by_position = [tmp_path / name for name in ("x.csv", "one.json", "other.json")]
    report = json.loads(run(capsys, *by_position, "--join", "position", "--json"))
    assert report["trees"][1]["robinson_foulds"] == 0


def test_trees_of_one_name_get_numbers(files, capsys):
    (files / "sub").mkdir()
    (files / "sub" / "clean.json").write_text((files / "swapped.json").read_text(), encoding="utf-8")
    paths = [files / "clean.json", files / "sub" / "clean.json", files / "clean.json"]
    report = json.loads(run(capsys, files / "x.npy", *paths, "--json", "--no-measures"))
    assert [entry["tree"] for entry in report["trees"]] == [
        f"{files / 'clean.json'} (1)",
        str(files / "sub" / "clean.json"),
        f"{files / 'clean.json'} (3)",
    ]


def test_a_tree_from_standard_input(files, capsys, monkeypatch):
    content = (files / "swapped.json").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    out = run(capsys, files / "x.npy", files / "clean.json", "-", "--no-measures")
    assert "stdin" in out


@pytest.mark.parametrize(
    ("extra", "code", "text"),
    [
        (["-", "-"], 2, "-: got standard input for several inputs"),
        (["clean.json", "--top", "-1"], 2, "--top: got -1"),
        (["clean.json", "--out", "-", "--json"], 2, "--out: got - and --json"),
        (["clean.json", "--out", "y.npy"], 2, "--out: got y.npy"),
        (["clean.json", "--out", "clean.json", "--force"], 2, "the same file as the input TREE"),
        (["clean.json", "--confidence", "95"], 2, "confidence: got 95"),
        (["missing.json"], 1, "missing.json: got a path that cannot be read"),
    ],
)
def test_invalid_combinations(files, capsys, monkeypatch, extra, code, text):
    monkeypatch.chdir(files)
    assert main(["compare", "x.npy", "swapped.json", *extra]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert text in next(line for line in captured.err.splitlines() if line.startswith("error: "))


def test_a_page_about_two_trees(files, capsys):
    out = files / "both.html"
    arguments = (files / "x.npy", files / "swapped.json", files / "clean.json", "--delta", 0.02)
    run(capsys, *arguments, "-o", out)
    page = out.read_text(encoding="utf-8")
    assert "<h1>swapped or clean: which supports search better?</h1>" in page
    assert "clean is better than swapped by 0." in page
    three = [str(files / name) for name in ("x.npy", "swapped.json", "clean.json", "clean.json")]
    assert main(["compare", *three, "-o", str(files / "three.html"), "--quiet"]) == 0
    assert "Version by version" in (files / "three.html").read_text(encoding="utf-8")
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.split("version ")[1].splitlines()[1:4]] == ["1", "2", "3"]
    assert main(["compare", *map(str, arguments), "-o", str(out)]) == 1
    assert "--force" in capsys.readouterr().err
