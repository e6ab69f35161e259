"""What features are accepted, what becomes of them, and what the errors say."""

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.errors import DataWarning, FeatureError
from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.validation import check_features, check_similarity_matrix, row_pieces
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
        (np.ones(3), "1 dimension"),
        (np.ones((4, 0)), "at least one column"),
        (np.ones((5, 2)), "5 rows.*4 items"),
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
    with pytest.raises(FeatureError, match=r"7 row\(s\): 3, 7, 8, 9, 11 and 2 more"):
        check_features(form(X), 20)


def test_the_diagonal_of_similarities_is_never_read():
    S = np.full((4, 4), 0.5)
    np.fill_diagonal(S, np.nan)
    assert check_similarity_matrix(S, 4) is S
    assert check_similarity_matrix(sp.csr_matrix(S), 4).shape == (4, 4)
    S[2, 1] = np.inf
    with pytest.raises(FeatureError, match=r"off the diagonal in 1 row\(s\): 2"):
        check_similarity_matrix(S, 4)
    with pytest.raises(FeatureError, match=r"must have shape \(4, 4\)"):
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
        ([[1, 0], [1]], "differ in length; give each item the same columns"),
        ({"a": [1, 0], "b": [0, 1]}, r"are a dict; give the rows of a dict as list\(X.values\(\)\)"),
        ("features.npz", r"are a str; .* load_features\(path\)"),
        (["boots", "parka"], "turn texts into numbers"),
        ([["boots", 1], ["parka", 2]], "leave columns of names out"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_with_a_remedy(given, message):
    with pytest.raises(FeatureError, match=message):
        check_features(given, 2)
