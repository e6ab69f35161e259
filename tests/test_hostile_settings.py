"""Every function that people call, with a value of another kind for each argument: an answer or our error."""

import inspect
import io
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pomdp_hier import analysis, check_problem, measures
from pomdp_hier.analysis import appraise, diagnose
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.features.loading import load_features
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.improvement import improve
from pomdp_hier.measures.tree_distances import untangle
from pomdp_hier.planning import RTBSS, AndOrTree, solve, value_iteration, verify
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import compare_policies, policy_value, simulate

SETTINGS = (
    "delta",
    "nu",
    "similarity",
    "policy",
    "tie",
    "engine",
    "threads",
    "sample_size",
    "half_width",
    "random_state",
)
X = np.random.default_rng(0).normal(size=(12, 3))
TREE = Hierarchy.from_paths({f"i{k}": f"a{k % 3} > b{k % 6}" for k in range(12)})
OTHER = Hierarchy.from_paths({f"i{k}": f"c{k % 2}" for k in range(12)})
TIGER = tiger()


class Mute:
    def __repr__(self) -> str:
        raise ValueError("no words")


WRONG = {
    "text": "x",
    "bytes": b"x",
    "list": [],
    "dict": {"a": "b"},
    "deep": reduce(lambda inside, _: [inside], range(5_000), []),
    "mute": Mute(),
    "integer": 10**5_000,
    "negative": -1,
    "nan": float("nan"),
    "fraction": Fraction(1, 3),
    "complex": 1j,
    "range": range(10**13),
    "table": np.zeros((2, 2)),
    "words": np.array(["a"]),
    "class": int,
}
# What goes on for as long as it was told to, and functions of the user's own, whose errors stay theirs.
LONG = {(simulate, "n_episodes", "integer"), (value_iteration, "horizon", "integer")}
OWN = {("reward", "class"), ("leaf_value", "class")}


def calls() -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Functions, each with arguments that it takes."""
    found: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (evaluate, {"X": X, "hierarchy": TREE}),
        (diagnose, {"X": X, "hierarchy": TREE}),
        (appraise, {"X": X, "hierarchy": TREE, "n_shuffles": 2}),
        (improve, {"X": X, "hierarchy": TREE, "time_limit": 0.2}),
        (analysis.compare, {"X": X, "trees": {"one": TREE, "other": OTHER}}),
        (analysis.delta_sweep, {"X": X, "hierarchy": TREE}),
        (analysis.compare_search_policies, {"X": X, "hierarchy": TREE}),
        (measures.robinson_foulds, {"hierarchy": TREE, "other": OTHER}),
        (measures.triplet_distance, {"hierarchy": TREE, "other": OTHER}),
        (measures.bakers_gamma, {"hierarchy": TREE, "other": OTHER}),
        (untangle, {"hierarchy": TREE, "other": OTHER}),
        (measures.cophenetic_correlation, {"X": X, "hierarchy": TREE}),
        (solve, {"problem": TIGER, "precision": 1, "time_limit": 0.2}),
        (verify, {"certificate": solve(TIGER, precision=1).certificate(), "problem": TIGER}),
        (value_iteration, {"problem": TIGER, "horizon": 2}),
        (RTBSS, {"depth": 2}),
        (AndOrTree.build, {"problem": TIGER, "depth": 1}),
        (simulate, {"policy": FirstAction(), "problem": TIGER, "n_episodes": 3, "horizon": 3}),
        (policy_value, {"policy": FirstAction(), "problem": TIGER, "horizon": 2}),
        (compare_policies, {"policies": [FirstAction()], "problem": TIGER, "horizon": 2}),
        (check_problem, {"problem": TIGER}),
        (load_features, {"path": io.BytesIO(b"1,2\n3,4\n")}),
    ]
    return found


CALLS = {function.__name__: (function, given) for function, given in calls()}


def answered(function: Callable[..., Any], given: dict[str, Any], note: str) -> str:
    """What the error says, if there is one of ours; any other is raised, with the note."""
    try:
        function(**given)
    except PomdpHierError as error:
        return str(error)
    except Exception as error:
        error.add_note(note)
        raise
    return ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_value_of_another_kind_is_an_answer_or_an_error_of_ours(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a text may be the path of a checkpoint
    function, given = CALLS[name]
    parameters = inspect.signature(function).parameters.values()
    names = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    if len(names) < len(parameters):
        names += [setting for setting in SETTINGS if setting not in names]
    for argument in names:
        for kind, value in WRONG.items():
            if (function, argument, kind) in LONG or (argument, kind) in OWN:
                continue
            assert len(answered(function, {**given, argument: value}, f"{argument}: {kind}")) < 1_000
