"""What planners say of their numbers: each in its place, with other numbers on either side."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ModelError, ParameterError, PlanningError, PolicyFileError
from pomdp_hier.planning import (
    POUCT,
    RTBSS,
    AlphaVectorPolicy,
    AndOrTree,
    FiniteStateController,
    ImmediateValue,
    alpha_vectors,
    read_policy,
    solve,
    value_iteration,
)
from pomdp_hier.planning.and_or.text import view
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.planning.rtbss.recursive import check_bound
from pomdp_hier.problems import cheese_maze, tiger
from tests.pomdp_models import random_problem


def test_a_controller():
    at_once, positions = np.zeros((1, 7), dtype=int), np.zeros((2, 2), dtype=int)
    with pytest.raises(
        ModelError, match=re.escape("controller: got 1 actions, successors of shape (1, 7) and start 0")
    ):
        FiniteStateController(tiger(), np.array([0]), at_once)
    with pytest.raises(ModelError, match=re.escape("[N, 2], and a start below N")):
        FiniteStateController(tiger(), np.array([0]), at_once)
    with pytest.raises(ModelError, match=r"controller: got actions up to 7, successors up to 0.*2"):
        FiniteStateController(tiger(), np.array([0, 7]), positions)
    long = FiniteStateController(cheese_maze(), np.zeros(300, dtype=int), np.zeros((300, 7), dtype=int))
    with pytest.raises(PlanningError, match=r"controller: got 300 nodes times 11 states.*3,000"):
        _ = long.exact_values
    with pytest.raises(ParameterError, match=r"^limit: got 0"):
        long.to_text(limit=0)
    with pytest.raises(ModelError, match=r"vectors: got 3 states and actions up to 4.*2"):
        AlphaVectorPolicy(np.zeros((1, 3)), np.array([4])).decide(tiger())


SPARSE = '<Policy><AlphaVector vectorLength="2"><SparseVector action="0">{}</SparseVector></AlphaVector></Policy>'


@pytest.mark.parametrize(
    ("ending", "text", "words"),
    [
        ("xml", SPARSE.format("<Entry>1 2 3</Entry>"), ":1: got an <Entry> of 3 words; expected an index"),
        ("xml", SPARSE.format("<Entry>5 1.5</Entry>"), ":1: got index 5; expected each below 2"),
        ("xml", "<Policy>\n<a>", ":2: "),
        ("alpha", "0\n1 2\n\n1\n", ": got 3 lines that are not empty; expected two per vector"),
        ("alpha", "0\n1 2\n\n1\n1\n", ":5: got 1 values; expected 2"),
        ("alpha", "4\n1 2 3\n", ": got vectors of 3 states and actions up to 4; expected 2"),
        ("pg", "0 1 0\n", ":1: got 3 entries; expected a node, an action and 2 next nodes"),
        ("pg", "0 1 0 0\n1 9 0 0\n", ":2: got action 9; expected an action index from 0 to 2"),
        ("pg", "0 1 0 0\n1 1 0 7\n", ":2: got the next node 7; expected a node of the file"),
        ("alpha", b"0\n\xff", ": got a byte that is not UTF-8 at 2; expected a text file"),
    ],
)
def test_a_policy_file(tmp_path, ending, text, words):
    path = tmp_path / f"policy.{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PolicyFileError) as error:
        read_policy(path, tiger())
    assert str(error.value).startswith(f"{path}{words}")


def test_a_graph_that_starts_nowhere(tmp_path):
    (tmp_path / "graph.pg").write_text("0 1 0 0\n1 1 0 0\n")
    with pytest.raises(PolicyFileError, match=r"got start=5.*2"):
        read_policy(tmp_path / "graph.pg", tiger(), start=5)


def test_alpha_vectors(monkeypatch):
    solution = value_iteration(tiger(), 2)
    with pytest.raises(ParameterError, match=r"to_go: got 4.*2"):
        solution.value({"tiger-left": 1}, to_go=4)
    with pytest.raises(PlanningError, match=r"max_vectors: got 15.*32"):
        value_iteration(random_problem(0, observations=3), 3, max_vectors=15)
    monkeypatch.setattr(alpha_vectors, "_MOST_PIVOTS", 0)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: SimpleNamespace(status=4, message="lost"))
    with pytest.raises(PlanningError, match=r"3 vectors.*lost"):
        value_iteration(tiger(), 2)


def test_a_recursion_that_is_too_deep():
    with pytest.raises(PlanningError, match=r"^depth: got 5000; expected at most 250"):
        RTBSS(5000, engine="plain").decide(tiger())


def test_what_a_solution_does_not_know():
    seen = POMDP(
        transition=lambda s, a: {"here": 0.5, "there": 0.5},
        observation=lambda s, a: s,
        reward=lambda s, a: 1,
        initial_belief={"here": 1},
        discount=0.5,
        legal_actions=lambda o: ["go", "stay"] if o == "there" else ["go"],
        legal_by="observation",
        actions=["go", "stay"],
    )
    solution = solve(seen, precision=1e-2)
    with pytest.raises(ModelError, match="observation: got 'loud'"):
        solution.bounds({"here": 1}, observation="loud")
    with pytest.raises(ModelError, match="belief: got the state 'there' after the observation None"):
        solution.bounds({"there": 1})
    apart = POMDP(
        transition=lambda s, a: {"left": 0.5, "right": 0.5},
        observation=lambda s, a: "dark",
        reward=lambda s, a: 1,
        initial_belief={"start": 1},
        discount=0.5,
        legal_actions=lambda s: {"start": ["go"], "left": ["l"], "right": ["r"]}[s],
    )
    with pytest.raises(ModelError, match=r"legal_actions: got none under a belief over 2 states \(the first: 'left'\)"):
        solve(apart)


def test_hidden_nodes_of_a_drawing_stand_under_their_own():
    tree = AndOrTree.build(random_problem(1), depth=3)
    hidden = [(i, node.hidden) for i, node in enumerate(view(tree, full=False).nodes) if node.hidden]
    found = re.findall(r"below=1pt of n(\d+)\] \{(\d+) hidden\}", tree.to_tikz(full=False))
    assert [(int(i), int(n)) for i, n in found] == hidden != []


def test_values_that_do_not_settle():
    one = POMDP.from_arrays(T=[[[1.0]]], Z=[[[1.0]]], R=[[0.25]])
    with pytest.raises(
        PlanningError, match=re.escape("discount: got 1.0, with values that still change by 0.25 after 7 backups")
    ):
        mdp_values(one.compiled, max_iterations=7)
    leaky = POMDP.from_arrays(
        T=[[[0.5, 0.50625], [0, 1.0]]], Z=[[[1], [1]]], R=[[1, 1]], discount=0.9999, tolerance=0.01
    )
    with pytest.raises(ModelError, match=r"discount: got 0.9999 with rows that sum to 1.00625.*0\.9937"):
        solve(leaky)


def test_planners_by_their_settings():
    assert repr(RTBSS(3, "immediate", upper_bound="qmdp")) == (
        "RTBSS(depth=3, leaf_value='immediate', upper_bound='qmdp')"
    )
    with pytest.raises(PlanningError, match=re.escape("simulations: got 2 for 3 legal actions; expected at least 4")):
        POUCT(depth=3, simulations=2).decide(tiger())
    with pytest.raises(PlanningError, match=r"^upper_bound: got 1 for action 'a' with 5 actions to go.*2"):
        check_bound(2, 1, "a", 5)
    with pytest.raises(ModelError, match=re.escape("vectors: got shape (1, 2) with 3 actions; expected [K, S]")):
        AlphaVectorPolicy(np.zeros((1, 2)), np.zeros(3, dtype=int))


def test_symbols():
    sympy = pytest.importorskip("sympy")
    r, q = sympy.symbols("r q")

    def choice(**worth):
        return POMDP(
            transition=lambda s, a: s,
            observation=lambda s, a: "o",
            reward=lambda s, a: worth[a],
            initial_belief={"here": 1},
            legal_actions=list(worth),
        )

    with pytest.raises(PlanningError, match=r"^problem: got the values r and q;"):
        RTBSS(1).decide(choice(a=r, b=q))
    with pytest.raises(ParameterError, match=r"^problem: got the value Max\(q, r\) after \(\);"):
        AndOrTree.build(choice(a=r, b=q), depth=1).policy()
    with pytest.raises(ParameterError, match=r"^to_json: got sin\(q\) with a sin;"):
        AndOrTree.build(choice(a=sympy.sin(q)), depth=1).to_json()


def test_the_bounds_beside_the_bar_of_progress(capsys):
    solve(tiger(), max_trials=2, progress=True)
    lower, upper = re.findall(r"\[([-\d.]+), ([-\d.]+)\]", capsys.readouterr().err)[-1]
    assert float(lower) < float(upper)


def test_a_stop_that_is_not_legal_names_the_first_state():
    sides = POMDP(
        transition=lambda s, a: {"left": 0.5, "right": 0.5},
        observation=lambda s, a: "dark",
        reward=lambda s, a: 1,
        initial_belief={"start": 1},
        legal_actions=lambda s: ["go", "stop"] if s == "start" else ["go"],
    )
    words = re.escape("got ImmediateValue('stop'), which is not legal at a leaf belief (its first state: 'left')")
    for engine in ("plain", "arrays"):
        with pytest.raises(PlanningError, match=words):
            RTBSS(1, ImmediateValue("stop"), engine=engine).decide(sides)
