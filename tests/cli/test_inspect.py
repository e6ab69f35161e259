"""``pomdp-hier inspect``: what is in a tree, and where searchers get lost in it."""

import json

import numpy as np
import pytest

from pomdp_hier.analysis.baselines import appraise
from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.cli import main
from tests.planted import clean_case, misplaced, swapped


@pytest.fixture
def files(tmp_path):
    """Features, and a tree with two swapped subtrees, one with a misplaced item, and a clean one."""
    X, tree = clean_case()
    np.save(tmp_path / "x.npy", X)
    for name, case in [("clean", tree), ("swapped", swapped(tree)[0]), ("misplaced", misplaced(tree, 0, -1)[0])]:
        (tmp_path / f"{name}.json").write_text(case.to_json(), encoding="utf-8")
    names = "id,name\n" + "".join(f"{k},thing {k}\n" for k in range(45)) + "45,moved\n56,first\n54,last\n57,all\n"
    (tmp_path / "names.csv").write_text(names, encoding="utf-8")
    return tmp_path


def run(capsys, *arguments) -> str:
    assert main(["inspect", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_tree_alone(files, capsys):
    out = run(capsys, files / "clean.json")
    assert out.startswith("45 items in 13 clusters, 9 without clusters below, height 2\n")
    assert "3.0 children a node, 3 at most; 5 items in the largest leaf cluster" in out
    report = json.loads(run(capsys, files / "clean.json", "--json"))
    assert list(report) == ["structure"]
    assert report["structure"]["n_items"] == 45


def test_everything_about_a_planted_fault(files, capsys):
    out = run(capsys, files / "swapped.json", files / "x.npy", "--delta", 0.02, "--names", files / "names.csv")
    first = out[out.index("nodes with the largest wrong-branch cost") :].splitlines()[1]
    assert first.startswith("  all: cost 0.")
    moves = out[out.index("moves that raise the score") :].splitlines()
    assert moves[1].startswith("  moved (5 items) from first to last: +0.16")
    assert "shuffled items" in out


def test_json_equals_the_results_of_the_functions(files, capsys):
    X, tree = clean_case()
    broken = misplaced(tree, 0, -1)[0]
    arguments = (files / "misplaced.json", files / "x.npy", "--delta", 0.02, "--shuffles", 3, "--json", "--sweep")
    report = json.loads(run(capsys, *arguments))
    found = appraise(X, broken, n_shuffles=3, delta=0.02)
    assert report["appraisal"] == found.to_dict()
    assert report["words"] == found.sentences()
    assert report["settings"]["delta"] == 0.02
    assert [entry["item"] for entry in report["lost_items"]] == [
        entry.item for entry in diagnose(X, broken, delta=0.02).lost_items()
    ]
    assert report["moves"][0]["node"] == 0
    assert len(report["sweep"]) == 13


def test_the_calibrated_temperature_is_printed(files, capsys):
    none = ("--shuffles", 0, "--n-moves", 0, "--top", 0)
    out = run(capsys, files / "swapped.json", files / "x.npy", "--delta", "calibrated", *none)
    assert "calibrated: the mean over 1 tree(s)" in out
    assert "moves that" not in out


@pytest.mark.parametrize("option", ["--top", "--n-moves", "--shuffles"])
def test_negative_counts_are_refused(files, capsys, option):
    assert main(["inspect", str(files / "clean.json"), option, "-1"]) == 2
    assert f"{option}: got -1;" in capsys.readouterr().err


def test_one_standard_input_for_two_files(capsys):
    assert main(["inspect", "-", "-"]) == 2
    assert "got - for both" in capsys.readouterr().err


def test_long_paths_lose_their_first_parts(tmp_path, capsys):
    top = "a department with quite a long name indeed"
    rows = [f"i{k},{top} > {shelf} > box {k % 4}" for k, shelf in enumerate(["first shelf", "last shelf"] * 4)]
    (tmp_path / "t.csv").write_text("\n".join(["item,path", *rows]))
    (tmp_path / "x.csv").write_text("\n".join(["id,x,y", *(f"i{k},{k % 3},{k % 5}" for k in range(8))]))
    assert main(["inspect", str(tmp_path / "t.csv"), str(tmp_path / "x.csv"), "--quiet", "--shuffles", "0"]) == 0
    said = capsys.readouterr().out
    assert "… / first shelf / box" in said
    assert f"{top} / last shelf" not in said
