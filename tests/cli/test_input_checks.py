"""What people hand a command by mistake: files in the other order, of another kind, packed, options without effect."""

import gzip
import json
import pickle

import numpy as np
import pytest

from pomdp_hier.cli import main

POINTS = "id,x,y\nant,1,0\nbee,2,1\ncod,0,1\neel,1,3\n"
TREE = "id,parent\nall,\nland,all\nsea,all\nant,land\nbee,land\ncod,sea\neel,sea\n"
NAMES = "id,name\nant,The Ant\nland,On land\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in [("points.csv", POINTS), ("tree.csv", TREE), ("names.csv", NAMES)]:
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    (tmp_path / "tree.nwk").write_text("((ant,bee)land,(cod,eel)sea)all;", encoding="utf-8")
    (tmp_path / "two.nwk").write_text("((ant,cod)land,(bee,eel)sea)all;", encoding="utf-8")
    return tmp_path


def refused(capsys, code, *arguments):
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    return next(line for line in captured.err.splitlines() if line.startswith("error: "))


def test_error_for_features_and_tree_in_reverse_order(folder, capsys):
    for tree in ("tree.csv", "tree.nwk"):
        said = (
            f"error: FEATURES and TREE: got the tree {tree} and the features points.csv; expected the features first. "
            "Swap them."
        )
        assert refused(capsys, 2, "score", tree, "points.csv") == said
        assert refused(capsys, 2, "inspect", "points.csv", tree) == said
        assert refused(capsys, 2, "report", tree, "points.csv", "-o", "r.html") == said
        assert refused(capsys, 2, "policies", tree, "points.csv") == said
        assert refused(capsys, 2, "check", "--hierarchy", tree, "points.csv") == said
        assert refused(capsys, 2, "compare", tree, "two.nwk", "points.csv") == said


def test_every_file_may_be_packed(folder, capsys):
    assert main(["score", "points.csv", "tree.csv", "--names", "names.csv", "--delta", "0.1"]) == 0
    plain = capsys.readouterr().out
    assert "The Ant" in plain
    assert main(["score", "points.csv.gz", "tree.csv.gz", "--names", "names.csv.gz", "--delta", "0.1"]) == 0
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": got an empty file"),
        (b"#NEXUS\n", ": got a NEXUS file"),
        (pickle.dumps([1]), ": got a pickle"),
        (b"<!DOCTYPE html>", ": got an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", ": got a git-lfs pointer"),
        (b"\xd0\xcf\x11\xe0", ": got an Excel or OpenDocument workbook"),
    ],
)
def test_error_for_a_file_of_another_kind_in_every_command(folder, capsys, content, said):
    for packed in (content, gzip.compress(content)):
        (folder / "odd.csv").write_bytes(packed)
        for arguments in (
            ["score", "odd.csv", "tree.csv"],
            ["score", "points.csv", "odd.csv"],
            ["show", "tree.csv", "--names", "odd.csv"],
        ):
            assert f"odd.csv{said}" in refused(capsys, 1, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "A", "--add-root"], "--add-root has no effect on a tree that is built in"),
        (["show", "tree.nwk", "--sep", "/"], "--sep: got a value for tree.nwk, read as newick"),
        (["show", "tree.csv", "--levels", "a,b"], "--levels: got a value for tree.csv, read as parents"),
        (["show", "tree.csv", "--tree-key", "a"], "--tree-key: got a value for"),
        (["inspect", "tree.csv", "--delta", "0.5"], "--delta has no effect on a tree without FEATURES"),
        (["inspect", "tree.csv", "--sweep"], "--sweep has no effect"),
        (["score", "points.csv", "tree.csv", "--key", "X"], "Leave this out: --key X"),
        (["score", "x.npy", "tree.csv", "--id-column", "id"], "Leave this out: --id-column id"),
        (["score", "points.csv", "tree.csv", "--seed", "1"], "--seed has no effect without"),
        (["score", "points.csv", "tree.csv", "--sampling", "simple"], "--sampling has no effect without"),
        (["score", "points.csv", "tree.csv", "--sample-size", "2", "--shuffles", "3"], "--shuffles has no effect"),
        (["score", "points.csv", "tree.csv", "--score-only", "--top", "3"], "--top has no effect with --score-only"),
        (["score", "points.csv", "tree.csv", "--force"], "--force has no effect without --out"),
        (["score", "points.csv", "tree.csv", "--text-column", "x", "--dask"], "--text-column has no effect with"),
        (["compare", "points.csv", "tree.csv", "two.nwk", "--no-measures", "--labels", "l"], "--labels has no effect"),
        (["policies", "points.csv", "tree.csv", "--jobs", "2"], "--jobs has no effect"),
        (["check", "walk.pomdp", "--nu", "2"], "--nu has no effect on a .pomdp file"),
    ],
)
def test_an_option_without_effect_is_refused(folder, capsys, arguments, said):
    np.save(folder / "x.npy", np.eye(4))
    assert said in refused(capsys, 2, *arguments)


def test_a_number_of_items_beyond_the_file_costs_nothing(folder, capsys):
    assert "--n-items: got 99999999999" in refused(capsys, 1, "show", "tree.csv", "--n-items", "99999999999")


def test_a_sparse_array_is_no_tree(folder, capsys):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(folder / "tree.npz", sparse.eye_array(4).tocsr())
    assert "array: got a sparse one" in refused(capsys, 1, "show", "tree.npz")


def test_nodes_have_names_in_json(folder, capsys):
    assert main(["inspect", "tree.csv", "points.csv", "--json", "--names", "names.csv", "--delta", "0.5"]) == 0
    found = json.loads(capsys.readouterr().out)
    entries = [entry for name in ("worst_nodes", "lost_items", "confusions", "moves") for entry in found[name]]
    labels = {"The Ant", "bee", "cod", "eel", "all", "On land", "sea"}
    named = {value for entry in entries for key, value in entry.items() if key.endswith("_name")}
    assert named
    assert named <= labels
