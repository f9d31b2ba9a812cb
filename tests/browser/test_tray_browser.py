"""Several pictures of a visitor's own, and a photo, in a real browser."""

import base64

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import png, upload, upload_all, uploader

from attnviz.images.limits import MAX_FILE
from attnviz.ui.tray import MOST
from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures

COLOURS = ("red", "green", "blue")

DROP = """([files, size]) => {
  const transfer = new DataTransfer();
  for (const [name, data] of files) {
    const bytes = data ? Uint8Array.from(atob(data), (c) => c.charCodeAt(0)) : new Uint8Array(size);
    transfer.items.add(new File([bytes], name, { type: "image/png" }));
  }
  const zone = document.querySelector('[data-testid="stFileUploaderDropzone"]');
  for (const step of ["dragenter", "dragover", "drop"])
    zone.dispatchEvent(new DragEvent(step, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def drop(page, files):
    """Several files at once; one without bytes is larger than what can be opened."""
    named = [[name, data and base64.b64encode(data).decode()] for name, data in files.items()]
    page.evaluate(DROP, [named, MAX_FILE + 1])


def rows(page):
    return page.locator(".st-key-tray img")


def said(page):
    return page.get_by_test_id("stSidebar").get_by_test_id("stAlert")


def caption(page, text):
    sidebar = page.get_by_test_id("stSidebar").get_by_role("paragraph")
    expect(sidebar.get_by_text(text)).to_be_visible()


@pytest.fixture
def coarse(visit):
    """A visit with the fewest patches: the passes that follow are quick."""
    page = visit()
    page.locator(".st-key-side").get_by_role("slider").press("Home")
    expect(page.get_by_text("6 rows × 9 columns")).to_be_visible()
    return page


def test_of_several_files_the_good_ones_are_kept_shown_and_removed(coarse):
    page = coarse
    good = {f"{name}.png": png((280, 140 + n), name) for n, name in enumerate(COLOURS)}
    upload_all(page, {"bad_1.png": b"?", **good, "bad_2.png": b"%PDF-1.7"})
    caption(page, "blue.png, 280 × 142 pixels")
    expect(rows(page)).to_have_count(3)
    expect(said(page)).to_have_count(2)
    expect(said(page).first).to_contain_text("bad_1.png looks like text")
    expect(said(page).last).to_contain_text("bad_2.png looks like a PDF")
    settle(page)
    expect(uploader(page).get_by_text("red.png")).not_to_be_visible()  # it is listed once
    page.get_by_role("button", name="red.png", exact=True).press("Enter")
    caption(page, "red.png, 280 × 140 pixels")
    expect(said(page)).to_have_count(0)
    page.get_by_role("button", name="Remove red.png").press("Enter")
    caption(page, "blue.png, 280 × 142 pixels")
    expect(rows(page)).to_have_count(2)
    settle(page)
    page.get_by_role("button", name="Remove green.png").click()
    expect(rows(page)).to_have_count(1)
    caption(page, "blue.png, 280 × 142 pixels")


@pytest.mark.long
def test_files_that_follow_each_other_at_once_are_all_kept(coarse):
    page = coarse
    for number in range(4):  # each while the run for the one before is on its way
        upload(page, f"{number}.png", png((280 + number, 140)))
    caption(page, "3.png, 283 × 140 pixels")
    expect(rows(page)).to_have_count(4)
    settle(page)
    expect(rows(page)).to_have_count(4)


@pytest.mark.long
def test_one_that_is_too_large_costs_those_that_came_with_it_nothing(coarse):
    page = coarse
    drop(page, {"red.png": png((280, 140), "red"), "huge.png": None})
    caption(page, "red.png, 280 × 140 pixels")
    expect(said(page)).to_contain_text("huge.png is larger than the 64 MB that can be opened here")
    settle(page)
    expect(said(page)).to_have_count(1)
    upload(page, "green.png", png((280, 141), "green"))
    caption(page, "green.png, 280 × 141 pixels")
    expect(said(page)).to_have_count(0)


@pytest.mark.long
def test_more_than_the_tray_holds_do_not_come_in_at_once(coarse):
    page = coarse
    drop(page, {f"{n}.png": png((28 + n, 28)) for n in range(MOST + 2)})
    caption(page, f"{MOST - 1}.png, {MOST + 27} × 28 pixels")
    expect(said(page)).to_contain_text(f"2 more were left out: at most {MOST} pictures come in")
    expect(rows(page)).to_have_count(MOST)
    settle(page)
    upload(page, "one_more.png", png((280, 140)))
    caption(page, "one_more.png, 280 × 140 pixels")
    expect(said(page)).to_contain_text("0.png was let go: the tray keeps the newest 12 pictures")
    expect(rows(page)).to_have_count(MOST)


def test_a_photo_is_taken_and_the_camera_goes_off(coarse):
    page = coarse
    expect(page.get_by_test_id("stCameraInput")).to_have_count(0)  # nothing is asked until then
    for number in (1, 2):
        settle(page)
        page.get_by_text("Take a photo", exact=True).click()
        take = page.get_by_role("button", name="Take Photo")
        expect(take).to_be_enabled()
        # Later each time: of one and the same moment both would be one picture.
        page.wait_for_function("n => document.querySelector('video')?.currentTime > n", arg=number)
        settle(page)
        take.click()  # of the browser's own test picture
        caption(page, f"photo {number}, 1280 × 720 pixels.")
        expect(rows(page)).to_have_count(number)
        expect(page.get_by_test_id("stCameraInput")).to_have_count(0)
