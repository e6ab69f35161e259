"""Figures of plans: AND-OR trees, the bounds of a solution over time, and a page with a three-node tree."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pomdp_hier._arguments import check_kind
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.planning.and_or.text import FULL_LIMIT, BeliefWords, View, ViewNode, view, words
from pomdp_hier.planning.and_or.tree import AndOrTree
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.report.elements import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Html,
    asset,
    figure_text,
    filled,
    fit_points,
    joined,
    new_axes,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# All lengths are in points at full size; a figure of its own is made as large as they ask for.
_FONT = 8.5
_SLOT = 23.0  # from one leaf to the next
_SYMBOL = 5.0  # half the size of a triangle or circle
_FAN = 22.0  # the slanting part of an arc
_GAP = 5.0  # between a symbol and its text, a text and its arc
_MARGIN = 12.0
_HEAD, _FOOT = 26.0, 30.0


def draw_and_or(
    tree: AndOrTree,
    ax: "Axes | None" = None,
    *,
    full: bool | None = None,
    limit: int = FULL_LIMIT,
    decimals: int = 2,
    name: Callable[[Any], str] = str,
    title: str | None = None,
) -> "Axes":
    """Draw an AND-OR tree: triangles are beliefs, circles are actions, and the best plan is highlighted.

    Arcs to actions bear the reward ``R``, arcs to beliefs the observation and its probability (on the plan, their
    width). Actions are in the problem's order. A star marks the best action of each belief of the plan; where actions
    tie, all of them, with a plan below each. A tree of more than ``limit`` nodes is collapsed: actions off the plan
    become stubs that say how much they hide.

    Args:
        tree: The tree.
        ax: Where to draw; text and symbols shrink until the tree fits. By default a new figure, as large as need be.
        full: ``True`` for every node, ``False`` for the plan alone.
        limit: The number of nodes above which a tree is collapsed, and a full drawing refused.
        decimals: Of floats.
        name: How states, actions and observations are written.
        title: What stands above; the size of the tree by default.

    Raises:
        ParameterError: It is not a tree, or a full drawing was asked for, but the tree has more than ``limit`` nodes.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> ax = draw_and_or(AndOrTree.build(tiger(), depth=2))
        >>> ax.get_figure().savefig("tree.png", dpi=150)  # doctest: +SKIP
    """
    check_kind("tree", tree, AndOrTree, "the result of AndOrTree.build")
    if full and len(tree) > limit:
        raise ParameterError(
            f"full: got a tree of {len(tree)} nodes; expected at most {limit} for a drawing. Leave full out to see the "
            f"best plan, or give limit={len(tree)}."
        )
    own_figure = ax is None
    ax = new_axes(ax)  # before anything is measured, so that a missing matplotlib is named
    layout = _Layout(tree, view(tree, full=full, limit=limit), decimals, name)
    scale = fit_points(ax, layout.width, layout.height, own_figure)
    for node, place in zip(layout.shown.nodes, layout.places, strict=True):
        if node.parent >= 0:
            _draw_arc(ax, layout, node, place, scale)
    for node, place in zip(layout.shown.nodes, layout.places, strict=True):
        _draw_node(ax, layout, node, place, scale)
    _draw_frame(ax, layout, title, scale)
    return ax


@dataclass
class _Place:
    """Position of a node: the centre of its symbol, the lines of its text, and the start of its arcs."""

    x: float
    y: float
    lines: list[str]
    arc: str
    right: float


class _Layout:
    """Positions in points from measured text, with the origin at the upper left."""

    def __init__(self, tree: AndOrTree, shown: View, decimals: int, name: Callable[[Any], str]) -> None:
        self.tree = tree
        self.shown = shown
        self.decimals = decimals
        self.name: Callable[[Any], str] = lambda value: figure_text(name(value))
        self.beliefs = BeliefWords(tree.states, self.name, decimals, symbolic=_formula)
        levels = max(node.level for node in shown.nodes) + 1
        lines = [self._lines(node) for node in shown.nodes]
        arcs = [self._arc(node) for node in shown.nodes]
        widths = [
            max(_text_width(line, bold=_is_bold(node)) for line in text)
            for node, text in zip(shown.nodes, lines, strict=True)
        ]
        columns, x = [], _MARGIN + _SYMBOL
        for level in range(levels):
            members = [i for i, node in enumerate(shown.nodes) if node.level == level]
            if level:
                x += _FAN + max(_text_width(arcs[i], 0.92) for i in members) + 3 * _GAP + _SYMBOL
            columns.append(x)
            x += _SYMBOL + _GAP + max(widths[i] for i in members) + _GAP
        self.width = max(x + _MARGIN, _MARGIN + sum(_key_width(*entry) for entry in _key(self)), 300.0)
        self.height = _HEAD + _SLOT * shown.leaves + _FOOT
        self.places = []
        self.elbows = [0.0] * levels
        for node, text, arc, width in zip(shown.nodes, lines, arcs, widths, strict=True):
            place_x = columns[node.level]
            right = place_x + _SYMBOL + _GAP + width + _GAP
            self.places.append(_Place(place_x, _HEAD + _SLOT * (node.slot + 0.5), text, arc, right))
            if node.level + 1 < levels:
                self.elbows[node.level + 1] = max(self.elbows[node.level + 1], right + _FAN)

    def _lines(self, node: ViewNode) -> list[str]:
        """Return one line beside a leaf, two beside a node with arcs to its right."""
        parts = self._parts(node)
        if node.hidden:
            parts.append(f"{node.hidden} hidden")
        return parts if node.children else ["   ".join(parts)]

    def _parts(self, node: ViewNode) -> list[str]:
        if node.is_or:
            here = self.tree.or_nodes[node.index]
            value = "terminal" if here.kind == "terminal" else f"V {self._number(here.value)}"
            return [self.beliefs(here.belief), value]
        child = self.tree.and_nodes[node.index]
        star = " ★" if node.on_plan else ""
        label = self.name(child.action) + star
        if child.status == "illegal":
            return [label, "illegal"]
        if child.status == "pruned":
            return [label, f"pruned, Q ≤ {self._number(child.upper)}"]
        return [label, f"Q {self._number(child.q)}"]

    def _arc(self, node: ViewNode) -> str:
        if node.parent < 0:
            return ""
        if node.is_or:
            here = self.tree.or_nodes[node.index]
            return f"o={self.name(here.observation)} {self._number(here.probability)}"
        reward = self.tree.and_nodes[node.index].reward
        return "" if reward is None else f"R {self._number(reward, signed=True)}"

    def _number(self, value: Any, signed: bool = False) -> str:
        return words(value, decimals=self.decimals, signed=signed, symbolic=_formula)


def _formula(value: Any) -> str:
    """Return an expression in matplotlib's mathematical notation."""
    from sympy import latex

    return f"${latex(value)}$"


def _is_bold(node: ViewNode) -> bool:
    return not node.is_or and node.on_plan


def _text_width(text: str, size: float = 1.0, bold: bool = False) -> float:
    return text_width(text, _FONT * size, bold=bold)


def _draw_arc(ax: "Axes", layout: _Layout, node: ViewNode, place: _Place, scale: float) -> None:
    parent = layout.places[node.parent]
    colour, weight, layer = GREY, 0.9, 1
    if node.on_plan:
        chance = layout.tree.or_nodes[node.index].probability if node.is_or else 1
        colour, layer = ORANGE, 2
        weight = 1.4 + 1.8 * min(1.0, float(chance)) if _is_number(chance) else 2.4
    elbow = layout.elbows[node.level]
    ax.plot(
        [parent.right, elbow, place.x], [parent.y, place.y, place.y],
        color=colour, linewidth=weight * scale, zorder=layer, solid_joinstyle="round", solid_capstyle="round",
    )  # fmt: skip
    if place.arc:
        ax.text(
            place.x - _SYMBOL - _GAP, place.y - 3.6, place.arc,
            fontsize=_FONT * 0.92 * scale, color=INK, ha="right", va="baseline", zorder=4,
        )  # fmt: skip


def _is_number(value: Any) -> bool:
    return not hasattr(value, "free_symbols") or not value.free_symbols


def _draw_node(ax: "Axes", layout: _Layout, node: ViewNode, place: _Place, scale: float) -> None:
    expanded = node.is_or or layout.tree.and_nodes[node.index].status == "expanded"
    edge = (BLUE if node.is_or else ORANGE) if node.on_plan else (BLUE if node.is_or else INK)
    ax.plot(
        [place.x], [place.y],
        marker=">" if node.is_or else "o",
        markersize=2 * _SYMBOL * scale * (1.05 if node.is_or else 0.95),
        markerfacecolor=edge if node.on_plan else "white",
        markeredgecolor=edge if expanded else GREY,
        markeredgewidth=(1.6 if node.on_plan else 1.0) * scale,
        linestyle="none", zorder=3,
    )  # fmt: skip
    if not expanded:
        ax.plot([place.x], [place.y], marker="x", markersize=_SYMBOL * scale, color=GREY, zorder=3)
    x, step = place.x + _SYMBOL + _GAP, _FONT * 1.2
    top = place.y - step * (len(place.lines) - 1) / 2
    for i, line in enumerate(place.lines):
        ax.text(
            x, top + i * step, line,
            fontsize=_FONT * scale, color=INK if expanded else "#5b6670", va="center_baseline", zorder=4,
            fontweight="bold" if _is_bold(node) else "normal",
        )  # fmt: skip


def _draw_frame(ax: "Axes", layout: _Layout, title: str | None, scale: float) -> None:
    shown = layout.shown
    count = f"{len(shown.nodes)} of {shown.total} shown" if shown.collapsed else f"{shown.total} nodes"
    head = f"{title}   ({count})" if title else f"AND-OR tree, {count}"
    ax.text(_MARGIN, _HEAD - 12, head, fontsize=(_FONT + 1.5) * scale, color=INK, va="baseline", zorder=4)
    x, y = _MARGIN + _SYMBOL, layout.height - 11
    for marker, colour, text in _key(layout):
        if marker == "-":
            ax.plot([x - _SYMBOL, x + 2 * _SYMBOL], [y, y], color=colour, linewidth=2.6 * scale)
        else:
            if marker == "x":
                ax.plot([x], [y], marker="x", markersize=_SYMBOL * scale, color=colour, zorder=3)
                marker = "o"
            ax.plot(
                [x], [y], marker=marker, markersize=2 * _SYMBOL * scale, markerfacecolor="white", linestyle="none",
                markeredgecolor=colour, markeredgewidth=scale,
            )  # fmt: skip
        start = x + _SYMBOL + _GAP + (_SYMBOL if marker == "-" else 0)
        ax.text(start, y, text, fontsize=_FONT * 0.92 * scale, color=INK, va="center_baseline", zorder=4)
        x += _key_width(marker, colour, text)


def _key_width(marker: str, colour: str, text: str) -> float:
    """Return the distance to the next entry of the key."""
    return (2 if marker == "-" else 1) * _SYMBOL + _GAP + _text_width(text, 0.92) + 4 * _GAP


def _key(layout: _Layout) -> list[tuple[str, str, str]]:
    """Return marker, colour and meaning of each entry of the key."""
    actions = [layout.tree.and_nodes[node.index].status for node in layout.shown.nodes if not node.is_or]
    key = [(">", BLUE, f"belief {layout.beliefs.header() or 'b'}, V = max Q"), ("o", INK, "action, Q = R + γ Σ p V")]
    if any(status != "expanded" for status in actions):
        key.append(("x", GREY, "not expanded"))
    if any(not node.is_or and node.on_plan for node in layout.shown.nodes):
        key.append(("-", ORANGE, "best plan ★"))
    return key


def draw_bounds(solution: Solution, *, ax: "Axes | None" = None) -> "Axes":
    """Draw both bounds over CPU seconds, on a logarithmic scale.

    Args:
        solution: The result of `solve`.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: It is not a solution.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> draw_bounds(solve(tiger())).get_ylabel()
        'value at the start'
    """
    check_kind("solution", solution, Solution, "the result of solve")
    ax = new_axes(ax, width=6.4, height=3.6)
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # after a missing one was told

    seconds = [max(entry.seconds, 1e-3) for entry in solution.history]
    lower = [entry.lower for entry in solution.history]
    upper = [entry.upper for entry in solution.history]
    ax.step(seconds, upper, where="post", color=ORANGE, label=f"upper bound {solution.upper:z.6g}")
    ax.step(seconds, lower, where="post", color=BLUE, label=f"lower bound {solution.lower:z.6g}")
    ax.fill_between(seconds, lower, upper, step="post", color=GREY, alpha=0.15)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("CPU seconds")
    ax.set_ylabel("value at the start")
    ax.legend(frameon=False)
    return ax


_TITLE = "The three-node POMDP"
_SLIDERS = {
    "eta": ("η", "eta: the probability of descending to c1"),
    "r0": ("r₀", "r0: the reward of finding the item at the root"),
    "r1": ("r₁", "r1: the reward of finding the item in c1"),
    "r2": ("r₂", "r2: the reward of finding the item in c2"),
    "belief": ("b", "b: the belief that the item is in the catalogue"),
}
_MOST_DIGITS = 10**9
_HUGE_EXPONENT = re.compile(r"[eE][+-]?[\d_]{3,}")  # whose digits would fill the memory


def write_teaching_page(
    path: str | os.PathLike[str] | None = None,
    *,
    eta: Any = Fraction(3, 4),
    r0: Any = 0,
    r1: Any = Fraction(3, 5),
    r2: Any = Fraction(3, 5),
    belief: Any = 1,
    replace: bool = False,
) -> str:
    """Write a page on the three-node problem, a single HTML file with sliders, and return its text.

    The page needs neither Python nor a network. When a slider moves, it computes the AND-OR tree and the formulas of
    the paper's appendix in exact fractions. Numbers are shown as decimals or fractions, under both rules for ties.

    Args:
        path: The file to write; none by default.
        eta, r0, r1, r2, belief: The initial positions of the sliders, as for `pomdp_hier.three_node`: numbers from 0 to
            1, or texts such as ``"3/4"``.
        replace: Whether an existing file may be replaced.

    Raises:
        ParameterError: A number is not from 0 to 1, or has more than nine digits.
        PomdpHierError: The file exists, or cannot be written.

    Example:
        >>> write_teaching_page(eta="2/3")[:15]
        '<!doctype html>'

    References:
        Huang, Piao, Moreno and Hurley, appendix A.
    """
    start = {"eta": eta, "r0": r0, "r1": r1, "r2": r2, "belief": belief}
    sliders = joined(_slider(name, _share(name, value)) for name, value in start.items())
    page = filled(
        "teach.html",
        title=_TITLE,
        style=asset("page.css"),
        own_style=asset("teach.css"),
        sliders=sliders,
        script=asset("teach.js"),
    )
    if path is not None:
        write_file(path, page, replace=replace)
    return str(page)


def _share(name: str, value: Any) -> Fraction:
    """Return the number as a fraction; a float as the decimal that it is written as."""
    try:
        text = str(value)
        share = Fraction(-1 if _HUGE_EXPONENT.search(text) else value if isinstance(value, (int, Fraction)) else text)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1 or share.denominator >= _MOST_DIGITS or isinstance(value, bool):
        expected = "a number from 0 to 1 of at most nine digits, such as 0.75 or '3/4'"
        raise ParameterError(Argument(name), f": got {brief(value)}; expected {expected}.")
    return share


def _slider(name: str, share: Fraction) -> Html:
    symbol, label = _SLIDERS[name]
    return filled("teach_slider.html", name=name, symbol=symbol, label=label, value=float(share), text=_written(share))


def _written(share: Fraction) -> str:
    """Return a short decimal, or the fraction where there is none."""
    decimal = f"{float(share):z.4f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == share else str(share)
