"""Advice of the errors over drawings and pages is followed here: the same call with the advice taken works."""

from functools import cache

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief, Hierarchy, compare, diagnose, improve
from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.planning.and_or import AndOrTree
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.problems import tiger
from pomdp_hier.report import (
    draw_action_regions,
    draw_alpha_vectors,
    draw_and_or,
    draw_backups,
    draw_belief_simplex,
    draw_belief_trace,
    draw_value_density,
    write_comparison,
    write_report,
)

ABC, ABCD = [Belief.uniform("abc")], [Belief.uniform("abcd")]
X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
ONE = Hierarchy.from_children([[0, 1], [3, 2]], 3)
TWO = Hierarchy.from_children([[1, 2], [3, 0]], 3)


@cache
def drawings():
    """What is called; what is said; the same with the advice taken."""
    tree, solution = AndOrTree.build(tiger(), depth=2), value_iteration(tiger(), 1)
    return [
        (lambda: draw_belief_simplex(ABCD), "draw_belief_trace", lambda: draw_belief_trace(ABCD)),
        (lambda: draw_belief_simplex(ABCD, states="abc"), "draw_belief_trace", lambda: draw_belief_trace(ABCD)),
        (lambda: draw_belief_simplex(ABCD, states="abcd"), "draw_belief_trace", lambda: draw_belief_trace(ABCD)),
        (lambda: draw_belief_simplex(ABC, states="a"), "states=[...]", lambda: draw_belief_simplex(ABC, states="abc")),
        (lambda: draw_belief_simplex(ABC, states="ab"), "Add it", lambda: draw_belief_simplex(ABC, states="abc")),
        (lambda: draw_alpha_vectors("x"), "value_iteration(...)", lambda: draw_alpha_vectors(solution.vectors)),
        (lambda: draw_and_or(tree, full=True, limit=9), "Leave full out", lambda: draw_and_or(tree, limit=9)),
        (
            lambda: draw_and_or(tree, full=True, limit=9),
            f"limit={len(tree)}",
            lambda: draw_and_or(tree, full=True, limit=len(tree)),
        ),
        (
            lambda: draw_action_regions(solution, tiger(), states=["tiger-left"]),
            "Pass states=[...]",
            lambda: draw_action_regions(solution, tiger(), states=["tiger-left", "tiger-right"]),
        ),
        (
            lambda: draw_action_regions(solution, tiger(), states=["tiger-left"]),
            "between=[...] with beliefs",
            lambda: draw_action_regions(solution, tiger(), between=[{"tiger-left": 1}, [0.5, 0.5]]),
        ),
        (
            lambda: draw_action_regions(solution, tiger(), states=["tiger-left"], between=([1, 0], [0, 1])),
            "Leave states out",
            lambda: draw_action_regions(solution, tiger(), between=([1, 0], [0, 1])),
        ),
        (
            lambda: draw_action_regions(solution, tiger(), between=5),
            "Pass between=(belief, belief)",
            lambda: draw_action_regions(solution, tiger(), between=(Belief.certain("tiger-left"), [0.5, 0.5])),
        ),
        (
            lambda: draw_alpha_vectors(np.eye(3)),
            "Pass between=(belief, belief)",
            lambda: draw_alpha_vectors(np.eye(3), between=([1, 0, 0], [0, 1, 0])),
        ),
        (
            lambda: draw_backups(_three(), steps=[1]),
            "Pass between=(belief, belief)",
            lambda: draw_backups(_three(), steps=[1], between=([1, 0, 0], [0, 1, 0]))[0],
        ),
        *(
            (
                lambda wrong=wrong: draw_alpha_vectors(np.eye(2), ax=wrong),
                "Pass one of those that pyplot.subplots() returns",
                lambda figure=figure: draw_alpha_vectors(np.eye(2), ax=figure.subplots(2)[0]),
            )
            for figure in [pytest.importorskip("matplotlib.figure").Figure()]
            for wrong in (5, figure.subplots(2), figure.subplots(subplot_kw={"projection": "polar"}))
        ),
        (
            lambda: draw_alpha_vectors(np.eye(2), actions=["sing", "wait"], problem=tiger()),
            "Leave problem out for other names",
            lambda: draw_alpha_vectors(np.eye(2), actions=["sing", "wait"]),
        ),
        (
            lambda: draw_alpha_vectors(1e308 * np.eye(2)),
            "Write all values in a larger unit",
            lambda: draw_alpha_vectors(1e308 * np.eye(2) / 1e8),
        ),
        (
            lambda: draw_value_density({"a": [1e308, -1e308]}),
            "Write all values in a larger unit",
            lambda: draw_value_density({"a": [1.0, -1.0]}),
        ),
    ]


def _three():
    return value_iteration(POMDP.from_arrays(T=[np.eye(3)], Z=[np.ones((3, 1))], R=[[1.0, 2.0, 3.0]], discount=0.5), 1)


@pytest.mark.parametrize("row", range(20))
def test_advice_on_drawings_works(row):
    pytest.importorskip("matplotlib").use("agg")
    call, said, better = drawings()[row]
    with pytest.raises(ParameterError) as caught:
        call()
    assert said in str(caught.value)
    assert better().get_figure()


def test_actions_of_one_text_have_two_names_and_colours():
    ax = draw_alpha_vectors(np.eye(2), actions=[1, "1"])
    assert len({line.get_color() for line in ax.lines if line.get_label() in ("1", "1 (2)")}) == 2
    assert [text.get_text() for text in ax.get_legend().texts] == ["1", "1 (2)"]


def test_advice_on_pages_works(tmp_path):
    trees = {"one": ONE, "two": TWO}
    diagnoses = {name: diagnose(X, tree, delta=0.1) for name, tree in trees.items()}
    found = compare(X, trees, delta=0.1)
    path = tmp_path / "r.html"
    path.write_text("old")
    for call, said, better in (
        (
            lambda: write_comparison(trees, diagnoses),
            "Pass compare(X, trees)",
            lambda: write_comparison(compare(X, trees, delta=0.1), diagnoses),
        ),
        (
            lambda: write_comparison(compare(X, trees, delta=0.1, sample_size=2, random_state=0), diagnoses),
            "without sample_size",
            lambda: write_comparison(compare(X, trees, delta=0.1), diagnoses),
        ),
        (
            lambda: write_comparison(found, {name: diagnose(X, tree, delta=0.2) for name, tree in trees.items()}),
            "Pass the settings of compare to diagnose",
            lambda: write_comparison(found, {name: diagnose(X, tree, delta=0.1) for name, tree in trees.items()}),
        ),
        (
            lambda: write_report(diagnoses["two"], improvement=improve(X, ONE, delta=0.1)),
            "Call improve with the same tree",
            lambda: write_report(diagnoses["two"], improvement=improve(X, TWO, delta=0.1)),
        ),
        (
            lambda: write_report(diagnoses["one"], path),
            "replace=True",
            lambda: write_report(diagnoses["one"], path, replace=True),
        ),
    ):
        with pytest.raises(PomdpHierError) as caught:
            call()
        assert said in str(caught.value)
        assert better().startswith("<!doctype html>")
