"""The view Compare in a real browser, with the real model: picks are linked, and it fits a phone."""

import re

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import choose, on_screen, png, surface, upload

from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
GRID = (6, 9)
"""Of the cat at the lowest resolution."""


def readout(page, key):
    return page.locator(f".st-key-{key} .readout")


def press(page, key, cell, grid, *, tap=False):
    """Click or tap the middle of a cell; the pointer then leaves, so that the chosen one is named."""
    x, y = on_screen(page, key, cell, grid)
    if tap:
        page.touchscreen.tap(x, y)
    else:
        page.mouse.click(x, y)
        page.mouse.move(1, 1)


def chosen(page, key, cell):
    row, col = cell
    words = re.compile(
        rf"^row {row}, column {col}: .* \(chosen\)$|^row {row}, column {col} \(chosen\)$"
    )
    expect(readout(page, key)).to_have_text(words)


@pytest.fixture
def compare(visit):
    """The page, with the view open and the fewest patches."""

    def open_page(**window):
        page = visit(**window)
        page.goto(f"{page.url.split('?')[0]}?size=112&view=compare")
        readout(page, "compare-there").wait_for()
        settle(page)
        return page

    return open_page


def compare_with(page, label):
    page.locator(".st-key-compare").get_by_text(label, exact=True).click()
    expect(
        page.get_by_role("heading", name=f"Attention: {label.lower()} beside it")
    ).to_be_visible()
    settle(page)


def test_a_pick_on_either_side_asks_on_both(compare):
    page = compare()
    press(page, "compare-here", (1, 2), GRID)
    chosen(page, "compare-here", (1, 2))
    chosen(page, "compare-there", (1, 2))  # the espresso is as wide as the cat: the same grid
    press(page, "compare-there", (4, 7), GRID)
    chosen(page, "compare-here", (4, 7))
    chosen(page, "compare-there", (4, 7))
    page.get_by_text("One for both", exact=True).click()
    bars = page.get_by_role("img", name=re.compile("Colour bar: attention weight"))
    expect(page.locator("figcaption").filter(has_text="shared by 2 maps")).to_have_count(2)
    assert bars.nth(0).get_attribute("alt") == bars.nth(1).get_attribute("alt")


@pytest.mark.long
def test_another_resolution_another_model_and_another_query(compare):
    page = compare()
    compare_with(page, "Another resolution")
    expect(
        page.get_by_text(re.compile("The grids differ: 6 × 9 patches .*, 13 × 19 "))
    ).to_be_visible()
    press(page, "compare-there", (12, 18), (13, 19))
    chosen(page, "compare-there", (12, 18))
    chosen(page, "compare-here", (5, 8))  # the same corner
    compare_with(page, "Another model")
    expect(page.get_by_text("DINOv2 ViT-S/14, untrained", exact=True)).to_be_visible()
    chosen(page, "compare-there", (5, 8))
    expect(page.get_by_text("random weights: this map means nothing")).to_be_visible()
    compare_with(page, "Another query")
    chosen(page, "compare-there", (3, 4))  # the middle, until another one is picked
    press(page, "compare-there", (0, 0), GRID)
    chosen(page, "compare-there", (0, 0))
    chosen(page, "compare-here", (5, 8))


@pytest.mark.long
def test_a_model_out_of_reach_costs_the_first_side_nothing(compare):
    page = compare()
    compare_with(page, "Another model")
    page.locator(".st-key-compare_random").get_by_text("Random weights").click()
    expect(page.get_by_text("Both sides are the same: choose another model")).to_be_visible()
    choose(page, "compare_model", "DINO ViT-S/16")
    error = page.get_by_test_id("stMain").get_by_test_id("stAlert")
    expect(error).to_have_count(1)
    expect(error).to_contain_text(re.compile("hub|network|offline", re.I))
    expect(surface(page, "compare-there")).to_have_count(0)
    press(page, "compare-here", (1, 2), GRID)
    chosen(page, "compare-here", (1, 2))


@pytest.mark.long
def test_patches_that_are_alike_in_two_pictures_of_ones_own(compare):
    page = compare()
    upload(page, "green.png", png((280, 140)))
    expect(page.locator(".st-key-tray img")).to_have_count(1)
    settle(page)
    upload(page, "blue.png", png((140, 280), "blue"))
    expect(page.locator(".st-key-tray img")).to_have_count(2)
    choose(page, "compare_picture", "green.png")
    page.get_by_text("Which patches are alike", exact=True).click()
    readout(page, "alike-there").wait_for()
    settle(page)
    press(page, "alike-here", (2, 1), (10, 5))
    chosen(page, "alike-here", (2, 1))
    likest = page.get_by_text(re.compile("Likest to the patch .row 2, column 1. of blue.png: row"))
    expect(likest).to_be_visible()
    expect(readout(page, "alike-there")).to_have_text(re.compile(r"row \d, column \d+: .*chosen"))
    press(page, "alike-there", (1, 1), (5, 10))  # and now the other one asks
    chosen(page, "alike-there", (1, 1))
    expect(
        page.get_by_text(re.compile(r"Likest to the patch .row 1, column 1. of green.png"))
    ).to_be_visible()
    bar = page.get_by_role("img", name=re.compile("Colour bar: cosine similarity from "))
    expect(bar).to_have_count(1)
    expect(page.get_by_text("Pairs that agree both ways, by their numbers")).to_be_visible()


@pytest.mark.long
def test_on_a_phone_the_two_stand_below_each_other(compare):
    page = compare(**PHONE)
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") == 390
    here, there = (surface(page, f"compare-{side}").bounding_box() for side in ("here", "there"))
    assert here["y"] + here["height"] < there["y"]
    names = [
        page.get_by_test_id("stMain").get_by_text(name, exact=True)
        for name in ("Cat", "Cup of espresso")
    ]
    first, second = (name.bounding_box()["y"] for name in names)
    assert first < here["y"] < second < there["y"]
    press(page, "compare-there", (1, 2), GRID, tap=True)
    chosen(page, "compare-here", (1, 2))
