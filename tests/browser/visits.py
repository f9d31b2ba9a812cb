"""Fixtures: one server and one browser for all tests of the page, and visits to it.

A plugin and not a conftest.py, which would hide the one in the folder above.
"""

import os
from urllib.parse import urlsplit

import pytest
from playwright import sync_api

from scripts.page_server import open_browser, serving, settle

DESKTOP = {"viewport": {"width": 1280, "height": 900}}


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The page's address; the hub is out of reach, whatever the machine."""
    home = tmp_path_factory.mktemp("hub")
    with serving(HF_HUB_OFFLINE="1", HF_HOME=str(home), OMP_NUM_THREADS="2") as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    """One browser; a visit gets a profile of its own."""
    with sync_api.sync_playwright() as playwright:
        try:
            started = open_browser(playwright)
        except sync_api.Error as error:
            if os.environ.get("ATTNVIZ_REQUIRE_ALL"):
                raise
            pytest.skip(f"no browser: set ATTNVIZ_CHROMIUM to one's path ({error.message[:80]})")
        yield started
        started.close()


@pytest.fixture
def visit(server, browser):
    """Opens the page, in a new window or in a new tab of one; gives it when it is drawn."""
    contexts, mishaps = [], []

    def hear(page):
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda said: said.type == "error" and mishaps.append(said.text))
        page.on("request", lambda request: note(request.url))
        page.on("websocket", lambda socket: note(socket.url))

    def note(url):
        """Nothing leaves the page's own host."""
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(server).netloc:
            mishaps.append(url)

    def open_page(beside=None, query="", ready=".st-key-map .readout", script="", **window):
        if beside is None:
            contexts.append(browser.new_context(**(window or DESKTOP)))
        page = (beside.context if beside else contexts[-1]).new_page()
        page.set_default_timeout(60_000)
        sync_api.expect.set_options(timeout=45_000)  # one machine may be busy with other tests
        hear(page)
        if script:
            page.add_init_script(script)
        page.goto(f"{server}/{query}")
        page.locator(ready).wait_for()
        settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    sync_api.expect.set_options(timeout=5_000)
    assert mishaps == []
