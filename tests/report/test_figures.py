"""Every figure is rendered, and what it shows is read back from its artists."""

import dataclasses
import io
import re

import matplotlib.image
import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

from pomdp_hier import POMDP, Belief
from pomdp_hier.analysis import delta_sweep
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.planning import AndOrTree, RandomPolicy, value_iteration
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.report import (
    draw_alpha_vectors,
    draw_and_or,
    draw_belief_simplex,
    draw_belief_trace,
    draw_experiment,
    draw_icicle,
    draw_policy_comparison,
    draw_score_curve,
    draw_value_density,
)
from pomdp_hier.report.elements import BLUE, GREY, ORANGE, figure_text
from pomdp_hier.report.score_plots import draw_level_success
from pomdp_hier.simulation import compare_policies
from tests.nasty_names import NASTY

TREE = Hierarchy.from_children([[0, 1], [2, 3, 4], [5, 6]], 5)


def pixels(ax):
    """The figure as it is saved, [height, width, 4] in 0 to 1."""
    buffer = io.BytesIO()
    ax.get_figure().savefig(buffer, format="png", dpi=60)
    buffer.seek(0)
    return matplotlib.image.imread(buffer)


def assert_something_is_drawn(ax):
    image = pixels(ax)
    assert (image[..., :3].std(axis=2) > 0.05).sum() > 20  # pixels of some colour, not only black text


def test_trace_stacks_each_belief_to_one():
    beliefs = [Belief({"l": 0.5, "r": 0.5}), Belief({"l": 0.9, "r": 0.1})]
    ax = draw_belief_trace(beliefs, labels=["start", "listen\nleft"])
    tops = {}
    for bar in ax.patches:
        tops[round(bar.get_x(), 6)] = max(tops.get(round(bar.get_x(), 6), 0), bar.get_y() + bar.get_height())
    assert list(tops.values()) == pytest.approx([1.0, 1.0])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["start", "listen\nleft"]
    assert_something_is_drawn(ax)
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    assert np.allclose(heights, [[0.5, 0.9], [0.5, 0.1]])
    assert len({bars[0].get_facecolor() for bars in ax.containers}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["r", "l"]  # as they are stacked


def test_a_trace_groups_unlikely_states():
    ax = draw_belief_trace([Belief(dict.fromkeys(range(10), 0.1))], most=3)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0] == "7 more states"
    assert len(names) == 4
    rest = ax.containers[-1][0]
    assert (rest.get_y(), rest.get_height()) == pytest.approx((0.3, 0.7))
    likely = draw_belief_trace([Belief({"a": 0.1, "b": 0.2, "c": 0.7})], most=2)
    assert [text.get_text() for text in likely.get_legend().get_texts()] == ["1 more state", "c", "b"]


@pytest.mark.parametrize(
    ("beliefs", "place"),
    [
        ([Belief({"a": 0.25, "b": 0.75})], (0.75, 0.0)),
        ([Belief.uniform("abc")], (0.5, np.sqrt(3) / 6)),
        ([Belief({"a": 0.5, "b": 0.5}), Belief({"c": 1.0})], (0.5, np.sqrt(3) / 2)),
    ],
)
def test_simplex_puts_beliefs_where_they_belong(beliefs, place):
    ax = draw_belief_simplex(beliefs)
    last = ax.collections[-1].get_offsets()[-1]
    assert tuple(last) == pytest.approx(place)
    assert_something_is_drawn(ax)


def test_simplex_joins_the_labels_of_a_belief_met_twice():
    ax = draw_belief_simplex(
        [Belief.uniform("ab"), Belief({"a": 1.0}), Belief.uniform("ab")], labels=["b0", "b1", "b2"]
    )
    texts = [text.get_text() for text in ax.texts]
    assert "b0, b2" in texts
    triangle = draw_belief_simplex([Belief.uniform("abc")])
    assert triangle.get_aspect() == 1
    grid = [
        line for line in triangle.get_lines() if len(line.get_xdata()) == 2
    ]  # each where one state's share is fixed
    shares = [0.25, 0.5, 0.75]
    assert sorted(line.get_ydata()[0] for line in grid if np.ptp(line.get_ydata()) < 1e-9) == pytest.approx(
        [(1 - share) * np.sqrt(3) / 2 for share in reversed(shares)]
    )
    assert len(grid) == 9
    as_dicts = draw_belief_simplex([{"a": 0.5, "b": 0.5}, {"a": 1.0}])
    assert as_dicts.collections[-1].get_offsets()[-1].tolist() == [0, 0]
    assert "b1" in texts
    corners = {text.get_text(): text.get_position()[0] for text in ax.texts if text.get_text() in ("a", "b")}
    assert corners == {"a": 0.0, "b": 1.0}
    assert sum(text.arrow_patch is not None for text in ax.texts if hasattr(text, "arrow_patch")) == 2


def test_simplex_refuses_four_states():
    with pytest.raises(ParameterError, match=r"got 4 states.*draw_belief_trace"):
        draw_belief_simplex([Belief.uniform("abcd")])
    with pytest.raises(ParameterError, match="got the state 'c'"):
        draw_belief_simplex([Belief.uniform("abc")], states=["a", "b"])


def test_alpha_vectors_show_their_envelope():
    ax = draw_alpha_vectors([[1, 0], [0, 1], [0.8, 0.8]], actions=["left", "right", "wait"], states=["l", "r"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["left", "wait", "right"]
    envelope = {}
    for line in ax.get_lines():
        if line.get_linewidth() > 2:
            envelope.update(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert all(value == pytest.approx(max(1 - p, p, 0.8)) for p, value in envelope.items())
    assert (min(envelope), max(envelope)) == (0, 1)
    assert ax.get_xlabel() == "probability of r"
    assert ax.get_legend().get_title().get_text() == "action"
    assert len({line.get_color() for line in ax.get_lines() if line.get_linewidth() > 2}) == 3
    pieces = {line.get_label(): line.get_xdata() for line in ax.get_lines() if line.get_linewidth() > 2}
    spans = {name: (xs[0], xs[-1]) for name, xs in pieces.items()}
    assert spans["left"] == pytest.approx((0, 0.2), abs=1e-3)
    assert spans["wait"] == pytest.approx((0.2, 0.8), abs=1e-3)
    assert spans["right"] == pytest.approx((0.8, 1), abs=1e-3)
    with pytest.raises(ParameterError, match=r"vectors: got 3 states.*2"):
        draw_alpha_vectors([[1, 2, 3]])


def test_density_names_the_means():
    ax = draw_value_density({"good": [0.52, 0.72], "bad": [-0.52, -0.72]})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["good (0.620)", "bad (-0.620)"]
    assert_something_is_drawn(ax)
    outline, filled = ax.patches[0].get_data(), ax.patches[1].get_data()
    assert outline.edges == pytest.approx(np.linspace(-1, 1, 41))
    assert outline.values.tolist() == filled.values.tolist()
    assert pytest.approx({k: v for k, v in enumerate(outline.values) if v}) == {30: 10.0, 34: 10.0}  # two of 40 bins
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx([0.62, -0.62, 0])
    with pytest.raises(ParameterError, match="values: got none"):
        draw_value_density({})


def test_level_success_adds_up():
    ax = draw_level_success([1.0, 0.7], [0.0, 0.3], [0.0, 0.0])
    assert max(bar.get_y() + bar.get_height() for bar in ax.patches) == pytest.approx(1.0)
    assert_something_is_drawn(ax)
    ax = draw_level_success([0.5, 0.3], [0.4, 0.5], [0.1, 0.2], levels=[2, 3])
    spans = {
        (round(bar.get_x() + bar.get_width() / 2), name): (round(bar.get_y(), 9), round(bar.get_height(), 9))
        for name, bars in zip(("stopped", "right", "lost"), ax.containers, strict=True)
        for bar in bars
    }
    assert spans == {
        (2, "stopped"): (0, 0.1), (2, "right"): (0.1, 0.5), (2, "lost"): (0.6, 0.4),
        (3, "stopped"): (0, 0.2), (3, "right"): (0.2, 0.3), (3, "lost"): (0.5, 0.5),
    }  # fmt: skip
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["stopped, item in reach", "on the right path", "lost"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()) == ("level", "share of searches", (0, 1))
    assert list(ax.get_xticks()) == [2, 3]
    with pytest.raises(ParameterError, match="list of 1 finite"):
        draw_level_success([1.0], [0.0, 0.3], [0.0])


def test_icicle_is_as_wide_as_its_items():
    values = np.linspace(-1, 1, TREE.n_nodes)
    ax = draw_icicle(TREE, values, names=[f"node {k}" for k in range(TREE.n_nodes)])
    boxes = [path.get_extents() for path in ax.collections[0].get_paths()]
    widths = sorted(round(box.width, 6) for box in boxes)
    assert widths == [0.4, 0.6, 1.0]
    corners = {(round(box.x0, 6), round(box.y0, 6), round(box.width, 6)) for box in boxes}
    left = TREE.starts / 5
    assert corners == {(round(left[k], 6), TREE.levels[k], round(TREE.sizes[k] / 5, 6)) for k in (5, 6, 7)}
    assert ax.collections[0].get_array().tolist() == values[5:].tolist()
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (2, 0))
    assert [(tick, label.get_text()) for tick, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)] == [
        (0.47, "0"), (1.47, "1"),
    ]  # fmt: skip
    chain = Hierarchy.from_children([[0, 1], *([k] for k in range(2, 20))], 2)
    deep = draw_icicle(chain, [0.0] * chain.n_nodes)
    assert [label.get_text() for label in deep.get_yticklabels()] == [str(k) for k in range(0, 19, 2)]
    assert ax.yaxis_inverted()
    assert "node 7" in [text.get_text() for text in ax.texts]
    assert_something_is_drawn(ax)
    with pytest.raises(ParameterError, match="expected 8 numbers"):
        draw_icicle(TREE, [0.0])


def test_policies_are_compared_with_the_first():
    policies = {"first": FirstAction(), "random": RandomPolicy(seed=1)}
    table = compare_policies(policies, tiger(), horizon=3, method="monte-carlo", n_episodes=200, mdp_value=False)
    ax = draw_policy_comparison(table)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "random"]
    assert ax.yaxis_inverted()
    assert any("baseline" in text.get_text() for text in ax.texts)
    for k, row in enumerate(table.rows):
        bar, mark = [line for line in ax.lines if line.get_ydata()[0] == k]
        assert tuple(bar.get_xdata()) == row.interval
        assert mark.get_xdata() == [row.value]
    assert_something_is_drawn(ax)


def test_marks_say_how_policies_compare():
    template = compare_policies({"first": FirstAction()}, tiger(), horizon=1)
    values = {"baseline": 0.0, "better": 1.0, "worse": -1.0, "same": 0.0, "inconclusive": 0.1}
    rows = tuple(
        dataclasses.replace(template.rows[0], name=name, value=value, interval=(value - 0.5, value + 0.5), verdict=name)
        for name, value in values.items()
    )
    ax = draw_policy_comparison(dataclasses.replace(template, rows=rows, mdp_value=2.0))
    marks = [line for line in ax.lines if len(line.get_xdata()) == 1]
    looks = [(m.get_marker(), m.get_color(), m.get_markerfacecolor() == m.get_color()) for m in marks]
    assert looks == [
        ("s", BLUE, True), ("^", BLUE, True), ("v", ORANGE, True), ("o", BLUE, False), ("o", GREY, False),
    ]  # fmt: skip
    assert [line.get_xdata() for line in ax.lines if line.get_linestyle() == "--"] == [[2.0, 2.0]]
    notes = [text.get_text() for text in ax.texts]
    assert notes == ["0  (baseline)", "1", "-1", "0  (same)", "0.1  (inconclusive)", "MDP value 2"]


def test_the_mdp_value_is_named_beside_no_other_text():
    policies = {"first": FirstAction(), "MDP value": RandomPolicy(seed=1), "third": RandomPolicy(seed=2)}
    ax = draw_policy_comparison(compare_policies(policies, tiger(), horizon=2))
    ax.get_figure().canvas.draw()
    label, *others = sorted(ax.texts, key=lambda text: not text.get_text().startswith("MDP value "))
    assert label.get_text().startswith("MDP value ")
    assert not any(label.get_window_extent().overlaps(other.get_window_extent()) for other in others)
    assert label.get_window_extent().y0 >= ax.get_window_extent().y1


def test_profile_marks_where_trees_change_places():
    shop = load_amazon12()
    trees = {name: shop.hierarchies[name] for name in "BC"}
    sweep = delta_sweep(shop.similarity, trees, [0.001, 0.0018, 0.0032], n_shuffles=2, similarity="precomputed")
    ax = draw_score_curve(sweep)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["B", "C"]
    assert len([text for text in ax.texts if "overtakes" in text.get_text()]) == len(sweep.flips) >= 1
    solid = next(line for line in ax.get_lines() if line.get_label() == "B")
    assert solid.get_ydata().tolist() == sweep.column("B", "score").tolist()
    assert (ax.get_ylim(), ax.get_xscale()) == ((-1, 1), "log")
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.get_lines())
    assert len({line.get_color() for line in ax.get_lines() if line.get_label() in ("B", "C")}) == 2
    drawn = {(line.get_linestyle(), tuple(line.get_ydata())) for line in ax.get_lines()}
    for tree in "BC":
        assert (":", tuple(sweep.column(tree, "hindsight"))) in drawn
        assert ("--", tuple(sweep.column(tree, "shuffled_mean"))) in drawn
    flip = sweep.flips[0]
    middle = [line.get_xdata()[0] for line in ax.get_lines() if len(set(line.get_xdata())) == 1]
    assert middle == pytest.approx([(flip.low * flip.high) ** 0.5 for flip in sweep.flips])
    at = list(sweep.deltas).index(flip.low)
    assert sweep.column(flip.before, "score")[at] > sweep.column(flip.after, "score")[at]
    assert sweep.column(flip.before, "score")[at + 1] < sweep.column(flip.after, "score")[at + 1]
    assert ax.texts[0].get_text() == f"{flip.after} overtakes {flip.before}"
    assert_something_is_drawn(ax)


def test_figures_use_the_given_axes():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert draw_value_density([0.1, 0.2], ax=ax) is ax


@pytest.mark.parametrize(
    ("draw", "given", "message"),
    [
        (draw_and_or, tiger(), r"got a POMDP"),
        (draw_belief_trace, tiger(), r"beliefs: got .*; expected a list"),
        (draw_belief_trace, Belief({"left": 1}), r"beliefs: got .*; expected a list"),
        (draw_belief_trace, [0.5, 0.5], r"beliefs: got .*; expected a list"),
        (draw_alpha_vectors, value_iteration(tiger(), horizon=1), r"vectors: got"),
        (draw_experiment, {"first": 1.0}, r"got a dict"),
        (draw_policy_comparison, {"first": 1.0}, r"got a dict"),
        (draw_score_curve, {"first": 1.0}, r"got a dict"),
        (draw_belief_simplex, Belief({"left": 1}), r"beliefs: got .*; expected a list"),
        (draw_belief_simplex, [], r"beliefs: got none"),
        (draw_value_density, "abc", r"values: got 'abc'"),
        (draw_value_density, [], r"list of one or more"),
        (draw_value_density, {}, r"values: got none"),
        (draw_value_density, [0.5, np.nan], r"one or more finite"),
        (lambda given: draw_value_density([[0.5], [0.6]], names=given), ["a"], r"names: got 1; expected 2"),
        (lambda given: draw_value_density([0.5], bins=given), 0, r"bins: got 0"),
        (lambda given: draw_level_success([1], [0], [0], levels=given), [1, 2], r"levels: got .* list of 1 finite"),
        (lambda given: draw_level_success(given, [0], [0]), ["x"], r"right: got"),
        (lambda given: draw_icicle(TREE, [0.0] * 8, low=given), 1.0, r"low, high: got 1.0 and 1.0"),
        (lambda given: draw_belief_trace([{"a": 1.0}], most=given), 0, r"most: got 0"),
        (lambda given: draw_belief_trace([{"a": 1.0}], labels=given), "x", r"labels: got 1"),
        (
            lambda given: draw_belief_simplex([{"a": 0.5, "b": 0.5}], labels=given),
            ["x", "y"],
            r"labels: got 2; expected 1",
        ),
        (lambda given: draw_alpha_vectors([[1, 0]], states=given), ["a"], r"states: got 1;"),
        (draw_alpha_vectors, [[1, np.inf]], r"vectors: got infinite"),
    ],
)
def test_errors_of_figures_name_alternatives(draw, given, message):
    with pytest.raises(ParameterError, match=message):
        draw(given)


@pytest.mark.slow
def test_every_figure_takes_every_name():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {NASTY[0]: 0.5, NASTY[7]: 0.5},
        reward=lambda s, a: float(len(str(a))),
        initial_belief={NASTY[4]: 0.5, NASTY[6]: 0.5},
        legal_actions=NASTY,
    )
    tree = Hierarchy.from_children(TREE.to_children(), 5, labels=[NASTY[k] for k in range(8)])
    shop = load_amazon12()
    trees = {NASTY[7]: shop.hierarchies["B"], NASTY[8]: shop.hierarchies["C"]}
    sweep = delta_sweep(shop.similarity, trees, [0.001, 0.0032], n_shuffles=0, similarity="precomputed")
    policies = {name: FirstAction() for name in NASTY}
    figures = [
        (draw_and_or(AndOrTree.build(problem, depth=1), full=True), NASTY),
        (draw_belief_trace([Belief.uniform(NASTY)], most=20), NASTY),
        (draw_belief_simplex([Belief.uniform(NASTY[5:8])]), NASTY[5:8]),
        (draw_alpha_vectors([[1, 0], [0, 1]], actions=NASTY[7:9], states=NASTY[3:5]), (*NASTY[7:9], NASTY[4])),
        (draw_value_density({name: [0.1, 0.2] for name in NASTY}), NASTY),
        (draw_icicle(tree, np.zeros(8)), NASTY[7:8]),
        (draw_policy_comparison(compare_policies(policies, tiger(), horizon=1)), NASTY),
        (draw_score_curve(sweep), NASTY[7:9]),
    ]
    for ax, names in figures:
        pixels(ax)  # a formula that cannot be read, or a character without a shape, is noticed when it is drawn
        texts = [text.get_text() for text in ax.get_figure().findobj(Text)]
        joined = ["".join(text.split()) for text in texts]  # lines may end within a long word
        for name in names:
            assert any("".join(figure_text(name).split()) in text for text in joined), (ax, name)
        assert not any(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", text) for text in texts)
        assert not any(is_math_text(text) for text in texts if "mathdefault" not in text)  # matplotlib's own ticks
