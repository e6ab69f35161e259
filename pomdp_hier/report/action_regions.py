"""Figures of what to do under each belief: a policy's actions over the simplex, alpha vectors backup by backup."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import check_kind, check_whole
from pomdp_hier._arrays import Floats
from pomdp_hier._messages import brief, counted
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.exact import AlphaVectors
from pomdp_hier.planning.policies import as_policy, decided
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.problem import require_problem
from pomdp_hier.report.beliefs import draw_alpha_vectors
from pomdp_hier.report.canvas import CYCLE, GREY, INK, TRIANGLE, draw_triangle, new_axes
from pomdp_hier.report.escaping import figure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_action_regions", "draw_backups"]

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
    """Return the axes with the action that a policy takes under every belief over two or three states.

    Two states make a band, on which each belief at which the action changes is found by bisection and written; three
    make a triangle. Where the process is over, nothing is drawn. The actions have the same colours for every policy of
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
        >>> from pomdp_hier.planning.exact import value_iteration
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
            f"states: {len(chosen)}, {brief(chosen)}; a band needs 2 different ones and a triangle 3. Pass states=[...]"
        )
    stray = next((s for s in chosen if s not in problem.states), None)
    if stray is not None:
        raise ParameterError(f"states: {brief(stray)} is not one of the problem's states")
    if resolution is None:
        resolution = 400 if len(chosen) == 2 else 48
    check_whole("resolution", resolution, 2)
    decider = as_policy(policy)

    def action(weights: Iterable[float]) -> Any:
        belief = Belief({s: w for s, w in zip(chosen, map(float, weights), strict=True) if w > 0})
        return _NOTHING if problem.is_over(belief) else decided(decider, problem, belief).action

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
    """Draw the regions of three states: the triangle in ``parts ** 2`` small ones, each asked at its middle."""
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


def draw_backups(plan: AlphaVectors, *, steps: Sequence[int] | None = None) -> "list[Axes]":
    """Return the axes of one figure with the alpha vectors of a two-state problem, backup by backup.

    Args:
        plan: What `value_iteration` returned.
        steps: The numbers of steps to go, a panel each; by default the first six backups.

    Raises:
        ParameterError: It is no such plan, has other than two states, or not so many steps.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning.exact import value_iteration
        >>> from pomdp_hier.problems import tiger
        >>> [ax.get_title() for ax in draw_backups(value_iteration(tiger(), 2))]
        ['1 step to go: 3 vectors', '2 steps to go: 5 vectors']

    References:
        Smallwood and Sondik (1973).
    """
    check_kind("plan", plan, AlphaVectors, "what value_iteration returned")
    steps = list(range(1, min(plan.horizon, 6) + 1)) if steps is None else list(steps)
    for step in steps:
        check_whole("steps", step, 1)
        if step > plan.horizon:
            raise ParameterError(f"steps: {step}; the plan has {plan.horizon}")
    if not steps or len(plan.compiled.states) != 2:
        raise ParameterError(
            f"plan: {len(plan.compiled.states)} states and {len(steps)} steps; a panel shows two states, and one step"
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
