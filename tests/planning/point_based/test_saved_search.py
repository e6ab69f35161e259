"""Searches that are saved and continued: bounds that hold, whatever the file says."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from pomdp_hier import POMDP, solve, verify
from pomdp_hier.errors import CheckpointError, ParameterError
from pomdp_hier.planning.point_based import saved_search
from pomdp_hier.planning.point_based.saved_search import SavedSearch, open_search
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.problems import corridor, crying_baby, maze_4x3, tiger
from tests.extras import few


def by_observation():
    """A tiger whose doors may be opened after a sound alone."""
    model = tiger()
    return POMDP(
        transition=model.transition,
        observation=model.observation,
        reward=model.reward_model,
        initial_belief=model.initial_belief,
        discount=0.9,
        actions=model.all_actions,
        legal_actions=lambda observation: ["listen"] if observation is None else list(model.all_actions),
        legal_by="observation",
    )


PROBLEMS = {
    "tiger": (tiger(), {}),
    "tiger, 4 actions": (tiger(), {"horizon": 4}),
    "tiger, another start": (tiger(), {"belief": {"tiger-left": 0.9, "tiger-right": 0.1}}),
    "maze": (maze_4x3(discount=0.9), {}),
    "maze, 3 actions": (maze_4x3(), {"horizon": 3}),
    "corridor": (corridor(), {}),
    "baby": (crying_baby(), {}),
    "by observation": (by_observation(), {}),
    "by observation, 3 actions": (by_observation(), {"horizon": 3}),
}


@cache
def truth_of(name):
    problem, settings = PROBLEMS[name]
    return solve(problem, precision=1e-6, **settings)


SOME = few(
    5,
    [
        "tiger",
        "maze, 3 actions",
        "corridor",
        "baby",
        "by observation",
        "tiger, another start",
        "maze",
        "tiger, 4 actions",
        "by observation, 3 actions",
    ],
)


@pytest.mark.parametrize("name", SOME)
def test_a_search_goes_on_where_it_ended(tmp_path, name):
    problem, settings = PROBLEMS[name]
    settings = {**settings, "precision": 1e-9, "engine": "numpy"}
    path = tmp_path / "run"
    first = solve(problem, max_trials=6, checkpoint=path, **settings)
    read = solve(problem, max_trials=0, checkpoint=path, **settings)
    assert read.search.trials == 0
    slack = 1e-9 * max(1.0, abs(first.upper))
    assert first.lower - slack <= read.lower <= read.upper <= first.upper + slack
    then = solve(problem, max_trials=6, checkpoint=path, **settings)
    whole = truth_of(name)
    assert read.lower - slack <= then.lower <= whole.upper + slack
    assert read.upper + slack >= then.upper >= whole.lower - slack
    belief = settings.get("belief")
    proved = verify(then.certificate(), problem, **({} if belief is None else {"belief": belief}))
    assert float(proved.lower) == pytest.approx(then.lower, abs=1e-6)
    assert float(proved.upper) == pytest.approx(then.upper, abs=1e-6)


@pytest.mark.parametrize("name", SOME)
def test_a_solution_is_continued_in_memory_and_not_changed(name):
    problem, settings = PROBLEMS[name]
    settings = {**settings, "precision": 1e-9, "engine": "numpy"}
    first = solve(problem, max_trials=3, **settings)
    before = first.bounds(problem.initial_belief) if "observation" not in name else (first.lower, first.upper)
    then = solve(problem, max_trials=3, resume=first, **settings)
    after = first.bounds(problem.initial_belief) if "observation" not in name else (first.lower, first.upper)
    truth = truth_of(name)
    assert before == after
    slack = 1e-9 * max(1.0, abs(first.upper))
    assert first.lower - slack <= then.lower <= truth.upper + slack
    assert first.upper + slack >= then.upper >= truth.lower - slack
    assert then.gap < first.gap or first.gap < 1e-9


def test_a_saved_solution_is_read_with_another_engine(tmp_path):
    pytest.importorskip("numba")
    problem = maze_4x3(discount=0.9)
    first = solve(problem, max_trials=5, precision=1e-9, engine="numba")
    first.save(tmp_path / "maze")
    read = solve(problem, max_trials=0, precision=1e-9, engine="numpy", checkpoint=tmp_path / "maze")
    assert first.lower - 1e-9 <= read.lower <= read.upper <= first.upper + 1e-9


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"problem": tiger(accuracy=0.8)}, "problem"),
        ({"horizon": 5}, "horizon"),
        ({"belief": {"tiger-left": 0.4, "tiger-right": 0.6}}, "start"),
    ],
    ids=["problem", "horizon", "start"],
)
def test_bounds_of_another_call_are_rejected(tmp_path, changed, what):
    problem, settings = changed.get("problem", tiger()), {k: v for k, v in changed.items() if k != "problem"}
    first = solve(tiger(), max_trials=2)
    first.save(tmp_path / "run")
    with pytest.raises(CheckpointError, match=f"another {what}"):
        solve(problem, checkpoint=tmp_path / "run", **settings)
    with pytest.raises(CheckpointError, match=f"another {what}"):
        solve(problem, max_trials=2, **settings).save(tmp_path / "run")
    with pytest.raises(ParameterError, match=f"another {what}"):
        solve(problem, resume=first, **settings)
    first.save(tmp_path / "run")  # in place of itself
    with pytest.raises(ParameterError, match="resume"):
        solve(tiger(), resume=first, checkpoint=tmp_path / "run")
    for wrong in (3, "run"):
        with pytest.raises(ParameterError, match="resume: got"):
            solve(tiger(), resume=wrong)


def forged(path, random):
    """Change numbers of one array of a file, with a right checksum."""
    with open_search(path) as file:
        rows = dict(file.rows)
        name = str(random.choice([name for name in rows if name != "run" and len(rows[name].data)]))
        array = np.frombuffer(rows[name].data, dtype=f"<{rows[name].kind}8").copy()
        at = random.integers(len(array), size=int(random.integers(1, 4)))
        if rows[name].kind == "f":
            new = [0.0, -1.0, 1e3, -1e3, 1e300, -np.inf, np.inf, np.nan, array[at[0]] + 1e-3, array[at[0]] - 1e-3]
            array[at] = new[int(random.integers(len(new)))]
        else:
            array[at] = [-2, -1, 0, 1, 5, 2**40, -(2**62)][int(random.integers(7))]
        data = array.tobytes()[: len(array) * 8 - int(random.choice([0, 0, 0, 8]))]
        file.replace([row._replace(data=data) if row.id == name else row for row in rows.values()])
    return name


def attack(path, problem, settings, truth, seeds):
    solve(problem, max_trials=5, precision=1e-9, engine="numpy", **settings).save(path)
    original = path.read_bytes()
    taken = 0
    for seed in seeds:
        path.write_bytes(original)
        forged(path, np.random.default_rng(seed))
        try:
            read = solve(problem, max_trials=0, engine="numpy", checkpoint=path, **settings)
        except CheckpointError:
            continue
        taken += 1
        assert read.lower <= truth.upper + 1e-9, seed
        assert read.upper >= truth.lower - 1e-9, seed
    return taken


@pytest.mark.parametrize("name", few(2, ["tiger, 4 actions", "by observation", "tiger", "maze"]))
def test_a_forged_file_gives_no_false_bound(tmp_path, name):
    problem, settings = PROBLEMS[name]
    attack(tmp_path / "run", problem, settings, truth_of(name), range(6))


def test_a_vector_of_great_size_is_not_checked_less_strictly(tmp_path):
    solve(tiger(), max_trials=5, precision=1e-9, engine="numpy").save(tmp_path / "run")
    with open_search(tmp_path / "run") as file:
        rows = dict(file.rows)
        vectors = np.frombuffer(rows["0/vectors"].data, dtype="<f8").copy()
        vectors[0::2], vectors[1::2] = -1e300, 1e6  # two states
        file.replace([row._replace(data=vectors.tobytes()) if row.id == "0/vectors" else row for row in rows.values()])
    with pytest.raises(CheckpointError, match="vector 0"):
        solve(tiger(), max_trials=0, engine="numpy", checkpoint=tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_forged_file_gives_a_false_bound(tmp_path, name):
    problem, settings = PROBLEMS[name]
    assert attack(tmp_path / "run", problem, settings, truth_of(name), range(1000, 1040)) > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET data = x'00'",
        "DELETE FROM rows WHERE id = 'run'",
        "UPDATE rows SET kind = 'x'",
        "UPDATE rows SET data = x'7b7d' WHERE id = 'run'",
        "UPDATE run SET key = 'x'",
    ],
)
def test_a_damaged_file_is_rejected(tmp_path, statement):
    solve(tiger(), max_trials=2).save(tmp_path / "run")
    connection = sqlite3.connect(tmp_path / "run")
    with connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(CheckpointError):
        solve(tiger(), checkpoint=tmp_path / "run")


def test_a_path_or_nothing_is_expected():
    for wrong in (3, tiger()):
        with pytest.raises(ParameterError, match="checkpoint: got"):
            solve(tiger(), checkpoint=wrong)


def test_it_is_written_during_the_search(tmp_path, monkeypatch):
    monkeypatch.setattr("pomdp_hier.planning.point_based.saved_search._SECONDS", -1.0)
    monkeypatch.setattr("pomdp_hier.planning.point_based.saved_search._TIMES", 0.0)
    written = []
    save = SavedSearch.save
    monkeypatch.setattr(SavedSearch, "save", staticmethod(lambda *given: (written.append(1), save(*given))[1]))
    solve(tiger(), max_trials=4, precision=1e-9, checkpoint=tmp_path / "run")
    assert len(written) == 5  # after each trial, and at the end


@pytest.mark.parametrize("horizon", [None, 9])
@pytest.mark.parametrize("limit", [{"time_limit": 0}, {"memory_limit": 1}])
def test_limits_that_are_reached_at_once_leave_what_was_saved(tmp_path, horizon, limit):
    problem = maze_4x3(discount=0.9)
    path = tmp_path / "run"
    before = solve(problem, horizon=horizon, max_trials=2, precision=1e-9, checkpoint=path)
    content = path.read_bytes()
    found = solve(problem, horizon=horizon, precision=1e-9, checkpoint=path, **limit)
    if "time_limit" in limit:
        assert found.status == "time"
        assert before.lower - 1e-9 <= found.lower <= found.upper <= before.upper + 1e-9
    assert found.lower <= before.upper
    assert before.lower <= found.upper
    if found.status in ("time", "memory"):
        assert path.read_bytes() == content, "worse bounds do not replace those that were saved"


def test_points_that_do_not_hold_are_backed_up_again(tmp_path, monkeypatch):
    path, problem = tmp_path / "run", maze_4x3(discount=0.9)
    before = solve(problem, max_trials=6, precision=1e-9, checkpoint=path)
    backup = Search.upper_backup
    refused = []

    def refuse_once(search, stage, node):
        if len(refused) < 3 and node not in refused:
            refused.append(node)
            return np.inf
        return backup(search, stage, node)

    monkeypatch.setattr(Search, "upper_backup", refuse_once)
    found = solve(problem, max_trials=0, checkpoint=path)
    assert len(refused) == 3
    assert found.lower == pytest.approx(before.lower)
    assert before.upper <= found.upper + 1e-9


def test_a_kill_loses_at_most_seconds_of_a_search_that_is_written_fast(tmp_path, monkeypatch):
    clock = iter(range(100_000))  # one second per look at the clock
    monkeypatch.setattr(saved_search, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    written = []
    save = SavedSearch.save
    monkeypatch.setattr(SavedSearch, "save", staticmethod(lambda *given: (written.append(1), save(*given))[1]))
    solve(tiger(), max_trials=8, precision=1e-9, checkpoint=tmp_path / "run")
    assert len(written) == 2  # after six trials, and at the end


KILLED = """
import sys, time
import pomdp_hier.planning.point_based.saved_search as saved
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier import solve
from pomdp_hier.problems import rock_sample
saved._SECONDS = 0.2
trial = Search.trial
Search.trial = lambda search: (time.sleep(0.02), trial(search))  # so that it is killed before it ends
found = solve(rock_sample(), precision=1e-9, time_limit=60, checkpoint=sys.argv[1], engine="numpy")
"""


@pytest.mark.slow
def test_a_killed_search_continues(tmp_path):
    from pomdp_hier.problems import rock_sample

    run = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "run")])
    while not (tmp_path / "run").exists() or (tmp_path / "run").stat().st_size < 50_000:
        time.sleep(0.1)
        assert run.poll() is None
    time.sleep(1.0)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    read = solve(rock_sample(), max_trials=1, checkpoint=tmp_path / "run", engine="numpy")
    new = solve(rock_sample(), max_trials=1, engine="numpy")
    assert new.lower < read.lower <= 21.1008
    assert new.upper > read.upper >= 21.1007
    assert not os.path.exists(str(tmp_path / "run") + "-journal")


IN_SETS = """
import sys
from pomdp_hier import POMDP, solve
from pomdp_hier.simulation.returns import key_of
left, right = frozenset({"apple", "pear", "fig"}), frozenset({"plum", "fig", "lime"})
problem = POMDP(
    transition=lambda state, action: state,
    observation=lambda after, action: {after: 0.8, (right if after == left else left): 0.2},
    reward=lambda state, action: -0.1 if action == "wait" else 1 if state == action else -1,
    initial_belief={left: 0.5, right: 0.5},
    discount=0.9,
    legal_actions=["wait", left, right],
)
found = solve(problem, observation=left, checkpoint=sys.argv[1], max_trials=2, engine="numpy")
print(found.upper - found.lower, key_of("1", problem, problem))
"""


@pytest.mark.slow
def test_another_process_continues_a_search_over_sets(tmp_path):
    pytest.importorskip("joblib")
    widths, keys = [], []
    for seed in "12":
        command = [sys.executable, "-c", IN_SETS, str(tmp_path / "run")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        width, key = run.stdout.split()
        widths.append(float(width))
        keys.append(key)
    assert widths[1] < widths[0]
    assert keys[0] == keys[1]
