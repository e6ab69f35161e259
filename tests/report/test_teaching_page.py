"""The page without Python: its numbers are the package's, in fractions, and it redraws as its sliders move."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import AndOrTree, three_node
from pomdp_hier.cli import main
from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.hqs.paper import PAPER_TABLE, PAPER_TEXT
from pomdp_hier.report import write_teaching_page
from tests.browser import complaints_of, needs_browser, opened, requests_of

NAMES = ("eta", "r0", "r1", "r2", "belief")
TIED = {"eta": "3/4", "r0": "0", "r1": "3/5", "r2": "3/5", "belief": "1"}


def computed(setting):
    """The values of the package for a setting, as texts of fractions; beliefs of impossible shelves are left out."""
    numbers = {name: Fraction(text) for name, text in setting.items()}
    tree = AndOrTree.build(three_node(**numbers), depth=2)
    root = tree.or_nodes[0]
    q = {str(tree.and_nodes[i].action): tree.and_nodes[i] for i in root.actions}
    shelves = {}
    for i in q["descend"].outcomes:
        node = tree.or_nodes[i]
        inside = sum(p for state, p in node.belief.items() if state.on_path)
        shelves[str(node.observation)] = [str(node.probability), str(Fraction(inside)), str(node.value)]
    best = {str(tree.and_nodes[i].action) for i in root.best}
    return {name: str(node.q) for name, node in q.items()} | {
        "value": str(root.value),
        "shelves": shelves,
        "best": best,
    }


def settings(n):
    """Random settings: in steps of the sliders, of thirds, and of any denominator to 99; ties and ends among them."""
    rng = np.random.default_rng(0)
    yield from (
        TIED,
        TIED | {"eta": "1/4"},
        TIED | {"belief": "0"},
        TIED | {"eta": "0"},
        TIED | {"eta": "1", "r1": "0"},
    )
    yield from ({**TIED, "eta": "1/2", "r1": r, "r2": "1"} for r in ("1", "1/3"))
    for k in range(n - 7):
        below = 20 if k % 2 else int(rng.integers(1, 100))
        yield {name: str(Fraction(int(rng.integers(below + 1)), below)) for name in NAMES}


def check_settings(browser, n):
    given = list(settings(n))
    ties = 0
    for tie in ("search", "descend"):
        found = browser.execute_script("return arguments[0].map(s => values(s, arguments[1]));", given, tie)
        for setting, page in zip(given, found, strict=True):
            package = computed(setting)
            assert page["agree"], setting
            assert {name: page[name] for name in ("search", "descend", "value")} == {
                name: package[name] for name in ("search", "descend", "value")
            }
            shelves = dict(zip(("c1", "c2"), page["shelves"], strict=True))
            assert {name: shelves[name] for name in package["shelves"]} == package["shelves"], setting
            assert page["tied"] == (len(package["best"]) == 2)
            assert {page["best"]} == ({tie} if page["tied"] else package["best"])
            ties += page["tied"]
    return ties


@needs_browser
def test_sliders_move_the_tree_and_the_formulas_and_nothing_is_asked_of_a_server(tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page = tmp_path / "page.html"
    write_teaching_page(page)
    with opened(page) as browser:
        assert check_settings(browser, 30) >= 4

        def says():
            # a frame later, as the page redraws once per frame
            browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
            tree = browser.find_element(By.CSS_SELECTOR, ".tree svg").get_attribute("aria-label")
            return browser.find_element(By.CLASS_NAME, "decision").text, tree

        for eta in ("0.75", "0.25"):
            field = browser.find_elements(By.CSS_SELECTOR, ".slider input[type=text]")[0]
            field.clear()
            field.send_keys(eta)
            decision, tree = says()
            assert decision == "A tie: both actions have the value 0. The rule chooses to descend."
            assert tree == "AND-OR tree: search 0, descend 0"
        slider = browser.find_element(By.NAME, "eta")
        slider.send_keys(Keys.ARROW_LEFT)
        decision, tree = says()
        assert field.get_attribute("value") == "0.2"
        q = Fraction(computed(TIED | {"eta": "1/5"})["descend"])
        assert decision == f"The better action: descend, with the value {float(q):g} against 0."
        browser.find_element(By.CSS_SELECTOR, "[value=fractions]").click()
        assert says()[1] == f"AND-OR tree: search 0, descend {q}"
        formulas = browser.find_element(By.CLASS_NAME, "formulas").text
        assert f"= 1 · [(1/5)² · (3/5 + 1) + (4/5)² · (3/5 + 1)] − 1 = {q}" in formulas
        field.clear()
        field.send_keys("4/3")
        assert field.get_attribute("aria-invalid") == "true"
        assert "from 0 to 1" in browser.find_element(By.CLASS_NAME, "wrong").text
        assert (complaints_of(browser), requests_of(browser)) == ([], [])


@needs_browser
@pytest.mark.slow
def test_a_thousand_settings_have_the_values_of_the_package(tmp_path):
    page = tmp_path / "page.html"
    write_teaching_page(page)
    with opened(page) as browser:
        assert check_settings(browser, 1_000) > 10


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "given",
    [
        {"eta": "2/3", "r1": "0.85", "r2": "0.4", "belief": "0.95"},
        {"eta": "2/3", "r0": "1/4", "r1": "0.123", "r2": "7/9", "belief": "5/7"},
    ],
)
def test_the_tree_fits_the_page_and_its_texts_stand_apart(tmp_path, width, given):
    page = tmp_path / "page.html"
    write_teaching_page(page, **given)
    device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700}
    boxes = """
        const box = t => { const b = t.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
        return [...document.querySelectorAll('.tree text')].map(box);"""
    with opened(page, device) as browser:
        for form in ("decimals", "fractions"):
            browser.execute_script(f"document.querySelector('[value={form}]').click(); redraw();")
            found = browser.execute_script(boxes)
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
            edge = browser.execute_script("return document.querySelector('.tree svg').getBoundingClientRect().toJSON()")
            assert all(left >= edge["left"] and right <= edge["right"] for left, _, right, _ in found), (
                "none is cut off"
            )
            for i, (left, top, right, bottom) in enumerate(found):
                for a, b, c, d in found[:i]:
                    deep = min(right, c) - max(left, a), min(bottom, d) - max(top, b)
                    assert min(deep) < 4, "texts may touch, but not cover each other"
            size = "const b = document.querySelector('.tree svg').getBoundingClientRect(); return [b.height, b.width];"
            tall, wide = browser.execute_script(size)
            assert (tall > wide) == (width == 390)


def test_ties_are_named_after_the_settings_that_have_them():
    page = write_teaching_page()
    assert (PAPER_TABLE["tie"], PAPER_TEXT["tie"]) == ("descend", "search")
    assert 'value="descend" checked> descend (Table 1)' in page
    assert 'value="search"> search (Algorithm 1)' in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_the_setting_at_the_start_is_the_one_given(tmp_path, capsys):
    page = write_teaching_page(eta=0.1, r0="2/3", r1=Fraction(1, 2), r2=np.float64(0.25))
    for text in ('value="0.1"', 'value="2/3"', 'value="0.5"', 'value="0.25"'):
        assert text in page
    out = tmp_path / "page.html"
    assert main(["teach", "-o", str(out), "--eta", "0.1", "--r0", "2/3", "--r1", "1/2", "--r2", "0.25"]) == 0
    assert out.read_text(encoding="utf-8") == page
    assert capsys.readouterr().err.startswith(f"written to {out}")
    assert main(["teach", "-o", str(out)]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["teach", "-o", str(out), "--force", "--eta", "3/2", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith("error: --eta: got")


@pytest.mark.parametrize("value", [1.5, -0.1, "half", "1/0", None, True, float("nan"), 10**-12, [0.5]])
def test_error_for_other_than_a_share(value):
    for name in NAMES:
        with pytest.raises(ParameterError, match=rf"^{name}: got"):
            write_teaching_page(**{name: value})


def test_a_page_is_not_replaced_unasked(tmp_path):
    write_teaching_page(tmp_path / "a.html")
    with pytest.raises(PomdpHierError, match="replace=True"):
        write_teaching_page(tmp_path / "a.html")
    write_teaching_page(tmp_path / "a.html", replace=True)


@pytest.mark.parametrize("huge", ["1e-99999999", "1E-0_99999999", "1e99999999"])
def test_a_huge_exponent_is_not_computed(huge):
    with pytest.raises(ParameterError, match="eta"):
        write_teaching_page(eta=huge)
