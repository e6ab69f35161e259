"""A headless Chromium for the tests that look at pages as a reader does; they are skipped where there is none."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver on the PATH"
)

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
)


@contextmanager
def opened(page: Path | str, device: dict[str, Any] | None = None) -> Iterator[Any]:
    """A browser that has opened the file or address, on a device of its metrics if given; it is closed afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        if device is not None:
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        browser.get(page if isinstance(page, str) else page.as_uri())
        yield browser
    finally:
        browser.quit()


def requests_of(browser: Any) -> list[str]:
    """Every address that the browser asked for since it was opened, beside the page itself."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    addresses = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    here = browser.current_url.split("#")[0]
    return [address for address in addresses if address.split("#")[0] != here]


def complaints_of(browser: Any) -> list[str]:
    """What the page wrote to the console."""
    return [entry["message"] for entry in browser.get_log("browser")]
