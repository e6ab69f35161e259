"""Figures of a solution: the graph of a controller, and the bounds over time."""

from typing import TYPE_CHECKING

from pomdp_hier._arguments import check_kind
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.report.canvas import BLUE, GREY, INK, ORANGE, new_axes
from pomdp_hier.report.escaping import figure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_controller(controller: FiniteStateController, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a controller: nodes on a circle with action and belief, edges with observations.

    The start is at the top, with a heavy frame.

    Args:
        controller: The controller, of 30 nodes at most.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: It is not a controller, or has too many nodes.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> draw_controller(solve(tiger(), horizon=1).controller()).get_title()
        'controller of 1 node'
    """
    check_kind("controller", controller, FiniteStateController, "the result of Solution.controller")
    graph = controller.graph(limit=30)
    side = 3.5 + 0.9 * len(graph.nodes) ** 0.75
    ax = new_axes(ax, width=1.3 * side, height=side)
    positions = graph.positions()
    boxes = {}
    for k, (x, y) in positions.items():
        node = graph.nodes[k]
        words = f"{k} {figure_text(str(node.action))}\n{figure_text(graph.belief_text(node, 2))}"
        frame = {"boxstyle": "round", "fc": "white", "ec": BLUE, "lw": 2.6 if k == controller.start else 1.2}
        box = ax.text(x, y, words, fontsize=9, ha="center", va="center", bbox=frame, zorder=1)
        boxes[k] = box.get_bbox_patch()
    # Arrows are drawn after the boxes, so that they end where these stand by then.
    for edge in graph.edges:
        x, y = positions[edge.source]
        u, v = positions[edge.target]
        words = figure_text(graph.edge_text(edge, 2))
        if edge.source == edge.target:
            ax.text(1.32 * x, 1.32 * y, f"{words} ↺", fontsize=8, color=GREY, ha="center", va="center")
            continue
        style = {"arrowstyle": "-|>", "color": GREY, "lw": 1.2, "shrinkA": 2, "shrinkB": 2}
        style |= {"patchA": boxes[edge.source], "patchB": boxes[edge.target], "connectionstyle": "arc3,rad=0.15"}
        ax.annotate("", (u, v), (x, y), arrowprops=style, zorder=2)
        middle = 0.6 * x + 0.4 * u + 0.08 * (v - y), 0.6 * y + 0.4 * v - 0.08 * (u - x)
        free = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
        ax.text(*middle, words, fontsize=8, color=INK, ha="center", va="center", bbox=free, zorder=3)
    ax.set_xlim(-1.6, 1.6)
    ax.set_ylim(-1.5, 1.5)
    ax.set_axis_off()
    ax.set_title(f"controller of {len(graph.nodes)} node{'' if len(graph.nodes) == 1 else 's'}")
    return ax


def draw_bounds(solution: Solution, *, ax: "Axes | None" = None) -> "Axes":
    """Draw both bounds over CPU seconds, on a logarithmic scale.

    Args:
        solution: What `solve` returned.
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
    ax.step(seconds, upper, where="post", color=ORANGE, label="upper bound")
    ax.step(seconds, lower, where="post", color=BLUE, label="lower bound")
    ax.fill_between(seconds, lower, upper, step="post", color=GREY, alpha=0.15)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("CPU seconds")
    ax.set_ylabel("value at the start")
    ax.legend(frameon=False)
    return ax
