"""Each view in a real browser, on a desktop and on a phone: opened, looked at, and moved."""

import os
import re
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import choose, open_view

from attnviz.ui.views import VIEWS
from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures

SMALL = "?model=digits&picture=digit-3"
"""A model that answers at once: what is tried here is the page."""

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}

DRAWN = {
    "map": ".st-key-map .readout",
    "heads": ".st-key-mosaic .readout",
    "stack": ".st-key-stack canvas",
    "layers": ".st-key-film canvas, .st-key-film img",
    "methods": ".st-key-map-similarity .readout",
    "compare": ".st-key-compare-here .readout",
    "patches": ".st-key-seen-patches .readout",
    "numbers": ".js-plotly-plot .main-svg",
    "mask": "img.picture",
    "trust": ".st-key-tested .readout",
    "export": "img.picture",
}
"""View → what is there when it is drawn."""


def keep(page, name):
    """A picture of the page, for who wants to look at it: in the folder that a variable names."""
    if folder := os.environ.get("ATTNVIZ_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png")


def wordless(page):
    """Pictures that say nothing to who cannot see them."""
    return page.evaluate(
        """() => [...document.querySelectorAll('img, canvas, [role=img]')]
          .filter(e => e.checkVisibility() && !e.closest('[aria-hidden=true]'))
          .filter(e => !e.closest('[data-testid=stDataFrame]'))  // it holds a table
          .filter(e => !(e.alt || e.ariaLabel || e.getAttribute('aria-labelledby')
            || e.closest('[aria-label]')))
          .map(e => e.outerHTML.slice(0, 120))"""
    )


COVERED = """() => [...document.querySelectorAll('.stDataFrame')].flatMap(table => {
  const place = table.closest('.stElementContainer'), above = place.previousElementSibling;
  const bar = place.querySelector('[data-testid=stElementToolbar]');
  const shown = above && bar && bar.checkVisibility({ opacityProperty: true });
  const overlap = shown
    ? above.getBoundingClientRect().bottom - bar.getBoundingClientRect().top : 0;
  return overlap > 1 ? [above.innerText.slice(0, 80)] : [];
})"""
"""What stands below the buttons of a table, which float above it."""


@pytest.mark.parametrize("window", ["desktop", "phone"])
def test_every_view_opens_nothing_sticks_out_and_every_picture_has_words(visit, window):
    page = visit(query=SMALL, **(PHONE if window == "phone" else {}))
    width = page.viewport_size["width"]
    for name, view in VIEWS.items():
        open_view(page, view.label)
        page.locator(DRAWN[name]).first.wait_for()
        settle(page)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        error = page.get_by_test_id("stMain").get_by_test_id("stAlertContentError")
        expect(error).to_have_count(0)
        assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= width, name
        assert wordless(page) == [], name
        assert page.evaluate(COVERED) == [], name
        keep(page, f"{window}-{name}")


def test_a_view_is_reached_and_left_by_keyboard_alone(visit):
    page = visit(query=SMALL)
    first = page.locator(".st-key-view button").first
    first.focus()
    for _ in range(len(VIEWS) * 2):
        focused = page.evaluate("document.activeElement.textContent")
        if "All heads" in focused:
            break
        page.keyboard.press("ArrowRight")
        if page.evaluate("document.activeElement.textContent") == focused:
            page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    mosaic = page.locator(".st-key-mosaic .surface")
    mosaic.wait_for()
    settle(page)
    mosaic.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".st-key-map .readout").wait_for()
    expect(page).to_have_url(re.compile("layer=1"))
    expect(page).to_have_url(re.compile("head=1"))


MOVED = [
    ("One map", "direction", "Who looks at it"),
    ("All heads", "sort", "entropy: how widely it looks"),
    ("Methods", "methods_scale", "All by rank"),
    ("Head metrics", "metric", "Attention entropy"),
    ("Export", "export_format", "PDF"),
]
"""A view, the key of a control, and what is chosen there."""


def test_a_control_is_moved_and_the_page_follows(visit):
    page = visit(query=SMALL)
    for view, key, act in MOVED:
        open_view(page, view)
        control = page.locator(f".st-key-{key}")
        control.wait_for()
        settle(page)
        if control.get_by_role("combobox").count():
            choose(page, key, act)
            expect(control.get_by_role("combobox")).to_have_value(act)
        else:
            control.get_by_text(act, exact=True).click()
        settle(page)
        expect(page.get_by_test_id("stException")).to_have_count(0)


def test_figures_are_kept_and_taken_out_by_keyboard_alone(visit):
    page = visit(query=f"{SMALL}&view=export", ready=".st-key-keep_figure button")
    button = page.locator(".st-key-keep_figure").get_by_role("button")
    for kind in ("This map", "Compared"):
        page.locator(".st-key-export_what").get_by_text(kind, exact=True).click()
        settle(page)
        button.focus()
        page.keyboard.press("Enter")
        settle(page)
    with page.expect_download() as coming:
        page.get_by_role("button", name="The set as one zip (2 figures)").click()
    with zipfile.ZipFile(coming.value.path()) as files:
        assert len([name for name in files.namelist() if name.endswith(".pdf")]) == 2
    out = page.locator(".st-key-figure_set").get_by_role("button")
    expect(out).to_have_count(2)
    expect(out.first).to_have_accessible_name(re.compile("^Take .*digits.* out of the set$"))
    out.first.focus()
    page.keyboard.press("Enter")
    expect(out).to_have_count(1)


def test_a_running_test_is_stopped_and_can_be_run_again(visit):
    page = visit(query="?view=trust", ready=".st-key-tested .readout")
    run = page.get_by_role("button", name=re.compile("^.*Run the model on about"))
    stop = page.locator(".st-key-trust_stop").get_by_role("button")
    run.click()
    expect(page.get_by_text(re.compile("Testing the map: picture [2-9]"))).to_be_visible()
    stop.click()
    expect(stop).to_have_count(0)
    settle(page)
    expect(page.get_by_text("Testing the map")).to_have_count(0)
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    expect(run).to_be_enabled()


def contrast(page, selector):
    """WCAG 2.1's contrast of a text with what lies behind it: (L1 + 0.05) / (L2 + 0.05)."""
    return page.locator(selector).first.evaluate(
        """element => {
          const pen = new OffscreenCanvas(1, 1).getContext("2d");
          const paint = (colour) => (pen.fillStyle = colour, pen.fillRect(0, 0, 1, 1));
          const grounds = [];
          for (let behind = element; behind; behind = behind.parentElement ?? behind.getRootNode().host)
            grounds.unshift(getComputedStyle(behind).backgroundColor);
          const light = () => [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3)
            .map(part => part / 255)
            .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
            .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
          grounds.forEach(paint);
          const ground = light();
          paint(getComputedStyle(element).color);
          const [dark, bright] = [ground, light()].sort((p, q) => p - q);
          return (bright + 0.05) / (dark + 0.05);
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_on_their_ground(visit, scheme):
    page = visit(query=SMALL, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    for selector in (
        "[data-testid=stCaptionContainer] p",
        "[data-testid=stMarkdownContainer] p",
        "[data-testid=stSidebar] label p",
        ".st-key-view button p",
        ".st-key-map .readout",
        "h1",
        "h3",
    ):
        assert contrast(page, selector) >= 4.5, selector
