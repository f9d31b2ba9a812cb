"""The map that follows the pointer, in a real browser: what it shows is what Python would draw."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import choose, on_screen, open_view, png, surface, upload

from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures

GRID = (30, 45)
"""Of the first sample at the default size, as test_page_browser.py finds it."""

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
IDLE = "Point at a patch"


def canvas(page):
    return page.locator(".st-key-map canvas")


def line(page):
    return page.locator(".st-key-live p")


def ready(page):
    """The maps of all patches are there: what is pointed at is drawn, not waited for."""
    expect(line(page)).to_contain_text(IDLE)
    settle(page)


def point(page, key, cell, grid=GRID):
    page.mouse.move(*on_screen(page, key, cell, grid))
    expect_live(page, key, cell)


def expect_live(page, key, cell):
    expect(canvas(page)).to_have_attribute("data-at", f"{key} {cell[0]},{cell[1]}")
    expect(canvas(page)).to_be_visible()


def expect_outlined(page, key, cell):
    """The patch that is pointed at in the other picture."""
    mark = page.locator(f".st-key-{key} ins")
    expect(mark).to_be_visible()
    box, whole = mark.bounding_box(), surface(page, key).bounding_box()
    middle = (
        (box["y"] + box["height"] / 2 - whole["y"]) / whole["height"] * GRID[0],
        (box["x"] + box["width"] / 2 - whole["x"]) / whole["width"] * GRID[1],
    )
    assert middle == pytest.approx((cell[0] + 0.5, cell[1] + 0.5), abs=0.1)
    assert box["width"] == pytest.approx(whole["width"] / GRID[1], abs=0.5)


def pixels(uri):
    data = base64.b64decode(uri.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def drawn(page):
    return pixels(canvas(page).evaluate("canvas => canvas.toDataURL()"))


def source(page):
    return surface(page, "map").locator("img").get_attribute("src")


def pinned(page):
    return pixels(source(page))


def pin_pointed(page):
    """Click where the mouse is, and wait for Python's own picture of that patch."""
    old = source(page)
    page.mouse.down()
    page.mouse.up()
    expect(surface(page, "map").locator("img")).not_to_have_attribute("src", old)
    expect(canvas(page)).to_be_hidden()
    settle(page)


def expect_alike(one, other):
    assert one.shape == other.shape
    assert np.abs(one - other).mean() <= 3


def test_the_mouse_shows_at_once_what_a_click_then_pins(visit):
    page = visit()
    ready(page)
    rest = pinned(page)
    shown = []
    for key, cell in (("patches", (10, 17)), ("map", (3, 40)), ("patches", (25, 5))):
        point(page, key, cell)
        expect(line(page)).to_contain_text(
            f"What the patch in row {cell[0]}, column {cell[1]} look"
        )
        expect(page.locator(f".st-key-{key} .readout")).to_contain_text("Click to pin.")
        expect_outlined(page, "map" if key == "patches" else "patches", cell)
        expect(page.locator("html[data-live]")).to_have_count(
            1
        )  # what is said of the pinned map pales
        expect(page.locator(".st-key-pinned")).to_have_css("opacity", "0.35")
        shown.append(drawn(page))
        low, high = re.search(
            r": (\S+) to (\S+) attention weight", line(page).inner_text()
        ).groups()
        pin_pointed(page)
        expect_alike(shown[-1], pinned(page))
        bar = page.get_by_role("img", name=re.compile("Colour bar:")).get_attribute("alt")
        ends = re.search(r"from (\S+) to (\S+)", bar).groups()
        assert [float(low), float(high)] == pytest.approx([*map(float, ends)], rel=6e-3)
        expect(line(page)).to_have_text("This is the pinned map.")
    # The three are not one and the same.
    for one, other in ((shown[0], shown[1]), (shown[1], shown[2]), (shown[2], rest)):
        assert np.abs(one - other).mean() > 6
    last = pinned(page)
    point(page, "map", (15, 20))
    expect(page.locator(".st-key-map .readout")).to_contain_text("in the pinned map")
    page.mouse.move(2, 2)
    expect(canvas(page)).to_be_hidden()
    expect(line(page)).to_contain_text(IDLE)
    expect(page.locator(".st-key-pinned")).to_have_css("opacity", "1")
    assert np.array_equal(pinned(page), last)


LOOKS = {
    "from zero": lambda page: page.get_by_text("From zero", exact=True).click(),
    "cut": lambda page: page.locator(".st-key-clip label").click(),
    "smooth": lambda page: page.locator(".st-key-smooth label").click(),
    "who looks at it": lambda page: page.get_by_text("Who looks at it", exact=True).click(),
    "one head": lambda page: choose(page, "head", "head 3"),
    "colours": lambda page: choose(page, "colormap", "viridis"),
}


@pytest.fixture(scope="module")
def looked(server, browser):
    """One page for all ways to look; each begins with a patch pinned somewhere else."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(server)
    yield page
    context.close()


IN_SHORT = ("cut", "one head")
"""The others take their turn where there is time."""


@pytest.mark.parametrize(
    "look",
    [pytest.param(each, marks=[] if each in IN_SHORT else pytest.mark.long) for each in LOOKS],
)
def test_however_it_is_drawn_both_are_alike(looked, look):
    """Each look stays for those after it, so that they meet each other as well."""
    page = looked
    expect(line(page)).to_contain_text(IDLE, timeout=60_000)
    settle(page)
    number, old = list(LOOKS).index(look), source(page)
    LOOKS[look](page)
    page.mouse.move(2, 2)
    expect(surface(page, "map").locator("img")).not_to_have_attribute("src", old)
    settle(page)
    expect(line(page)).to_contain_text(IDLE)
    point(page, "patches", (4 + 4 * number, 40 - 6 * number))
    shown = drawn(page)
    pin_pointed(page)
    expect_alike(shown, pinned(page))
    page.mouse.move(2, 2)


def test_the_map_is_sent_once(visit):
    page = visit()
    ready(page)
    received = []
    socket = page.context.new_cdp_session(page)
    socket.send("Network.enable")
    socket.on(
        "Network.webSocketFrameReceived",
        lambda frame: received.append(len(frame["response"]["payloadData"])),
    )
    point(page, "patches", (10, 17))
    assert received == []  # nothing is asked of the server
    pin_pointed(page)
    page.locator(".st-key-alpha").get_by_role("slider").press("ArrowRight")
    expect(surface(page, "map").locator("img")).to_have_count(1)
    settle(page)
    assert 0 < max(received) < 1_000_000
    received.clear()
    old = source(page)
    page.locator(".st-key-layer").get_by_role("slider").press("ArrowLeft")
    expect(surface(page, "map").locator("img")).not_to_have_attribute("src", old)
    point(page, "patches", (12, 30))  # waits for the new layer's map
    assert max(received) > 1_000_000


def test_the_keyboard_moves_it_and_enter_pins(visit):
    page = visit()
    ready(page)
    surface(page, "patches").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect_live(page, "patches", (1, 1))
    expect(page.locator(".st-key-patches .readout")).to_have_text(
        "row 1, column 1. Press Enter to pin."
    )
    shown = drawn(page)
    page.keyboard.press("Enter")
    expect(canvas(page)).to_be_hidden()
    settle(page)
    expect_alike(shown, pinned(page))
    page.keyboard.press("ArrowRight")
    expect_live(page, "patches", (1, 2))
    surface(page, "patches").blur()
    expect(canvas(page)).to_be_hidden()


class Finger:
    """One finger on the screen."""

    def __init__(self, page):
        self.session = page.context.new_cdp_session(page)

    def _send(self, kind, *places):
        points = [{"x": x, "y": y} for x, y in places]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def down(self, place):
        self._send("touchStart", place)

    def move(self, *places):
        for place in places:
            self._send("touchMove", place)

    def up(self):
        self._send("touchEnd")


def between(start, end, steps=6):
    return [
        tuple(a + (b - a) * i / steps for a, b in zip(start, end, strict=True))
        for i in range(1, steps + 1)
    ]


def test_a_finger_scrubs_sideways_or_held_and_scrolls_up_and_down(visit):
    page = visit(**PHONE)
    ready(page)
    surface(page, "map").evaluate("e => e.scrollIntoView({ block: 'center' })")
    settle(page)
    main = page.get_by_test_id("stMain")
    top = main.evaluate("e => e.scrollTop")
    before = pinned(page)
    finger = Finger(page)
    box = surface(page, "map").bounding_box()

    def on(cell):
        row, col = cell
        x = box["x"] + box["width"] * (col + 0.5) / GRID[1]
        return x, box["y"] + box["height"] * (row + 0.5) / GRID[0]

    finger.down(on((10, 5)))
    finger.move(*between(on((10, 5)), on((10, 30))))
    page.wait_for_timeout(500)  # as long as a finger that is held would have needed
    expect_live(page, "map", (10, 30))
    finger.move(*between(on((10, 30)), on((20, 33))))  # once it points it goes anywhere
    expect_live(page, "map", (20, 33))
    finger.up()
    expect(canvas(page)).to_be_hidden()
    # Held still first.
    finger.down(on((15, 20)))
    expect_live(page, "map", (15, 20))
    finger.move(*between(on((15, 20)), on((25, 20))))
    expect_live(page, "map", (25, 20))
    finger.up()
    expect(canvas(page)).to_be_hidden()
    assert main.evaluate("e => e.scrollTop") == top
    assert np.array_equal(pinned(page), before)  # nothing was pinned
    # At once up: the page goes along.
    finger.down(on((15, 20)))
    finger.move(*between(on((15, 20)), (on((15, 20))[0], on((15, 20))[1] - 160), 12))
    page.wait_for_function("([e, top]) => e.scrollTop > top + 50", arg=[main.element_handle(), top])
    expect(canvas(page)).to_be_hidden()
    finger.up()
    settle(page)
    old = source(page)
    page.touchscreen.tap(*on_screen(page, "map", (12, 12), GRID))
    expect(surface(page, "map").locator("img")).not_to_have_attribute("src", old)


def test_without_a_live_map_a_long_press_picks_as_a_tap_does(visit):
    page = visit(query="?model=digits&picture=digit-3", **PHONE)
    ready(page)
    page.locator(".st-key-method").get_by_text("Attention rollout", exact=True).click()
    expect(line(page)).to_have_count(0)
    settle(page)
    finger, old = Finger(page), source(page)
    finger.down(on_screen(page, "map", (2, 3), (8, 8)))
    page.wait_for_timeout(600)
    finger.up()
    expect(surface(page, "map").locator("img")).not_to_have_attribute("src", old)
    expect(page).to_have_url(re.compile("query=2-3"))


def test_a_browser_that_cannot_unpack_the_maps_says_so(visit):
    page = visit(query="?model=digits&picture=digit-3", script="delete window.DecompressionStream")
    page.mouse.move(*on_screen(page, "map", (2, 3), (8, 8)))
    expect(line(page)).to_contain_text("cannot unpack")


def test_under_an_open_page_no_old_map_is_drawn_over_a_new_picture_or_model(visit):
    page = visit()
    ready(page)
    point(page, "patches", (10, 17))
    upload(page, "flat.png", png((600, 400), "teal"))
    # The pointer stays where it is, and all the time nothing of the cat is drawn over the new one.
    page.evaluate(
        """() => {
          window.wrong = [];
          const look = () => {
            const find = (key, what) =>
              [...document.querySelectorAll(`.st-key-${key} *`)]
                .map((e) => e.shadowRoot?.querySelector(what)).find(Boolean);
            const shown = find("map", "canvas");
            const [map, bare] = ["map", "patches"].map((key) => find(key, ".surface")?.dataset.scene);
            if (shown && !shown.hidden && !map.startsWith(bare)) window.wrong.push([map, bare]);
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    expect(page.get_by_role("button", name="flat.png", exact=True)).to_be_visible()  # in the tray
    settle(page)
    page.mouse.move(2, 2)
    ready(page)
    words = surface(page, "patches").get_attribute("aria-label")
    rows, cols = map(int, re.search(r"into (\d+) rows and (\d+) columns", words).groups())
    point(page, "patches", (2, 3), (rows, cols))
    shown = drawn(page)
    pin_pointed(page)
    expect_alike(shown, pinned(page))
    choose(page, "model", "Handwritten digits")
    page.mouse.move(2, 2)
    expect(page.get_by_text("8 rows × 8 columns")).to_be_visible()
    ready(page)
    point(page, "map", (3, 4), (8, 8))
    shown = drawn(page)
    pin_pointed(page)
    expect_alike(shown, pinned(page))
    assert page.evaluate("window.wrong") == []


@pytest.mark.long
def test_what_is_of_another_picture_layer_or_head_is_not_drawn_over(visit):
    """As in the moment in which the one picture is new and the other not yet."""
    page = visit()
    ready(page)
    for key in ("map", "patches"):
        name = surface(page, key).get_attribute("data-scene")
        surface(page, key).evaluate("e => { e.dataset.scene = 'another' }")
        page.mouse.move(*on_screen(page, "patches", (10, 17), GRID))
        expect(page.locator(".st-key-patches .readout")).to_contain_text("row 10, column 17")
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        expect(canvas(page)).to_have_count(0)
        expect(line(page)).to_contain_text(IDLE)
        surface(page, key).evaluate("(e, name) => { e.dataset.scene = name }", name)
    point(page, "patches", (12, 17))


@pytest.mark.long
def test_a_method_without_a_live_map_says_the_value_only(visit):
    page = visit()
    ready(page)
    page.locator(".st-key-method").get_by_text("Attention rollout", exact=True).click()
    expect(line(page)).to_have_count(0)
    settle(page)
    page.mouse.move(*on_screen(page, "map", (10, 17), GRID))
    expect(page.locator(".st-key-map .readout")).to_contain_text("row 10, column 17: ")
    expect(page.locator(".st-key-map .readout")).not_to_contain_text("pin")
    open_view(page, "All heads")
    expect(page.locator(".st-key-mosaic .readout")).not_to_be_empty()
