"""Experiments and resumed comparisons: equal to uninterrupted ones, whatever is changed or cut short."""

import itertools
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import CheckpointError, ModelError, ParameterError
from pomdp_hier.planning import RTBSS, QMDPPolicy, RandomPolicy, solve
from pomdp_hier.problems import crying_baby, tiger
from pomdp_hier.simulation import compare_policies, run_experiment, simulate
from pomdp_hier.simulation.comparison import compare_values
from pomdp_hier.simulation.comparison_table import Gap, Quantity

POLICIES = {"QMDP": QMDPPolicy(), "random": RandomPolicy(3), "RTBSS": RTBSS(depth=1)}


class Breaks:
    """A policy that listens, and raises `KeyboardInterrupt` at one of its decisions."""

    def __init__(self, at):
        self.at, self.decisions = at, 0

    def decide(self, problem, belief=None, *, observation=None):
        self.decisions += 1
        if self.decisions == self.at:
            raise KeyboardInterrupt
        return QMDPPolicy().decide(problem, belief, observation=observation)

    def seeded(self, seed):  # each decision is asked for
        return self

    def __getstate__(self):
        return {}


def rows(table):
    return [(r.name, r.value, r.interval, r.difference, r.difference_interval, r.verdict) for r in table]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"method": method, "horizon": horizon, **extra}, marks=[pytest.mark.slow] * ((horizon == 1) == bool(extra))
        )
        for method, horizon, extra in itertools.product(
            ["exact", "monte-carlo"],
            [1, 3],
            [{}, {"policy_version": "2"}, {"confidence": 0.8}, {"baseline": "random"}, {"truncation_error": 1e-3}],
        )
    ]
    + [{"method": "monte-carlo", "horizon": 2, "half_width": 5.0}],
)
def test_a_resumed_comparison_equals_one_without_a_checkpoint(tmp_path, settings):
    sizes = {} if settings["method"] == "exact" else {"n_episodes": 20}
    plain = {name: value for name, value in settings.items() if name != "policy_version"}
    alone = rows(compare_policies(POLICIES, tiger(), **plain, **sizes))
    for n in (8, 20, 20):  # shorter first, then continued, then read
        some = {} if not sizes else {"n_episodes": n}
        kept = compare_policies(POLICIES, tiger(), checkpoint=tmp_path / "run", **settings, **some)
    assert rows(kept) == alone


def test_a_finished_comparison_is_read_and_not_run(tmp_path):
    policy = Breaks(at=None)
    settings = {"n_episodes": 20, "horizon": 3, "checkpoint": tmp_path / "run"}
    first = simulate(policy, tiger(), **settings)
    asked = policy.decisions
    again = simulate(policy, tiger(), **settings)
    assert asked > 0
    assert policy.decisions == asked
    assert (again.values == first.values).all()
    assert again.unfinished == first.unfinished == 20


@pytest.mark.slow
def test_an_interrupted_simulation_keeps_its_episodes(tmp_path):
    alone = simulate(Breaks(at=None), tiger(), n_episodes=30, horizon=2)
    policy = Breaks(at=41)
    with pytest.raises(KeyboardInterrupt):
        simulate(policy, tiger(), n_episodes=30, horizon=2, checkpoint=tmp_path / "run")
    policy.decisions = -1000
    resumed = simulate(policy, tiger(), n_episodes=30, horizon=2, checkpoint=tmp_path / "run")
    assert policy.decisions == -1000 + 2 * 10  # 20 of 30 episodes were finished
    assert (resumed.values == alone.values).all()


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"horizon": 3},
        {"policy_version": "x"},
        {"truncation_error": 0.5},
        {"environment": tiger(accuracy=0.7)},
    ],
    ids=str,
)
def test_other_settings_in_the_same_file_are_other_episodes(tmp_path, changed):
    settings = {"n_episodes": 25, "horizon": 2, "checkpoint": tmp_path / "run"}
    simulate(QMDPPolicy(), tiger(), **settings)
    other = simulate(QMDPPolicy(), tiger(), **(settings | changed))
    plain = {
        name: value for name, value in (settings | changed).items() if name not in ("checkpoint", "policy_version")
    }
    assert (other.values == simulate(QMDPPolicy(), tiger(), **plain).values).all()


def test_functions_in_functions_need_a_version(tmp_path):
    settings = {"n_episodes": 5, "horizon": 1, "checkpoint": tmp_path / "run"}
    pair = {"left": lambda belief: "open-left", "right": lambda belief: "open-right"}
    with pytest.raises(ParameterError, match="policy_version"):
        simulate(pair["left"], tiger(), **settings)
    table = compare_policies(pair, tiger(), method="monte-carlo", policy_version="1", **settings)
    assert table["left"].value != table["right"].value  # one version, two names
    assert rows(compare_policies(pair, tiger(), method="monte-carlo", policy_version="1", **settings)) == rows(table)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"checkpoint": 3}, "checkpoint: got 3"),
        ({"policy_version": "2"}, "only a checkpoint uses"),
        ({"checkpoint": "run", "policy_version": 2}, "policy_version: got 2"),
        ({"checkpoint": "run", "seed": None}, "seed: got None"),
        ({"checkpoint": "run", "trace": True}, "returns alone"),
    ],
    ids=str,
)
def test_what_cannot_be_resumed_is_an_error_before_work(settings, match, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=match):
        compare_policies(POLICIES, tiger(), horizon=1, method="monte-carlo", n_episodes=2, **settings)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET \"values\" = x'00'",
        "UPDATE rows SET finished = x'07'",
        "UPDATE rows SET error = -1.0",
        "UPDATE rows SET id = 'x'",
        "UPDATE run SET key = 'x'",
    ],
)
def test_a_changed_file_is_rejected(tmp_path, statement):
    settings = {"n_episodes": 5, "horizon": 1, "checkpoint": tmp_path / "run"}
    simulate(QMDPPolicy(), tiger(), **settings)
    connection = sqlite3.connect(tmp_path / "run")
    with connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(CheckpointError):
        simulate(QMDPPolicy(), tiger(), **settings)


KILLED = """
import sys, time
from pomdp_hier.planning import QMDPPolicy
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import simulate
class Slow(QMDPPolicy):
    def decide(self, problem, belief=None, *, observation=None):
        time.sleep(0.002)
        return super().decide(problem, belief, observation=observation)
    def seeded(self, seed):
        return self
found = simulate(Slow(), tiger(), n_episodes=1500, horizon=2, checkpoint=sys.argv[1])
print(repr(found.values.sum()))
"""


@pytest.mark.slow
def test_a_killed_simulation_continues(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE)
    while not (tmp_path / "run").exists() or (tmp_path / "run").stat().st_size < 20_000:
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    run.stdout.close()
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    alone = simulate(QMDPPolicy(), tiger(), n_episodes=1500, horizon=2).values.sum()
    assert printed.strip() == repr(alone)


def test_an_experiment_is_the_comparison_of_each_problem():
    problems = {"tiger": tiger(), "baby": crying_baby()}
    bounds = {"tiger": solve(tiger(), horizon=2)}
    found = run_experiment(problems, POLICIES, horizon={"tiger": 2, "baby": 3}, bounds=bounds, n_episodes=20)
    settings = {"method": "monte-carlo", "n_episodes": 20}
    alone = compare_policies(POLICIES, tiger(), horizon=2, solution=bounds["tiger"], **settings)
    assert rows(found["tiger"]) == rows(alone)
    assert found["tiger"]["QMDP"].optimality_gap == alone["QMDP"].optimality_gap
    assert rows(found["baby"]) == rows(compare_policies(POLICIES, crying_baby(), horizon=3, **settings))
    assert found["baby"].optimum is None
    assert len(found) == 2
    assert str(found).startswith("tiger\npolicy")
    assert found.to_markdown().count("| tiger |") == len(POLICIES)


def test_a_function_of_problem_and_seed_builds_a_policy_for_each():
    built = []

    def learned(problem, seed):
        built.append((problem.discount, seed))
        return RandomPolicy(seed)

    found = run_experiment(
        {"tiger": tiger(), "baby": crying_baby()},
        {"learned": learned, "QMDP": lambda problem: QMDPPolicy()},
        seeds=[4, 5, 9],
        horizon=2,
        n_episodes=10,
    )
    assert built == [(0.95, 4), (0.95, 5), (0.95, 9), (0.9, 4), (0.9, 5), (0.9, 9)]
    means = [simulate(QMDPPolicy(), tiger(), seed=seed, horizon=2, n_episodes=10).value for seed in (4, 5, 9)]
    assert found["tiger"]["QMDP"].value == pytest.approx(np.mean(means), abs=1e-12)
    low, high = found["tiger"]["QMDP"].interval
    assert (high - low) / 2 == pytest.approx(4.302652729911275 * np.std(means, ddof=1) / math.sqrt(3))  # t, 2 degrees
    assert found["tiger"].record["seeds"] == "4 5 9"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (({}, POLICIES), "problems: got"),
        (({"tiger": tiger()}, {}), "policies: got"),
        (({"tiger": 3}, POLICIES), "got 3"),
        (({"tiger": tiger()}, {"x": 3}), "policies: got 3"),
        (({"tiger": tiger()}, {"x": lambda problem: "listen"}), "policies: got 'listen'"),
    ],
    ids=["no problem", "no policy", "a number for a problem", "a number for a policy", "an action for a policy"],
)
def test_wrong_problems_and_policies_are_named(arguments, match):
    with pytest.raises((ModelError, ParameterError), match=match):
        run_experiment(*arguments, horizon=1)


@pytest.mark.parametrize(
    "settings",
    [
        {"seeds": []},
        {"seeds": [1, 1]},
        {"seeds": -1},
        {"seeds": "12"},
        {"seeds": [1, 2], "method": "exact"},
        {"bounds": 0},
        {"bounds": "x"},
        {"bounds": {"other": None}},
        {"horizon": {"other": 1}},
    ],
    ids=str,
)
def test_wrong_settings_of_an_experiment_are_named(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        run_experiment({"tiger": tiger()}, POLICIES, **settings)


def test_the_table_of_an_experiment_has_a_row_per_policy_and_states_each_setting_once():
    found = run_experiment(
        {"tiger": tiger(), "baby": crying_baby()},
        {
            "random": lambda problem, seed: RandomPolicy(seed),
            "QMDP": QMDPPolicy(),
            "RTBSS": RTBSS(depth=2),
            "first": lambda problem: lambda belief: problem.all_actions[0],
            "optimal": lambda problem: solve(problem, horizon=3).controller(),
        },
        n_episodes=8,
        horizon=3,
        seeds=range(2),
        bounds=1.0,
    )
    latex = found.to_latex(label="tab:x").splitlines()
    groups = " ".join(latex).split("\\midrule")[1:]
    assert len(groups) == len(found)
    for group, (name, table) in zip(groups, found.tables.items(), strict=True):
        rows = [line for line in group.split("\\\\ ") if line.strip().startswith(f"{name} & ")]
        assert [line.split(" & ")[1] for line in rows] == [row.name for row in table]
        best = max(row.value for row in table)
        assert ["mathbf" in line for line in rows] == [row.value == best for row in table]
        assert {line.count("&") for line in rows} == {5}  # problem, policy, value, difference, gap, ms
    caption = next(line for line in latex if line.startswith("\\caption"))
    for once in ("n = 2 seeds of 8 episodes", "difference: to random", "horizon 3", "seeds 0 1", "numpy", "±: 95"):
        assert caption.count(once) == 1
    assert [caption.count(f"discount {each}") for each in ("0.95;", "0.9.")] == [1, 1]
    assert caption.count("optimal value in [") == 2
    assert "MDP" not in caption


@pytest.mark.parametrize(
    ("cell", "markdown", "latex"),
    [
        (Quantity(-3.7123, (-3.83, -3.5946)), "-3.71 ± 0.12", r"$-3.71 \pm 0.12$"),
        (Quantity(1234.5, (1134.5, 1334.5), bold=True), "**1234** ± 100", r"$\mathbf{1234} \pm 100$"),
        (Quantity(0.5, (0.4, 0.9)), "0.50 [0.40, 0.90]", "$0.50 [0.40, 0.90]$"),
        (Quantity(2 / 3), "0.66667", "$0.66667$"),
        (Quantity(0.25, signed=True), "+0.25", "$+0.25$"),
        (Quantity(1.0, (1.0, 1.0)), "1 ± 0", r"$1 \pm 0$"),
        (Quantity(-0.0001, (-0.1, 0.0998)), "0.00 ± 0.10", r"$0.00 \pm 0.10$"),
        (Quantity(None), "", ""),
        (Quantity(math.nan), "", ""),
        (Quantity(1.5, (math.nan, math.nan)), "1.5", "$1.5$"),
        (Gap(0.0, (0.0, 3.8316)), "[0, 3.83]", "$[0, 3.83]$"),
    ],
    ids=str,
)
def test_digits_follow_the_uncertainty(cell, markdown, latex):
    assert cell.in_markdown() == markdown
    assert cell.in_latex() == latex


def test_tables_hold_hostile_names_and_state_what_was_run():
    table = compare_values({"a|b_$%\n": np.array([1.0, 2.0]), "c\\d{": np.array([3.0, 5.0])})
    markdown = table.to_markdown(unit="points").splitlines()
    assert {line.replace("\\|", "").count("|") for line in markdown[:4]} == {4}
    assert "Values in units of points" in markdown[-1]
    assert f"numpy {np.__version__}" in markdown[-1]
    latex = table.to_latex(caption="50 %", label="tab:x")
    assert r"\caption{50 \%}" in latex
    assert r"\label{tab:x}" in latex
    assert r"a|b\_\$\%" in latex.replace(r"\textbar{}", "|")
    assert latex.count("\\\\\n") == 3


def ten(belief):
    return 10


def twenty(belief):
    return 20


@pytest.mark.parametrize("method", ["exact", "monte-carlo"])
def test_a_checkpoint_distinguishes_belief_rewards(tmp_path, method):
    model = tiger()
    names = ("transition", "observation", "initial_belief", "discount")
    parts = {name: getattr(model, name) for name in names} | {"reward": model.reward_model}
    parts["legal_actions"] = model.all_actions
    policies = {"RTBSS": RTBSS(depth=1)}
    settings = {"method": method, "horizon": 2, "n_episodes": 3, "checkpoint": tmp_path / "run"}
    values = [
        compare_policies(policies, POMDP(**parts, belief_reward=reward), **settings)["RTBSS"].value
        for reward in (None, ten, twenty, ten)
    ]
    extra = [0, 10 * 1.95, 20 * 1.95, 10 * 1.95]
    assert values == pytest.approx([values[0] + each for each in extra])
    with pytest.raises(ParameterError, match="belief_reward"):
        compare_policies(policies, POMDP(**parts, belief_reward=lambda belief: 1), **settings)


def failing(*seeds):
    """A function of problem and seed, whose policy raises an error with these seeds."""

    def build(problem, seed):
        def decide(belief):
            if seed in seeds:
                raise ZeroDivisionError
            return "listen"

        return decide

    return build


def test_a_policy_that_fails_with_a_later_seed_is_left_out():
    settings = {"seeds": [0, 1], "n_episodes": 2, "horizon": 2}
    found = run_experiment({"tiger": tiger()}, {"one": failing(1), "never": failing()}, **settings)["tiger"]
    assert [row.name for row in found] == ["never"]
    assert found.baseline == "never"
    assert list(found.failed) == ["one"]
    with pytest.raises(ParameterError, match="ZeroDivisionError"):
        run_experiment({"tiger": tiger()}, {"one": failing(1), "other": failing(0)}, **settings)


def test_tables_for_papers_take_any_name_of_a_problem():
    problems = {1: tiger(), 2: tiger()}
    found = run_experiment(problems, {"wait": failing()}, horizon={1: 1, 2: 2}, n_episodes=2)
    assert "\n1 & wait" in found.to_latex()
    assert "\n| 2 | wait" in found.to_markdown()
    for wrong in ({"caption": 5}, {"label": 7}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            found.to_latex(**wrong)
    with pytest.raises(ParameterError, match="policy_version"):
        run_experiment(problems, {"wait": failing()}, n_episodes=2, policy_version=5)


def test_a_controller_that_was_used_has_the_same_key(tmp_path):
    model = tiger()
    problem = POMDP(
        transition=lambda state, action: dict(model.transition.distribution(state, action)),
        observation=model.observation,
        reward=model.reward_model,
        initial_belief=model.initial_belief,
        discount=model.discount,
        legal_actions=model.all_actions,
    )
    controller = solve(problem, horizon=2).controller()
    settings = {"n_episodes": 2, "horizon": 2, "checkpoint": tmp_path / "run"}
    first = simulate(controller, problem, **settings)
    assert controller.values.shape[1] == 2
    again = simulate(controller, problem, **settings)
    assert again.values.tolist() == first.values.tolist()
    with sqlite3.connect(tmp_path / "run") as connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        (Quantity(-1.25e-7), "$-1.25\\cdot 10^{-7}$"),
        (Quantity(3e12, bold=True), "$\\mathbf{3\\cdot 10^{12}}$"),
        (Gap(0.0, (0.0, 1.2e-5)), "$[0, 1.2\\cdot 10^{-5}]$"),
        (Gap(0.0, (0.0, math.inf)), "$[0, \\infty]$"),
    ],
)
def test_powers_of_ten_in_latex(cell, written):
    assert cell.in_latex() == written


def test_an_interval_as_wide_as_the_floats():
    assert Quantity(0.0, (-1.5e308, 1.5e308)).parts[0] == "0"


@pytest.mark.parametrize("unit", [None, "", 5])
def test_units_are_texts(unit):
    table = compare_values({"a": [1.0, 2.0]})
    for write_table in (table.to_markdown, table.to_latex):
        with pytest.raises(ParameterError, match="unit"):
            write_table(unit=unit)
