"""Arrays and sparse features as they are, and sparse features in parts: the values of `evaluate`."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.distributed import evaluate_distributed, work
from pomdp_hier.errors import FeatureError
from pomdp_hier.features.affinity import SparseAffinity
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.hqs.score import evaluate
from tests.distributed.test_distributed import random_tree

N = 60
# Each similarity, each size of partitions and each policy once; the slow tests combine them.
_TOLD_APART = [("cosine", 9, "descend"), ("negative_euclidean", 9, "one-step"), ("inverse_sqeuclidean", 100, "descend")]


@pytest.fixture
def case(tmp_path):
    """Features as a sparse matrix, and as files of unequal length whose names do not sort as text."""
    rng = np.random.default_rng(4)
    table = np.where(rng.random((N, 9)) < 0.4, rng.random((N, 9)), 0)
    table[:, 0] += 0.1  # no empty rows
    X = sp.csr_array(table)
    for name, low, high in (("p2", 0, 7), ("p10", 7, 8), ("p11", 8, N)):
        sp.save_npz(tmp_path / f"{name}.npz", X[low:high])
    return X.tocsr(), random_tree(rng, N, True), tmp_path


@pytest.mark.parametrize(
    ("similarity", "partition_items", "policy"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case not in _TOLD_APART))
        for case in product(("cosine", "negative_euclidean", "inverse_sqeuclidean"), (9, 100), ("one-step", "descend"))
    ],
)
def test_every_form_has_the_values_of_evaluate(case, similarity, partition_items, policy):
    X, tree, folder = case
    files = [folder / f"{name}.npz" for name in ("p2", "p10", "p11")]
    forms = (X, X.tocsc(), X.tocoo(), X.toarray(), X.astype(np.float32), X.toarray().astype(np.float32), folder, files)
    for form in forms:
        options = {"similarity": similarity, "delta": 0.3, "policy": policy}
        whole = evaluate(form if hasattr(form, "shape") else X, tree, **options)
        parts = evaluate_distributed(form, tree, partition_items=partition_items, **options)
        np.testing.assert_allclose(parts.values, whole.values, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(parts.stop_nodes, whole.stop_nodes)


@pytest.mark.parametrize("similarity", ["cosine", "negative_euclidean"])
def test_sparse_rows_reach_the_engine_as_they_are(case, similarity, monkeypatch):
    X, tree, folder = case
    seen = []
    run = work.run_engine
    monkeypatch.setattr(work, "run_engine", lambda task, *rest: seen.append(task.affinity) or run(task, *rest))
    parts = evaluate_distributed(X, tree, similarity=similarity, partition_items=9)
    evaluate_distributed(folder, tree, similarity=similarity, partition_items=9)
    evaluate_distributed(X.toarray(), tree, similarity=similarity, partition_items=100)
    assert [type(affinity) for affinity in seen[-2:]] == [SparseAffinity, DenseAffinity]
    assert {type(affinity) for affinity in seen[:-1]} == {SparseAffinity}
    assert all(sp.issparse(affinity.features) and affinity.features.nnz <= X.nnz for affinity in seen[:-1])
    np.testing.assert_allclose(parts.values, evaluate(X, tree, similarity=similarity).values, rtol=0, atol=1e-12)


def test_files_are_taken_in_the_order_of_a_list(case):
    X, tree, folder = case
    files = [str(folder / f"{name}.npz") for name in ("p11", "p2", "p10")]
    moved = sp.vstack([X[8:], X[:8]]).tocsr()
    np.testing.assert_allclose(
        evaluate_distributed(files, tree).values, evaluate(moved, tree).values, rtol=0, atol=1e-12
    )


def test_dense_archives_and_a_masked_array(case, tmp_path):
    X, tree, _ = case
    np.savez(tmp_path / "dense.npz", X.toarray())
    expected = evaluate(X.toarray(), tree).values
    np.testing.assert_allclose(evaluate_distributed(tmp_path / "dense.npz", tree).values, expected, rtol=0, atol=1e-12)
    masked = np.ma.masked_array(X.toarray(), mask=np.arange(N * 9).reshape(N, 9) == 0)
    with pytest.raises(FeatureError, match=r"got 1 masked value"):
        evaluate_distributed(masked, tree)


def test_zero_rows_are_told_of(case):
    X, tree, _ = case
    empty = X.tolil()
    empty[5] = 0
    with pytest.warns(UserWarning, match="5"):
        parts = evaluate_distributed(empty.tocsr(), tree, partition_items=9)
    with pytest.warns(UserWarning, match="5"):
        whole = evaluate(empty.tocsr(), tree)
    np.testing.assert_allclose(parts.values, whole.values, rtol=0, atol=1e-12)


def test_what_cannot_be_used_is_refused(case):
    X, tree, folder = case
    bad = X.copy()
    bad.data[X.indptr[5]] = np.nan
    sp.save_npz(folder / "p10.npz", bad[5:6])
    refused = [
        (folder, r"p10\.npz: got NaN or infinite values in 1 row \(0", {}),
        (bad, r"NaN or infinite values in 1 row \(5", {}),
        (X[1:], "got 59 rows; expected 60", {}),
        (np.zeros(N), "expected a table", {}),
        (X, "Leave this out: id_column", {"id_column": "id"}),
        (X.toarray(), "Leave this out: weight_column", {"weight_column": "w"}),
        (folder, "npz files; expected named columns", {"id_column": "id"}),
        (folder / "none.npz", r"none\.npz: got .* cannot be read", {}),
        ([folder / "p2.npz", folder / "x.npy"], "expected files of one kind|cannot be read", {}),
        ([], "expected an array", {}),
    ]
    for features, words, options in refused:
        with pytest.raises(FeatureError, match=words):
            evaluate_distributed(features, tree, **options)
    np.savez(folder / "p10.npz", X[5:6].toarray())
    with pytest.raises(FeatureError, match=r"p10\.npz: got a dense array"):
        evaluate_distributed(folder, tree)
    sp.save_npz(folder / "p10.npz", X[5:6, 1:])
    with pytest.raises(FeatureError, match=r"p10\.npz: got 8 columns; expected 9"):
        evaluate_distributed(folder, tree)
    (folder / "p10.npz").write_text("hello")
    with pytest.raises(FeatureError, match=r"p10\.npz: cannot be decoded"):
        evaluate_distributed(folder, tree)
