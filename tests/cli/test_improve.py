"""``pomdp-hier improve``: the better tree and the edits as files, whole or not at all, and a line for every slip."""

import csv
import json
import os
import signal
import sys

import numpy as np
import pytest

from pomdp_hier import Hierarchy, improve
from pomdp_hier.cli import main
from tests.planted import clean_case, misplaced, swapped
from tests.terminals import stopped_when_shown


@pytest.fixture
def broken(tmp_path):
    """Two clusters exchanged, in a tree with ids; features by id in another order; names by id."""
    X, tree = clean_case()
    ids = [f"i{k}" for k in range(45)] + [f"g{k}" for k in range(13)]
    tree = Hierarchy(swapped(tree)[0].parent, 45, labels=ids)
    (tmp_path / "tree.json").write_text(tree.to_json(), encoding="utf-8")
    rows = [f"i{k}," + ",".join(map(repr, X[k].tolist())) for k in range(45)]
    head = "id," + ",".join(f"x{k}" for k in range(X.shape[1]))
    (tmp_path / "x.csv").write_text("\n".join([head, *rows[::-1]]), encoding="utf-8")
    (tmp_path / "names.csv").write_text(
        "id,name\n" + "".join(f"g{k},=Boots {k}\n" for k in range(13)), encoding="utf-8"
    )
    return X, tree, tmp_path


def call(folder, *arguments):
    return main(["improve", str(folder / "x.csv"), str(folder / "tree.json"), "--delta", "0.02", *map(str, arguments)])


def test_the_better_tree_and_the_edits_are_written_with_the_ids_of_the_tree(broken, capsys):
    X, tree, folder = broken
    out, moves = folder / "better.json", folder / "moves.csv"
    assert call(folder, "-o", out, "--edits-out", moves, "--names", folder / "names.csv", "--folds", 2) == 0
    expected = improve(X, tree, delta=0.02, folds=2)
    written = Hierarchy.from_json(out)
    assert written == expected.tree
    assert (written.item_labels, set(written.labels)) == (tree.item_labels, set(tree.labels))
    rows = list(csv.DictReader(moves.read_text(encoding="utf-8").splitlines()))
    assert {row["made"] for row in rows} == {"True"}
    assert [float(row["gain"]) for row in rows] == [edit.gain for edit in expected.edits]
    assert [float(row["held_out_gain"]) for row in rows] == [edit.held_out.gain for edit in expected.edits]
    assert [row["node_ids"] for row in rows] == [tree.labels[edit.nodes[0]] for edit in expected.edits]
    assert all(row["node_names"].startswith("'=Boots") for row in rows)
    said = capsys.readouterr().out
    assert said.startswith(
        f"search length score with label cost 1 {expected.before.score:.4f} -> {expected.after.score:.4f}"
    )
    before = out.read_bytes()
    assert call(folder, "-o", out) == 1
    assert "replace it: --force" in capsys.readouterr().err
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--fixed", "nobody"], 2, "--fixed: got 'nobody'; expected the id of a node"),
        (["--fixed-level", "9"], 2, "--fixed-level: got 9; expected a level from 0 (the root) to 3"),
        (["--kinds", "move,juggle"], 2, "kinds: got 'juggle'; expected one or more of 'move'"),
        (["--expected-wrong", "1"], 2, "--expected-wrong: got 1"),
        (["--max-loss", "-1"], 2, "--max-loss: got -1;"),
        (["--max-edits", "-1"], 2, "--max-edits: got -1;"),
        (["--objective", "hqs", "--policy", "optimal"], 2, "Improve with --policy one-step"),
        (["--folds", "1"], 2, "folds: got 1"),
        (["--folds", "0", "--seed", "3"], 2, "--seed has no effect without folds"),
        (["--time-limit", "nan"], 2, "--time-limit: got nan;"),
        (["--objective", "cost"], 2, "--objective: "),
        (["--objective", "hqs", "--label-cost", "1"], 2, "or pass --objective search_length"),
        (["--objective", "search_length", "--policy", "descend"], 2, "or pass --objective hqs"),
        (["--objective", "search_length", "--tie", "search"], 2, "or pass --objective hqs"),
        (["--objective", "search_length", "--label-cost", "-1"], 2, "--label-cost: got -1;"),
    ],
)
def test_a_slip_is_one_line_and_nothing_is_written(broken, capsys, arguments, code, text):
    folder = broken[2]
    assert call(folder, "-o", folder / "better.json", "--edits-out", folder / "moves.csv", *arguments) == code
    assert text in capsys.readouterr().err
    assert not (folder / "better.json").exists()
    assert not (folder / "moves.csv").exists()


def test_edits_that_are_not_sound_are_made_on_request_alone(broken, capsys):
    _, tree, folder = broken
    out = folder / "better.json"
    loose = misplaced(Hierarchy(clean_case()[1].parent, 45, labels=tree.labels), 0, -1)[0]
    (folder / "tree.json").write_text(Hierarchy(loose.parent, 45, labels=tree.labels).to_json(), encoding="utf-8")
    assert call(folder, "-o", out, "--folds", 0, "--expected-wrong", 0) == 0
    assert "not made, as they are not sound" in capsys.readouterr().out
    assert (Hierarchy.from_json(out).parent == loose.parent).all()
    assert call(folder, "-o", out, "--force", "--folds", 0, "--expected-wrong", 0, "--all", "--keep-levels") == 0
    assert "1 edit: +0.0" in capsys.readouterr().out
    assert (Hierarchy.from_json(out).parent == clean_case()[1].parent).all()


@pytest.mark.parametrize(
    ("objective", "everything"),
    [
        ("hqs", True),
        pytest.param("search_length", False, marks=pytest.mark.slow),
        pytest.param("search_length", True, marks=pytest.mark.slow),
        pytest.param("hqs", False, marks=pytest.mark.slow),
    ],
)
def test_objectives_with_weights_and_decisions(broken, capsys, objective, everything):
    X, tree, folder = broken
    weights = 1 + np.arange(45) % 3
    rows = (folder / "x.csv").read_text(encoding="utf-8").splitlines()
    of = {f"i{k}": str(weight) for k, weight in enumerate(weights)}
    weighted = [rows[0] + ",sales", *(f"{row},{of[row.split(',')[0]]}" for row in rows[1:])]
    (folder / "x.csv").write_text("\n".join(weighted), encoding="utf-8")
    chosen = ["--objective", objective, *(["--label-cost", "2"] if objective == "search_length" else [])]
    chosen += ["--folds", "0", "--weights", "sales", *(["--all"] if everything else [])]
    assert call(folder, *chosen, "--edits-out", folder / "edits.csv") == 0
    said = capsys.readouterr().out
    cost = {"label_cost": 2} if objective == "search_length" else {}
    given = {"delta": 0.02, "folds": 0, "sample_weight": weights, "sound_only": not everything}
    found = improve(X, tree, objective=objective, **cost, **given)
    assert said.startswith(f"{found.score_name} {found.before.score:.4f} -> {found.after.score:.4f}")
    table = list(csv.DictReader((folder / "edits.csv").read_text(encoding="utf-8").splitlines()))
    for row in table:
        row["decision"] = "reject" if row is table[0] else ""
    (folder / "decided.json").write_text(json.dumps(table), encoding="utf-8")
    assert call(folder, *chosen, "--decided", folder / "decided.json", "--edits-out", "-") == 0
    again = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert table[0]["node_ids"] not in {row["node_ids"] for row in again}


def test_fixed_nodes_and_levels_do_not_change(broken, capsys):
    folder = broken[2]
    assert call(folder, "--fixed-level", 1, "--fixed-level", 2, "--fixed-level", 3, "--edits-out", "-") == 0
    assert capsys.readouterr().out.count("\n") == 1  # the header
    assert call(folder, "--fixed", "g1", "--fixed", "g6", "--folds", 0, "--kinds", "move", "--max-edits", 1) == 0
    out = capsys.readouterr().out
    assert "move g1 " not in out
    assert "move g6 " not in out


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_writes_whole_files(tmp_path, number):
    from tests.planted import catalogue

    X, _, tree, _ = catalogue(2_000)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "tree.json").write_text(tree.to_json(), encoding="utf-8")
    out = tmp_path / "better.json"
    command = [sys.executable, "-m", "pomdp_hier", "improve", "x.npy", "tree.json", "-o", "better.json"]
    trials = r"improve: [1-9]\d*trial"
    code, said, _ = stopped_when_shown([*command, "--delta", "0.05"], trials, number, tmp_path)
    if number == signal.SIGKILL:
        assert list(tmp_path.glob("*.json")) == [tmp_path / "tree.json"]
        assert list(tmp_path.glob(".*")) == []
    else:
        assert code == 130
        assert b"the search ended when inter" in said
        assert Hierarchy.from_json(json.loads(out.read_text(encoding="utf-8"))).n_items == 2_000
