"""The graph of a controller: every step has an arrow whose head can be seen, and its observations beside it."""

import numpy as np
import pytest

from pomdp_hier.planning import solve
from pomdp_hier.problems import tiger

pytest.importorskip("matplotlib")
from matplotlib.text import Annotation

from pomdp_hier.report import draw_bounds, draw_controller


def test_every_edge_ends_in_sight_at_its_node():
    controller = solve(tiger(), precision=1e-3).controller()
    graph = controller.graph()
    ax = draw_controller(controller)
    words = [text.get_text() for text in ax.texts]
    boxes = {int(text.get_text().split()[0]): text for text in ax.texts if text.get_text()[:1].isdigit()}
    assert sorted(boxes) == list(range(len(controller)))
    widths = {node: box.get_bbox_patch().get_linewidth() for node, box in boxes.items()}
    assert [node for node, width in widths.items() if width == max(widths.values())] == [controller.start]
    steps = [edge for edge in graph.edges if edge.source != edge.target]
    arrows = [text.arrow_patch for text in ax.texts if isinstance(text, Annotation)]
    assert len(arrows) == len(steps) == 8
    for edge, arrow in zip(steps, arrows, strict=True):
        assert graph.edge_text(edge, 2) in words
        ends = boxes[edge.source].get_bbox_patch(), boxes[edge.target].get_bbox_patch()
        assert (arrow.patchA, arrow.patchB) == ends, "an arrow begins and ends at the boxes, not under them"
    drawn_after = min(text.get_zorder() for text in ax.texts if isinstance(text, Annotation))
    assert drawn_after > max(box.get_zorder() for box in boxes.values()), "a box has its place only once it is drawn"


def test_bounds_close_in_the_figure_as_in_the_solution():
    solution = solve(tiger(), precision=1e-2)
    upper, lower = draw_bounds(solution).get_lines()
    assert lower.get_ydata()[-1] == solution.lower
    assert upper.get_ydata()[-1] == solution.upper
    assert (np.diff(lower.get_ydata()) >= 0).all()
    assert (np.diff(upper.get_ydata()) <= 0).all()
