"""The notebooks are stripped and numbered, and the live one does in a browser what the formula says."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.problems import tiger
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


@pytest.mark.slow
def test_the_interval_that_is_printed_holds_the_exact_value(capsys):
    pytest.importorskip("matplotlib")
    cells = json.loads((FOLDER / "5_any_pomdp.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]).replace("%matplotlib inline", "") for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    for source in sources:
        if "read_pomdp(" in source or "import RTBSS" in source or "run.interval" in source:
            exec(source, names)  # the project's own notebook
    assert "which the interval holds" in capsys.readouterr().out


def flip(low, high, r0, r):
    """The eta between the two at which eta**2 + (1 - eta)**2 crosses (r0 + 1) / (r + 1)."""
    share = (r0 + 1) / (r + 1)
    eta = (1 + (2 * share - 1) ** 0.5) / 2
    assert low < eta < high
    return eta


@pytest.fixture
def live_page(request):
    pytest.importorskip("marimo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", str(FOLDER / request.param), "--headless", "--no-token"]
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


FIND_SLIDERS = """
    const found = [];
    const walk = root => root.querySelectorAll("*").forEach(element => {
      if (element.getAttribute("role") === "slider") found.push(element);
      if (element.shadowRoot) walk(element.shadowRoot);
    });
    walk(document);
    return found;"""


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("live_page", ["three_node_live.py"], indirect=True)
def test_moving_eta_flips_the_decision_where_the_formula_says(live_page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    def first_step(browser):
        """The action with the star below the root, as the tree that is shown says."""
        text = browser.find_element(By.TAG_NAME, "body").text
        found = re.search(r"[├└]─ (search|descend) [^\n]*★", text)
        return found and found.group(1)

    # With r0 = 0 and r1 = r2 = 0.6 the decision flips at eta = 0.75: at 0.8 it is to descend, at 0.7 to search.
    assert flip(0.7, 0.8, 0.0, 0.6) == pytest.approx(0.75)
    with opened(live_page) as browser:
        WebDriverWait(browser, 120).until(lambda b: first_step(b) == "descend")
        eta = browser.execute_script(FIND_SLIDERS)[0]
        assert eta.get_attribute("aria-valuenow") == "0.8"
        eta.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        WebDriverWait(browser, 60).until(lambda b: first_step(b) == "search")
        assert eta.get_attribute("aria-valuenow") == "0.7"
        eta.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        WebDriverWait(browser, 60).until(lambda b: first_step(b) == "descend")
        elsewhere = [a for a in requests_of(browser) if not a.startswith((live_page, "data:", "blob:"))]
        assert elsewhere == []


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("live_page", ["value_iteration_live.py"], indirect=True)
def test_each_step_of_the_slider_is_one_backup(live_page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    plan = value_iteration(tiger(), 3)
    start = tiger().initial_belief

    def says(steps):
        count, value = len(plan.stages[steps][0]), plan.value(start, to_go=steps)
        line = f"{count} vectors; under the uniform belief: listen, worth {value:.3f}"
        return lambda browser: line in browser.find_element(By.TAG_NAME, "body").text

    with opened(live_page) as browser:
        WebDriverWait(browser, 120).until(says(1))
        steps = browser.execute_script(FIND_SLIDERS)[0]
        for k in (2, 3):
            steps.send_keys(Keys.ARROW_RIGHT)
            WebDriverWait(browser, 60).until(says(k))
        elsewhere = [a for a in requests_of(browser) if not a.startswith((live_page, "data:", "blob:"))]
        assert elsewhere == []
