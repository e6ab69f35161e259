"""``pomdp-hier policies`` as a user calls it."""

import json

import numpy as np
import pytest

from pomdp_hier.cli import main
from pomdp_hier.hqs.paper import load_amazon12


@pytest.fixture
def files(tmp_path):
    shop = load_amazon12()
    np.save(tmp_path / "similarity.npy", shop.similarity)
    tree = shop.hierarchies["B"].to_json()
    (tmp_path / "tree.json").write_text(tree if isinstance(tree, str) else json.dumps(tree))
    return [
        str(tmp_path / "similarity.npy"),
        str(tmp_path / "tree.json"),
        "--similarity",
        "precomputed",
        "--delta",
        "0.005",
    ]


def test_the_table(files, capsys):
    assert main(["policies", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["policy", "value"]
    assert [line.split()[:2] for line in lines[1:6]] == [
        ["one-step", "-0.2802"],
        ["optimal", "-0.3621"],
        ["descend", "-0.5239"],
        ["search-root", "0.0000"],
        ["hindsight", "0.2834"],
    ]
    assert lines[-1].startswith("exact per item, n = 12, MDP value 0.2834, events rarer than 0.26 may be missing")


@pytest.mark.slow
def test_json_and_planned_policies(files, capsys):
    chosen = ["one-step", "expand", "max-0", "level-1", "look-ahead-2", "pouct"]
    arguments = [word for name in chosen for word in ("--policy", name)]
    assert main(["policies", *files, *arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    values = {row["name"]: round(row["value"], 4) for row in report["policies"]}
    assert list(values) == chosen
    assert values["expand"] == -0.3621
    assert values["max-0"] == -0.4798
    assert values["look-ahead-2"] == -0.3621
    assert report["baseline"] == "one-step"


def test_wrong_usage(files, capsys):
    assert main(["policies", *files, "--policy", "level-x"]) == 2
    assert "expected one of one-step" in capsys.readouterr().err
    assert main(["policies", *files, "--confidence", "95"]) == 2
    assert "expected a number between 0 and 1" in capsys.readouterr().err
    assert main(["policies", "-", "-"]) == 2
