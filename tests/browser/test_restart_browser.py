"""A server that is killed and started again under an open page, which connects to it anew."""

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from steps import choose, png, upload

from scripts.page_server import free_port, serving, settle

pytest_plugins = ["visits"]  # for its browser

pytestmark = pytest.mark.long  # six visits to a server that is started twice


def choose_espresso(page):
    choose(page, "sample", "Cup of espresso")
    caption(page, "Cup of espresso, 600 × 400")


def caption(page, text):
    paragraphs = page.get_by_test_id("stSidebar").get_by_role("paragraph")
    expect(paragraphs.get_by_text(text)).to_be_visible()
    settle(page)


def own(page):
    upload(page, "mine.png", png((280, 140)))
    caption(page, "mine.png, 280 × 140")


def own_after_a_bad_file(page):
    own(page)
    upload(page, "bad.png", b"?")
    expect(page.get_by_test_id("stSidebar").get_by_test_id("stAlert")).to_be_visible()
    caption(page, "mine.png, 280 × 140")


def own_after_a_sample_after_own(page):
    own(page)
    choose_espresso(page)
    own(page)


def own_that_was_removed(page):
    own(page)
    page.get_by_role("button", name="Remove mine.png").click()
    caption(page, "Cat, 451 × 300")


def sample_after_own(page):
    own(page)
    choose_espresso(page)


def touch(page):
    page.locator(".st-key-smooth").get_by_text("Smooth between").click()


def send(page):
    upload(page, "new.png", png((140, 280)))


FORGOTTEN = "The server was started again and has your pictures no longer"
STORIES = [
    # (what was shown, what is done first afterwards, what then is shown, what is said)
    (lambda page: None, send, "new.png, 140 × 280", ""),
    (own_that_was_removed, touch, "Cat, 451 × 300", ""),
    (sample_after_own, send, "new.png, 140 × 280", FORGOTTEN),
    (sample_after_own, touch, "Cup of espresso, 600 × 400", FORGOTTEN),
    (own_after_a_sample_after_own, touch, "Cat, 451 × 300", FORGOTTEN),
    (own_after_a_bad_file, touch, "Cat, 451 × 300", FORGOTTEN),
]


def test_a_server_started_again_forgets_no_picture_in_silence(browser, tmp_path):
    port = free_port()
    settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "OMP_NUM_THREADS": "2"}
    expect.set_options(timeout=60_000)
    pages = []
    with serving(port, kill=True, **settings) as address:
        for before, *_ in STORIES:
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.set_default_timeout(60_000)
            page.goto(address)
            page.locator(".st-key-map .readout").wait_for()
            settle(page)
            page.locator(".st-key-side").get_by_role("slider").press("Home")  # quick passes
            expect(page.get_by_text("6 rows × 9 columns")).to_be_visible()
            settle(page)
            before(page)
            settle(page)
            pages.append(page)
    for page in pages:
        expect(page.get_by_test_id("stApp")).not_to_have_attribute(
            "data-test-connection-state", "CONNECTED"
        )
    with serving(port, kill=True, **settings):
        for page, (_, after, shown, said) in zip(pages, STORIES, strict=True):
            expect(page.get_by_test_id("stApp")).to_have_attribute(
                "data-test-connection-state", "CONNECTED"
            )
            after(page)
            caption(page, shown)
            alert = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
            expect(alert).to_have_count(1 if said else 0)
            if said:
                expect(alert).to_contain_text(said)
            expect(page.locator(".st-key-tray img")).to_have_count(1 if after is send else 0)
            page.context.close()
    expect.set_options(timeout=5_000)
