"""Policies side by side: verdicts, regret, the table in its forms."""

import copy
import json
import math
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier._intervals import mean_interval
from pomdp_hier._text import visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning import Decision, RandomPolicy, ThresholdPolicy, solve
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import compare_policies, mdp_value, policy_value, simulate
from pomdp_hier.simulation.comparison import _verdict, compare_values
from tests.nasty import NASTY, acts
from tests.pomdp_models import sensor

POLICIES = {
    "guess": lambda belief: 1,
    "sure": ThresholdPolicy([(1, 0.9, 1), (0, 0.9, 0)], otherwise="look"),
    "sure again": ThresholdPolicy([(1, 0.9, 1), (0, 0.9, 0)], otherwise="look"),
}


@pytest.mark.parametrize(
    ("given", "said"), [({"solution": "best"}, "solution: got a str"), ({"trace": "x"}, "trace: got 'x'")]
)
def test_what_is_no_solution_and_no_number_of_traces_is_refused(given, said):
    with pytest.raises(ParameterError, match=said):
        compare_policies({"first": FirstAction()}, tiger(), horizon=1, **given)


def test_exact_comparison():
    table = compare_policies(POLICIES, sensor(0.8), horizon=30, baseline="guess")
    assert [row.name for row in table] == list(POLICIES)
    assert table["guess"].value == -5
    assert table.mdp_value == 10
    assert table["guess"].mdp_regret == 15
    expected = float(policy_value(POLICIES["sure"], sensor(0.8), horizon=30))
    assert table["sure"].value == expected
    assert table["sure"].difference == expected + 5
    assert table["sure"].difference_interval is None
    assert [row.verdict for row in table] == ["baseline", "better", "better"]
    assert table.best.name == "sure"
    assert table["sure"].seconds_per_decision > 0


def test_monte_carlo_comparison_says_what_it_cannot_tell_apart():
    close = {
        "first": lambda belief: 1,
        "second": lambda belief: 0,  # the same by symmetry
        "same": lambda belief: 1,
        "careful": POLICIES["sure"],
    }
    table = compare_policies(close, sensor(0.8), method="monte-carlo", n_episodes=400, seed=0, horizon=50)
    assert [row.verdict for row in table] == ["baseline", "inconclusive", "same", "better"]
    low, high = table["careful"].difference_interval
    assert low < table["careful"].difference < high
    assert "inconclusive" in str(table)
    assert "n = 400" in str(table)


def test_paired_differences_use_the_pairs():
    noise = np.random.default_rng(0).normal(0, 10, 200)
    table = compare_values({"a": noise, "b": noise + 0.1 + 1e-3 * np.sin(np.arange(200))})
    assert table["b"].verdict == "better"
    assert table["b"].interval[0] < table["a"].value < table["b"].interval[1]


def test_early_stop_pairs_over_what_all_ran():
    options = {"n_episodes": 3000, "half_width": 0.8, "horizon": 2, "seed": 1}
    policies = {"guess": lambda belief: 1, "random": RandomPolicy(0)}
    alone = {name: simulate(policy, sensor(0.8), **options) for name, policy in policies.items()}
    lengths = {result.n_episodes for result in alone.values()}
    assert len(lengths) == 2
    table = compare_policies(policies, sensor(0.8), method="monte-carlo", **options)
    assert table.n == min(lengths)
    missed = max(result.missed for result in alone.values())
    t_interval = mean_interval(alone["guess"].values[: table.n], 0.95)
    assert table["guess"].interval == pytest.approx((t_interval[0] - missed, t_interval[1] + missed))
    low, high = table["random"].difference_interval
    assert high - low > 2 * missed > 0


def test_values_that_cut_runs_blur_are_not_told_apart():
    exact = {"a": np.array([1.0]), "b": np.array([1.0 + 1e-6]), "c": np.array([1.0 + 1e-5])}
    assert [row.verdict for row in compare_values(exact, method="exact")] == ["baseline", "better", "better"]
    blurred = compare_values(exact, error=1e-6, method="exact")
    assert [row.verdict for row in blurred] == ["baseline", "inconclusive", "better"]
    assert str(blurred).endswith("exact, truncation error 1e-06")
    assert blurred.to_dict()["error"] == 1e-6
    assert "truncation" not in str(compare_values(exact, method="exact"))


def test_missed_events_widen_every_interval():
    values = {"a": np.arange(5.0), "b": np.arange(5.0) + 0.25}
    assert compare_values(values)["b"].verdict == "better"
    for off in ({"missed": 0.5}, {"error": 0.5}, {"missed": 0.25, "error": 0.25}):
        wide = compare_values(values, **off)["b"]
        assert wide.verdict == "inconclusive"
        assert wide.difference_interval == (-0.75, 1.25)
        assert wide.interval == mean_interval(values["b"], 0.95, 0.5)


def test_traces_on_request():
    exact = compare_policies(POLICIES, sensor(0.8), horizon=2, trace=True)
    assert exact.traces["guess"][0].decision.action == 1
    sampled = compare_policies(POLICIES, sensor(0.8), horizon=2, method="monte-carlo", n_episodes=20, trace=4)
    assert [len(episodes) for episodes in sampled.traces.values()] == [4, 4, 4]
    assert not compare_policies(POLICIES, sensor(0.8), horizon=2).traces


def test_regret_is_to_the_mdp_value_or_a_given_one():
    environment = sensor(0.8)
    assert mdp_value(environment) == 10
    assert mdp_value(environment, horizon=0) == 0
    assert compare_policies([FirstAction()], environment, horizon=1, mdp_value=3).rows[0].mdp_regret == 4
    assert compare_policies([FirstAction()], environment, horizon=1, mdp_value=False).rows[0].mdp_regret is None


def test_names_of_a_sequence():
    def careful(belief):
        return "look"

    table = compare_policies([FirstAction(), FirstAction(), careful], sensor(0.8), horizon=1)
    assert [row.name for row in table] == ["FirstAction()", "FirstAction() (2)", "careful"]


def test_names_that_read_the_same_are_all_kept():
    table = compare_policies({1: FirstAction(), "1": RandomPolicy(0)}, sensor(0.8), horizon=1)
    assert [row.name for row in table] == ["1", "1 (2)"]
    assert table["1"].value != table["1 (2)"].value


COLUMNS = [
    "name",
    "value",
    "value_ci_low",
    "value_ci_high",
    "difference",
    "difference_ci_low",
    "difference_ci_high",
    "verdict",
    "mdp_regret",
    "optimality_gap_low",
    "optimality_gap_high",
    "seconds_per_decision",
]


def test_forms_of_the_table():
    table = compare_policies({"<b>": FirstAction(), "x": RandomPolicy(0)}, sensor(0.8), horizon=1)
    assert "&lt;b&gt;" in table._repr_html_()
    assert "<b>" not in table._repr_html_()
    text = json.dumps(table.to_dict(), allow_nan=False)
    assert list(json.loads(text)["policies"][0]) == COLUMNS
    assert json.loads(text)["policies"][0]["value"] == -1
    lines = str(table).splitlines()
    assert lines[0].split()[:2] == ["policy", "value"]
    assert len(lines) == 4
    frame = pytest.importorskip("pandas") and table.to_frame()
    assert ["name", *frame.columns] == COLUMNS
    assert frame.loc["<b>", "value"] == -1
    nan = compare_values({"a": np.array([1.0, 2.0])}, seconds={"a": math.nan})
    assert nan.to_dict()["policies"][0]["seconds_per_decision"] is None
    assert "nan" not in str(nan)
    with pytest.raises(KeyError, match=r"^\"policy: got 'y'"):
        table["y"]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ({}, {}, "^values: got none"),
        ({"a": np.zeros(2), "b": np.zeros(3)}, {}, r"\[2, 3\] values"),
        ({"a": np.zeros(2)}, {"baseline": "b"}, "^baseline: got 'b'; expected one of 'a'"),
        ({"a": np.zeros(2)}, {"confidence": 1}, "confidence.* 1; expected a number between 0 and 1"),
    ],
)
def test_values_that_cannot_be_compared(values, options, message):
    with pytest.raises(ParameterError, match=message):
        compare_values(values, **options)


def test_unknown_method():
    with pytest.raises(ParameterError, match=r"^method: got 'sampling'"):
        compare_policies(POLICIES, sensor(0.8), method="sampling")


def test_simulation_and_enumeration_agree_for_each_policy():
    for name, policy in POLICIES.items():
        exact = float(policy_value(policy, sensor(0.8), sensor(0.65), horizon=40))
        low, high = simulate(
            policy, sensor(0.8), sensor(0.65), n_episodes=600, seed=9, horizon=40, confidence=0.999
        ).interval
        assert low <= exact <= high, name


def test_what_is_no_collection_of_policies_is_refused():
    with pytest.raises(ParameterError, match=r"^policies: got"):
        compare_policies(FirstAction(), FirstAction())
    with pytest.raises(ParameterError, match=r"^policies: got"):
        compare_policies("optimal", FirstAction())


def test_lists_of_values_are_compared_as_arrays_are():
    lists = {"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]}
    arrays = {name: np.array(values) for name, values in lists.items()}
    assert compare_values(lists).rows == compare_values(arrays).rows


def test_names_that_act_are_names_in_every_form_of_the_table():
    table = compare_values({name: np.array([float(i)]) for i, name in enumerate(NASTY)}, method="exact")
    assert acts(str(table)) == []
    assert len(str(table).split("\n")) == len(NASTY) + 2
    page = ElementTree.fromstring(table._repr_html_())
    assert [row.findtext("td") for row in page.iter("tr")][1:] == list(map(visible, NASTY))
    assert [row["name"] for row in table.to_dict()["policies"]] == NASTY
    with pytest.raises(ParameterError, match=r"^baseline: got 'none'") as caught:
        compare_values({name: np.array([1.0]) for name in NASTY}, baseline="none")
    assert acts(str(caught.value)) == []
    with pytest.raises(KeyError) as caught:
        table["none"]
    assert acts(str(caught.value)) == []


class Breaks:
    """Listens once, and then has no answer."""

    def decide(self, problem, belief=None, *, observation=None):
        if observation is not None:
            raise KeyError("no plan")
        return Decision("listen")


@pytest.mark.parametrize("method", ["exact", "monte-carlo"])
def test_a_policy_that_fails_is_named_and_the_others_keep_their_rows(method):
    given = {"method": method, "horizon": 3, "n_episodes": 20}
    alone = compare_policies({"first": FirstAction(), "last": lambda b: "open-left"}, tiger(), **given)
    policies = {"first": FirstAction(), "broken": Breaks(), "last": lambda b: "open-left", "bare": lambda b: "fly"}
    table = compare_policies(policies, tiger(), **given)
    assert [row.name for row in table] == ["first", "last"]
    assert [row.value for row in table] == [row.value for row in alone]
    assert set(table.failed) == {"broken", "bare"}
    assert table.failed["broken"] == "KeyError: 'no plan'"
    assert "broken failed (KeyError: 'no plan')" in str(table)
    assert "expected a legal action" in table.failed["bare"]
    assert table.to_dict()["failed"] == dict(table.failed)


def test_a_baseline_that_fails_is_an_error_that_names_it():
    with pytest.raises(KeyError) as caught:
        compare_policies({"first": FirstAction(), "broken": Breaks()}, tiger(), horizon=3, baseline="broken")
    assert caught.value.__notes__ == ["raised while the policy 'broken' was evaluated"]
    with pytest.raises(KeyError):
        compare_policies({"broken": Breaks()}, tiger(), horizon=3)
    # Where the first fails and none was asked for, the next one that ran is the baseline.
    table = compare_policies({"broken": Breaks(), "first": FirstAction()}, tiger(), horizon=3)
    assert table.baseline == "first"


def test_what_it_says_of_its_numbers_stands_in_its_place():
    problem = tiger()
    for solution, horizon, words in (
        (
            solve(tiger(accuracy=0.8), horizon=2),
            2,
            r"of a problem with other numbers; .* solve\(environment, horizon=2\)",
        ),
        (solve(problem, belief={"tiger-left": 1}, horizon=2), 2, r"from .*'tiger-left': 1.*, horizon=2\)"),
        (solve(problem, horizon=3), 2, r"with horizon=3; expected horizon=2, .* solve\(environment, horizon=2\), .*=3"),
        (solve(problem, horizon=3), None, r"with horizon=3; expected horizon=None, .* solve\(environment\), .*=3"),
    ):
        with pytest.raises(ParameterError, match=rf"^solution: got one {words}\.$"):
            compare_policies([FirstAction()], problem, horizon=horizon, solution=solution)
    assert compare_policies([FirstAction()], problem, horizon=3, solution=solve(problem, horizon=3)).optimum
    with pytest.raises(ParameterError, match=r"^policies: got 'x'"):
        compare_policies("x", tiger())
    with pytest.raises(ParameterError, match=r"the policies before"):
        compare_policies(tiger(), [FirstAction()])
    table = compare_values({"a": np.array([1.0, 2.0, 4.0]), "b": np.array([0.0, 0.5, 5.0])})
    low, high = table["b"].interval
    row = table.to_dict()["policies"][1]
    assert (row["value_ci_low"], row["value_ci_high"]) == (low, high)
    assert (row["difference_ci_low"], row["difference_ci_high"]) == table["b"].difference_interval
    assert f"[{low:.4f}, {high:.4f}]" in str(table)
    page = table._repr_html_()
    assert page.index("<thead><tr><th>policy</th>") < page.index("<tbody><tr><td>a</td>")


def test_a_regret_to_the_optimum_allows_for_what_was_cut_off():
    problem = tiger(discount=0.9)
    solution = solve(problem, precision=1.0)
    table = compare_policies(
        {"listen": FirstAction()}, problem, solution=solution, truncation_error=1.0, mdp_value=False
    )
    assert table.error > 0.001
    low, high = table["listen"].optimality_gap
    value = table["listen"].value
    assert low == pytest.approx(solution.lower - value - table.error, abs=1e-9)
    assert high == pytest.approx(solution.upper - value + table.error, abs=1e-9)


def test_a_solution_of_a_copy_of_the_environment_is_accepted():
    arrays = {"T": [[[0.9, 0.1], [0.2, 0.8]]] * 2, "Z": [[[0.7, 0.3], [0.4, 0.6]]] * 2, "R": [[1, 0], [0, 2]]}
    problem = POMDP.from_arrays(**arrays, discount=0.5)
    solution = solve(problem, horizon=3)
    gaps = compare_policies([FirstAction()], problem, solution=solution, horizon=3)["FirstAction()"].optimality_gap
    equal = solve(POMDP.from_arrays(**arrays, discount=0.5), belief=problem.initial_belief, horizon=3)
    for same in (copy.deepcopy(solution), pickle.loads(pickle.dumps(solution)), equal):
        assert same.problem is not problem
        table = compare_policies([FirstAction()], problem, solution=same, horizon=3)
        assert table["FirstAction()"].optimality_gap == gaps
    for changed in ({"R": [[1, 0], [0, np.nextafter(2, 3)]]}, {"initial_belief": {0: 1}}, {"discount": 0.4}):
        other = POMDP.from_arrays(**(arrays | {"discount": 0.5} | changed))
        with pytest.raises(ParameterError, match=r"^solution: got one of a problem"):
            compare_policies([FirstAction()], other, solution=solution, horizon=3)


def test_a_half_width_of_an_exact_comparison_is_rejected():
    with pytest.raises(ParameterError, match=r"^half_width: got 0\.5 with method='exact'"):
        compare_policies([FirstAction()], tiger(), horizon=1, half_width=0.5)


def test_a_verdict_needs_an_interval_beyond_0():
    for interval, verdict in (
        ((0.0, 2.0), "inconclusive"),
        ((0.1, 2.0), "better"),
        ((-2.0, 0.0), "inconclusive"),
        ((-2.0, -0.1), "worse"),
    ):
        assert _verdict(np.array([1.0, 0.5]), interval, 0.0) == verdict
    assert _verdict(np.array([1.0]), None, 0.5) == "inconclusive"
    assert _verdict(np.array([1.0]), None, 0.4) == "better"


def test_two_pairs_have_an_interval_and_one_has_none():
    assert compare_values({"a": np.array([1.0, 2.0])})["a"].interval == mean_interval(np.array([1.0, 2.0]), 0.95)
    assert compare_values({"a": np.array([1.0])}, method="exact")["a"].interval is None


def always_one() -> POMDP:
    """A reward of 1 per step without end, at a discount of 0.99: every policy's value is 100, and its gap 0."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0,
        initial_belief={"s": 1.0},
        discount=0.99,
        legal_actions=["go"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"method": "exact"}, {"method": "monte-carlo", "n_episodes": 20}])
@pytest.mark.parametrize("truncation_error", [60.0, 1.0, 1e-3])
@pytest.mark.filterwarnings("ignore:half_width:pomdp_hier.errors.SimulationWarning")  # all returns are the same
def test_intervals_and_gaps_contain_the_error_of_a_cutoff(options, truncation_error):
    problem = always_one()
    policies = {"go": FirstAction(), "same": FirstAction()}
    table = compare_policies(
        policies, problem, solution=solve(problem, precision=1e-6), truncation_error=truncation_error, **options
    )
    for row in table:
        least, most = row.optimality_gap
        assert least <= 1e-4
        assert most >= 0
        assert row.interval is None or row.interval[0] <= 100 <= row.interval[1] + 1e-9
    if options["method"] == "monte-carlo":
        result = simulate(FirstAction(), problem, n_episodes=20, truncation_error=truncation_error)
        assert result.interval == table["go"].interval
        assert 0 < result.error <= truncation_error
        narrow = simulate(
            FirstAction(),
            problem,
            n_episodes=60,
            min_episodes=20,
            truncation_error=truncation_error,
            half_width=truncation_error / 9,
        )
        assert not narrow.stopped_early


def test_one_episode_proves_nothing():
    problem = sensor(0.8)
    solution = solve(problem, horizon=2)
    table = compare_policies(POLICIES, problem, solution=solution, horizon=2, method="monte-carlo", n_episodes=1)
    assert {row.optimality_gap for row in table} == {None}
    assert {row.verdict for row in table} <= {"baseline", "same", "inconclusive"}
    assert table.n == 1


def test_a_controller_of_few_actions_is_not_worth_what_it_is_worth_for_ever():
    problem = tiger(discount=0.5)
    controller = solve(problem, precision=1e-2).controller()
    for horizon in (1, None):
        exact = policy_value(controller, problem, horizon=horizon, truncation_error=1e-9).value
        table = compare_policies({"c": controller}, problem, horizon=horizon, mdp_value=False)
        assert table["c"].value == pytest.approx(float(exact), abs=1e-6)
