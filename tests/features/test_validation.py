"""What features are accepted, what becomes of them, and what the errors say."""

import mmap
import os

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.errors import DataWarning, FeatureError
from pomdp_hier.features import validation
from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean
from pomdp_hier.features.validation import check_features, check_similarity_matrix, require_whole, row_pieces
from pomdp_hier.hierarchy.tree import Hierarchy

TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "float16", ">f8"])
def test_other_numbers_become_float64(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    for table in (check_features(X, 3), check_features(sp.csr_matrix(X.astype(">f8").astype("f8")), 3)):
        assert table.dtype == np.dtype("float64")
        assert table.sum() == 4


def test_floats_are_kept():
    X = np.ones((2, 2), dtype="float32")
    assert check_features(X, 2) is X
    assert check_features(sp.csr_matrix(X), 2).dtype == np.float32


def test_a_memory_map_stays_one(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((5, 2)))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(check_features(X, 5), np.memmap)


def test_csr_is_made_canonical_without_touching_the_callers():
    X = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 3, 3])), shape=(2, 2))
    table = check_features(X, 2)
    assert table.has_canonical_format
    np.testing.assert_array_equal(table.toarray(), [[3, 3], [0, 0]])
    assert X.indices.tolist() == [1, 1, 0]
    assert X.data.tolist() == [1, 2, 3]
    assert check_features(sp.coo_matrix(table), 2).format == "csr"


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((4, 0)), "at least one column"),
        (np.ones((5, 2)), "got 5 rows; expected 4"),
        (np.array([["a"], ["b"], ["c"], ["d"]]), "real numbers"),
        (np.ones((4, 1), dtype=complex), "real numbers"),
    ],
)
def test_shapes_and_types_are_refused(X, said):
    with pytest.raises(FeatureError, match=said):
        check_features(X, 4)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_rows_that_are_not_finite_are_named(wrong, form):
    X = np.ones((20, 2))
    X[[3, 7, 8, 9, 11, 12, 19], 1] = wrong
    with pytest.raises(FeatureError, match=r"7 rows \(3, 7, 8, 9, 11, ... \(7 in all\)"):
        check_features(form(X), 20)


def test_the_diagonal_of_similarities_is_never_read():
    S = np.full((4, 4), 0.5)
    np.fill_diagonal(S, np.nan)
    assert check_similarity_matrix(S, 4) is S
    assert check_similarity_matrix(sp.csr_matrix(S), 4).shape == (4, 4)
    S[2, 1] = np.inf
    with pytest.raises(FeatureError, match=r"1 row \(2, .* off the diagonal"):
        check_similarity_matrix(S, 4)
    with pytest.raises(FeatureError, match=r"got shape \(4, 3\)"):
        check_similarity_matrix(S[:, :3], 4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_rows_of_zeros_and_a_single_column_are_warned_of_under_the_cosine(form):
    X = np.array([[1.0, 0], [0, 0], [0, 1], [0, 0]])
    with pytest.warns(DataWarning, match=r"2 row\(s\) of zeros.*: 1, 3"):
        affinity(form(X), TREE)
    with pytest.warns(DataWarning, match="one column"):
        affinity(form(X[:, :1] + 1), TREE)
    affinity(form(X), TREE, "negative_euclidean")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_values_whose_squares_overflow(form):
    X = np.full((4, 2), 1e200)
    affinity(form(X), TREE, "cosine")
    with pytest.raises(FeatureError, match=r"1e\+200.*overflows"):
        affinity(form(X), TREE, "negative_euclidean")


def test_pieces_cover_all_rows():
    assert row_pieces(10, 1 << 23) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert row_pieces(0, 8) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1, 0], [1]], "rows of several lengths"),
        ({"a": [1, 0], "b": [0, 1]}, r"got a dict; .*list\(X.values\(\)\)"),
        ("features.npz", r"got a str; .* load_features\(path\)"),
        (["boots", "parka"], "turn texts into numbers"),
        ([["boots", 1], ["parka", 2]], "got dtype <U"),
    ],
)
def test_errors_in_tables_of_numbers_have_advice(given, message):
    with pytest.raises(FeatureError, match=message):
        check_features(given, 2)


@pytest.mark.parametrize(
    ("part", "values", "said"),
    [
        ("indices", [0, 1, 2, 3, 4, 99], "value 5 stands in column 99, of 5"),
        ("indices", [0, 1, 2, 3, 4, -1], "value 5 stands in column -1, of 5"),
        ("indices", [0, 1, 2, 3, 4], "5 indices for 6 values"),
        ("indices", [0.0, 1.0, 2.0, 3.0, 4.0, 0.0], "not lists of integers"),
        ("indptr", [0, 5, 3, 5, 6], "indptr falls from 5 to 3 at row 1"),
        ("indptr", [0, 2**31 - 1, -(2**31), -1, 6], "indptr falls from 2147483647"),
        ("indptr", [0, 2, 3, 5, 600], "not from 0 to 6"),
        ("indptr", [1, 2, 3, 5, 6], "not from 0 to 6"),
        ("indptr", [0, 2, 6], "indptr has 3 entries for 4 rows"),
    ],
)
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array])
def test_sparse_arrays_that_lie_are_refused(form, part, values, said):
    X = sp.csr_matrix((np.ones(6), [0, 1, 2, 3, 4, 0], [0, 2, 3, 5, 6]), shape=(4, 5))
    X = X if form is sp.csr_matrix else form((X.data, X.indices, X.indptr), shape=(5, 4))
    setattr(X, part, np.array(values))
    with pytest.raises(FeatureError, match=f"damaged sparse matrix .*{said}"):
        check_features(X, X.shape[0])


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("wrong", [[0, 1, 9], [0, 1, -1], [0, 1]])
def test_coordinates_that_lie_are_refused(axis, wrong):
    X = sp.coo_matrix((np.ones(3), ([0, 1, 2], [0, 1, 0])), shape=(3, 2))
    setattr(X, axis, np.array(wrong))
    with pytest.raises(FeatureError, match="damaged sparse matrix"):
        check_features(X, 3)


def test_masked_values_are_missing():
    X = np.ma.MaskedArray(np.ones((4, 2)), mask=[[False, True]] * 2 + [[False, False]] * 2)
    for given in (X, list(X)):
        with pytest.raises(FeatureError, match=r"got 2 masked values"):
            check_features(given, 4)
    assert type(check_features(np.ma.MaskedArray(np.ones((4, 2))), 4)) is np.ndarray
    with pytest.raises(FeatureError, match=r"got 12 masked values"):
        check_similarity_matrix(np.ma.MaskedArray(np.ones((4, 4)), mask=~np.eye(4, dtype=bool)), 4)


@pytest.mark.parametrize(
    "seen",
    [lambda X: X, lambda X: X[:], np.asarray, lambda X: np.asarray(X)[:, :1_000]],
    ids=["map", "part", "array", "columns"],
)
@pytest.mark.parametrize("kind", ["cosine", "negative_euclidean", lambda rows, cluster: np.zeros(len(rows))])
def test_error_for_a_memory_map_truncated_during_reading(tmp_path, kind, seen):
    path = tmp_path / "X.npy"
    np.save(path, np.ones((4, 2_000)))
    X = seen(np.load(path, mmap_mode="r"))
    close = affinity(X, TREE, kind)
    os.truncate(path, 20_000)
    for read in (
        lambda: affinity(X, TREE, kind),
        lambda: close.batch(np.arange(4)).expand(np.arange(4), np.full(4, 6)),
    ):
        with pytest.raises(FeatureError, match=r"X\.npy: got .* 20000 bytes"):
            read()


def test_error_for_a_truncated_memory_map_of_similarities(tmp_path):
    np.save(tmp_path / "S.npy", np.ones((4, 4)))
    close = affinity(np.load(tmp_path / "S.npy", mmap_mode="r"), TREE, "precomputed")
    os.truncate(tmp_path / "S.npy", 150)
    with pytest.raises(FeatureError, match=r"S\.npy: got .* 150 bytes"):
        close.batch(np.arange(4))


def test_rows_in_memory_are_whole(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((4, 2_000)))
    copied = np.load(tmp_path / "X.npy", mmap_mode="r")[[3, 0]]
    os.truncate(tmp_path / "X.npy", 20_000)
    require_whole(copied)
    require_whole(np.frombuffer(mmap.mmap(-1, 4096)))
    require_whole(np.ones(3))


def test_columns_that_nobody_uses_cost_nothing():
    rows, columns, values = [0, 0, 1, 1, 2, 3], np.array([0, 1, 0, 2, 4, 3]), np.arange(1.0, 7.0)
    for kind in (Cosine(), NegativeEuclidean(), InverseSquaredEuclidean(mean=True, epsilon=1e-30)):
        X = sp.csr_array((values, (rows, columns)), shape=(4, 5))
        wide = sp.csr_array((values, (rows, columns * 2**58)), shape=(4, 5 * 2**58))
        near, far = (affinity(table, TREE, kind).batch(np.arange(4)) for table in (X, wide))
        found, expected = (batch.expand(np.arange(4), np.full(4, 6)) for batch in (far, near))
        mean = 2**58 if isinstance(kind, InverseSquaredEuclidean) else 1
        np.testing.assert_allclose(found, expected * mean, rtol=1e-9)


def test_the_diagonal_is_skipped_in_every_piece(monkeypatch):
    monkeypatch.setattr(validation, "PIECE_BYTES", 3 * 8 * 10)
    S = np.full((10, 10), 0.5)
    np.fill_diagonal(S, np.nan)
    assert check_similarity_matrix(S, 10) is S
    for row, column in ((8, 2), (7, 6), (9, 0), (2, 9)):
        T = S.copy()
        T[row, column] = np.nan
        with pytest.raises(FeatureError, match=rf"1 row \({row}, "):
            check_similarity_matrix(T, 10)
