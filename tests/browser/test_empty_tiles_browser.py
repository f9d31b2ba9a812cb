"""Heads that a layer has not, among all heads, in a real browser: Swin's stages have 3 to 24."""

import io

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import on_screen, open_view, surface

from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures

pytestmark = pytest.mark.long

QUERY = "?model=swin_tiny_patch4_window7_224.ms_in1k&random=1&view=heads&layer=11&head=20"
HEADS = [3] * 2 + [6] * 2 + [12] * 6 + [24] * 2
"""Of each layer, as its paper says."""


def tile(page, layer, head):
    """The middle of a head's tile: 24 a layer have a place, in as many lines as there are."""
    columns, lines = shape(page)
    return on_screen(page, "mosaic", divmod(24 * layer + head, columns), (lines, columns))


def shape(page):
    """(columns, lines) of tiles, told by the names beside the lines."""
    lines = page.locator(".st-key-mosaic .row-names > *").count()
    assert (12 * 24) % lines == 0
    return 12 * 24 // lines, lines


def readout(page):
    return page.locator(".st-key-mosaic .readout")


def test_a_place_without_a_head_is_white_says_so_and_cannot_be_picked(visit):
    page = visit(query=QUERY, ready=".st-key-mosaic .surface")
    text = page.get_by_text("of the 138 heads makes")
    expect(text).to_contain_text("There are 3 to 24 a layer; a place without a head is empty.")
    tiles = surface(page, "mosaic").screenshot()
    shot = np.asarray(Image.open(io.BytesIO(tiles)).convert("RGB")).astype(int)
    columns, lines = shape(page)
    for layer, heads in enumerate(HEADS):
        for head in range(24):
            line, column = divmod(24 * layer + head, columns)
            row, col = (
                slice(*(int(side * (at + part) / count) for part in (0.3, 0.7)))
                for side, at, count in (
                    (shot.shape[0], line, lines),
                    (shot.shape[1], column, columns),
                )
            )
            white = shot[row, col].min() > 250
            assert white == (head >= heads), (layer, head)
    for layer, head in ((0, 3), (0, 23), (3, 6), (9, 12)):
        page.mouse.click(*tile(page, layer, head))
        expect(readout(page)).to_contain_text("empty")
    settle(page)
    expect(page.locator(".st-key-mosaic")).to_be_visible()
    assert "head=20" in page.url and "view=heads" in page.url  # nothing was picked
    page.mouse.move(*tile(page, 3, 5))
    expect(readout(page)).not_to_contain_text("empty")
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_text("layer 3 (of 12, counted from 0), head 5")).to_be_visible()


def test_a_chosen_head_that_a_layer_lacks_is_missed(visit):
    page = visit(query=QUERY.replace("view=heads&layer=11", "layer=11"))
    said = page.get_by_text("You chose head 20; there are only heads 0 to 11 here")
    expect(page.get_by_text("layer 11 (of 12, counted from 0), head 20")).to_be_visible()
    expect(said).to_have_count(0)
    slider = page.locator(".st-key-layer").get_by_role("slider")
    slider.press("ArrowLeft")
    expect(page.locator(".st-key-layer").get_by_role("slider")).to_have_value("10")
    slider.press("ArrowLeft")
    expect(said).to_be_visible()
    open_view(page, "Layers")
    expect(said).to_have_count(0)  # some layer has it
