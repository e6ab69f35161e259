"""A path that no file system accepts is refused in the package's words by every public function that takes one."""

import importlib
import inspect
import os
from pathlib import Path

import numpy as np
import pytest

from pomdp_hier import (
    Hierarchy,
    compare,
    compare_policies,
    diagnose,
    evaluate,
    hqs_samples,
    hqs_score,
    load_features,
    read_pomdp,
    simulate,
    solve,
    write_pomdp,
)
from pomdp_hier.distributed import evaluate_distributed
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.improvement import read_decisions, regroup
from pomdp_hier.planning import AlphaVectorPolicy, FiniteStateController, RandomPolicy, read_policy, write_policy
from pomdp_hier.problems import tiger
from pomdp_hier.report import write_comparison, write_regrouping, write_report, write_teaching_page
from pomdp_hier.simulation import run_experiment
from tests.test_public import FRONTS

X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
TREE = Hierarchy.from_children([[0, 1], [3, 2]], 3)
TIGER = tiger()
VECTORS = AlphaVectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
LISTENING = FiniteStateController(TIGER, np.array([0]), np.array([[0, 0]]))
RANDOM = {"random": RandomPolicy()}
SHORT = {"n_episodes": 2, "horizon": 1}
GENERIC = {"engine": "generic", "policy": "one-step"}
CALLS = {  # by function and argument: calls with the path, which ends in what the function asks for
    "load_features.path": [(load_features, ".csv"), (load_features, ".npy")],
    "read_pomdp.source": [(read_pomdp, ".pomdp")],
    "write_pomdp.path": [(lambda path: write_pomdp(TIGER, path), ".pomdp")],
    "read_policy.path": [(lambda path: read_policy(path, TIGER), end) for end in (".alpha", ".pg", ".policy", ".xml")],
    "write_policy.path": [
        (lambda path: write_policy(VECTORS, path), ".alpha"),
        (lambda path: write_policy(VECTORS, path), ".policy"),
        (lambda path: write_policy(LISTENING, path), ".pg"),
    ],
    "evaluate.checkpoint": [(lambda path: evaluate(X, TREE, checkpoint=path, **GENERIC), "")],
    "hqs_score.checkpoint": [(lambda path: hqs_score(X, TREE, checkpoint=path, **GENERIC), "")],
    "hqs_samples.checkpoint": [(lambda path: hqs_samples(X, TREE, checkpoint=path, **GENERIC), "")],
    "simulate.checkpoint": [(lambda path: simulate(RandomPolicy(), TIGER, checkpoint=path, **SHORT), "")],
    "compare_policies.checkpoint": [
        (lambda path: compare_policies(RANDOM, TIGER, method="monte-carlo", checkpoint=path, **SHORT), "")
    ],
    "run_experiment.checkpoint": [
        (lambda path: run_experiment({"tiger": TIGER}, RANDOM, checkpoint=path, **SHORT), "")
    ],
    "solve.checkpoint": [(lambda path: solve(TIGER, max_trials=1, checkpoint=path), "")],
    "read_decisions.path": [(read_decisions, ".csv"), (read_decisions, ".parquet")],
    "write_teaching_page.path": [(write_teaching_page, ".html")],
    "Hierarchy.from_json.source": [(Hierarchy.from_json, ".json")],
    "Hierarchy.from_newick.source": [(Hierarchy.from_newick, ".nwk")],
    "Hierarchy.to_json.path": [(TREE.to_json, ".json")],
    "Hierarchy.to_newick.path": [(TREE.to_newick, ".nwk")],
    "write_report.path": [(lambda path: write_report(diagnose(X, TREE), path), ".html")],
    "write_comparison.path": [(lambda path: _comparison(path), ".html")],
    "write_regrouping.path": [(lambda path: write_regrouping(_regrouped(), path), ".html")],
    "evaluate_distributed.X": [(lambda path: evaluate_distributed(path, TREE), ".npy")],
    "Hierarchy.from_parents.source": [(Hierarchy.from_parents, ".csv")],
    "Hierarchy.from_edges.source": [(Hierarchy.from_edges, ".csv")],
    "Hierarchy.from_paths.source": [(Hierarchy.from_paths, ".txt")],
}


def _regrouped():
    tree = Hierarchy.from_labels([0, 0, 1, 1, 2, 2])
    return regroup([[9, 1], [9, 2], [1, 9], [2, 9], [9, 3], [8, 1]], tree, folds=0)


def _comparison(path):
    trees = {"one": TREE, "two": Hierarchy.from_children([[1, 2], [3, 0]], 3)}
    return write_comparison(compare(X, trees), {name: diagnose(X, tree) for name, tree in trees.items()}, path)


def path_arguments():
    """The public functions and methods with an argument for a path, by its annotation."""
    for front, names in FRONTS.items():
        for name in names.split():
            found = getattr(importlib.import_module(front), name)
            methods = inspect.getmembers(found, callable) if inspect.isclass(found) else []
            for called, function in [(name, found), *((f"{name}.{k}", f) for k, f in methods if k[0] != "_")]:
                if callable(function) and not inspect.isclass(function):
                    for argument in inspect.signature(function).parameters.values():
                        if "Path" in str(argument.annotation):
                            yield f"{called}.{argument.name}"


def test_every_function_that_takes_a_path_is_called_here():
    assert set(path_arguments()) <= set(CALLS)


@pytest.mark.parametrize("called", CALLS)
@pytest.mark.parametrize("wrong", ["a\0b", "a\ud800b"], ids=["nul", "surrogate"])
def test_a_path_that_no_file_system_accepts(tmp_path, called, wrong):
    for call, ending in CALLS[called]:
        for path in (f"{tmp_path}{os.sep}{wrong}{ending}", Path(tmp_path, wrong + ending)):
            with pytest.raises(PomdpHierError, match=r"a\\(x00|ud800)b"):
                call(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("called", CALLS)
def test_an_empty_path_is_no_path(called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call, _ in CALLS[called]:
        with pytest.raises(PomdpHierError, match=r"got ''|empty"):
            call("")
    assert not list(tmp_path.iterdir())


def test_what_is_no_path(tmp_path):
    for call in (
        lambda: load_features(5),
        lambda: read_pomdp(5),
        lambda: read_policy(5, TIGER),
        lambda: write_policy(VECTORS, 5),
        lambda: write_policy(VECTORS, b"a.alpha"),
        lambda: TREE.to_json(5),
        lambda: evaluate(X, TREE, checkpoint=5, **GENERIC),
        lambda: write_report(diagnose(X, TREE), 5),
    ):
        with pytest.raises(PomdpHierError, match=r"got (5|b'a)"):
            call()
