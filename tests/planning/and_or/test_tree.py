"""The AND-OR tree: what it holds, how it prints, and that it is the tree that RTBSS searches."""

import json
import re
import shutil
import subprocess
from fractions import Fraction

import networkx as nx
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning import RTBSS, AndOrTree, ImmediateValue
from pomdp_hier.planning.and_or.markup import latex_number
from pomdp_hier.planning.and_or.nodes import tidy_sum
from tests.exact_oracle import exact_value
from tests.pomdp_models import grid, random_fractions, random_problem, three_node, tiger


def corridor() -> POMDP:
    return POMDP(
        transition=lambda s, a: s + 1,
        observation=lambda next_state, a: "step",
        reward=lambda s, a: 1,
        initial_belief={0: 1},
        discount=1,
        legal_actions=["on"],
        states=range(2),
        observations=["step"],
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bound", [None, "fib", "range"])
def test_it_is_the_tree_of_rtbss(seed, bound):
    problem = random_problem(seed, rewards=["mixed", "negative"][seed % 2], terminal=seed > 1)
    planner = RTBSS(3, upper_bound=bound or "fib", prune=bound is not None, engine="plain", merge_tolerance=None)
    decision = planner.decide(problem)
    tree = AndOrTree.from_planner(planner, problem)
    assert tree.value == decision.value == pytest.approx(exact_value(problem, horizon=3), abs=1e-10)
    root = [tree.and_nodes[i] for i in tree.or_nodes[0].actions]
    expanded = {child.action: child.q for child in root if child.status == "expanded"}
    assert expanded == {a: q for a, q in decision.q_values.items() if decision.stats["status"][a] == "exact"}
    assert sum(node.kind == "internal" for node in tree.or_nodes) == decision.stats["nodes"]
    pruned = [child for child in tree.and_nodes if child.status == "pruned"]
    assert len(pruned) == decision.stats["pruned"]
    assert all(child.q is None and not child.outcomes and child.why for child in pruned)
    for node in tree.or_nodes:
        for i in node.actions:
            child = tree.and_nodes[i]
            if child.status == "pruned":
                assert child.upper <= node.value


def test_the_three_node_tree_prints_the_appendix():
    sympy = pytest.importorskip("sympy")
    b, eta, r0, r1, r2 = sympy.symbols("b eta r0 r1 r2", positive=True)
    tree = AndOrTree.build(three_node(eta, r0, r1, r2, b), depth=2)
    q = {tree.and_nodes[i].action: tree.and_nodes[i].q for i in tree.or_nodes[0].actions}
    assert str(q["search"]) == "b*(r0 + 1) - 1"
    assert str(q["descend"]) == "b*(eta**2*(r1 + 1) + (1 - eta)**2*(r2 + 1)) - 1"
    text = tree.to_text()
    assert "descend  R 0  Q b*(eta**2*(r1 + 1) + (1 - eta)**2*(r2 + 1)) - 1" in text
    assert "c1 eta → ('c1', 1) b*eta" in text
    assert "V Max(" in text.splitlines()[0]
    assert tree.or_nodes[0].best == []
    with pytest.raises(ParameterError, match=r"^problem: got the value"):
        tree.policy()
    assert "eta·(b*eta*(r1 + 1) - 1) + (1 - eta)·(b*(1 - eta)*(r2 + 1) - 1)" in tree.explain()
    numbers = AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6, 0.9), depth=2)
    for action, formula in q.items():
        value = formula.subs({b: 0.9, eta: 0.7, r0: 0.1, r1: 0.5, r2: 0.6})
        (i,) = (i for i in numbers.or_nodes[0].actions if numbers.and_nodes[i].action == action)
        assert float(value) == pytest.approx(numbers.and_nodes[i].q, abs=1e-12)


def test_text():
    tree = AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6), depth=2)
    assert tree.to_text(ascii_only=True) == "\n".join(
        [
            "('c0', 1) 1  V 0.10",
            "|- descend  R 0.00  Q -0.12",
            "|  |- c1 0.70 -> ('c1', 1) .70, ('c1', 0) .30  V 0.05",
            "|  |  `- search  R +0.05  Q 0.05",
            "|  |     |- ('end', 1) 0.70 -> ('end', 1) 1  V 0  terminal",
            "|  |     `- ('end', 0) 0.30 -> ('end', 0) 1  V 0  terminal",
            "|  `- c2 0.30 -> ('c2', 0) .70, ('c2', 1) .30  V -0.52",
            "|     `- search  R -0.52  Q -0.52",
            "|        |- ('end', 1) 0.30 -> ('end', 1) 1  V 0  terminal",
            "|        `- ('end', 0) 0.70 -> ('end', 0) 1  V 0  terminal",
            "`- search  R +0.10  Q 0.10  *",
            "   `- ('end', 1) 1 -> ('end', 1) 1  V 0  terminal",
        ]
    )
    assert tree.to_text().splitlines()[-2] == "└─ search  R +0.10  Q 0.10  ★"
    assert tree.to_text(ascii_only=True).isascii()
    assert tree._repr_html_().startswith("<pre")


def test_illegal_and_pruned_actions_say_so():
    problem = three_node(0.7, 0.1, 0.5, 0.6)
    tree = AndOrTree.build(problem, depth=2, illegal=True)
    assert "descend  illegal" in tree.to_text()
    assert "descend: not legal under this belief" in tree.explain(tree.or_nodes[1].actions and 1)
    pruned = AndOrTree.build(problem, depth=2, prune=True)
    assert "descend  R 0.00  pruned: Q at most −0.12" in pruned.to_text()
    assert "descend: pruned, Q is at most −0.1210: its upper bound cannot beat the best Q" in pruned.explain()
    assert "illegal" in tree.to_dot()
    assert "pruned" in pruned.to_dot()
    assert "(pruned)" in pruned.to_tikz()


def test_explain():
    tree = AndOrTree.build(tiger(), depth=2)
    lines = tree.explain().splitlines()
    assert lines[0] == "belief b = (left, right) = (.5000, .5000)"
    assert lines[1] == "2 actions to go, discount 0.95"
    assert lines[2] == (
        "  listen: Q = R + γ Σ p·V = −1.0000 + 0.9500·(0.5000·(−1.0000) + 0.5000·(−1.0000)) = −1.9500 ★"
        "   [after hear-left, hear-right]"
    )
    assert lines[-1] == "V = max Q = −1.9500"
    belief = tree.or_nodes[1].belief
    assert tree.explain(belief) == tree.explain(tree.find(belief))
    with pytest.raises(ParameterError, match=r"^belief: got Belief\(.* 43 OR nodes"):
        tree.explain(Belief({"left": 0.123, "right": 0.877}))
    with pytest.raises(ParameterError, match=r"^node: got 99; .* 0 to 42"):
        tree.explain(99)
    assert "the search stops here: V = 0" in tree.explain(len(tree.or_nodes) - 1)


@pytest.mark.parametrize("seed", range(3))
def test_json_keeps_fractions_and_backup_repeats_the_values(seed):
    tree = AndOrTree.build(random_fractions(seed), depth=3)
    document = json.loads(tree.to_json())
    assert document["discount"] == {"fraction": [9, 10]}
    assert [Fraction(*node["value"]["fraction"]) for node in document["or_nodes"] if node["kind"] == "internal"] == [
        node.value for node in tree.or_nodes if node.kind == "internal"
    ]
    backed = tree.backup()
    assert backed.or_nodes == tree.or_nodes
    assert backed.and_nodes == tree.and_nodes
    higher = tree.backup(leaf_value=lambda belief: Fraction(1))
    assert higher.value == tree.value + Fraction(9, 10) ** 3
    assert tree.or_nodes[-1].value == 0


def test_json_holds_names_and_links():
    class Door:
        def __init__(self, name):
            self.name = name

        def __str__(self):
            return self.name

    left, right = Door("left"), Door("right")
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda next_state, a: ("seen", 1),
        reward=lambda s, a: 1.0 if s is a else float("-1"),
        initial_belief={left: 0.5, right: 0.5},
        legal_actions=[left, right],
    )
    tree = AndOrTree.build(problem, depth=1)
    document = json.loads(tree.to_json())
    root, first = document["or_nodes"][0], document["and_nodes"][0]
    assert root["belief"] == [[{"name": "left"}, 0.5], [{"name": "right"}, 0.5]]
    assert (root["kind"], root["actions"], root["parent"]) == ("internal", [0, 1], -1)
    assert (first["action"], first["q"], first["outcomes"]) == ({"name": "left"}, 0.0, [1])
    assert document["or_nodes"][1]["observation"] == {"tuple": ["seen", 1]}
    assert document["or_nodes"][1]["kind"] == "leaf"


def test_json_keeps_what_floats_and_expressions_are():
    sympy = pytest.importorskip("sympy")
    x, n = sympy.Symbol("x", positive=True), sympy.Symbol("n")
    tree = AndOrTree.build(tiger(), depth=1)
    third, half = {"rational": [1, 3]}, {"rational": [1, 2]}
    written = [
        (float("inf"), {"float": "inf"}),
        (0.1 + 0.2, 0.1 + 0.2),
        (5e-324, 5e-324),
        (Fraction(1, 3), {"fraction": [1, 3]}),
        (10**30, 10**30),
        (sympy.Float(0.1) + 0.2, {"expression": {"float": repr(0.1 + 0.2)}}),
        (sympy.Max(n, 2), {"expression": ["Max", {"rational": [2, 1]}, {"symbol": "n", "assumptions": {}}]}),
        (x / 3, {"expression": ["Mul", third, {"symbol": "x", "assumptions": {"positive": True}}]}),
        (sympy.sqrt(2), {"expression": ["Pow", {"rational": [2, 1]}, half]}),
    ]
    for value, form in written:
        tree.and_nodes[0].upper = value
        assert json.loads(tree.to_json())["and_nodes"][0]["upper"] == form
    for value in (sympy.pi, sympy.sin(x), sympy.Float("0.1", 50)):
        tree.and_nodes[0].upper = value
        with pytest.raises(ParameterError, match=r"^to_json: got .* with a"):
            tree.to_json()
    tree.and_nodes[0].upper = Fraction(1, 10**5000)
    with pytest.raises(ParameterError, match=r"^to_json: got a value"):
        tree.to_json()


def test_policy_follows_the_best_actions():
    tree = AndOrTree.build(tiger(), depth=3)
    plan = tree.policy()
    assert plan[()] == "listen"
    assert plan["listen", "hear-left", "listen", "hear-left"] == "open-right"
    assert plan["listen", "hear-left", "listen", "hear-right"] == "listen"
    assert len(plan) == 1 + 2 + 4


def test_a_large_tree_collapses_to_its_plan():
    tree = AndOrTree.build(grid(5, 5), depth=2)
    assert len(tree) == 781
    text = tree.to_text(full=False)
    assert text.splitlines()[-1] == "61 of 781 nodes shown; full=True shows all"
    assert text.count("(155 hidden)") == 4
    assert len(tree.to_text().splitlines()) == 1 + 781
    for dot in (tree.to_dot(), tree.to_dot(full=False)):
        assert dot.count(" -> ") == 60
        assert "61 of 781 nodes shown" in dot
    assert tree.to_dot(full=True).count(" -> ") == 780
    small = tree.to_text(full=False, limit=11)
    assert "11 of 781 nodes shown" in small
    with pytest.raises(ParameterError, match=r"^limit: got 0;"):
        tree.to_text(full=False, limit=0)
    with pytest.raises(PlanningError, match=r"^max_nodes: got 100;"):
        AndOrTree.build(grid(5, 5), depth=2, max_nodes=100)


def test_a_thousand_levels():
    tree = AndOrTree.build(corridor(), depth=1000)
    assert len(tree) == 2001
    assert tree.value == 1000
    text = tree.to_text()
    assert text.splitlines()[-1].startswith("[2000] step 1.00 → 1000 1  V 0")
    assert max(map(len, text.splitlines())) < 150
    assert len(tree.policy()) == 1000
    assert tree.backup().value == 1000
    assert tree.to_dot(full=True).count(" -> ") == 2000
    assert tree.to_networkx().number_of_edges() == 2000
    assert tree.to_tikz(full=True).count(r"\draw") == 2000


def test_networkx():
    graph = AndOrTree.build(tiger(), depth=2).to_networkx()
    assert nx.is_arborescence(graph)
    assert graph.nodes["or", 0]["value"] == pytest.approx(-1.95)
    assert graph.edges[("or", 0), ("and", 0)]["reward"] == -1
    assert graph.edges[("and", 0), ("or", 1)]["probability"] == 0.5


def test_dot_is_accepted_by_graphviz():
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    awkward = AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6), depth=2).to_dot(name=lambda x: f'<{x}> & "so" \\')
    drawn = subprocess.run(["dot", "-Tsvg"], input=awkward, capture_output=True, text=True, check=True)
    assert drawn.stderr == ""
    assert drawn.stdout.count('class="node"') == 12


@pytest.mark.parametrize("prune", [False, True])
def test_the_star_moves_and_the_tree_does_not(prune):
    def first_two(eta):
        tree = AndOrTree.build(three_node(eta, 0.0, 0.6, 0.6), depth=2, prune=prune)
        below = [tree.and_nodes[i] for i in tree.or_nodes[0].actions]
        stars = [line.endswith("★") for line in tree.to_text().splitlines() if line[0] in "├└"]
        return [child.action for child in below], stars

    assert first_two(0.7) == (["descend", "search"], [False, True])
    assert first_two(0.8) == (["descend", "search"], [True, False])


def test_a_plan_stands_below_each_of_tied_actions():
    tree = AndOrTree.build(three_node(Fraction(3, 4), 0, Fraction(3, 5), Fraction(3, 5)), depth=2)
    assert len(tree.or_nodes[0].best) == 2
    lines = tree.to_text().splitlines()
    assert [line.endswith("★") for line in lines if "R " in line] == [True] * 4
    assert tree.to_mermaid().count("==>") == len(tree) - 1


def test_mermaid():
    lines = AndOrTree.build(three_node(0.7, 0.1, 0.5, 0.6), depth=2).to_mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    assert '  n2(("search<br/>Q 0.10 ★"))' in lines
    assert '  n0 ==>|"R +0.10"| n2' in lines
    assert "  class n0,n2,n5 plan" in lines
    assert "  linkStyle 1,4 stroke:#b35806,stroke-width:3px" in lines


def test_tikz():
    tree = AndOrTree.build(three_node(Fraction(2, 3), Fraction(1, 10), 1, 1), depth=2)
    tikz = tree.to_tikz(action=lambda a: {"search": "a_s", "descend": "a_d"}[a], observation=lambda o: "c_1")
    nodes = re.findall(r"\\node\[(or|and) node.*\{\$(.*)\$\};", tikz)
    assert [kind for kind, _ in nodes].count("or") == 8
    assert {text for kind, text in nodes if kind == "and"} == {"a_s", "a_d"}
    assert {text for kind, text in nodes if kind == "or"} >= {"b_{0}", "b_{1}"}
    assert r"node[note, align=center] {$1/10$}" in tikz
    assert r"{$o = c_1$\\$2/3$}" in tikz
    assert tikz.count("{") == tikz.count("}")
    document = tree.to_tikz(standalone=True)
    assert document.startswith(r"\documentclass[tikz, border=4pt]{standalone}")
    assert r"$\text{search}$" in document
    tiny = AndOrTree.build(grid(2, 2), depth=1, leaf_value=ImmediateValue(1)).to_tikz()
    assert r"\text{0}" in tiny


def test_a_dict_stands_for_the_belief_of_the_root_and_another_thing_for_no_problem():
    start = dict(tiger().initial_belief.items())
    assert AndOrTree.build(tiger(), start, depth=1).value == AndOrTree.build(tiger(), depth=1).value
    with pytest.raises(ModelError, match=r"AndOrTree: .* expected a POMDP"):
        AndOrTree.build(start, depth=1)


def test_a_small_tree_is_written_with_each_label_in_its_place():
    def reward(state, action):
        return -1 if action == "look" else 3 * state

    coin = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {s: 0.75, 1 - s: 0.25},
        reward=reward,
        initial_belief={0: 0.5, 1: 0.5},
        legal_actions=["look", "bet"],
    )
    tree = AndOrTree.build(coin, depth=1)
    assert repr(tree) == "<AndOrTree: 5 OR nodes, 2 AND nodes, value 1.5>"
    dot = tree.to_dot().splitlines()
    cells = '<tr><td><font point-size="16" color="#215294">▶</font></td><td>(.50, .50)<br/>V 1.50</td></tr>'
    for line in (
        '  node [fontname=Helvetica, fontsize=10, color="#1d2126", fontcolor="#1d2126"];',
        '  edge [fontname=Helvetica, fontsize=9, color="#9aa3ab", fontcolor="#1d2126", arrowhead=none];',
        f'  n0 [shape=plain, label=<<table border="0" cellspacing="0" cellpadding="1">{cells}</table>>];',
        r'  n1 [shape=ellipse, margin="0.04,0.02", color="#1d2126", penwidth=1, label="look\nQ −1.00"];',
        r'  n2 [shape=ellipse, margin="0.04,0.02", color="#b35806", penwidth=2.5, label="bet\nQ 1.50 ★"];',
        '  n0 -> n2 [label=" R +1.50 ", color="#b35806", penwidth=2.5];',
        '  n1 -> n3 [label=" 0 0.50 "];',
    ):
        assert line in dot
    tikz = tree.to_tikz().splitlines()
    for line in (
        r"  \node[or node, plan] (n0) at (3.45, 0.00) {$b_{0}$};",
        r"  \node[and node] (n1) at (1.15, -1.90) {$\text{look}$};",
        r"  \draw[->, plan] (n0.south) -- node[note, align=center] {$1.50$} (n2.north);",
        r"  \draw[->] (n1.south) -- node[pos=0.62, above left=-2pt, align=center] {$o = \text{0}$\\$0.50$} (n3.apex);",
    ):
        assert line in tikz
    mermaid = tree.to_mermaid().splitlines()
    assert '  n0 ==>|"R +1.50"| n2' in mermaid
    assert "  linkStyle 1,4,5 stroke:#b35806,stroke-width:3px" in mermaid
    assert latex_number(1.5e20) == r"1.5 \cdot 10^{20}"


def test_a_tree_of_as_many_nodes_as_are_allowed_is_built():
    size = len(AndOrTree.build(random_problem(1), depth=2))
    assert len(AndOrTree.build(random_problem(1), depth=2, max_nodes=size)) == size
    with pytest.raises(PlanningError, match=f"^max_nodes: got {size - 1};"):
        AndOrTree.build(random_problem(1), depth=2, max_nodes=size - 1)


def test_a_notebook_shows_the_plan_of_a_large_tree():
    tree = AndOrTree.build(random_problem(1), depth=3)
    assert f"of {len(tree)} nodes shown; full=True shows all" in tree._repr_html_()


def test_a_value_of_1_adds_its_chance():
    sympy = pytest.importorskip("sympy")
    e, b, r = sympy.symbols("e b r")
    assert sympy.simplify(tidy_sum(r, 1, [(e, sympy.Integer(1)), (1 - e, b)]) - (r + e + (1 - e) * b)) == 0
