"""``pomdp-hier misfiled``: the table that it writes, what it prints, and what it refuses."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from pomdp_hier.cli import main
from pomdp_hier.filing import misfiled
from pomdp_hier.filing.result import COLUMNS


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Forty items of four kinds on four shelves, of which i7 is on the wrong one."""
    rng = np.random.default_rng(0)
    kind = np.arange(40) // 10
    X = rng.normal(size=(4, 12))[kind] + 0.2 * rng.normal(size=(40, 12))
    shelf = ["Home > Bath", "Home > Bed", "Garden > Tools", "Garden > Pots"]
    place = kind.copy()
    place[7] = 3
    features, tree = tmp_path / "features.csv", tmp_path / "tree.csv"
    head = ",".join(["id", *(f"f{column}" for column in range(12))])
    lines = [",".join([f"i{row}", *map(str, values)]) for row, values in enumerate(X.tolist())]
    features.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    tree.write_text(
        "item,path\n" + "".join(f"i{row},{shelf[at]}\n" for row, at in enumerate(place.tolist())), encoding="utf-8"
    )
    return str(features), str(tree)


def test_the_table_names_the_item_its_place_and_the_proposed_one(files, tmp_path):
    out = tmp_path / "misfiled.csv"
    assert main(["misfiled", *files, "-o", str(out), "--quiet", "--limit", "5"]) == 0
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 5
    assert tuple(rows[0]) == COLUMNS
    first = rows[0]
    assert (first["rank"], first["item_id"]) == ("1", "i7")
    assert (first["source_path"], first["target_path"]) == ("Garden > Pots", "Home > Bath")
    assert len(first["similar_at_source"].split("; ")) == len(first["similar_at_target"].split("; ")) == 3
    assert first["n_terms"] == "12"
    probabilities = [float(row["probability"]) for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)


def test_names_stand_for_ids(files, tmp_path, capsys):
    names = tmp_path / "names.csv"
    names.write_text("id,name\ni7,Sponge\n", encoding="utf-8")
    assert main(["misfiled", *files, "--names", str(names), "--top", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Sponge (12 terms)" in printed
    assert "in Garden > Pots, beside " in printed
    assert "to Home > Bath (P " in printed
    assert "Fewer than 100" in printed


def test_json_and_standard_output(files, tmp_path, capsys):
    out = tmp_path / "misfiled.json"
    assert main(["misfiled", *files, "-o", str(out)]) == 0
    assert json.loads(out.read_text())[0]["item_id"] == "i7"
    capsys.readouterr()
    assert main(["misfiled", *files, "-o", "-", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_an_interrupt_writes_the_result_so_far(files, tmp_path, monkeypatch):
    add = misfiled._Judged.add

    def interrupted(judged, items):
        add(judged, items[:5])
        raise KeyboardInterrupt

    monkeypatch.setattr(misfiled._Judged, "add", interrupted)
    out = tmp_path / "misfiled.csv"
    assert main(["misfiled", *files, "-o", str(out), "--quiet"]) == 130
    assert len(out.read_text().splitlines()) == 6


def test_an_interrupt_during_the_fit_says_that_no_item_is_judged(files, tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(misfiled, "fit_model", interrupted)
    assert main(["misfiled", *files, "-o", str(tmp_path / "misfiled.csv"), "--quiet"]) == 130
    assert capsys.readouterr().err == "pomdp-hier: interrupted: none of 40 items judged\n"
    assert not (tmp_path / "misfiled.csv").exists()


@pytest.mark.parametrize(
    "options",
    [["--expected-wrong", "1"], ["--expected-wrong", "x"], ["--force"], ["--limit", "3"], ["-o", "misfiled.txt"]],
)
def test_wrong_usage_is_refused(files, options, capsys):
    assert main(["misfiled", *files, *options]) == 2
    assert options[0].lstrip("-")[0] in capsys.readouterr().err
