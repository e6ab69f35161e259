"""The scorer in scikit-learn's model selection, and the cut of a dendrogram against scikit-learn's own labels."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from pomdp_hier.analysis.settings_sweep import cut_tree, hqs_scorer, tree_of_model
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.score import hqs_score
from tests.planted import clean_case

pytest.importorskip("sklearn")
from sklearn.cluster import HDBSCAN, AgglomerativeClustering  # skipped without it
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 9, 44, 45])
@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_the_cut_is_that_of_scikit_learn(n_clusters, linkage):
    X, _ = clean_case()
    model = AgglomerativeClustering(n_clusters=n_clusters, linkage=linkage, compute_full_tree=True).fit(X)
    tree = tree_of_model(model)
    clusters = {frozenset(np.flatnonzero(model.labels_ == k).tolist()) for k in range(n_clusters)}
    leaves = {frozenset(tree.items(node).tolist()) for node in np.flatnonzero(tree.is_leaf)}
    assert leaves == clusters
    # Every cluster above the cut is one of the dendrogram's, and nested as there.
    whole = tree_of_model(model, cut=False)
    sets = {frozenset(whole.items(node).tolist()) for node in range(whole.n_nodes)}
    assert {frozenset(tree.items(node).tolist()) for node in range(tree.n_items, tree.n_nodes)} <= sets
    assert tree.n_nodes - tree.n_items == 2 * n_clusters - 1


def test_a_search_over_linkage_and_cut_finds_the_best_by_hand():
    X, _ = clean_case()
    rows = np.arange(len(X))
    grid = {"linkage": ["ward", "single"], "n_clusters": [3, 9, 30]}
    scorer = hqs_scorer(delta=0.02)
    model = AgglomerativeClustering(compute_full_tree=True)
    search = GridSearchCV(model, grid, scoring=scorer, cv=[(rows, rows)]).fit(X)
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        fitted = AgglomerativeClustering(compute_full_tree=True, **parameters).fit(X)
        assert score == hqs_score(X, cut_tree(fitted.children_, 45, parameters["n_clusters"]), delta=0.02)
    assert search.best_params_["n_clusters"] == 9
    assert pickle.loads(pickle.dumps(scorer))(search.best_estimator_, X) == search.best_score_


def test_models_of_other_kinds():
    X, tree = clean_case()
    pipeline = make_pipeline(StandardScaler(), AgglomerativeClustering(n_clusters=9)).fit(X)
    assert hqs_scorer(delta=0.02)(pipeline, X) == hqs_score(X, tree_of_model(pipeline[-1]), delta=0.02)
    assert hqs_scorer(delta=0.02)(SimpleNamespace(hierarchy_=tree), X) == hqs_score(X, tree, delta=0.02)
    whole = hqs_scorer(cut=False, delta=0.02)
    assert whole(pipeline, X) == hqs_score(X, Hierarchy.from_sklearn(pipeline[-1]), delta=0.02)


def test_what_cannot_be_scored():
    X, _ = clean_case()
    model = AgglomerativeClustering(n_clusters=9).fit(X)
    with pytest.raises(ParameterError, match=r"X: got 10 rows.*45"):
        hqs_scorer()(model, X[:10])
    with pytest.raises(ParameterError, match="estimator: got HDBSCAN without a tree"):
        hqs_scorer()(HDBSCAN(min_cluster_size=4, copy=True).fit(X), X)
    with pytest.raises(ParameterError, match="compute_full_tree=True"):
        cut_tree([[0, 1]], 4, 2)
    with pytest.raises(ParameterError, match="n_clusters: got 5"):
        cut_tree([[0, 1], [2, 3], [4, 5]], 4, 5)
