"""The view of the layers in a real browser: a layer opens by itself, and a film is downloaded."""

import pytest
from PIL import Image

from scripts.page_server import settle

pytest_plugins = ["visits"]

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect


def test_a_film_is_downloaded_and_a_layer_opens_by_the_same_head(visit):
    page = visit(query="?size=224")
    page.get_by_text("Layers", exact=True).click()
    expect(page.locator(".strip button")).to_have_count(12)
    settle(page)
    page.get_by_role("combobox", name="Head").click()
    page.get_by_role("option", name="head 2").click()
    expect(page.get_by_text("By head 2, in layers 0 to 11")).to_be_visible()
    settle(page)
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download as GIF").click()
    assert coming.value.suggested_filename == "cat_dinov2-small_attention_layers_head-2_query-class-token.gif"  # fmt: skip
    with Image.open(coming.value.path()) as film:
        assert film.n_frames == 12 and film.width == 480
    page.get_by_role("button", name="Open layer 5,").click()
    expect(page.get_by_text("layer 5 (of 12, counted from 0), head 2")).to_be_visible()
    expect(page.locator(".st-key-map .surface")).to_be_visible()
