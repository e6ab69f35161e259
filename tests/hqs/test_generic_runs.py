"""Long runs of the generic route: workers, checkpoints, interruptions."""

import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from pomdp_hier.errors import CheckpointError, ParameterError
from pomdp_hier.hqs.paper import PAPER_TABLE, load_amazon12
from pomdp_hier.hqs.policies import AlgorithmOne
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.planning import POUCT

SHOP = load_amazon12()
GIVEN = {"similarity": "precomputed"}
on_pomdps = partial(evaluate, engine="generic")

DRAWS = POUCT(depth=3, simulations=20, seed=5)


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_workers():
    pytest.importorskip("joblib")
    tree = SHOP.hierarchies["A"]
    results = [
        on_pomdps(SHOP.similarity, tree, policy=DRAWS, random_state=3, n_jobs=n_jobs, **GIVEN, **PAPER_TABLE)
        for n_jobs in (1, 2)
    ]
    assert np.array_equal(results[0].values, results[1].values)
    other = on_pomdps(SHOP.similarity, tree, policy=DRAWS, random_state=4, **GIVEN, **PAPER_TABLE)
    assert not np.array_equal(results[0].values, other.values)
    with pytest.raises(ParameterError, match="n_jobs: got 0"):
        on_pomdps(SHOP.similarity, tree, n_jobs=0, **GIVEN)


class Stumbles:
    """Descends, but for a while breaks off at the given call."""

    calls = 0
    plan = {"breaks_at": math.inf}  # noqa: RUF012

    def decide(self, problem, belief=None, *, observation=None):
        Stumbles.calls += 1
        if Stumbles.calls == self.plan["breaks_at"]:
            raise InterruptedError
        return AlgorithmOne().decide(problem, belief, observation=observation)


def test_a_run_that_broke_off_resumes_and_ends_with_the_same_bits(tmp_path):
    tree, path = SHOP.hierarchies["A"], tmp_path / "run"
    options = {"policy": Stumbles(), "checkpoint": path, **GIVEN, **PAPER_TABLE}
    whole = on_pomdps(SHOP.similarity, tree, **{**options, "checkpoint": None})
    once = Stumbles.calls
    Stumbles.calls, Stumbles.plan["breaks_at"] = 0, once // 2
    with pytest.raises(InterruptedError):
        on_pomdps(SHOP.similarity, tree, **options)
    Stumbles.plan["breaks_at"], Stumbles.calls = math.inf, 0
    resumed = on_pomdps(SHOP.similarity, tree, **options)
    assert Stumbles.calls < once
    assert np.array_equal(whole.values, resumed.values)
    Stumbles.calls = 0
    again = on_pomdps(SHOP.similarity, tree, **options)
    assert Stumbles.calls == 0
    assert np.array_equal(again.values, whole.values)
    assert np.array_equal(again.stop_nodes, whole.stop_nodes)


def test_a_checkpoint_of_anything_else_is_refused(tmp_path):
    tree, path = SHOP.hierarchies["A"], tmp_path / "run"
    on_pomdps(SHOP.similarity, tree, checkpoint=path, delta=0.01, **GIVEN)
    changed = SHOP.similarity.copy()
    changed[0, 1] += 1e-16
    changed[1, 0] = 0.5
    for X, hierarchy, options in (
        (SHOP.similarity, tree, {"delta": 0.02}),
        (SHOP.similarity, tree, {"policy": "optimal"}),
        (SHOP.similarity, tree, {"tie": "search"}),
        (SHOP.similarity, SHOP.hierarchies["B"], {}),
        (changed, tree, {}),
    ):
        with pytest.raises(CheckpointError, match="other data or settings"):
            on_pomdps(X, hierarchy, checkpoint=path, **{"delta": 0.01, **options}, **GIVEN)


def _batches(path):
    """How often something was written to the checkpoint: SQLite counts it at byte 24."""
    return int.from_bytes(path.read_bytes()[24:28]) if path.exists() else 0


def _rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM rows").fetchone()[0]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_bits(tmp_path):
    path = tmp_path / "run"
    code = textwrap.dedent(
        """
        import sys
        from pomdp_hier.hqs.paper import load_amazon12
        from pomdp_hier.hqs.score import evaluate
        from pomdp_hier.planning.pomdp_py_planners import POUCT
        shop = load_amazon12()
        evaluate(shop.similarity, shop.hierarchies["A"], engine="generic", similarity="precomputed", delta=0.005,
                         policy=POUCT(depth=3, simulations=100, seed=5), checkpoint=sys.argv[1])
        """
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(path)])
    while run.poll() is None:  # killed as soon as something is there to lose
        if _batches(path) >= 3:
            os.kill(run.pid, signal.SIGKILL)
            break
        time.sleep(0.002)
    run.wait()
    assert 0 < _rows(path) <= 12
    options = {"policy": POUCT(depth=3, simulations=100, seed=5), **GIVEN, "delta": 0.005}
    resumed = on_pomdps(SHOP.similarity, SHOP.hierarchies["A"], checkpoint=path, **options)
    fresh = on_pomdps(SHOP.similarity, SHOP.hierarchies["A"], **options)
    assert np.array_equal(resumed.values, fresh.values)
    assert np.array_equal(resumed.stop_nodes, fresh.stop_nodes)
    assert _rows(path) == 12


def test_some_items_can_be_had_alone_and_kept_for_all(tmp_path):
    tree, path = SHOP.hierarchies["A"], tmp_path / "run"
    options = {"policy": DRAWS, **GIVEN, **PAPER_TABLE}
    whole = on_pomdps(SHOP.similarity, tree, **options)
    some = on_pomdps(SHOP.similarity, tree, items=np.array([7, 2]), checkpoint=path, **options)
    assert some.values.tolist() == whole.values[[7, 2]].tolist()
    assert _rows(path) == 2
    assert np.array_equal(on_pomdps(SHOP.similarity, tree, checkpoint=path, **options).values, whole.values)


@pytest.mark.parametrize("items", [[], [12], [-1], [0.0], [[0]], "all", [True]])
def test_items_that_are_none_are_refused(items):
    with pytest.raises(ParameterError, match="expected item numbers from 0 to 11"):
        on_pomdps(SHOP.similarity, SHOP.hierarchies["A"], items=items, **GIVEN)


def test_items_and_a_sample_are_too_much():
    tree = SHOP.hierarchies["A"]
    with pytest.raises(ParameterError, match=r"items: got \[0\] beside a sample"):
        on_pomdps(SHOP.similarity, tree, items=[0], sample_size=3, **GIVEN)
    assert len(on_pomdps(SHOP.similarity, tree, items=[3], **GIVEN).values) == 1
    assert len(on_pomdps(SHOP.similarity, tree, items=[3, 3], **GIVEN).values) == 2


@pytest.mark.parametrize("engine", ["generic", "numpy"])
def test_progress_is_shown_where_it_is_asked_for(engine, capsys):
    for progress in (False, True):
        evaluate(SHOP.similarity, SHOP.hierarchies["A"], engine=engine, progress=progress, **GIVEN)
        assert ("HQS" in capsys.readouterr().err) == progress
