"""``pomdp-hier levels``: what the functions say, in lines and as JSON, and the tree with the best score as a file."""

import json

import numpy as np
import pytest

from pomdp_hier import Hierarchy
from pomdp_hier.analysis import best_cut, score_by_levels
from pomdp_hier.cli import main
from tests.planted import clean_case


@pytest.fixture
def files(tmp_path):
    X, tree = clean_case()
    np.save(tmp_path / "x.npy", X)
    tree.to_json(tmp_path / "tree.json")
    return X, tree, tmp_path


def call(folder, *arguments):
    return main(["levels", str(folder / "x.npy"), str(folder / "tree.json"), "--delta", "0.02", *map(str, arguments)])


@pytest.mark.parametrize("side", ["bottom", "top"])
def test_the_lines_and_the_rows_are_those_of_the_function(files, capsys, side):
    X, tree, folder = files
    found = score_by_levels(X, tree, remove_from=side, delta=0.02)
    out = folder / "best.json"
    assert call(folder, "--remove-from", side, "-o", out) == 0
    assert capsys.readouterr().out == found.summary() + "\n"
    assert Hierarchy.from_json(out) == found.trees[found.best]
    assert call(folder, "--remove-from", side, "--json") == 0
    assert json.loads(capsys.readouterr().out) == found.to_rows()


def test_a_cut(files, capsys):
    X, tree, folder = files
    found = best_cut(X, tree, levels=2, max_clusters=20, delta=0.02)
    assert call(folder, "--best-cut", 2, "--max-clusters", 20, "-o", folder / "cut.json") == 0
    assert capsys.readouterr().out == found.summary() + "\n"
    assert Hierarchy.from_json(folder / "cut.json") == found.tree


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--max-clusters", 5], "--max-clusters has no effect without --best-cut"),
        (["--best-cut", 1, "--remove-from", "top"], "--remove-from has no effect with --best-cut"),
        (["--best-cut", 1, "--policy", "optimal"], "--policy has no effect with --best-cut"),
        (["--force"], "--force has no effect without --out"),
        (["--best-cut", 0], "levels: got 0"),
        (["--max-trees", 1], "limit: got 1"),
    ],
)
def test_a_slip_is_one_line(files, capsys, arguments, told):
    assert call(files[2], *arguments) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
