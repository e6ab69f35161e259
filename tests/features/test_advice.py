"""Advice of the errors over features is followed here: the same call with the advice taken works."""

import copy
import os
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
from pomdp_hier.features.items import FeatureTable
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


class Lazy:
    """A query whose table is made on demand, as in polars."""

    def collect(self):
        return X


# What is given and how; what is said of it; the same with the advice taken.
TABLE = [
    (X[:2], {}, "the features: got 2 rows; expected 3", X, {}),
    (GAP, {}, "got NaN or infinite values in 1 row ('bee')", np.nan_to_num(GAP), {}),
    (np.ma.masked_invalid(GAP), {}, "got 1 masked value", np.ma.masked_invalid(GAP).filled(0.0), {}),
    (X[:, 0], {"similarity": "negative_euclidean"}, "X.reshape(-1, 1)", X[:, 0].reshape(-1, 1), None),
    (TEXTS, {}, "text_features(X)", lambda: text_features(TEXTS), {}),
    ([[text] for text in TEXTS], {}, "got dtype <U", lambda: text_features(TEXTS), {}),
    ({"ant": [1, 0], "bee": [2, 1], "cod": [0, 1]}, {}, "list(X.values())", [[1, 0], [2, 1], [0, 1]], {}),
    (Lazy(), {}, "Pass X.collect()", Lazy().collect(), {}),
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
            lambda p: _twice(p, "a", "a"),
            {},
            "Rename them",
            lambda p: _twice(p, "a", "b"),
            {},
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


def _twice(path, *names):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 2, names=list(names)), path)


@pytest.mark.parametrize("row", range(21))
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


ITEMS = ["ant", "bee", "cod"]
TWICE = Hierarchy.from_paths("land\n  ant\nsea\n  ant\n  cod\n", form="outline")


def scored(features, tree=TREE, **settings):
    return evaluate(features, tree, **{"similarity": "negative_euclidean", **settings}).score


def named(*ids, rows=X):
    return FeatureTable(rows[: len(ids)], ids)


# What is called; what is said; the same with the advice taken.
CALLS = {
    "a row is missing": (lambda: scored(named("ant", "bee")), "Add the rows", lambda: scored(named(*ITEMS))),
    "an empty category": (
        lambda: scored(named("ant", "bee")),
        "remove a category without items from the tree",
        lambda: scored(named("ant", "bee"), Hierarchy.from_parents({"all": None, "ant": "all", "bee": "all"})),
    ),
    "an empty category, items=": (
        lambda: scored(named("ant"), Hierarchy.from_parents({"all": None, "ant": "all", "sea": "all"})),
        "read the tree with items=",
        lambda: scored(named("ant"), Hierarchy.from_parents({"all": None, "ant": "all", "sea": "all"}, items=["ant"])),
    ),
    "a row too many": (
        lambda: scored(named(*ITEMS, "eel", rows=np.vstack([X, X[:1]]))),
        "Remove the other rows",
        lambda: scored(named(*ITEMS)),
    ),
    "a row twice": (
        lambda: scored(named(*ITEMS, "ant", rows=np.vstack([X, X[:1]]))),
        "Remove the other rows",
        lambda: scored(named(*ITEMS)),
    ),
    "items are paths": (
        lambda: scored(named("ant", "cod", "x"), TWICE),
        "path of its item, such as 'land > ant'",
        lambda: scored(named("land > ant", "sea > ant", "sea > cod"), TWICE),
    ),
    "two columns of ids": (
        lambda: scored(pd.DataFrame([["ant", 1, 2]] * 3, columns=["id", "id", "x"])),
        "Rename the others",
        lambda: scored(pd.DataFrame([[name, 1, 2] for name in ITEMS], columns=["id", "y", "x"])),
    ),
    "text from a similarity": (
        lambda: scored(X, similarity=lambda rows, _: ["near"] * len(rows)),
        "Return an array of floats",
        lambda: scored(X, similarity=lambda rows, _: np.ones(len(rows))),
    ),
    "a table from a similarity": (
        lambda: scored(X, similarity=lambda rows, _: rows),
        "rows @ cluster.centroid",
        lambda: scored(X, similarity=lambda rows, cluster: rows @ cluster.centroid),
    ),
    "an infinite similarity": (
        lambda: scored(X, similarity=lambda rows, _: np.full(len(rows), np.inf)),
        "Return a large or small one",
        lambda: scored(X, similarity=lambda rows, _: np.full(len(rows), 1e300)),
    ),
    "epsilon": (
        lambda: InverseSquaredEuclidean(epsilon=0.0),
        "such as the paper's 0.0001",
        lambda: scored(X, similarity=InverseSquaredEuclidean(epsilon=0.0001)),
    ),
    "own_singleton": (
        lambda: Cosine(own_singleton=np.inf),
        "such as 1.0",
        lambda: scored(X, similarity=Cosine(own_singleton=1.0)),
    ),
    "a similarity": (
        lambda: scored(X, similarity=5),
        "such as Cosine(leave_out=False)",
        lambda: scored(X, similarity=Cosine(leave_out=False)),
    ),
    "damaged coordinates": (
        lambda: scored(_damaged_coo()),
        "Build it again",
        lambda: scored(sp.coo_array(X)),
    ),
    "no text": (
        lambda: text_features(["small red", None]),
        "row 1: got None; expected text. Fill it in",
        lambda: text_features(["small red", ""]),
    ),
    "no text, row out": (
        lambda: text_features(["small red", None]),
        "remove the row",
        lambda: text_features(["small red"]),
    ),
    "only short words": (
        lambda: text_features(["a", "b"]),
        "some words of two letters or more",
        lambda: text_features(["an", "bat"]),
    ),
}


def _damaged_coo():
    table = sp.coo_array(X)
    table.coords = (table.coords[0], table.coords[1] + 5)
    return table


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")  # of the empty category that items= drops
@pytest.mark.parametrize("called", CALLS)
def test_advice_on_calls_works(called):
    if called == "two columns of ids":
        pytest.importorskip("pandas")
    if "text" in called or "word" in called:
        pytest.importorskip("sklearn")
    wrong, said, better = CALLS[called]
    with pytest.raises((FeatureError, ParameterError)) as caught:
        wrong()
    assert said in str(caught.value)
    better()


def test_advice_of_warnings_works():
    frame = pytest.importorskip("pandas").DataFrame(X, index=["x", "y", "z"])
    with pytest.warns(DataWarning, match="give the items' ids as the index, or frame.to_numpy"):
        guessed = scored(frame)
    assert scored(frame.set_axis(ITEMS)) == scored(frame.to_numpy()) == guessed
    distances = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0], [5.0, 5.0, 0.0]])
    with pytest.warns(DataWarning, match="give 1 - D or -D for distances D, or the features"):
        scored(distances, similarity="precomputed")
    for better in (1 - distances, -distances):
        scored(better, similarity="precomputed")
    scored(X)


def test_weights_have_a_named_column(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(FeatureError, match="Leave this out: weight_column="):
        load_features(tmp_path / "x.npy", weight_column="sales")
    assert load_features(tmp_path / "x.npy").matrix.shape == X.shape
    (tmp_path / "x.csv").write_text("x,sales\n1,3\n2,5\n")
    assert load_features(tmp_path / "x.csv", weight_column="sales").weights.tolist() == [3, 5]


def test_advice_on_memory_works(tmp_path):
    wide = np.zeros((100, 40))
    wide[:, 0] = 1.0
    np.savez(tmp_path / "wide.npz", wide)
    with pytest.raises(FeatureError, match="Use fewer rows or columns, float32, or a sparse file"):
        load_features(tmp_path / "wide.npz", memory=20_000)
    np.savez(tmp_path / "single.npz", wide.astype(np.float32))
    np.savez(tmp_path / "short.npz", wide[:50])
    np.savez(tmp_path / "narrow.npz", wide[:, :20])
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(wide))
    for name in ("single", "short", "narrow", "sparse"):
        assert load_features(tmp_path / f"{name}.npz", memory=20_000).matrix.size


def test_advice_on_a_file_that_was_cut_works(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, 1 + np.eye(200, 40))
    tree = Hierarchy.from_children([list(range(100)), list(range(100, 200)), [200, 201]], 200)
    table = load_features(path, memory=50_000).matrix
    os.truncate(path, 30_000)
    with pytest.raises(FeatureError, match=r"truncated to .*Write it again, and do not modify it"):
        evaluate(table, tree)
    with pytest.raises(FeatureError, match="Copy or write the file again"):
        load_features(path)
    np.save(path, 1 + np.eye(200, 40))
    assert evaluate(load_features(path, memory=50_000).matrix, tree).n_sampled == 200


def test_error_for_loading_a_table_in_memory():
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
def test_results_can_be_copied_and_pickled(tmp_path, keep):
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
