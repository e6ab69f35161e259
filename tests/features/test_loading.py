"""Feature files: every format read exactly, every fault named, nothing unpickled, no claim believed."""

import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.errors import FeatureError
from pomdp_hier.features.loading import load_features

X = np.array([[0.5, 0.0, -3.0], [0.0, 1e-300, 7.25]])


def npy_header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def npz_of(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy_bytes(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(FeatureError) as caught:
        load_features(path, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "f2", "i1", "u8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_keeps_every_value(tmp_path, dtype, order):
    array = np.asarray(np.arange(6).reshape(2, 3) % 2, dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", array)
    matrix = load_features(tmp_path / "x.npy").matrix
    np.testing.assert_array_equal(matrix, array)
    assert matrix.dtype == (np.float32 if dtype == "f4" else np.float64)


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_beyond_half_the_memory_stays_on_disk(tmp_path, order):
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))
    matrix = load_features(tmp_path / "x.npy", memory=300).matrix
    assert isinstance(matrix, np.memmap)
    np.testing.assert_array_equal(matrix, X)
    np.save(tmp_path / "ints.npy", np.ones((60, 60), dtype=np.int8))
    assert "as float64" in refusal(tmp_path / "ints.npy", memory=4000)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_dense_takes_x_or_the_only_array_or_the_key(tmp_path, save):
    save(tmp_path / "x.npz", X=X, y=np.zeros(2))
    save(tmp_path / "only.npz", whatever=X)
    save(tmp_path / "two.npz", a=X, b=2 * X)
    np.testing.assert_array_equal(load_features(tmp_path / "x.npz").matrix, X)
    np.testing.assert_array_equal(load_features(tmp_path / "only.npz").matrix, X)
    np.testing.assert_array_equal(load_features(tmp_path / "two.npz", key="b").matrix, 2 * X)
    assert "a, b" in refusal(tmp_path / "two.npz")
    assert "no array 'c'" in refusal(tmp_path / "two.npz", key="c")


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_npz_sparse_comes_out_as_csr(tmp_path, layout, kind):
    sp.save_npz(tmp_path / "x.npz", getattr(sp, f"{layout}_{kind}")(X))
    matrix = load_features(tmp_path / "x.npz").matrix
    assert isinstance(matrix, sp.csr_array)
    assert matrix.has_sorted_indices
    np.testing.assert_array_equal(matrix.toarray(), X)


def test_npz_sparse_in_another_layout_says_how_to_convert(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.dia_array(X))
    assert "tocsr()" in refusal(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("indices", np.array([0, 9, 1, 2])),
        ("indices", np.array([0, -1, 1, 2])),
        ("indptr", np.array([0, 9, 4])),
        ("indptr", np.array([0, 4])),
        ("shape", np.array([2, -3])),
        ("shape", np.array([2])),
        ("shape", np.array([2, np.nan])),
        ("shape", np.array([2**63, 3], np.uint64)),
        ("shape", np.array(["2", "3"])),
        ("indices", np.array([0.5, 1, 1, 2])),
        ("indptr", np.array([0, 3, 2])),
        ("indptr", np.array([[0, 1, 4]])),
        ("data", np.ones((2, 2))),
        ("data", np.ones(4, "V3")),
        ("format", np.array("lil")),
        ("data", np.array(["a", "b", "c", "d"])),
    ],
)
def test_npz_sparse_with_a_wrong_part_is_refused(tmp_path, change, value):
    whole = sp.csr_array(X)
    parts = {"data": whole.data, "indices": whole.indices, "indptr": whole.indptr}
    parts |= {"shape": np.array(X.shape), "format": np.array("csr"), change: value}
    np.savez(tmp_path / "x.npz", **parts)
    refusal(tmp_path / "x.npz")


def test_python_objects_are_never_loaded(tmp_path, monkeypatch):
    def explode(*_: object) -> None:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "load", explode)
    monkeypatch.setattr(pickle, "loads", explode)
    objects = np.array([[{}, 1.0]], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=objects)
    (tmp_path / "bare.npy").write_bytes(pickle.dumps([[1.0]], protocol=4))
    assert "could run code" in refusal(tmp_path / "x.npy")
    assert "could run code" in refusal(tmp_path / "x.npz")
    assert "got a pickle" in refusal(tmp_path / "bare.npy")


def test_a_claim_beyond_the_memory_is_refused_before_anything_is_unpacked(tmp_path, monkeypatch):
    (tmp_path / "claim.npy").write_bytes(npy_header("(1000000000, 1000000)") + b"\0" * 64)
    assert "TiB" in refusal(tmp_path / "claim.npy")
    assert "got 64 bytes" in refusal(tmp_path / "claim.npy", memory=100)
    zeros = npy_bytes(np.zeros((1000, 1000)))
    bomb = npz_of(tmp_path / "bomb.npz", {"X.npy": zeros})
    assert bomb.stat().st_size < 20_000
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("a member was unpacked"))
    assert "got a declared size of 7.63 MiB" in refusal(bomb, memory=1 << 20)


def test_errors_in_archives_name_the_array(tmp_path):
    path = tmp_path / "x.npz"
    for count, listed in ((10, "expected one of a0, a1, a2, a3, a4, a5, a6, a7, a8, a9."), (11, "a8, a9 and 1 more.")):
        np.savez(path, **{f"a{k}": X for k in range(count)})
        assert listed in refusal(path, key="b")
    npz_of(path, {"X.npy": npy_header("(1, 2)", "<O")})
    assert refusal(path).startswith(f"{path}, array X: got Python objects")
    parts = {"indices": np.zeros(1, int), "indptr": np.array([0, 1]), "shape": np.array([1, 3]), "format": "csr"}
    np.savez(path, **parts, data=np.ones((1, 1)))
    assert refusal(path).startswith(f"{path}: data: got shape (1, 1)")
    np.savez(path, **{**parts, "format": "coo"}, data=np.ones(1))
    assert refusal(path).startswith(f"{path}: got no array 'row'")


def test_a_sparse_shape_beyond_the_memory_is_refused(tmp_path):
    parts = {"data": np.ones(1), "row": np.zeros(1, int), "col": np.zeros(1, int)}
    np.savez(tmp_path / "x.npz", shape=np.array([1 << 50, 3]), format=np.array("coo"), **parts)
    assert "got a declared size" in refusal(tmp_path / "x.npz")


def test_a_header_that_announces_more_than_its_member_holds(tmp_path):
    npz_of(tmp_path / "x.npz", {"X.npy": npy_header("(100, 100)") + b"\0" * 80})
    assert "got 80 bytes; expected 80000" in refusal(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_a_file_cut_at_any_byte_is_refused(tmp_path, suffix):
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".npz":
        np.savez_compressed(whole, X=X)
    else:
        np.save(whole, X)
    content = whole.read_bytes()
    cut = tmp_path / f"cut{suffix}"
    for length in (*range(0, len(content) - 1, 3), len(content) - 1):
        cut.write_bytes(content[:length])
        refusal(cut)


@pytest.mark.parametrize(
    ("shape", "descr"),
    [
        ("(2, -3)", "<f8"),
        ("(-1,)", "<f8"),
        ("(True, 3)", "<f8"),
        ("(2.0, 3)", "<f8"),
        ("(" + "1, " * 65 + ")", "<f8"),
        (f"({2**63}, 1)", "<f8"),
        (f"({2**63}, 0)", "<f8"),
        (f"(0, {2**62})", "<f8"),
        (f"({2**40}, {2**40})", "<f8"),
        ("7", "<f8"),
        ("(2, 3)", "|V0"),
        ("(2, 3)", "|S0"),
        ("(2, 3)", "<U0"),
        ("(2, 3)", "|O"),
        ("(2, 3)", "<M8[s]"),
        ("(2, 3)", "<x8"),
        ("(2, 3", "<f8"),
        ("(2, 3)" + " " * 20_000, "<f8"),
    ],
)
@pytest.mark.parametrize("memory", [None, 100])
def test_error_for_an_impossible_header(tmp_path, shape, descr, memory):
    content = npy_header(shape, descr) + b"\0" * 48
    (tmp_path / "x.npy").write_bytes(content)
    refusal(tmp_path / "x.npy", memory=memory)
    refusal(npz_of(tmp_path / "x.npz", {"X.npy": content}), memory=memory)


@pytest.mark.parametrize("memory", [None, 100])
def test_python_2_wrote_lengths_with_an_l(tmp_path, memory):
    content = npy_header("(2L, 3L)", "<f8") + np.arange(6.0).tobytes()
    (tmp_path / "x.npy").write_bytes(content)
    read = load_features(tmp_path / "x.npy", memory=memory).matrix
    assert read.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(read, np.memmap) == (memory is not None)


@pytest.mark.parametrize("way", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_an_own_error_however_it_is_packed(tmp_path, way):
    path = npz_of(tmp_path / "x.npz", {"X.npy": npy_bytes(np.random.default_rng(0).random((40, 3)))}, way)
    assert load_features(path).matrix.shape == (40, 3)
    whole, refused = path.read_bytes(), 0
    for at in range(0, len(whole), 7):
        try:
            load_features(io.BytesIO(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]))
        except FeatureError:
            refused += 1
    assert refused > 100


def test_a_damaged_byte_is_an_error_or_another_number(tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", X=X)
    content = bytearray((tmp_path / "whole.npz").read_bytes())
    for place in range(0, len(content), 2):
        changed = content.copy()
        changed[place] ^= 0xFF
        (tmp_path / "x.npz").write_bytes(changed)
        try:
            load_features(tmp_path / "x.npz")
        except FeatureError:
            continue


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(3), "X.reshape(-1, 1)"),
        (np.zeros((2, 2, 2)), "shape (2, 2, 2)"),
        (np.zeros((0, 3)), "at least one row"),
        (np.zeros((3, 0)), "at least one row"),
        (np.zeros((2, 2), complex), "complex128"),
        (np.full((2, 2), "1.0"), "real numbers"),
    ],
)
def test_error_for_other_than_a_real_matrix(tmp_path, array, said):
    np.save(tmp_path / "x.npy", array)
    assert said in refusal(tmp_path / "x.npy")


def test_text_with_header_ids_and_other_delimiters(tmp_path):
    (tmp_path / "x.csv").write_text("id,a,b\nx,1,2\n\ny,3.5,-4e2\n", encoding="utf-8-sig")
    features = load_features(tmp_path / "x.csv")
    assert features.matrix.tolist() == [[1, 2], [3.5, -400]]
    assert features.ids == ("x", "y")
    assert features.columns == ("a", "b")
    (tmp_path / "x.tsv").write_text('a\tname\n1\t"Tom, Dick"\n', encoding="utf-8")
    features = load_features(tmp_path / "x.tsv", id_column="name")
    assert (features.matrix.tolist(), features.ids) == ([[1.0]], ("Tom, Dick",))
    (tmp_path / "years.csv").write_text("id,2020,2021\na,1,2\n", encoding="utf-8")
    assert load_features(tmp_path / "years.csv").matrix.tolist() == [[1, 2]]
    (tmp_path / "semicolon.csv").write_text("a;b\r\n1;2\r\n", encoding="utf-8")
    assert load_features(tmp_path / "semicolon.csv").matrix.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n3,4\n", "line 1: got numbers only"),
        ("a,b\n1,2\n3\n", "line 3: got 1 cell; expected 2"),
        ("a,b\n1,\n", "line 2, column 'b': got an empty cell"),
        ("a,b\nx,1\n", 'id_column="a"'),
        ("a,b\n1,1_000\n", "column 'b': got '1_000'"),
        ("a,b\n", "shape (0, 2)"),
        ("id\nx\n", "shape"),
        ("\na\nx\n", "line 3"),
        ('a,b\n1,"2\n', "unexpected end"),
    ],
)
def test_text_faults_name_the_line(tmp_path, text, said):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    assert said in refusal(tmp_path / "x.csv")


def test_files_that_cannot_be_read(tmp_path):
    assert "No such file" in refusal(tmp_path / "nowhere.npz")
    assert "directory" in refusal(tmp_path)
    (tmp_path / "empty.npz").write_bytes(b"")
    assert "got an empty file" in refusal(tmp_path / "empty.npz")
    (tmp_path / "x.npz").write_text("hello", encoding="utf-8")
    assert "expected those of a .npz file" in refusal(tmp_path / "x.npz")
    (tmp_path / "x.csv").write_bytes(b"a,b\n1,\xff\n")
    assert "UTF-8" in refusal(tmp_path / "x.csv")
    (tmp_path / "long.csv").write_text("a,b\n" + "x" * 200_000, encoding="utf-8")
    assert "line 2: cannot be decoded (field larger" in refusal(tmp_path / "long.csv")
    (tmp_path / "y.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert "no column 'z'" in refusal(tmp_path / "y.csv", id_column="z")


def test_error_for_a_missing_file():
    with pytest.raises(FeatureError, match=r"path: got \[1, 2\]"):
        load_features([1, 2])


def test_standard_input_is_read_by_its_content(monkeypatch):
    for content in (npy_bytes(X), b"a,b,c\n.5,0,-3\n0,1e-300,7.25\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        np.testing.assert_array_equal(load_features("-").matrix, X)


def test_ids_in_parquet_that_are_none(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    for ids in (
        pa.array([2**62, 1], pa.timestamp("us")),
        pa.array([2**30, 1], pa.date32()),
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, None]),
    ):
        pq.write_table(pa.table({"id": ids, "x": [1.0, 2.0]}), path)
        assert "column 'id' of " in refusal(path)
    pq.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]), path)
    assert "got 2 columns named 'x'" in refusal(path)


def test_parquet_with_ids_and_its_faults(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def written(**columns: object) -> Path:
        pq.write_table(pa.table(columns), tmp_path / "x.parquet")
        return tmp_path / "x.parquet"

    features = load_features(written(a=[1.5, 2.0], item_id=["x", "y"], b=[3, 4]))
    assert features.matrix.tolist() == [[1.5, 3], [2, 4]]
    assert (features.ids, features.columns) == (("x", "y"), ("a", "b"))
    assert load_features(written(a=pa.array([1.5], pa.float32()))).matrix.dtype == np.float32
    assert load_features(written(a=pa.array(np.array([1.5, 2.5], np.float16)))).matrix.tolist() == [[1.5], [2.5]]
    assert load_features(written(a=[True, False])).matrix.tolist() == [[1], [0]]
    assert "row 1, column 'b': got no value" in refusal(written(a=[1.0, 2.0], b=[1.0, None]))
    assert 'id_column="name"' in refusal(written(a=[1.0], name=["x"]))
    assert "got a declared size" in refusal(written(a=np.zeros(1000)), memory=1000)
    content = written(a=np.arange(1000.0)).read_bytes()
    for length in range(5, len(content), 97):
        (tmp_path / "cut.parquet").write_bytes(content[:length])
        assert refusal(cut := tmp_path / "cut.parquet").startswith(f"{cut}: cannot be decoded (")
