"""The notebooks are stripped and numbered, and the live one does in a browser what the formula says."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy

from tests.browser import needs_browser, opened, requests_of

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{k}_" for k in range(1, len(NOTEBOOKS) + 1)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.fixture(scope="module")
def check():
    """The function of the first notebook that marks an answer."""
    cells = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))["cells"]
    source = next("".join(cell["source"]) for cell in cells if "def check(" in "".join(cell["source"]))
    names = {"F": Fraction}
    exec(source.split("# 1. ")[0], names)
    return names["check"]


@pytest.mark.parametrize(
    "answer", [Fraction(1, 3), 1 / 3, np.float32(1 / 3), Decimal("0.3333"), sympy.Rational(1, 3), "1/3", 0.333333]
)
def test_a_right_answer_is_right_in_any_number_type(check, capsys, answer):
    check("Exercise", answer, Fraction(1, 3), {Fraction(2, 3): "the other shelf"})
    assert capsys.readouterr().out == "Exercise: right\n"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "put your answer in place of None"),
        (2 / 3, "not yet. the other shelf"),
        (0.3, "not yet. Write the numerator"),
        ("a third", "'a third' is no number"),
        ("1/0", "'1/0' is no number"),
        ([0.3], "is no number"),
    ],
)
def test_a_wrong_answer_is_told_what_is_wrong(check, capsys, answer, told):
    check("Exercise", answer, Fraction(1, 3), {Fraction(2, 3): "the other shelf"})
    assert told in capsys.readouterr().out


def flip(low, high, r0, r):
    """The eta between the two at which eta**2 + (1 - eta)**2 crosses (r0 + 1) / (r + 1)."""
    share = (r0 + 1) / (r + 1)
    eta = (1 + (2 * share - 1) ** 0.5) / 2
    assert low < eta < high
    return eta


@pytest.fixture
def live_page():
    pytest.importorskip("marimo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", str(FOLDER / "three_node_live.py"), "--headless", "--no-token"]
    server = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)], stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(address, timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


@needs_browser
@pytest.mark.slow
def test_moving_eta_flips_the_decision_where_the_formula_says(live_page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    find_sliders = """
        const found = [];
        const walk = root => root.querySelectorAll("*").forEach(element => {
          if (element.getAttribute("role") === "slider") found.push(element);
          if (element.shadowRoot) walk(element.shadowRoot);
        });
        walk(document);
        return found;"""

    def first_step(browser):
        """The action with the star below the root, as the tree that is shown says."""
        text = browser.find_element(By.TAG_NAME, "body").text
        found = re.search(r"[├└]─ (search|descend) [^\n]*★", text)
        return found and found.group(1)

    # With r0 = 0 and r1 = r2 = 0.6 the decision flips at eta = 0.75: at 0.8 it is to descend, at 0.7 to search.
    assert flip(0.7, 0.8, 0.0, 0.6) == pytest.approx(0.75)
    with opened(live_page) as browser:
        WebDriverWait(browser, 120).until(lambda b: first_step(b) == "descend")
        eta = browser.execute_script(find_sliders)[0]
        assert eta.get_attribute("aria-valuenow") == "0.8"
        eta.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        WebDriverWait(browser, 60).until(lambda b: first_step(b) == "search")
        assert eta.get_attribute("aria-valuenow") == "0.7"
        eta.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        WebDriverWait(browser, 60).until(lambda b: first_step(b) == "descend")
        elsewhere = [a for a in requests_of(browser) if not a.startswith((live_page, "data:", "blob:"))]
        assert elsewhere == []
