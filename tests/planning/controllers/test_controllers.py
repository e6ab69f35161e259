"""Controllers: exact values against simulation and closed forms, the files of other solvers, minimising, drawing."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ModelError, ParameterError, PlanningError, PolicyFileError
from pomdp_hier.planning import (
    RTBSS,
    AlphaVectorPolicy,
    FiniteStateController,
    read_policy,
    solve,
    write_policy,
)
from pomdp_hier.planning.controllers import files
from pomdp_hier.problems import cheese_maze, maze_4x3, tiger
from pomdp_hier.simulation import compare_policies, policy_value, simulate
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from tests.exact_oracle import exact_value
from tests.pomdp_models import three_node
from tests.small_problems import KINDS, small_problem


@pytest.fixture(scope="module")
def classic():
    """The tiger's optimal controller: listen until one side was heard twice more often than the other."""
    return solve(tiger(), precision=1e-3).controller()


def simulated(controller, n_runs, rng, n_steps):
    """Returns of runs that follow the controller's nodes, by nothing but the model's own distributions."""
    problem, returns = controller.problem, []
    for _ in range(n_runs):
        state, node, total, weight = problem.initial_belief.sample(rng), controller.start, 0.0, 1.0
        for _ in range(n_steps):
            if problem.is_terminal(state) or node < 0:
                break
            action = controller.action_names[node]
            flows = problem.successors(state, action)
            then = list(flows)[int(rng.choice(len(flows), p=list(flows.values())))]
            made = problem.observation_distribution(then, action, state)
            seen = list(made)[int(rng.choice(len(made), p=list(made.values())))]
            total += weight * problem.step_reward(state, action, then, seen)
            weight *= problem.discount
            state, node = then, int(controller.after[node, problem.all_observations.index(seen)])
        returns.append(total)
    return np.array(returns)


def check_against_simulation(seed, n_runs):
    problem = small_problem(seed, discount=0.8)
    solution = solve(problem, precision=1e-4, max_trials=30)
    controller = solution.controller()
    value = controller.value()
    assert solution.lower - 1e-6 <= value <= solution.upper + 1e-6
    returns = simulated(controller, n_runs, np.random.default_rng(seed), 60)
    error = 4.5 * returns.std() / np.sqrt(n_runs) + 30 * 0.8**60 / 0.2
    assert abs(returns.mean() - value) <= error + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_simulated_runs(seed):
    check_against_simulation(seed, 100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_values_are_those_of_simulated_runs_on_twenty_models(seed):
    check_against_simulation(seed, 1_500)


def test_the_tigers_controller(classic):
    assert len(classic) == 5
    assert 19.3713 < classic.value() < 19.3907
    assert float(classic.value(exact=True)) == pytest.approx(classic.value(), abs=1e-9)
    assert classic.action_names.count("listen") == 3


@pytest.mark.parametrize("seed", range(6))
def test_floats_and_fractions_agree(seed):
    controller = solve(small_problem(seed, discount=0.5), precision=1e-1, max_trials=3).controller()
    assert controller.value() == pytest.approx(float(controller.value(exact=True)), abs=1e-8)


@pytest.mark.parametrize("kind", ["plain", "ends", "legal by state", "legal by observation"])
def test_floats_and_fractions_agree_at_every_node_and_state(kind):
    lost = 0
    for seed in range(4):
        problem, random = small_problem(seed, kind=kind, discount=0.5), np.random.default_rng(seed)
        actions = random.integers(0, problem.compiled.n_actions, 3)
        after = random.integers(-1, 3, (3, problem.compiled.n_observations))
        controller = FiniteStateController(problem, actions, after, start=1)
        exact = np.array([[-np.inf if v is None else float(v) for v in row] for row in controller.exact_values])
        assert controller.values == pytest.approx(exact, abs=1e-9)
        lost += int((exact == -np.inf).sum())
    assert (lost > 0) == kind.startswith("legal")


def test_a_value_by_hand():
    always = FiniteStateController(
        tiger(discount=Fraction(1, 2)), np.array([1]), np.array([[0, 0]])
    )  # open the left door
    assert always.value(exact=True) == -90
    assert always.value({"tiger-left": 1}, exact=True) == Fraction(-100) - 45


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_finite_horizon_is_a_controller_that_ends(horizon):
    solution = solve(tiger(), horizon=horizon, precision=1e-9)
    controller = solution.controller()
    assert controller.value() == pytest.approx(solution.lower)
    assert (controller.after < 0).any() or horizon == 1


def test_as_a_policy_it_earns_what_it_says(classic):
    value = policy_value(classic, tiger(), horizon=12).value
    assert value == pytest.approx(policy_value(solve(tiger(), precision=1e-6).policy, tiger(), horizon=12).value)


def test_minimising_keeps_the_value():
    for problem in (tiger(), cheese_maze()):
        solution = solve(problem, precision=1e-2)
        whole = solution.controller()
        doubled = FiniteStateController(
            problem,
            np.tile(whole.actions, 2),
            np.vstack([whole.after, np.where(whole.after >= 0, whole.after + len(whole), -1)]),
            whole.start + len(whole),
        )
        assert len(doubled.minimised()) <= len(whole)
        assert doubled.minimised().value() == pytest.approx(whole.value(), abs=1e-9)


def test_what_is_no_controller_is_refused():
    with pytest.raises(ModelError, match="controller"):
        FiniteStateController(tiger(), np.array([0]), np.array([[0, 1]]))
    with pytest.raises(ModelError, match="controller"):
        FiniteStateController(tiger(), np.array([7]), np.array([[0, 0]]))
    with pytest.raises(PlanningError, match="indefinitely"):
        FiniteStateController(maze_4x3(), np.array([0]), np.zeros((1, 6), dtype=int)).value()


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["alpha", "policy", "XML"])
def test_vectors_round_trip(tmp_path, classic, ending):
    policy = classic.vectors
    write_policy(policy, tmp_path / f"file.{ending}")
    again = read_policy(tmp_path / f"file.{ending}", tiger())
    assert np.array_equal(again.vectors, policy.vectors)
    assert np.array_equal(again.actions, policy.actions)
    assert again.value(tiger()) == pytest.approx(classic.value())


def test_the_format_is_that_of_the_extension(tmp_path, classic):
    for call in (lambda path: read_policy(path, tiger()), lambda path: write_policy(classic, path)):
        with pytest.raises(ParameterError, match=r"^path: got '.*/p\.txt'; expected .*'\.alpha', '\.pg'"):
            call(tmp_path / "p.txt")
    for policy, ending, kind in (
        (classic, "xml", "AlphaVectorPolicy"),
        (classic.vectors, "pg", "FiniteStateController"),
    ):
        with pytest.raises(ParameterError, match=rf"^policy: got a \w+ for a \.{ending} file; expected a {kind}"):
            write_policy(policy, tmp_path / f"p.{ending}")
        assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match=r"^start: got 1 for a \.alpha file"):
        read_policy(tmp_path / "p.alpha", tiger(), start=1)


def test_policy_graphs_round_trip(tmp_path, classic):
    write_policy(classic, tmp_path / "tiger.pg")
    again = read_policy(tmp_path / "tiger.pg", tiger())
    assert again.value() == pytest.approx(classic.value())


def test_a_file_of_pomdp_solve_is_read(tmp_path):
    (tmp_path / "tiger.pg").write_text("0 2  2 2\n1 1  2 2\n2 0  3 4\n3 0  1 2\n4 0  2 0\n")
    controller = read_policy(tmp_path / "tiger.pg", tiger(), start=2)
    assert len(controller) == 5
    (tmp_path / "tiger.alpha").write_text("0\n-1.0 -1.0\n\n1\n-100 10\n\n2\n10 -100\n")
    assert read_policy(tmp_path / "tiger.alpha", tiger()).decide(tiger()).action == "listen"


def test_sparse_vectors_of_sarsop_are_read(tmp_path):
    (tmp_path / "p.policy").write_text(
        '<?xml version="1.0" encoding="ISO-8859-1"?><Policy version="0.1" type="value" model="m">'
        '<AlphaVector vectorLength="2" numObsValue="1" numVectors="1"><SparseVector action="1" obsValue="0">'
        "<Entry>1 2.5</Entry></SparseVector></AlphaVector></Policy>"
    )
    policy = read_policy(tmp_path / "p.policy", tiger())
    assert policy.vectors.tolist() == [[0.0, 2.5]]


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE Policy [<!ENTITY a "1 1 1 1 1 1 1 1"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<Policy><AlphaVector vectorLength="2"><Vector action="0" obsValue="0">&b;</Vector></AlphaVector></Policy>'
)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (BOMB, "document type"),
        ("<Policy>", "no element|unclosed|:1"),
        ("<html></html>", "expected <Policy>"),
        ("", ":1"),
        ("<Policy></Policy>", "no <Vector>"),
        ('<Policy><AlphaVector vectorLength="3"><Vector action="0">1 2</Vector></AlphaVector></Policy>', "3"),
        (
            '<Policy><AlphaVector vectorLength="2"><Vector action="0">1 x</Vector></AlphaVector></Policy>',
            "got 'x'",
        ),
        (
            '<Policy><AlphaVector vectorLength="2"><Vector action="0">1 2</Vector></AlphaVector>'
            '<AlphaVector vectorLength="3"><Vector action="0">1 2 3</Vector></AlphaVector></Policy>',
            "got vectorLength 3; expected 2",
        ),
        ('<Policy><AlphaVector vectorLength="2" numObsValue="4"></AlphaVector></Policy>', "observed"),
        (
            '<Policy><AlphaVector vectorLength="999999999999"><SparseVector action="0"/></AlphaVector></Policy>',
            "got vectorLength 999999999999; expected 2",
        ),
        ('<Policy><AlphaVector vectorLength="2"><Vector action="9">1 2</Vector></AlphaVector></Policy>', "actions"),
    ],
)
def test_broken_xml_is_refused(tmp_path, text, match):
    (tmp_path / "p.policy").write_text(text)
    with pytest.raises(PolicyFileError, match=match):
        read_policy(tmp_path / "p.policy", tiger())


SPARSE = '<Policy><AlphaVector vectorLength="2"><SparseVector action="0">{}</SparseVector></AlphaVector></Policy>'
DENSE = '<Policy><AlphaVector vectorLength="2"><Vector action="0">{}</Vector></AlphaVector></Policy>'
WRONG = [
    (SPARSE.format('<AlphaVector vectorLength="1000000000"/>'), "'AlphaVector'"),
    (SPARSE.format('<Vector action="0">1 2</Vector>'), "'Vector'"),
    (SPARSE.format("<Entry>0 1</Entry><Entry>0 2</Entry>"), "index 0 again"),
    (SPARSE.format("<Entry>0 1</Entry>7"), "'7'"),
    (SPARSE.format("<Entry>0 <Entry>1</Entry></Entry>"), "'Entry'"),
    (SPARSE.format("<Entry>2 1</Entry>"), "index 2"),
    (SPARSE.format("<Entry>0 1_0</Entry>"), "'1_0'"),
    (DENSE.format("1 <b/> 2"), "'b'"),
    (DENSE.format("1_000 2"), "'1_000'"),
    (DENSE.format("0x10 2"), "'0x10'"),
    (DENSE.format("\u0661 2"), "'\u0661'"),
    (DENSE.format("inf 2"), "'inf'"),
    (DENSE.format("1e999 2"), "'1e999'"),
    (DENSE.format("1 2").replace('action="0"', 'action="0" obsValue="1"'), "obsValue '1'"),
    ('<Policy>3<AlphaVector vectorLength="2"/></Policy>', "'3'"),
    ('<Policy><Other><Vector action="0">1 2</Vector></Other></Policy>', "'Other'"),
    ('<Policy><Vector action="0">1 2</Vector></Policy>', "'Vector'"),
]


@pytest.mark.parametrize(("text", "named"), WRONG)
def test_no_number_of_a_policy_file_is_dropped_crossed_or_guessed(tmp_path, text, named):
    (tmp_path / "p.policy").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyFileError, match=rf"p\.policy:1: got .*{named}"):
        read_policy(tmp_path / "p.policy", tiger())


def test_a_claimed_length_takes_no_memory(tmp_path, monkeypatch):
    text = '<Policy><AlphaVector vectorLength="{}"><SparseVector action="0"/></AlphaVector></Policy>'
    for length in (999_999_999_999, 99_999_999):
        (tmp_path / "p.policy").write_text(text.format(length))
        with pytest.raises(PolicyFileError, match=f"vectorLength {length}; expected 2"):
            read_policy(tmp_path / "p.policy", tiger())
    monkeypatch.setattr(files, "memory_available", lambda: 31)
    (tmp_path / "p.alpha").write_text("0\n1 2\n\n1\n1 2\n")
    with pytest.raises(PolicyFileError, match="got vectors of 4 values; expected at most 3, as memory allows"):
        read_policy(tmp_path / "p.alpha", tiger())


@pytest.mark.parametrize("word", ["1_0", "nan", "infinity", "1e400", "\u0661", "0x1p3"])
def test_numbers_of_an_alpha_file_are_decimals(tmp_path, word):
    (tmp_path / "p.alpha").write_text(f"0\n{word} 2\n", encoding="utf-8")
    with pytest.raises(PolicyFileError, match=r"p\.alpha:2: got "):
        read_policy(tmp_path / "p.alpha", tiger())
    (tmp_path / "p.alpha").write_text("\ufeff0\r\n+1.5e-1 .5\r\n", encoding="utf-8")
    assert read_policy(tmp_path / "p.alpha", tiger()).vectors.tolist() == [[0.15, 0.5]]


@pytest.mark.parametrize(
    "text", ["", "0\n", "0\n1 2\n\n1\n1\n", "x\n1 2\n", "0\n1 nan\n", "0 0\n1 2\n", "0\n1 2 3\n", "9\n1 2\n"]
)
def test_broken_alpha_files_are_refused(tmp_path, text):
    (tmp_path / "f.alpha").write_text(text)
    with pytest.raises(PolicyFileError, match=r"\.alpha"):
        read_policy(tmp_path / "f.alpha", tiger())


@pytest.mark.parametrize("text", ["", "0 0 0\n", "0 0 0 7\n", "0 9 0 0\n", "0 0 0 0\n0 0 0 0\n", "x 0 0 0\n"])
def test_broken_policy_graphs_are_refused(tmp_path, text):
    (tmp_path / "f.pg").write_text(text)
    with pytest.raises(PolicyFileError, match=r"\.pg"):
        read_policy(tmp_path / "f.pg", tiger())


def test_vectors_of_another_problem_are_refused():
    policy = AlphaVectorPolicy(np.zeros((1, 3)), np.array([0]))
    with pytest.raises(ModelError, match="3 states"):
        policy.decide(tiger())
    with pytest.raises(ModelError, match="expected"):
        AlphaVectorPolicy(np.zeros((0, 3)), np.zeros(0, dtype=int))


def test_vectors_are_read_where_they_are_legal():
    alone = AlphaVectorPolicy(np.array([[-np.inf, 1.5], [0.5, 0.25]]), np.array([1, 0]))
    assert alone.decide(tiger(), {"tiger-right": 1}).action == "open-left"
    assert alone.decide(tiger(), {"tiger-left": 1}).action == "listen"
    with pytest.raises(ModelError, match="got 2 states and actions up to 3; expected the problem's 2 states and 3"):
        AlphaVectorPolicy(np.zeros((2, 2)), np.array([0, 3])).decide(tiger())
    search = three_node(0.75, 0.0, 0.5, 0.25)
    descend, only = (search.all_actions.index(action) for action in ("descend", "search"))
    both = AlphaVectorPolicy(np.array([np.full(7, 9.0), np.full(7, 2.0)]), np.array([descend, only]))
    assert both.value(search, {("c0", 1): 1}) == 9
    assert both.value(search, {("c1", 1): 1}) == 2


def test_without_a_discount_a_controller_has_a_value_if_it_surely_ends():
    rewards = {"a": 1, "b": 2}
    walk = POMDP(
        transition=lambda s, a: {"a": "b", "b": "end"}[s],
        observation=lambda s, a: s,
        reward=lambda s, a: rewards[s],
        initial_belief={"a": 1},
        terminal=["end"],
        legal_actions=["go"],
    )
    controller = FiniteStateController(walk, np.array([0]), np.zeros((1, 2), dtype=int))
    assert controller.value() == controller.value(exact=True) == 3
    assert controller.to_text().splitlines()[0] == "* 0 go  V 3  a 1"


def test_a_state_that_is_never_met_takes_no_value_from_the_others():
    """Without a discount one that stays where it is for ever has none; it cannot be met from the start."""
    after = {"a": {"b": Fraction(1, 2), "end": Fraction(1, 2)}, "b": {"end": 1}, "lost": {"lost": 1}}
    walk = POMDP(
        transition=lambda s, a: after[s],
        observation=lambda s, a: "same",
        reward=lambda s, a: {"a": 1, "b": 2, "lost": 1}[s],
        initial_belief={"a": 1},
        states=["a", "b", "lost", "end"],
        terminal=["end"],
        legal_actions=["go"],
    )
    controller = solve(walk).controller()
    assert controller.value() == controller.value(exact=True) == 2
    assert controller.values.tolist() == [[2, 2, -np.inf, 0]]
    assert controller.exact_values == [[2, 2, None, 0]]
    assert RTBSS(2, controller).decide(walk).value == 2
    for exact in (False, True):
        with pytest.raises(PlanningError, match="indefinitely"):
            controller.value({"lost": 1}, exact=exact)


def test_an_action_that_is_not_legal_after_the_observation_has_no_value():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "shut",
        reward=lambda s, a: 1,
        initial_belief={"here": 1},
        discount=0.5,
        actions=["push", "wait"],
        observations=["shut"],
        legal_actions=lambda o: ["push", "wait"] if o is None else ["wait"],
        legal_by="observation",
    )
    pushes, waits = (FiniteStateController(problem, np.array([0, a]), np.ones((2, 1), dtype=int)) for a in (0, 1))
    assert (waits.value(), waits.value(exact=True)) == (2, 2)
    for exact in (False, True):
        with pytest.raises(PlanningError, match="not legal"):
            pushes.value(exact=exact)


# --- controllers that stop -------------------------------------------------------------------------------------------


def check_a_controller_that_stops(seed, kind):
    problem = small_problem(seed, kind=kind, discount=0.8)
    solution = solve(problem, horizon=3, precision=1e-9)
    controller, best = solution.controller(), float(exact_value(problem, horizon=3))
    assert controller.value() == pytest.approx(best, abs=1e-7)
    # Run from node to node: no node of another step takes its place.
    assert policy_value(controller, problem, horizon=3).value == pytest.approx(best, abs=1e-7)
    assert controller.decide(problem).value == pytest.approx(best, abs=1e-7)
    table = compare_policies({"c": controller, "p": solution.policy}, problem, horizon=3, solution=solution)
    assert [row.optimality_gap[0] for row in table] == pytest.approx([0, 0], abs=1e-7)
    return problem, controller


@pytest.mark.parametrize(("seed", "kind"), [(1, "plain"), (4, "ends")])
def test_a_controller_that_stops_earns_what_it_says(seed, kind):
    problem, controller = check_a_controller_that_stops(seed, kind)
    looked = RTBSS(2, controller).decide(problem).value
    assert looked <= float(exact_value(problem, horizon=5)) + 1e-9
    if controller.stops:  # beyond its steps it has no action, and says so
        with pytest.raises(PlanningError, match="expected a run within its steps"):
            compare_policies([controller], problem, truncation_error=1e-2, mdp_value=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "ends", "legal by state", "legal by observation"])
@pytest.mark.parametrize("seed", range(4, 8))
def test_controllers_that_stop_earn_what_they_say(seed, kind):
    check_a_controller_that_stops(seed, kind)


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
    controller = solve(tiger(accuracy=0.65, discount=0.98), precision=0.2).controller()
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


# --- run as they are valued ------------------------------------------------------------------------------------------


def enumerated(problem, controller, horizon):
    """The value in fractions by a walk over states and nodes, of the model's numbers as decimals."""

    def exact(number):
        return Fraction(str(number))

    def value(state, node, steps):
        if steps == 0 or node < 0 or problem.is_terminal(state):
            return Fraction(0)
        action = controller.action_names[node]
        total = Fraction(0)
        for then, p in problem.successors(state, action).items():
            for seen, q in problem.observation_distribution(then, action, state).items():
                node_then = int(controller.after[node, problem.compiled.observation_index[seen]])
                reward = exact(problem.step_reward(state, action, then, seen))
                ahead = value(then, node_then, steps - 1)
                total += exact(p) * exact(q) * (reward + exact(problem.discount) * ahead)
        return total

    start = problem.initial_belief.items()
    return sum((exact(p) * value(s, controller.start, horizon) for s, p in start), Fraction(0))


def check_a_controller_runs_as_it_is_valued(seed):
    """Of plans of n steps that may end before, tie, and have no discount; and of controllers at random."""
    kind, discount, horizon = KINDS[seed % len(KINDS)], (1.0, 0.5, 1.0)[seed % 3], 1 + seed % 4
    problem = small_problem(seed, kind=kind, discount=discount, unit=float(seed % 7 > 0))
    controller = solve(problem, horizon=horizon).controller()
    truth = float(enumerated(problem, controller, horizon))
    near = pytest.approx(truth, abs=1e-9 * max(1.0, float(np.abs(problem.compiled.reward).max())))
    assert controller.value() == near
    assert float(controller.value(exact=True)) == near
    assert policy_value(controller, problem, horizon=horizon).value == near
    table = compare_policies({"c": controller}, problem, horizon=horizon, mdp_value=False)
    assert table["c"].value == near
    rng = np.random.default_rng(seed)
    shape = (3, problem.compiled.n_observations)
    other = FiniteStateController(problem, np.zeros(3, dtype=int), rng.integers(0, 3, shape), int(rng.integers(3)))
    truth = float(enumerated(problem, other, horizon))
    near = pytest.approx(truth, abs=1e-9 * max(1.0, float(np.abs(problem.compiled.reward).max())))
    assert policy_value(other, problem, horizon=horizon).value == near
    return problem, controller, horizon


@pytest.mark.parametrize("seed", range(24))
def test_a_controller_runs_as_it_is_valued(seed):
    problem, controller, horizon = check_a_controller_runs_as_it_is_valued(seed)
    sampled = simulate(controller, problem, horizon=horizon, n_episodes=50, confidence=0.999999)
    low, high = sampled.interval
    assert low - 1e-9 <= controller.value() <= high + 1e-9 or sampled.values.std() == 0


@pytest.mark.slow
@pytest.mark.parametrize("block", range(16))
def test_four_hundred_controllers_run_as_they_are_valued(block):
    for seed in range(25 * block + 24, 25 * block + 49):
        check_a_controller_runs_as_it_is_valued(seed)


@pytest.mark.parametrize("discount", [1, 0.95])
def test_a_plan_that_ends_the_process_is_run_step_by_step(discount):
    """With two actions the best is to earn 2 and then to cash 8.75, which ends the process."""
    problem = POMDP(
        transition=lambda s, a: "work" if a == "earn" else "done",
        observation=lambda s, a: "o",
        reward=lambda s, a: 2.0 if a == "earn" else 8.75,
        initial_belief={"work": 1.0},
        terminal=["done"],
        discount=discount,
        legal_actions=["earn", "cash"],
    )
    solution = solve(problem, horizon=2)
    controller, best = solution.controller(), 2 + 8.75 * discount
    for horizon in (2, 5, None):
        row = compare_policies([controller], problem, horizon=horizon, mdp_value=False).rows[0]
        assert row.value == policy_value(controller, problem, horizon=horizon).value == pytest.approx(best)
        assert simulate(controller, problem, horizon=horizon, n_episodes=3).value == pytest.approx(best)
        looped = simulate_in_pomdp_py(controller, problem, horizon=horizon, n_episodes=3)
        assert looped.value == pytest.approx(best)


def test_nodes_that_tie_do_not_circle_without_a_discount():
    """To wait costs nothing, so that to wait and to cash tie: the controller cashes after it has waited once."""
    problem = POMDP(
        transition=lambda s, a: "here" if a == "wait" else "done",
        observation=lambda s, a: "o",
        reward=lambda s, a: 0 if a == "wait" else 10,
        initial_belief={"here": 1},
        terminal=["done"],
        legal_actions=["wait", "cash"],
    )
    controller = FiniteStateController(problem, np.array([0, 1]), np.array([[1], [-1]]))
    assert controller.value(exact=True) == policy_value(controller, problem).value == 10
    assert simulate(controller, problem, n_episodes=2).value == 10


def test_memory_reaches_other_processes():
    pytest.importorskip("joblib")
    problem = small_problem(1, kind="plain", discount=0.8)
    controller = solve(problem, horizon=3).controller()
    alone = policy_value(controller, problem, horizon=3).value
    assert policy_value(controller, problem, horizon=3, n_jobs=2).value == alone
