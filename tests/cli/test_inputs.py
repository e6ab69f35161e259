"""Features and tree brought together: by id, by position, and said which; what does not match is listed."""

import json

import numpy as np
import pytest

from pomdp_hier.cli import main

X = np.array([[1.0, 0.0], [0.9, 0.2], [0.1, 1.0], [0.0, 0.8]])
IDS = ["ant", "bee", "cod", "eel"]


@pytest.fixture
def files(tmp_path):
    def table(name: str, ids, rows=X) -> str:
        lines = [f"{one},{row[0]},{row[1]}" for one, row in zip(ids, rows, strict=True)]
        (tmp_path / name).write_text("\n".join(["id,x,y", *lines]), encoding="utf-8")
        return str(tmp_path / name)

    table("ids.csv", IDS[::-1], X[::-1])
    table("other.csv", ["p", "q", "r", "s"])
    table("partly.csv", ["1", "2", "3", "4"])
    table("numbers.csv", [3, 2, 1, 0], X[::-1])
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "named.nwk").write_text("((ant,bee),(cod,eel));", encoding="utf-8")
    (tmp_path / "plain.json").write_text("[[0,1],[2,3],[4,5]]", encoding="utf-8")
    (tmp_path / "ordered.json").write_text(
        json.dumps({"children": [[0, 1], [2, 3], [4, 5]], "labels": IDS}), encoding="utf-8"
    )
    return tmp_path


def scored(capsys, features, tree, *options: str) -> tuple[float, str, str]:
    """The score, how rows were joined to items, and what was said besides."""
    assert main(["score", str(features), str(tree), "--delta", "0.1", "--json", "--shuffles", "0", *options]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    return found["score"], found["joined_by"], captured.err


def refused(capsys, *arguments) -> str:
    assert main(["score", *map(str, arguments)]) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error: ") == 1
    return captured.err


def test_how_rows_are_joined_to_items(files, capsys):
    expected, how, said = scored(capsys, files / "x.npy", files / "plain.json")
    assert (how, said) == ("position", "")
    for features, tree, joined in [
        ("ids.csv", "named.nwk", "id"),
        ("ids.csv", "ordered.json", "id"),
        ("numbers.csv", "plain.json", "id"),
        ("other.csv", "plain.json", "position"),
        ("x.npy", "ordered.json", "position"),
    ]:
        score, how, said = scored(capsys, files / features, files / tree)
        assert (score, how, said) == (pytest.approx(expected, abs=1e-12), joined, ""), (features, tree)
    assert main(["score", str(files / "x.npy"), str(files / "plain.json")]) == 0
    assert "rows joined to items by position" in capsys.readouterr().out


def test_an_order_that_nobody_wrote_down_is_warned_of(files, capsys):
    score, how, said = scored(capsys, files / "x.npy", files / "named.nwk")
    assert how == "position"
    assert said.startswith("warning: the features have no ids: row k is taken for the k-th item")
    assert scored(capsys, files / "x.npy", files / "named.nwk", "--join", "position") == (score, how, "")


def test_mismatched_ids_are_listed(files, capsys):
    said = refused(capsys, files / "other.csv", files / "named.nwk")
    assert "4 items without a feature row ('ant', 'bee', 'cod', 'eel')" in said
    assert "4 feature rows without an item ('p', 'q', 'r', 's')" in said
    said = refused(capsys, files / "partly.csv", files / "plain.json")
    assert "1 item without a feature row ('0')" in said
    assert scored(capsys, files / "partly.csv", files / "plain.json", "--join", "position")[1] == "position"
    text = (files / "ids.csv").read_text(encoding="utf-8").replace("eel", "cod")
    (files / "twice.csv").write_text(text, encoding="utf-8")
    assert "1 id on several feature rows ('cod')" in refused(capsys, files / "twice.csv", files / "named.nwk")
    assert "x.npy: got no ids" in refused(capsys, files / "x.npy", files / "plain.json", "--join", "id")
    assert "No such file" in refused(capsys, files / "x.npy", files / "nowhere.nwk")


def test_errors_name_the_row_of_the_file(files, capsys):
    text = (files / "ids.csv").read_text(encoding="utf-8").replace("eel,0.0", "eel,nan")
    (files / "holed.csv").write_text(text, encoding="utf-8")
    said = refused(capsys, files / "holed.csv", files / "named.nwk")
    assert "holed.csv: got NaN or infinite values in 1 row ('eel')" in said


def test_items_that_are_paths_go_by_their_last_name_or_by_the_path(files, capsys):
    (files / "bare.txt").write_text("land > ant\nland > bee\nsea > cod\nsea > eel\n", encoding="utf-8")
    expected = scored(capsys, files / "ids.csv", files / "bare.txt")
    assert expected[1:] == ("id", "")
    lines = [
        f"{path},{x},{y}"
        for path, (x, y) in zip(("sea>eel", "sea > cod", "land>bee", "land>ant"), X[::-1], strict=True)
    ]
    (files / "paths.csv").write_text("\n".join(["id,x,y", *lines]), encoding="utf-8")
    assert scored(capsys, files / "paths.csv", files / "bare.txt") == expected
    (files / "same.txt").write_text("land > a\nland > b\nsea > a\nsea > b\n", encoding="utf-8")
    assert "without a feature row" in refused(capsys, files / "ids.csv", files / "same.txt")


def test_an_empty_category_is_no_item_where_the_number_of_rows_is_known(files, capsys):
    edges = [[9, 7], [9, 8], [9, 6], [7, 0], [7, 1], [8, 2], [8, 3]]
    (files / "edges.json").write_text(json.dumps(edges), encoding="utf-8")
    lines = [f"{above},{below}" for above, below in edges]
    (files / "edges.csv").write_text("\n".join(["parent,child", *lines]), encoding="utf-8")
    lines = [f"{below},{above}" for above, below in edges]
    (files / "parents.csv").write_text("\n".join(["id,parent", "9,", *lines]), encoding="utf-8")
    expected = scored(capsys, files / "x.npy", files / "plain.json")[0]
    for tree in ("edges.json", "edges.csv", "parents.csv"):
        for features in ("x.npy", "numbers.csv"):
            score, _, said = scored(capsys, files / features, files / tree)
            assert score == pytest.approx(expected, abs=1e-12)
            assert said.count("\n") == 1
            assert "6" in said
    assert main(["show", str(files / "edges.json")]) == 0
    assert "5 items" in capsys.readouterr().out
    assert main(["show", str(files / "edges.json"), "--n-items", "4"]) == 0
    assert "4 items" in capsys.readouterr().out


def test_a_row_that_is_missing_does_not_pass_for_an_empty_category(files, capsys):
    (files / "edges.json").write_text("[[6,4],[6,5],[4,0],[4,1],[5,2],[5,3]]", encoding="utf-8")
    np.save(files / "short.npy", X[:3])
    assert "3 rows" in refused(capsys, files / "short.npy", files / "edges.json")


def test_text_and_vectors_from_the_command_line(files, capsys):
    pytest.importorskip("sklearn")
    rows = ["id,title,more", "eel,salt water,fish", "cod,salt cold,fish", "bee,warm air,fly", "ant,warm earth,walk"]
    (files / "t.csv").write_text("\n".join(rows), encoding="utf-8")
    score, how, _ = scored(capsys, files / "t.csv", files / "named.nwk", "--text-column", "title")
    assert how == "id"
    both = scored(capsys, files / "t.csv", files / "named.nwk", "--text-column", "title", "--text-column", "more")[0]
    assert both != score
    options = (
        "--text-column",
        "title",
        "--min-df",
        "2",
        "--max-ngram",
        "2",
        "--sublinear-tf",
        "--stop-words",
        "english",
    )
    assert scored(capsys, files / "t.csv", files / "named.nwk", *options)[0] != score
    assert "Name it: --text-column" in refused(capsys, files / "t.csv", files / "named.nwk", "--min-df", "2")
    assert "no column 'name'" in refused(capsys, files / "t.csv", files / "named.nwk", "--text-column", "name")
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": IDS, "note": IDS, "v": X.tolist()}), files / "v.parquet")
    expected = scored(capsys, files / "ids.csv", files / "named.nwk")[0]
    found = scored(capsys, files / "v.parquet", files / "named.nwk", "--embedding-column", "v")
    assert found == (pytest.approx(expected, abs=1e-12), "id", "")
