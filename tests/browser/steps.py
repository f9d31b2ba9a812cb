"""What several tests do on the page."""

import io

from PIL import Image
from playwright.sync_api import expect

from scripts.page_server import settle

BOUNDS = """async element => {
  const bounds = () => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x, y, width, height];
  };
  let now = bounds();
  for (let before = []; String(now) !== String(before); now = bounds()) {
    before = now;
    await new Promise(requestAnimationFrame);
  }
  return now;
}"""
"""Left, top, width and height on the screen, the same in two frames that follow each other."""


def png(size, colour="green"):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def open_view(page, label):
    """One of the views at the top."""
    page.locator(".st-key-view").get_by_text(label, exact=True).click()


def surface(page, key):
    """The picture of the picker with that key."""
    return page.locator(f".st-key-{key} .surface")


def on_screen(page, key, cell, grid):
    """The middle of a picker's cell, (x, y), once nothing moves any more."""
    one = surface(page, key)
    one.scroll_into_view_if_needed()
    settle(page)
    left, top, width, height = one.evaluate(BOUNDS)
    (row, col), (rows, cols) = cell, grid
    return left + width * (col + 0.5) / cols, top + height * (row + 0.5) / rows


def click_cell(page, key, cell, grid):
    page.mouse.click(*on_screen(page, key, cell, grid))


def choose(page, key, label):
    """One of a list's entries."""
    box = page.locator(f".st-key-{key}").get_by_role("combobox")
    box.scroll_into_view_if_needed()
    settle(page)  # a list closes when what is below it moves
    box.click()
    page.get_by_role("option", name=label, exact=True).click()


def uploader(page):
    one = page.get_by_test_id("stFileUploader")
    expect(one).to_have_count(1)
    return one


def upload(page, name, data):
    upload_all(page, {name: data})


def upload_all(page, files):
    """Several files that are chosen at once."""
    chosen = [{"name": n, "mimeType": "image/png", "buffer": data} for n, data in files.items()]
    uploader(page).locator("input").set_input_files(chosen)
