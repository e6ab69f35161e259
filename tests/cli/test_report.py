"""``pomdp-hier report`` and what ``score`` says beside the score."""

import json

import numpy as np
import pytest

from pomdp_hier.analysis.baselines import appraise
from pomdp_hier.cli import main
from pomdp_hier.hqs.inputs import calibrate_delta
from tests.planted import clean_case, misplaced


@pytest.fixture
def files(tmp_path):
    X, tree = clean_case()
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "tree.json").write_text(tree.to_json(), encoding="utf-8")
    (tmp_path / "names.csv").write_text("id,name\n0,<b>Ant & bee</b>\n", encoding="utf-8")
    return X, tree, tmp_path


def test_content_of_a_report(files, capsys):
    X, tree, folder = files
    out = folder / "out.html"
    arguments = ["report", str(folder / "x.npy"), str(folder / "tree.json"), "-o", str(out), "--delta", "0.05"]
    assert main([*arguments, "--names", str(folder / "names.csv"), "--shuffles", "3", "--title", "A < B"]) == 0
    captured = capsys.readouterr()
    expected = appraise(X, tree, delta=0.05, n_shuffles=3)
    assert captured.err.startswith(f"written to {out}, ")
    assert captured.out.startswith(f"HQS {expected.score:.6f}, delta 0.05, rows joined by position\n")
    page = out.read_text(encoding="utf-8")
    assert f"<b>{expected.score:.4f}</b>" in page
    assert "<h1>A &lt; B</h1>" in page
    assert "<b>Ant" not in page
    assert page.index("<h2>Probably misfiled</h2>") < page.index("<h2>The score</h2>") < page.index("<h2>Worst nodes")
    assert "shuffles: 3" in page
    assert main(arguments) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*arguments, "--force", "--n-moves", "0", "--shuffles", "0", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert "How well does tree.json support the search in x.npy?" in out.read_text(encoding="utf-8")


def test_paths_are_drawn_by_their_last_part(files, capsys):
    _, _, folder = files
    (folder / "p.csv").write_text("item,path\na,Food > Green tea\nb,Food > Mugs\nc,Pets\n", encoding="utf-8")
    (folder / "f.csv").write_text("id,x,y\nb,0,1\na,1,0\nc,1,1\n", encoding="utf-8")
    out = folder / "out.html"
    assert main(["report", str(folder / "f.csv"), str(folder / "p.csv"), "-o", str(out)]) == 0
    assert "rows joined by id" in capsys.readouterr().out
    page = out.read_text(encoding="utf-8")
    assert '"Green tea"' in page
    assert "('Food'" not in page


@pytest.mark.parametrize("command", ["score", "report"])
def test_a_calibrated_temperature_is_reported(files, capsys, command):
    X, tree, folder = files
    expected = calibrate_delta(X, tree).delta
    arguments = [command, str(folder / "x.npy"), str(folder / "tree.json"), "--delta", "calibrated", "--shuffles", "2"]
    if command == "report":
        assert main([*arguments, "-o", str(folder / "out.html"), "--n-moves", "0"]) == 0
        assert f"delta {expected:g} (calibrated)" in capsys.readouterr().out
        assert f"delta: {expected}" in (folder / "out.html").read_text(encoding="utf-8")
        return
    assert main(arguments) == 0
    assert f"delta {expected:g} (calibrated)" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert (settings["delta"], settings["calibrated"]) == (expected, True)
    assert main([*arguments, "--delta", "warm"]) == 2
    assert "got 'warm'; expected a number or 'calibrated'" in capsys.readouterr().err


def test_baselines_beside_a_score(files, capsys):
    X, tree, folder = files
    paths = ["score", str(folder / "x.npy"), str(folder / "tree.json"), "--delta", "0.05"]
    found = appraise(X, tree, delta=0.05, n_shuffles=8)
    assert main(paths) == 0
    out = capsys.readouterr().out
    assert f"no tree 0.0000, shuffled items {found.shuffled_mean:.4f} (SD {found.shuffled_sd:.4f}, 8 shuffles)" in out
    assert f"hindsight {found.hindsight:.4f}" in out
    assert all(sentence in out for sentence in found.sentences())
    assert main([*paths, "--shuffles", "0"]) == 0
    assert "beside it" not in capsys.readouterr().out
    assert main([*paths, "--score-only"]) == 0
    assert capsys.readouterr().out == f"{found.score!r}\n"
    assert main([*paths, "--json", "--shuffles", "1"]) == 0
    figures = json.loads(capsys.readouterr().out)["appraisal"]
    assert figures["hindsight"] == found.hindsight
    assert figures["shuffled_sd"] is None
    assert main([*paths, "--sample-size", "9", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    sampled = appraise(X, tree, delta=0.05, n_shuffles=0, sample_size=9, random_state=1)
    assert f"beside it: no tree 0.0000, hindsight {sampled.hindsight:.4f}" in out
    assert all(sentence in out for sentence in sampled.sentences())


def test_every_score_says_which_delta_was_taken_and_warns_at_every_size(files, capsys, monkeypatch):
    X, tree, folder = files
    paths = ["score", str(folder / "x.npy"), str(folder / "tree.json")]
    tree, _ = misplaced(tree, 0, -1)  # a likelihood with a maximum
    (folder / "tree.json").write_text(tree.to_json(), encoding="utf-8")
    likely = calibrate_delta(X, tree).delta
    assert appraise(X, tree, n_shuffles=0).likely_delta == pytest.approx(likely, rel=1e-9)
    assert main(paths) == 0
    said = f"(the default, the paper's; the most likely one for where the items are is {likely:.3g})"
    assert f"delta 0.01 {said}" in capsys.readouterr().out
    monkeypatch.setattr("pomdp_hier.cli.score._CHEAP", 3)
    assert main([*paths, "--delta", "9"]) == 0
    out = capsys.readouterr().out
    assert "delta 9 (as given; the most likely" in out
    assert "stop at the root: the score is mostly that of not using the tree" in out
    assert "shuffled items" not in out
    assert main([*paths, "--delta", "9", "--shuffles", "0"]) == 0
    assert "stop at the root" not in capsys.readouterr().out


def test_wrong_usage(files, capsys):
    _, _, folder = files
    paths = [str(folder / "x.npy"), str(folder / "tree.json")]
    for arguments, said in [
        (["-o", str(folder / "out.pdf")], "ends in .html or .htm"),
        (["-o", "-"], "--out: got -"),
        (["-o", str(folder / "out.html"), "--n-moves", "-1"], "--n-moves: got -1;"),
        ([], "-o/--out"),
    ]:
        assert main(["report", *paths, *arguments]) == 2
        assert said in capsys.readouterr().err
    assert main(["report", *paths, "-o", str(folder / "none" / "out.html")]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert not list(folder.glob("*.part"))


def test_similarities_are_not_features_of_misfiled_items(files, capsys):
    X, _, folder = files
    np.save(folder / "s.npy", X @ X.T)
    arguments = ["report", str(folder / "s.npy"), str(folder / "tree.json"), "-o", str(folder / "s.html")]
    assert main([*arguments, "--similarity", "precomputed", "--shuffles", "0", "--n-moves", "0", "--quiet"]) == 0
    assert "Probably misfiled" not in (folder / "s.html").read_text(encoding="utf-8")


def test_edits_that_gain_together_in_place_of_moves(files, capsys):
    _, tree, folder = files
    broken, _ = misplaced(tree, 0, -1)
    (folder / "tree.json").write_text(broken.to_json(), encoding="utf-8")
    out = folder / "out.html"
    arguments = ["report", str(folder / "x.npy"), str(folder / "tree.json"), "-o", str(out), "--delta", "0.02"]
    assert main([*arguments, "--shuffles", "0", "--n-edits", "3", "--quiet"]) == 0
    page = out.read_text(encoding="utf-8")
    assert "<h2>What to change</h2>" in page
    assert "Moves that raise the score" not in page
    assert main([*arguments, "--force", "--n-edits", "3", "--n-moves", "2"]) == 2
    assert "--n-moves has no effect with --n-edits" in capsys.readouterr().err
