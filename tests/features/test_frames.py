"""Features out of data frames and Parquet: numbers, ids, text, vectors; what is refused by name."""

import sys

import numpy as np
import pytest

from pomdp_hier import load_features
from pomdp_hier.errors import FeatureError, MissingExtraError, ParameterError
from pomdp_hier.features import read_frame

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"id": ["b", "a", "c"], "x": [1, 2, 3], "y": [0.5, -1.0, 2.0]}
MATRIX = [[1.0, 0.5], [2.0, -1.0], [3.0, 2.0]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_numbers_and_ids_of_every_kind_of_frame(frame):
    found = read_frame(frame(COLUMNS))
    assert found.matrix.tolist() == MATRIX
    assert (found.ids, found.columns) == (("b", "a", "c"), ("x", "y"))
    by_x = read_frame(frame(COLUMNS), id_column="x", columns=["y"])
    assert (by_x.ids, by_x.columns, by_x.matrix.tolist()) == ((1, 2, 3), ("y",), [[0.5], [-1.0], [2.0]])


def test_the_index_of_a_pandas_frame_is_the_ids_unless_it_counts_the_rows():
    numbers = pd.DataFrame({"x": [1.0, 2.0]})
    assert read_frame(numbers).ids is None
    assert read_frame(numbers.set_index(pd.Index(["p", "q"]))).ids == ("p", "q")
    assert read_frame(numbers[::-1]).ids == (1, 0)
    assert read_frame(pd.DataFrame({"id": [7, 8], "x": [1.0, 2.0]}, index=["p", "q"])).ids == (7, 8)
    assert read_frame(numbers.set_index(pd.Index(["p", "q"]))).columns == ("x",)


def test_float32_stays_and_the_rest_becomes_float64():
    assert read_frame(pl.DataFrame({"x": [1.0]}, schema={"x": pl.Float32})).matrix.dtype == np.float32
    assert read_frame(pd.DataFrame({"x": [True, False]})).matrix.dtype == np.float64


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_and_vectors(frame):
    mixed = frame({"id": [3, 4], "title": ["red boots", "black boots"], "v": [[1.0, 2.0], [3.0, 4.0]]})
    words = read_frame(mixed, text="title", tfidf={"min_df": 2})
    assert (words.columns, words.ids) == (("boots",), (3, 4))
    vectors = read_frame(mixed, embedding="v")
    assert (vectors.matrix.tolist(), vectors.ids) == ([[1.0, 2.0], [3.0, 4.0]], (3, 4))
    with pytest.raises(FeatureError, match=r"'title': got .*string"):
        read_frame(mixed)


def test_a_gap_in_one_of_several_columns_of_text_is_no_word():
    found = read_frame(pl.DataFrame({"t": ["red", "black"], "u": [None, "boots"]}), text=["t", "u"])
    assert found.columns == ("black", "boots", "red")
    with pytest.raises(FeatureError, match="row 0, column 'x': got 1;"):
        read_frame(pl.DataFrame({"x": [1]}), text="x")


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed"])
@pytest.mark.parametrize("number", ["float16", "float32", "float64", "int8"])
def test_vectors_in_parquet(tmp_path, kind, number):
    inner = getattr(pa, number)()
    whole = {"list": pa.list_(inner), "large_list": pa.large_list(inner), "fixed": pa.list_(inner, 2)}[kind]
    rows = np.array([[1, 2], [3, 4], [5, 6]], dtype=number)
    table = pa.table({"id": ["a", "b", "c"], "name": ["x", "y", "z"], "v": pa.array(list(rows), type=whole)})
    path = tmp_path / "v.parquet"
    pq.write_table(table, path, row_group_size=2)
    found = load_features(path, embedding="v")
    assert found.matrix.tolist() == rows.tolist()
    assert found.matrix.dtype == (np.float32 if number in ("float16", "float32") else np.float64)
    assert found.ids == ("a", "b", "c")
    sliced = read_frame(pa.concat_tables([table[1:], table[:1]]), embedding="v")
    assert sliced.matrix.tolist() == rows[[1, 2, 0]].tolist()


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0], None], "row 1, .*: got no vector"),
        ([[1.0], [1.0, 2.0]], "row 1, .*: got 2 numbers; expected 1"),
        ([[1.0], [None]], "got a missing value"),
        ([["a"], ["b"]], "lists of .*string"),
        ([1.0, 2.0], "expected lists of numbers"),
        ([[], []], "no numbers"),
    ],
)
def test_bad_vectors(vectors, said):
    kind = pa.list_(pa.float64()) if vectors == [[], []] else None
    with pytest.raises(FeatureError, match=said):
        read_frame(pa.table({"v": pa.array(vectors, type=kind)}), embedding="v")


def test_text_in_parquet_reads_no_other_column(tmp_path):
    table = pa.table({"item": [1, 2], "title": ["red", "black"], "odd": [[1], [2]]})
    pq.write_table(table, tmp_path / "t.parquet")
    found = load_features(tmp_path / "t.parquet", text="title")
    assert (found.ids, found.columns) == ((1, 2), ("black", "red"))
    with pytest.raises(FeatureError, match="no column 'words'"):
        load_features(tmp_path / "t.parquet", text="words")


def test_errors():
    with pytest.raises(FeatureError, match="frame: got <LazyFrame"):
        read_frame(pl.LazyFrame(COLUMNS))
    with pytest.raises(FeatureError, match=r"got two columns of one name \(.*'x'.*\)"):
        read_frame(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]))
    with pytest.raises(FeatureError, match="one name"):
        read_frame(pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]))
    with pytest.raises(FeatureError, match="frame: got 7"):
        read_frame(7)
    with pytest.raises(FeatureError, match="got no column 'z'"):
        read_frame(pl.DataFrame(COLUMNS), columns=["z"])
    with pytest.raises(FeatureError, match="row 1, column 'x': got no value"):
        read_frame(pl.DataFrame({"x": [1.0, None]}))
    with pytest.raises(FeatureError, match="several types"):
        read_frame(pd.DataFrame({"x": [1, "a"]}))
    with pytest.raises(ParameterError, match="columns, text, embedding: got several"):
        read_frame(pl.DataFrame(COLUMNS), columns=["x"], text="id")
    with pytest.raises(FeatureError, match=r"got a declared size .* expected at most 10 bytes"):
        read_frame(pl.DataFrame(COLUMNS), memory=10)


@pytest.mark.parametrize("module", ["narwhals", "pyarrow"])
def test_without_the_extra(monkeypatch, module):
    frame = pl.DataFrame(COLUMNS)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pomdp-hier\[frames\]"):
        read_frame(frame)
