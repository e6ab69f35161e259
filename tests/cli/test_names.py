"""``--names``: any columns of ids and names, and a changed tree written in the format that it came in."""

import gzip

import numpy as np
import pytest

from pomdp_hier import Hierarchy, improve
from pomdp_hier.cli import main
from tests.planted import clean_case, misplaced

TREE = "[[0,1],[2,3],[4,5]]"


@pytest.fixture
def show(tmp_path, capsys):
    (tmp_path / "t.json").write_text(TREE, encoding="utf-8")

    def call(table, *arguments):
        (tmp_path / "n.csv").write_text(table, encoding="utf-8")
        code = main(["show", str(tmp_path / "t.json"), "--names", str(tmp_path / "n.csv"), *arguments])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return call


@pytest.mark.parametrize(
    ("header", "arguments"),
    [
        ("id,name", []),
        ("Code,Title", []),
        ("notation,skos:prefLabel", []),
        ("nr,what", []),
        ("nr,what", ["--name-columns", "nr,what"]),
    ],
)
def test_names_are_found_by_their_columns(show, header, arguments):
    code, text = show(f"{header}\n0,ant\n1,bee\n", *arguments)
    assert code == 0
    assert "ant, bee" in text


def test_named_columns_have_priority(show):
    code, text = show("id,name,latin\n0,ant,formica\n", "--name-columns", "id,latin")
    assert code == 0
    assert "formica" in text


@pytest.mark.parametrize(
    ("table", "arguments", "code", "told"),
    [
        (
            "a,b,c\n0,1,2\n",
            [],
            1,
            "got the columns a, b, c; expected id and name. Name them with",
        ),
        ("a,b\n0,1\n", ["--name-columns", "a,x"], 1, "got 0 columns 'x' in a, b; expected one"),
        ("a,b\n0,1\n", ["--name-columns", "a"], 2, "--name-columns: got a;"),
    ],
)
def test_error_for_missing_columns(show, table, arguments, code, told):
    found, text = show(table, *arguments)
    assert found == code
    assert told in text


def test_columns_without_a_table_are_refused(tmp_path, capsys):
    (tmp_path / "t.json").write_text(TREE, encoding="utf-8")
    assert main(["show", str(tmp_path / "t.json"), "--name-columns", "a,b"]) == 2
    assert "--name-columns: got columns without --names" in capsys.readouterr().err


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    ("ending", "text", "old", "new"),
    [
        (
            ".csv",
            "# mine\nnr;l1;l2\ni0;x;a\ni1;x;a\ni2;x;b\ni3;x;b\ni4;x;b\ni5;x;a\n",
            ("i5;x;a",),
            ("i5;x;b",),
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_only_the_cells_of_moved_items_change(tmp_path, capsys, ending, text, old, new, mark, packed):
    pack = (lambda content: gzip.compress(content, mtime=0)) if packed else bytes
    name = ending + ".gz" * packed
    (tmp_path / f"tree{name}").write_bytes(pack(mark + text.encode()))
    (tmp_path / "x.csv").write_text("id,x,y\ni0,9,0\ni1,9,1\ni2,0,9\ni3,1,9\ni4,0,8\ni5,0,7\n", encoding="utf-8")
    told = ["--item-column", "nr", "--levels", "l1,l2"] if ending == ".csv" else []
    out = tmp_path / f"better{name}"
    arguments = [
        str(tmp_path / "x.csv"),
        str(tmp_path / f"tree{name}"),
        "--folds",
        "0",
        "--delta",
        "0.05",
        "-o",
        str(out),
    ]
    assert main(["improve", *arguments, *told]) == 0, capsys.readouterr().err
    for one, other in zip(old, new, strict=True):
        text = text.replace(one, other)
    assert out.read_bytes() == pack(mark + text.encode())


def test_the_better_tree_is_written_as_the_tree_came(tmp_path, capsys):
    X, tree = clean_case()
    broken, _ = misplaced(tree, 0, -1)
    np.save(tmp_path / "x.npy", X)
    lines = ["sku,path,price"]
    for item in range(tree.n_items):
        names, node = [], int(broken.parent[item])
        while broken.parent[node] >= 0:
            names.append(f"c{node}")
            node = int(broken.parent[node])
        lines.append(f"s{item},{' > '.join(reversed(names))},{item}")
    source, out = tmp_path / "tree.csv", tmp_path / "better.csv"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = [str(tmp_path / "x.npy"), str(source), "--delta", "0.02", "--folds", "0", "--join", "position"]
    assert main(["improve", *arguments, "-o", str(out)]) == 0
    expected = improve(X, Hierarchy.from_paths(source), delta=0.02, folds=0)
    assert Hierarchy.from_paths(out) == expected.tree
    before, after = source.read_text().splitlines(), out.read_text().splitlines()
    changed = [k for k, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert changed == [1]  # item 0 alone, its price as it was
    assert after[1].endswith(",0")
    capsys.readouterr()
    assert main(["improve", *arguments, "-o", str(tmp_path / "better.nwk")]) == 2
    assert "a name that ends in .json or .csv" in capsys.readouterr().err
