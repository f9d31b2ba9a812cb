"""`python scripts/screenshot.py`: take the README's picture, docs/page.png, from the page."""

from __future__ import annotations

import io
import sys

from page_server import ROOT, open_browser, serving, settle
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

TARGET = ROOT / "docs" / "page.png"
WINDOW = {"width": 1280, "height": 1320}
MOST_BYTES = 600_000
PATIENCE = 120_000
"""Milliseconds for the model to be loaded and run on a slow machine."""

LAYER, HEAD = 11, 2
"""Of DINOv2's last heads, the one that finds what is in the picture best."""


def main() -> int:
    """Start the page, bring it to its finest state, and keep what it looks like."""
    with serving() as address, sync_playwright() as playwright:
        browser = open_browser(playwright)
        page = browser.new_page(viewport=WINDOW)
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.goto(address)
        compose(page)
        picture = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    TARGET.parent.mkdir(exist_ok=True)
    picture.convert("RGB").save(TARGET, optimize=True)
    size = TARGET.stat().st_size
    print(f"{TARGET.relative_to(ROOT)}: {picture.width} × {picture.height}, {size / 1000:.0f} kB")
    return int(size > MOST_BYTES)


def compose(page: Page) -> None:
    """Open one head, and wait until all of it is drawn."""
    page.locator(".st-key-view").get_by_text("All heads", exact=True).click()
    mosaic = page.locator(".st-key-mosaic .surface")
    mosaic.wait_for()
    box = mosaic.bounding_box()
    if box is None:
        raise RuntimeError("the mosaic is not on the page")
    at = {"x": box["width"] * (HEAD + 0.5) / 6, "y": box["height"] * (LAYER + 0.5) / 12}
    mosaic.click(position=at)
    expect(page.get_by_text(f"head {HEAD}.", exact=False).first).to_be_visible()
    settle(page)
    expect(page.get_by_test_id("stToast")).to_have_count(0)
    page.mouse.move(WINDOW["width"] / 2, 10)  # over nothing
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    page.evaluate("document.activeElement.blur()")
    settle(page)


if __name__ == "__main__":
    sys.exit(main())
