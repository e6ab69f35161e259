"""The reproduction holds every figure of the paper's case study, and notices one that does not come out."""

import dataclasses
import json

import pytest

from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs import score as module
from pomdp_hier.hqs.paper import MISPRINT, ROUNDED_TWICE, Figure, reproduce


def test_every_figure_comes_out():
    study = reproduce("table")
    assert study.failures == []
    assert [figure.shown() for figure in study.scores.values()] == [".5715", "-.2802", "-.3097", "-.8477", ".3266"]
    assert [figure.shown() for figure in study.hai.values()] == [".6389", ".4583", ".5833", ".8542"]


def test_which_of_the_sixty_values_are_as_printed():
    items = [figure for figures in reproduce().items.values() for figure in figures]
    assert len(items) == 60
    assert sum(figure.as_printed for figure in items) == 55
    assert [figure.place for figure in items if figure.note == ROUNDED_TWICE] == ["Hier-A, item 2", "Hier-C, item 10"]
    misprints = {figure.place: (figure.printed, figure.shown()) for figure in items if figure.note == MISPRINT}
    assert misprints == {
        "Hier-B, item 3": (".863", "-.863"),
        "Hier-C, item 6": (".857", "-.857"),
        "Hier-D, item 7": ("-.607", "-.807"),
    }


def test_the_texts_own_settings():
    study = reproduce("text")
    assert study.failures == []
    assert [figure.shown() for figure in study.scores.values()] == [".3918", "-.0535", "-.2113", "-.4256", ".1562"]
    assert study.elsewhere["delta 0.01, a tie descends"][0].shown() == ".4180"
    assert study.elsewhere["delta 0.005, a tie searches"][0].shown() == ".5220"
    assert all(figure.expected is None for figures in study.items.values() for figure in figures)


def test_what_the_walkthrough_says():
    figures = {figure.place: figure for figures in reproduce().walkthrough.values() for figure in figures}
    assert figures["Q^(b0, descend)"].shown() == ".6183"
    assert figures["stops at"].computed == "c4"
    assert figures["C: V of item 5"].shown() == ".8892"
    assert figures["from best to worst"].computed == "AEBCD"


@pytest.mark.parametrize("by", [1e-3, -1e-3])
def test_a_wrong_engine_is_noticed(monkeypatch, by):
    right = module.evaluate

    def wrong(*args, **options):
        result = right(*args, **options)
        return dataclasses.replace(result, values=result.values + by)

    monkeypatch.setattr(module, "evaluate", wrong)
    places = {figure.place for figure in reproduce("table").failures}
    assert {"HQS of Hier-A", "Hier-A, item 2", "Hier-B, item 3", "Hier-B, item 0", "B: items of value 0"} <= places
    assert len(reproduce("text").failures) == 20


@pytest.mark.parametrize(
    ("printed", "expected", "computed", "ok", "as_printed", "shown"),
    [
        (".863", "-.863", -0.8631, True, False, "-.863"),
        (".0", ".000", 0.0, True, True, ".000"),
        (".0", ".000", 0.04, False, True, ".040"),
        ("0", ".0000", -1e-17, True, True, ".0000"),
        ("-1.00", "-1.00", -0.9999, True, True, "-1.00"),
        ("c4", "c4", "c5", False, False, "c5"),
        (None, None, 0.25, True, False, ".250"),
        ("6", "6", "6", True, True, "6"),
    ],
)
def test_a_figure_is_compared_to_the_decimals_given(printed, expected, computed, ok, as_printed, shown):
    figure = Figure("somewhere", printed, expected, computed)
    assert (figure.ok, figure.as_printed, figure.shown()) == (ok, as_printed, shown)


def test_it_is_fit_for_json():
    study = reproduce()
    content = json.loads(json.dumps(study.to_dict()))
    assert content["ok"] is True
    assert content["checked"] == sum(figure.expected is not None for figure in study.figures()) > 100
    assert len(content["figures"]) == len(study.figures())


def test_an_unknown_preset_is_refused():
    with pytest.raises(ParameterError, match="'table' or 'text'"):
        reproduce("tables")  # type: ignore[arg-type]
