"""Advice of the errors over files is followed here: the same file, made as the error says, is read."""

import ast
import bz2
import errno
import gzip
import io
import lzma
import os
import pickle
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pomdp_hier
from pomdp_hier import Hierarchy, load_features
from pomdp_hier._io import memory
from pomdp_hier._io.writing import write_file
from pomdp_hier.errors import FeatureError, HierarchyError, PomdpHierError

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
    monkeypatch.setattr(memory, "memory_allowed", lambda: 1)
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    for folder in (full, other):
        monkeypatch.setattr(memory.tempfile, "tempdir", None)
        monkeypatch.setenv("TMPDIR", str(folder))
        if folder == full:
            with pytest.raises(FeatureError, match="set TMPDIR to another folder"):
                memory.room_for((2, 2), True)
    monkeypatch.setattr(os, "posix_fallocate", lambda number, start, length: os.truncate(number, length))
    assert memory.room_for((2, 2), True).sum() == 0


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
