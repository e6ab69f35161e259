"""The figure of an AND-OR tree: what is on it, that nothing overlaps, that a large tree is collapsed."""

import sys
from collections import Counter

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pomdp_hier import POMDP
from pomdp_hier.errors import MissingExtraError, ParameterError
from pomdp_hier.planning import AndOrTree
from pomdp_hier.report.elements import ORANGE
from pomdp_hier.report.plan_plots import draw_and_or
from tests.pomdp_models import grid, three_node, tiger


def words_of(ax):
    return [text.get_text() for text in ax.texts]


def assert_apart(ax):
    """No two texts lie on one another, and all are inside the figure."""
    figure = ax.get_figure()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in ax.texts]
    for i, (first, one) in enumerate(boxes):
        assert one.x0 >= 0
        assert one.x1 <= figure.bbox.width
        for second, other in boxes[i + 1 :]:
            across = min(one.x1, other.x1) - max(one.x0, other.x0)
            down = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert across <= 0 or down <= 3, f"{first!r} and {second!r} overlap"


@pytest.mark.parametrize(
    "tree",
    [
        AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6, 0.9), depth=2, illegal=True),
        AndOrTree.build(tiger(), depth=3, prune=True),
        AndOrTree.build(grid(5, 5), depth=2),
        AndOrTree.build(
            POMDP.from_arrays(T=[np.eye(3)], Z=[np.eye(3)], R=[[1, 0, 0]], states=["as good as new", "worn", "broken"]),
            depth=1,
        ),
    ],
    ids=["three-node", "pruned", "collapsed", "key wider than the tree"],
)
def test_texts_stand_apart(tree):
    assert_apart(draw_and_or(tree))


def test_labels_and_titles():
    ax = draw_and_or(AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6, 0.9), depth=2), title="Three nodes")
    texts = words_of(ax)
    assert "Three nodes   (13 nodes)" in texts
    assert "search ★" in texts
    assert "descend" in texts
    assert "R −0.01" in texts
    assert "o=c1 0.70" in texts
    assert "best plan ★" in texts
    assert "Q −0.21" in texts
    assert texts.index("descend") < texts.index("search ★")  # the problem's order


def test_only_the_reachable_plan_is_highlighted():
    tree = AndOrTree.build(tiger(), depth=2)
    ax = draw_and_or(tree)
    thick = [line for line in ax.lines if line.get_linewidth() > 1 and len(line.get_xdata()) == 3]
    assert len(thick) == 1 + 2 + 2 + 4
    assert sum("★" in text for text in words_of(ax)) == 3 + 1


def test_symbols_and_widths_tell_the_plan():
    tree = AndOrTree.build(tiger(), depth=2)
    ax = draw_and_or(tree)
    symbols = [line for line in ax.lines if len(line.get_xdata()) == 1]
    marks = [(symbol.get_marker(), symbol.get_markerfacecolor() != "white") for symbol in symbols]
    expected = {(">", True): 1 + 2 + 4, ("o", True): 1 + 2}
    # One triangle and one circle more stand in the key.
    expected |= {(">", False): len(tree.or_nodes) - 7 + 1, ("o", False): len(tree.and_nodes) - 3 + 1}
    assert Counter(marks) == expected
    arcs = [line for line in ax.lines if len(line.get_xdata()) == 3 and line.get_color() == ORANGE]
    widths = sorted(arc.get_linewidth() for arc in arcs)
    chances = [0.5, 0.5, 1, 1, 1, *2 * [0.745, 0.255]]  # of what is heard on the plan; actions are certain
    assert widths == pytest.approx(sorted(1.4 + 1.8 * p for p in chances))
    assert [line.get_color() for line in ax.lines if len(line.get_xdata()) == 2] == [ORANGE]


def test_ties_are_starred_and_a_plan_is_drawn_below_each():
    ax = draw_and_or(AndOrTree.build(three_node(1.0, 0.5, 0.5, 0.1), depth=2))
    assert {"search ★", "descend ★"} <= set(words_of(ax))
    assert len([line for line in ax.lines if line.get_linewidth() > 1 and len(line.get_xdata()) == 3]) == 2 + 2 + 1 + 1


def test_a_large_tree_is_collapsed_and_a_full_drawing_refused():
    tree = AndOrTree.build(grid(5, 5), depth=2)
    texts = words_of(draw_and_or(tree))
    assert texts.count("AND-OR tree, 61 of 781 shown") == 1
    assert sum("155 hidden" in text for text in texts) == 4
    with pytest.raises(ParameterError, match=r"full: got a tree of 781 nodes.*limit=781"):
        draw_and_or(tree, full=True)
    small = AndOrTree.build(grid(3, 2), depth=2)
    assert f"AND-OR tree, {len(small)} nodes" in words_of(draw_and_or(small, full=True))
    assert "AND-OR tree, 16 of 64 shown" in words_of(draw_and_or(small, full=False))


def test_pruned_and_illegal_actions():
    pruned = words_of(draw_and_or(AndOrTree.build(tiger(), depth=2, prune=True)))
    assert any(text.startswith("open-left   pruned, Q ≤ ") for text in pruned)
    assert "not expanded" in pruned
    illegal = words_of(draw_and_or(AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6), depth=2, illegal=True)))
    assert "descend   illegal" in illegal


def test_formulas():
    sympy = pytest.importorskip("sympy")
    b, eta, r0, r1, r2 = sympy.symbols("b eta r_0 r_1 r_2", positive=True)
    ax = draw_and_or(AndOrTree.build(three_node(eta, r0, r1, r2, b), depth=2))
    assert r"Q $b \left(r_{0} + 1\right) - 1$" in words_of(ax)
    assert "best plan ★" not in words_of(ax)
    assert_apart(ax)


def test_given_axes_shrink_the_text():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3))
    ax = figure.subplots()
    assert draw_and_or(AndOrTree.build(tiger(), depth=2), ax) is ax
    assert max(text.get_fontsize() for text in ax.texts) < 5
    assert figure.get_size_inches().tolist() == [4, 3]


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pomdp-hier\[plot\]"):
        draw_and_or(AndOrTree.build(tiger(), depth=1))
