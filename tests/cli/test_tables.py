"""Tables as files: harmless in a spreadsheet, whole or not at all, never over what is there unless told to."""

import csv
import io
import json

import pytest

from pomdp_hier.cli.console import check_target, csv_text, write_table
from pomdp_hier.errors import ParameterError, PomdpHierError

COLUMNS = {"name": ["=1+1", "a,b", "Dye Kit"], "value": [-0.1, 1 / 3, 2.0]}


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@x", "\tx", "\rx", " =1", "＝1", "＋1", "－1", "\u3000＠x"])
def test_a_cell_that_would_run_is_defused(cell):
    rows = list(csv.reader(io.StringIO(csv_text({"x": [cell], "y": [-1.5]}), newline="")))
    assert rows[1] == ["'" + cell.replace("\r", " "), "-1.5"]


def test_every_format_holds_the_same(tmp_path):
    for suffix in ("csv", "json", "parquet"):
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        write_table(str(tmp_path / f"x.{suffix}"), COLUMNS, force=False)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text(encoding="utf-8"))))
    assert [float(row["value"]) for row in rows] == COLUMNS["value"]
    assert [row["name"] for row in rows] == ["'=1+1", "a,b", "Dye Kit"]
    content = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in content] == COLUMNS["name"]
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "x.parquet").to_pydict() == COLUMNS
    assert {path.name for path in tmp_path.iterdir()} == {"x.csv", "x.json", "x.parquet"}


def test_nothing_is_replaced_without_force(tmp_path):
    path = str(tmp_path / "x.csv")
    write_table(path, COLUMNS, force=False)
    for refused in (lambda: check_target(path, False), lambda: write_table(path, {"a": [1]}, force=False)):
        with pytest.raises(PomdpHierError, match="replace=True"):
            refused()
    (tmp_path / "dangling.csv").symlink_to("nowhere")
    with pytest.raises(PomdpHierError, match="replace=True"):
        check_target(str(tmp_path / "dangling.csv"), False)
    assert "Dye Kit" in (tmp_path / "x.csv").read_text(encoding="utf-8")
    check_target(path, True)
    write_table(path, {"a": [1]}, force=True)
    assert (tmp_path / "x.csv").read_text(encoding="utf-8") == "a\n1\n"


def test_targets_that_cannot_be_written(tmp_path):
    with pytest.raises(ParameterError, match=r"--out: got .*x\.xls;"):
        check_target(str(tmp_path / "x.xls"), False)
    with pytest.raises(PomdpHierError, match="does not exist"):
        check_target(str(tmp_path / "no" / "x.csv"), False)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(PomdpHierError, match="got a folder"):
        check_target(str(tmp_path / "d.csv"), True)
    check_target("-", False)
