"""Errors on the command line name the options that a user typed, and never the arguments of the functions below."""

import argparse
import inspect
import re

import numpy as np
import pytest

from pomdp_hier import compare_updaters, fit_delta, load_features, predicted_and_observed, read_searches
from pomdp_hier.analysis import appraise, compare, compare_search_policies, suggest_moves
from pomdp_hier.analysis.levels import best_cut, score_by_levels
from pomdp_hier.cli import _COMMANDS, build_parser, main
from pomdp_hier.cli.console import as_option
from pomdp_hier.distributed import evaluate_distributed
from pomdp_hier.errors import Setting
from pomdp_hier.features import text_features
from pomdp_hier.features.affinity import affinity
from pomdp_hier.filing import compare_features, find_misfiled
from pomdp_hier.filing.result import MisfiledItems
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs import search_problem
from pomdp_hier.hqs.inputs import Run, Settings
from pomdp_hier.hqs.paper import reproduce
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.improvement import improve, regroup
from pomdp_hier.planning import solve, verify
from pomdp_hier.report import write_report, write_teaching_page
from pomdp_hier.searches.comparison import PredictedObserved

READERS = [getattr(Hierarchy, name) for name in dir(Hierarchy) if name.startswith("from_")]
FUNCTIONS = [
    *READERS,
    *(Hierarchy.to_text, Settings, Run, Sampling, appraise, compare, compare_search_policies, suggest_moves),
    *(compare_updaters, load_features, text_features, solve, improve, regroup, best_cut, score_by_levels),
    *(read_searches, fit_delta, predicted_and_observed),
]
ARGUMENTS = {name for function in FUNCTIONS for name in inspect.signature(function).parameters}
# Names with an underscore are no English; the others are arguments where a value follows.
PYTHON_ONLY = re.compile(
    "|".join(rf"(?<![\w-]){name}\b" if "_" in name else rf"(?<![\w-]){name}=" for name in sorted(ARGUMENTS))
)

COMMANDS = {
    "score": ["points.csv", "tree.csv"],
    "compare": ["points.csv", "tree.csv", "tree.csv"],
    "report": ["points.csv", "tree.csv", "--out=report.html"],
    "inspect": ["tree.csv", "points.csv"],
    "improve": ["points.csv", "tree.csv"],
    "levels": ["points.csv", "tree.csv"],
    "regroup": ["points.csv", "tree.csv"],
    "features": ["tree.csv", "points.csv"],
    "apply": ["tree.csv", "moves.csv"],
    "misfiled": ["points.csv", "tree.csv"],
    "searches": ["points.csv", "tree.csv", "searches.csv"],
    "policies": ["points.csv", "tree.csv"],
    "show": ["tree.csv"],
    "check": ["--hierarchy", "points.csv", "tree.csv"],
    "solve": ["walk.pomdp", "--horizon=2"],
    "verify": ["tree.csv", "walk.pomdp"],
    "reproduce": [],
    "teach": ["--out=page.html"],
    "completion": ["bash"],
}
BAD = ("-1", "nan", "99999999999999999999", "nosuch", "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("id,x,y\nant,1,0\nbee,2,1\ncod,0,1\neel,1,3\n", encoding="utf-8")
    (tmp_path / "tree.csv").write_text("id,parent\nr,\na,r\nb,r\nant,a\nbee,a\ncod,b\neel,b\n", encoding="utf-8")
    (tmp_path / "moves.csv").write_text("item_id,source_id,target_id,decision\nbee,a,b,accept\n", encoding="utf-8")
    (tmp_path / "paths.csv").write_text("item,path\nant,a\nbee,a\ncod,b\neel,b\n", encoding="utf-8")
    (tmp_path / "searches.csv").write_text("searcher,item,step,node\nAnn,ant,1,a\nBob,cod,1,a\n", encoding="utf-8")
    (tmp_path / "walk.pomdp").write_text(
        "discount: 0.9\nstates: 2\nactions: 2\nobservations: 2\nvalues: reward\nT: * uniform\nO: * identity\n"
        "R: 1 : 0 : * : * 1\n",
        encoding="utf-8",
    )
    np.savez(tmp_path / "two.npz", a=np.eye(4), b=np.eye(4))
    return tmp_path


def options_of(command):
    parsers = next(action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(parsers.choices) == set(COMMANDS)  # a command that comes joins the table above
    taken = (action for action in parsers.choices[command]._actions if action.option_strings)
    names = {action.option_strings[-1]: action for action in taken if action.nargs is None and not action.choices}
    return list(names)


def told(capsys, *arguments):
    code = main(list(arguments))  # whatever is raised but the package's own errors ends the test
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert code in (0, 1, 2, 3)
    assert len(said) == (code in (1, 2)), arguments
    return said[0] if said else ""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_bad_value_of_any_option_is_answered_with_a_name_out_of_python(folder, capsys, command):
    for option in options_of(command):
        for value in BAD:
            said = told(capsys, command, *COMMANDS[command], f"{option}={value}")
            assert PYTHON_ONLY.search(said) is None, said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "tree.csv", "--n-items=0"], "--n-items: got 0;"),
        (["show", "tree.csv", "--n-items=99"], "tree.csv: --n-items: got 99"),
        (["show", "tree.csv", "--max-lines=0"], "--max-lines: got 0;"),
        (["show", "tree.csv", "--max-items=-1"], "--max-items: got -1;"),
        (["show", "tree.csv", "--item-column="], "column: got ''; expected one of 'id', 'parent'"),
        (["show", "paths.csv", "--path-column="], "--path-column: got '';"),
        (["show", "two.npz"], "Name it: --tree-key"),
        (["score", "two.npz", "tree.csv"], "Name it: --key"),
        (["score", "points.csv", "tree.csv", "--sample-size=0"], "--sample-size: got 0; expected a number of items"),
        (["score", "points.csv", "tree.csv", "--sample-size=99"], "--sample-size: got 99; expected an integer"),
        (["score", "points.csv", "tree.csv", "--half-width=0"], "--half-width: got 0.0; expected a positive"),
        (
            ["score", "points.csv", "tree.csv", "--sample-size=2", "--half-width=0.1"],
            "--sample-size: got 2 beside --half-width 0.1; expected one",
        ),
        (["score", "points.csv", "tree.csv", "--delta=0"], "--delta: got 0.0; expected a positive number"),
        (["score", "points.csv", "tree.csv", "--nu=0"], "--nu: got 0.0; expected a positive number"),
        (["score", "points.csv", "tree.csv", "--min-df=2"], "--min-df: got an option of text"),
        (["score", "points.csv", "tree.csv", "--text-column=x", "--max-ngram=0"], "--max-ngram: got 0;"),
        (["score", "points.csv", "tree.csv", "--shuffles=9999999"], "--shuffles: got 9999999;"),
        (["score", "points.csv", "tree.csv", "--similarity=precomputed"], "points.csv: got shape (4, 2)"),
        (["compare", "points.csv", "tree.csv", "tree.csv", "--confidence=2"], "--confidence: got 2.0;"),
        (["check", "walk.pomdp", "--max-histories=0"], "--max-histories: got 0;"),
        (["check", "walk.pomdp", "--tolerance=-1"], "--tolerance: got -1.0; expected a number"),
        (["solve", "walk.pomdp", "--time-limit=-1"], "argument --time-limit: got -1;"),
        (["solve", "walk.pomdp", "--memory-limit=nan"], "argument --memory-limit: got nan;"),
        (["solve", "walk.pomdp", "--memory-limit=much"], "argument --memory-limit: got 'much';"),
        (["solve", "walk.pomdp", "--horizon=99999999999999999999"], "--horizon: got 99999999999999999999; expected at"),
        (["solve", "walk.pomdp", "--horizon=0"], "--horizon: got 0; expected an integer of at least 1"),
    ],
)
def test_an_error_names_the_option_that_was_typed(folder, capsys, arguments, said):
    assert said in told(capsys, *arguments)


def test_a_parent_that_marks_a_root_makes_a_table_one_of_parents(tmp_path, capsys):
    def clusters(text):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        assert main(["show", str(tmp_path / "t.csv")]) == 0
        return capsys.readouterr().out.splitlines()[1:]

    rows = "1,{root}\n2,1\n3,1\n4,2\n5,2\n"
    expected = clusters("child,parent\n" + rows.format(root=""))
    assert expected[0].startswith("1 ")
    for root in ("0", "-1", "0.0", "null"):
        assert clusters("child,parent\n" + rows.format(root=root)) == expected
    assert clusters("child,parent\n1,0\n2,0\n3,1\n4,1\n")[0].startswith("0 ")  # edges, whose root is called 0


# The functions that a command calls, whose parameters its options are named after.
CALLS = {
    "reproduce": (reproduce,),
    "teach": (write_teaching_page,),
    "score": (evaluate, appraise, evaluate_distributed),
    "report": (evaluate, appraise, write_report),
    "searches": (fit_delta, predicted_and_observed, PredictedObserved.to_rows),
    "misfiled": (find_misfiled, MisfiledItems.select, MisfiledItems.to_rows),
    "improve": (evaluate, improve),
    "compare": (evaluate, compare),
    "levels": (evaluate, score_by_levels, best_cut),
    "features": (compare_features,),
    "regroup": (evaluate, regroup),
    "apply": (evaluate,),
    "inspect": (evaluate, appraise),
    "policies": (evaluate, compare_search_policies),
    "show": (Hierarchy.to_text,),
    "check": (compare_updaters, search_problem, affinity),
    "solve": (solve,),
    "verify": (verify,),
    "completion": (),
}
# Options of the command line alone: outputs, how much is printed, and what selects another function.
LINE_ONLY = {
    *("help", "==SUPPRESS==", "out", "report", "edits_out", "policy_out", "certificate", "force", "json", "quiet")
}
LINE_ONLY |= {
    *("score_only", "top", "ascii", "dask", "hierarchy", "check_items", "sweep", "n_moves", "n_edits", "decided")
}
# Options that are called otherwise than the parameter: one name there serves several options here, or is a negation.
OTHERWISE = {
    ("levels", "best_cut"): "levels",
    ("levels", "max_trees"): "limit",
    ("report", "max_rows"): "limit",
    ("searches", "seed"): "random_state",
    ("compare", "no_measures"): "measures",
    ("policies", "policy"): "policies",
    ("improve", "all"): "sound_only",
    ("features", "similarity"): "similarities",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_is_called_as_the_parameter_that_it_sets(command):
    parsers = next(action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    parser = parsers.choices[command]
    parameters = {name for function in CALLS[command] for name in inspect.signature(function).parameters}
    as_options = {as_option(Setting(name)).removeprefix("--").replace("-", "_") for name in parameters}
    reading = {option.dest for option in parser.reading_options()}
    dests = {option.dest for option in parser._actions if option.option_strings} - reading - LINE_ONLY
    assert {dest for dest in dests if OTHERWISE.get((command, dest), dest) not in as_options | parameters} == set()


@pytest.mark.parametrize("command", [command.name for command in _COMMANDS])
def test_help_has_the_options_of_the_command_first(command, capsys):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    if "the searcher:" in out:
        assert (
            out.index("\noptions:") < out.index("\n  --quiet") < out.index("the searcher:") < out.index("\n  --delta")
        )
    if "--help-all" in out:
        assert main([command, "--help-all"]) == 0
        whole = capsys.readouterr().out
        assert whole.index("\nexamples:") > whole.index("\nreading TREE:") > whole.index("\n  --help-all")
        assert out.splitlines()[-3:] == whole.splitlines()[-3:]
        assert "the searcher:" not in whole[whole.index("\nreading") :]
    else:
        assert "reading" not in out


def test_help_leaves_the_reading_options_to_help_all(capsys):
    assert main(["score", "--help"]) == 0
    short = capsys.readouterr().out
    assert main(["score", "--help-all"]) == 0
    whole = capsys.readouterr().out
    assert "--delta" in short
    assert "--text-column" not in short
    assert "--tree-format" not in short
    assert all(option in whole for option in ("--delta", "--text-column", "--tree-format"))
    assert main(["score", "--help"]) == 0
    assert capsys.readouterr().out == short
