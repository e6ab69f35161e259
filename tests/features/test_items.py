"""Rows with ids are joined to the items by id, whatever carries them; what cannot be joined is said."""

import warnings

import numpy as np
import pytest

from pomdp_hier import Hierarchy, hqs_score
from pomdp_hier.errors import DataWarning, FeatureError, ParameterError
from pomdp_hier.features.items import FeatureTable, item_features
from pomdp_hier.features.loading import load_features

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

PATHS = {"boots": "shoes", "sandals": "shoes", "parka": "coats", "raincoat": "coats", "shirt": "tops", "jersey": "tops"}
TREE, NAMES = Hierarchy.from_paths(PATHS), list(PATHS)
X = np.array([[5, 0, 3.0], [5, 1, 0], [0, 5, 4], [0, 5, 3], [1, 3, 0], [0, 3, 0]])
PLAIN = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7, 8]], 6)
OTHER = [3, 0, 5, 1, 4, 2]
SHUFFLED = [NAMES[row] for row in OTHER]


def named(**columns):
    return {**columns, **{f"x{k}": X[OTHER, k] for k in range(3)}}


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(X[OTHER], index=SHUFFLED),
        pd.DataFrame(named(id=SHUFFLED)),
        pl.DataFrame(named(item_id=SHUFFLED)),
        FeatureTable(X[OTHER], tuple(SHUFFLED)),
        X,
        pd.DataFrame(X),
        pd.DataFrame(X, index=NAMES),
    ],
    ids=["index", "column", "polars", "table", "array", "counted", "in order"],
)
def test_rows_come_in_the_order_of_the_items(rows):
    np.testing.assert_array_equal(item_features(rows, TREE).table, X)


def test_a_file_of_features_is_taken_as_it_was_read(tmp_path):
    pd.DataFrame(named(id=SHUFFLED)).to_csv(tmp_path / "x.csv", index=False)
    assert hqs_score(load_features(tmp_path / "x.csv"), TREE, delta=0.1) == hqs_score(X, TREE, delta=0.1)


def test_a_matrix_of_similarities_is_joined_on_both_sides():
    S = X @ X.T
    frames = [
        pd.DataFrame(S[np.ix_(OTHER, OTHER)], index=SHUFFLED),
        pd.DataFrame(S[np.ix_(OTHER, OTHER)], index=SHUFFLED, columns=SHUFFLED),
        pd.DataFrame(S[OTHER], index=SHUFFLED, columns=NAMES),
        FeatureTable(S[np.ix_(OTHER, OTHER)], tuple(SHUFFLED)),
    ]
    for frame in frames:
        np.testing.assert_array_equal(item_features(frame, TREE, "precomputed").table, S)


@pytest.mark.parametrize(("ids", "tree_ids"), [(OTHER, list("012345")), (list(map(str, OTHER)), range(6))])
def test_ids_of_another_type_match_as_text(ids, tree_ids):
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7, 8]], 6, labels=list(tree_ids))
    np.testing.assert_array_equal(item_features(FeatureTable(X[OTHER], tuple(ids)), tree).table, X)


def test_ids_that_fit_in_part_are_refused_with_their_types():
    wrong = [*SHUFFLED[:-1], "gloves"]
    for rows in (pd.DataFrame(X[OTHER], index=wrong), FeatureTable(X[OTHER], tuple(wrong))):
        with pytest.raises(FeatureError, match=r"1 item without a feature row \('parka'\)"):
            item_features(rows, TREE)
    for at in (0, 5):  # a single id that fits
        index = [NAMES[0] if row == at else f"other {row}" for row in range(6)]
        with pytest.raises(FeatureError, match="5 items without a feature row"):
            item_features(pd.DataFrame(X, index=index), TREE)
    with pytest.raises(FeatureError, match=r"float, the items' str"):
        item_features(FeatureTable(X, tuple(float(row) for row in range(6))), TREE)
    with pytest.raises(FeatureError, match="several columns 'id'"):
        item_features(pd.DataFrame(np.zeros((6, 2)), columns=["id", "id"]), TREE)


def test_warning_for_an_index_without_items():
    with pytest.warns(DataWarning, match=r"names none of the tree's items"):
        found = item_features(pd.DataFrame(X, index=list("abcdef")), TREE)
    np.testing.assert_array_equal(found.table, X)


def test_a_tree_of_plain_numbers_goes_by_the_order_of_rows_unless_ids_are_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for frame in (pd.DataFrame(X, index=OTHER), pd.DataFrame(X, index=list("abcdef")), X):
            np.testing.assert_array_equal(item_features(frame, PLAIN).table, X)
        np.testing.assert_array_equal(item_features(FeatureTable(X, tuple(NAMES)), PLAIN).table, X)
    np.testing.assert_array_equal(item_features(FeatureTable(X[OTHER], tuple(OTHER)), PLAIN).table, X)


def test_a_tree_in_the_place_of_features_is_refused():
    with pytest.raises(ParameterError, match="X: got a Hierarchy"):
        item_features(TREE, X)


def test_prepared_features_are_not_prepared_again():
    prepared = item_features(X, TREE)
    assert item_features(prepared, PLAIN) is prepared
    with pytest.raises(ParameterError, match="X: got features prepared"):
        item_features(prepared, TREE, "precomputed")


def test_rows_of_zeros_are_named():
    with pytest.warns(DataWarning, match=r"zeros.*'parka'"):
        hqs_score(np.where(np.arange(6)[:, None] == 2, 0.0, X), TREE)
