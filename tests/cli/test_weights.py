"""``--weights COLUMN`` in every command that scores, with each of its other options."""

import json

import numpy as np
import pytest

from pomdp_hier import hqs_samples
from pomdp_hier.cli import main
from tests.planted import clean_case, misplaced

X, TREE = clean_case()
TREE, _ = misplaced(TREE, 3, 7)
COUNTS = np.random.default_rng(0).integers(0, 6, TREE.n_items)
ORDER = np.random.default_rng(1).permutation(TREE.n_items)  # of the rows in the file
SCORE = {"mean": float(np.repeat(hqs_samples(X, TREE, delta=0.1), COUNTS).mean())}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = ["id", "sales", *(f"f{k}" for k in range(X.shape[1]))]
    lines = [[f"i{item}", str(COUNTS[item]), *map(repr, X[item].tolist())] for item in ORDER.tolist()]
    text = "\n".join(map(",".join, [head, *lines])) + "\n"
    (tmp_path / "X.csv").write_text(text)
    (tmp_path / "X.tsv").write_text(text.replace(",", "\t"))
    np.savez(tmp_path / "X.npz", X=X, sales=COUNTS)
    for name, tree in (("tree", TREE), ("other", clean_case()[1])):
        parent = tree.parent
        rows = [f"i{item},{parent[parent[item]]} > {parent[item]}" for item in range(tree.n_items)]
        (tmp_path / f"{name}.csv").write_text("id,path\n" + "\n".join(rows) + "\n")
    return tmp_path


def ran(capsys, *arguments: str) -> str:
    assert main([*arguments, "--quiet"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("features", ["X.csv", "X.tsv", "X.npz"])
def test_the_score_of_a_column_is_that_of_values_counted_so_often(files, capsys, features):
    given = ("score", features, "tree.csv", "--weights", "sales", "--delta", "0.1")
    said = json.loads(ran(capsys, *given, "--json", "--shuffles", "0"))
    assert said["score"] == pytest.approx(SCORE["mean"], abs=1e-12)
    assert said["settings"]["weights"] == "sales"
    assert float(ran(capsys, *given, "--score-only")) == said["score"]
    assert "by sales: effective number of items" in ran(capsys, *given)


OPTIONS = {
    "score": (
        *(["--shuffles", "1"], ["--sample-size", "12", "--seed", "1"], ["--half-width", "0.3"], ["--top", "1"]),
        *(["--engine", "numpy"], ["--nu", "2"], ["--tie", "search"], ["--policy", "hindsight"], ["-o", "items.csv"]),
        *(["--similarity", "negative_euclidean"], ["--delta", "calibrated"], ["--json"], ["--join", "id"]),
        *(["--sample-size", "0.5", "--sampling", "simple"], ["-o", "-"]),
    ),
    "report": (["-o", "page.html"], ["-o", "page.html", "--n-moves", "0", "--shuffles", "0", "--max-rows", "1"]),
    "improve": (["--edits-out", "edits.csv", "--folds", "2"], ["--folds", "0", "--kinds", "move", "-o", "better.csv"]),
    "regroup": (["--label-cost", "0", "--folds", "0", "-o", "better.csv"],),
    "levels": ([], ["--remove-from", "top"], ["--best-cut", "1"], ["--json"], ["-o", "best.csv"]),
    "policies": ([], ["--policy", "one-step", "--policy", "level-1"], ["--json"], ["--confidence", "0.8"]),
}


@pytest.mark.parametrize(
    ("command", "options"), [(command, options) for command, table in OPTIONS.items() for options in table]
)
def test_weights_go_with_every_other_option(files, capsys, command, options):
    assert main([command, "X.csv", "tree.csv", "--weights", "sales", "--quiet", *options]) == 0
    if "items.csv" in options:
        rows = [line.split(",") for line in (files / "items.csv").read_text().splitlines()]
        at = rows[0].index("weight")
        assert [float(row[at]) for row in rows[1:]] == [COUNTS[int(row[1][1:])] for row in rows[1:]]


def test_other_commands_weigh_as_the_score_does(files, capsys):
    common = ("--weights", "sales", "--delta", "0.1")
    found = json.loads(ran(capsys, "inspect", "tree.csv", "X.csv", *common, "--json", "--shuffles", "1", "--sweep"))
    assert found["appraisal"]["score"] == pytest.approx(SCORE["mean"], abs=1e-12)
    compared = json.loads(ran(capsys, "compare", "X.csv", "tree.csv", "other.csv", *common, "--json", "--no-measures"))
    assert compared["trees"][0]["hqs"] == pytest.approx(SCORE["mean"], abs=1e-12)
    ran(capsys, "compare", "X.csv", "tree.csv", "other.csv", *common, "--no-measures", "-o", "both.html")
    ran(capsys, "compare", "X.csv", "tree.csv", "other.csv", *common, "--no-measures", "-o", "items.csv")
    assert (files / "items.csv").read_text().startswith("item,id,weight,tree,other\n")
    levels = json.loads(ran(capsys, "levels", "X.csv", "tree.csv", *common, "--json"))
    assert levels[0]["hqs"] == pytest.approx(SCORE["mean"], abs=1e-12)
    policies = json.loads(ran(capsys, "policies", "X.csv", "tree.csv", *common, "--json", "--policy", "one-step"))
    assert policies["policies"][0]["value"] == pytest.approx(SCORE["mean"], abs=1e-12)
    ran(capsys, "report", "X.csv", "tree.csv", *common, "-o", "page.html", "--shuffles", "0", "--n-moves", "0")
    assert f"{SCORE['mean']:.4f}".replace("-", "−") in (files / "page.html").read_text()


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({3: "nan"}, "--weights: got nan in item 'i{item}';"),
        ({3: "-2"}, "--weights: got -2.0 in item 'i{item}'"),
        ({5: ""}, "X.csv, line 7, column 'sales': got ''; expected a number of searches"),
        ({5: "many"}, "X.csv, line 7, column 'sales': got 'many'"),
    ],
)
def test_a_wrong_weight_is_named_by_its_item_or_line(files, capsys, cells, said):
    lines = (files / "X.csv").read_text().splitlines()
    for row, cell in cells.items():
        parts = lines[row + 1].split(",")
        lines[row + 1] = ",".join([parts[0], cell, *parts[2:]])
    (files / "X.csv").write_text("\n".join(lines) + "\n")
    assert main(["score", "X.csv", "tree.csv", "--weights", "sales", "--quiet"]) != 0
    assert said.format(item=ORDER[3]) in capsys.readouterr().err


def test_a_column_that_is_not_there_is_named(files, capsys):
    assert main(["score", "X.csv", "tree.csv", "--weights", "traffic"]) == 1
    assert "no column 'traffic'" in capsys.readouterr().err
    np.save(files / "X.npy", X)
    assert main(["score", "X.npy", "tree.csv", "--weights", "sales"]) == 1
    assert "Leave this out: --weights sales" in capsys.readouterr().err
    assert main(["inspect", "tree.csv", "--weights", "sales"]) == 2
    assert "--weights has no effect" in capsys.readouterr().err
