"""The graph of a controller as data, text, DOT and TikZ; the figure is `pomdp_hier.report.draw_controller`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pomdp_hier._text import visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.and_or.markup import in_dot, in_latex
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.pomdp import Belief


@dataclass(frozen=True)
class GraphNode:
    """A node: its number, its action, the belief at which it is first met (``None``: never), its value there."""

    number: int
    action: Any
    belief: Belief | None
    value: float | None


@dataclass(frozen=True)
class GraphEdge:
    """An edge from one node to another, with the observations that lead along it."""

    source: int
    target: int
    observations: tuple[Any, ...]


class PolicyGraph:
    """The graph of a controller, ready to be drawn: beliefs at the nodes, observations on the edges.

    Args:
        controller: The controller; minimise it first for the smallest drawing.
        name: How a state, action or observation is called; `str` by default.
        limit: How many nodes may be drawn.

    Raises:
        ParameterError: The controller has more nodes.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> controller = solve(tiger(), horizon=2).controller()
        >>> print(PolicyGraph(controller).to_text())
        * 0 listen  V -1.95  tiger-left .5, tiger-right .5
              hear-left, hear-right -> 1
          1 listen  V -1     tiger-left .85, tiger-right .15
    """

    def __init__(
        self, controller: FiniteStateController, *, name: Callable[[Any], str] = str, limit: int = 200
    ) -> None:
        if len(controller) > limit:
            raise ParameterError(
                f"limit: the controller has {len(controller)} nodes; minimise it, solve less precisely, or raise the "
                f"limit of {limit}"
            )
        self.controller = controller
        self._name = name
        beliefs = controller.beliefs()
        compiled = controller.problem.compiled
        self.nodes = tuple(
            GraphNode(k, action, belief, None if belief is None else self._value(k, belief))
            for k, (action, belief) in enumerate(zip(controller.action_names, beliefs, strict=True))
        )
        edges = []
        for k, row in enumerate(controller.after.tolist()):
            made = {
                int(c) // compiled.n_states for c in outcome_matrix(compiled, int(controller.actions[k])).tocoo().col
            }
            by_target: dict[int, list[Any]] = {}
            for o, then in enumerate(row):
                if then >= 0 and o in made:
                    by_target.setdefault(then, []).append(compiled.observations[o])
            edges += [GraphEdge(k, then, tuple(seen)) for then, seen in by_target.items()]
        self.edges = tuple(edges)

    def _value(self, k: int, belief: Belief) -> float:
        weights = self.controller.problem.compiled.vector(belief)
        return float(self.controller.values[k, weights > 0] @ weights[weights > 0])

    # --- words ---------------------------------------------------------------------------------------------------

    def belief_text(self, node: GraphNode, most: int = 3) -> str:
        """Return the most probable states at a node, with their probabilities."""
        if node.belief is None:
            return "not met"
        ranked = sorted(node.belief.items(), key=lambda pair: -float(pair[1]))
        parts = [f"{self._name(s)} {_short(float(p))}" for s, p in ranked[:most]]
        return ", ".join(parts) + (f", {len(ranked) - most} more" if len(ranked) > most else "")

    def edge_text(self, edge: GraphEdge, most: int = 4) -> str:
        """Return the observations on an edge."""
        parts = [self._name(o) for o in edge.observations[:most]]
        more = len(edge.observations) - most
        return ", ".join(parts) + (f", {more} more" if more > 0 else "")

    # --- forms ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return nodes and edges as plain values, fit for JSON."""
        return {
            "start": self.controller.start,
            "nodes": [
                {
                    "node": node.number,
                    "action": self._name(node.action),
                    "belief": None
                    if node.belief is None
                    else {self._name(s): float(p) for s, p in node.belief.items()},
                    "value": node.value,
                }
                for node in self.nodes
            ],
            "edges": [
                {"from": e.source, "to": e.target, "observations": [self._name(o) for o in e.observations]}
                for e in self.edges
            ],
        }

    def to_text(self) -> str:
        """Return a line for each node, ``*`` at the start, and one for each edge."""
        width = max(len(visible(self._name(node.action))) for node in self.nodes)
        values = ["" if node.value is None else f"V {node.value:.6g}" for node in self.nodes]
        wide = max(map(len, values))
        lines = []
        for node, value in zip(self.nodes, values, strict=True):
            mark = "*" if node.number == self.controller.start else " "
            action = visible(self._name(node.action)).ljust(width)
            lines.append(f"{mark} {node.number} {action}  {value.ljust(wide)}  {visible(self.belief_text(node))}")
            lines += [
                f"      {visible(self.edge_text(edge))} -> {edge.target}"
                for edge in self.edges
                if edge.source == node.number
            ]
        return "\n".join(line.rstrip() for line in lines)

    def to_dot(self) -> str:
        """Return the graph in Graphviz's language."""
        lines = [
            "digraph controller {",
            "  graph [rankdir=LR, fontname=Helvetica];",
            '  node [shape=box, style=rounded, fontname=Helvetica, fontsize=10, color="#1d2126"];',
            '  edge [fontname=Helvetica, fontsize=9, color="#9aa3ab"];',
        ]
        for node in self.nodes:
            label = in_dot(f"{node.number} {self._name(node.action)}", self.belief_text(node))
            bold = ", penwidth=2.5" if node.number == self.controller.start else ""
            lines.append(f"  n{node.number} [label={label}{bold}];")
        lines += [f"  n{e.source} -> n{e.target} [label={in_dot(self.edge_text(e))}];" for e in self.edges]
        return "\n".join([*lines, "}"])

    def places(self) -> dict[int, tuple[float, float]]:
        """Return where each node stands on a circle of radius 1, the start at its top, then clockwise."""
        order = [self.controller.start, *(n.number for n in self.nodes if n.number != self.controller.start)]
        turn = 2 * math.pi / len(order)
        return {k: (math.sin(i * turn), math.cos(i * turn)) for i, k in enumerate(order)}

    def to_tikz(self) -> str:
        """Return the graph as a TikZ picture, the nodes on a circle."""
        radius = max(2.0, 0.6 * len(self.nodes))
        lines = [
            r"\begin{tikzpicture}[->, every node/.style={font=\small}, "
            r"state/.style={draw, rounded corners, align=center}]"
        ]
        for k, (x, y) in self.places().items():
            node = self.nodes[k]
            words = rf"{node.number} {in_latex(self._name(node.action))}\\{in_latex(self.belief_text(node))}"
            style = "state, very thick" if k == self.controller.start else "state"
            lines.append(rf"  \node[{style}] (n{k}) at ({radius * x:z.2f}, {radius * y:z.2f}) {{{words}}};")
        for e in self.edges:
            bend = "loop above" if e.source == e.target else "bend left=12"
            label = in_latex(self.edge_text(e))
            lines.append(rf"  \draw (n{e.source}) to[{bend}] node[auto, font=\scriptsize] {{{label}}} (n{e.target});")
        return "\n".join([*lines, r"\end{tikzpicture}"])


def _short(p: float) -> str:
    return f"{p:.3g}".replace("0.", ".", 1) if p < 1 else f"{p:.3g}"
