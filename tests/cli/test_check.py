"""``pomdp-hier check``: files and hierarchies, sound and not."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import BayesUpdater
from pomdp_hier.beliefs import assert_updaters_agree
from pomdp_hier.cli import main, models
from pomdp_hier.hqs import generic, model
from pomdp_hier.hqs.generic import closed_form_gap

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


def test_a_large_hierarchy_has_all_histories_of_some_items(hierarchy, capsys, monkeypatch):
    monkeypatch.setattr(models, "_HISTORIES", 0)
    assert main(["check", *hierarchy, "--delta", "0.3"]) == 0
    assert capsys.readouterr().out.startswith("4 of 6 items: closed form compared with Bayes' rule on ")
    assert main(["check", *hierarchy, "--delta", "0.3", "--check-items", "6"]) == 0
    assert capsys.readouterr().out.startswith("6 of 6 items: ")


@pytest.mark.parametrize("name", ["closed_form", "step_from_path"])
def test_on_arrays_a_wrong_number_at_one_child_is_found(name, hierarchy, capsys, monkeypatch):
    right = getattr(generic, name)
    seen = []

    def wrong(eta, *b):
        found = right(eta, *b)
        seen.append(eta)
        if len(seen) != 2:  # the second item
            return found
        first = np.arange(len(eta)) == 0
        return np.where(first, 0.9, 1) * found if b else (np.where(first, 0.9, 1) * found[0], found[1])

    monkeypatch.setattr(models, "_HISTORIES", 0)
    monkeypatch.setattr(generic, name, wrong)
    assert main(["check", *hierarchy, "--delta", "0.3"]) == 3
    out = capsys.readouterr().out
    assert "item 1: the closed form on arrays differs by 0" in out
    assert "CHECK FAILED" in out


def test_on_arrays_the_closed_form_is_bayes_rule_in_fractions():
    eta = {0: {1: Fraction(3, 4), 2: Fraction(1, 4)}, 1: {3: Fraction(1, 8), 4: Fraction(7, 8)}, 4: {5: 1, 6: 0}}
    problem = model.search_problem_from_guidance(eta, dict.fromkeys(range(7), 0))
    assert_updaters_agree(BayesUpdater(problem), model.ClosedFormUpdater(problem), problem, depth=4)
    assert closed_form_gap({node: {c: float(p) for c, p in row.items()} for node, row in eta.items()}) < 1e-15
    assert np.isnan(closed_form_gap({0: {1: 0.5, 2: np.nan}}))


def test_a_model_with_issues_is_reported_before_its_updates_fail(hierarchy, capsys, monkeypatch):
    monkeypatch.setattr(model._Legal, "__call__", lambda self, state: model._BOTH)
    assert main(["check", *hierarchy, "--check-items", "1"]) == 3
    out = capsys.readouterr().out
    assert "model-error: transition from " in out
    assert "CHECK FAILED" in out


@pytest.mark.parametrize("arguments", [[], ["a.pomdp", "--hierarchy", "x", "y"], ["a.pomdp", "--check-items", "0"]])
def test_wrong_usage(arguments, capsys):
    assert main(["check", *arguments]) == 2
    assert "error: " in capsys.readouterr().err
