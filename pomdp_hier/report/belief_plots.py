"""Figures of beliefs: over an episode, in the simplex, and with the values above them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import Floats, as_floats, check_integer, check_kind, unexpected
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.arrays import is_row
from pomdp_hier.planning.alpha_vectors import envelope
from pomdp_hier.planning.value_iteration import FiniteHorizonSolution
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.report.action_regions import action_looks, corner_beliefs, line_label
from pomdp_hier.report.elements import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    TRIANGLE,
    axes_size,
    draw_triangle,
    figure_text,
    figure_texts,
    legend_beside,
    legend_inches,
    new_axes,
    require_axis_range,
    spread,
    text_width,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_belief_trace(
    beliefs: Sequence[Belief],
    *,
    labels: Sequence[str] | None = None,
    states: Sequence[Any] | None = None,
    most: int = 7,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the beliefs of an episode, one stacked bar per step with one band per state.

    Args:
        beliefs: The beliefs ``b_0, b_1, …`` of the run.
        labels: What led to each (``"listen / hear-left"``), written below the bars, in several lines where it has
            line breaks; ``None`` numbers the steps.
        states: The states from the bottom up; by default those of the beliefs in the order in which they appear.
        most: How many states get a band of their own; the least likely of the others are gathered in one grey band.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The list is empty, or the number of labels differs as the beliefs.
        ModelError: An element is not a belief.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_belief_trace([Belief({"left": 0.5, "right": 0.5}), Belief({"left": 0.85, "right": 0.15})])
        >>> ax.get_ylabel()
        'probability'
    """
    beliefs = _sequence(beliefs, labels)
    check_integer("most", most, 1)
    order = list(dict.fromkeys(states if states is not None else [s for b in beliefs for s in b]))
    weight = {s: max(float(b[s]) for b in beliefs) for s in order}
    shown = set(sorted(order, key=lambda s: -weight[s])[:most])
    bands = [s for s in order if s in shown]
    others = counted(len(order) - len(bands), "more state")
    step = min(0.9 if labels is None else 1.1, 14 / len(beliefs))
    beside = legend_inches([*map(figure_text, bands), others])
    ax = new_axes(ax, width=max(3.4, step * len(beliefs) + 0.6) + beside, height=3.4)
    positions = np.arange(len(beliefs))
    bottom = np.zeros(len(beliefs))
    look: dict[str, Any] = {"width": 0.82, "edgecolor": "white"}
    for k, state in enumerate(bands):
        heights = np.array([float(b[state]) for b in beliefs])
        ax.bar(positions, heights, bottom=bottom, color=CYCLE[k % len(CYCLE)], label=figure_text(state), **look)
        bottom += heights
    rest = np.array([math.fsum(float(p) for _, p in b.items()) for b in beliefs]) - bottom
    if len(order) > len(bands):
        ax.bar(positions, np.maximum(rest, 0), bottom=bottom, color="#dddddd", hatch="///", label=others, **look)
    ax.set(ylim=(0, 1), ylabel="probability", xlabel="step" if labels is None else "")
    ax.set_xticks(positions, list(map(str, positions)))
    if labels is not None:
        room = 0.85 * axes_size(ax, step * 72 * len(beliefs))[0] / len(beliefs)
        upright = room > 40  # else a label would have a line for each syllable
        width = room if upright else 120
        lines = [str(label).split("\n") for label in labels]  # a label may have several
        ax.set_xticklabels("\n".join(wrapped(line, width, 8.5, 120) for line in label) for label in lines)
        ax.tick_params(axis="x", labelsize=8.5, rotation=0 if upright else 90)
    handles, names = ax.get_legend_handles_labels()
    legend_beside(ax, handles=handles[::-1], labels=names[::-1])
    return ax


def draw_belief_simplex(
    beliefs: Sequence[Belief],
    *,
    states: Sequence[Any] | None = None,
    labels: Sequence[str] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw beliefs over two states on a line, over three in a triangle, connected in order.

    Args:
        beliefs: The beliefs, each over the same two or three states.
        states: The two or three states, from left to right (and up); found from the beliefs by default.
        labels: A text beside each belief. Where they would overlap, beliefs are numbered from 0 and the texts listed.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The beliefs are over fewer than two or more than three states, or there is not one label per
            belief.
        ModelError: An element is not a belief.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_belief_simplex([Belief.uniform("abc"), Belief({"a": 0.8, "b": 0.1, "c": 0.1})])
        >>> len(ax.texts) >= 3
        True
    """
    beliefs = _sequence(beliefs, labels)
    believed = list(dict.fromkeys(s for b in beliefs for s in b))
    corners = believed if states is None else list(dict.fromkeys(states))
    expected = "expected 2 for a line or 3 for a triangle."
    if len(believed) > 3:
        raise ParameterError(
            f"beliefs: got {len(believed)} states; {expected} Draw them with draw_belief_trace, which takes any number."
        )
    if len(corners) not in (2, 3):
        raise ParameterError(
            f"states: got {counted(len(corners), 'state')}; {expected} Give states=[...], with every state of the "
            "beliefs."
        )
    stray = next((s for b in beliefs for s in b if s not in corners), None)
    if stray is not None:
        raise ParameterError(f"beliefs: got the state {brief(stray)}; expected {listed(corners)}. Add it to states.")
    own_figure = ax is None
    ax = new_axes(ax, width=5.6, height=1.9 if len(corners) == 2 else 4.8)
    if len(corners) == 2:
        frame = TRIANGLE[:2]
        ax.set(xlim=(-0.08, 1.08), ylim=(-0.35, 0.35))
        ax.set_axis_off()
        ax.plot(frame[:, 0], frame[:, 1], color=INK, lw=1.2)
        for tick in np.linspace(0, 1, 11):
            ax.plot([tick, tick], [-0.02, 0.02], color=GREY, lw=1)
            ax.text(tick, -0.06, f"{tick:z.1f}", ha="center", va="top", fontsize=8, color=INK)
        for x, name in enumerate(corners):
            ax.text(x, -0.24, wrapped(name, 150, 10.0), ha="center", va="top", color=INK)
    else:
        frame = TRIANGLE
        draw_triangle(ax, corners, INK)
        for share in (0.25, 0.5, 0.75):
            for k in range(3):
                ends = np.array([(1 - share) * frame[k] + share * frame[j] for j in range(3) if j != k])
                ax.plot(ends[:, 0], ends[:, 1], color="#e3e6e9", lw=0.8, zorder=0)
    points = np.array([[float(b[s]) for s in corners] for b in beliefs]) @ frame
    _draw_path(ax, points, labels, flat=len(corners) == 2, own_figure=own_figure)
    return ax


def _draw_path(ax: "Axes", points: Any, labels: Sequence[str] | None, *, flat: bool, own_figure: bool) -> None:
    """Draw the points connected by arrows, the last one filled; on a line the arrows are arcs."""
    bend = -0.35 if flat else 0.08
    arrows = [(start, end) for start, end in pairwise(points) if not np.allclose(start, end)]
    for start, end in arrows:
        style = {"arrowstyle": "-|>", "color": BLUE, "lw": 1.3, "shrinkA": 4, "shrinkB": 4}
        style["connectionstyle"] = f"arc3,rad={bend}"
        ax.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=style)
    ax.scatter(points[:-1, 0], points[:-1, 1], s=34, facecolor="white", edgecolor=BLUE, zorder=3)
    ax.scatter(points[-1:, 0], points[-1:, 1], s=52, color=ORANGE, marker="D", zorder=4)
    if labels is None:
        return
    met: dict[tuple[float, float], list[int]] = {}  # beliefs that were met twice share one label
    for k, point in enumerate(points):
        met.setdefault((round(float(point[0]), 9), round(float(point[1]), 9)), []).append(k)
    names = [figure_text(label) for label in labels]
    words = [", ".join(names[k] for k in steps) for steps in met.values()]
    found = _apart(ax, list(met), words, arrows, bend, _AROUND[:8])  # farther away, it could be another's label
    if found is None:  # numbers, and the labels beside
        key = [f"{k}  {name}" for k, name in enumerate(names) if name != str(k)]
        if own_figure and key:
            figure: Any = ax.get_figure()
            width, height = figure.get_size_inches()
            figure.set_size_inches(width + legend_inches(key), max(height, 0.3 + 0.15 * len(key)))
        ax.annotate("\n".join(key), (1, 1), xytext=(14, 0), xycoords="axes fraction", textcoords="offset points",
                    va="top", fontsize=8, color=INK)  # fmt: skip
        words = [", ".join(map(str, steps)) for steps in met.values()]
        found = _apart(ax, list(met), words, arrows, bend, _AROUND) or [_AROUND[0]] * len(words)
    for place, text, (x, y, side, foot) in zip(met, words, found, strict=True):
        patch = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        look: dict[str, Any] = {"ha": side, "va": foot, "fontsize": 8, "color": INK, "bbox": patch}
        ax.annotate(text, place, xytext=(x, y), textcoords="offset points", **look)


# Where a label may be beside its point: points to the right and up, and the side of the label that is there.
_AROUND = (
    (0, 7, "center", "bottom"), (7, 7, "left", "bottom"), (-7, 7, "right", "bottom"), (7, -7, "left", "top"),
    (-7, -7, "right", "top"), (0, -8, "center", "top"), (9, 0, "left", "center"), (-9, 0, "right", "center"),
    (16, 16, "left", "bottom"), (-16, 16, "right", "bottom"), (16, -16, "left", "top"), (-16, -16, "right", "top"),
)  # fmt: skip
_SHARE = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}


def _apart(ax: "Axes", places: Any, words: Sequence[str], arrows: Any, bend: float, around: Any) -> list[Any] | None:
    """Return one of the places for each text, apart from points, heads and other texts; ``None`` if one has none."""
    from matplotlib.transforms import Bbox

    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    dots = ax.transData.transform(places)
    centres = [(dot, 4.0) for dot in dots]
    for start, end in arrows:
        (x, y), (u, v) = ax.transData.transform([start, end])
        way = np.array([(x - u) / 2 + bend * (v - y), (y - v) / 2 - bend * (u - x)])  # from the tip along the arrow
        centres.append((np.array([u, v]) + 9 * scale * way / np.hypot(*way), 5.0))
    taken = [Bbox([middle - half * scale, middle + half * scale]) for middle, half in centres]
    taken += [text.get_window_extent() for text in ax.texts if text.get_text()]
    found = []
    for dot, text in zip(dots, words, strict=True):
        size = scale * np.array([text_width(text, 8.0) + 2, 11.0])
        for x, y, side, foot in around:
            corner = dot + scale * np.array([x, y]) - size * (_SHARE[side], _SHARE[foot])
            box = Bbox([corner, corner + size])
            if not box.count_overlaps(taken) and ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1:
                taken.append(box)
                found.append((x, y, side, foot))
                break
        else:
            return None
    return found


def _sequence(beliefs: Any, labels: Sequence[str] | None) -> list[Belief]:
    """Return the beliefs as a checked list, with one label each if labels are given."""
    given = list(beliefs) if isinstance(beliefs, Iterable) and not isinstance(beliefs, str | Belief | Mapping) else None
    if given is None or not all(isinstance(belief, Belief | Mapping) for belief in given):
        raise ParameterError(f"beliefs: got {brief(beliefs)}; expected a list of beliefs, [b_0, b_1, ...].")
    if not given:
        raise ParameterError("beliefs: got none; expected one or more.")
    if labels is not None and (isinstance(labels, str) or len(labels) != len(given)):
        raise ParameterError(f"labels: got {len(labels)}; expected {len(given)}, one per belief.")
    return [as_belief(belief) for belief in given]


def draw_alpha_vectors(
    vectors: Any,
    *,
    actions: Sequence[Any] | None = None,
    states: Sequence[Any] | None = None,
    between: Sequence[Any] | None = None,
    problem: POMDP | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw alpha vectors over a line of beliefs, and their upper envelope, the value function.

    Dotted lines mark the beliefs at which the best action changes, where two vectors tie.

    Args:
        vectors: ``[K, S]``, the value of each vector in each state; -inf where a plan is not legal. A vector that is
            not legal on the line is left out.
        actions: ``[K]``, the action of each vector; where given, the envelope is coloured and named by them.
        states: The names of the states, in the order of the columns.
        between: The two beliefs at the ends of the line, as beliefs over ``states`` or as S probabilities. The default,
            for a problem with two states, is these states.
        problem: The problem of the vectors. Its actions get the colours of `draw_action_regions`, and its states are
            the names of the columns. Without it, colours are in the order of the actions on the line.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The vectors are not numbers ``[K, S]``, actions, states or beliefs do not fit them, or there are
            more than two states and no ``between``.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_alpha_vectors([[1, 0], [0, 1]], actions=["stay", "go"], states=["left", "right"])
        >>> ax.get_xlabel()
        'probability of right'
        >>> ends = {"a": 1}, {"b": 0.5, "c": 0.5}
        >>> draw_alpha_vectors([[1, 0, 0], [0, 1, 1]], states="abc", between=ends).get_xlabel()
        'from a: 1 to b: .5, c: .5'

    References:
        Kaelbling, Littman and Cassandra (1998), section 4.1.
    """
    looks = None
    if problem is not None:
        require_problem(problem, "draw_alpha_vectors")
        looks = action_looks(problem.all_actions)
        states = problem.states if states is None else states
    ax = _draw_vectors(vectors, actions, states, between, ax, looks)
    legend_beside(ax, title="action" if actions is not None else None)
    return ax


def _draw_vectors(
    vectors: Any,
    actions: Sequence[Any] | None,
    states: Sequence[Any] | None,
    between: Sequence[Any] | None,
    ax: "Axes | None",
    looks: Mapping[Any, tuple[str, str]] | None = None,
    planned: float = 320.0,
) -> "Axes":
    """Draw the vectors without a legend; ``looks`` are the colours and texts of actions, by default in their order."""
    array = _vectors(vectors)
    size = array.shape[1]
    for name, given in (("actions", actions), ("states", states)):
        if given is not None and not (is_row(given) or isinstance(given, str)):
            raise unexpected(name, given, "a list of names, or None")
    if states is not None and not _are_distinct(states):
        raise unexpected("states", states, "distinct names")
    if actions is not None and len(actions) != len(array):
        raise ParameterError(f"actions: got {len(actions)}; expected {len(array)}, one per vector.")
    if states is not None and len(states) != size:
        raise ParameterError(f"states: got {len(states)}; expected {size} names, one per column of the vectors.")
    names = tuple(f"state {k}" for k in range(size)) if states is None else tuple(states)
    if between is None:
        if size != 2:
            raise ParameterError(
                f"vectors: got {size} states; expected 2, or a line of beliefs. Pass between=(belief, belief)."
            )
        between = [Belief.certain(name) for name in names]
    corners = corner_beliefs(between, names, (2,))
    weights = np.array([[float(corner[name]) for name in names] for corner in corners])
    support = weights.any(axis=0)
    ends = _product(array, weights.T)
    ends[~np.isfinite(array[:, support]).all(axis=1)] = -np.inf
    pieces = envelope(ends)
    if not pieces:
        raise ParameterError("vectors: got -inf for each on this line; expected one that is legal at all its beliefs.")
    if looks is None or actions is None:
        labels = figure_texts([f"vector {k}" for k in range(len(array))] if actions is None else actions)
        named = list(dict.fromkeys(labels[k] for *_, k in pieces))
        colours = {name: CYCLE[k % len(CYCLE)] for k, name in enumerate(named)}
    else:
        stray = [action for action in actions if action not in [*looks]]
        if stray:
            raise unexpected("actions", stray[0], "actions of the problem", " Leave problem out for other names.")
        labels = [looks[action][1] for action in actions]
        named = list(dict.fromkeys(labels[k] for *_, k in pieces))
        colours = {name: colour for colour, name in looks.values()}
    ax = new_axes(ax, width=5.6 + legend_inches(named), height=3.8)
    for row in ends[np.isfinite(ends[:, 0])]:
        ax.plot([0, 1], row, color="#c6ccd2", lw=0.9, zorder=1)
    from matplotlib.patheffects import Normal, Stroke

    edge = [Stroke(linewidth=3.8, foreground=INK), Normal()]  # so that pale colours differ from the vectors in grey
    for start, end, k in pieces:
        value = ends[k, 0] + (ends[k, 1] - ends[k, 0]) * np.array([start, end])
        label = labels[k] if labels[k] in named else None
        named = [name for name in named if name != label]
        look: dict[str, Any] = {"lw": 2.8, "zorder": 3, "solid_capstyle": "butt", "path_effects": edge}
        ax.plot([start, end], value, color=colours[labels[k]], label=label, **look)
    top = ends[np.isfinite(ends)].max()
    bottom = min(ends[k, 0] + (ends[k, 1] - ends[k, 0]) * x for start, end, k in pieces for x in (start, end))
    room = (top - bottom or 1.0) * 0.35
    ax.set(xlim=(0, 1), ylim=(bottom - room, top + 0.1 * room))
    _mark_borders(ax, [one[1] for one, other in pairwise(pieces) if labels[one[2]] != labels[other[2]]], planned)
    ax.set(xlabel=line_label(corners, axes_size(ax, planned)[0]), ylabel="value")
    return ax


def _are_distinct(names: Sequence[Any]) -> bool:
    try:
        return len(set(names)) == len(names)
    except TypeError:  # not hashable
        return False


def _vectors(vectors: Any) -> Floats:
    """Return the vectors as an array ``[K, S]`` of numbers and -inf."""
    try:
        array = as_floats(vectors)
    except (TypeError, ValueError, OverflowError) as error:
        raise unexpected("vectors", vectors, "numbers [K, S]", " Pass value_iteration(...).vectors.") from error
    if array.ndim != 2 or not array.size:
        raise ParameterError(f"vectors: got shape {array.shape}; expected [K, S], one row per alpha vector.")
    if np.isnan(array).any() or (array == np.inf).any():
        raise ParameterError("vectors: got infinite values or NaN; expected numbers, or -inf where not legal.")
    require_axis_range("vectors", array)
    return array


def _product(vectors: Floats, weights: Floats) -> Floats:
    """Return the values at the beliefs ``[S, m]``; 0 times -inf counts as 0."""
    values: Floats = np.where(np.isfinite(vectors), vectors, 0.0) @ weights
    return values


def _mark_borders(ax: "Axes", borders: Sequence[float], planned: float) -> None:
    """Mark the borders by dotted lines, and up to twelve by their positions at the foot."""
    (width, _), foot = axes_size(ax, planned), ax.get_ylim()[0]
    for x in borders:
        ax.axvline(x, color=INK, lw=0.8, ls=":", zorder=2)
    free = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
    look: dict[str, Any] = {"fontsize": 8, "color": INK, "rotation": 90, "bbox": free, "zorder": 4}
    places = spread(borders, 14 / width, (9 / width, 1 - 9 / width)) if len(borders) <= 12 else ()
    for x, place in zip(borders, places, strict=bool(places)):
        ax.text(place, foot, f"{x:z.4f}", ha="center", va="bottom", **look)


def draw_backups(
    plan: FiniteHorizonSolution, *, steps: Sequence[int] | None = None, between: Sequence[Any] | None = None
) -> "list[Axes]":
    """Draw the alpha vectors over a line of beliefs, one panel per backup.

    The actions have the same colours in all panels, and those that `draw_action_regions` gives them.

    Args:
        plan: The result of `value_iteration`.
        steps: The numbers of steps to go, a panel each; by default the first six backups.
        between: The two beliefs at the ends of the line; by default the two states of a problem with two.

    Raises:
        ParameterError: It is not such a plan, has fewer steps, or more than two states and no ``between``.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning.value_iteration import value_iteration
        >>> from pomdp_hier.problems import tiger
        >>> [ax.get_title() for ax in draw_backups(value_iteration(tiger(), 2))]
        ['1 step to go: 3 vectors', '2 steps to go: 5 vectors']

    References:
        Smallwood and Sondik (1973).
    """
    check_kind("plan", plan, FiniteHorizonSolution, "the result of value_iteration")
    steps = list(range(1, min(plan.horizon, 6) + 1)) if steps is None else list(steps)
    for step in steps:
        check_integer("steps", step, 1)
        if step > plan.horizon:
            raise ParameterError(f"steps: got {step}; expected at most {plan.horizon}, the horizon of the plan.")
    if not steps:
        raise ParameterError("steps: got none; expected one or more, a panel each.")
    if len(plan.compiled.states) != 2 and between is None:
        raise ParameterError(
            f"plan: got {len(plan.compiled.states)} states; expected 2, or a line of beliefs. Pass between=(belief, "
            "belief)."
        )
    columns = min(len(steps), 3)
    rows = math.ceil(len(steps) / columns)
    parts = [plan.at_step(plan.horizon - step) for step in steps]
    looks = action_looks(plan.compiled.actions)
    names = [name for _, name in looks.values()]
    first = new_axes(None, width=4.2 * columns + legend_inches(names), height=3.2 * rows)
    figure: Any = first.get_figure()
    figure.clear()
    drawn = []
    for k, (step, rest) in enumerate(zip(steps, parts, strict=True)):
        ax = new_axes(figure.add_subplot(rows, columns, k + 1))
        _draw_vectors(rest.vectors, rest.actions, plan.compiled.states, between, ax, looks, 240.0)
        ax.set_title(f"{counted(step, 'step')} to go: {counted(len(rest.vectors), 'vector')}", fontsize=10)
        drawn.append(ax)
    found = {label: line for ax in drawn for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    shown = [name for name in names if name in found]
    figure.legend([found[name] for name in shown], shown, title="action", frameon=False, loc="outside right upper")
    return drawn
