"""The graph of a controller: its nodes, edges and shares as text, DOT, TikZ and data."""

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning import (
    FiniteStateController,
    solve,
)
from pomdp_hier.problems import maze_4x3, tiger

# --- drawing ---------------------------------------------------------------------------------------------------------


def test_the_graph_in_every_form(classic):
    data = classic.to_dict()
    assert len(data["nodes"]) == 5
    assert sum(len(edge["observations"]) for edge in data["edges"]) == 10
    assert data["nodes"][classic.start]["belief"] == {"tiger-left": 0.5, "tiger-right": 0.5}
    assert "open-right" in classic.to_text()
    assert classic.to_dot().count("->") == len(data["edges"])
    assert classic.to_tikz().count(r"\draw") == len(data["edges"])


def test_names_are_only_names():
    hostile = 'a"]; evil [label="\n'
    controller = solve(tiger(), horizon=1).controller()
    assert "\n" not in controller.to_text(name=lambda _: hostile).split("\n")[0]
    assert 'evil [label="' not in controller.to_dot(name=lambda _: hostile)
    assert controller.to_tikz(name=lambda _: "a_b").count(r"a\_b") >= 2
    long = solve(tiger(), precision=1e-2).controller()
    for form in (long.to_text, long.to_dot, long.to_tikz, long.to_dict):
        with pytest.raises(ParameterError, match=r"^limit: got 0"):
            form(limit=0)
    assert "4 less visited nodes left out, with 62 % of the steps" in long.to_text(limit=1)
    assert "4 less visited nodes left out" in long.to_dot(limit=1)
    assert long.to_dict(limit=1)["n_left_out"] == 4


def test_a_small_graph_is_written_with_each_label_in_its_place():
    controller = FiniteStateController(tiger(), np.array([2, 0, 1]), np.array([[1, 1], [1, 0], [0, 1]]), start=1)
    assert controller.beliefs() == [
        Belief({"tiger-left": 0.15000000000000002, "tiger-right": 0.85}),
        Belief({"tiger-left": 0.5, "tiger-right": 0.5}),
        None,
    ]
    least = controller.minimised()
    assert (least.action_names, least.start, least.after.tolist()) == (("listen", "open-right"), 0, [[0, 1], [0, 0]])
    assert controller.to_text().splitlines() == [
        "  0 open-right  V -303.497  tiger-right .85, tiger-left .15",
        "      hear-left, hear-right -> 1",
        "* 1 listen      V -231.576  tiger-left .5, tiger-right .5",
        "      hear-left -> 1",
        "      hear-right -> 0",
        "no step of a run from the start is taken at 2",
    ]
    assert controller.to_dot().splitlines()[4:-1] == [
        r'  n0 [label="0 open-right\ntiger-right .85, tiger-left .15"];',
        r'  n1 [label="1 listen\ntiger-left .5, tiger-right .5", penwidth=2.5];',
        "  {rank=same; n1;}",
        "  {rank=same; n0;}",
        '  n0 -> n1 [label="hear-left, hear-right", constraint=false];',
        '  n1 -> n1 [label="hear-left", constraint=false];',
        '  n1 -> n0 [label="hear-right"];',
        '  label="no step of a run from the start is taken at 2";',
    ]
    assert controller.to_tikz().splitlines()[1:5] == [
        r"  \node[state] (n0) at (5.00, 0.00) {0 open-right\\tiger-right .85, tiger-left .15};",
        r"  \node[state, very thick] (n1) at (0.00, 0.00) {1 listen\\tiger-left .5, tiger-right .5};",
        r"  \draw (n0) to[bend left=28] node[near start, auto, font=\scriptsize] {hear-left, hear-right} (n1);",
        r"  \draw (n1) to[loop above] node[near start, auto, font=\scriptsize] {hear-left} (n1);",
    ]


def visits_step_by_step(controller, n_steps):
    """Discounted visits of (node, state, observation) by following the distribution for a number of steps."""
    problem, steps, weight = controller.problem, {}, 1.0
    now = {(controller.start, s): p for s, p in problem.initial_belief.items() if not problem.is_terminal(s)}
    for _ in range(n_steps):
        then = {}
        for (k, s), p in now.items():
            for t, q in problem.successors(s, controller.action_names[k]).items():
                for o, r in problem.observation_distribution(t, controller.action_names[k], s).items():
                    following = controller.remember(k, o)
                    goes_on = following >= 0 and not problem.is_terminal(t)
                    key = (k, following if goes_on else None)
                    steps[key] = steps.get(key, 0.0) + weight * p * q * r
                    if goes_on:
                        then[following, t] = then.get((following, t), 0.0) + p * q * r
        now, weight = then, weight * problem.discount
    return steps


@pytest.mark.parametrize(
    "controller",
    [
        solve(tiger(discount=0.75), precision=1e-3).controller(),
        solve(maze_4x3(discount=0.7), precision=0.1).controller(),
        solve(tiger(), horizon=3).controller(),
    ],
    ids=["tiger", "maze", "stops"],
)
def test_shares_edges_and_ends_are_those_of_runs_followed_step_by_step(controller):
    steps, graph = visits_step_by_step(controller, 60), controller.graph()
    total = sum(steps.values())
    assert {(e.source, e.target) for e in graph.edges} == {pair for pair in steps if pair[1] is not None}
    assert {node.number for node in graph.nodes} == {k for k, _ in steps}
    for node in graph.nodes:
        here = sum(p for (k, _), p in steps.items() if k == node.number)
        assert node.share == pytest.approx(here / total, abs=1e-6)
        assert node.ends == pytest.approx(steps.get((node.number, None), 0.0) / here, abs=1e-6)
        for edge in (e for e in graph.edges if e.source == node.number):
            assert edge.probability == pytest.approx(steps[edge.source, edge.target] / here, abs=1e-6)
    assert sum(node.share for node in graph.nodes) == pytest.approx(1)


def test_layers_follow_the_distance_from_the_start():
    controller = solve(tiger(accuracy=0.65), precision=2.0).controller()
    graph = controller.graph()
    distance, queue = {controller.start: 0}, [controller.start]
    for k in queue:
        for edge in graph.edges:
            if edge.source == k and edge.target not in distance:
                distance[edge.target] = distance[k] + 1
                queue.append(edge.target)
    layers = graph.layers()
    assert {k: i for i, layer in enumerate(layers) for k in layer} == distance
    assert graph.layers(1) != layers
    assert all(len(layer) == 1 for layer in graph.layers(1))


def test_long_lists_are_cut_and_counted():
    five = POMDP(
        transition=lambda s, a: dict.fromkeys("abcde", 0.2),
        observation=lambda s, a: s,
        reward=lambda s, a: 0,
        initial_belief=dict.fromkeys("abcde", 0.2),
        discount=0.5,
        legal_actions=["go"],
    )
    graph = FiniteStateController(five, np.array([0]), np.zeros((1, 5), dtype=int)).graph()
    (node,), (edge,) = graph.nodes, graph.edges
    assert (graph.belief_text(node), graph.belief_text(node, 5)) == (
        "a .2, b .2, c .2, 2 more",
        "a .2, b .2, c .2, d .2, e .2",
    )
    assert (graph.edge_text(edge), graph.edge_text(edge, 5)) == ("a, b, c, d, 1 more", "a, b, c, d, e")
