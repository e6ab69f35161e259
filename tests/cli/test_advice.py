"""Advice that a command gives is followed here, word for word where it is an option, and the command then works."""

import re
import shlex
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.cli import inputs, main

TREE = "id,parent\nall,\nland,all\nsea,all\nant,land\nbee,land\ncod,sea\neel,sea\n"
FILES = {
    "tree.csv": TREE,
    "x.csv": "id,x,y\nant,1,0\nbee,2,1\ncod,0,1\neel,1,3\n",
    "bare.csv": "x,y\n1,0\n2,1\n0,1\n1,3\n",
    "other.csv": "id,x,y\nant,1,1\nbee,1,2\ncod,3,1\neel,3,2\n",
    "code.csv": "code,x,y\nant,1,0\nbee,2,1\ncod,0,1\neel,1,3\n",
    "text.csv": "id,title\nant,small red\nbee,small black\ncod,big wet\neel,long wet\n",
    "many.csv": "id,title,size\nant,small red,1\nbee,small black,1\ncod,big wet,4\neel,long wet,9\n",
    "comma.csv": 'id,x,y\nant,"1,5",0\nbee,2,1\ncod,0,1\neel,1,3\n',
    "gap.csv": "id,x,y\nant,1,\nbee,2,1\ncod,0,1\neel,1,3\n",
    "nan.csv": "id,x,y\nant,1,0\nbee,2,nan\ncod,0,1\neel,1,3\n",
    "numbers.csv": "1,0\n2,1\n0,1\n1,3\n",
    "one.csv": "id,x\nant,1\nbee,2\ncod,-1\neel,-3\n",
    "m.pomdp": "discount: 0.9\nstates: 2\nactions: 2\nobservations: 2\nT: * uniform\nO: * identity\nR: 1 : 0 : * : * 1",
    "short.csv": "x,y\n1,0\n2,1\n0,1\n",
    "quote.csv": 'id,x,y\nant,"1,0\n',
    "cells.csv": "id,x,y\nant,1,0,5\nbee,2,1\ncod,0,1\neel,1,3\n",
    "page.csv": "<html>log in</html>",
    "names.csv": "code,word,x\nant,Ant,1\n",
    "there.csv": "old",
    "there.json": "old",
    "paths.txt": "item,path\nant,all > land\ncod,all > land > ant\n",
    "links.csv": "from,to\nall,land\nall,sea\n",
    "twice.txt": "land\n  ant\n  bee\nsea\n  ant\n  eel\n",
    "paths.csv": "id,x,y\nant,1,0\nbee,2,1\nfox,0,1\neel,1,3\n",
}


NAMED = "id,x,y\nland > ant,1,0\nland > bee,2,1\nsea > ant,0,1\nsea > eel,1,3\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    X = np.loadtxt(tmp_path / "bare.csv", delimiter=",", skiprows=1)
    np.save("x.npy", X)
    np.save("Z.npy", [[0, 1, 1, 2], [2, 3, 2, 3]])
    np.savez("two.npz", a=X, b=X)
    np.save("tree.npy", np.array([[0, 1], [2, 3], [4, 5]]))
    np.save("half.npy", np.array([[0, 1], [2, 3], [4, 5.5]]))
    np.save("linkage.npy", np.array([[0, 1, 1.0, 2], [2, 3, 1.0, 2], [4, 5, 2.0, 4]]))
    sp.save_npz("sparse.npz", sp.csr_array(np.eye(4)))
    with zipfile.ZipFile("x.zip", "w") as archive:
        archive.writestr("x.csv", FILES["x.csv"])
    np.save("objects.npy", X.astype(object))
    return tmp_path


def write(name, text):
    def mend():
        Path(name).write_text(text, encoding="utf-8")

    return mend


def astype_float():
    np.save("objects.npy", np.load("objects.npy", allow_pickle=True).astype(float))


def solve_again():
    assert main(["solve", "m.pomdp", "--certificate", "there.json", "--force"]) == 0


def remove_line_and_item():
    write("gap.csv", FILES["gap.csv"].replace("ant,1,\n", ""))()
    write("tree.csv", TREE.replace("ant,land\n", ""))()


# A command line; what it says of the argument or the file, with the value; the advice, which is also said: an option to
# add ("--key b"), one to leave out ("-key"), another command line, or what is done to a file.
TABLE = [
    ("score code.csv tree.csv", "code.csv, line 2, column 'code': got 'ant'", "--id-column code"),
    ("score text.csv tree.csv", "text.csv, line 2, column 'title': got 'small red'", "--text-column title"),
    ("score many.csv tree.csv", "column 'title': got 'small red'", "--text-column title"),
    ("score comma.csv tree.csv", "column 'x': got '1,5'", write("comma.csv", FILES["comma.csv"].replace("1,5", "1.5"))),
    ("score gap.csv tree.csv", "gap.csv, line 2, column 'y': got an empty cell", write("gap.csv", FILES["x.csv"])),
    ("score gap.csv tree.csv", "remove the line and its item", remove_line_and_item),
    (
        "score nan.csv tree.csv",
        "nan.csv: got NaN or infinite values in 1 row ('bee')",
        write("nan.csv", FILES["x.csv"]),
    ),
    ("score nan.csv tree.csv --join position", "nan.csv: got NaN or inf", write("nan.csv", FILES["x.csv"])),
    ("score numbers.csv tree.csv", "numbers.csv, line 1: got numbers", write("numbers.csv", FILES["bare.csv"])),
    ("score two.npz tree.csv", "two.npz: got no array 'X'; expected one of a, b", "--key b"),
    ("score objects.npy tree.csv", "objects.npy: got Python objects", astype_float),
    ("score x.npy tree.csv --key X", "x.npy: got no .npz", "-key X"),
    ("score x.npy tree.csv --id-column id", "x.npy: got a bare array", "-id-column id"),
    ("score x.npy tree.csv --join id", "x.npy: got no ids", "-join id"),
    ("score bare.csv tree.csv --join id", "bare.csv: got no ids", "-join id"),
    ("score x.npy tree.csv --text-column x", "x.npy", "-text-column x"),
    ("score text.csv tree.csv --max-ngram 2", "--max-ngram: got an option of text", "--text-column title"),
    ("score text.csv tree.csv --text-column title --min-df 3", "text.csv: got no term in 4 texts", "--min-df 1"),
    ("score x.csv tree.csv --similarity precomputed", "x.csv: got shape (4, 2)", "-similarity precomputed"),
    ("score x.csv tree.csv --policy best", "best", "-policy best"),
    ("score x.csv tree.csv --out there.csv", "there.csv: got a path that exists", "--force"),
    ("score x.csv tree.csv --out x.xls", "--out: got x.xls;", "score x.csv tree.csv --out y.csv"),
    ("score x.csv tree.csv --sampling simple", "--sampling has no effect", "-sampling simple"),
    ("score x.csv tree.csv --out - --json", "--out -", "score x.csv tree.csv --out -"),
    ("score x.csv tree.csv --sample-size many", "--sample-size: got 'many'", "score x.csv tree.csv --sample-size 0.5"),
    ("score tree.csv x.csv", "got the tree tree.csv and the features x.csv", "score x.csv tree.csv"),
    ("inspect x.csv tree.csv", "got the tree tree.csv and the features x.csv", "inspect tree.csv x.csv"),
    ("improve x.csv tree.csv --policy optimal", "--policy: got optimal", "--policy one-step"),
    ("improve x.csv tree.csv --folds 0 --seed 3", "--seed has no effect", "-seed 3"),
    (
        "improve x.csv tree.csv --fixed lend",
        "--fixed: got 'lend'",
        "--fixed land",
    ),
    ("improve x.csv tree.csv --out x.csv", "--out: got x.csv", "improve x.csv tree.csv --out y.csv"),
    ("improve x.csv tree.csv -o b.csv --edits-out b.csv", "b.csv", "improve x.csv tree.csv -o b.csv --edits-out m.csv"),
    ("levels x.csv tree.csv --max-clusters 3", "--max-clusters has no effect without --best-cut", "-max-clusters 3"),
    ("policies x.csv tree.csv --policy best", "expected one of one-step", "--policy one-step"),
    ("report x.csv tree.csv --out there.json", "--out: got there.json", "report x.csv tree.csv --out r.html"),
    ("check m.pomdp --check-items 2", "--check-items has no effect", "-check-items 2"),
    ("solve m.pomdp --certificate there.json", "there.json: got a path that exists", "--force"),
    ("solve m.pomdp --policy-out p.txt", "--policy-out: got p.txt", "solve m.pomdp --policy-out p.alpha"),
    ("check", "FILE: got nothing", "check m.pomdp"),
    ("check m.pomdp --hierarchy x.csv tree.csv", "got both FILE and --hierarchy", "check m.pomdp"),
    ("compare x.csv tree.csv tree.csv --out - --json", "--out: got -", "-json"),
    ("inspect - -", "got - for both", "inspect tree.csv x.csv"),
    ("score short.csv tree.csv", "short.csv: got 3 rows", write("short.csv", FILES["x.csv"])),
    ("score quote.csv tree.csv", "Close open quotes", write("quote.csv", FILES["x.csv"])),
    ("score cells.csv tree.csv", "line 2: got 4 cells; expected 3", write("cells.csv", FILES["x.csv"])),
    ("score page.csv tree.csv", "Download the file itself", write("page.csv", FILES["x.csv"])),
    ("score x.csv tree.csv --out new/y.csv", "does not exist", lambda: Path("new").mkdir()),
    ("features - x.csv other.csv", "Write the tree to a file first", "features tree.csv x.csv other.csv"),
    ("searches - tree.csv -", "got - for several", "searches x.csv tree.csv paths.txt"),
    (
        "searches - tree.csv paths.txt --links -",
        "expected standard input for one",
        "searches x.csv tree.csv paths.txt --links links.csv",
    ),
    ("score x.csv tree.csv --sample-size 3 --shuffles 9", "--shuffles has no effect", "-shuffles 9"),
    ("show tree.csv --name-columns code,word", "got columns without --names", "-name-columns code,word"),
    ("show tree.csv --name-columns code,word", "or add --names", "--names names.csv"),
    ("show tree.csv --names names.csv", "names.csv: got the columns code, word, x", "--name-columns code,word"),
    (
        "show tree.csv --names names.csv --name-columns kode,word",
        "names.csv: got 0 columns 'kode' in code, word, x; expected one",
        "show tree.csv --names names.csv --name-columns code,word",
    ),
    (
        "show tree.csv --names names.csv --name-columns code",
        "--name-columns: got code; expected two columns",
        "show tree.csv --names names.csv --name-columns code,word",
    ),
    ("show tree.csv --sep /", "--sep: got a value for tree.csv, read as parents", "-sep /"),
    ("show Z.npy --tree-format newick", "--tree-format: got newick for an array", "--tree-format linkage"),
    ("show Z.npy --tree-format paths", "leave it out", "-tree-format paths"),
    ("show t.parquet --tree-format newick", "--tree-format: got newick for Parquet", "--tree-format parents"),
    ("compare x.csv - -", "got standard input for several inputs", "compare x.csv tree.csv tree.csv"),
    (
        "misfiled x.csv tree.csv --expected-wrong 10",
        "Pass 0.1 for 10 %",
        "misfiled x.csv tree.csv --expected-wrong 0.1",
    ),
    ("misfiled x.csv tree.csv --limit 5", "--limit has no effect", "-limit 5"),
    (
        "improve x.npy twice.txt --tree-format outline --fixed ant",
        "Give its whole path",
        "improve x.npy twice.txt --tree-format outline --fixed 'land / ant'",
    ),
    (
        "improve x.npy twice.txt --tree-format outline -o b.txt",
        "a name that ends in .json",
        "improve x.npy twice.txt --tree-format outline -o b.json",
    ),
    ("improve x.csv tree.csv --force", "--force has no effect", "improve x.csv tree.csv"),
    ("verify there.json m.pomdp", "Write it again with pomdp-hier solve", solve_again),
    (
        "verify proof.json m.pomdp --belief 0",
        "STATE",
        'verify proof.json m.pomdp --belief \'{"0": 0.5, "1": 0.5}\'',
    ),
    ("score '' tree.csv", "expected a file. A shell variable may be unset", "score x.csv tree.csv"),
    ("score x.npy tree.npy --tree-format newick", "expected linkage, children or edges", "--tree-format children"),
    ("score x.npy tree.npy --tree-format newick", "or leave it out", "score x.npy linkage.npy"),
    ("score x.npy sparse.npz", "expected a dense linkage", "score x.npy linkage.npy"),
    (
        "score x.npy half.npy --tree-format children",
        "expected the integers of children",
        "score x.npy tree.npy --tree-format children",
    ),
    ("score x.npy none.csv", "expected the path of a tree file", "score x.npy linkage.npy"),
    ("report x.csv tree.csv -o r.html --n-edits 1 --n-moves 2", "--n-moves has no effect", "-n-moves 2"),
    ("levels x.csv tree.csv --best-cut 1 --max-trees 3", "--max-trees has no effect with --best-cut", "-max-trees 3"),
    ("policies x.csv tree.csv --seed 1", "--seed has no effect", "-seed 1"),
    ("show A --sep x", "--sep has no effect on a tree that is built in", "show A"),
    ("inspect tree.csv --top 3", "--top has no effect on a tree without FEATURES", "inspect tree.csv"),
    (
        "score x.csv tree.csv --score-only --json",
        "--json has no effect with --score-only",
        "score x.csv tree.csv --json",
    ),
    ("score x.csv tree.csv --force", "--force has no effect without --out", "score x.csv tree.csv"),
    ("score x.csv tree.csv --out new", "expected a name that ends in .csv or", "score x.csv tree.csv --out new.csv"),
    ("score x.zip tree.csv", "Unpack it", "score x.csv tree.csv"),
    (
        "score paths.csv twice.txt --tree-format outline",
        "path of its item, such as 'land > ant'",
        write("paths.csv", NAMED),
    ),
    (
        "score x.csv tree.csv --out x.csv --force",
        "the same file as the input FEATURES",
        "score x.csv tree.csv --out y.csv",
    ),
    ("solve m.pomdp --memory-limit -1", "--memory-limit: got -1", "solve m.pomdp --memory-limit 100"),
]


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.DataWarning")
@pytest.mark.parametrize(("line", "said", "advice"), TABLE, ids=[row[0] for row in TABLE])
def test_advice_works(folder, capsys, line, said, advice):
    if re.search("text|title|many", line):
        pytest.importorskip("sklearn")
    if "parquet" in line:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"id": ["r", "a", "b"], "parent": [None, "r", "r"]})
        pytest.importorskip("pyarrow.parquet").write_table(table, "t.parquet")
    if "proof.json" in line:
        assert main(["solve", "m.pomdp", "--certificate", "proof.json"]) == 0
    assert main(shlex.split(line)) in (1, 2, 3)
    err = next(text for text in capsys.readouterr().err.splitlines() if text.startswith("error: "))
    assert said in err
    if callable(advice):
        advice()
    elif advice.startswith("--"):
        assert advice.split()[0] in err
        option = advice.split()[0]
        line = re.sub(rf" {option} \S+", "", line) + " " + advice
    elif advice.startswith("-"):
        line = line.replace(f" -{advice}", "")
    else:
        line = advice
    assert main([*shlex.split(line)]) == 0, capsys.readouterr().err


def test_a_warning_speaks_of_options_and_its_advice_works(folder, capsys):
    advice = ["--similarity", "negative_euclidean"]
    assert main(["score", "one.csv", "tree.csv", "--score-only"]) == 0
    assert " ".join(advice) in capsys.readouterr().err
    assert main(["score", "one.csv", "tree.csv", "--score-only", *advice]) == 0
    assert capsys.readouterr().err == ""


def test_closed_standard_input_is_refused_and_a_path_is_read(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["show", "-"]) == 1
    assert "standard input: got a closed stream" in capsys.readouterr().err
    assert main(["show", "tree.csv"]) == 0


def test_the_warning_of_rows_by_position_names_both_ways_out(folder, capsys):
    assert main(["score", "bare.csv", "tree.csv", "--score-only"]) == 0
    assert "give a column of ids, or --join position" in capsys.readouterr().err
    for better in (["x.csv"], ["bare.csv", "--join", "position"]):
        assert main(["score", better[0], "tree.csv", "--score-only", *better[1:]]) == 0
        assert capsys.readouterr().err == ""


def test_streams_that_are_closed(folder, capsys, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdin", None)
        for line in ("show -", "score - tree.csv"):
            assert main(line.split()) == 1
            assert re.search("standard input.*closed", capsys.readouterr().err)
            assert main(line.replace(" -", " x.csv" if "score" in line else " tree.csv").split()) == 0
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", None)
        assert main(["show", "tree.csv"]) == 1
        assert "Send it to a file" in capsys.readouterr().err
    with open("result.txt", "w", encoding="utf-8") as file, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", file)
        assert main(["show", "tree.csv"]) == 0
    assert Path("result.txt").read_text(encoding="utf-8").startswith("tree.csv: 4 items")


def test_standard_output_that_is_the_file_of_the_rows_gets_another(folder, capsys, monkeypatch):
    with open("y.csv", "w", encoding="utf-8") as file, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", file)
        assert main(["score", "x.csv", "tree.csv", "--out", "y.csv", "--force"]) == 2
    assert "standard output is written to; expected another file. Give another path" in capsys.readouterr().err
    with open("y.csv", "w", encoding="utf-8") as file, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", file)
        assert main(["score", "x.csv", "tree.csv", "--out", "z.csv"]) == 0
    assert Path("y.csv").read_text(encoding="utf-8").startswith("HQS ")
    assert len(Path("z.csv").read_text(encoding="utf-8").splitlines()) == 5


def test_rows_are_csv_where_pyarrow_is_missing(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert main(["score", "x.csv", "tree.csv", "--out", "y.parquet"]) == 1
    assert "write .csv" in capsys.readouterr().err
    assert main(["score", "x.csv", "tree.csv", "--out", "y.csv"]) == 0
    assert Path("y.csv").read_text(encoding="utf-8").startswith("item")


def test_a_command_without_memory_gets_less(folder, capsys, monkeypatch):
    """Memory for 60 bytes of features stands for that of a machine."""
    read, rows = inputs.read_inputs, np.loadtxt("bare.csv", delimiter=",", skiprows=1)
    np.save("single.npy", rows.astype(np.float32))
    np.save("few.npy", rows[:3])
    sp.save_npz("rows.npz", sp.csr_array(rows))
    write("few.csv", TREE.replace("eel,sea\n", ""))()

    def limited(options, *rest, **more):
        found = read(options, *rest, **more)
        matrix = getattr(found.features, "matrix", found.features)
        if not sp.issparse(matrix) and matrix.nbytes > 60:
            raise MemoryError
        return found

    monkeypatch.setattr(inputs, "read_inputs", limited)
    assert main(["score", "bare.csv", "tree.csv", "--score-only", "--join", "position"]) == 1
    assert "Use fewer items, float32 features, or a sparse file" in capsys.readouterr().err
    for files, value in (("few.npy few.csv", None), ("single.npy tree.csv", "0.6225"), ("rows.npz tree.csv", "0.6225")):
        assert main(f"score {files} --score-only --join position".split()) == 0
        printed = float(capsys.readouterr().out)
        assert value is None or f"{printed:.4f}" == value


@pytest.mark.slow
def test_workers_are_given_a_file(folder, capsys):
    pytest.importorskip("distributed")
    assert main(["score", "-", "tree.csv", "--dask"]) == 2
    assert "Give a file, or a folder of files" in capsys.readouterr().err
    Path("parts").mkdir()
    for name, path in (("x.npy", "x.npy"), ("0.npy", "parts")):
        np.save(Path("parts") / name if path == "parts" else name, np.load("x.npy"))
        assert main(["score", path, "tree.csv", "--dask", "--engine", "numpy", "--score-only", "--quiet"]) == 0
        assert f"{float(capsys.readouterr().out):.4f}" == "0.6225"
