"""The graph of a controller: boxes apart, edges that reach their targets past all others, heads that can be seen."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning import FiniteStateController, solve
from pomdp_hier.problems import corridor, crying_baby, tiger

pytest.importorskip("matplotlib")
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from pomdp_hier.report import draw_bounds, draw_controller


def random_controller(seed, n_nodes):
    """A controller of a problem of six states and five observations, with random actions and successors."""
    rng = np.random.default_rng(seed)
    problem = POMDP.from_arrays(
        T=rng.dirichlet(np.ones(6), (3, 6)),
        Z=rng.dirichlet(np.ones(5), (3, 6)),
        R=rng.normal(size=(3, 6)),
        discount=0.9,
    )
    return FiniteStateController(problem, rng.integers(3, size=n_nodes), rng.integers(n_nodes, size=(n_nodes, 5)))


CONTROLLERS = {
    "tiger": lambda: solve(tiger(), precision=1e-3).controller(),
    "baby": lambda: solve(crying_baby(), precision=1e-3).controller(),
    "corridor": lambda: solve(corridor(), precision=1e-3).controller(),
    "one loop": lambda: FiniteStateController(tiger(), np.array([0]), np.array([[0, 0]])),
    "random": lambda: random_controller(1, 9),
}


def parts(ax):
    """The boxes by node, the paths by edge, the tips of the arrows, and the areas of the texts, in pixels."""
    ax.figure.draw_without_rendering()
    boxes = {int(p.get_gid().split()[1]): p.get_window_extent() for p in ax.patches if "node" in (p.get_gid() or "")}
    paths = {
        tuple(map(int, p.get_gid().split()[1:])): p.get_path().interpolated(1).to_polygons(closed_only=False)[0]
        for p in ax.patches
        if "edge" in (p.get_gid() or "")
    }
    dense = np.linspace(0, 1, 20, endpoint=False)[:, None]
    for edge, points in paths.items():
        between = np.concatenate([a + dense * (b - a) for a, b in pairwise(points)])
        paths[edge] = ax.transData.transform([*between, points[-1]])
    texts = [t.get_window_extent() for t in ax.texts]
    heads = [line for line in ax.lines if line.get_marker() in "<>"]
    tips = [
        (ax.transData.transform(line.get_xydata())[0], line.get_markersize() * ax.figure.dpi / 72) for line in heads
    ]
    return boxes, paths, tips, texts


@pytest.mark.parametrize("name", CONTROLLERS)
def test_an_edge_runs_from_its_box_to_its_target_and_through_no_other(name):
    controller = CONTROLLERS[name]()
    graph = controller.graph()
    ax = draw_controller(controller)
    boxes, paths, tips, texts = parts(ax)
    assert set(boxes) == {node.number for node in graph.nodes}
    assert set(paths) == {(edge.source, edge.target) for edge in graph.edges}
    for (source, target), path in paths.items():
        assert abs(path[0][0] - boxes[source].x1) < 3
        assert boxes[target].padded(14).contains(*path[-1]), "a loop ends at its own node, too"
        x, y = path.T
        for box in (box.padded(-2) for box in boxes.values()):
            assert not ((box.x0 <= x) & (x <= box.x1) & (box.y0 <= y) & (y <= box.y1)).any()
    for tip, size in tips:
        square = Bbox.from_bounds(*(tip - size / 2), size, size)
        assert not any(square.overlaps(text) for text in texts), "no text covers an arrowhead"
    for a, b in combinations(boxes.values(), 2):
        assert not a.overlaps(b)
    inside = ax.figure.bbox.padded(1)
    assert all(inside.contains(*corner) for text in texts for corner in (text.min, text.max)), "notes fit, too"


def test_lines_of_a_node_are_its_edges_and_the_start_has_a_heavy_frame():
    controller = CONTROLLERS["tiger"]()
    ax = draw_controller(controller)
    words = [text.get_text() for text in ax.texts]
    for edge in controller.graph().edges:
        assert f"{', '.join(edge.observations)} → {edge.target}" in words, "the line of an edge says where it leads"
    frames = {p.get_gid(): p.get_linewidth() for p in ax.patches if "node" in (p.get_gid() or "")}
    assert max(frames, key=frames.get) == f"node {controller.start}"
    # Bars: their heights are the beliefs, .5 and .5 at the start, in units of the grey bar behind.
    tall = [p.get_height() for p in ax.patches if isinstance(p, Rectangle)]
    black = [one / full for full, one in zip(tall[::2], tall[1::2], strict=True)]
    assert black[:4] == pytest.approx([0.5, 0.5, 0.85, 0.15])


@pytest.mark.slow
def test_a_large_controller_is_drawn_in_part_and_the_rest_is_counted():
    controller = random_controller(3, 40)
    graph = controller.graph(limit=30)
    ax = draw_controller(controller)
    boxes, *_ = parts(ax)
    assert len(boxes) == 30
    shares = sorted((node.share for node in controller.graph().nodes), reverse=True)
    assert 0 < graph.left_out_share == pytest.approx(1 - sum(shares[:30]), abs=1e-9)
    assert any(f"{graph.n_left_out} less visited nodes left out" in text.get_text() for text in ax.texts)
    alone = [text.get_text() for text in draw_controller(CONTROLLERS["tiger"](), limit=1).texts]
    assert "others 100 %" in alone, "not 1e+02 %"
    width, height = ax.figure.get_size_inches()
    assert max(width / 13.33, height / 7.5) < 1.6, "text of 9 points is at least of 5.6 on a slide"


def test_the_title_counts_the_nodes_that_no_run_uses():
    ax = draw_controller(FiniteStateController(tiger(), np.array([0, 0]), np.array([[0, 0], [1, 1]])))
    assert ax.get_title() == "1 of 2 nodes of a controller"


def test_errors_name_the_argument_of_a_figure():
    with pytest.raises(ParameterError, match=r"^controller: got a POMDP"):
        draw_controller(tiger())
    with pytest.raises(ParameterError, match=r"^limit: got 0"):
        draw_controller(CONTROLLERS["tiger"](), limit=0)


def test_bounds_close_in_the_figure_as_in_the_solution():
    solution = solve(tiger(), precision=1e-2)
    upper, lower = draw_bounds(solution).get_lines()
    assert lower.get_ydata()[-1] == solution.lower
    assert upper.get_ydata()[-1] == solution.upper
    assert [line.get_label() for line in (upper, lower)] == [
        f"upper bound {solution.upper:.6g}", f"lower bound {solution.lower:.6g}",
    ]  # fmt: skip
    assert (np.diff(lower.get_ydata()) >= 0).all()
    assert (np.diff(upper.get_ydata()) <= 0).all()
