"""Advice of the errors over features is followed here: the same call with the advice taken works."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.lib.recfunctions import structured_to_unstructured

from pomdp_hier import Hierarchy, evaluate, load_features
from pomdp_hier.errors import DataWarning, FeatureError, ParameterError
from pomdp_hier.features import (
    Cosine,
    InverseSquaredEuclidean,
    NegativeEuclidean,
    Precomputed,
    read_frame,
    text_features,
)
from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.similarity import ClusterView
from tests.extras import optional

pd = optional("pandas")

TREE = Hierarchy.from_parents({"all": None, "land": "all", "sea": "all", "ant": "land", "bee": "land", "cod": "sea"})
X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
GAP = np.where(np.arange(6).reshape(3, 2) == 3, np.nan, X)
TEXTS = ["small red", "small black", "big wet"]
RECORDS = np.array([(1.0, 0.0), (2.0, 1.0), (0.0, 1.0)], [("a", float), ("b", float)])
DAMAGED = sp.csr_array(X)
DAMAGED.indices = DAMAGED.indices + 7
SQUARE = np.corrcoef(np.random.default_rng(0).random((3, 5)))

# What is given and how; what is said of it; the same with the advice taken.
TABLE = [
    (X[:2], {}, "the features: got 2 rows; expected 3", X, {}),
    (GAP, {}, "got NaN or infinite values in 1 row ('bee')", np.nan_to_num(GAP), {}),
    (np.ma.masked_invalid(GAP), {}, "got 1 masked value", np.ma.masked_invalid(GAP).filled(0.0), {}),
    (X[:, 0], {"similarity": "negative_euclidean"}, "X.reshape(-1, 1)", X[:, 0].reshape(-1, 1), None),
    (TEXTS, {}, "text_features(X)", lambda: text_features(TEXTS), {}),
    ([[text] for text in TEXTS], {}, "got dtype <U", lambda: text_features(TEXTS), {}),
    ({"ant": [1, 0], "bee": [2, 1], "cod": [0, 1]}, {}, "list(X.values())", [[1, 0], [2, 1], [0, 1]], {}),
    (X, {"similarity": "precomputed"}, "got shape (3, 2); expected the matrix of similarities", X, {}),
    (X, {"similarity": "precomputed"}, "(3, 3), one row and one column per item", SQUARE, None),
    (X, {"similarity": "euclidean"}, "'negative_euclidean'", X, {"similarity": "negative_euclidean"}),
    (
        X,
        {"similarity": lambda rows, cluster: rows},
        "expected shape (3,), one number per item",
        X,
        {"similarity": lambda rows, _: rows[:, 0]},
    ),
    (X.astype(str), {}, "astype(float)", X.astype(str).astype(float), {}),
    (X.astype(object), {}, "astype(float)", X.astype(object).astype(float), {}),
    (TREE, {}, "X: got a Hierarchy", X, {}),
    (RECORDS, {}, "structured_to_unstructured(X)", structured_to_unstructured(RECORDS), {}),
    (X * 1e200, {"similarity": "negative_euclidean"}, "Rescale them", X, None),
    (DAMAGED, {}, "scipy.sparse.csr_array(table)", sp.csr_array(X), {}),
]


def files():
    """What is saved and how; how it is read; what is said of it; the same with the advice taken."""
    table = {"id": ["a", "b", "c"], "title": ["small red", "small", "big"], "x": [1.0, 2.0, 3.0]}
    save, parquet = np.save, lambda frame, path: frame.to_parquet(path)
    return [
        (
            "x.npy",
            lambda p: save(p, RECORDS),
            {},
            "to_unstructured(X)",
            lambda p: save(p, structured_to_unstructured(RECORDS)),
            {},
        ),
        ("x.npy", lambda p: save(p, X[:, 0]), {}, "X.reshape(-1, 1)", lambda p: save(p, X[:, 0].reshape(-1, 1)), {}),
        (
            "x.npy",
            lambda p: save(p, X.astype(str)),
            {},
            "X.astype(float)",
            lambda p: save(p, X.astype(str).astype(float)),
            {},
        ),
        (
            "x.npy",
            lambda p: save(p, np.array([["ant", "1"], ["bee", "2"]])),
            {},
            "Leave columns of names out",
            lambda p: save(p, X[:, :1]),
            {},
        ),
        ("x.npy", lambda p: p.write_bytes(b"hello"), {}, "Write it again with numpy.save", lambda p: save(p, X), {}),
        (
            "x.npz",
            lambda p: sp.save_npz(p, sp.bsr_array(X)),
            {},
            "X.tocsr()",
            lambda p: sp.save_npz(p, sp.bsr_array(X).tocsr()),
            {},
        ),
        (
            "x.npz",
            lambda p: np.savez(p, format="csr", shape=(3, 2), data=X[0]),
            {},
            "scipy.sparse.save_npz(path, X)",
            lambda p: sp.save_npz(p, sp.csr_array(X)),
            {},
        ),
        (
            "x.npz",
            lambda p: np.savez(p, format="csr", shape=(3, 2), data=X),
            {},
            "write the file again",
            lambda p: sp.save_npz(p, sp.csr_array(X)),
            {},
        ),
        ("x.npz", lambda p: np.savez(p, a=X, b=X), {}, "key=", None, {"key": "b"}),
        ("x.csv", lambda p: p.write_text("x\n1\n"), {"key": "x"}, 'Leave this out: key="x"', None, {}),
        ("x.csv", lambda p: p.write_text("x\n1\n"), {"embedding": "x"}, "Leave this out: embedding=", None, {}),
        ("x.npy", lambda p: save(p, X), {"id_column": "id"}, 'Leave this out: id_column="id"', None, {}),
        (
            "x.csv",
            lambda p: p.write_text("title\nsmall red\n"),
            {"tfidf": {"min_df": 1}},
            "Name it: text=",
            None,
            {"text": "title", "tfidf": {"min_df": 1}},
        ),
        (
            "x.parquet",
            lambda p: parquet(pd.DataFrame(table), p),
            {},
            "Remove it",
            lambda p: parquet(pd.DataFrame(table).drop(columns="title"), p),
            {},
        ),
        ("x.parquet", lambda p: parquet(pd.DataFrame(table), p), {}, "of text, text=", None, {"text": "title"}),
        (
            "x.parquet",
            lambda p: parquet(pd.DataFrame(table).drop(columns="id"), p),
            {},
            'id_column="title"',
            None,
            {"id_column": "title"},
        ),
        (
            "x.parquet",
            lambda p: parquet(pd.DataFrame({"v": [[1.0, 2.0]]}), p),
            {},
            "of vectors, embedding=",
            None,
            {"embedding": "v"},
        ),
        (
            "x.parquet",
            lambda p: parquet(pd.DataFrame({"x": [1, None]}), p),
            {},
            "row 1, column 'x'",
            lambda p: parquet(pd.DataFrame({"x": [1, 0]}), p),
            {},
        ),
        (
            "x.parquet",
            lambda p: parquet(pd.DataFrame({"v": [[1.0], None]}), p),
            {"embedding": "v"},
            "Fill it in",
            lambda p: parquet(pd.DataFrame({"v": [[1.0], [2.0]]}), p),
            {"embedding": "v"},
        ),
        (
            "x.parquet",
            lambda p: parquet(pd.DataFrame({"v": [[1.0], [None]]}), p),
            {"embedding": "v"},
            "missing value",
            lambda p: parquet(pd.DataFrame({"v": [[1.0], [2.0]]}), p),
            {"embedding": "v"},
        ),
    ]


@pytest.mark.parametrize("row", range(20))
def test_advice_on_files_works(tmp_path, row):
    name, save, how, said, mend, settings = files()[row]
    if name == "x.parquet":
        pytest.importorskip("pyarrow")
    if "text" in settings:
        pytest.importorskip("sklearn")
    path = tmp_path / name
    save(path)
    with pytest.raises((FeatureError, ParameterError)) as caught:
        load_features(path, **how)
    assert said in str(caught.value)
    if mend:
        mend(path)
    assert load_features(path, **settings).matrix.size


def frames():
    """A data frame and how it is read; what is said of it; the same with the advice taken."""
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    mixed = pd.DataFrame({"title": ["small red", 3]})
    number = pd.DataFrame({"x": [1, 2]})
    return [
        (twice, {}, "Rename one", twice.set_axis(["a", "b"], axis=1), {}),
        (mixed, {"text": "title"}, "Convert it", mixed.astype(str), {"text": "title"}),
        (number, {"text": "x"}, 'Leave out text="x"', number, {}),
        (_polars(number).lazy(), {}, "Collect a lazy one", number, {}),
    ]


def _polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


@pytest.mark.parametrize("row", range(4))
def test_advice_on_data_frames_works(row):
    pytest.importorskip("narwhals")
    pytest.importorskip("sklearn")
    given, how, said, better, settings = frames()[row]
    with pytest.raises(FeatureError) as caught:
        read_frame(given, **how)
    assert said in str(caught.value)
    assert read_frame(better, **settings).matrix.size


def test_a_table_in_memory_goes_to_score_without_being_read():
    for read in (load_features, read_frame):
        pytest.importorskip("narwhals")
        with pytest.raises(FeatureError, match=f"without {read.__name__}"):
            read(X)


@pytest.mark.parametrize(("given", "how", "said", "better", "settings"), TABLE, ids=[row[2] for row in TABLE])
def test_advice_works(given, how, said, better, settings):
    with pytest.raises((FeatureError, ParameterError)) as caught:
        evaluate(given, TREE, **how)
    assert said in str(caught.value)
    better = better() if callable(better) else better
    assert np.isfinite(evaluate(better, TREE, **(how if settings is None else settings)).score)


def test_a_warning_speaks_of_arguments_and_its_advice_works():
    with pytest.warns(DataWarning, match='such as similarity="negative_euclidean"'):
        evaluate(X[:, :1] + 1, TREE)
    evaluate(X[:, :1] + 1, TREE, similarity="negative_euclidean")


def test_words_left_out_come_back(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("title\nthe\nof\n")
    for options, said, better in (
        ({"stop_words": "english"}, 'stop_words="english"', {}),
        ({"min_df": 2}, "min_df=1", {"min_df": 1}),
    ):
        with pytest.raises(FeatureError, match=said):
            load_features(path, text="title", tfidf=options)
        assert load_features(path, text="title", tfidf=better).matrix.shape == (2, 2)


@pytest.mark.parametrize("keep", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_what_people_keep_can_be_copied_and_pickled(tmp_path, keep):
    path = tmp_path / "x.csv"
    path.write_text("id,x\na,1\nb,2\n")
    table = load_features(path)
    kept = keep(table)
    assert (kept.ids, kept.columns, kept.source) == (table.ids, table.columns, str(path))
    assert (kept.matrix == table.matrix).all()
    for record in (Cosine(leave_out=False), InverseSquaredEuclidean(), NegativeEuclidean(mean=True), Precomputed(0.5)):
        assert keep(record) == record
    view = ClusterView(4, np.array([0, 1]), np.array([True]), X)
    assert (keep(view).centroid == view.centroid).all()
    rows, parents = np.arange(TREE.n_items), np.full(TREE.n_items, TREE.root)
    for features, kind in ((X, "cosine"), (sp.csr_array(X), "negative_euclidean"), (SQUARE, "precomputed")):
        known = affinity(features, TREE, kind)
        expected = known.batch(rows).expand(rows, parents)
        assert (keep(known).batch(rows).expand(rows, parents) == expected).all()
