"""The page's address in a real browser: shared, reloaded, and gone back and forward through."""

import re

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import click_cell, open_view

from scripts.page_server import settle

pytest_plugins = ["visits"]  # its fixtures


def expect_query(page, query):
    expect(page).to_have_url(re.compile(rf"^http://127\.0\.0\.1:\d+/{re.escape(query)}$"))
    settle(page)


def test_back_and_forward_go_through_what_was_chosen(visit):
    page = visit()
    layer = page.locator(".st-key-layer").get_by_role("slider")
    layer.press("ArrowLeft")
    expect_query(page, "?layer=10")
    open_view(page, "All heads")
    expect_query(page, "?view=heads&layer=10")
    page.locator(".st-key-mosaic .readout").wait_for()
    page.get_by_role("radio", name="mean of all patches").click()
    expect_query(page, "?view=heads&layer=10&query=mean")
    page.go_back()
    expect_query(page, "?view=heads&layer=10")
    expect(page.get_by_role("radio", name="class token")).to_be_checked()
    page.go_back()
    expect_query(page, "?layer=10")
    expect(layer).to_have_value("10")
    page.go_back()
    expect_query(page, "")
    expect(layer).to_have_value("11")
    page.go_forward()
    expect_query(page, "?layer=10")
    expect(layer).to_have_value("10")


def test_a_link_and_a_reload_bring_the_same_page(visit):
    query = "?picture=coffee&size=112&layer=3&head=2&query=4-7"
    page = visit(query=query)
    for _ in range(2):
        heading = page.get_by_role("heading", name="What the patch (row 4, column 7) attends to")
        expect(heading).to_be_visible()
        expect(page.get_by_text("layer 3 (of 12, counted from 0), head 2")).to_be_visible()
        expect(page.locator(".st-key-sample").get_by_role("combobox")).to_have_value(
            "Cup of espresso"
        )
        expect_query(page, query)
        page.reload()


def test_one_choice_is_one_step_back(visit):
    page = visit(query="?model=digits&picture=digit-3&view=heads", ready=".st-key-mosaic .readout")
    steps = page.evaluate("history.length")
    click_cell(page, "mosaic", (1, 2), (4, 4))
    expect_query(page, "?picture=digit-3&model=digits&layer=1&head=2")
    for step, choose in enumerate(
        (
            lambda: open_view(page, "Compare"),
            lambda: open_view(page, "One map"),
            lambda: page.locator(".st-key-method").get_by_text("Relevance", exact=True).click(),
        ),
        2,
    ):
        choose()
        settle(page)
        assert page.evaluate("history.length") == steps + step
    page.go_back()
    expect_query(page, "?picture=digit-3&model=digits&layer=1&head=2")
    page.go_back()
    expect(page.locator(".st-key-compare-there .readout")).to_be_visible()
    settle(page)
    page.go_back()
    page.go_back()
    expect(page.locator(".st-key-mosaic .readout")).to_be_visible()
    expect_query(page, "?model=digits&picture=digit-3&view=heads")  # as it came
