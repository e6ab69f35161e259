"""Similarities of items to clusters against their definitions, for dense, sparse and custom ones alike."""

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.errors import FeatureError, ParameterError
from pomdp_hier.features import dense
from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.similarity import (
    Cosine,
    InverseSquaredEuclidean,
    NegativeEuclidean,
    Precomputed,
    as_similarity,
)
from pomdp_hier.hierarchy.tree import Hierarchy
from tests import scorer_oracle as oracle

TREE = Hierarchy.from_children([[0, 1, 2], [3], [4, 5, 8], [6, 9, 7]], 7)
KINDS = [
    (Cosine(), oracle.cosine),
    (Cosine(leave_out=False), lambda X: oracle.cosine(X, leave_out=False)),
    (InverseSquaredEuclidean(), oracle.inverse_sqeuclidean),
    (InverseSquaredEuclidean(0.5, True, True, 1.0), lambda X: oracle.inverse_sqeuclidean(X, 0.5, True, True, 1.0)),
    (NegativeEuclidean(leave_out=True), lambda X: oracle.negative_euclidean(X, leave_out=True)),
]


def everything(close, tree):
    """All similarities that the tree has, as {(item, child): value}."""
    items = np.arange(tree.n_items)
    parents = [node for node in range(tree.n_items, tree.n_nodes) if len(tree.children(node))]
    batch = close.batch(items)
    found = {}
    for parent in parents:
        values = batch.expand(items, np.full(len(items), parent)).reshape(len(items), -1)
        for rank, child in enumerate(tree.children(parent)):
            found |= {(int(x), int(child)): float(values[x, rank]) for x in items}
    return found


@pytest.mark.parametrize(("kind", "plain"), KINDS, ids=[repr(kind) for kind, _ in KINDS])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype("float32")])
@pytest.mark.parametrize("many", [1, 1 << 30])
def test_definitions(kind, plain, form, many, monkeypatch):
    monkeypatch.setattr(dense, "MANY", many)
    X = np.random.default_rng(1).integers(-4, 5, (7, 3)) / 4 + np.array([8.0, 0, 0])
    sim = plain(X)
    for (item, node), value in everything(affinity(form(X), TREE, kind), TREE).items():
        assert value == pytest.approx(sim(item, TREE.items(node).tolist()), rel=1e-12), (item, node)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("scale", [1e-200, 1e-310, 1e200])
def test_directions_survive_any_scale(form, scale):
    X = np.array([[3, 4], [4, 3], [0, 1], [1, 0], [1, 1], [2, 1], [1, 3.0]])
    tiny = affinity(form(X * scale), TREE)
    for key, value in everything(affinity(X, TREE), TREE).items():
        assert everything(tiny, TREE)[key] == pytest.approx(value, abs=1e-12)


def test_close_points_far_from_the_origin_keep_their_distances():
    X = np.array([[0.0], [1.0], [0.5], [3.0], [3.5], [5.0], [7.0]]) * 2.0**-20 + 2.0**20
    sim = oracle.negative_euclidean(X)
    # Dense rows are centred; sparse ones keep what the difference of two numbers near a million keeps.
    for form, tolerance in ((np.asarray, 1e-9), (sp.csr_matrix, 1e-3)):
        for (item, node), value in everything(affinity(form(X), TREE, "negative_euclidean"), TREE).items():
            assert value == pytest.approx(sim(item, TREE.items(node).tolist()), rel=tolerance)


def test_parents_that_do_not_hold_the_item_and_rows_in_any_order():
    X = np.random.default_rng(0).standard_normal((7, 3))
    rows, parents = np.array([6, 0, 3, 0, 5]), np.array([10, 9, 10, 10, 9])
    for form in (np.asarray, sp.csr_matrix):
        close = affinity(form(X), TREE)
        found = close.batch(np.arange(7)).expand(rows, parents)
        known = everything(close, TREE)
        expected = [known[x, int(c)] for x, p in zip(rows, parents, strict=True) for c in TREE.children(p)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_names_and_records():
    assert as_similarity("inverse_sqeuclidean") == InverseSquaredEuclidean()
    assert as_similarity("precomputed") == Precomputed()
    assert as_similarity(max) is max
    for wrong in ("jaccard", 3, Cosine):
        with pytest.raises(ParameterError, match="'cosine'"):
            as_similarity(wrong)
    with pytest.raises(ParameterError, match="epsilon"):
        InverseSquaredEuclidean(epsilon=0.0)


def test_arguments_of_a_custom_similarity():
    X = np.random.default_rng(0).standard_normal((7, 2))
    seen = {}

    def similarity(items, cluster):
        assert items.shape == (7, 2)
        np.testing.assert_allclose(cluster.centroid, X[cluster.members].mean(axis=0))
        assert cluster.size == len(cluster.members)
        assert np.flatnonzero(cluster.contains).tolist() == sorted(cluster.members.tolist())
        seen[cluster.node] = cluster.features.shape
        return np.zeros(len(items))

    everything(affinity(X, TREE, similarity), TREE)
    assert seen == {int(c): (TREE.sizes[c], 2) for p in (9, 10) for c in TREE.children(p)}


@pytest.mark.parametrize(
    ("answer", "said"),
    [(np.zeros(3), r"shape \(3,\)"), (np.full(7, np.nan), "nan for item 0 and node 4"), (["a"] * 7, "'a'")],
)
def test_results_of_a_custom_similarity_are_checked(answer, said):
    close = affinity(np.ones((7, 2)), TREE, lambda items, cluster: answer)
    with pytest.raises(FeatureError, match=said):
        everything(close, TREE)


def test_sparse_similarities_may_be_precomputed():
    S = np.random.default_rng(0).random((7, 7)) * (np.random.default_rng(1).random((7, 7)) < 0.5)
    sim = oracle.precomputed(S)
    for form in (np.asarray, sp.csr_matrix):
        for (item, node), value in everything(affinity(form(S), TREE, "precomputed"), TREE).items():
            assert value == pytest.approx(sim(item, TREE.items(node).tolist()), abs=1e-14)


@pytest.mark.parametrize("kind", [Cosine(), InverseSquaredEuclidean(), NegativeEuclidean()], ids=str)
def test_features_stored_by_columns_give_the_same_bits(kind):
    X = np.random.default_rng(0).standard_normal((600, 9))
    lists = [[2 * k, 2 * k + 1] for k in range(300)]
    tree = Hierarchy.from_children([*lists, list(range(600, 900))], 600)
    for compiled in (False, True):
        by_rows = affinity(X, tree, kind, compiled=compiled)
        by_columns = affinity(np.asfortranarray(X), tree, kind, compiled=compiled)
        np.testing.assert_array_equal(by_columns.sums, by_rows.sums)
        np.testing.assert_array_equal(by_columns.centre, by_rows.centre)
        np.testing.assert_array_equal(by_columns.squares, by_rows.squares)
        items, parents = np.arange(600), np.full(600, tree.root)
        found, expected = (close.batch(items).expand(items, parents) for close in (by_columns, by_rows))
        np.testing.assert_array_equal(found, expected)
