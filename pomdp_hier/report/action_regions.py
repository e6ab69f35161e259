"""The action of a policy over a line or a triangle of beliefs, with borders where actions tie."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pomdp_hier._arguments import Floats, Ints, check_integer
from pomdp_hier._text import brief, counted, shortened, visible
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.hierarchy.arrays import is_row
from pomdp_hier.planning.alpha_vectors import best_regions, envelope
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.point_based.solution import Solution, SolutionPolicy
from pomdp_hier.planning.policies import AlphaVectorPolicy, as_policy, decided
from pomdp_hier.planning.value_iteration import FiniteHorizonSolution
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.report.elements import (
    CYCLE,
    GREY,
    INK,
    TRIANGLE,
    axes_size,
    draw_triangle,
    figure_texts,
    legend_beside,
    legend_inches,
    new_axes,
    spread,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DIGITS = 12  # of the values beside the greatest
_BISECTIONS = 40  # of a line: to the last digit of a float
_CORNER_BISECTIONS = 14  # of the side of a small triangle: to a thousandth of a pixel
_NOTHING = object()  # no action: the belief is terminal, or no plan is legal
_INSIDE = 1e-9  # how far beliefs are moved inside
_SHORTEST = 1e-7  # of a piece of a line
_Looks: TypeAlias = dict[Any, tuple[str, str]]  # the colour and the text of each action
_LABELS = 5  # the most borders of a side that are labelled
_KEY = "number at a border:\nshare of the right\nor upper corner"


def draw_action_regions(
    policy: Any,
    problem: POMDP,
    *,
    states: Sequence[Any] | None = None,
    between: Sequence[Any] | None = None,
    resolution: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the action of a policy at each belief of a line or of a triangle.

    Two ends make a band, three corners a triangle. For a policy of alpha vectors the borders are computed from the
    vectors that tie. For any other policy they are located by bisection between the beliefs of a grid. A label is the
    share of the right or upper end of its side. Terminal beliefs are left blank. The actions have the same colours
    for every policy of a problem, so that two drawings can be compared.

    Args:
        policy: Any policy: a planner, a solution, what `value_iteration` returned, a function.
        problem: The problem.
        states: The two or three states at the ends, from left to right (and up); by default all of them.
        between: In place of states, two or three beliefs.
        resolution: For policies without alpha vectors: into how many parts a side is cut, by default 400 for a line and
            48 for a triangle. A region that is narrower than a part may be missed.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: There are fewer than two or more than three ends, or some are not the problem's.
        PlanningError: The policy chose an action that is not legal.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning.value_iteration import value_iteration
        >>> from pomdp_hier.problems import corridor, tiger
        >>> ax = draw_action_regions(value_iteration(tiger(), 1), tiger())
        >>> [text.get_text() for text in ax.texts[:2]]
        ['0.1000', '0.9000']
        >>> half = {(0, 0): 0.5, (0, 1): 0.5}
        >>> draw_action_regions(value_iteration(corridor(), 2), corridor(), between=(half, {(0, 3): 1})).get_xlabel()
        'from (0, 0): .5, (0, 1): .5 to (0, 3): 1'

    References:
        Kaelbling, Littman and Cassandra (1998), section 4.2.
    """
    require_problem(problem, "draw_action_regions")
    corners = _corners(problem, states, between)
    line = len(corners) == 2
    if resolution is None:
        resolution = 400 if line else 48
    check_integer("resolution", resolution, 2)
    regions = _Regions(policy, problem, corners, resolution)
    return (_draw_band if line else _draw_triangle)(regions, corners, action_looks(problem.all_actions), ax)


def action_looks(actions: Sequence[Any]) -> _Looks:
    """Return the colour and the text of each action of a problem, the same in all of its figures."""
    return {
        a: (CYCLE[k % len(CYCLE)], text) for k, (a, text) in enumerate(zip(actions, figure_texts(actions), strict=True))
    }


def _corners(problem: POMDP, states: Sequence[Any] | None, between: Sequence[Any] | None) -> list[Belief]:
    """Return the two or three beliefs at the ends."""
    if between is not None:
        if states is not None:
            raise ParameterError(
                f"between: got {brief(between)} and states; expected one of the two. Leave states out."
            )
        return [problem.as_belief(corner) for corner in corner_beliefs(between, problem.states, (2, 3))]
    chosen = tuple(problem.states if states is None else states)
    if len(chosen) not in (2, 3) or len(set(chosen)) != len(chosen):
        raise ParameterError(
            f"states: got {brief(chosen)}; expected 2 different states for a band, or 3 for a triangle. Pass "
            "states=[...], or between=[...] with beliefs."
        )
    stray = next((s for s in chosen if s not in problem.states), None)
    if stray is not None:
        raise ParameterError(f"states: got {brief(stray)}; expected states of the problem.")
    return [Belief.certain(state) for state in chosen]


def corner_beliefs(between: Any, states: Sequence[Any], counts: tuple[int, ...]) -> list[Belief]:
    """Return beliefs over the states, each given as a belief or as a list of probabilities.

    Example:
        >>> corner_beliefs([{"a": 1}, [0.5, 0.5]], "ab", (2,))
        [Belief({'a': 1}), Belief({'a': 0.5, 'b': 0.5})]
    """
    expected = " or ".join(map(str, counts)) + f" different beliefs over {counted(len(states), 'state')}"
    given = list(between) if is_row(between) else None
    if given is None or len(given) not in counts:
        raise ParameterError(f"between: got {brief(between)}; expected {expected}. Pass between=(belief, belief).")
    corners = []
    for one in given:
        if not isinstance(one, Belief | Mapping):
            listed = np.asarray(one, dtype=object).ravel().tolist()
            if len(listed) != len(states):
                raise ParameterError(f"between: got {brief(one)}; expected {expected}.")
            one = {state: p for state, p in zip(states, listed, strict=True) if p != 0}
        belief = as_belief(one)
        stray = next((state for state in belief if state not in states), None)
        if stray is not None:
            raise ParameterError(f"between: got the state {brief(stray)}; expected {expected}.")
        corners.append(belief)
    table = np.array([[float(corner[state]) for state in states] for corner in corners])
    if np.linalg.matrix_rank(table[1:] - table[0]) < len(corners) - 1:
        raise ParameterError(
            f"between: got {brief(between)}, whose beliefs are equal or on one line; expected {expected}."
        )
    return corners


def line_label(corners: Sequence[Belief], width: float = math.inf) -> str:
    """Return the label of the axis from one belief to another, in lines of at most ``width`` points.

    Example:
        >>> line_label([Belief({"a": 1}), Belief({"b": 1})]), line_label([Belief({"a": 1}), Belief.uniform("ab")])
        ('probability of b', 'from a: 1 to a: .5, b: .5')
    """
    if all(len(corner) == 1 for corner in corners):
        return wrapped(f"probability of {corner_name(corners[1])}", width, 10.0, 200)
    return wrapped(f"from {_belief_name(corners[0])} to {_belief_name(corners[1])}", width, 10.0, 200)


def corner_name(corner: Belief) -> str:
    """Return the name of a certain state, or the text of a belief."""
    return shortened(visible(str(next(iter(corner)))), 60) if len(corner) == 1 else _belief_name(corner)


def _belief_name(corner: Belief) -> str:
    ranked = sorted(corner.items(), key=lambda pair: -float(pair[1]))
    parts = [f"{shortened(visible(str(s)), 24)}: {f'{float(p):.3g}'.removeprefix('0')}" for s, p in ranked[:3]]
    return ", ".join(parts) + (f", {len(ranked) - 3} more" if len(ranked) > 3 else "")


class _Regions:
    """The action at each mixture of two or three beliefs, and the pieces over which it is the same."""

    def __init__(self, policy: Any, problem: POMDP, corners: list[Belief], parts: int) -> None:
        self.problem = problem
        self.parts = parts
        self.states = list(dict.fromkeys(state for corner in corners for state in corner))
        self.table = np.array([[float(corner[state]) for state in self.states] for corner in corners])
        self.policy = as_policy(policy.policy if isinstance(policy, Solution) else policy)
        self.vectors = self._vectors()

    def action(self, weights: Any) -> Any:
        """Return the action at a mixture of the corners, which is moved inside: fewer actions are legal there."""
        inside = (1 - _INSIDE) * np.asarray(weights, dtype=np.float64) + _INSIDE / len(self.table)
        mixed = inside @ self.table
        belief = Belief.normalized({s: p for s, p in zip(self.states, mixed.tolist(), strict=True) if p > 0})
        if self.problem.is_terminal_belief(belief):
            return _NOTHING
        return decided(self.policy, self.problem, belief).action

    def _vectors(self) -> tuple[Floats, list[Any]] | None:
        """Return the value at each corner ``[K, m]`` and the action of each vector; ``None`` if it has no vectors.

        The action is that of the policy in the middle of the vector's region, which is one of those that tie there. A
        policy that decides otherwise counts as one without vectors.
        """
        found = _alpha_vectors(self.policy, self.problem)
        if found is None:
            return None
        compiled = self.problem.compiled
        vectors, positions = found
        index = [compiled.state_index[state] for state in self.states]
        alive = ~compiled.terminal[index]
        columns = vectors[:, index]
        legal = compiled.legal[positions][:, index] & np.isfinite(columns)
        usable = legal[:, alive].all(axis=1)
        if compiled.legal_after is not None:
            usable &= compiled.legal_after[-1, positions]
        values = np.where(alive & np.isfinite(columns), columns, 0.0) @ self.table.T
        values[~usable] = -np.inf
        if not alive.any():
            return None
        scale = float(np.abs(values[usable]).max(initial=0.0)) or 1.0
        values = np.round(values / scale, _DIGITS)  # vectors that differ by rounding tie
        actions = [compiled.actions[k] for k in positions.tolist()]
        named = np.array(positions)
        for weights, k in self._middles(values):
            try:
                taken = self.action(weights)
            except (ModelError, PlanningError):
                return None
            if taken is _NOTHING:
                return None
            at = values @ weights
            if at[named == compiled.action_index[taken]].max(initial=-np.inf) < at[k] - 10.0 ** (2 - _DIGITS):
                return None
            actions[k] = taken
        return values, actions

    def _middles(self, values: Floats) -> Iterator[tuple[Floats, int]]:
        """Yield a belief inside of each region, and the vector of that region."""
        if values.shape[1] == 2:
            for start, end, k in envelope(values):
                if end - start > 1e-9:
                    yield np.array([1 - (start + end) / 2, (start + end) / 2]), k
        else:
            for k, polygon in best_regions(values):
                if _area(polygon) > 1e-9:
                    yield polygon.mean(axis=0), k

    def line(self, start: int = 0, end: int = 1) -> list[tuple[float, float, Any]]:
        """Return the pieces ``(from, to, action)`` of the line between two corners."""
        if self.vectors is not None:
            values, actions = self.vectors
            pieces = [(a, b, actions[k]) for a, b, k in envelope(values[:, [start, end]])]
            return _merged(pieces) if pieces else [(0.0, 1.0, _NOTHING)]
        ends = np.eye(len(self.table))[[start, end]]

        def at(x: float) -> Any:
            return self.action((1 - x) * ends[0] + x * ends[1])

        grid = np.linspace(0, 1, self.parts + 1).tolist()
        pieces, taken = [], [at(x) for x in grid]
        for (low, before), (high, after) in pairwise(zip(grid, taken, strict=True)):
            border = _bisected(at, low, high, before, _BISECTIONS) if before != after else high
            pieces += [(low, border, before), (border, high, after)]
        return _merged(pieces)

    def polygons(self) -> Iterator[tuple[Any, Floats]]:
        """Yield convex polygons ``[m, 3]`` of weights that cover the triangle, each with its action."""
        if self.vectors is not None:
            values, actions = self.vectors
            yield from ((actions[k], polygon) for k, polygon in best_regions(values))
            return
        n = self.parts
        at = cache(lambda i, j: self.action(np.array([n - i - j, i, j]) / n))
        for i in range(n):
            for j in range(n - i):
                # A small triangle with its point up, and below the last row the one beside it with its point down.
                corners = [(i, j), (i + 1, j), (i, j + 1)]
                beside = [(i + 1, j), (i + 1, j + 1), (i, j + 1)]
                for places in (corners, beside)[: 2 if i + j < n - 1 else 1]:
                    weights = np.array([(n - a - b, a, b) for a, b in places]) / n
                    yield from self._split(weights, [at(*place) for place in places])

    def _split(self, corners: Floats, taken: list[Any]) -> Iterator[tuple[Any, Floats]]:
        """Yield the parts of a small triangle, cut where the action changes along its sides."""
        if len(set(map(id, taken))) == 1 or all(action == taken[0] for action in taken):
            yield taken[0], corners
            return
        cuts: dict[int, Floats] = {}
        for k in range(3):
            a, b = corners[k], corners[(k + 1) % 3]
            if taken[k] != taken[(k + 1) % 3]:

                def at(x: float, a: Floats = a, b: Floats = b) -> Any:
                    return self.action((1 - x) * a + x * b)

                x = _bisected(at, 0.0, 1.0, taken[k], _CORNER_BISECTIONS)
                cuts[k] = (1 - x) * a + x * b
        middle = [np.mean(list(cuts.values()), axis=0)] if len(cuts) == 3 else []
        for k in range(3):
            before = (k + 2) % 3
            if k in cuts and before in cuts:  # this corner has an action of its own
                yield taken[k], np.array([corners[k], cuts[k], *middle, cuts[before]])
            elif k in cuts:  # it shares its action with the corner before, and this pair is yielded once
                yield taken[k], np.array([corners[before], corners[k], cuts[k], cuts[(k + 1) % 3]])


def _alpha_vectors(policy: Any, problem: POMDP) -> tuple[Floats, Ints] | None:
    """Return the vectors ``[K, S]`` of a policy that takes the action of the best one, and their actions."""
    if isinstance(policy, FiniteStateController) and not policy.stops:
        policy = policy.vectors
    if isinstance(policy, AlphaVectorPolicy):
        fits = policy.vectors.shape[1] == problem.compiled.n_states
        return (policy.vectors, policy.actions) if fits else None
    if isinstance(policy, FiniteHorizonSolution) and policy.horizon and policy.compiled is problem.compiled:
        return policy.stages[-1]
    if isinstance(policy, SolutionPolicy) and policy.to_go is None and policy.solution.problem is problem:
        index = problem.compiled.action_index
        actions = np.array([index[a] for a in policy.solution.alpha_actions], dtype=np.int64)
        return policy.solution.alpha_vectors, actions
    return None


def _bisected(at: Callable[[float], Any], low: float, high: float, before: Any, times: int) -> float:
    """Return the position at which an action changes, from ``before`` at the lower end."""
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) == before else (low, middle)
    return high


def _merged(pieces: list[tuple[float, float, Any]]) -> list[tuple[float, float, Any]]:
    """Return the pieces with neighbours of one action joined, without those too short to see."""
    wide = [piece for piece in pieces if piece[1] - piece[0] > _SHORTEST]
    joined = [(0.0, *wide[0][1:])]
    for start, end, action in wide[1:]:
        if action == joined[-1][2]:
            joined[-1] = (joined[-1][0], end, action)
        else:
            joined.append((start, end, action))
    return joined


def _area(polygon: Floats) -> float:
    """Return the area of a polygon in weights, as a part of the triangle's."""
    x, y = polygon[:, 1], polygon[:, 2]
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def _draw_band(regions: _Regions, corners: Sequence[Belief], looks: _Looks, ax: "Axes | None") -> "Axes":
    pieces = regions.line()
    drawn = {name: looks[name][1] for *_, name in pieces if name is not _NOTHING}
    ax = new_axes(ax, width=4.8 + legend_inches(drawn.values()), height=1.9)
    borders = [end for _, end, _ in pieces[:-1]]
    width, _ = axes_size(ax, 320.0)
    for end, place in zip(borders, spread(borders, 17 / width), strict=True):
        ax.plot([end, end, place], [0, 1.02, 1.1], color=INK, lw=0.8, clip_on=False)
        look: dict[str, Any] = {"fontsize": 8, "color": INK, "ha": "left", "va": "bottom", "rotation_mode": "anchor"}
        ax.text(place, 1.12, f"{end:z.4f}", rotation=35, **look)
    for start, end, name in pieces:
        if name is not _NOTHING:
            colour, _ = looks[name]
            ax.fill_between([start, end], 0, 1, color=colour, lw=0, label=drawn.pop(name, None))
    ax.set(xlim=(0, 1), ylim=(0, 1.5), yticks=[], xlabel=line_label(corners, width))
    ax.spines["left"].set_visible(False)
    if ax.collections:
        legend_beside(ax)
    return ax


def _draw_triangle(regions: _Regions, corners: Sequence[Belief], looks: _Looks, ax: "Axes | None") -> "Axes":
    """Draw the regions of a triangle as polygons, with the borders on its sides labelled."""
    found: dict[Any, list[Floats]] = {}
    for action, weights in regions.polygons():
        found.setdefault(action, []).append(weights @ TRIANGLE)
    names = {name: text for name, (_, text) in looks.items() if name in found}
    ax = new_axes(ax, width=5.9 + legend_inches(names.values()), height=4.6)
    from matplotlib.collections import PolyCollection

    for name, label in names.items():
        # Edges of the same colour hide the seams between the polygons of a region.
        colour, _ = looks[name]
        ax.add_collection(PolyCollection(found[name], facecolor=colour, edgecolor=colour, lw=0.8))
        ax.scatter([], [], marker="s", s=60, color=colour, label=label)
    draw_triangle(ax, [corner_name(corner) for corner in corners], GREY)
    labelled = [_label_side(ax, regions, start, end) for start, end in ((0, 1), (0, 2), (1, 2))]
    if any(labelled):
        ax.text(-0.25, 1.0, _KEY, fontsize=8, color=INK, ha="left", va="top")
    if names:
        legend_beside(ax)
    return ax


def _label_side(ax: "Axes", regions: _Regions, start: int, end: int) -> bool:
    """Mark the borders on a side by their shares of its end, outside of the triangle; return whether any is."""
    borders = [border for _, border, _ in regions.line(start, end)[:-1]]
    if len(borders) > _LABELS:
        return False
    outward = (TRIANGLE[start] + TRIANGLE[end]) / 2 - TRIANGLE.mean(axis=0)
    outward /= np.hypot(*outward)
    below = outward[1] < -0.5
    for border, place in zip(borders, spread(borders, 0.12 if below else 0.06), strict=True):
        point, moved = ((1 - x) * TRIANGLE[start] + x * TRIANGLE[end] for x in (border, place))
        ticks = np.array([point, moved + 0.03 * outward])
        ax.plot(*ticks.T, color=INK, lw=0.8)
        side = "center" if below else "left" if outward[0] > 0 else "right"
        x, y = moved + 0.037 * outward
        ax.text(x, y, f"{border:z.3f}", fontsize=8, color=INK, ha=side, va="top" if below else "center")
    return bool(borders)
