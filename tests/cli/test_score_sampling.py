"""``pomdp-hier score`` on a sample, and on workers."""

import csv
import json

import numpy as np
import pytest

from pomdp_hier.cli import main
from pomdp_hier.distributed.evaluate import evaluate_distributed
from pomdp_hier.hqs.score import evaluate
from tests.planted import clean_case


@pytest.fixture
def files(tmp_path):
    X, tree = clean_case()
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "tree.json").write_text(tree.to_json(), encoding="utf-8")
    return X, tree, [str(tmp_path / "x.npy"), str(tmp_path / "tree.json")]


def refused(capsys, words, *arguments):
    assert main(["score", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_sample_tells_its_interval(files, capsys):
    X, tree, paths = files
    expected = evaluate(X, tree, sample_size=0.4, random_state=3)
    assert main(["score", *paths, "--sample-size", "0.4", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    low, high = expected.interval()
    assert f"HQS {expected.score:.6f}" in text
    assert f"from 18 of 45 items, standard error {expected.standard_error:.6f}, 95 % interval {low:.6f} to" in text
    assert "nominal" not in text
    assert main(["score", *paths, "--sample-size", "18", "--seed", "3", "--json", "--top", "3"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["score"] == expected.score
    assert record["n_sampled"] == 18
    assert record["interval"] == [low, high]
    worst = record["worst"][0]
    assert worst["item"] == expected.sampled_items[expected.values.argmin()]
    assert worst["value"] == expected.values.min()


def test_the_table_of_a_sample_lists_its_items(files, capsys):
    X, tree, paths = files
    assert main(["score", *paths, "--sample-size", "7", "--seed", "1", "--sampling", "simple", "--out", "-"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    expected = evaluate(X, tree, sample_size=7, random_state=1, sampling="simple")
    assert [int(row["item"]) for row in rows] == expected.sampled_items.tolist()
    assert [float(row["value"]) for row in rows] == expected.values.tolist()


def test_a_half_width_is_printed_as_nominal(files, capsys):
    _, _, paths = files
    assert main(["score", *paths, "--half-width", "0.2", "--seed", "1"]) == 0
    assert "nominal" in capsys.readouterr().out


def test_the_error_of_one_item_is_null(files, capsys):
    _, _, paths = files
    assert main(["score", *paths, "--sample-size", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["interval"] is None


def test_wrong_sizes_and_combinations_are_refused(files, capsys):
    _, _, paths = files
    refused(capsys, "--sample-size: got 'many'", *paths, "--sample-size", "many")
    refused(capsys, "--sample-size: got 46", *paths, "--sample-size", "46")
    refused(capsys, "expected one of them", *paths, "--sample-size", "9", "--half-width", "0.1")
    refused(capsys, "has no effect with --dask", *paths, "--sample-size", "9", "--dask")
    refused(capsys, "FEATURES: got -", "-", paths[1], "--dask=tcp://127.0.0.1:1")


def test_workers_give_the_same_score(files, capsys):
    pytest.importorskip("distributed")
    _, tree, paths = files
    assert main(["score", *paths, "--engine", "numpy", "--score-only", "--quiet", "--dask"]) == 0
    assert float(capsys.readouterr().out) == evaluate_distributed(paths[0], tree, engine="numpy").score
