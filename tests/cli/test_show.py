"""``pomdp-hier show``: built-in hierarchies and tree files as text."""

import io

import numpy as np
import pytest

from pomdp_hier.cli import main


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "E", "dvd"])
def test_built_in(name, capsys):
    assert main(["show", name]) == 0
    out = capsys.readouterr().out
    assert ("Harry Potter" if name == "dvd" else "Women Boots") in out
    assert "10 items" in out if name == "dvd" else f"Hier-{name}: 12 items" in out


def test_a_file_with_names(tmp_path, capsys):
    (tmp_path / "t.json").write_text('[["r","a"],["r","b"]]', encoding="utf-8")
    (tmp_path / "n.csv").write_text("id,kind,name\na,x,Ant\nr,y,Root\n", encoding="utf-8-sig")
    assert main(["show", str(tmp_path / "t.json"), "--names", str(tmp_path / "n.csv")]) == 0
    assert capsys.readouterr().out.endswith(
        "2 items, 1 cluster, 1 without clusters below, height 0\nRoot (2 items): Ant, b\n"
    )


def test_standard_input_and_formats(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[[0,1],[3,2]]")))
    assert main(["show", "-", "--tree-format", "children"]) == 0
    assert "Standard input: 3 items, 3 clusters" in capsys.readouterr().out
    np.save(tmp_path / "z.npy", np.array([[0, 1, 0.5, 2], [3, 2, 0.7, 3]]))
    assert main(["show", str(tmp_path / "z.npy")]) == 0
    assert "3 items, 5 clusters" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "z.npy"), "--no-singletons"]) == 0
    assert "3 items, 3 clusters" in capsys.readouterr().out


def test_a_large_tree_is_cut(tmp_path, capsys):
    children = [[0, 1], *([k, k + 998] for k in range(2, 1000))]
    (tmp_path / "t.json").write_text(str(children), encoding="utf-8")
    assert main(["show", str(tmp_path / "t.json"), "--tree-format", "children", "--max-lines", "5", "--ascii"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 7
    assert "more of" in out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "got an empty file"),
        (b"[[0,1],[2", "JSON: "),
        (b"\xff\xfe", "UTF-8"),
        (b"[[0,1],[1,0]]", "error"),
        (b"{}", "keys"),
        (b"[" * 100_000, "error"),
        (b"7", "expected a list"),
    ],
)
def test_a_bad_tree_is_one_line(tmp_path, capsys, content, said):
    (tmp_path / "t.json").write_bytes(content)
    assert main(["show", str(tmp_path / "t.json")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1


def test_bad_names_and_options(tmp_path, capsys):
    (tmp_path / "t.json").write_text("[[0,1]]", encoding="utf-8")
    tree = str(tmp_path / "t.json")
    (tmp_path / "n.csv").write_text("a,b,c\n1,2,3\n", encoding="utf-8")
    assert main(["show", tree, "--names", str(tmp_path / "n.csv")]) == 1
    assert "expected id and name" in capsys.readouterr().err
    assert main(["show", tree, "--names", str(tmp_path)]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert main(["show", tree, "--max-lines", "0"]) == 2
    assert main(["show", str(tmp_path)]) == 1
    assert main(["show", str(tmp_path / "nowhere.json")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_options_for_trees_with_several_parents_or_roots(tmp_path, capsys):
    path = str(tmp_path / "t.json")
    (tmp_path / "t.json").write_text('[["r","a"],["r","b"],["s","c"],["s","a"]]', encoding="utf-8")
    assert main(["show", path]) == 1
    assert capsys.readouterr().err.startswith(f"error: {path}: ")
    assert main(["show", path, "--add-root", "--on-multiple-parents", "first"]) == 0
    assert "3 items" in capsys.readouterr().out
