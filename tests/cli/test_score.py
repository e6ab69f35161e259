"""``pomdp-hier score``: files in, numbers out, and one line for every way it can go wrong."""

import csv
import io
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier.cli import main
from pomdp_hier.hqs.paper import load_amazon12, load_dvd
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import expected_search_length


@pytest.fixture
def shelf(tmp_path):
    """The DVD shelf as files: features dense, sparse, as text with ids; the tree with and without ids."""
    example = load_dvd()
    np.save(tmp_path / "x.npy", example.features)
    np.savez(tmp_path / "x.npz", X=example.features)
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(example.features))
    (tmp_path / "tree.json").write_text(example.hierarchy.to_json(), encoding="utf-8")
    named = {**json.loads(example.hierarchy.to_json()), "labels": [*example.names, *map(str, range(10, 18))]}
    (tmp_path / "named.json").write_text(json.dumps(named), encoding="utf-8")
    rows = [f'"{name}",' + ",".join(map(str, row)) for name, row in zip(example.names, example.features, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["id,a,b,c,d,e,f,g", *rows[::-1]]), encoding="utf-8")
    return tmp_path


def score_of(capsys, *arguments: object) -> float:
    assert main(["score", *map(str, arguments), "--score-only", "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return float(captured.out)


def refusal(capsys, code: int, *arguments: object) -> str:
    assert main(["score", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if not line.startswith("usage: ")]
    assert lines[-1].startswith("error: ")
    assert all(line.startswith("warning: ") for line in lines[:-1])
    return lines[-1]


def test_every_kind_of_file_gives_the_same_score(shelf, capsys):
    example = load_dvd()
    expected = evaluate(example.features, example.hierarchy, delta=0.02).score
    for name in ("x.npy", "x.npz", "sparse.npz"):
        assert score_of(capsys, shelf / name, shelf / "tree.json", "--delta", 0.02) == pytest.approx(
            expected, abs=1e-12
        )


def test_rows_are_joined_to_items_by_id(shelf, capsys):
    expected = evaluate(load_dvd().features, load_dvd().hierarchy).score
    assert score_of(capsys, shelf / "x.csv", shelf / "named.json") == pytest.approx(expected, abs=1e-12)
    text = (shelf / "x.csv").read_text(encoding="utf-8").replace("Dunkirk", "Dunquerque")
    (shelf / "x.csv").write_text(text, encoding="utf-8")
    said = refusal(capsys, 1, shelf / "x.csv", shelf / "named.json")
    assert "1 item without a feature row ('Dunkirk')" in said
    assert "1 feature row without an item ('Dunquerque')" in said


def test_settings_reach_the_score(shelf, capsys):
    shop = load_amazon12()
    np.save(shelf / "s.npy", shop.similarity)
    (shelf / "a.json").write_text(shop.hierarchies["A"].to_json(), encoding="utf-8")
    files = (shelf / "s.npy", shelf / "a.json", "--similarity", "precomputed")
    assert round(score_of(capsys, *files, "--delta", 0.005), 4) == 0.5715
    assert round(score_of(capsys, *files, "--delta", 0.005, "--tie", "search"), 4) == 0.5220
    assert round(score_of(capsys, *files), 4) == 0.4180
    assert score_of(capsys, *files, "--nu", 2) != score_of(capsys, *files)
    assert score_of(capsys, *files, "--policy", "search-root") == 0
    assert score_of(capsys, *files, "--singletons") != score_of(capsys, *files)


def test_the_summary(shelf, capsys):
    assert main(["score", str(shelf / "x.npy"), str(shelf / "tree.json"), "--top", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("HQS ")
    assert captured.out.count("stops at level") == 4
    assert main(["score", str(shelf / "x.npy"), str(shelf / "named.json"), "--top", "2", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["n_items"] == 10
    result = evaluate(load_dvd().features, load_dvd().hierarchy)
    assert (summary["n_better_than_root"], summary["n_worse_than_root"]) == (
        (result.values > 0).sum(),
        (result.values < 0).sum(),
    )
    assert summary["n_stopped_at_root"] == (result.stop_nodes == load_dvd().hierarchy.root).sum()
    for name, items in (("worst", np.argsort(result.values)[:2]), ("best", np.argsort(-result.values)[:2])):
        assert [one["value"] for one in summary[name]] == pytest.approx(result.values[items])
        assert {one["name"] for one in summary[name]} <= set(load_dvd().names)


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet", "-"])
def test_a_row_an_item(shelf, capsys, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    target = "-" if suffix == "-" else str(shelf / f"items.{suffix}")
    assert main(["score", str(shelf / "x.npy"), str(shelf / "named.json"), "--out", target]) == 0
    out = capsys.readouterr().out
    if suffix == "-":
        rows = list(csv.DictReader(io.StringIO(out)))
    elif suffix == "csv":
        rows = list(csv.DictReader(io.StringIO((shelf / "items.csv").read_text(encoding="utf-8"))))
    elif suffix == "json":
        rows = json.loads((shelf / "items.json").read_text(encoding="utf-8"))
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(target).to_pylist()
    expected = evaluate(load_dvd().features, load_dvd().hierarchy)
    assert [float(row["value"]) for row in rows] == expected.values.tolist()
    assert [int(row["stop_node"]) for row in rows] == expected.stop_nodes.tolist()
    assert rows[0]["id"] == "Harry Potter"
    assert (suffix == "-") == (not out.startswith("HQS"))


def test_standard_input_for_either_file(shelf, capsys, monkeypatch):
    expected = score_of(capsys, shelf / "x.npy", shelf / "tree.json")
    for name, arguments in (("x.npy", ("-", shelf / "tree.json")), ("tree.json", (shelf / "x.npy", "-"))):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((shelf / name).read_bytes())))
        assert score_of(capsys, *arguments) == expected


def test_wrong_usage(shelf, capsys):
    files = (shelf / "x.npy", shelf / "tree.json")
    assert "got - for both" in refusal(capsys, 2, "-", "-")
    assert "delta: got -1" in refusal(capsys, 2, *files, "--delta", -1)
    assert "nu: got -0.5" in refusal(capsys, 2, *files, "--nu", -0.5)
    assert "delta: got nan" in refusal(capsys, 2, *files, "--delta", "nan")
    assert "--top: got -1;" in refusal(capsys, 2, *files, "--top", -1)
    assert "policy" in refusal(capsys, 2, *files, "--policy", "wrong")
    assert "--out: got" in refusal(capsys, 2, *files, "--out", shelf / "items.xls")
    assert "--out -" in refusal(capsys, 2, *files, "--out", "-", "--json")
    assert "the same file as the input FEATURES" in refusal(
        capsys, 2, shelf / "x.csv", shelf / "tree.json", "--out", shelf / "x.csv", "--force"
    )


def test_an_existing_result_stays(shelf, capsys):
    (shelf / "items.csv").write_text("mine", encoding="utf-8")
    arguments = (shelf / "x.npy", shelf / "tree.json", "--out", shelf / "items.csv")
    assert "--force" in refusal(capsys, 1, *arguments)
    assert (shelf / "items.csv").read_text(encoding="utf-8") == "mine"
    assert main(["score", *map(str, arguments), "--force"]) == 0
    assert (shelf / "items.csv").read_text(encoding="utf-8").startswith("item,id,value,")


def test_bad_features(shelf, capsys):
    tree = shelf / "tree.json"
    example = load_dvd().features
    holed = example.copy()
    holed[[3, 7], 0] = np.nan
    np.save(shelf / "nan.npy", holed)
    np.save(shelf / "short.npy", example[:9])
    np.save(shelf / "objects.npy", example.astype(object), allow_pickle=True)
    (shelf / "empty.npy").write_bytes(b"")
    (shelf / "cut.npz").write_bytes((shelf / "x.npz").read_bytes()[:-30])
    assert "3, 7" in refusal(capsys, 1, shelf / "nan.npy", tree)
    assert "9 rows" in refusal(capsys, 1, shelf / "short.npy", tree)
    assert "could run code" in refusal(capsys, 1, shelf / "objects.npy", tree)
    assert "got an empty file" in refusal(capsys, 1, shelf / "empty.npy", tree)
    assert "cut.npz: cannot be decoded" in refusal(capsys, 1, shelf / "cut.npz", tree)
    assert "directory" in refusal(capsys, 1, shelf, tree)
    assert "No such file" in refusal(capsys, 1, shelf / "nowhere.npy", tree)
    assert "expected the features first" in refusal(capsys, 2, tree, shelf / "x.npy")


def test_a_zero_row_is_a_warning(shelf, capsys):
    features = load_dvd().features.copy()
    features[4] = 0
    np.save(shelf / "zero.npy", features)
    assert main(["score", str(shelf / "zero.npy"), str(shelf / "tree.json"), "--quiet"]) == 0
    assert capsys.readouterr().err.startswith("warning: ")


@pytest.mark.parametrize(("watched", "quiet", "bar"), [(True, False, True), (True, True, False), (False, False, False)])
def test_a_progress_bar_on_a_terminal_only(shelf, capsys, monkeypatch, watched, quiet, bar):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    options = ["--quiet"] if quiet else []
    assert main(["score", str(shelf / "x.npy"), str(shelf / "tree.json"), *options]) == 0
    captured = capsys.readouterr()
    assert ("10/10" in captured.err) == bar
    assert "10/10" not in captured.out


@pytest.mark.parametrize(
    "given", [[], ["--shuffles", "0"], ["--sample-size", "6", "--seed", "1"], ["--policy", "descend"]]
)
def test_the_search_length_beside_the_score(shelf, capsys, given):
    X, tree = load_dvd().features, load_dvd().hierarchy
    sample = {"sample_size": 6, "random_state": 1} if "--seed" in given else {}
    found = expected_search_length(X, tree, **sample)
    arguments = ["score", str(shelf / "x.npy"), str(shelf / "named.json"), *given]
    assert main([*arguments, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["search_length"]
    assert figures == pytest.approx(
        {
            "score": found.score,
            "score_with_labels": expected_search_length(X, tree, label_cost=1, **sample).score,
            "mean_length": found.mean_length,
            "list_length": 5.5,
        }
    )
    assert main([*arguments, "--out", str(shelf / "some.csv")]) == 0
    printed = capsys.readouterr().out
    assert f"search length score {found.score:.6f}" in printed
    assert printed.count(found.sentence()) == 1
    rows = list(csv.DictReader(io.StringIO((shelf / "some.csv").read_text(encoding="utf-8"))))
    assert [float(row["search_length"]) for row in rows] == pytest.approx(found.lengths)
    assert [float(row["search_length_value"]) for row in rows] == pytest.approx(found.values)
