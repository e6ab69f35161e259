"""Summaries and messages: each number in its place, with other numbers on either side."""

import re
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pytest

from pomdp_hier._arguments import check_integer
from pomdp_hier._io.checkpoint import Checkpoint
from pomdp_hier.errors import CheckpointError, DataWarning, MissingExtraError, ModelError, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.generic import Row, possible_in
from pomdp_hier.hqs.guidance import Calibration, TreeCalibration
from pomdp_hier.hqs.inputs import as_trees, calibrate_delta, read_settings
from pomdp_hier.hqs.model import search_environment_from_guidance, search_problem_from_guidance
from pomdp_hier.hqs.paper import load_amazon12, load_dvd
from pomdp_hier.hqs.policies import OptimalSearch
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.sampling import Sample
from pomdp_hier.hqs.score import evaluate
from tests.planted import clean_case

TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)


def result(sample=None):
    """Seven items: two with negative values, one that stops at the root."""
    values = np.array([-0.75, -0.25, 0.125, 0.25, 0.5, 0.625, 0.875])
    levels = np.array([2, 4, 0, 1, 3, 3, 1])
    return HQSResult(values, levels, levels, np.ones(7), values, {"delta": 0.1, "nu": 1.5}, sample)


def test_the_summary_of_a_score():
    assert result().summary().splitlines() == [
        "HQS 0.196429 over 7 item(s)",
        "values: min -0.7500, 10% -0.4500, median 0.2500, 90% 0.7250, max 0.8750",
        "value below that of searching the root: 2 item(s); stopped at the root: 1",
        "stop level: mean 2.00, max 4",
        "settings: delta=0.1, nu=1.5",
    ]


@pytest.mark.parametrize(("target", "after"), [(None, ""), (0.5, " (sampled to half-width 0.5: nominal coverage)")])
def test_the_summary_of_a_sample(target, after):
    sample = Sample(np.arange(7), np.zeros(7, dtype=int), np.array([20]), "simple", target)
    found = result(sample)
    low, high = found.interval()
    assert low < found.standard_error < high
    assert found.summary().splitlines()[1] == (
        f"a simple sample of 20 items; standard error {found.standard_error:.6f}, "
        f"95 % interval {low:.6f} to {high:.6f}{after}"
    )
    assert repr(found) == f"HQSResult(score=0.196429 [{low:.4f}, {high:.4f}], 7 of 20 items)"


def test_a_calibration():
    found = Calibration(0.125, {"birds": TreeCalibration(0.25, "upper", -1.0, 1234, 56)}, (0.001, 0.25))
    assert found.summary() == (
        "delta 0.125, calibrated: the mean over 1 tree(s)\n"
        "  birds: 0.25 from 1,234 steps of 56 items, at the upper bound: no maximum within (0.001, 0.25)"
    )
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=re.escape("bounds: got (3, 2); expected two positive numbers")):
        calibrate_delta(X, tree, bounds=(3, 2))
    with pytest.warns(DataWarning, match=r"'tree' .* 0.0001"):
        evaluate(np.repeat(np.eye(2), 2, axis=0), TREE, delta="calibrated")


def test_a_checkpoint_names_its_file_first(tmp_path):
    path = tmp_path / "run"

    def refused(change):
        path.unlink(missing_ok=True)
        with Checkpoint.open(path, "f" * 40, Row, possible_in(5, 8)) as checkpoint:
            checkpoint.append([Row(3, 0.1, 6, 0.5, 0.9)])
        change()
        with pytest.raises(CheckpointError) as error, Checkpoint.open(path, "b" * 40, Row, possible_in(5, 8)):
            pass
        assert str(error.value).startswith(f"{path}: ")
        return str(error.value).removeprefix(f"{path}: ")

    def run(*statements):
        def change():
            with closing(sqlite3.connect(path)) as connection, connection:
                for statement in statements:
                    connection.execute(statement)

        return change

    assert re.search(rf"key '{'f' * 13}; expected key {'b' * 12}\.", refused(lambda: None))
    assert "expected a checkpoint" in refused(run("PRAGMA application_id = 0"))
    assert "format 99; expected 1" in refused(run("PRAGMA user_version = 99"))
    assert "item 3" in refused(run(f"UPDATE run SET key = '{'b' * 40}'", "UPDATE rows SET value = 0.2"))
    assert "damaged file (no such table: run)" in refused(run("DROP TABLE run"))

    def emptied():
        path.unlink()
        run("PRAGMA user_version = 5")()

    assert "expected a checkpoint" in refused(emptied)


ETA = {"a": {"b": 0.75, "c": 0.25}, "b": {"d": 1.0}}
REWARDS = {"a": 0, "b": 0.25, "c": 0.25, "d": 0.5}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (["a", "d"], "path: got 'd' after 'a'"),
        (["b", "d"], "path: got ['b', 'd']"),
    ],
)
def test_a_path_that_is_none(path, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        search_environment_from_guidance(ETA, REWARDS, path)


def test_nodes_that_nothing_leads_to():
    circle = {"a": {"b": 1.0}, "x": {"y": 1.0}, "y": {"z": 0.5, "x": 0.5}}
    with pytest.raises(ModelError, match="eta: got 3 nodes unreachable from 'a'"):
        search_problem_from_guidance(circle, dict.fromkeys("abxyz", 0))


def test_trees_of_other_items():
    one, other = (
        Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=list(labels)) for labels in ("pqrs", "qprs")
    )
    with pytest.raises(ParameterError, match=r"'p' .* item 0 .*'one', .*'q' .*'other'"):
        as_trees({"none": TREE, "one": one, "other": other})
    assert set(as_trees({"one": one, "none": TREE})) == {"one", "none"}
    apart = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=list("tuvw"))
    with pytest.raises(ParameterError, match=r"'one' alone.*'apart' alone"):
        as_trees({"one": one, "apart": apart})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delta": "hot"}, "delta: got 'hot'"),
        ({"sampling": "simple"}, "sampling: got 'simple'"),
        ({"heat": 1}, "heat: got an unknown setting"),
        ({"random_state": 1.5, "sample_size": 3}, "random_state"),
        ({"checkpoint": "here"}, "checkpoint: got 'here'"),
        (
            {"engine": "numpy", "policy": OptimalSearch()},
            "engine: got 'numpy'",
        ),
        (
            {"tie": "search", "policy": OptimalSearch()},
            "tie: got 'search'",
        ),
        ({"threads": 2, "engine": "generic"}, "threads: got 2"),
        ({"random_state": 3}, "random_state: got 3"),
    ],
)
def test_settings_that_cannot_be(given, words):
    with pytest.raises(ParameterError, match=re.escape(words)):
        read_settings(given, checkpoint="not by us").check_used()


def test_a_number_that_is_too_large():
    with pytest.raises(ParameterError, match="depth: got 5000;"):
        check_integer("depth", 5000, 2, 4000)


def test_settings_are_recorded_as_they_are_called():
    def linear(size, n_items):
        return 1 - size / n_items

    record = read_settings({"reward": linear, "policy": OptimalSearch("search")}).settings.record()
    assert (record["reward"], record["policy"]) == ("linear", "OptimalSearch(tie='search')")
    assert read_settings({"n_jobs": -1}).run.n_jobs == -1
    assert read_settings({}).settings.record()["reward"] == "paper"


def test_a_frame_that_needs_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=re.escape("to_frame('polars') needs narwhals and polars. Install")):
        result().to_frame("polars")


def test_the_papers_data_say_what_they_hold():
    assert repr(load_amazon12()) == "Amazon12(12 items, hierarchies A, B, C, D, E)"
    shelf = load_dvd()
    assert repr(shelf) == "DvdShelf(10 films, 7 traits)"
