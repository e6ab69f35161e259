"""The figure of a controller: its graph in layers from the start."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import check_kind
from pomdp_hier._text import counted, short_percent, shortened
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.controllers.graph import ControllerGraph, GraphEdge, GraphNode, Track
from pomdp_hier.report.elements import BLUE, INK, ORANGE, figure_text, fit_points, new_axes, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Lengths in points at full size.
_FONT = 9.0
_LINE = 12.5
_PAD = 6.0
_GAP = 52.0  # between two layers
_ROOM = 14.0  # between two nodes of a layer
_TRACK = 7.0  # the height of a track
_BAR = (9.0, 15.0)  # the width and full height of a bar
_MOST_BARS = 5  # states
_TURN = 30.0  # how far an edge that turns back swings out
_SLIDE = (13.33, 7.5)  # inches
_EXCESS = 1.25  # the largest figure, in slides: text of 7 points on one
_COLOURS = (BLUE, ORANGE, "#3d8a78", "#a6217b", "#4d4d4d", "#1b9dd0", "#7f3b08", "#6a51a3", "#8a8a00", "#c0392b")
_WIDEST = 130.0  # a belief as text


def draw_controller(
    controller: FiniteStateController, *, limit: int = 30, name: Callable[[Any], str] = str, ax: "Axes | None" = None
) -> "Axes":
    """Draw a finite-state controller in layers, its start node at the left with a heavy frame.

    A node shows its number and action, its value, its share of the (discounted) steps, and the belief at the first
    visit of a run. Beliefs over at most five states are drawn as bars. Each line below is an edge: its observations,
    the number of the next node, and an arrow to it. All arrows to a node have the colour of its frame and meet at its
    arrowhead. Edges to a later layer arrive from the left, others from the right.

    Args:
        controller: The controller.
        limit: The largest number of nodes. Of a larger controller, the most visited nodes are drawn, and the share of
            the steps in the others is given.
        name: The function that names states, actions and observations.
        ax: Where to draw; text and boxes shrink until the graph fits. By default a new figure.

    Raises:
        ParameterError: It is not a controller, or the limit is not a positive integer.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> draw_controller(solve(tiger(), horizon=1).controller()).get_title()
        'controller of 1 node'

    References:
        Sugiyama, Tagawa and Toda (1981), for the layers.
    """
    check_kind("controller", controller, FiniteStateController, "the result of Solution.controller")
    graph = controller.graph(limit=limit, name=lambda value: figure_text(name(value)))
    own_figure = ax is None
    ax = new_axes(ax, width=_SLIDE[0], height=_SLIDE[1])
    layout = _fitting(graph)
    scale = fit_points(ax, layout.width, layout.height, own_figure)
    for edge in layout.graph.edges:
        _draw_edge(ax, layout, edge, scale)
    for node in graph.nodes:
        _draw_node(ax, layout, node, scale)
    for k, (x, y) in enumerate(layout.notes):
        ax.text(x, y, layout.lines[k], fontsize=_FONT * 0.9 * scale, color=INK, va="center_baseline")
    size = len(graph.nodes)
    total = size + graph.n_left_out + len(graph.unreached)
    title = f"controller of {counted(size, 'node')}" if size == total else f"{size} of {total} nodes of a controller"
    ax.set_title(title, fontsize=11 * scale, y=1.0, pad=-15 * scale)
    return ax


def _fitting(graph: ControllerGraph) -> "_Layout":
    """Return a layout no larger than a slide, if need be with packed layers and only the most probable edges."""
    tried = []
    for most in (len(graph.nodes), 6, 4, 3, 2):
        sizes = _Sizes(graph.most_probable(most))
        for packed in (False, True):
            rows = min(range(3, 9), key=lambda rows: sizes.excess(sizes.graph.partition(rows, packed=packed)))
            for near in (rows, rows - 1, rows - 2):  # tracks take space as well
                tried.append(_Layout(sizes, sizes.graph.layout(max(near, 2), packed=packed)))
                if tried[-1].excess <= _EXCESS:
                    return tried[-1]
    return min(tried, key=lambda layout: layout.excess)


@dataclass
class _Box:
    """A node's place: the left upper corner, its size, and the height of each of its lines."""

    x: float
    y: float
    width: float
    height: float
    head: float
    rows: dict[int, float]
    last: float = 0.0


class _Sizes:
    """The words of each node, and its size in points."""

    def __init__(self, graph: ControllerGraph) -> None:
        self.graph = graph
        states = list(dict.fromkeys(state for node in graph.nodes for state in node.belief))
        self.bars = states if len(states) <= _MOST_BARS else []
        self.nodes = {node.number: node for node in graph.nodes}
        self.edges = {k: [e for e in graph.edges if e.source == k] for k in self.nodes}
        self.words = {k: self._words(node) for k, node in self.nodes.items()}
        self.size = {k: self._size(k) for k in self.nodes}

    def excess(self, layers: list[list[int]]) -> float:
        """Return the ratio of the layers' size to a slide, without tracks."""
        width = sum(max(self.size[k][0] for k in layer) + _GAP for layer in layers)
        height = max(sum(self.size[k][1] + _ROOM for k in layer) for layer in layers) + 3 * _LINE
        return max(width / 72 / _SLIDE[0], height / 72 / _SLIDE[1])

    def edge_line(self, edge: GraphEdge) -> str:
        """Return the line of an edge: its observations and the number of its target."""
        return f"{self.graph.edge_text(edge, 3)} → {edge.target}"

    def others(self, k: int) -> list[str]:
        """Return the lines of a node below its edges: the edges left out, and the end of the run."""
        node, edges = self.nodes[k], self.edges[k]
        rest = 1 - node.ends - sum(edge.probability for edge in edges)
        out = [f"others {short_percent(rest)}"] if rest > 1e-9 else []
        return [*out, *(["run ends"] if node.ends else [])]

    def _words(self, node: GraphNode) -> tuple[str, str, str]:
        """Return the head of a node, its second line, and its belief (empty if drawn as bars)."""
        second = f"V {node.value:.4g}   {short_percent(node.share)}"
        head = f"{node.number}:  {self.graph.name(node.action)}"
        return head, second, "" if self.bars else self._belief(node, max(_WIDEST, _wide(head, bold=True)))

    def _belief(self, node: GraphNode, most: float) -> str:
        """Return the belief as text, with as many states as there is room for."""
        for limit in (2, 1):
            text = self.graph.belief_text(node, limit)
            if _wide(text, 0.85) <= most:
                return text
        return shortened(text, max(8, int(len(text) * most / _wide(text, 0.85))))

    def _size(self, k: int) -> tuple[float, float]:
        head, second, belief = self.words[k]
        bars = _PAD + _BAR[0] * len(self.bars) + 4 if self.bars else 0.0
        wide = max(_wide(head, bold=True), _wide(second, 0.85)) + bars
        rows = [*map(self.edge_line, self.edges[k]), *self.others(k)]
        wide = max([wide, _wide(belief, 0.85), *(_wide(row, 0.85) + 8 for row in rows)])
        return wide + 2 * _PAD, _PAD + _LINE * (2 + bool(belief) + len(rows)) + _PAD / 2


class _Layout:
    """Positions in points, with the origin at the upper left: a box per node, and the height of each track."""

    def __init__(self, sizes: _Sizes, layers: list[list[int | Track]]) -> None:
        self.sizes = sizes
        self.graph = sizes.graph
        self.layers = layers
        self.of = {k: i for i, layer in enumerate(layers) for k in layer if not isinstance(k, Track)}
        self.colour = {k: _COLOURS[i % len(_COLOURS)] for i, k in enumerate(sizes.nodes)}
        self.lines = [*self._key(), *self.graph.notes()]
        heights = self._heights()
        tops = {item: heights[item] - self._tall(item) / 2 for item in heights}
        shift = _PAD + 20.0 - min(tops.values())
        bottom = max(tops[item] + self._tall(item) for item in heights) + shift
        x = _PAD + _TURN / 2
        self.boxes: dict[int, _Box] = {}
        self.tracks: dict[Track, tuple[float, float, float]] = {}
        for layer in layers:
            width = max([sizes.size[k][0] for k in layer if not isinstance(k, Track)])
            for item in layer:
                if isinstance(item, Track):
                    self.tracks[item] = (x, x + width, heights[item] + shift)
                else:
                    top = tops[item] + shift
                    self.boxes[item] = _Box(x, top, width, self._tall(item), top + _PAD + _LINE / 2, {})
            x += width + _GAP
        self.notes = [(_PAD, bottom + _LINE * (k + 1.6)) for k in range(len(self.lines))]
        self.width = max(x - _GAP + _TURN + _PAD, *(2 * _PAD + _wide(line, 0.9) for line in self.lines))
        self.height = bottom + _LINE * (len(self.lines) + 1.6)
        for k, box in self.boxes.items():
            self._order_rows(k, box)

    @property
    def excess(self) -> float:
        """The ratio of the figure's size to a slide."""
        return max(self.width / 72 / _SLIDE[0], self.height / 72 / _SLIDE[1])

    def _tall(self, item: int | Track) -> float:
        return _TRACK if isinstance(item, Track) else self.sizes.size[item][1]

    def _order_rows(self, k: int, box: _Box) -> None:
        """Put the edges of a node in the order of what they lead to, from the top down."""

        def towards(edge: GraphEdge) -> float:
            way = self.graph.passage(edge, self.of)
            return self.tracks[way[0]][2] if way else self.boxes[edge.target].head

        y = box.head + _LINE * (2 + bool(self.sizes.words[k][2]))
        for edge in sorted(self.sizes.edges[k], key=towards):
            box.rows[edge.target] = y
            y += _LINE
        box.last = y

    def _heights(self) -> dict[int | Track, float]:
        """Return the middle of each item: near the mean of its neighbours, in the order of its layer."""
        from scipy.optimize import isotonic_regression

        near: dict[int | Track, list[int | Track]] = {item: [] for layer in self.layers for item in layer}
        for edge in self.graph.edges:
            way: list[int | Track] = [edge.source, *self.graph.passage(edge, self.of), edge.target]
            for a, b in pairwise(way):
                if a != b:
                    near[a].append(b)
                    near[b].append(a)
        offsets: dict[int | Track, float] = {}
        for layer in self.layers:
            tall = np.array([self._tall(item) + (0 if isinstance(item, Track) else _ROOM) for item in layer])
            offsets.update(zip(layer, np.cumsum(tall) - tall / 2 - tall.sum() / 2, strict=True))
        place = {item: float(y) for item, y in offsets.items()}
        for _ in range(12):
            for layer in self.layers:
                wanted = [
                    np.mean([place[other] for other in near[item]] or [place[item]]) - offsets[item] for item in layer
                ]
                weights = [1.0 + 2.0 * (not isinstance(item, Track)) for item in layer]
                moved = isotonic_regression(wanted, weights=weights).x
                place.update({item: float(y + offsets[item]) for item, y in zip(layer, moved, strict=True)})
        return place

    def _key(self) -> list[str]:
        names = ", ".join(self.graph.name(state) for state in self.sizes.bars)
        bars = f"bars from left to right: probability of {names}; " if self.sizes.bars else ""
        less = any(line.startswith("others") for k in self.of for line in self.sizes.others(k))
        others = "; others: edges left out" if less else ""
        return [f"in bold: node and action; {bars}V: value of this belief; %: share of the steps of a run{others}"]


def _wide(text: str, size: float = 1.0, *, bold: bool = False) -> float:
    """Return the width of a text in points."""
    return text_width(text, _FONT * size, bold=bold)


def _draw_node(ax: "Axes", layout: _Layout, node: GraphNode, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    k, box = node.number, layout.boxes[node.number]
    head, second, belief = layout.sizes.words[k]
    colour = layout.colour[k]
    frame = FancyBboxPatch(
        (box.x, box.y), box.width, box.height, boxstyle="round,pad=0,rounding_size=4",
        facecolor="white", edgecolor=colour, linewidth=(3.0 if k == layout.graph.start else 1.3) * scale, zorder=3,
        gid=f"node {k}",
    )  # fmt: skip
    ax.add_patch(frame)
    look: dict[str, Any] = {"color": INK, "va": "center_baseline", "zorder": 4}
    small = {"fontsize": 0.85 * _FONT * scale, **look}
    ax.text(box.x + _PAD, box.head, head, fontsize=_FONT * scale, fontweight="bold", **look)
    ax.text(box.x + _PAD, box.head + _LINE, second, **small)
    if belief:
        ax.text(box.x + _PAD, box.head + 2 * _LINE, belief, **small)
    foot = box.head + _LINE / 2 + _BAR[1] / 2
    for j, state in enumerate(layout.sizes.bars):
        x = box.x + box.width - _PAD - _BAR[0] * (len(layout.sizes.bars) - j)
        ax.add_patch(Rectangle((x, foot - _BAR[1]), _BAR[0] - 1.5, _BAR[1], facecolor="#e9ecef", lw=0, zorder=4))
        tall = _BAR[1] * float(node.belief[state])
        ax.add_patch(Rectangle((x, foot - tall), _BAR[0] - 1.5, tall, facecolor=INK, lw=0, zorder=5))
    right = box.x + box.width
    for edge in layout.sizes.edges[k]:
        y = box.rows[edge.target]
        ax.text(right - _PAD - 2, y, layout.sizes.edge_line(edge), ha="right", **small)
        ax.plot([right], [y], marker="o", ms=4.5 * scale, color=layout.colour[edge.target], zorder=5)
    for j, line in enumerate(layout.sizes.others(k)):
        y = box.last + j * _LINE
        ax.text(right - _PAD - 2, y, line, ha="right", **small)
        marker = "s" if line == "run ends" else "|"
        ax.plot([right], [y], marker=marker, ms=5 * scale, color=INK, zorder=5)


def _draw_edge(ax: "Axes", layout: _Layout, edge: GraphEdge, scale: float) -> None:
    """Draw an edge from its line in the source, through its tracks, to the head of the target."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    source, target = layout.boxes[edge.source], layout.boxes[edge.target]
    back = layout.of[edge.target] <= layout.of[edge.source]
    points = [(source.x + source.width, source.rows[edge.target], 1)]  # x, y and the direction there
    for track in layout.graph.passage(edge, layout.of):
        left, right, y = layout.tracks[track]
        points += [(right, y, -1), (left, y, -1)] if back else [(left, y, 1), (right, y, 1)]
    tip = target.x + target.width + 7 if back else target.x - 7
    points.append((tip, target.head, -1 if back else 1))
    codes, vertices = [Path.MOVETO], [points[0][:2]]
    for (x, y, way), (u, v, then) in pairwise(points):
        swing = _TURN if way != then else abs(u - x) / 2
        vertices += [(x + way * swing, y), (u - then * swing, v), (u, v)]
        codes += [Path.CURVE4] * 3
    colour = layout.colour[edge.target]
    path = Path(vertices, codes)
    ax.add_patch(PathPatch(path, facecolor="none", edgecolor="white", lw=3.2 * scale, zorder=1, capstyle="butt"))
    ax.add_patch(
        PathPatch(
            path, facecolor="none", edgecolor=colour, lw=1.4 * scale, zorder=1, gid=f"edge {edge.source} {edge.target}"
        )
    )
    marker = "<" if back else ">"
    ax.plot([tip], [target.head], marker=marker, ms=8 * scale, color=colour, zorder=4, markeredgewidth=0)
