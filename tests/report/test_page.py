"""The one-file report: what it says, that it is safe, and that it works in a browser."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from pomdp_hier._text import shortened, visible
from pomdp_hier.analysis.baselines import appraise
from pomdp_hier.analysis.diagnosis import LostItem, diagnose
from pomdp_hier.analysis.moves import Move
from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.filing import find_misfiled
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.improvement import improve
from pomdp_hier.report import page as page_module
from pomdp_hier.report import page_data as payload_module
from pomdp_hier.report import write_report
from pomdp_hier.report.elements import script_data
from pomdp_hier.report.page_data import icicle_payload
from tests.nasty_names import NASTY
from tests.page_rows import SETTINGS, SHOP, diagnosis_of, diagnosis_with, filed_wrongly, improved_case, rows_of
from tests.planted import clean_case


def payload_of(page):
    text = re.search(r'<script id="payload" type="application/json">(.*?)</script>', page, re.DOTALL).group(1)
    return json.loads(text)


def test_labels_of_the_scale_stand_apart():
    crowd = [page_module._span(value, "shuffled −0.104") for value in (-1, -0.01, 0, 0.01, 0.02, 0.5, 0.99, 1)]
    lanes = page_module._lanes(crowd)
    for k, (lane, (_, left, right)) in enumerate(zip(lanes, crowd, strict=True)):
        assert -0.1 <= left < right <= 1.1
        assert all(other != lane or end <= left for other, (*_, end) in zip(lanes[:k], crowd[:k], strict=True))
    assert lanes[:2] == [0, 0]
    assert page_module._span(0, "ab") == ("middle", pytest.approx(0.4895), pytest.approx(0.5105))
    assert page_module._span(-0.9, "ab") == ("start", pytest.approx(0.05), pytest.approx(0.071))
    assert page_module._span(0.9, "ab") == ("end", pytest.approx(0.929), pytest.approx(0.95))


def signed(value, digits):
    return f"{value:.{digits}f}".replace("-", "−")


def test_tables_equal_the_results():
    found = diagnosis_of("B")
    tree, names = found.hierarchy, [f"n{k}" for k in range(found.hierarchy.n_nodes)]
    moves = [Move(0, 12, 13, 1, 0.1, 0.125), Move(14, 12, 15, 2, 0.1, -0.5)]
    page = write_report(found, names=names, moves=moves, limit=3)
    worst = [r for r in found.worst_nodes(3) if r.wrong_branch_cost > 0]
    ids = NodeNames(tree)
    assert rows_of(page, "Worst nodes") == [
        [f"n{r.node}", ids[r.node], f"{r.n_items}",
         *(f"{100 * x:.1f} %" for x in (r.arrival_rate, r.branch_accuracy, r.stop_rate)),
         signed(r.wrong_branch_cost, 4), signed(r.early_stop_cost, 4)] for r in worst
    ]  # fmt: skip
    taken = {}
    for pair in found.confusions(len(found.pair_items)):
        taken.setdefault(pair.rival, []).append(pair)
    shown = rows_of(page, "Confusions")
    assert len(shown) == min(3, len(taken))
    costs = []
    for row in shown:
        pairs = taken[int(row[0][1:])]
        sources = [
            f"{p.n_items} of n{p.child} ({100 * p.item_share:.1f} %)" for p in sorted(pairs, key=lambda p: -p.cost)
        ][:3]
        assert row[:3] == [row[0], ids[pairs[0].rival], f"n{pairs[0].parent}"]
        assert row[3].startswith(", ".join(sources))
        assert row[5:] == [
            str(sum(p.n_items for p in pairs)),
            signed(sum(p.expected_errors for p in pairs), 1),
            signed(sum(p.cost for p in pairs), 4),
        ]
        costs.append(sum(p.cost for p in pairs))
    assert costs == sorted(costs, reverse=True)
    lost = rows_of(page, "Lost items")
    assert [row[0] for row in lost] == [f"n{r.item}" for r in found.lost_items(3)]
    assert all(
        f"n{r.wrong_child}" in row and signed(r.value, 3) in row
        for r, row in zip(found.lost_items(3), lost, strict=True)
    )
    assert rows_of(page, "Moves that raise the score") == [
        ["n0", "0", "n12", "n13", "1", "0.12500"],
        ["n14", ids[14], "n12", "n15", "2", "−0.50000"],
    ]
    assert f"The 3 worst of {int(found.lost.sum())} lost items" in page
    assert "Each was verified by scoring" in page
    assert "where that was not scored" in write_report(found, moves=[Move(0, 12, 13, 1, 0.1, float("nan"))])
    assert f"{tree.n_items} items in {tree.is_cluster.sum()} clusters on {tree.height + 1} levels" in page
    assert f'data-node="{icicle_payload(found, names)[1][worst[0].node]}"' in page


def test_scale_and_histogram_are_to_scale():
    appraisal = appraise(SHOP.similarity, SHOP.hierarchies["B"], **SETTINGS)
    page = write_report(diagnosis_of("B"), appraisal=appraisal)
    places = [float(x) for x in re.findall('<circle cx="(.*?)%"', page)]
    known = [
        appraisal.shuffled_mean,
        appraisal.no_tree,
        appraisal.score,
        appraisal.hindsight,
        appraisal.perfect_guidance,
    ]
    assert places == pytest.approx([2 + 96 * (value + 1) / 2 for value in sorted(known)], abs=0.006)
    bar = r'<rect x="([\d.]*)%" y="([\d.]*)" width="2.2%" height="([\d.]*)" [^>]*class="(.*?)"><title>[^<]*: (\d+) item'
    bars = re.findall(bar, page)
    values = np.clip(appraisal.result.values, -1, 1)
    assert sum(int(count) for *_, count in bars) == len(values)
    assert "<title>−1.00 to −0.95: " in page
    assert re.findall(r'<text x="([\d.]*)%" y="118"[^>]*>([^<]*)<', page) == [
        ("2.00", "−1.0"), ("26.00", "−0.5"), ("50.00", "0.0"), ("74.00", "0.5"), ("98.00", "1.0"),
    ]  # fmt: skip
    ticks = re.findall(r'<line x1="([\d.]*)%" y1="48" x2="([\d.]*)%"', page)
    assert ticks == [(f"{2 + 12 * k:.2f}",) * 2 for k in range(9)]
    for x, y, height, colour, count in bars:
        left = (float(x) - 2) / 48 - 1
        assert int(count) == ((values >= left - 1e-9) & ((values < left + 0.05 - 1e-9) | (left > 0.94))).sum()
        assert float(y) + float(height) == pytest.approx(100)
        assert float(height) == pytest.approx(90 * int(count) / max(int(bar[-1]) for bar in bars), abs=0.05)
        assert colour == ("bad" if left < -0.01 else "none" if left < 0.01 else "good")


def test_long_names_lose_their_middle_and_tell_it_on_hover_or_unfolded():
    found, labels = diagnosis_with("B", lambda k: f"{'long ' * 20}{k}")
    page = write_report(found)
    shown = re.findall(r'title="([^"]*)" type="button" data-node="\d+">([^<]*)<', page)
    assert len(shown) > 3
    assert all(len(short) == 48 and short == f"{whole[:24]}…{whole[-23:]}" for whole, short in shown)
    assert {whole for whole, _ in shown} <= set(labels)
    items = re.findall('<details class="name"><summary>([^<]*)</summary> <bdi>([^<]*)</bdi></details>', page)
    assert {whole for _, whole in items} >= {labels[lost.item] for lost in found.lost_items(25)}
    assert all(short == f"{whole[:24]}…{whole[-23:]}" for short, whole in items)


def test_hovering_shows_the_whole_path():
    tree = Hierarchy.from_paths({f"i{k}": ("Home", "Bath" if k % 2 else "Bed") for k in range(6)})
    page = write_report(diagnose(np.eye(2)[[0, 0, 0, 1, 1, 1]] + 0.1, tree))
    assert re.search(r'<button title="Home / Bath" type="button" data-node="\d">Bath</button>', page)


class Balanced(HTMLParser):
    """Fails on a tag that is closed out of turn."""

    VOID = frozenset({"meta", "input"})

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_page_says_the_score_and_its_baselines():
    appraisal = appraise(SHOP.similarity, SHOP.hierarchies["B"], **SETTINGS)
    page = write_report(diagnosis_of("B"), appraisal=appraisal, names=SHOP.names)
    assert page.count('<div class="card main">HQS<b>−0.2802</b>') == page.count("card main") == 1
    for sentence in appraisal.sentences():
        assert sentence.replace("'", "&#x27;") in page
    for title in ("Worst nodes", "Confusions", "Lost items", "Settings and versions"):
        assert f"{title}" in page
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []


def test_page_says_the_search_length():
    appraisal = appraise(SHOP.similarity, SHOP.hierarchies["B"], similarity="precomputed", n_shuffles=1)
    page = write_report(diagnosis_of("B"), appraisal=appraisal)
    for figure in (appraisal.search_length_score, appraisal.search_length_score_with_labels):
        assert f">{figure:.4f}<".replace("-", "−") in page
    assert appraisal.search_length.sentence() in page


def test_payload_is_the_tree_in_breadth_first_order():
    found = diagnosis_of("A")
    data, position = icicle_payload(found, NodeNames(found.hierarchy, SHOP.names))
    tree = found.hierarchy
    levels, parents = data["tree"]["level"], data["tree"]["parent"]
    assert levels == sorted(levels)
    assert all(parent < k for k, parent in enumerate(parents))
    for node in np.flatnonzero(tree.is_cluster):
        k = position[node]
        assert data["tree"]["size"][k] == tree.sizes[node]
        mean = found.result.values[tree.items(node)].mean()
        assert data["tree"]["value"][k] == pytest.approx(mean, abs=5e-5 + 1e-9)
        assert data["tree"]["arrive"][k] == pytest.approx(
            found.expected_arrivals[node] / tree.sizes[node], abs=5e-5 + 1e-9
        )
        assert data["tree"]["cost"][k] == pytest.approx(found.wrong_branch_loss[node] / tree.n_items, abs=5.1e-7)
        chose = found.n_choices[node]
        right = data["tree"]["right"][k]
        assert right is None if chose == 0 else right == pytest.approx(found.n_correct[node] / chose, abs=5e-5 + 1e-9)
        assert data["tree"]["parent"][k] == (-1 if node == tree.root else position[tree.parent[node]])
        assert data["tree"]["start"][k] == tree.starts[node]
    assert (position[~tree.is_cluster] == -1).all()
    assert data["tree"]["value"][0] == pytest.approx(found.result.score, abs=5e-5)
    assert data["items"]["label"] == [SHOP.names[i] for i in tree.item_order]
    assert data["items"]["value"] == pytest.approx(found.result.values[tree.item_order], abs=5e-5 + 1e-9)
    assert data["left_out"] == []
    ranges = {m["key"]: (m["low"], m["high"], m["percent"], m["items"]) for m in data["measures"]}
    worst = found.wrong_branch_loss.max() / tree.n_items
    assert ranges == {
        "value": (-1, 1, False, "value"), "arrive": (0, 1, True, None), "right": (0, 1, True, None),
        "cost": (worst, 0, False, None),
    }  # fmt: skip


def test_large_trees_keep_their_largest_clusters_and_say_so(monkeypatch):
    monkeypatch.setattr(payload_module, "MOST_NODES", 4)
    monkeypatch.setattr(payload_module, "MOST_ITEMS", 5)
    found = diagnosis_of("A")
    data, position = icicle_payload(found, NodeNames(found.hierarchy))
    assert len(data["tree"]["size"]) == 4
    assert data["left_out"] == ["Not drawn: 6 clusters, the smallest.", "Single items are not drawn."]
    assert data["items"]["label"] == []
    assert data["measures"][0]["items"] is None
    sizes = found.hierarchy.sizes
    assert sizes[position >= 0].min() >= sizes[found.hierarchy.is_cluster & (position < 0)].max()
    kept = np.flatnonzero(position >= 0)
    assert found.hierarchy.root in kept
    assert all(found.hierarchy.parent[node] in kept for node in kept if node != found.hierarchy.root)
    assert "Not drawn: 6 clusters, the smallest. Single items are not drawn." in write_report(found)


class Cells(HTMLParser):
    """The text of every cell, button and heading, and what tags and attributes there are."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.titles, self.tags, self.attributes = [""], set(), set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.titles |= {value for name, value in attrs if name == "title"}
        self.texts.append("")

    def handle_endtag(self, tag):
        self.texts.append("")

    def handle_data(self, data):
        self.texts[-1] += data


@pytest.mark.parametrize("drawn", [100, 1], ids=["buttons", "left out of the icicle"])
def test_names_cannot_break_out_of_the_page(monkeypatch, drawn):
    monkeypatch.setattr(payload_module, "MOST_NODES", drawn)
    found, labels = diagnosis_with("D", lambda k: f"{NASTY[k % len(NASTY)]} {k}{' long' * k}")
    clusters = range(12, found.hierarchy.n_nodes)
    moves = [Move(node, source=12, target=13, n_items=1, predicted=0.1, gain=0.1) for node in clusters]
    tame = Cells(write_report(diagnosis_of("D"), moves=moves, limit=100))
    page = write_report(found, moves=moves, limit=100, title=NASTY[0])
    page.encode()
    cells = Cells(page)
    assert (cells.tags, cells.attributes) == (tame.tags, tame.attributes | {"title"})
    assert page.count("<script") == 2
    assert visible(NASTY[0]) in cells.texts
    named = {k for k, label in enumerate(labels) if visible(shortened(label, 48)) in cells.texts}
    whole = cells.titles | {*cells.texts}
    assert all(visible(label) in whole for label in labels[12:] if len(label) > 48)
    assert named >= set(range(12, found.hierarchy.n_nodes))
    rows = [*found.lost_items(100), *found.worst_nodes(100), *found.confusions(100)]
    assert named >= {row.item for row in rows if isinstance(row, LostItem)}
    label = payload_of(page)["tree"]["label"]
    assert set(label) <= {visible(label) for label in labels}
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", page)


def test_the_script_gets_numbers_and_letters_as_they_are():
    assert script_data({"ü": 1.5, "家": None}) == '{"ü":1.5,"家":null}'
    with pytest.raises(ValueError, match="JSON"):
        script_data(float("nan"))


def test_misfiled_items_come_first_with_their_paths():
    X, tree, wrong = filed_wrongly()
    found, misfiled = diagnose(X, tree, delta=0.05), find_misfiled(X, tree)
    improvement = improve(X, tree, delta=0.05, folds=0)
    page = write_report(found, misfiled=misfiled, improvement=improvement)
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings[:3] == ["Probably misfiled", "What to change", "The score"]
    rows = rows_of(page, "Probably misfiled")
    assert sorted(int(row[0][1:]) for row in rows) == wrong.tolist()
    for row in rows:
        item = int(row[0][1:])
        path = [int(part[1:]) for part in row[1].split(" › ")]
        assert path == [tree.parent[tree.parent[item]], tree.parent[item]]
        assert row[2].split(" › ")[-1] == f"n{tree.n_items + item // 8}"
        assert row[3] == f"{misfiled.probabilities[item]:.3f}"
        odds = float(np.exp(misfiled.log_odds[item]))
        assert row[4] == ("> 999 : 1" if odds > 999 else f"{odds:.0f} : 1")
        assert {int(name[1:]) // 8 for name in row[6].split(", ")} == {item // 8}
    assert "Probably misfiled" not in write_report(found)
    with pytest.raises(ParameterError, match="misfiled: got a tree of"):
        write_report(diagnosis_of("A"), misfiled=misfiled)
    with pytest.raises(ParameterError, match="misfiled: got"):
        write_report(found, misfiled=5)


def test_features_that_say_nothing_list_no_item():
    _, tree, _ = filed_wrongly()
    X = np.random.default_rng(0).normal(size=(tree.n_items, 5))
    page = write_report(diagnose(X, tree), misfiled=find_misfiled(X, tree))
    assert rows_of(page, "Probably misfiled") == []
    assert "next to nothing" in page


def test_an_existing_file_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "out.html"
    path.write_text("mine")
    with pytest.raises(PomdpHierError, match="replace=True"):
        write_report(diagnosis_of("A"), path)
    assert path.read_text() == "mine"
    assert write_report(diagnosis_of("A"), path, replace=True) == path.read_text(encoding="utf-8")
    with pytest.raises(PomdpHierError, match="cannot be written"):
        write_report(diagnosis_of("A"), tmp_path / "nowhere" / "out.html")


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match="names: got 5 names for 12 items"):
        write_report(diagnosis_of("A"), names=["a"] * 5)


def test_one_item_has_a_page():
    tree = Hierarchy.from_children([], 1)
    page = write_report(diagnose(np.array([[1.0, 2.0]]), tree))
    assert payload_of(page)["tree"]["size"] == [1]
    assert payload_of(page)["tree"]["label"] == payload_of(page)["items"]["label"] == ["item 0"]
    assert "1 item in 1 cluster on 1 level<" in page
    assert "first branch correct<b>–</b>" in page


def test_arguments_in_the_other_order_are_refused_with_a_remedy(tmp_path):
    with pytest.raises(ParameterError, match=r"got a str; expected .*diagnose"):
        write_report("report.html", tmp_path)
    with pytest.raises(ParameterError, match="got a list"):
        write_report([[1.0]])
    found = diagnosis_of("A")
    for settings, message in [
        ({"appraisal": found}, "appraisal: got a Diagnosis; expected the result of appraise"),
        ({"moves": [(0, 12)]}, r"moves: got \[\(0, 12\)\]"),
        ({"moves": "up"}, "moves: got 'up'"),
        ({"limit": -1}, "limit: got -1;"),
        ({"names": "abcdefghijkl"}, "names: got 'abc"),
    ]:
        with pytest.raises(ParameterError, match=message):
            write_report(found, **settings)


# --- what to change, and the view in the address -------------------------------------------------------------------


def test_edits_stand_first_with_their_odds_and_whom_they_help_and_cost():
    X, tree, improvement = improved_case()
    page = write_report(diagnose(X, tree, delta=0.02), improvement=improvement)
    assert page.index("<h2>What to change</h2>") < page.index("<h2>Worst nodes</h2>")
    rows = rows_of(page, "What to change")
    assert [len(improvement.edits), len(improvement.apart)] == [1, 1]
    called = NodeNames(tree, in_words=True)
    assert "1 edit not made: not sound" in page
    for row, found in zip(rows, [*improvement.edits, *improvement.apart], strict=True):
        assert row[0].startswith(f"1. {found.kind} {called[found.nodes[0]]}")
        assert row[1:4] == [called[found.source], called[found.target], str(found.n_items)]
        assert row[4:7] == [
            signed(value, d) for value, d in ((found.probability, 3), (found.target_probability, 3), (found.gain, 5))
        ]
        assert row[7:9] == [str(found.n_improved), str(found.n_worsened)]
    assert ">on held-out items</th>" not in page  # a column without a number: odds support moves of items
    assert rows[1][9] == "not probable enough to move"
    assert all(sentence in unescape(page) for sentence in improvement.sentences())


def test_an_improvement_of_another_tree_is_refused():
    X, tree, improvement = improved_case()
    other = diagnose(X, clean_case()[1], delta=0.02)
    with pytest.raises(ParameterError, match="improvement: got a tree of 58 nodes"):
        write_report(other, improvement=improvement)
    found = diagnose(X, tree, delta=0.02)
    with pytest.raises(ParameterError, match="moves, improvement: got both"):
        write_report(found, improvement=improvement, moves=[Move(0, 12, 13, 1, 0.1, 0.125)])
    with pytest.raises(ParameterError, match="improvement: got a list"):
        write_report(found, improvement=[1])
