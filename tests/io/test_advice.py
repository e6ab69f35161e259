"""Advice of the errors over files is followed here: the same file, made as the error says, is read."""

import ast
import bz2
import errno
import gzip
import io
import lzma
import mmap
import os
import pickle
import re
import sqlite3
import sys
import tarfile
import tomllib
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import pomdp_hier
from pomdp_hier import Hierarchy, load_features, solve
from pomdp_hier._imports import as_frame
from pomdp_hier._io import checkpoint, formats
from pomdp_hier._io.checkpoint import Checkpoint
from pomdp_hier._io.writing import write_file
from pomdp_hier._progress import in_processes
from pomdp_hier.errors import (
    CheckpointError,
    DataWarning,
    FeatureError,
    HierarchyError,
    MissingExtraError,
    PomdpHierError,
)
from pomdp_hier.planning.point_based.saved_search import Part, open_search
from pomdp_hier.problems import tiger
from tests.io.test_workbooks import save

CSV = b"id,x,y\nant,1,0\nbee,2,1\n"
X = np.array([[1.0, 0.0], [2.0, 1.0]])
PARENTS = b"id,parent\nall,\nant,all\nbee,all\n"
NEWICK = b"(ant,bee)all;"


def saved(save, *arrays):
    content = io.BytesIO()
    save(content, *arrays)
    return content.getvalue()


def archive(content, name="x.csv"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(name, content)
    return file.getvalue()


def tar(content):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as packed:
        packed.addfile(tarfile.TarInfo("x.csv"), io.BytesIO())
    return file.getvalue()


# A file of features: its name and content, the advice, and the name and content with the advice taken.
FEATURES = [
    ("x.bz2", bz2.compress(CSV), "Unpack it, or pack it as .gz", "x.csv", CSV),
    ("x.bz2", bz2.compress(CSV), "Unpack it, or pack it as .gz", "x.csv.gz", gzip.compress(CSV)),
    ("x.xz", lzma.compress(CSV), "Unpack it, or pack it as .gz", "x.csv", CSV),
    ("x.zst", b"\x28\xb5\x2f\xfd", "Unpack it, or pack it as .gz", "x.csv", CSV),
    ("x.7z", b"7z\xbc\xaf\x27\x1c", "Unpack it, or pack it as .gz", "x.csv", CSV),
    ("x.gz", gzip.compress(gzip.compress(CSV)), "Unpack it", "x.gz", gzip.compress(CSV)),
    ("x.zip", archive(CSV), "Unpack it", "x.csv", CSV),
    ("x.tar", tar(CSV), "Unpack it and give a file out of it", "x.csv", CSV),
    ("x.pkl", pickle.dumps(X), "Save arrays with numpy.save", "x.npy", saved(np.save, X)),
    ("x.pkl", pickle.dumps({"x": [1.0]}), "tables as CSV", "x.csv", CSV),
    ("x.pt", archive(b"", "archive/data.pkl"), "Save its numbers with numpy.save", "x.npy", saved(np.save, X)),
    ("x.xls", b"\xd0\xcf\x11\xe0", "or the sheet as CSV", "x.csv", CSV),
    ("x.h5", b"\x89HDF\r\n", "Save its array with numpy.save", "x.npy", saved(np.save, X)),
    ("x.mat", b"MATLAB 5.0 MAT-file", "Save its array with numpy.save", "x.npy", saved(np.save, X)),
    ("x.png", b"\x89PNG\r\n", "Give the data that it was made from", "x.csv", CSV),
    ("x.pdf", b"%PDF-1.7", "Give the data that it was made from", "x.csv", CSV),
    ("x.csv", b"<!doctype html><p>log in", "Download the file itself", "x.csv", CSV),
    ("x.xml", b"<?xml version='1.0'?><table/>", "Give a table as CSV", "x.csv", CSV),
    ("x.csv", b"version https://git-lfs.github.com/spec/v1", "Fetch the file with: git lfs pull", "x.csv", CSV),
    ("x.csv", b"/annex/objects/SHA256E-s1", "Fetch the file with: git annex get", "x.csv", CSV),
    ("x.csv", CSV.decode().encode("utf-16"), "Save it as UTF-8", "x.csv", CSV),
    ("x.csv", "id,x\nmöwe,1\n".encode("latin-1"), "Save it as UTF-8", "x.csv", "id,x\nmöwe,1\n".encode()),
    ("x.csv", b"id,x\n\0,1\n", "Save it as UTF-8 text, such as CSV", "x.csv", CSV),
    ("x.csv", b"", "Give a file with content", "x.csv", CSV),
    ("x.npy", CSV, "Write it again with numpy.save", "x.npy", saved(np.save, X)),
    ("x.npy", CSV, "or rename it", "x.csv", CSV),
    ("x.csv", b"id,x\na,b,1\n", "Quote cells that contain ','", "x.csv", b'id,x\n"a,b",1\n'),
    ("x.csv", b'id,x\n"a,1\n', "Close open quotes", "x.csv", b'id,x\n"a",1\n'),
    ("x.npy", saved(np.save, X)[:-8], "Copy or write the file again", "x.npy", saved(np.save, X)),
    ("x.gz", gzip.compress(CSV)[:-9], "Copy or write the file again", "x.gz", gzip.compress(CSV)),
]
TREES = [
    (Hierarchy.from_parents, "t.npz", saved(np.savez, X), "save its table as CSV", "t.csv", PARENTS),
    (Hierarchy.from_parents, "t.npy", saved(np.save, X), "Save it as CSV", "t.csv", PARENTS),
    (Hierarchy.from_newick, "t.nex", b"#NEXUS\nbegin trees;", "Export the tree as Newick (.nwk)", "t.nwk", NEWICK),
    (Hierarchy.from_newick, "t.xml", b"<phyloxml/>", "Export the tree as Newick (.nwk)", "t.nwk", NEWICK),
    (Hierarchy.from_newick, "t.xml", b"<?xml?><a/>", "a tree as JSON or Newick", "t.nwk", NEWICK),
    (Hierarchy.from_json, "t.pkl", pickle.dumps([[0, 1]]), "trees as JSON", "t.json", b"[[0,1]]"),
]


@pytest.mark.parametrize("row", range(len(FEATURES)), ids=[f"{row[0]}: {row[2]}" for row in FEATURES])
def test_advice_on_files_of_features_works(tmp_path, row):
    name, content, said, better, mended = FEATURES[row]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FeatureError) as caught:
        load_features(tmp_path / name)
    assert said in str(caught.value)
    (tmp_path / better).write_bytes(mended)
    assert load_features(tmp_path / better).matrix.size


@pytest.mark.parametrize("row", range(len(TREES)), ids=[f"{row[1]}: {row[3]}" for row in TREES])
def test_advice_on_files_of_trees_works(tmp_path, row):
    read, name, content, said, better, mended = TREES[row]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HierarchyError) as caught:
        read(tmp_path / name)
    assert said in str(caught.value)
    (tmp_path / better).write_bytes(mended)
    assert read(tmp_path / better).n_items == 2


def test_an_arrow_file_is_written_as_parquet(tmp_path):
    feather, pa = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow")
    table = pa.table({"x": [1.0, 2.0]})
    feather.write_feather(table, tmp_path / "x.arrow")
    with pytest.raises(FeatureError, match="Write it as Parquet"):
        load_features(tmp_path / "x.arrow")
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    assert load_features(tmp_path / "x.parquet").matrix.tolist() == [[1.0], [2.0]]


def test_advice_on_writing_works(tmp_path):
    write_file(tmp_path / "a", "old")
    for wrong, said, better in (
        (lambda: write_file(tmp_path / "a", "new", replace=False), "Choose another", tmp_path / "b"),
        (lambda: write_file(tmp_path / "a", "new", replace=False), "replace=True", tmp_path / "a"),
        (lambda: write_file(tmp_path / "no" / "a", "new"), "Choose another path", tmp_path / "c"),
    ):
        with pytest.raises(PomdpHierError) as caught:
            wrong()
        assert said in str(caught.value)
        write_file(better, "new", replace=True)
        assert better.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system does not allocate files")
def test_advice_on_a_full_disk_works(tmp_path, monkeypatch):
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()

    def allocate(number, start, length):
        if os.readlink(f"/proc/self/fd/{number}").startswith(str(full)):
            raise OSError(errno.ENOSPC, "No space left on device")

    if not Path("/proc/self/fd").exists():
        pytest.skip("the system does not name open files")
    monkeypatch.setattr(formats, "memory_allowed", lambda: 1)
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    for folder in (full, other):
        monkeypatch.setattr(formats.tempfile, "tempdir", None)
        monkeypatch.setenv("TMPDIR", str(folder))
        if folder == full:
            with pytest.raises(FeatureError, match="set TMPDIR to another folder"):
                formats.room_for((2, 2), True)
    monkeypatch.setattr(os, "posix_fallocate", lambda number, start, length: os.truncate(number, length))
    assert formats.room_for((2, 2), True).sum() == 0


def calls_of_from_extra():
    for path in Path(pomdp_hier.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "from_extra(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "from_extra":
                extra, module = node.args[:2]
                if isinstance(extra, ast.Constant) and isinstance(module, ast.Constant):
                    yield extra.value, module.value.split(".")[0]


def test_every_extra_that_an_error_names_has_the_package():
    project = Path(pomdp_hier.__file__).parents[1] / "pyproject.toml"
    extras = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found = set(calls_of_from_extra())
    assert found > {("dask", "distributed"), ("frames", "pyarrow"), ("plot", "matplotlib"), ("text", "sklearn")}
    for extra, module in found:
        package = {"sklearn": "scikit-learn", "sknetwork": "scikit-network"}.get(module, module)
        assert package in re.findall(r"[\w-]+", " ".join(extras[extra])), (extra, module)
    told = (path.read_text(encoding="utf-8") for path in Path(pomdp_hier.__file__).parent.rglob("*.py"))
    assert set(re.findall(r"pomdp-hier\[(\w+)\]", "".join(told))) <= {*extras, "none"}


ROWS = [["id", "parent"], ["all", None], ["ant", "all"], ["bee", "all"]]


def merged(sheet):
    sheet["A1"], sheet["C1"] = "id", None
    sheet.merge_cells("A3:A4")


def unmerged(sheet):
    sheet.unmerge_cells("A3:A4")
    sheet["A3"], sheet["A4"] = "ant", "bee"


def cell(name, value):
    return lambda sheet: sheet.__setitem__(name, value)


# What is done to a sheet, the advice, and what is done to follow it.
SHEETS = [
    (merged, "Unmerge them, and fill in each cell", unmerged),
    (cell("B3", '="all"'), "replace formulas by values", cell("B3", "all")),
    (cell("B3", "#REF!"), "Correct its formula", cell("B3", "all")),
]


@pytest.mark.parametrize(("wrong", "said", "better"), SHEETS)
def test_advice_on_cells_of_a_workbook_works(tmp_path, wrong, said, better):
    book = save(tmp_path / "t.xlsx", tree=ROWS)
    wrong(book["tree"])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_parents(tmp_path / "t.xlsx")
    assert said in str(caught.value)
    better(book["tree"])
    book.save(tmp_path / "t.xlsx")
    assert Hierarchy.from_parents(tmp_path / "t.xlsx").item_labels == ("ant", "bee")


def test_advice_on_sheets_of_a_workbook_works(tmp_path):
    book = save(tmp_path / "t.xlsx", notes=[["x"]], tree=ROWS)
    with pytest.warns(DataWarning, match=r"name another as .*t\.xlsx#tree"), pytest.raises(HierarchyError):
        Hierarchy.from_parents(tmp_path / "t.xlsx")
    assert Hierarchy.from_parents(f"{tmp_path}/t.xlsx#tree").n_items == 2
    with pytest.raises(HierarchyError, match=r"no sheet 'Tree'; expected one of 'notes', 'tree'"):
        Hierarchy.from_parents(f"{tmp_path}/t.xlsx#Tree")
    chart = pytest.importorskip("openpyxl.chart").BarChart()
    book.create_chartsheet("chart").add_chart(chart)
    for title in ("notes", "tree"):
        book.remove(book[title])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(HierarchyError, match="Save the table as a sheet"):
        Hierarchy.from_parents(tmp_path / "t.xlsx")
    save(tmp_path / "t.xlsx", table=ROWS)
    assert Hierarchy.from_parents(tmp_path / "t.xlsx").n_items == 2


def test_advice_on_files_that_are_not_workbooks_works(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(PARENTS)
    with pytest.raises(HierarchyError, match=r"Rename it to \.csv"):
        Hierarchy.from_parents(path)
    assert Hierarchy.from_parents(path.rename(tmp_path / "t.csv")).n_items == 2
    save(path, tree=ROWS)
    with pytest.raises(HierarchyError, match="Read its sheet with from_parents, from_edges or from_paths"):
        Hierarchy.from_newick(path)
    assert Hierarchy.from_parents(path).n_items == 2
    path.write_bytes(path.read_bytes()[:2_000])
    with pytest.raises(HierarchyError, match="Save the sheet as CSV, or copy the file again"):
        Hierarchy.from_parents(path)
    save(path, tree=ROWS)
    assert Hierarchy.from_parents(path).n_items == 2


def test_advice_on_a_byte_that_is_not_text_works(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes('[["r", "möwe"]]'.encode("latin-1"))
    with pytest.raises(HierarchyError, match="Save it as UTF-8"):
        Hierarchy.from_json(path)
    path.write_text('[["r", "möwe"]]', encoding="utf-8")
    assert Hierarchy.from_json(path).item_labels == ("möwe",)


# --- checkpoints ---------------------------------------------------------------------------------------------------

ONE = [Part("run", b"{}", "json")]


def opened(path, rows=None):
    """The rows of a checkpoint, with more of them."""
    with Checkpoint.open(path, "key", Part, lambda row: True) as file:
        if rows:
            file.append(rows)
        return list(file.rows.values())


def test_a_checkpoint_in_use_is_waited_for(tmp_path):
    with open_search(tmp_path / "c"), pytest.raises(CheckpointError, match="Wait for the other process, or end it"):
        solve(tiger(), checkpoint=tmp_path / "c")
    assert solve(tiger(), precision=0.1, checkpoint=tmp_path / "c").status == "converged"


def test_a_checkpoint_gets_a_file_in_a_folder_that_exists(tmp_path):
    for wrong in (tmp_path, tmp_path / "new" / "c"):
        with pytest.raises(CheckpointError, match=r"one in an existing folder\. Pass the path of one"):
            opened(wrong)
    with pytest.raises(PomdpHierError, match="checkpoint: got ''; expected a path"):
        solve(tiger(), checkpoint="")
    assert opened(tmp_path / "c", ONE) == opened(tmp_path / "c") == ONE


def test_a_checkpoint_that_cannot_be_written_gets_another_path(tmp_path, monkeypatch):
    opened(tmp_path / "c")
    connect = sqlite3.connect
    with monkeypatch.context() as patch:  # permissions do not hold for the superuser
        patch.setattr(sqlite3, "connect", lambda path, **how: connect(f"file:{path}?mode=ro", uri=True, **how))
        with pytest.raises(CheckpointError, match=r"got a read-only file; .*\. Pass another path"):
            opened(tmp_path / "c", ONE)
    assert opened(tmp_path / "d", ONE) == ONE


def test_finished_rows_are_kept_on_a_full_disk(tmp_path):
    big = [Part("0/vectors", bytes(100_000), "f")]
    with Checkpoint.open(tmp_path / "c", "key", Part, lambda row: True) as file:
        file.append(ONE)
        pages = file._connection.execute("PRAGMA page_count").fetchone()[0]
        file._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(CheckpointError, match=r"keeps the finished rows\. Free disk space, and run again"):
            file.append(big)
    assert opened(tmp_path / "c") == ONE
    assert opened(tmp_path / "c", big) == [*ONE, *big]


def test_a_search_too_big_for_sqlite_gets_a_lower_limit(tmp_path, monkeypatch):
    connect = sqlite3.connect

    def limited(path, **how):
        connection = connect(path, **how)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 300)
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    with pytest.raises(CheckpointError, match=r"1 GB of SQLite\. Solve with a lower memory_limit"):
        solve(tiger(), checkpoint=tmp_path / "c")
    found = solve(tiger(), checkpoint=tmp_path / "d", memory_limit=10_000)
    assert found.lower <= 19.3714 <= found.upper
    monkeypatch.undo()
    with (
        pytest.raises(CheckpointError, match="Solve with a lower memory_limit"),
        mmap.mmap(-1, 2**31 + 1) as zeros,  # more than 2 GB, none of which is in memory
        closing(connect(":memory:")) as connection,
        checkpoint._sqlite_errors(tmp_path / "c"),
    ):
        connection.execute("SELECT ?", (zeros,))


# --- processes -----------------------------------------------------------------------------------------------------


def test_what_other_processes_cannot_have_stays_in_this_one(tmp_path):
    pytest.importorskip("joblib")
    with open(tmp_path / "x", "w") as file:
        with pytest.raises(PomdpHierError, match="Pass n_jobs=1"):
            list(in_processes(file.write, ["a", "b"], 2, {"work": file}))
        assert list(in_processes(file.write, ["a", "bc"], 1, {"work": file})) == [1, 2]


def ends_elsewhere(pid):
    """End any process but one, as the system does with one that takes too much memory."""
    return 1 if os.getpid() == pid else os._exit(9)


@pytest.mark.slow
def test_work_that_ends_other_processes_is_done_in_one():
    pytest.importorskip("joblib")
    with pytest.raises(PomdpHierError, match=r"one of the processes died.* Pass n_jobs=1"):
        list(in_processes(ends_elsewhere, [os.getpid()] * 3, 2, {}))
    assert list(in_processes(ends_elsewhere, [os.getpid()] * 3, 1, {})) == [1, 1, 1]


def test_a_library_that_is_installed_makes_frames(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "narwhals", None)
        with pytest.raises(MissingExtraError, match=r"Install it: pip install 'pomdp-hier\[frames\]'"):
            as_frame({"value": [-1.5]}, "pandas")
    assert as_frame({"value": [-1.5]}, "pandas")["value"].tolist() == [-1.5]
