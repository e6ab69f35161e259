"""``pomdp-hier regroup``: the tree that it writes, what it prints, and what it refuses."""

import numpy as np
import pytest

from pomdp_hier.cli import main
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.improvement import regroup
from tests.improvement.test_regroup import catalogue, clusters_of


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, tree = catalogue(np.random.default_rng(0), mixed=True)
    names = [" > ".join(label) for label in tree.item_labels]
    terms = [f"topic{k}" for k in range(4)] + [f"word{k}" for k in range(20)]
    rows = [",".join([f"i{k}", *map(repr, row.tolist())]) for k, row in enumerate(X)]
    (tmp_path / "x.csv").write_text("\n".join([",".join(["id", *terms]), *rows]) + "\n", encoding="utf-8")
    paths = [f"i{k},{name.rpartition(' > ')[0]}" for k, name in enumerate(names)]
    (tmp_path / "tree.csv").write_text("\n".join(["id,category", *paths]) + "\n", encoding="utf-8")
    return tmp_path


def test_the_tree_is_that_of_the_function(shelf, capsys):
    arguments = ["x.csv", "tree.csv", "--delta", "0.05", "--folds", "0"]
    assert main(["regroup", *arguments, "-o", "better.csv", "--top", "2"]) == 0
    printed = capsys.readouterr().out
    X = np.loadtxt(shelf / "x.csv", delimiter=",", skiprows=1, usecols=range(1, 25))
    tree = Hierarchy.from_paths(shelf / "tree.csv")
    terms = [f"topic{k}" for k in range(4)] + [f"word{k}" for k in range(20)]
    found = regroup(X, tree, delta=0.05, folds=0, terms=terms)
    assert printed.splitlines() == found.summary(2).splitlines()
    written = Hierarchy.from_paths(shelf / "better.csv")
    assert written.item_labels == found.tree.item_labels
    assert clusters_of(written) == clusters_of(found.tree)
    assert "topic0" in (shelf / "better.csv").read_text(encoding="utf-8")
    assert main(["regroup", *arguments, "-o", "better.csv"]) == 1  # it exists


def test_a_page_with_names(shelf, capsys):
    (shelf / "names.csv").write_text("id,name\nsection 1,Shoes\n", encoding="utf-8")
    arguments = ["x.csv", "tree.csv", "--delta", "0.05", "--folds", "0", "--names", "names.csv"]
    assert main(["regroup", *arguments, "--report", "page.html"]) == 0
    assert "from Shoes" in capsys.readouterr().out
    assert ">Shoes<" in (shelf / "page.html").read_text(encoding="utf-8")
    assert main(["regroup", *arguments, "--report", "page.html"]) == 1  # it exists
    assert main(["regroup", *arguments, "--report", "page.html", "--force"]) == 0
    assert main(["regroup", *arguments, "--report", "page.csv"]) != 0
    assert "--report: " in capsys.readouterr().err


def test_options_reach_the_function(shelf, capsys):
    assert main(["regroup", "x.csv", "tree.csv", "--folds", "0", "--level", "1", "--max-children", "3"]) == 0
    assert "pairs of siblings kept" in capsys.readouterr().out
    assert main(["regroup", "x.csv", "tree.csv", "--folds", "0", "--node", "section 1", "--label-cost", "0"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--node", "nowhere"], "--node: got 'nowhere'"),
        (["--level", "7"], "--level: got 7"),
        (["--max-children", "2"], "--max-children: got 2"),
        (["--folds", "1"], "--folds: got 1"),
        (["--tolerance", "2"], "--tolerance: got 2"),
        (["--force"], "--force"),
    ],
)
def test_errors_name_the_option(shelf, capsys, options, said):
    assert main(["regroup", "x.csv", "tree.csv", *options]) in (1, 2)
    assert said in capsys.readouterr().err
