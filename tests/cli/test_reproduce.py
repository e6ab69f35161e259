"""``pomdp-hier reproduce``: what it prints, and that it fails when a figure does."""

import dataclasses
import json

import pytest

from pomdp_hier.cli import main
from pomdp_hier.hqs import score as module


def test_it_prints_the_case_study(capsys):
    assert main(["reproduce"]) == 0
    out = capsys.readouterr().out
    for part in (
        "every figure that it prints needs 0.005",
        "  Hier-D    -.8477  -.8477           .58   .5833  worst",
        "-.863*",
        "-.857*",
        "-.807*",
        "Hier-A, item 2 is .826451, Hier-C, item 10 is -.964455",
        "55 of the 60 item values are as printed.",
        "Hier-A, target 7, Dye Kit",
        "figures checked come out as they should.",
    ):
        assert part in out
    assert max(map(len, out.splitlines())) <= 100


def test_the_texts_settings(capsys):
    assert main(["reproduce", "--preset", "text"]) == 0
    out = capsys.readouterr().out
    assert "Hier-A             .3918" in out
    assert "Women Boots" not in out


def test_json(capsys):
    assert main(["reproduce", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


@pytest.mark.parametrize("options", [[], ["--json"], ["--preset", "text"]])
def test_a_figure_that_differs_is_3(monkeypatch, capsys, options):
    right = module.evaluate

    def wrong(*args, **settings):
        result = right(*args, **settings)
        return dataclasses.replace(result, values=result.values - 0.01)

    monkeypatch.setattr(module, "evaluate", wrong)
    assert main(["reproduce", *options]) == 3
    out = capsys.readouterr().out
    if options != ["--json"]:
        assert "figures do not come out as they should" in out
        assert "HQS of Hier-A: expected" in out
