"""``pomdp-hier check``: files and hierarchies, sound and not."""

import numpy as np
import pytest

from pomdp_hier.cli import main
from pomdp_hier.hqs import model

TIGER = """
discount: 0.95
values: reward
states: left right
actions: listen open-left open-right
observations: hear-left hear-right
T: listen identity
T: open-left uniform
T: open-right uniform
O: listen
0.85 0.15
0.15 0.85
O: open-left uniform
O: open-right uniform
R: listen : * : * : * -1
R: open-left : left : * : * -100
R: open-left : right : * : * 10
R: open-right : left : * : * 10
R: open-right : right : * : * -100
"""


@pytest.fixture
def hierarchy(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(6, 3)))
    (tmp_path / "t.json").write_text("[[0,1,2],[3,4,5],[6,7]]", encoding="utf-8")
    return ["--hierarchy", str(tmp_path / "x.npy"), str(tmp_path / "t.json"), "--tree-format", "children"]


def test_a_sound_file(tmp_path, capsys):
    path = tmp_path / "tiger.pomdp"
    path.write_text(TIGER, encoding="utf-8")
    assert main(["check", str(path), "--depth", "3"]) == 0
    out = capsys.readouterr().out
    assert "2 states, 3 actions, 2 observations, discount 0.95\nno issues\n" in out
    assert "agree on 258 histories of up to 3 steps" in out
    assert main(["check", str(path), "--depth", "3", "--tolerance", "0"]) == 3
    out = capsys.readouterr().out
    assert "no issues\n" in out
    assert "The updaters DISAGREE" in out  # by rounding


def test_a_file_that_breaks_its_grammar_cannot_be_done(tmp_path, capsys):
    path = tmp_path / "tiger.pomdp"
    path.write_text(TIGER.replace("0.85 0.15", "0.85 0.25"), encoding="utf-8")
    assert main(["check", str(path)]) == 1
    assert "error: " in capsys.readouterr().err


def test_the_search_in_a_hierarchy(hierarchy, capsys):
    assert main(["check", *hierarchy, "--delta", "0.3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("6 of 6 items: closed form compared with Bayes' rule on ")
    assert "they agree" in out
    assert main(["check", *hierarchy, "--check-items", "2"]) == 0
    assert "2 of 6 items" in capsys.readouterr().out


def test_a_wrong_closed_form_is_a_failed_check(hierarchy, capsys, monkeypatch):
    monkeypatch.setattr(model, "_at", lambda node, b, right=model._at: right(node, b * b))
    assert main(["check", *hierarchy, "--delta", "5", "--check-items", "1"]) == 3
    out = capsys.readouterr().out
    assert "item 0:\nThe updaters DISAGREE" in out
    assert "first history:  descend" in out
    assert "CHECK FAILED" in out


@pytest.mark.parametrize("arguments", [[], ["a.pomdp", "--hierarchy", "x", "y"], ["a.pomdp", "--check-items", "0"]])
def test_wrong_usage(arguments, capsys):
    assert main(["check", *arguments]) == 2
    assert "error: " in capsys.readouterr().err
