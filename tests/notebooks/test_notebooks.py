"""The notebooks are stripped and numbered, and the live page draws what the planner computes, once per move."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from fractions import Fraction
from pathlib import Path

import pytest

from pomdp_hier import AndOrTree, three_node
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.problems import tiger
from tests.browser import needs_browser, opened, requests_of

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{k}_" for k in range(1, len(NOTEBOOKS) + 1)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_a_tie_in_notebook_1_is_exact_at_every_position_of_its_sliders():
    (source,) = ["".join(c["source"]) for c in cells_of("1_three_node_pomdp") if "FloatSlider" in "".join(c["source"])]
    shown = []
    names = {"F": Fraction, "AndOrTree": AndOrTree, "three_node": three_node, "keep": shown.append}
    redraw = source[source.index("def redraw") : source.index("slider =")]
    exec(redraw.replace("display(draw_and_or(tree).figure)", "keep(tree)"), names)  # the project's own notebook
    for eta in (0.25, 0.75, 0.05 * 5, 0.05 * 15):
        names["redraw"](eta=eta, r0=0.0, r1=0.05 * 12, r2=0.6)
        assert shown[-1].value == 0
        assert len(shown[-1].or_nodes[0].best) == 2


@pytest.mark.slow
def test_the_interval_that_is_printed_holds_the_exact_value(capsys):
    pytest.importorskip("matplotlib")
    cells = json.loads((FOLDER / "5_any_pomdp.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]).replace("%matplotlib inline", "") for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    for source in sources:
        if "tiger = read_pomdp(" in source or "import RTBSS" in source or "run.interval" in source:
            exec(source, names)  # the project's own notebook
    assert "which the interval holds" in capsys.readouterr().out


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


RECORD_LINES = """
    window.seen = [];
    setInterval(() => {
      const line = (/[0-9]+ vectors; under/.exec(document.body.innerText) || [])[0];
      if (line && line !== window.seen.at(-1)) window.seen.push(line);
    }, 20);"""


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("live_page", ["value_iteration_live.py"], indirect=True)
def test_each_step_of_the_slider_is_one_backup(live_page):
    from selenium.webdriver import ActionChains
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
        # A drag over several positions draws once, at its release.
        browser.execute_script(RECORD_LINES)
        drag = ActionChains(browser).click_and_hold(browser.execute_script(FIND_SLIDERS)[0])
        for _ in range(8):
            drag.move_by_offset(-8, 0)
        drag.release().perform()
        WebDriverWait(browser, 60).until(says(1))
        assert browser.execute_script("return window.seen") == [f"{len(plan.stages[k][0])} vectors; under" for k in (3, 1)]
        elsewhere = [a for a in requests_of(browser) if not a.startswith((live_page, "data:", "blob:"))]
        assert elsewhere == []
