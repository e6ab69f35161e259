"""The graph of a controller: visits of a run, layers, and the forms data, text, DOT and TikZ.

The figure is `pomdp_hier.report.draw_controller`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Floats, check_integer
from pomdp_hier._text import counted, in_dot, in_latex, short_percent, visible
from pomdp_hier.planning.decision import outcome_matrix
from pomdp_hier.pomdp.belief import Belief

if TYPE_CHECKING:
    from pomdp_hier.planning.controllers.controller import FiniteStateController

_LONGEST = 0.999  # the discount of visits, at most: a run without a discount may not terminate
_SWEEPS = 24
_ROWS = 6


@dataclass(frozen=True)
class GraphNode:
    """A node of the graph.

    Attributes:
        number: Its number in the controller.
        action: Its action.
        belief: The first belief of a run there; the mean one, if only long runs lead there.
        value: The value of that belief.
        share: The share of the steps of a run that are taken here, discounted.
        ends: The probability that the run ends with a step from here.
    """

    number: int
    action: Any
    belief: Belief
    value: float
    share: float
    ends: float = 0.0


@dataclass(frozen=True)
class GraphEdge:
    """An edge between two nodes: its observations, and their probability at a visit of the source."""

    source: int
    target: int
    observations: tuple[Any, ...]
    probability: float


@dataclass(frozen=True)
class Track:
    """The passage of all edges to a node through a layer, to the right or back to the left."""

    target: int
    layer: int


@dataclass(frozen=True)
class ControllerGraph:
    """The nodes and edges that a run from the start visits, with beliefs and observations.

    Attributes:
        nodes: The nodes, by number.
        edges: The edges, by the number of the source.
        start: The number of the start node.
        unreached: The numbers of the nodes at which no step of a run is taken.
        n_left_out: The number of visited nodes beyond the limit, which are left out.
        left_out_share: The share of the steps that are taken at these.
        name: The function that names states, actions and observations.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    start: int
    unreached: tuple[int, ...] = ()
    n_left_out: int = 0
    left_out_share: float = 0.0
    name: Callable[[Any], str] = field(default=str, repr=False)

    # --- labels --------------------------------------------------------------------------------------------------

    def belief_text(self, node: GraphNode, limit: int = 3) -> str:
        """Return the most probable states at a node, with their probabilities."""
        ranked = sorted(node.belief.items(), key=lambda pair: -float(pair[1]))
        parts = [f"{self.name(s)} {_short(float(p))}" for s, p in ranked[:limit]]
        return ", ".join(parts) + (f", {len(ranked) - limit} more" if len(ranked) > limit else "")

    def edge_text(self, edge: GraphEdge, limit: int = 4) -> str:
        """Return the observations of an edge."""
        parts = [self.name(o) for o in edge.observations[:limit]]
        more = len(edge.observations) - limit
        return ", ".join(parts) + (f", {more} more" if more > 0 else "")

    def notes(self) -> list[str]:
        """Return a line for the nodes left out beyond the limit, and one for those that no run uses."""
        lines = []
        if self.n_left_out:
            nodes = counted(self.n_left_out, "less visited node")
            lines.append(f"{nodes} left out, with {short_percent(self.left_out_share)} of the steps")
        if self.unreached:
            shown = ", ".join(map(str, self.unreached[:8]))
            more = f" and {len(self.unreached) - 8} more" if len(self.unreached) > 8 else ""
            lines.append(f"no step of a run from the start is taken at {shown}{more}")
        return lines

    def most_probable(self, most: int) -> "ControllerGraph":
        """Return the graph with the ``most`` most probable edges of each node."""
        kept = {e for of in self._edges_of.values() for e in sorted(of, key=lambda e: -e.probability)[:most]}
        return replace(self, edges=tuple(e for e in self.edges if e in kept))

    @cached_property
    def _edges_of(self) -> dict[int, list[GraphEdge]]:
        found: dict[int, list[GraphEdge]] = {node.number: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.source].append(edge)
        return found

    # --- layers --------------------------------------------------------------------------------------------------

    def layers(self, most: int = _ROWS) -> list[list[int]]:
        """Return the nodes by their distance from the start, in layers of at most ``most``, ordered for few crossings.

        Example:
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> [len(layer) for layer in solve(tiger()).controller().graph().layers()]
            [1, 2, 2]
        """
        return [[item for item in layer if not isinstance(item, Track)] for layer in self.layout(most)]

    def partition(self, most: int = _ROWS, *, packed: bool = False) -> list[list[int]]:
        """Return the nodes by their distance from the start, in layers of at most ``most`` nodes.

        Packed layers are filled one after another, so that one may have nodes of two distances.
        """
        import networkx as nx

        graph = nx.DiGraph((edge.source, edge.target) for edge in self.edges)
        graph.add_nodes_from(node.number for node in self.nodes)
        found = [sorted(layer) for layer in nx.bfs_layers(graph, [self.start])]
        alone = sorted(set(graph) - {k for layer in found for k in layer})  # reached through nodes that are left out
        if packed:
            found, alone = [[self.start], [k for layer in found[1:] for k in layer] + alone], []
        return [part for layer in [*found, alone] for part in _parts(layer, most)]

    def layout(self, most: int = _ROWS, *, packed: bool = False) -> list[list[int | Track]]:
        """Return the layers from left to right, each with its nodes and tracks from top to bottom.

        An edge leads to the next layer, or turns back within its own; longer ones run through the tracks of the target.

        References:
            Sugiyama, Tagawa and Toda (1981).
        """
        parts = self.partition(most, packed=packed)
        of = {k: i for i, layer in enumerate(parts) for k in layer}
        ways = {edge: self.passage(edge, of) for edge in self.edges}
        items: list[list[int | Track]] = [list(layer) for layer in parts]
        for track in dict.fromkeys(track for way in ways.values() for track in way):
            items[track.layer].append(track)
        return _few_crossings(items, {pair for edge, way in ways.items() for pair in _links(edge, way)})

    def passage(self, edge: GraphEdge, layer: dict[int, int]) -> list[Track]:
        """Return the tracks of an edge, in its direction, from the layer of each node."""
        source, target = layer[edge.source], layer[edge.target]
        between = range(source + 1, target) if target > source else range(source, target, -1)
        return [Track(edge.target, i) for i in between]

    # --- formats -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return nodes and edges as plain values."""
        return {
            "start": self.start,
            "nodes": [
                {
                    "node": node.number,
                    "action": self.name(node.action),
                    "belief": {self.name(s): float(p) for s, p in node.belief.items()},
                    "value": node.value,
                    "share": node.share,
                    "ends": node.ends,
                }
                for node in self.nodes
            ],
            "edges": [
                {
                    "source": e.source,
                    "target": e.target,
                    "observations": [self.name(o) for o in e.observations],
                    "probability": e.probability,
                }
                for e in self.edges
            ],
            "unreached": list(self.unreached),
            "n_left_out": self.n_left_out,
            "left_out_share": self.left_out_share,
        }

    def to_text(self) -> str:
        """Return one line per node, with ``*`` at the start, and one per edge."""
        width = max(len(visible(self.name(node.action))) for node in self.nodes)
        values = [f"V {node.value:.6g}" for node in self.nodes]
        wide = max(map(len, values))
        lines = []
        for node, value in zip(self.nodes, values, strict=True):
            mark = "*" if node.number == self.start else " "
            action = visible(self.name(node.action)).ljust(width)
            lines.append(f"{mark} {node.number} {action}  {value.ljust(wide)}  {visible(self.belief_text(node))}")
            lines += [f"      {visible(self.edge_text(edge))} -> {edge.target}" for edge in self._edges_of[node.number]]
            if node.ends:
                lines.append(f"      ends with probability {node.ends:.4g}")
        return "\n".join(line.rstrip() for line in [*lines, *self.notes()])

    def to_dot(self) -> str:
        """Return the graph in DOT, the language of Graphviz, in layers from the start."""
        lines = [
            "digraph controller {",
            "  graph [rankdir=LR, fontname=Helvetica];",
            '  node [shape=box, style=rounded, fontname=Helvetica, fontsize=10, color="#1d2126"];',
            '  edge [fontname=Helvetica, fontsize=9, color="#5b6670"];',
        ]
        for node in self.nodes:
            label = in_dot(f"{node.number} {self.name(node.action)}", self.belief_text(node))
            bold = ", penwidth=2.5" if node.number == self.start else ""
            lines.append(f"  n{node.number} [label={label}{bold}];")
        layers = self.layers()
        lines += [f"  {{rank=same; {' '.join(f'n{k};' for k in layer)}}}" for layer in layers]
        of = {k: i for i, layer in enumerate(layers) for k in layer}
        for e in self.edges:
            back = "" if of[e.target] > of[e.source] else ", constraint=false"
            lines.append(f"  n{e.source} -> n{e.target} [label={in_dot(self.edge_text(e))}{back}];")
        if self.notes():
            lines.append(f"  label={in_dot(*self.notes())};")
        return "\n".join([*lines, "}"])

    def to_tikz(self) -> str:
        """Return the graph as a TikZ picture, with the nodes in layers from the start."""
        lines = [
            r"\begin{tikzpicture}[->, every node/.style={font=\small}, "
            r"state/.style={draw, rounded corners, align=center}]"
        ]
        at: dict[int, tuple[float, float]] = {}
        for i, layer in enumerate(self.layers()):
            at |= {k: (5.0 * i, 2.0 * ((len(layer) - 1) / 2 - j)) for j, k in enumerate(layer)}
        for node in self.nodes:
            x, y = at[node.number]
            words = rf"{node.number} {in_latex(self.name(node.action))}\\{in_latex(self.belief_text(node))}"
            style = "state, very thick" if node.number == self.start else "state"
            lines.append(rf"  \node[{style}] (n{node.number}) at ({x:z.2f}, {y:z.2f}) {{{words}}};")
        for e in self.edges:
            back = at[e.target][0] <= at[e.source][0]
            bend = "loop above" if e.source == e.target else "bend left=28" if back else "bend left=8"
            label = rf"node[near start, auto, font=\scriptsize] {{{in_latex(self.edge_text(e))}}}"
            lines.append(rf"  \draw (n{e.source}) to[{bend}] {label} (n{e.target});")
        return "\n".join([*lines, r"\end{tikzpicture}"])


def controller_graph(
    controller: "FiniteStateController", name: Callable[[Any], str] = str, limit: int = 200
) -> ControllerGraph:
    """Return the graph of the ``limit`` nodes of a controller that a run from the start visits most."""
    check_integer("limit", limit, 1, unit="nodes")
    compiled, beliefs = controller.problem.compiled, controller.beliefs()
    flow, ends, at = _visits(controller)
    visits = flow.sum(axis=1) + ends
    share = visits / visits.sum() if visits.any() else np.eye(len(controller))[controller.start]
    reached = [k for k in range(len(controller)) if visits[k] or k == controller.start]
    ranked = sorted(reached, key=lambda k: (k != controller.start, -share[k], k))
    shown, rest = sorted(ranked[:limit]), ranked[limit:]
    nodes, edges = [], []
    for k in shown:
        belief = beliefs[k] or Belief.normalized({compiled.states[s]: at[k, s] for s in np.flatnonzero(at[k]).tolist()})
        weights = compiled.vector(belief)
        value = float(controller.values[k, weights > 0] @ weights[weights > 0])
        per_visit = 1 / visits[k] if visits[k] else 0.0
        end = min(1.0, float(ends[k] * per_visit))
        nodes.append(GraphNode(k, controller.action_names[k], belief, value, float(share[k]), end))
        by_target: dict[int, list[int]] = {}
        for o in np.flatnonzero(flow[k]).tolist():
            by_target.setdefault(int(controller.after[k, o]), []).append(o)
        for target, seen in by_target.items():
            if target in shown:
                names = tuple(compiled.observations[o] for o in seen)
                edges.append(GraphEdge(k, target, names, float(flow[k, seen].sum() * per_visit)))
    left_out = float(sum(share[k] for k in rest))
    unreached = tuple(k for k in range(len(controller)) if k not in reached)
    return ControllerGraph(tuple(nodes), tuple(edges), controller.start, unreached, len(rest), left_out, name)


def _visits(controller: "FiniteStateController") -> tuple[Floats, Floats, Floats]:
    """Return the discounted steps per node and observation that continue, per node that end, and per node and state.

    The visits ``x`` of node and state solve ``x = b + gamma x P``, a linear system.
    """
    from scipy.sparse.linalg import spsolve

    compiled, n, size = controller.problem.compiled, len(controller), controller.problem.compiled.n_states
    alive, gamma = ~compiled.terminal, min(float(compiled.discount), _LONGEST)
    start = np.zeros((n, size))
    start[controller.start] = np.where(alive, compiled.initial, 0.0)
    step = sparse.csr_array(controller._system()[0].T)
    met = start.ravel() > 0
    while True:  # exactly which pairs a run can meet, without the rounding of the solver
        more = met | (step @ met.astype(np.float64) > 0)
        if (more == met).all():
            break
        met = more
    pairs = np.flatnonzero(met)
    system = sparse.csc_array(sparse.eye_array(len(pairs), format="csc") - gamma * step[pairs][:, pairs])
    x = np.zeros((n, size))
    x[np.divmod(pairs, size)] = np.maximum(spsolve(system, start.ravel()[pairs]), np.finfo(float).tiny)
    goes_on, ends = np.zeros((n, compiled.n_observations)), np.zeros(n)
    for a in np.unique(controller.actions).tolist():
        nodes = np.flatnonzero(controller.actions == a)
        after = np.asarray(x[nodes] @ outcome_matrix(compiled, a)).reshape(len(nodes), compiled.n_observations, size)
        on = after[:, :, alive].sum(axis=2) * (controller.after[nodes] >= 0)
        goes_on[nodes] = on
        ends[nodes] = np.maximum(after.sum(axis=(1, 2)) - on.sum(axis=1), 0.0)
    ends[ends < 1e-12 * (goes_on.sum(axis=1) + ends)] = 0.0
    return goes_on, ends, x


def _parts(layer: list[int], most: int) -> Iterator[list[int]]:
    """Yield the layer in parts of about equal size, of at most ``most`` nodes."""
    n_parts = -(-len(layer) // most)
    for i in range(n_parts):
        yield layer[i * len(layer) // n_parts : (i + 1) * len(layer) // n_parts]


def _links(edge: GraphEdge, passage: list[Track]) -> Iterator[tuple[int | Track, int | Track]]:
    """Yield the pairs of items that an edge connects."""
    way = [edge.source, *passage, edge.target]
    yield from pairwise(way)


def _few_crossings(
    items: list[list[int | Track]], links: Iterable[tuple[int | Track, int | Track]]
) -> list[list[int | Track]]:
    """Return the items of each layer in an order with few crossings, by the mean position of their neighbours."""
    layer_of = {item: i for i, layer in enumerate(items) for item in layer}
    pairs = [(a, b) for a, b in links if abs(layer_of[a] - layer_of[b]) == 1]
    near: dict[int | Track, list[int | Track]] = {item: [] for item in layer_of}
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    order, best, fewest = [list(layer) for layer in items], items, _crossings(items, pairs, layer_of)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for i in range(len(order)) if down else reversed(range(len(order))):
            place = {item: j / len(layer) for layer in order for j, item in enumerate(layer, 1)}
            aside = i - 1 if down else i + 1

            def mean(item: int | Track, aside: int = aside, place: dict[int | Track, float] = place) -> float:
                seen = [place[other] for other in near[item] if layer_of[other] == aside]
                return sum(seen) / len(seen) if seen else place[item]

            order[i].sort(key=mean)
        crossings = _crossings(order, pairs, layer_of)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in order], crossings
    return best


def _crossings(
    order: list[list[int | Track]],
    pairs: list[tuple[int | Track, int | Track]],
    layer_of: dict[int | Track, int],
) -> int:
    """Return the number of pairs of links between two layers that cross."""
    place = {item: j for layer in order for j, item in enumerate(layer)}
    between: dict[int, list[tuple[int, int]]] = {}
    for a, b in pairs:
        left, right = (a, b) if layer_of[a] < layer_of[b] else (b, a)
        between.setdefault(layer_of[left], []).append((place[left], place[right]))
    total = 0
    for ends in between.values():
        at = np.array(ends)
        total += int(((at[:, None, 0] < at[None, :, 0]) & (at[:, None, 1] > at[None, :, 1])).sum())
    return total


def _short(p: float) -> str:
    return f"{p:.3g}".replace("0.", ".", 1) if p < 1 else f"{p:.3g}"
