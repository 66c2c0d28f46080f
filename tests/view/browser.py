"""A real browser without a screen, for tests of pages: Chromium, driven by Playwright.

Where there is none the tests are skipped with that reason, unless GRAVEL_BROWSER=required (as .ci/run says), where they fail.
"""

import io
import os

import numpy as np
import pytest

from gravel.bench.viewer import BROWSERS, FLAGS, find_browser
from gravel.view.viewer.show import View

READY = "window.gravel && window.gravel.state.ready && window.gravel.fine()"


@pytest.fixture(scope="module")
def browser():
    path = find_browser()
    if path is None:
        if os.environ.get("GRAVEL_BROWSER") == "required":
            pytest.fail(f"there is no browser here, and GRAVEL_BROWSER asks for one of {', '.join(BROWSERS)}")
        pytest.skip(f"there is no browser here: none of {', '.join(BROWSERS)} was found")
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are driven by playwright: pip install playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, monkeypatch):
    """A window of 900 x 600; what its page reports as an error fails the test, and so does a request to another host. It leaves a view
    before that is closed: what it asks for a moment later would be such an error."""
    window = browser.new_page(viewport={"width": 900, "height": 600}, bypass_csp=True)  # tests look into the page by eval
    window.errors, window.hosts = [], set()
    window.on("pageerror", lambda error: window.errors.append(str(error)))
    window.on("console", lambda message: window.errors.append(message.text) if message.type == "error" else None)
    window.on("request", lambda request: window.hosts.add(request.url.split("/")[2].split(":")[0]))
    close = View.close
    monkeypatch.setattr(View, "close", lambda view: (leave(window), close(view)))
    yield window
    errors, hosts = window.errors, window.hosts
    window.close()
    assert errors == []
    assert hosts <= {"127.0.0.1"}


def leave(page):
    """Go to an empty page, if this one is open."""
    if not page.is_closed():
        page.goto("about:blank")


def look(page, url):
    """Open a viewer's page and wait until its picture is drawn."""
    page.goto(url)
    settle(page)


def settle(page):
    page.wait_for_function(READY, timeout=60_000)


def pixels(page):
    """(h, w, 3) the picture that the page shows, without its panels."""
    from PIL import Image

    taken = page.screenshot(style="header, aside, footer, #picked, #notice { visibility: hidden !important; }")
    return np.asarray(Image.open(io.BytesIO(taken)).convert("RGB")).astype(int)
