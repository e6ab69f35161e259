"""The one-file report: what it says, that it is safe, and that it works in a browser."""

import json
import re
from base64 import b64decode
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
from pomdp_hier.hqs.paper import PAPER_TABLE, load_amazon12
from pomdp_hier.improvement import improve
from pomdp_hier.report import page as page_module
from pomdp_hier.report import page_data as payload_module
from pomdp_hier.report import write_report
from pomdp_hier.report.elements import script_data
from pomdp_hier.report.page_data import icicle_payload
from tests.browser import complaints_of, needs_browser, opened, requests_of
from tests.nasty_names import NASTY
from tests.page_rows import rows_of
from tests.planted import clean_case, misplaced

SHOP = load_amazon12()
SETTINGS = {"similarity": "precomputed", **PAPER_TABLE}


def written(path, diagnosis, **options):
    write_report(diagnosis, path, **options)
    return path


def diagnosis_of(letter):
    return diagnose(SHOP.similarity, SHOP.hierarchies[letter], **SETTINGS)


def diagnosis_with(letter, label):
    """The same of a tree whose nodes are called by a function of their numbers."""
    plain = SHOP.hierarchies[letter]
    labels = [label(k) for k in range(plain.n_nodes)]
    tree = Hierarchy.from_children(plain.to_children(), plain.n_items, labels=labels)
    return diagnose(SHOP.similarity, tree, **SETTINGS), labels


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


def filed_wrongly(n_clusters=6, per=8, label=lambda k: f"n{k}"):
    """Features of clusters, and a tree in two levels of groups with the first item of each odd cluster in the next."""
    home = np.repeat(np.arange(n_clusters), per)
    X = np.eye(n_clusters)[home] + 0.05 * np.random.default_rng(0).random((len(home), n_clusters))
    filed = home.copy()
    filed[:: 2 * per] = (filed[:: 2 * per] + 3) % n_clusters
    first = len(home)
    groups = [[first + c for c in range(n_clusters) if c % 2 == odd] for odd in (0, 1)]
    children = [np.flatnonzero(filed == c).tolist() for c in range(n_clusters)]
    children += [*groups, [first + n_clusters, first + n_clusters + 1]]
    labels = [label(k) for k in range(first + n_clusters + 3)]
    return X, Hierarchy.from_children(children, first, labels=labels), np.flatnonzero(filed != home)


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


@needs_browser
@pytest.mark.slow
def test_long_names_fill_few_sheets_of_paper(tmp_path):
    X, tree, _ = filed_wrongly(12, 8, label=lambda k: f"{'stainless steel articles of all kinds, ' * 8}{k}")
    found, misfiled = diagnose(X, tree, delta=0.05), find_misfiled(X, tree)
    page = written(tmp_path / "long.html", found, misfiled=misfiled, improvement=improve(X, tree, delta=0.05, folds=0))
    with opened(page) as browser:
        sheets = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})["data"]
        assert complaints_of(browser) == []
    assert len(re.findall(rb"/Type\s*/Page\b", b64decode(sheets))) <= 10


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


@needs_browser
def test_page_in_a_browser(tmp_path):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    found = diagnosis_of("A")
    names = ["<b>bold</b>", "Cre\u0300me brûlée der Großen", *SHOP.names[2:]]
    page = written(tmp_path / "a.html", found, names=names)
    _, position = icicle_payload(found, NodeNames(found.hierarchy, names))
    with opened(page) as browser:
        canvas, tip = browser.find_element(By.ID, "icicle"), browser.find_element(By.ID, "tip")
        crumbs = browser.find_element(By.ID, "crumbs")
        assert canvas.get_attribute("data-focus") == "0"
        # The root is the uppermost band.
        ActionChains(browser).move_to_element_with_offset(canvas, 0, -canvas.size["height"] // 2 + 8).perform()
        assert tip.text.splitlines()[1] == "12 items"
        assert "value of a search: 0.5" in tip.text
        # Clicking a child zooms to it, Escape zooms out.
        band = canvas.size["height"] // (found.hierarchy.height + 2)  # a row a level, and one of the items
        ActionChains(browser).move_to_element_with_offset(
            canvas, -200, -canvas.size["height"] // 2 + band + 8
        ).click().perform()
        assert canvas.get_attribute("data-focus") == "1"
        assert "›" in crumbs.text
        canvas.send_keys(Keys.ESCAPE)
        assert canvas.get_attribute("data-focus") == "0"
        canvas.send_keys(Keys.ARROW_DOWN)
        canvas.send_keys(Keys.ARROW_RIGHT)
        canvas.send_keys(Keys.ENTER)
        assert canvas.get_attribute("data-focus") == "2"
        # Below a leaf stand its items, which the arrows reach as well; Enter zooms to the leaf that holds one.
        canvas.send_keys(Keys.HOME, *[Keys.ARROW_DOWN] * (found.hierarchy.height + 1))
        first = found.hierarchy.item_order[0]
        assert tip.text.splitlines()[0] == names[first]
        canvas.send_keys(Keys.ARROW_RIGHT)
        assert tip.text.splitlines()[0] == names[found.hierarchy.item_order[1]]
        canvas.send_keys(Keys.ARROW_LEFT, Keys.ENTER)
        assert canvas.get_attribute("data-focus") == str(position[found.hierarchy.leaf_of_item[first]])
        canvas.send_keys(Keys.HOME)
        # The search box finds an item by a part of its name, shown as text and not as markup.
        box = browser.find_element(By.ID, "search")
        box.send_keys("bold")
        assert browser.find_element(By.CSS_SELECTOR, "#hits button").text.startswith("<b>bold</b>")
        box.send_keys(Keys.ENTER)
        leaf = found.hierarchy.leaf_of_item[0]
        assert canvas.get_attribute("data-focus") == str(position[leaf])
        for words in ("creme brulee", "CRÈME", "bru\u0302le", "grossen"):
            box.clear()
            box.send_keys(words)
            assert browser.find_element(By.CSS_SELECTOR, "#hits button").text.startswith("Cre\u0300me"), words
        box.send_keys(Keys.ESCAPE)
        # A row of a table leads to its node.
        row = browser.find_element(By.CSS_SELECTOR, "td button[data-node]")
        row.click()
        assert canvas.get_attribute("data-focus") == row.get_attribute("data-node")
        assert requests_of(browser) == []
        assert complaints_of(browser) == []


@needs_browser
@pytest.mark.slow
def test_a_phone_scrolls_down_only(tmp_path):
    found, labels = diagnosis_with("A", lambda k: f"{'donaudampfschifffahrt' * 12}{k}")
    appraisal = appraise(SHOP.similarity, found.hierarchy, **SETTINGS)
    page = written(tmp_path / "long.html", found, appraisal=appraisal, title=labels[0])
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    with opened(page, phone) as browser:
        assert browser.execute_script("return innerWidth") == 390
        wide = "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 391).length"
        assert browser.execute_script(f"return [{wide}, document.documentElement.scrollWidth]") == [0, 390]
        assert complaints_of(browser) == []


@needs_browser
def test_nothing_in_a_name_runs(tmp_path):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    found, labels = diagnosis_with("A", lambda k: f"{NASTY[k % len(NASTY)]} {k}")
    with opened(written(tmp_path / "nasty.html", found, title=NASTY[0])) as browser:
        alone = "return document.querySelectorAll('script').length + document.querySelectorAll('img, b b').length"
        assert browser.title == NASTY[0]
        box = browser.find_element(By.ID, "search")
        for k, name in enumerate(NASTY):
            box.clear()
            box.send_keys(visible(name)[:12] if visible(name).isascii() else "half")
            assert browser.find_elements(By.CSS_SELECTOR, "#hits button"), k
        canvas = browser.find_element(By.ID, "icicle")
        for x in (-300, 0, 300):
            ActionChains(browser).move_to_element_with_offset(canvas, x, 8).click().perform()
        for button in browser.find_elements(By.CSS_SELECTOR, "td button[data-node]")[:4]:
            button.click()
        shown = browser.find_element(By.ID, "crumbs").text
        assert visible(labels[found.hierarchy.root]) in shown
        assert browser.execute_script(alone) == 2
        assert requests_of(browser) == []
        assert complaints_of(browser) == []


@needs_browser
@pytest.mark.slow
def test_a_tree_of_a_thousand_clusters_is_painted(tmp_path):
    from selenium.webdriver.common.by import By

    rng = np.random.default_rng(0)
    n_items = 4_000
    groups = np.array_split(rng.permutation(n_items), 1_000)
    children = [group.tolist() for group in groups]
    children += [list(range(n_items + k * 10, n_items + k * 10 + 10)) for k in range(100)]
    children.append(list(range(n_items + 1_000, n_items + 1_100)))
    tree = Hierarchy.from_children(children, n_items)
    found = diagnose(rng.normal(size=(n_items, 8)), tree, delta=0.1)
    with opened(written(tmp_path / "large.html", found)) as browser:
        assert float(browser.find_element(By.ID, "icicle").get_attribute("data-paint")) > 0
        assert complaints_of(browser) == []


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


def improved_case():
    X, tree = clean_case()
    broken, _ = misplaced(misplaced(tree, 0, -1)[0], 17, 5)
    return X, broken, improve(X, broken, delta=0.02, folds=2, kinds=["move"], expected_wrong=0.01)


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


@needs_browser
def test_a_view_has_an_address_and_back_returns(tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    found = diagnosis_of("A")
    ids = [f"sku-{k}" for k in range(12)]
    tree = Hierarchy(found.hierarchy.parent, 12, labels=[*ids, *(f"c{k}" for k in range(found.hierarchy.n_nodes - 12))])
    found = diagnose(SHOP.similarity, tree, **SETTINGS)
    page = written(tmp_path / "a.html", found, names=dict(zip(ids, SHOP.names, strict=True)))
    with opened(page) as browser:
        canvas = browser.find_element(By.ID, "icicle")
        focus = lambda node: WebDriverWait(browser, 10).until(lambda _: canvas.get_attribute("data-focus") == node)  # noqa: E731
        canvas.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
        focus("1")
        address = browser.current_url
        assert "node=1" in address
        browser.back()
        focus("0")
        browser.forward()
        focus("1")
        # An item is found by its id as well as by its name.
        box = browser.find_element(By.ID, "search")
        for text in ("sku-7", SHOP.names[7][:8]):
            box.clear()
            box.send_keys(text)
            assert browser.find_element(By.CSS_SELECTOR, "#hits button").text.startswith(SHOP.names[7][:8])
        assert complaints_of(browser) == []
    with opened(address) as browser:
        canvas = browser.find_element(By.ID, "icicle")
        WebDriverWait(browser, 10).until(lambda _: canvas.get_attribute("data-focus") == "1")


@needs_browser
def test_a_screen_reader_finds_a_name_for_every_control_and_a_head_for_every_row(tmp_path):
    X, tree, improvement = improved_case()
    page = written(tmp_path / "a.html", diagnose(X, tree, delta=0.02), improvement=improvement)
    with opened(page) as browser:
        nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        seen = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
        controls = {"button", "searchbox", "combobox", "textbox", "application", "link", "Canvas", "image", "img"}
        unnamed = [role for role, name in seen if role in controls and not name.strip()]
        assert unnamed == []
        roles = {role for role, _ in seen}
        assert {"heading", "table", "rowheader", "columnheader", "searchbox", "combobox", "main"} <= roles
        headings = [name for role, name in seen if role == "heading"]
        assert headings[0].startswith("How well")
        assert headings[1] == "What to change"
        captions = browser.execute_script("return [...document.querySelectorAll('table')].map(t => !!t.caption)")
        assert captions
        assert all(captions)
