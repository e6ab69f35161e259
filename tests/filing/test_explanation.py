"""Which features explain the places of items: the planted ones, as a ten-line classifier says too."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import Hierarchy, find_misfiled
from pomdp_hier.cli import main
from pomdp_hier.errors import FeatureError, ParameterError
from pomdp_hier.features.items import FeatureTable
from pomdp_hier.filing import compare_features
from pomdp_hier.filing.explanation import by_distance

KIND = np.arange(90) % 6
TREE = Hierarchy(np.r_[90 + KIND, 96 + np.arange(6) % 2, 98, 98, -1], 90)
RANDOM = np.random.default_rng(0)
GOOD = np.eye(6)[KIND] + RANDOM.normal(size=(90, 6)) * 0.2
WEAK = np.eye(6)[KIND] + RANDOM.normal(size=(90, 6)) * 0.6
NOISE = RANDOM.normal(size=(90, 6))
LENGTHS = (1 + KIND)[:, None] * np.array([[1.0, 0.5]]) + RANDOM.normal(size=(90, 2)) * 0.05  # one direction
DIRECTIONS = GOOD * np.exp(2 * RANDOM.normal(size=(90, 1)))  # of any length


def nearest_mean_accuracy(X) -> float:
    """The share of items whose nearest class mean, without the item, is that of their own class."""
    right = 0
    for item in range(90):
        rest = np.arange(90) != item
        means = np.array([X[rest & (kind == KIND)].mean(axis=0) for kind in range(6)])
        right += np.linalg.norm(means - X[item], axis=1).argmin() == KIND[item]
    return right / 90


def test_features_are_ranked_by_how_well_they_explain_the_places():
    found = compare_features({"weak": WEAK, "noise": NOISE, "good": GOOD}, TREE)
    assert [row.name for row in found.rows] == ["good", "weak", "noise"]
    assert [row.verdict for row in found.rows] == ["best", "worse", "worse"]
    accuracies = [nearest_mean_accuracy(X) for X in (GOOD, WEAK, NOISE)]
    assert accuracies == sorted(accuracies, reverse=True)
    for row, X in zip(found.rows, (GOOD, WEAK, NOISE), strict=True):
        one = find_misfiled(X, TREE)
        assert (row.gain, row.auc) == pytest.approx((one.gain, one.auc), abs=1e-12)
        assert row.low <= row.difference <= row.high
    assert "good explains best where the items are." in found.sentences()
    assert found.to_rows()[0]["verdict"] == "best"


def test_the_similarity_is_found_that_the_places_follow():
    both = ("cosine", "negative_euclidean")
    lengths = compare_features({"lengths": LENGTHS}, TREE, similarities=both)
    assert [row.similarity for row in lengths.rows] == ["negative_euclidean", "cosine"]
    assert lengths.rows[1].verdict == "worse"
    directions = compare_features({"directions": DIRECTIONS}, TREE, similarities=both)
    assert [row.similarity for row in directions.rows] == ["cosine", "negative_euclidean"]
    assert directions.rows[1].verdict == "worse"


def test_cosines_of_mapped_rows_are_squared_distances():
    rows = by_distance(GOOD)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    apart = ((GOOD[:, None] - GOOD) ** 2).sum(axis=2)
    scale = 2 * rows[0, -1] ** 2
    np.testing.assert_allclose(1 - units @ units.T, apart / scale, rtol=0.05, atol=1e-5)
    sparse = by_distance(sp.csr_array(np.maximum(GOOD, 0))).toarray()
    np.testing.assert_array_equal(sparse[:, :-1], np.maximum(GOOD, 0))
    assert np.ptp(sparse[:, -1]) == 0


def test_equal_features_are_the_same_and_useless_ones_are_named():
    found = compare_features({"one": GOOD, "again": 3 * GOOD, "rows": sp.csr_array(GOOD)}, TREE)
    assert {row.verdict for row in found.rows} <= {"best", "same", "inconclusive"}
    assert "not distinguished from it" in found.sentences()[0]
    none = compare_features({"noise": NOISE}, TREE)
    assert "None of these features says much" in none.sentences()[0]


def test_items_without_features_explain_nothing():
    holed = GOOD.copy()
    holed[::2] = 0
    found = compare_features({"holed": holed, "good": GOOD}, TREE)
    assert [(row.name, row.n_without) for row in found.rows] == [("good", 0), ("holed", 45)]
    one = find_misfiled(holed, TREE)
    assert found.rows[1].gain == pytest.approx(np.nansum(one.log_gains) / 90, abs=1e-12)
    assert found.rows[1].auc == pytest.approx(0.5 * 0.5 + np.nansum(one.ranks) / 90, abs=1e-12)


def test_rows_are_joined_by_id():
    order = np.random.default_rng(1).permutation(90)
    named = Hierarchy(TREE.parent, 90, labels=[*(f"i{k}" for k in range(90)), *range(90, TREE.n_nodes)])
    table = FeatureTable(GOOD[order], tuple(f"i{k}" for k in order))
    assert compare_features({"x": table}, named).rows[0].gain == pytest.approx(find_misfiled(GOOD, TREE).gain, abs=1e-9)


@pytest.mark.parametrize(
    ("given", "error", "got"),
    [
        ({"features": {}}, ParameterError, "^features: got"),
        ({"features": GOOD}, ParameterError, "^features: got"),
        ({"features": {"x": GOOD[:3]}}, FeatureError, "3 rows"),
        ({"similarities": "cosine"}, ParameterError, "^similarities: got 'cosine'"),
        ({"similarities": []}, ParameterError, "^similarities: got"),
        ({"similarities": ["nearest"]}, ParameterError, "^similarities: got 'nearest'"),
        ({"confidence": 2}, ParameterError, "^confidence: got 2"),
    ],
)
def test_wrong_arguments(given, error, got):
    with pytest.raises(error, match=got):
        compare_features(**{"features": {"x": GOOD}, "hierarchy": TREE, **given})


def test_the_command_compares_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, X in (("good", GOOD), ("noise", NOISE)):
        np.save(f"{name}.npy", X)
    (tmp_path / "tree.json").write_text(TREE.to_json())
    arguments = ["features", "tree.json", "noise.npy", "good.npy", "--quiet"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "good" in out.splitlines()[1]
    assert "explains best where the items are" in out
    assert main([*arguments, "--similarity", "cosine", "--json", "--confidence", "0.9"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["similarity"]) for row in rows] == [("good", "cosine"), ("noise", "cosine")]
    assert rows[0]["gain"] == pytest.approx(find_misfiled(GOOD, TREE).gain, abs=1e-12)
    assert main(["features", "-", "good.npy", "noise.npy"]) == 2
    assert "-: got standard input as one of several" in capsys.readouterr().err


def test_features_whose_names_look_alike_have_a_row_each():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    found = compare_features({1: np.eye(4), "1": np.ones((4, 2))}, tree)
    assert sorted(row.name for row in found.rows) == ["1", "1 (2)"]
