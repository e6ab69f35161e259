"""Advice of the errors over features is followed here: the same call with the advice taken works."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import Hierarchy, evaluate, load_features
from pomdp_hier.errors import DataWarning, FeatureError, ParameterError
from pomdp_hier.features import Cosine, InverseSquaredEuclidean, NegativeEuclidean, Precomputed, text_features
from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.similarity import ClusterView

TREE = Hierarchy.from_parents({"all": None, "land": "all", "sea": "all", "ant": "land", "bee": "land", "cod": "sea"})
X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
GAP = np.where(np.arange(6).reshape(3, 2) == 3, np.nan, X)
TEXTS = ["small red", "small black", "big wet"]
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
]


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
