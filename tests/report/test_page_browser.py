"""The one-file report in a browser: it works, is read aloud, prints, and runs nothing of its names."""

import re
from base64 import b64decode

import numpy as np
import pytest

from pomdp_hier._text import visible
from pomdp_hier.analysis.baselines import appraise
from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.filing import find_misfiled
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.improvement import improve
from pomdp_hier.report.page_data import icicle_payload
from tests.browser import complaints_of, needs_browser, opened, requests_of
from tests.nasty_names import NASTY
from tests.page_rows import SETTINGS, SHOP, diagnosis_of, diagnosis_with, filed_wrongly, improved_case, written


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


# --- what to change, and the view in the address -------------------------------------------------------------------


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
