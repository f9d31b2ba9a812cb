"""Streamlit may end a call of a script after the call that followed it: what the latter did stays."""

from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from attnviz.ui import paste, player, stack

pytest_plugins = ["visits"]  # for its browser

RUN = """async ([text, data]) => {
  const module = new Blob([text], { type: "text/javascript" });
  const { default: run } = await import(URL.createObjectURL(module));
  const call = () => run({ data, parentElement: document.body, setTriggerValue() {} });
  const [former, latter] = [call(), call()];
  former();
  window.endLatter = latter;
}"""

IS_PASTED = """() => {
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File(["?"], "a.png", { type: "image/png" }));
  const event = new ClipboardEvent("paste", { clipboardData, cancelable: true });
  return !document.dispatchEvent(event);
}"""

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
FRAME = {"name": "layer 0", "short": "", "numbers": ["0", "1"], "words": "weight"}
FILM = {"atlas": PIXEL, "bar": PIXEL, "frames": [FRAME], "size": [1, 1], "columns": 1, "ratio": 1}


@pytest.fixture
def called_twice(browser):
    """Gives a page on which a script was called twice, and the former call ended last."""
    page = browser.new_page()
    page.set_default_timeout(10_000)

    def call(html, text, data):
        page.set_content(html)
        page.evaluate(RUN, [text, data])
        return page

    yield call
    page.close()


def script(module, name):
    return Path(module.__file__).with_name(name).read_text("utf-8")


def test_pasting_goes_on(called_twice):
    html = '<div data-testid="stFileUploader"><input type="file"></div>'
    page = called_twice(html, script(paste, "paste.js"), {"size": 100, "count": 9})
    assert page.evaluate(IS_PASTED)
    page.evaluate("() => endLatter()")
    assert not page.evaluate(IS_PASTED)


def test_a_film_is_drawn(called_twice):
    page = called_twice(player._HTML, script(player, "player.js"), FILM | {"alt": "Maps"})
    page.wait_for_selector('[aria-label="Maps: layer 0"]')


def test_a_stack_keeps_its_context(called_twice):
    text = "".join(script(stack, path) for path in stack.SCRIPTS)
    data = {"alt": "Maps", "table": [], "word": "head", "atlas": PIXEL, "palette": PIXEL}
    page = called_twice(stack._HTML, text, data)
    lost = "() => document.querySelector('canvas').getContext('webgl2').isContextLost()"
    assert not page.evaluate(lost)
    page.evaluate("() => endLatter()")
    assert page.evaluate(lost)
