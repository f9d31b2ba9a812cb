"""The stack in a real browser: where sheets lie, what is under a point, and what a person does.

Expected places come from a camera written here a second time, by turning the world, not from the
code under test.
"""

import io
import json
import re
from itertools import pairwise, product
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from attnviz.colour import colourise
from attnviz.scale import Scale
from attnviz.ui import stack
from scripts.page_server import serving, settle

pytest_plugins = ["visits"]  # for its browser

pytestmark = pytest.mark.long  # the page's own tests use it as well

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect

DESKTOP = {"viewport": {"width": 1280, "height": 760}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}

FEW = {"layers": 3, "heads": 4, "aspect": 1.5, "missing": [(0, 3), (1, 2), (1, 3)]}
MANY = {"layers": 24, "heads": 16, "aspect": 1.5, "missing": []}
USUAL = {"yaw": -30, "pitch": 28, "zoom": 1, "pan": [0, 0]}
SPACING = 0.75


class Twin:
    """The stack's sheets on a canvas, by turning the world about the middle of all corners."""

    def __init__(self, model, size, view=USUAL):
        wide, deep = min(1, model["aspect"]), min(1, 1 / model["aspect"])
        pitch = wide + 0.12
        self.sheets, flat = {}, []
        for layer in range(model["layers"]):
            y = SPACING * max(deep, 0.3) * (layer + 1.5)
            there = [h for h in range(model["heads"]) if (layer, h) not in model["missing"]]
            xs = [(h - (model["heads"] - 1) / 2) * pitch for h in there]
            for head, x in zip(there, xs, strict=True):
                self.sheets[layer, head] = rectangle(x - wide / 2, x + wide / 2, y, deep / 2)
            left, right = xs[0] - wide / 2 - 0.08, xs[-1] + wide / 2 + 0.08
            flat += rectangle(left, right, y, deep / 2 + 0.08)
        times = min(2.8, max(1, (model["heads"] * pitch - 0.12) / wide))
        flat += rectangle(-times * wide / 2, times * wide / 2, 0, times * deep / 2)
        corners = np.array(flat)
        low, high = corners.min(0), corners.max(0)
        self.middle, self.away = (low + high) / 2, 5 * np.linalg.norm((high - low) / 2)
        turn, tilt = np.deg2rad(-view["yaw"]), np.deg2rad(view["pitch"])
        about_y = [[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]]
        about_x = [[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]]
        self.turned = np.array(about_x) @ np.array(about_y)
        seen = np.array([self.flat(corner)[:2] for corner in corners])
        first, last = seen.min(0), seen.max(0)
        width, height = size
        room = np.array([max(width - 68, width / 2), max(height - 52, height / 2)])
        self.scale = (room / (last - first)).min() * view["zoom"]
        centre = np.array([width, height]) / 2 + view["pan"]
        self.origin = centre - self.scale * (first + last) / 2
        self.outlines = {
            place: np.array([self.project(corner) for corner in corners])
            for place, corners in self.sheets.items()
        }

    def flat(self, point):
        x, y, z = self.turned @ (np.array(point) - self.middle)
        return np.array([x, -y, self.away - z]) / np.array([self.away - z, self.away - z, 1])

    def project(self, point):
        x, y, distance = self.flat(point)
        return (*(self.origin + self.scale * np.array([x, y])), distance)

    def centre(self, layer, head):
        return self.project(np.mean(self.sheets[layer, head], axis=0))[:2]

    def at(self, x, y):
        """The nearest sheet whose outline holds the point; 1/distance is linear on the screen."""
        hits = []
        for place, points in self.outlines.items():
            ahead = np.roll(points, -1, axis=0) - points
            side = ahead[:, 0] * (y - points[:, 1]) - ahead[:, 1] * (x - points[:, 0])
            if (side > 0).all() or (side < 0).all():
                plane = np.column_stack([points[:3, :2], np.ones(3)])
                near = np.linalg.solve(plane, 1 / points[:3, 2]) @ [x, y, 1]
                hits.append((-near, place))
        return min(hits)[1] if hits else None


def rectangle(left, right, y, half):
    return [(left, y, -half), (right, y, -half), (right, y, half), (left, y, half)]


VIEWS = [
    USUAL,
    {"yaw": 0, "pitch": 90, "zoom": 1, "pan": [0, 0]},
    {"yaw": 140, "pitch": 5, "zoom": 1, "pan": [0, 0]},  # some sheets are seen from below
    {"yaw": -68, "pitch": 22, "zoom": 3, "pan": [-80, 45]},
]
WITHIN = {"few": FEW, "many": MANY}


@pytest.fixture(scope="module")
def numbers(browser):
    """The module of numbers alone, in an empty page."""
    page = browser.new_page()
    text = Path(stack.__file__).with_name("stack_scene.js").read_text("utf-8")
    names = "sceneOf, cameraOf, cornersOf, matrixOf, sheetAt, neighbour"
    page.set_content(f"<script type=module>{text}\nwindow.stack = {{ {names} }};</script>")
    page.wait_for_function("window.stack")
    yield page
    page.close()


def shape(model):
    there = [
        [(layer, head) not in model["missing"] for head in range(model["heads"])]
        for layer in range(model["layers"])
    ]
    return {
        "layers": model["layers"],
        "heads": model["heads"],
        "aspect": model["aspect"],
        "there": there,
    }


def test_corners_lie_where_a_hand_calculation_puts_them(numbers):
    found = numbers.evaluate(
        "(shape) => { const scene = stack.sceneOf(shape, 0.75);"
        " return [scene.slabs[2].sheets[2], scene.slabs[0], scene.floor].map(stack.cornersOf) }",
        shape(FEW),
    )
    # Sheets are 1 wide and 2/3 deep, 0.12 apart; layers 0.75 · 2/3 = 0.5 apart, the first at 0.75.
    third = 1 / 3
    expected = [
        # head 2: its middle is at (2 - 1.5) · 1.12 = 0.56; layer 2 at 0.75 + 2 · 0.5
        rectangle(0.06, 1.06, 1.75, third),
        # the slab of heads 0 to 2 in layer 0: from -1.68 - 0.5 - 0.08 to 0.56 + 0.5 + 0.08
        rectangle(-2.26, 1.14, 0.75, third + 0.08),
        # the picture: 2.8 times a sheet
        rectangle(-1.4, 1.4, 0, 2.8 * third),
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "view"),
    [*((FEW, view) for view in VIEWS), (MANY, VIEWS[0]), (MANY, VIEWS[3])],
    ids=["usual", "above", "low", "near", "many", "many, near"],
)
def test_a_line_of_sight_meets_the_sheet_that_is_drawn_nearest(numbers, model, view):
    size = (700, 640)
    twin = Twin(model, size, view)
    chance = np.random.default_rng(5)
    points = chance.uniform((0, 0), size, (60, 2)).tolist()
    points += [list(twin.centre(*place)) for place in list(twin.sheets)[:: len(twin.sheets) // 9]]
    found = numbers.evaluate(
        "([shape, view, points]) => { const scene = stack.sceneOf(shape, 0.75);"
        " const camera = stack.cameraOf(scene, view, 700, 640);"
        " return points.map(([x, y]) => { const at = stack.sheetAt(scene, camera, x, y);"
        " return at && [at.layer, at.head] }) }",
        [shape(model), view, points],
    )
    expected = [twin.at(x, y) for x, y in points]
    assert [place and tuple(place) for place in found] == expected
    assert sum(place is not None for place in expected) > 5


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view['yaw']}, {view['pitch']}")
def test_what_is_drawn_and_what_is_picked_lie_at_one_place(numbers, view):
    """The matrix that the graphics card gets, the labels' projection, and the twin's."""
    twin = Twin(FEW, (700, 640), view)
    points = [corner for corners in twin.sheets.values() for corner in corners]
    matrix, projected = numbers.evaluate(
        "([shape, view, points]) => { const camera ="
        " stack.cameraOf(stack.sceneOf(shape, 0.75), view, 700, 640);"
        " return [[...stack.matrixOf(camera)], points.map(camera.project)] }",
        [shape(FEW), view, points],
    )
    expected = np.array([twin.project(point) for point in points])
    np.testing.assert_allclose(projected, expected, rtol=1e-9)
    clip = np.column_stack([points, np.ones(len(points))]) @ np.array(matrix).reshape(4, 4)
    flat = clip[:, :2] / clip[:, 3:]
    pixels = np.column_stack([(flat[:, 0] + 1) * 350, (1 - flat[:, 1]) * 320])
    np.testing.assert_allclose(pixels, expected[:, :2], atol=1e-3)


@pytest.mark.parametrize(
    ("start", "up", "on", "goal"),
    [
        ((2, 3), -1, 0, (1, 1)),  # layer 1 has heads 0 and 1 alone: the nearest
        ((1, 1), 0, 1, (1, 1)),  # the last of its layer
        ((0, 0), -1, 0, (0, 0)),
        ((0, 2), 1, 0, (1, 1)),
        ((2, 0), 1, 0, (2, 0)),
        ((0, 1), 0, 1, (0, 2)),
    ],
)
def test_arrows_go_to_sheets_that_are_there(numbers, start, up, on, goal):
    found = numbers.evaluate(
        "([shape, start, up, on]) => { const at ="
        " stack.neighbour(stack.sceneOf(shape, 0.75), start, up, on); return [at.layer, at.head] }",
        [shape(FEW), {"layer": start[0], "head": start[1]}, up, on],
    )
    assert tuple(found) == goal


@pytest.fixture(scope="module")
def address():
    """A server for the test page."""
    with serving(script="tests/browser/stack_page.py") as at:
        yield at


@pytest.fixture(scope="module")
def windows(browser):
    """Gives the window of a kind, opened when first asked for: a warm one loads the page faster."""
    opened = {}

    def window(options):
        if str(options) not in opened:
            opened[str(options)] = browser.new_context(**options)
        return opened[str(options)]

    yield window
    for context in opened.values():
        context.close()


@pytest.fixture
def visit(address, windows):
    """Opens the page, in a session of its own; afterwards nothing may have gone wrong in it."""
    pages, mishaps = [], []
    expect.set_options(timeout=20_000)  # the machine may be busy with other tests

    def note_way_out(request):
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and url.netloc != urlsplit(address).netloc:
            mishaps.append(request.url)

    def open_page(kind=DESKTOP, maps="few", *, before="", shown=".scene[data-frames]", **options):
        page = windows({**kind, "reduced_motion": "reduce", **options}).new_page()
        pages.append(page)
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda said: said.type == "error" and mishaps.append(said.text))
        page.on("request", note_way_out)
        if before:
            page.add_init_script(before)
        page.goto(f"{address}/?maps={maps}")
        page.locator(shown).wait_for(timeout=60_000)
        settle(page)
        page.locator(shown).scroll_into_view_if_needed()
        return page

    yield open_page
    for page in pages:
        page.close()
    expect.set_options(timeout=5_000)
    assert mishaps == []


def scene(page):
    return page.locator(".scene")


def said(page):
    text = page.locator(".st-key-log").inner_text()
    return json.loads(text.partition("page ")[2])


def open_head(page, layer, head):
    expect(page.locator(".st-key-log")).to_contain_text(f'"layer": {layer}, "head": {head}')
    assert said(page)["method"] == "attention"
    settle(page)


def nothing_was_opened(page):
    """What the page is told comes in its order: had a sheet been opened, it would be known now."""
    page.get_by_role("button", name="Run again").click()
    expect(page.locator(".st-key-log")).to_contain_text('"runs": 2')
    assert said(page)["layer"] is None
    settle(page)


def pixels(page):
    """What is seen of the scene, once all that was asked for is drawn."""
    page.evaluate(
        "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
    )
    return np.asarray(Image.open(io.BytesIO(scene(page).screenshot())).convert("RGB")).astype(int)


def different(before, after):
    """The share of pixels that another colour is seen in."""
    return (np.abs(before - after).max(-1) > 12).mean()


def twin_of(page, model, view=USUAL):
    box = scene(page).bounding_box()
    return Twin(model, (box["width"], box["height"]), view), box


def spot(place):
    return {"x": float(place[0]), "y": float(place[1])}


@pytest.mark.parametrize(("kind", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_each_sheet_shows_its_values_in_the_colours_of_the_bar(visit, kind, scheme):
    page = visit(kind, color_scheme=scheme)
    shown = pixels(page)
    twin, box = twin_of(page, FEW)
    sharp = shown.shape[1] / box["width"]
    values, checked = few_tiles(), 0
    for (layer, head), row, col in product([(2, 0), (2, 3), (1, 1)], range(6), range(9)):
        tile = values[layer, head]
        colour = colourise(tile, Scale(float(tile.min()), float(tile.max()), "own"))[row, col]
        back_left, back_right, _, front_left = np.array(twin.sheets[layer, head])
        at = back_left + (back_right - back_left) * (col + 0.5) / 9
        at = at + (front_left - back_left) * (row + 0.5) / 6
        x, y, _ = twin.project(at)
        if twin.at(x, y) == (layer, head):
            np.testing.assert_allclose(shown[int(y * sharp), int(x * sharp)], colour, atol=2)
            checked += 1
    assert checked > 100


def few_tiles():
    """As the test page makes them."""
    chance = np.random.default_rng(0)
    at = chance.uniform(0.1, 0.9, (2, 3, 4, 1, 1))
    far = (np.linspace(0, 1, 6)[:, None] - at[0]) ** 2 + (np.linspace(0, 1, 9) - at[1]) ** 2
    high = chance.uniform(0.05, 0.5, (3, 4, 1, 1))
    return (0.01 + np.exp(-far / 0.03) * high).astype(np.float32)


def test_a_glide_ends_where_a_jump_does(visit):
    page = visit()
    before = pixels(page)
    page.get_by_role("button", name="From the side").click()
    jumped = pixels(page)
    page.get_by_role("button", name="Reset").click()
    assert different(before, pixels(page)) == 0
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="From the side").click()
    expect(scene(page)).to_have_attribute("data-still", "true")
    assert different(jumped, pixels(page)) < 0.001


def click_on(page, place, model):
    """Point at a sheet and click it; its head opens."""
    scene(page).scroll_into_view_if_needed()
    twin, box = twin_of(page, model)
    x, y = twin.centre(*place)
    assert twin.at(x, y) == place
    page.mouse.move(box["x"] + x, box["y"] + y)
    words = page.locator(".readout")
    expect(words).to_contain_text(f"Layer {place[0]}, head {place[1]}: highest attention weight 0.")
    assert said(page)["layer"] is None
    page.mouse.down()
    page.mouse.up()
    open_head(page, *place)
    page.mouse.move(0, 0)
    expect(words).to_contain_text(f"Layer {place[0]}, head {place[1]} (open)")


def test_a_click_opens_the_sheet_under_the_mouse_and_none_where_there_is_no_sheet(visit):
    page = visit()
    twin, _ = twin_of(page, FEW)
    missing = twin.project((1.5 * 1.12, 0.75, 0))[:2]  # where head 3 would be in layer 0
    assert twin.at(*missing) is None
    for place in (missing, (13, 13)):
        scene(page).click(position=spot(place))
    nothing_was_opened(page)
    click_on(page, (2, 3), FEW)


def test_many_large_maps_are_sent_once(visit):
    page = visit(maps="many")
    received = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on(
        "Network.webSocketFrameReceived",
        lambda event: received.append(len(event["response"]["payloadData"])),
    )
    page.get_by_role("button", name="Run again").click()
    expect(page.locator(".st-key-log")).to_contain_text('"runs": 2')
    settle(page)
    assert received and max(received) < 30_000
    page.get_by_role("button", name="Ask a patch").click()
    expect(page.locator(".st-key-log")).to_contain_text('"runs": 3')
    settle(page)
    assert max(received) > 100_000
    click_on(page, (17, 9), MANY)


def test_a_tap_names_a_sheet_and_another_opens_it(visit):
    page = visit(PHONE)
    twin, _ = twin_of(page, FEW)
    scene(page).tap(position=spot(twin.centre(2, 1)))
    expect(page.locator(".readout")).to_contain_text("Layer 2, head 1: ")
    nothing_was_opened(page)
    scene(page).tap(position=spot(twin.centre(2, 1)))
    open_head(page, 2, 1)
    scene(page).tap(position=spot(twin.centre(0, 0)))
    page.get_by_role("button", name="Open layer 0, head 0").tap()
    open_head(page, 0, 0)


def tell_what_is_seen(page):
    """To those who do not see it: what it is, and the highest heads, the highest first."""
    expect(scene(page)).to_have_attribute(
        "aria-label", re.compile("3 layers with 9 attention maps.*Enter opens", re.DOTALL)
    )
    rows = page.locator("#stack-heads tbody tr")
    expect(rows).to_have_count(9)
    highest = [float(re.search(r"weight ([\d.]+)", text)[1]) for text in rows.all_inner_texts()]
    assert highest == sorted(highest, reverse=True)


def test_it_is_whole_by_keyboard(visit):
    page = visit()
    tell_what_is_seen(page)
    scene(page).focus()
    words = page.locator(".readout")
    for key, place in [
        ("ArrowUp", "2, head 0"),
        ("ArrowDown", "1, head 0"),
        ("ArrowRight", "1, head 1"),
    ]:
        page.keyboard.press(key)
        expect(words).to_contain_text(f"Layer {place}:")
    before = pixels(page)
    page.keyboard.press("Shift+ArrowLeft")
    turned = pixels(page)
    assert different(before, turned) > 0.05
    page.keyboard.press("+")
    assert different(turned, pixels(page)) > 0.05
    page.keyboard.press("0")
    assert different(before, pixels(page)) == 0
    expect(words).to_contain_text("Layer 1, head 1:")
    page.keyboard.press("Enter")
    open_head(page, 1, 1)


def test_dragging_turns_it_never_upside_down(visit):
    page = visit()
    box = scene(page).bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = pixels(page)

    def drag(x, y):
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + x, middle[1] + y, steps=4)
        page.mouse.up()
        page.mouse.move(0, 0)

    drag(-100, 0)
    turned = pixels(page)
    assert different(before, turned) > 0.05
    turn = 100 * 180 / box["width"]  # half a turn by the whole width
    assert 10 < turn < 30
    twin, _ = twin_of(page, FEW, {**USUAL, "yaw": -30 + turn})
    scene(page).hover(position=spot(twin.centre(2, 0)))
    expect(page.locator(".readout")).to_contain_text("Layer 2, head 0:")
    drag(0, 1000)
    twin, _ = twin_of(page, FEW, {**USUAL, "yaw": -30 + turn, "pitch": 90})
    scene(page).hover(position=spot(twin.centre(2, 3)))
    expect(page.locator(".readout")).to_contain_text("Layer 2, head 3:")
    drag(0, -100)
    twin, _ = twin_of(page, FEW, {**USUAL, "yaw": -30 + turn, "pitch": 90 - turn})
    scene(page).hover(position=spot(twin.centre(2, 2)))
    expect(page.locator(".readout")).to_contain_text("Layer 2, head 2:")
    assert said(page)["layer"] is None
    page.get_by_role("button", name="Reset").click()
    assert different(before, pixels(page)) == 0


def test_buttons_spacing_and_seeing_through_change_the_picture(visit):
    page = visit()
    seen = [pixels(page)]
    for name in ("From the front", "From the side", "From above"):
        page.get_by_role("button", name=name).click()
        seen.append(pixels(page))
    page.get_by_label("See through low values").check()
    expect(page.locator(".mixed")).to_be_visible()
    seen.append(pixels(page))
    expect(page.locator(".st-key-log")).to_contain_text('"stack/see_through": true')
    expect(page.get_by_label("See through low values")).to_be_checked()
    page.get_by_role("button", name="From the front").click()
    page.get_by_label("Spacing").fill("1.5")
    seen.append(pixels(page))
    for before, after in pairwise(seen):
        assert different(before, after) > 0.02


def test_heads_are_named_from_left_to_right_as_their_sheets_lie(visit):
    page = visit()
    page.get_by_role("button", name="From the front").click()
    pixels(page)
    places = page.locator(".labels span").evaluate_all(
        """spans => spans.filter(each => each.style.visibility !== "hidden")
          .map(each => [each.textContent, each.getBoundingClientRect().left])"""
    )
    heads = [name for name, _ in sorted(places, key=lambda place: place[1]) if name[0] == "H"]
    assert heads == [f"H{number}" for number in range(4)]


def test_from_above_no_layer_is_named_but_the_one_on_top(visit):
    page = visit(maps="many")
    named = """spans => spans.filter(each => each.style.visibility !== "hidden")
      .map(each => each.textContent).filter(name => name.startsWith("L"))"""
    layers = page.locator(".labels span")
    of_all = layers.evaluate_all(named)
    page.get_by_role("button", name="From above").click()
    pixels(page)
    top = layers.evaluate_all(named)
    assert len(of_all) > 1 and len(top) == 1
    assert int(top[0][1:]) >= max(int(name[1:]) for name in of_all)


def test_the_wheel_is_the_pages_until_the_stack_is_clicked(visit):
    page = visit()
    before = pixels(page)
    main = page.locator('[data-testid="stMain"]')
    start = main.evaluate("(at) => at.scrollTop")
    scene(page).hover(position={"x": 5, "y": 200})
    page.mouse.wheel(0, 120)
    page.wait_for_function(f"document.querySelector('[data-testid=stMain]').scrollTop > {start}")
    assert different(before, pixels(page)) == 0
    scene(page).click(position={"x": 5, "y": 300})
    at = main.evaluate("(at) => at.scrollTop")
    page.mouse.wheel(0, -120)
    assert different(before, pixels(page)) > 0.05
    assert main.evaluate("(at) => at.scrollTop") == at


def test_two_fingers_zoom(visit):
    page = visit(PHONE)
    before = pixels(page)
    box = scene(page).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)

    def fingers(kind, *apart):
        points = [{"x": x - far, "y": y, "id": 0} for far in apart]
        points += [{"x": x + far, "y": y, "id": 1} for far in apart]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", 30)
    for far in (40, 50, 60):
        fingers("touchMove", far)
    fingers("touchEnd")
    twin, _ = twin_of(page, FEW, {**USUAL, "zoom": 2})
    assert different(before, pixels(page)) > 0.05
    assert page.evaluate("visualViewport.scale") == 1
    scene(page).tap(position=spot(twin.centre(1, 1)))
    expect(page.locator(".readout")).to_contain_text("Layer 1, head 1: ")


def test_lost_graphics_memory_comes_back(visit):
    page = visit()
    before = pixels(page)
    page.evaluate(
        """() => {
          const find = (root) => root.querySelector("canvas")
            ?? [...root.querySelectorAll("*")].map((one) => one.shadowRoot && find(one.shadowRoot)).find(Boolean);
          window.loss = find(document).getContext("webgl2").getExtension("WEBGL_lose_context");
          window.loss.loseContext();
        }"""
    )
    expect(page.locator(".lost")).to_be_visible()
    page.evaluate("window.loss.restoreContext()")
    expect(page.locator(".lost")).to_be_hidden()
    assert different(before, pixels(page)) == 0


NO_WEBGL = """
const before = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
  return kind.startsWith("webgl") ? null : before.call(this, kind, ...more);
};
"""


def test_without_webgl_it_says_so(visit):
    page = visit(before=NO_WEBGL, shown=".none")
    expect(page.locator(".none")).to_contain_text("no WebGL 2")
    expect(page.locator(".none")).to_contain_text("All heads")
    expect(scene(page)).to_be_hidden()


def test_a_new_query_or_palette_is_drawn_and_the_view_stays(visit):
    page = visit()
    page.get_by_role("button", name="From the front").click()
    before = pixels(page)
    page.get_by_role("button", name="Ask a patch").click()
    expect(page.locator(".st-key-log")).to_contain_text('"runs": 2')
    settle(page)
    asked = pixels(page)
    assert different(before, asked) > 0.01
    page.get_by_text("viridis").click()
    expect(page.locator(".st-key-log")).to_contain_text('"runs": 3')
    settle(page)
    assert different(asked, pixels(page)) > 0.05
    twin, _ = twin_of(page, FEW, {**USUAL, "yaw": 0, "pitch": 34})
    scene(page).hover(position=spot(twin.centre(0, 2)))
    expect(page.locator(".readout")).to_contain_text("Layer 0, head 2:")
    page.mouse.move(0, 0)
    before = pixels(page)
    for there in (0, 1):  # other views are opened, and this one again
        page.get_by_text("Stack", exact=True).click()
        expect(page.locator(".scene[data-frames]")).to_have_count(there)
    settle(page)
    page.mouse.move(0, 0)
    scene(page).scroll_into_view_if_needed()
    assert different(before, pixels(page)) == 0
