"""The graph of a controller as data, text, DOT and TikZ; the figure is `pomdp_hier.report.draw_controller`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pomdp_hier._text import in_dot, in_latex, visible
from pomdp_hier.pomdp.belief import Belief


@dataclass(frozen=True)
class GraphNode:
    """A node: number, action, the first belief of a run there (``None``: not reached), and the value of that belief."""

    number: int
    action: Any
    belief: Belief | None
    value: float | None


@dataclass(frozen=True)
class GraphEdge:
    """An edge between two nodes, with its observations."""

    source: int
    target: int
    observations: tuple[Any, ...]


@dataclass(frozen=True)
class ControllerGraph:
    """The nodes and edges of a controller, with beliefs at the nodes and observations on the edges.

    Attributes:
        nodes: The nodes, by number.
        edges: The edges, by the number of the source.
        start: The number of the start node.
        name: The function that names states, actions and observations.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    start: int
    name: Callable[[Any], str] = str

    # --- labels --------------------------------------------------------------------------------------------------

    def belief_text(self, node: GraphNode, limit: int = 3) -> str:
        """Return the most probable states at a node, with their probabilities."""
        if node.belief is None:
            return "not reached"
        ranked = sorted(node.belief.items(), key=lambda pair: -float(pair[1]))
        parts = [f"{self.name(s)} {_short(float(p))}" for s, p in ranked[:limit]]
        return ", ".join(parts) + (f", {len(ranked) - limit} more" if len(ranked) > limit else "")

    def edge_text(self, edge: GraphEdge, limit: int = 4) -> str:
        """Return the observations of an edge."""
        parts = [self.name(o) for o in edge.observations[:limit]]
        more = len(edge.observations) - limit
        return ", ".join(parts) + (f", {more} more" if more > 0 else "")

    # --- formats -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return nodes and edges as plain values."""
        return {
            "start": self.start,
            "nodes": [
                {
                    "node": node.number,
                    "action": self.name(node.action),
                    "belief": None if node.belief is None else {self.name(s): float(p) for s, p in node.belief.items()},
                    "value": node.value,
                }
                for node in self.nodes
            ],
            "edges": [
                {"source": e.source, "target": e.target, "observations": [self.name(o) for o in e.observations]}
                for e in self.edges
            ],
        }

    def to_text(self) -> str:
        """Return one line per node, with ``*`` at the start, and one per edge."""
        width = max(len(visible(self.name(node.action))) for node in self.nodes)
        values = ["" if node.value is None else f"V {node.value:.6g}" for node in self.nodes]
        wide = max(map(len, values))
        lines = []
        for node, value in zip(self.nodes, values, strict=True):
            mark = "*" if node.number == self.start else " "
            action = visible(self.name(node.action)).ljust(width)
            lines.append(f"{mark} {node.number} {action}  {value.ljust(wide)}  {visible(self.belief_text(node))}")
            lines += [
                f"      {visible(self.edge_text(edge))} -> {edge.target}"
                for edge in self.edges
                if edge.source == node.number
            ]
        return "\n".join(line.rstrip() for line in lines)

    def to_dot(self) -> str:
        """Return the graph in DOT, the language of Graphviz."""
        lines = [
            "digraph controller {",
            "  graph [rankdir=LR, fontname=Helvetica];",
            '  node [shape=box, style=rounded, fontname=Helvetica, fontsize=10, color="#1d2126"];',
            '  edge [fontname=Helvetica, fontsize=9, color="#9aa3ab"];',
        ]
        for node in self.nodes:
            label = in_dot(f"{node.number} {self.name(node.action)}", self.belief_text(node))
            bold = ", penwidth=2.5" if node.number == self.start else ""
            lines.append(f"  n{node.number} [label={label}{bold}];")
        lines += [f"  n{e.source} -> n{e.target} [label={in_dot(self.edge_text(e))}];" for e in self.edges]
        return "\n".join([*lines, "}"])

    def positions(self) -> dict[int, tuple[float, float]]:
        """Return the position of each node on the unit circle, clockwise from the start at the top."""
        order = [self.start, *(n.number for n in self.nodes if n.number != self.start)]
        turn = 2 * math.pi / len(order)
        return {k: (math.sin(i * turn), math.cos(i * turn)) for i, k in enumerate(order)}

    def to_tikz(self) -> str:
        """Return the graph as a TikZ picture, with the nodes on a circle."""
        radius = max(2.0, 0.6 * len(self.nodes))
        lines = [
            r"\begin{tikzpicture}[->, every node/.style={font=\small}, "
            r"state/.style={draw, rounded corners, align=center}]"
        ]
        for k, (x, y) in self.positions().items():
            node = self.nodes[k]
            words = rf"{node.number} {in_latex(self.name(node.action))}\\{in_latex(self.belief_text(node))}"
            style = "state, very thick" if k == self.start else "state"
            lines.append(rf"  \node[{style}] (n{k}) at ({radius * x:z.2f}, {radius * y:z.2f}) {{{words}}};")
        for e in self.edges:
            bend = "loop above" if e.source == e.target else "bend left=12"
            label = in_latex(self.edge_text(e))
            lines.append(rf"  \draw (n{e.source}) to[{bend}] node[auto, font=\scriptsize] {{{label}}} (n{e.target});")
        return "\n".join([*lines, r"\end{tikzpicture}"])


def _short(p: float) -> str:
    return f"{p:.3g}".replace("0.", ".", 1) if p < 1 else f"{p:.3g}"
