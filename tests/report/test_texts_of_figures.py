"""The texts of figures with long names: none covers another, none is cut off, and colours and labels mean one thing."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.analysis import delta_sweep, score_by_levels
from pomdp_hier.analysis.settings_sweep import Flip
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.planning import AlphaVectorPolicy, value_iteration
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import compare_policies, run_experiment

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from pomdp_hier.report import (
    draw_action_regions,
    draw_alpha_vectors,
    draw_backups,
    draw_belief_simplex,
    draw_belief_trace,
    draw_experiment,
    draw_icicle,
    draw_policy_comparison,
    draw_score_curve,
)
from pomdp_hier.report.elements import search_colours, spread, text_width, wrapped
from pomdp_hier.report.score_plots import _ink_on

STATES = ("all bearings intact", "slight wear of the shaft", "coolant pump leaking", "gearbox overheated", "standstill")
ACTIONS = ("continue the production run", "inspect the cutting head", "replace the coolant pump", "order a gearbox")


def machine(n_states, rewards):
    """States that stay as they are, with ``rewards [A, S]`` and nothing observed."""
    rewards = np.asarray(rewards, dtype=float)
    T = np.broadcast_to(np.eye(n_states), (len(rewards), n_states, n_states))
    Z = np.ones((len(rewards), n_states, 1))
    return POMDP.from_arrays(T, Z, rewards, states=STATES[:n_states], actions=ACTIONS[: len(rewards)], discount=0.5)


TWO = [[4, -5], [3, 0], [0, 3], [-5, 4]]
THREE = [[4, -4, -4], [-4, 4, -4], [0.2, 0.2, -9], [-4, -4, 4]]  # the third is best on a short piece of one side
FIVE = [[4, -4, -4, 0, 1], [-4, 4, -4, 1, 2], [-4, -4, 4, 2, 1]]
ENDS = {STATES[0]: 1}, {STATES[2]: 0.5, STATES[3]: 0.25, STATES[4]: 0.25}, {STATES[1]: 1}


@cache
def plan(rewards, horizon=1):
    """The problem of a table of rewards, and its plan."""
    table = {"two": TWO, "three": THREE, "five": FIVE}[rewards]
    problem = machine(len(table[0]), table)
    return problem, value_iteration(problem, horizon)


def vectors(**options):
    problem, found = plan("five")
    return draw_alpha_vectors(found.vectors, actions=found.actions, states=problem.states, between=ENDS[:2], **options)


def regions(name, **options):
    problem, found = plan(name)
    return draw_action_regions(found, problem, **options)


def close_band():
    borders = np.array([0.5, 0.51, 0.52])
    lines = [(0.0, 0.0)]
    for k, x in enumerate(borders):  # each line crosses the one before at x
        start, end = lines[-1]
        lines.append((start - (k + 1) * x, end + (k + 1) * (1 - x)))
    problem = machine(2, TWO)
    return draw_action_regions(AlphaVectorPolicy(np.array(lines), np.arange(4)), problem)


def trace():
    steps = [Belief.uniform(STATES), *(Belief({s: 0.9, STATES[-1]: 0.1}) for s in STATES[:4])]
    return draw_belief_trace(steps, labels=[f"{a} / no part was produced" for a in (*ACTIONS, "wait")])


LINE_PATH = [Belief({"left": 1 - p, "right": p}) for p in (0.5, 0.15, 0.03, 0.15, 0.03, 0.0055)]


def path_on_a_line():
    return draw_belief_simplex(LINE_PATH, labels=["start", *["listen / hear-left"] * 5])


def path_in_a_triangle():
    shares = [(1, 1, 1), (2, 8, 1), (3, 9, 1), (2.5, 9, 1), (2, 9, 1.5)]
    beliefs = [Belief.normalized(dict(zip(STATES[:3], share, strict=True))) for share in shares]
    return draw_belief_simplex(beliefs, labels=["start", *["inspect / nothing was found"] * 4])


def sweep():
    rng = np.random.default_rng(0)
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    trees = {"Ward's linkage": tree, "average linkage": tree, "single linkage": tree}
    found = delta_sweep(rng.random((4, 3)), trees, [0.01, 0.1, 1], n_shuffles=0)
    return draw_score_curve(replace(found, flips=tuple(Flip(0.1, 1.0, a, b) for a, b in combinations(trees, 2))))


def experiment():
    problem = "the tiger problem of Kaelbling, Littman and Cassandra (1998)"
    policies = {"first": FirstAction(), "always the first of the legal actions": FirstAction()}
    return draw_experiment(run_experiment({problem: tiger()}, policies, horizon=2, bounds=1.0))


def comparison():
    policies = {"the first of all legal actions": FirstAction(), "the first action": FirstAction()}
    return draw_policy_comparison(compare_policies(policies, tiger(), horizon=2))  # the MDP value is far to the right


def backups():
    return draw_backups(plan("two", 2)[1])


FIGURES = {
    "vectors": vectors,
    "backups": backups,
    "backups between": lambda: draw_backups(plan("five", 2)[1], between=ENDS[:2]),
    "band": lambda: regions("two"),
    "band between": lambda: regions("five", between=ENDS[:2]),
    "close band": close_band,
    "triangle": lambda: regions("three"),
    "triangle between": lambda: regions("five", between=ENDS),
    "trace": trace,
    "line": path_on_a_line,
    "path": path_in_a_triangle,
    "sweep": sweep,
    "experiment": experiment,
    "comparison": comparison,
}


@cache
def figure_of(draw):
    """The figure that a function draws and its axes, after its layout was computed."""
    drawn = draw()
    axes = drawn if isinstance(drawn, list) else [drawn]
    axes[0].get_figure().draw_without_rendering()
    return axes[0].get_figure(), axes


def texts_of(figure, axes):
    """Every text with its box in pixels, a little smaller than it is; a rotated text has its baseline's box."""
    found = []
    for ax in axes:
        found += [*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
        for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
            if ax.axison:
                found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    for legend in [*filter(None, (ax.get_legend() for ax in axes)), *figure.legends]:
        found += [*legend.get_texts(), legend.get_title()]
    shown = [text for text in found if text.get_visible() and text.get_text()]
    return [(text, text.get_window_extent().padded(-1)) for text in shown]


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_covers_another_or_is_cut_off_or_small(name):
    figure, axes = figure_of(FIGURES[name])
    texts = texts_of(figure, axes)
    width, height = figure.bbox.size
    for (one, box), (other, second) in combinations(texts, 2):
        slanted = one.get_rotation() == other.get_rotation() == 35  # their boxes overlap, and they do not
        assert slanted or not box.overlaps(second), (one.get_text(), other.get_text())
    for text, box in texts:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
        assert text.get_fontsize() * min(1, 13.33 * figure.dpi / width) >= 6.9, "points on a slide"
    for ax in axes:
        legend = ax.get_legend()
        assert legend is None or not legend.get_window_extent().overlaps(ax.bbox)


def test_slanted_labels_are_as_far_apart_as_they_are_high():
    figure, (ax,) = figure_of(close_band)
    assert [text.get_text() for text in ax.texts] == ["0.5000", "0.5100", "0.5200"]
    places = [text.get_transform().transform(text.get_position())[0] for text in ax.texts]
    assert np.diff(places).min() * np.sin(np.radians(35)) > 8 * figure.dpi / 72


def test_backups_and_regions_give_an_action_one_colour():
    problem, found = plan("two", 2)
    figure, panels = figure_of(backups)
    seen = {}
    for ax in panels:
        for line in ax.lines:
            if line.get_linewidth() > 2 and not line.get_label().startswith("_"):
                seen.setdefault(line.get_label(), set()).add(line.get_color())
    assert all(len(colours) == 1 for colours in seen.values())
    (legend,) = figure.legends
    named = {t.get_text(): h.get_color() for t, h in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    assert {name: {colour} for name, colour in named.items()} == seen
    # Two steps to go have other actions on the line than one, which made the colours of a panel its own.
    regions = draw_action_regions(found, problem)
    for area in regions.collections:
        assert tuple(area.get_facecolor()[0][:3]) == pytest.approx(matplotlib_rgb(named[area.get_label()]))


def test_vectors_of_a_problem_have_the_colours_of_its_regions_and_its_names():
    problem, found = plan("two", 2)
    ax = draw_alpha_vectors(found.vectors, actions=found.actions, problem=problem)
    assert ax.get_xlabel() == f"probability of {STATES[1]}"
    lines = {line.get_label(): line.get_color() for line in ax.lines if line.get_linewidth() > 2}
    areas = {area.get_label(): tuple(area.get_facecolor()[0][:3]) for area in regions("two").collections}
    shared = [name for name in ACTIONS if name in lines and name in areas]
    assert len(shared) > 2
    for name in shared:
        assert areas[name] == pytest.approx(matplotlib_rgb(lines[name]))
    named = draw_alpha_vectors(found.vectors, actions=found.actions, states=["left", "right"], problem=problem)
    assert named.get_xlabel() == "probability of right"
    unnamed = draw_alpha_vectors(found.vectors, problem=problem)
    assert unnamed.get_legend().get_title().get_text() == ""
    with pytest.raises(ParameterError, match=r"^actions: got 'sleep'; expected actions of the problem"):
        draw_alpha_vectors([[1, 0]], actions=["sleep"], problem=problem)
    with pytest.raises(ModelError, match=r"^draw_alpha_vectors|problem"):
        draw_alpha_vectors([[1, 0]], problem=found)


def matplotlib_rgb(colour):
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def test_a_label_of_a_trace_is_below_its_bar():
    _, (ax,) = figure_of(trace)
    step = np.diff(ax.transData.transform([(0, 0), (1, 0)])[:, 0])[0]
    for k, label in enumerate(ax.get_xticklabels()):
        box, middle = label.get_window_extent(), ax.transData.transform((k, 0))[0]
        assert abs(box.x0 + box.x1 - 2 * middle) < 4
        assert box.width < step
    many = draw_belief_trace([Belief.uniform("ab")] * 30, labels=["listen / hear-left"] * 30)
    assert {label.get_rotation() for label in many.get_xticklabels()} == {90}


@pytest.mark.parametrize("draw", [path_on_a_line, path_in_a_triangle])
def test_labels_of_close_beliefs_are_numbers_with_a_key(draw):
    _, (ax,) = figure_of(draw)
    texts = {text.get_text() for text in ax.texts}
    assert any(text.startswith("0  start\n1  ") for text in texts)
    points = np.concatenate([c.get_offsets() for c in ax.collections])
    for text in ax.texts:
        if text.get_text()[:1].isdigit() and "." not in text.get_text():
            assert not any(text.get_window_extent().contains(*ax.transData.transform(point)) for point in points)


def test_a_figure_of_the_callers_keeps_its_legend_inside():
    _, (ax,) = figure_of(lambda: vectors(ax=Figure().subplots()))
    box = ax.get_legend().get_window_extent()
    assert box.x1 <= ax.bbox.x1
    assert box.y0 >= ax.bbox.y0


def test_a_key_of_numbers_leaves_the_size_of_a_callers_figure():
    figure = Figure(figsize=(5, 2), layout="constrained")
    ax = draw_belief_simplex(LINE_PATH, labels=[f"listen / hear-left ({k})" for k in range(6)], ax=figure.subplots())
    assert any(text.get_text().startswith("0  listen") for text in ax.texts)
    assert tuple(figure.get_size_inches()) == (5, 2)


def test_names_in_an_icicle_contrast_with_their_node_and_say_something():
    labels = [f"item {k}" for k in range(40)]
    paths = {labels[k]: ("digits with a loop" if k < 38 else "digits of straight strokes",) for k in range(40)}
    tree = Hierarchy.from_paths(paths)
    ax = draw_icicle(tree, np.linspace(-0.8, 0.8, tree.n_nodes))
    assert {text.get_text() for text in ax.texts} == {"(root)", "digits with a loop"}, "no cell says 'dig…'"

    def light(colour):  # relative luminance, WCAG 2
        parts = np.array(matplotlib_rgb(colour))
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    for back in search_colours()(np.linspace(0, 1, 41)):
        low, high = sorted((light(back[:3]), light(_ink_on(back))))
        assert (high + 0.05) / (low + 0.05) > 4, back


def test_bars_of_levels_are_named():
    rng = np.random.default_rng(0)
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    ax = draw_score_curve(score_by_levels(rng.random((4, 3)), tree))
    assert "interval of the difference to the whole tree" in ax.get_ylabel()
    assert "3 clusters" in [text.get_text() for text in ax.texts]


def test_every_border_has_its_line_and_pale_lines_have_an_outline():
    rows = [[(k / 20) ** 2 - (k / 10) * (k / 20), (k / 20) ** 2 + (k / 10) * (1 - k / 20)] for k in range(21)]
    ax = draw_alpha_vectors(-np.array(rows) * -1)
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert len(dotted) == len([line for line in ax.lines if line.get_linewidth() > 2]) - 1 > 12
    assert all(line.get_path_effects() for line in ax.lines if line.get_linewidth() > 2)


def test_lines_of_wrapped_text_are_no_wider_than_asked_and_keep_every_letter():
    text = "call the maintenance team / part_slightly_oversized, incomprehensibilities -1"
    for width in (30.0, 60.0, 90.0, 400.0):
        lines = wrapped(text, width, 9.0, 100).split("\n")
        assert all(text_width(line, 9.0) <= width for line in lines)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrapped("$x$ and $y$", 1000.0, 9.0) == r"\$x\$ and \$y\$"
    assert wrapped("", 50.0, 9.0) == '""'


@pytest.mark.parametrize("seed", range(5))
def test_spread_places_are_apart_within_limits_and_moved_least(seed):
    from scipy.optimize import minimize

    places = np.sort(np.random.default_rng(seed).random(5))
    moved = np.array(spread(places, 0.15, (0.05, 0.95)))
    assert np.diff(moved).min() > 0.15 - 1e-9
    assert moved[0] >= 0.05
    assert moved[-1] <= 0.95
    apart = {"type": "ineq", "fun": lambda x: np.diff(x) - 0.15}
    best = minimize(lambda x: ((x - places) ** 2).sum(), moved, bounds=[(0.05, 0.95)] * 5, constraints=apart)
    assert ((moved - places) ** 2).sum() <= best.fun + 1e-6
