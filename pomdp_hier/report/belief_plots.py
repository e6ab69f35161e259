"""Figures of beliefs: over an episode, in the simplex, and with the values above them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import check_integer, check_kind
from pomdp_hier._arrays import Floats
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.policies import as_policy, decided
from pomdp_hier.planning.value_iteration import FiniteHorizonSolution
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.report.elements import BLUE, CYCLE, GREY, INK, ORANGE, TRIANGLE, draw_triangle, figure_text, new_axes

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
        labels: What led to each (``"listen / hear-left"``), written below the bars; ``None`` numbers the steps.
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
    ax = new_axes(ax, width=max(4.8, 0.9 * len(beliefs) + 2.4), height=3.4)
    order = list(dict.fromkeys(states if states is not None else [s for b in beliefs for s in b]))
    weight = {s: max(float(b[s]) for b in beliefs) for s in order}
    shown = set(sorted(order, key=lambda s: -weight[s])[:most])
    bands = [s for s in order if s in shown]
    positions = np.arange(len(beliefs))
    bottom = np.zeros(len(beliefs))
    look: dict[str, Any] = {"width": 0.82, "edgecolor": "white"}
    for k, state in enumerate(bands):
        heights = np.array([float(b[state]) for b in beliefs])
        ax.bar(positions, heights, bottom=bottom, color=CYCLE[k % len(CYCLE)], label=figure_text(state), **look)
        bottom += heights
    rest = np.array([math.fsum(float(p) for _, p in b.items()) for b in beliefs]) - bottom
    if len(order) > len(bands):
        others = counted(len(order) - len(bands), "more state")
        ax.bar(positions, np.maximum(rest, 0), bottom=bottom, color="#dddddd", hatch="///", label=others, **look)
    ax.set_xticks(positions, list(labels) if labels is not None else [str(i) for i in positions])
    if labels is not None and max(len(str(label)) for label in labels) * len(labels) > 70:
        ax.tick_params(axis="x", rotation=30)
    ax.set(ylim=(0, 1), ylabel="probability", xlabel="step" if labels is None else "")
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], names[::-1], frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
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
        labels: A text beside each belief.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The beliefs are over fewer than two or more than three states, or the labels are not as many.
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
    ax = new_axes(ax, width=5.6, height=1.9 if len(corners) == 2 else 4.8)
    if len(corners) == 2:
        frame = TRIANGLE[:2]
        ax.set(xlim=(-0.08, 1.08), ylim=(-0.35, 0.35))
        ax.set_axis_off()
        ax.plot(frame[:, 0], frame[:, 1], color=INK, lw=1.2)
        for tick in np.linspace(0, 1, 11):
            ax.plot([tick, tick], [-0.02, 0.02], color=GREY, lw=1)
            ax.text(tick, -0.06, f"{tick:z.1f}", ha="center", va="top", fontsize=8, color=GREY)
        for x, name in enumerate(corners):
            ax.text(x, -0.2, figure_text(name), ha="center", va="top", color=INK)
    else:
        frame = TRIANGLE
        draw_triangle(ax, corners, INK)
        for share in (0.25, 0.5, 0.75):
            for k in range(3):
                ends = np.array([(1 - share) * frame[k] + share * frame[j] for j in range(3) if j != k])
                ax.plot(ends[:, 0], ends[:, 1], color="#e3e6e9", lw=0.8, zorder=0)
    points = np.array([[float(b[s]) for s in corners] for b in beliefs]) @ frame
    _draw_path(ax, points, labels, flat=len(corners) == 2)
    return ax


def _draw_path(ax: "Axes", points: Any, labels: Sequence[str] | None, *, flat: bool) -> None:
    """Draw the points connected by arrows, the last one filled; on a line the arrows are arcs."""
    for start, end in pairwise(points):
        if np.allclose(start, end):
            continue
        bend = "arc3,rad=-0.35" if flat else "arc3,rad=0.08"
        style = {"arrowstyle": "-|>", "color": BLUE, "lw": 1.3, "connectionstyle": bend, "shrinkA": 4, "shrinkB": 4}
        ax.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=style)
    ax.scatter(points[:-1, 0], points[:-1, 1], s=34, facecolor="white", edgecolor=BLUE, zorder=3)
    ax.scatter(points[-1:, 0], points[-1:, 1], s=52, color=ORANGE, marker="D", zorder=4)
    texts: dict[tuple[float, float], list[str]] = {}  # beliefs that were met twice share one label
    for point, text in zip(points, labels or (), strict=bool(labels)):
        texts.setdefault((round(float(point[0]), 9), round(float(point[1]), 9)), []).append(text)
    for place, names in texts.items():
        patch = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        joined = ", ".join(names)
        ax.annotate(joined, place, xytext=(7, 8), textcoords="offset points", fontsize=8, color=INK, bbox=patch)


def _sequence(beliefs: Any, labels: Sequence[str] | None) -> list[Belief]:
    """Return the beliefs as a checked list, with one label each if labels are given."""
    given = list(beliefs) if isinstance(beliefs, Iterable) and not isinstance(beliefs, str | Belief | Mapping) else None
    if given is None or not all(isinstance(belief, Belief | Mapping) for belief in given):
        raise ParameterError(f"beliefs: got {brief(beliefs)}; expected a list of beliefs, [b_0, b_1, ...]")
    if not given:
        raise ParameterError("beliefs: got none; expected one or more")
    if labels is not None and (isinstance(labels, str) or len(labels) != len(given)):
        raise ParameterError(f"labels: got {len(labels)}; expected {len(given)}, one per belief")
    return [as_belief(belief) for belief in given]


def draw_alpha_vectors(
    vectors: Any,
    *,
    actions: Sequence[Any] | None = None,
    states: Sequence[Any] = ("state 0", "state 1"),
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the alpha vectors of a two-state problem and their upper envelope, the value function.

    Args:
        vectors: ``[K, 2]``, the value of each vector in the two states.
        actions: ``[K]``, the action of each vector; where given, the envelope is coloured and named by them.
        states: The two states' names; the horizontal axis is the probability of the second.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The vectors are not finite numbers over two states, or the actions are not as many.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_alpha_vectors([[1, 0], [0, 1]], actions=["stay", "go"], states=["left", "right"])
        >>> ax.get_xlabel()
        'probability of right'

    References:
        Kaelbling, Littman and Cassandra (1998), section 4.1.
    """
    try:
        array = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"vectors: got {brief(vectors)}; expected numbers [K, 2]. Pass value_iteration(...).vectors."
        ) from error
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ParameterError(
            f"vectors: got shape {array.shape}; expected [K, 2], one row per alpha vector over two states"
        )
    if actions is not None and len(actions) != len(array):
        raise ParameterError(f"actions: got {len(actions)}; expected {len(array)}, one per vector")
    if len(states) != 2:
        raise ParameterError(f"states: got {len(states)}; expected the names of two states")
    if not np.isfinite(array).all():
        raise ParameterError("vectors: got infinite values or NaN; expected finite numbers")
    ax = new_axes(ax, width=5.6, height=3.8)
    grid = np.linspace(0, 1, 2001)
    values = np.outer(array[:, 0], 1 - grid) + np.outer(array[:, 1], grid)
    best = values.argmax(axis=0)
    for row in values:
        ax.plot(grid, row, color="#c6ccd2", lw=0.9, zorder=1)
    names = [figure_text(a) for a in actions] if actions is not None else [f"vector {k}" for k in range(len(array))]
    colours = {name: CYCLE[k % len(CYCLE)] for k, name in enumerate(dict.fromkeys(names[k] for k in np.unique(best)))}
    breaks = np.flatnonzero(np.diff(best)) + 1
    drawn: set[str] = set()
    for piece in np.split(np.arange(len(grid)), breaks):
        name = names[best[piece[0]]]
        span = np.append(piece, min(piece[-1] + 1, len(grid) - 1))
        label = name if name not in drawn else None
        drawn.add(name)
        ax.plot(grid[span], values.max(axis=0)[span], color=colours[name], lw=2.8, label=label, zorder=3)
    top = values.max()
    bottom = values.max(axis=0).min()
    room = (top - bottom or 1.0) * 0.35
    ax.set(xlim=(0, 1), ylim=(bottom - room, top + 0.1 * room))
    ax.set(xlabel=f"probability of {figure_text(states[1])}", ylabel="value")
    ax.legend(frameon=False, title="action" if actions is not None else None)
    return ax


_BISECTIONS = 40
_NOTHING = object()  # where the process is over


def draw_action_regions(
    policy: Any,
    problem: POMDP,
    *,
    states: Sequence[Any] | None = None,
    resolution: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the action of a policy at each belief over two or three states.

    Two states make a band, with the beliefs where the action changes located by bisection and labelled; three make a
    triangle. Terminal beliefs are left blank. The actions have the same colours for every policy of
    a problem, so that two drawings can be compared.

    Args:
        policy: Any policy: a planner, what `value_iteration` returned, ``Solution.policy``, a function.
        problem: The problem.
        states: The two or three states, from left to right (and up), if the problem has more; beliefs are over these.
        resolution: Into how many parts a side is cut: 400 for two states and 48 for three by default. A region that is
            narrower than a part may be missed.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: There are fewer than two or more than three states, or some are not the problem's.
        PlanningError: The policy chose an action that is not legal.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning.value_iteration import value_iteration
        >>> from pomdp_hier.problems import tiger
        >>> ax = draw_action_regions(value_iteration(tiger(), 1), tiger())
        >>> [text.get_text() for text in ax.texts[:2]]
        ['0.1000', '0.9000']

    References:
        Kaelbling, Littman and Cassandra (1998), section 4.2.
    """
    require_problem(problem, "draw_action_regions")
    chosen = tuple(problem.states if states is None else states)
    if len(chosen) not in (2, 3) or len(set(chosen)) != len(chosen):
        raise ParameterError(
            f"states: got {brief(chosen)}; expected 2 different states for a band, or 3 for a triangle. Pass "
            "states=[...]."
        )
    stray = next((s for s in chosen if s not in problem.states), None)
    if stray is not None:
        raise ParameterError(f"states: got {brief(stray)}; expected states of the problem")
    if resolution is None:
        resolution = 400 if len(chosen) == 2 else 48
    check_integer("resolution", resolution, 2)
    decider = as_policy(policy)

    def action(weights: Iterable[float]) -> Any:
        belief = Belief({s: w for s, w in zip(chosen, map(float, weights), strict=True) if w > 0})
        return _NOTHING if problem.is_terminal_belief(belief) else decided(decider, problem, belief).action

    colours = {a: CYCLE[k % len(CYCLE)] for k, a in enumerate(problem.all_actions)}
    if len(chosen) == 2:
        return _draw_band(action, chosen, colours, resolution, ax)
    return _draw_triangle(action, chosen, colours, resolution, ax)


def _draw_band(
    action: Callable[[Iterable[float]], Any],
    states: Sequence[Any],
    colours: dict[Any, str],
    parts: int,
    ax: "Axes | None",
) -> "Axes":
    """Draw the regions of two states as a band over the probability of the second."""
    ax = new_axes(ax, width=6.4, height=1.7)

    def at(p: float) -> Any:
        return action((1 - p, p))

    grid = np.linspace(0, 1, parts + 1)
    taken = [at(p) for p in grid]
    regions = [[0.0, 1.0, taken[0]]]
    for (low, before), (high, after) in pairwise(zip(grid.tolist(), taken, strict=True)):
        if after == before:
            continue
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if at(middle) == before else (low, middle)
        regions[-1][1] = high
        regions.append([high, 1.0, after])
    for _, end, _ in regions[:-1]:
        ax.text(end, 1.06, f"{end:z.4f}", fontsize=8, color=INK, ha="center", va="bottom", rotation=35)
        ax.plot([end, end], [0, 1.04], color=INK, lw=0.8)
    drawn: set[Any] = set()
    for start, end, name in regions:
        if name is not _NOTHING:
            label = None if name in drawn else figure_text(str(name))
            drawn.add(name)
            ax.fill_between([start, end], 0, 1, color=colours[name], lw=0, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1.5), yticks=[], xlabel=f"probability of {figure_text(str(states[1]))}")
    ax.spines["left"].set_visible(False)
    if drawn:
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.4))
    return ax


def _draw_triangle(
    action: Callable[[Iterable[float]], Any],
    states: Sequence[Any],
    colours: dict[Any, str],
    parts: int,
    ax: "Axes | None",
) -> "Axes":
    """Draw the regions of three states: ``parts ** 2`` small triangles, each with the action at its centre."""
    ax = new_axes(ax, width=5.8, height=4.6)
    cells: dict[Any, list[Floats]] = {}
    for i in range(parts):
        for j in range(parts - i):
            # A small triangle with its point up, and below the last row the one beside it with its point down.
            corners = [(i, j), (i + 1, j), (i, j + 1)]
            for place in (corners, [(i + 1, j), (i + 1, j + 1), (i, j + 1)])[: 2 if i + j < parts - 1 else 1]:
                weights = np.array([(parts - a - b, a, b) for a, b in place]) / parts
                cells.setdefault(action(weights.mean(axis=0)), []).append(weights @ TRIANGLE)
    from matplotlib.collections import PolyCollection

    for name, colour in colours.items():
        if name in cells:
            ax.add_collection(PolyCollection(cells[name], facecolor=colour, edgecolor=colour, lw=0.3))
            ax.scatter([], [], marker="s", s=60, color=colour, label=figure_text(str(name)))
    draw_triangle(ax, states, GREY)
    if set(cells) != {_NOTHING}:
        ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1.08, 1.0))
    return ax


def draw_backups(plan: FiniteHorizonSolution, *, steps: Sequence[int] | None = None) -> "list[Axes]":
    """Draw the alpha vectors of a two-state problem, one panel per backup.

    Args:
        plan: What `value_iteration` returned.
        steps: The numbers of steps to go, a panel each; by default the first six backups.

    Raises:
        ParameterError: It is no such plan, does not have two states, or has fewer steps.
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
            raise ParameterError(f"steps: got {step}; expected at most {plan.horizon}, the horizon of the plan")
    if not steps or len(plan.compiled.states) != 2:
        raise ParameterError(
            f"plan: got {len(plan.compiled.states)} states and {len(steps)} steps; expected 2 states, and a panel "
            "per step"
        )
    columns = min(len(steps), 3)
    rows = math.ceil(len(steps) / columns)
    first = new_axes(None, width=4.2 * columns, height=3.2 * rows)
    figure: Any = first.get_figure()
    figure.clear()
    drawn = []
    for k, step in enumerate(steps):
        ax = new_axes(figure.add_subplot(rows, columns, k + 1))
        rest = plan.at_step(plan.horizon - step)
        draw_alpha_vectors(rest.vectors, actions=rest.actions, states=plan.compiled.states, ax=ax)
        ax.set_title(f"{counted(step, 'step')} to go: {counted(len(rest.vectors), 'vector')}", fontsize=10)
        legend = ax.get_legend()
        if k and legend is not None:  # one is enough
            legend.remove()
        drawn.append(ax)
    return drawn
