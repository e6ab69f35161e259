"""Simulation in several processes: the same bits for any number of them, and what happens when one cannot go on."""

import io
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from tqdm import tqdm

from pomdp_hier import BayesUpdater, _progress
from pomdp_hier.beliefs import ParticleUpdater
from pomdp_hier.errors import ImpossibleObservationError, ParameterError
from pomdp_hier.planning import POUCT, RTBSS, Decision, RandomPolicy, value_iteration
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import compare_policies, episodes, exact, policy_value, simulate
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py

TIGER = tiger()
WORSE = tiger(accuracy=0.7)
POLICIES = {
    "plans": RTBSS(depth=2),
    "draws": RandomPolicy(1),
    "draws within": POUCT(depth=2, simulations=10, seed=5),
    "depends on the time": value_iteration(TIGER, 4),
    "a function": lambda belief: "listen" if max(belief.values()) < 0.9 else "open-left",
}
COMBINATIONS = {
    "environment": (None, WORSE),
    "horizon": (None, 3),
    "half_width": (None, 1e4),
    "keep_episodes": (0, 3),
    "updater": (None, BayesUpdater(TIGER)),
    "progress": (False, True),
}


@pytest.fixture
def parts(monkeypatch):
    """What would go to other processes is run here, each part as the first of its process, the last part first."""
    sizes = []

    def run(work, tasks, n_jobs, sent):
        results = {}
        for i in reversed(range(len(tasks))):
            _progress._KEPT.__dict__.clear()
            results[i] = work(tasks[i])
        sizes.append(len(tasks))
        return iter([results[i] for i in range(len(tasks))])

    for module in (episodes, exact):
        monkeypatch.setattr(
            module, "in_processes", lambda *given: map(given[0], given[1]) if given[2] == 1 else run(*given)
        )
        monkeypatch.setattr(module, "n_workers", lambda n_jobs: 2 if n_jobs == -1 else n_jobs)
    return sizes


def record(result):
    """Everything of a simulation that is no time, to the last bit."""
    steps = [
        [(s.state, s.belief, s.action, s.next_state, s.observation, s.reward) for s in episode.steps]
        for episode in result.episodes
    ]
    return result.values.tobytes(), result.unfinished, result.stopped_early, result.missed, result.error, steps


def exact_record(result):
    """The same of an exact value."""
    visits = [(v.step, v.belief, v.weights, v.actions, v.observation, len(v.history)) for v in result.visits]
    return result.value, result.n_beliefs, result.n_steps, result.unfinished, result.error, visits


def combinations(*names):
    """Return every combination of the settings of these names."""
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*map(COMBINATIONS.get, names))]


@pytest.mark.filterwarnings("ignore:half_width")
@pytest.mark.parametrize(
    "policy",
    [policy if policy == "a function" else pytest.param(policy, marks=pytest.mark.slow) for policy in POLICIES],
)
@pytest.mark.slow
def test_every_combination_of_settings_simulates_the_same_bits_in_parts(policy, parts, capsys):
    table = combinations(*COMBINATIONS)
    for options in table if policy == "a function" else table[::5]:
        given = {**options, "n_episodes": 7, "min_episodes": 4, "batch": 2, "truncation_error": 400.0, "seed": 3}
        expected = record(simulate(POLICIES[policy], TIGER, **given))
        before = len(parts)
        assert record(simulate(POLICIES[policy], TIGER, n_jobs=2, **given)) == expected
        assert len(parts) > before
        assert (f"{len(expected[0]) // 8}/7" in capsys.readouterr().err) is options["progress"]
    assert expected[2]  # the last combination stops early


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "draws within"])
def test_every_combination_of_settings_has_the_same_exact_value_in_parts(policy, parts, capsys):
    for options in combinations("environment", "horizon", "updater", "progress"):
        given = {**options, "horizon": options["horizon"] or 5, "trace": options["updater"] is None}
        expected = exact_record(policy_value(POLICIES[policy], TIGER, **given))
        assert exact_record(policy_value(POLICIES[policy], TIGER, n_jobs=3, **given)) == expected
        assert (f"{expected[1]} beliefs" in capsys.readouterr().err) is options["progress"]
    assert max(parts) > 1


def test_a_comparison_hands_on_processes_and_progress(parts, capsys):
    policies = {name: POLICIES[name] for name in ("a function", "draws", "plans")}
    for method in ("exact", "monte-carlo"):
        options = {"method": method, "horizon": 3, "n_episodes": 20, "baseline": "draws"}
        expected = compare_policies(policies, TIGER, **options)
        assert not capsys.readouterr().err
        before = len(parts)
        found = compare_policies(policies, TIGER, n_jobs=2, progress=True, **options)
        assert len(parts) > before
        assert [(row.name, row.value, row.difference) for row in found.rows] == [
            (row.name, row.value, row.difference) for row in expected.rows
        ]
        assert ("60/60" if method == "monte-carlo" else "beliefs") in capsys.readouterr().err


def test_the_loop_of_pomdp_py_runs_in_parts(parts):
    options = {"n_episodes": 6, "horizon": 3, "seed": 2}
    expected = record(simulate_in_pomdp_py(RandomPolicy(), TIGER, **options))
    assert record(simulate_in_pomdp_py(RandomPolicy(), TIGER, n_jobs=3, **options)) == expected
    assert parts == [6]


def test_a_bar_of_ones_own_goes_on():
    with tqdm(total=30, file=io.StringIO()) as bar:
        simulate(FirstAction(), TIGER, n_episodes=10, horizon=2, progress=bar)
        simulate_in_pomdp_py(FirstAction(), TIGER, n_episodes=10, horizon=2, progress=bar)
        assert bar.n == 20
        policy_value(FirstAction(), TIGER, horizon=2, progress=bar)
        assert bar.n == 23
        assert not bar.disable  # it is not closed


@pytest.mark.parametrize("run", [simulate, simulate_in_pomdp_py, policy_value])
def test_numbers_of_processes_that_cannot_be(run):
    for n_jobs in (0, -2, 1.5, True, "all"):
        with pytest.raises(ParameterError, match=r"n_jobs: got .*; expected an integer"):
            run(FirstAction(), TIGER, horizon=2, n_jobs=n_jobs)


def test_what_draws_from_one_stream_is_not_spread_over_processes():
    with pytest.raises(ParameterError, match=r"^n_jobs: got 2 with the updater .* expected 1"):
        simulate(FirstAction(), TIGER, horizon=2, n_jobs=2, updater=ParticleUpdater(TIGER, n_particles=10, seed=1))
    with pytest.raises(ParameterError, match=r"^n_jobs: got 2 with the policy POUCT\(.* expected 1"):
        policy_value(POLICIES["draws within"], TIGER, horizon=2, n_jobs=2)


# --- real processes ------------------------------------------------------------------------------------------------


class Special:
    """Listens, unless it has something special to do in another process."""

    def __init__(self, does=None, holds=None):
        self.does, self.holds, self.home = does, holds, os.getpid()

    def decide(self, problem, belief=None, *, observation=None):
        if self.does is not None and os.getpid() != self.home:
            self.does()
        return Decision("listen")


class Pickled(Special):
    """Leaves at home what it holds."""

    def __getstate__(self):
        return {**self.__dict__, "holds": None}


def fails():
    raise ZeroDivisionError("as asked for")


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_processes_give_the_same_bits():
    pytest.importorskip("joblib")
    for name, policy in POLICIES.items():
        options = {"n_episodes": 20, "horizon": 3, "keep_episodes": 2}
        expected = record(simulate(policy, TIGER, WORSE, **options))
        assert record(simulate(policy, TIGER, WORSE, n_jobs=2, **options)) == expected
        if name != "draws within":
            expected = exact_record(policy_value(policy, TIGER, WORSE, horizon=4, trace=True))
            assert exact_record(policy_value(policy, TIGER, WORSE, horizon=4, trace=True, n_jobs=2)) == expected
    expected = record(simulate_in_pomdp_py(RandomPolicy(), TIGER, n_episodes=12, horizon=3))
    assert record(simulate_in_pomdp_py(RandomPolicy(), TIGER, n_episodes=12, horizon=3, n_jobs=2)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("run", [simulate, policy_value])
def test_what_goes_wrong_in_a_process_is_said(run):
    pytest.importorskip("joblib")
    options = {"horizon": 4, "n_jobs": 2}
    with pytest.raises(ParameterError, match=r"n_jobs: got .*policy.*cannot be sent .*lock"):
        run(Special(holds=threading.Lock()), TIGER, **options)
    for better, n_jobs in ((Special(holds=threading.Lock()), 1), (Pickled(holds=threading.Lock()), 2)):  # the advice
        assert float(run(better, TIGER, horizon=4, n_jobs=n_jobs).value) < 0
    with pytest.raises(ZeroDivisionError, match="as asked for"):
        run(Special(fails), TIGER, **options)
    with pytest.raises(ParameterError, match=r"n_jobs: got 2"):
        run(Special(dies), TIGER, **options)
    assert float(run(Special(dies), TIGER, horizon=4, n_jobs=1).value) < 0  # the advice
    assert float(run(Special(), TIGER, **options).value) == pytest.approx(-(1 - 0.95**4) / 0.05)
    rules_out = tiger(accuracy=1)
    with pytest.raises(ImpossibleObservationError, match="history: 'listen' -> "):
        run(Special(), rules_out, WORSE, **options)


@pytest.mark.slow
def test_a_policy_that_fails_in_a_process_costs_the_others_nothing():
    pytest.importorskip("joblib")
    policies = {"listens": Special(), "fails": Special(fails), "stays": Special(holds=open)}
    policies["locked"] = Special(holds=threading.Lock())
    table = compare_policies(policies, TIGER, method="monte-carlo", n_episodes=20, horizon=2, n_jobs=2)
    assert list(table.failed) == ["fails", "locked"]
    assert [row.name for row in table.rows] == ["listens", "stays"]


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind():
    pytest.importorskip("joblib")
    program = """
        import os, time
        from pomdp_hier.problems import tiger
        from pomdp_hier.simulation import simulate

        def waits(belief):
            print(os.getpid(), flush=True)
            time.sleep(60)
            return "listen"

        simulate(waits, tiger(), n_episodes=20, horizon=2, n_jobs=2)
    """
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    workers = [int(run.stdout.readline()) for _ in range(2)]
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=30)
    assert run.returncode != 0
    assert "KeyboardInterrupt" in said
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
