"""The picker in a real browser: mouse, touch and keyboard, to the pixel, at every width.

Expected cells are worked out here from the page's box and the size of the picture on the screen,
not by the code under test.
"""

import itertools
import math
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from attnviz.tokens import TokenLayout
from attnviz.ui import asked, picker
from tests.test_corners import BOXES

pytest_plugins = ["visits"]  # for its browser

pytestmark = pytest.mark.long  # the page's own tests use it as well

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect

ROOT = Path(__file__).parents[2]

# As in picker_page.py. Column 0 lies wholly left of the picture.
WIDTH, HEIGHT = 700, 467
ROWS, COLS = 5, 8
LEFT, TOP, RIGHT, BOTTOM = -100.5, 41.25, 655.75, 520.0
CORNERS_AND_CENTRE = [(0, 1), (0, 7), (4, 1), (4, 7), (2, 4)]

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
SHARP = {"viewport": {"width": 1003, "height": 700}, "device_scale_factor": 2}
PHONE = {
    "viewport": {"width": 360, "height": 740},
    "device_scale_factor": 3,
    "has_touch": True,
    "is_mobile": True,
}


@pytest.fixture(scope="module")
def address():
    """A server for the test page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": "127.0.0.1",
    }
    command = [sys.executable, "-m", "streamlit", "run", "tests/browser/picker_page.py"]
    with subprocess.Popen(
        command + [f"--{name}={value}" for name, value in options.items()],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            assert any("URL:" in line for line in server.stdout), "the server did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()  # it has nothing to put away


@pytest.fixture(scope="module")
def windows(browser):
    """Gives the window of a kind, opened when first asked for: a warm one loads the page faster."""
    opened = {}

    def window(kind, scheme):
        if (str(kind), scheme) not in opened:
            opened[str(kind), scheme] = browser.new_context(**kind, color_scheme=scheme)
        return opened[str(kind), scheme]

    yield window
    for context in opened.values():
        context.close()


@pytest.fixture
def visit(address, windows):
    """Opens the page, in a session of its own; afterwards nothing may have gone wrong in it."""
    pages, mishaps = [], []
    expect.set_options(timeout=20_000)  # the machine may be busy with other tests

    def hear(message):
        if message.type == "error":
            mishaps.append(message.text)

    def note_way_out(request):
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and url.netloc != urlsplit(address).netloc:
            mishaps.append(request.url)

    def open_page(kind, scheme="light"):
        page = windows(kind, scheme).new_page()
        pages.append(page)
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", hear)
        page.on("request", note_way_out)
        page.goto(address)
        # The first visit waits for the server to import everything.
        expect(page.locator(".readout")).to_have_count(3, timeout=60_000)
        for key in ("photo", "mosaic", "part"):
            expect(readout(page, key)).not_to_be_empty()
        return page

    yield open_page
    for page in pages:
        page.close()
    expect.set_options(timeout=5_000)
    assert mishaps == []


AT_REST = """async element => {
  let last = "";
  for (let still = 0; still < 20;) {
    await new Promise(requestAnimationFrame);
    const now = JSON.stringify(element.getBoundingClientRect());
    still = now === last ? still + 1 : 0;
    last = now;
  }
}"""
"""Waits until the page has finished moving an element about: a third of a second in one place."""


def surface(page, key):
    return page.locator(f".st-key-{key} .surface")


def readout(page, key):
    return page.locator(f".st-key-{key} .readout")


def bounds(locator):
    """Left, top, width and height on the screen, unrounded."""
    return locator.evaluate(
        "e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height] }"
    )


def cell_on_screen(page, cell):
    """Left, top, right, bottom on the screen of the part of a photo's cell that can be seen."""
    left, top, width, height = bounds(surface(page, "photo"))
    row, col = cell
    x = [min(max(LEFT + (RIGHT - LEFT) * i / COLS, 0), WIDTH) for i in (col, col + 1)]
    y = [min(max(TOP + (BOTTOM - TOP) * i / ROWS, 0), HEIGHT) for i in (row, row + 1)]
    return (
        left + width * x[0] / WIDTH,
        top + height * y[0] / HEIGHT,
        left + width * x[1] / WIDTH,
        top + height * y[1] / HEIGHT,
    )


def middle(box):
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def expect_log(page, **facts):
    for name, value in facts.items():
        expect(page.locator(".st-key-log")).to_contain_text(f'"{name}": {value}')


def expect_outline(page, kind, cell):
    """The outline of that kind is drawn round that cell, to a tenth of a pixel."""
    rect = page.locator(f".st-key-photo .{kind} .over")
    expect(rect).to_be_visible()
    surface(page, "photo").evaluate(AT_REST)
    rect.evaluate("e => { e.style.stroke = 'none' }")  # bounds would count the stroke in
    left, top, width, height = bounds(rect)
    rect.evaluate("e => { e.style.stroke = '' }")
    assert (left, top, left + width, top + height) == pytest.approx(
        cell_on_screen(page, cell), abs=0.1
    )


@pytest.mark.parametrize("window", [DESKTOP, SHARP], ids=["desktop", "sharp"])
def test_mouse_picks_corners_and_centre_at_once(visit, window):
    page = visit(window)
    picked = []
    for cell in CORNERS_AND_CENTRE:
        page.mouse.click(*middle(cell_on_screen(page, cell)))
        picked.append(list(cell))
        expect_log(page, returned=picked, callbacks=picked, runs=len(picked) + 1)
        expect(readout(page, "photo")).to_contain_text("(chosen)")
        expect_outline(page, "chosen", cell)


@pytest.mark.parametrize("window", [DESKTOP, SHARP], ids=["desktop", "sharp"])
def test_cells_end_at_the_very_pixel(visit, window):
    page = visit(window)
    for row, col in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 6), (1, 7)]:
        left, top, right, bottom = cell_on_screen(page, (row, col))
        first = (math.ceil(left), math.ceil(top))
        last = (math.ceil(right) - 1, math.ceil(bottom) - 1)
        for x, y in (first, last, (first[0], last[1]), (last[0], first[1])):
            page.mouse.move(x, y)
            expect(readout(page, "photo")).to_have_text(
                f"row {row}, column {col}: {(row * COLS + col) / 100:.3g} bits"
            )
            expect_outline(page, "hover", (row, col))


def test_a_point_on_the_corner_of_four_cells_is_of_the_one_that_begins_there(browser):
    """As `test_corners.py` has it of Python's rule, by the picker's own edges."""
    script = Path(picker.__file__).with_name("picker.js").read_text("utf-8")
    page = browser.new_page()
    page.set_content(f"<script type=module>{script}\nwindow.cellAt = cellAt;</script>")
    page.wait_for_function("() => window.cellAt")
    for box in BOXES:
        size, grid = (math.ceil(box[2]), math.ceil(box[3])), (30, 44)
        cells = picker.CellGrid.on(size, grid, box)
        middles = asked.Ground(TokenLayout((), (15, 22)), box)
        every = [(row, col) for row in range(15) for col in range(22)]
        on_picture = {
            cell: (x, y)
            for cell in every
            for x, y in [middles.centre(cell)]
            if 0 <= x < size[0] and 0 <= y < size[1]
        }
        found = page.evaluate(
            """([data, points]) => {
              const seen = { left: 0, top: 0, width: data.size[0], height: data.size[1] };
              const surface = { getBoundingClientRect: () => seen };
              return points.map(([clientX, clientY]) => cellAt(data, surface, { clientX, clientY }));
            }""",
            [
                {
                    "size": size,
                    "ys": cells.ys,
                    "xs": cells.xs,
                    "rows": (cells.rows[0], cells.rows[-1]),
                    "cols": (cells.cols[0], cells.cols[-1]),
                },
                list(on_picture.values()),
            ],
        )
        assert len(found) > 100
        assert found == [[2 * row + 1, 2 * col + 1] for row, col in on_picture]
    page.close()


def test_a_click_between_whole_pixels_picks_what_is_outlined(visit):
    page = visit(SHARP)
    left, top, _, bottom = cell_on_screen(page, (1, 4))
    # To one side of the cell's edge, and on the far side of it once rounded down.
    y = (top + bottom) / 2
    x = left + 0.02
    assert math.floor(x) < left
    page.mouse.click(x, y)
    expect_outline(page, "hover", (1, 4))
    expect_log(page, returned=[[1, 4]])


def test_a_click_without_a_place_picks_the_cursor(visit):
    page = visit(DESKTOP)
    page.mouse.click(*middle(cell_on_screen(page, (4, 7))))
    expect_log(page, returned=[[4, 7]])
    page.keyboard.press("ArrowUp")
    surface(page, "photo").dispatch_event("click")  # as assistive technology does
    expect_log(page, returned=[[4, 7], [3, 7]])


def test_beside_the_grid_nothing_is_picked(visit):
    page = visit(DESKTOP)
    left, top, width, height = bounds(surface(page, "photo"))
    x_end = left + width * RIGHT / WIDTH
    y_start = top + height * TOP / HEIGHT
    hint = "Click or tap a patch; or arrow keys to move, Enter to pick."
    for x, y in ((x_end + 1, top + height / 2), (left + width / 2, y_start - 1), (left, top)):
        page.mouse.click(x, y)
        expect(page.locator(".st-key-photo .hover")).to_be_hidden()
    surface(page, "photo").blur()
    expect(readout(page, "photo")).to_have_text(hint)
    page.mouse.click(x_end - 1, y_start + 2)
    expect_log(page, returned=[[0, 7]], runs=2)  # the clicks before it caused no run


def test_a_single_tap_picks_on_a_phone(visit):
    page = visit(PHONE)
    picked = []
    for cell in CORNERS_AND_CENTRE:
        left, top, right, bottom = cell_on_screen(page, cell)
        page.touchscreen.tap(left + 2, top + 2)
        picked.append(list(cell))
        expect_log(page, returned=picked)
        page.touchscreen.tap(right - 2, bottom - 2)
        picked.append(list(cell))
        expect_log(page, returned=picked)
        expect_outline(page, "chosen", cell)
        expect(page.locator(".st-key-photo .hover")).to_be_hidden()  # a finger does not hover
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_swipe_over_the_picture_scrolls_the_page_and_picks_nothing(visit):
    page = visit(PHONE)
    x, y = middle(cell_on_screen(page, (2, 4)))
    finger = page.context.new_cdp_session(page)

    def touch(kind, *points):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    main = page.get_by_test_id("stMain")
    main.evaluate("e => { e.onscrollend = () => { window.at_rest = true } }")
    touch("touchStart", {"x": x, "y": y})
    for step in [*range(10, 130, 10), *[120, 121] * 5]:  # halts at the end, so as not to fling
        touch("touchMove", {"x": x, "y": y - step})
    touch("touchEnd")
    page.wait_for_function("window.at_rest")
    assert main.evaluate("e => e.scrollTop") > 50
    page.touchscreen.tap(*middle(cell_on_screen(page, (3, 3))))
    expect_log(page, returned=[[3, 3]], runs=2)


def test_the_keyboard_walks_picks_and_stays(visit):
    page = visit(DESKTOP)
    picture = surface(page, "photo")
    cursor = page.locator(".st-key-photo .cursor")
    expect(cursor).to_be_hidden()
    page.get_by_role("button", name="Choose 4, 7").focus()
    page.keyboard.press("Tab")
    expect(picture).to_be_focused()
    expect_outline(page, "cursor", (0, 1))  # the first cell that can be seen
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(readout(page, "photo")).to_have_text("row 1, column 3: 0.11 bits")
    page.keyboard.press("Enter")
    expect_log(page, returned=[[1, 3]])
    expect(picture).to_be_focused()
    for _ in range(10):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
    expect_outline(page, "cursor", (4, 7))
    expect_outline(page, "chosen", (1, 3))
    page.keyboard.press("Space")
    expect_log(page, returned=[[1, 3], [4, 7]])
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollTop") == 0
    page.keyboard.press("Tab")
    expect(picture).not_to_be_focused()  # no trap
    expect(cursor).to_be_hidden()


def test_keys_after_a_click_go_on_from_the_clicked_cell(visit):
    page = visit(DESKTOP)
    page.mouse.click(*middle(cell_on_screen(page, (2, 4))))
    expect_log(page, returned=[[2, 4]])
    expect(page.locator(".st-key-photo .cursor")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    expect_outline(page, "cursor", (2, 3))
    page.keyboard.press("Enter")
    expect_log(page, returned=[[2, 4], [2, 3]])


WATCH = """img => {
    const brush = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    window.frames_seen = [];
    const look = () => {
        brush.clearRect(0, 0, 1, 1);
        brush.drawImage(img, 0, 0, 1, 1);
        const [, , blue, alpha] = brush.getImageData(0, 0, 1, 1).data;
        window.frames_seen.push([blue, alpha, img.getBoundingClientRect().height]);
        requestAnimationFrame(look);
    };
    look();
}"""


def test_a_new_picture_comes_without_a_flash_and_leaves_the_keyboard_where_it_was(visit):
    page = visit(DESKTOP)
    picture = surface(page, "photo")
    page.get_by_role("button", name="Choose 4, 7").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    image = page.locator(".st-key-photo img")
    height = bounds(image)[3]
    image.evaluate(WATCH)
    # Not a real click, which would take the focus.
    page.get_by_role("switch", name="Other picture").dispatch_event("click")
    page.wait_for_function("window.frames_seen.at(-1)[0] > 200")
    seen = page.evaluate("window.frames_seen")
    assert all(alpha == 255 for _, alpha, _ in seen)
    assert all(abs(blue - 20) < 8 or abs(blue - 220) < 8 for blue, _, _ in seen)
    assert {h for _, _, h in seen} == {height}
    expect(picture).to_be_focused()
    expect_outline(page, "cursor", (1, 2))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect_log(page, returned=[[1, 3]])


def test_outlines_and_cells_follow_the_width(visit):
    page = visit(DESKTOP)
    page.get_by_role("button", name="Choose 4, 7").click()
    expect(readout(page, "photo")).to_contain_text("row 4, column 7")
    picked = []
    for width in (1280, 500, 360, 901):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("innerWidth === " + str(width))
        surface(page, "photo").evaluate(AT_REST)
        _, _, wide, high = bounds(surface(page, "photo"))
        assert wide / high == pytest.approx(WIDTH / HEIGHT, abs=0.005)
        expect_outline(page, "chosen", picked[-1] if picked else (4, 7))
        cell = CORNERS_AND_CENTRE[len(picked)]
        page.mouse.click(*middle(cell_on_screen(page, cell)))
        picked.append(list(cell))
        expect_log(page, returned=picked)


def test_a_tall_picture_fits_on_the_screen(visit):
    page = visit(DESKTOP)
    page.get_by_text("Tall picture").click()
    expect(page.locator(".st-key-photo svg")).to_have_attribute("viewBox", "0 0 300 900")
    left, top, width, height = bounds(surface(page, "photo"))
    assert height <= 0.9 * 900 + 0.1
    assert width / height == pytest.approx(1 / 3, abs=0.005)
    # Its box is (30, -40, 310, 800): cells of 35 × 168 pixels.
    on_screen = height / 900
    page.mouse.click(left + 31 * on_screen, top + 799 * on_screen)
    expect_log(page, returned=[[4, 0]])
    page.mouse.click(left + 28 * on_screen, top + 790 * on_screen)  # left of the grid
    page.mouse.click(left + 40 * on_screen, top + 802 * on_screen)  # below it
    page.mouse.click(left + 299 * on_screen, top + 127 * on_screen)
    expect_log(page, returned=[[4, 0], [0, 7]])


def test_pickers_on_a_page_keep_to_themselves(visit):
    page = visit(DESKTOP)
    left, top, width, height = bounds(surface(page, "mosaic"))
    page.mouse.click(left + width * 11.5 / 12, top + height * 3.5 / 4)
    expect_log(page, head=[3, 11], returned=[], callbacks=[])
    expect(readout(page, "mosaic")).to_have_text("L3, H11 (chosen)")
    page.mouse.click(*middle(cell_on_screen(page, (0, 7))))
    expect_log(page, head=[3, 11], returned=[[0, 7]])
    expect(readout(page, "mosaic")).to_have_text("L3, H11 (chosen)")


def test_a_pick_in_a_fragment_runs_only_the_fragment(visit):
    page = visit(DESKTOP)
    part = surface(page, "part")
    part.scroll_into_view_if_needed()
    left, top, width, height = bounds(part)
    picked = []
    for row, col in [(0, 0), (1, 1), (0, 1)]:
        page.mouse.click(left + width * (col + 0.5) / 2, top + height * (row + 0.5) / 2)
        picked.append([row, col])
        expect(page.get_by_text(f"fragment {picked}")).to_be_visible()
    expect_log(page, runs=1)


def test_many_clicks_in_a_row_do_no_harm(visit):
    page = visit(DESKTOP)
    x, y = middle(cell_on_screen(page, (1, 2)))
    page.mouse.dblclick(x, y)
    page.mouse.dblclick(x, y)
    expect_outline(page, "chosen", (1, 2))
    for cell in CORNERS_AND_CENTRE:
        page.mouse.click(*middle(cell_on_screen(page, cell)))
    last = list(CORNERS_AND_CENTRE[-1])
    page.wait_for_function(
        'last => new RegExp(`"callbacks": [^a-z]*${last}\\\\]\\\\]`)'
        ".test(document.querySelector('.st-key-log').innerText)",
        arg=rf"\[{last[0]}, {last[1]}",
    )
    expect(readout(page, "photo")).to_have_text("row 2, column 4: 0.2 bits (chosen)")
    expect_outline(page, "chosen", (2, 4))


def test_it_comes_back_after_it_was_gone(visit):
    page = visit(DESKTOP)
    gone = page.get_by_text("Remove the pickers")
    gone.click()
    expect(page.locator(".st-key-photo")).to_have_count(0)
    gone.click()
    page.mouse.click(*middle(cell_on_screen(page, (4, 1))))
    expect_log(page, returned=[[4, 1]])


def test_the_grid_can_be_hidden(visit):
    page = visit(DESKTOP)
    lines = page.locator(".st-key-photo path.over")
    expect(lines).to_have_attribute("d", re.compile("M.*H.*V"))
    page.get_by_text("Grid", exact=True).click()
    expect(lines).to_have_attribute("d", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_in_the_colours_of_the_page(visit, scheme):
    page = visit(DESKTOP, scheme)
    colour = "e => getComputedStyle(e).color"
    ours = readout(page, "mosaic").evaluate(colour)
    assert ours == page.get_by_test_id("stApp").evaluate(colour)
    assert (sum(map(int, re.findall(r"\d+", ours)[:3])) > 3 * 128) == (scheme == "dark")


def test_labels_name_every_tile_or_every_other_but_never_collide(visit):
    page = visit(PHONE)
    page.set_viewport_size({"width": 1280, "height": 900})
    labels = page.locator(".st-key-mosaic .col-names span")
    seen = page.locator(".st-key-mosaic .col-names span:not([style*=hidden])")
    expect(seen).to_have_count(12)
    page.get_by_text("24 heads").click()
    expect(labels).to_have_count(24)
    page.set_viewport_size({"width": 360, "height": 740})
    expect(seen).not_to_have_count(24)
    places = [bounds(label) for label in seen.all()]
    assert all(a[0] + a[2] <= b[0] for a, b in itertools.pairwise(places))
    assert len(places) >= 8
    left, _, width, _ = bounds(surface(page, "mosaic"))
    for label, place in zip(seen.all(), places, strict=True):
        head = int(label.inner_text()[1:])
        assert place[0] + place[2] / 2 == pytest.approx(left + width * (head + 0.5) / 24, abs=0.5)


def test_it_tells_a_screen_reader_what_it_is(visit):
    page = visit(DESKTOP)
    picture = page.get_by_role("application", name="A colour gradient. Arrow keys move")
    expect(picture).to_have_count(1)
    expect(page.get_by_alt_text("A colour gradient")).to_have_count(1)
    expect(readout(page, "photo")).to_have_attribute("aria-live", "polite")
