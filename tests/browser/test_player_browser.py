"""The player in a real browser: it plays, pauses, steps and opens, by mouse, touch and keyboard."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from player_page import FILMS

from scripts.page_server import settle

pytest_plugins = ["visits"]  # for its browser

pytestmark = pytest.mark.long  # the page's own tests use it as well

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect

ROOT = Path(__file__).parents[2]
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
COLOURED = """([canvas, wanted]) => {
  const pen = canvas.getContext("2d"), { width, height } = canvas;
  const at = [[0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1], [width >> 1, height >> 1]];
  const off = (pixel) => Math.max(...wanted.map((part, i) => Math.abs(part - pixel[i])));
  return at.every(([x, y]) => off(pen.getImageData(x, y, 1, 1).data) <= 4);  // a JPEG's
}"""

LISTEN = """(name) => {
  window.passed = [];
  const hear = () => window.passed.push(name.textContent);
  new MutationObserver(hear).observe(name, { childList: true });
}"""


@pytest.fixture(scope="module")
def address():
    """A server for the test page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "tests/browser/player_page.py"]
    command += [f"--server.port={port}", "--server.address=127.0.0.1"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            assert any("URL:" in line for line in server.stdout), "the server did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()  # it has nothing to put away


@pytest.fixture
def visit(address, browser):
    """Opens the page with a clock of the test's; afterwards nothing may have gone wrong in it."""
    contexts, mishaps = [], []

    def open_page(**window):
        contexts.append(browser.new_context(**(window or DESKTOP)))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        expect.set_options(timeout=45_000)
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda said: said.type == "error" and mishaps.append(said.text))
        page.clock.install()
        page.goto(address)
        expect(page.locator(".name")).to_have_text("layer 0")
        settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    expect.set_options(timeout=5_000)
    assert mishaps == []


def expect_frame(page, number, film="five"):
    """The frame's name, its own colour up to the corners, its numbers, and its mark in the strip."""
    expect(page.locator(".name")).to_have_text(f"layer {number}")
    wanted = [*bytes.fromhex(FILMS[film][number][1:])]
    screen = page.locator(".screen").element_handle()
    # Another film's pictures come when the browser has read them.
    page.wait_for_function(COLOURED, arg=[screen, wanted], polling="raf")
    expect(page.locator(".numbers")).to_have_text(f"{number}{number}.5{number + 1}")
    expect(page.locator(".at")).to_have_value(str(number))
    expect(page.locator(".strip [data-now] .of")).to_have_text(f"layer {number}")


def stands_still(page):
    """No frame passes in ten seconds of the page's time."""
    before = page.locator(".name").text_content()
    page.clock.run_for(10_000)
    assert page.locator(".name").text_content() == before


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_it_starts_paused_plays_round_and_stops(visit, motion):
    page = visit(**DESKTOP, reduced_motion=motion)
    expect_frame(page, 0)
    expect(page.locator(".play")).to_have_text("Play")
    stands_still(page)
    page.locator(".name").evaluate(LISTEN)
    page.locator(".play").click()
    expect(page.locator(".play")).to_have_text("Pause")
    page.clock.run_for(5_000)  # at two layers a second, twice round
    page.locator(".play").click()
    expect(page.locator(".play")).to_have_text("Play")
    numbers = [int(name.removeprefix("layer ")) for name in page.evaluate("passed")]
    assert len(numbers) >= 9
    assert numbers == [(1 + n) % 5 for n in range(len(numbers))]
    stands_still(page)


def test_steps_and_the_slider_stop_it(visit):
    page = visit()
    page.locator(".next").click()
    expect_frame(page, 1)
    page.locator(".back").click()
    page.locator(".back").click()
    expect_frame(page, 4)
    page.locator(".next").click()
    expect_frame(page, 0)
    for control in ("next", "at"):
        page.locator(".play").click()
        expect(page.locator(".play")).to_have_text("Pause")
        if control == "at":
            page.locator(".at").fill("3")
        else:
            page.locator(".next").click()
        expect(page.locator(".play")).to_have_text("Play")
        stands_still(page)
    expect_frame(page, 3)


def test_the_keyboard_is_enough(visit):
    page = visit()
    page.locator(".play").focus()
    page.keyboard.press("Space")
    expect(page.locator(".play")).to_have_text("Pause")
    page.keyboard.press("Enter")
    expect(page.locator(".play")).to_have_text("Play")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".at")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect_frame(page, 2)
    for _ in range(3):  # speed, open, the strip's first
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Open layer 0, 0 to 1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("picks [0]")).to_be_visible()


def test_a_layer_opens_by_click_and_by_tap(visit):
    page = visit()
    page.get_by_role("button", name="Open layer 3, 3 to 4").click()
    expect(page.get_by_text("picks [3]")).to_be_visible()
    page.locator(".next").click()
    page.locator(".open").click()
    expect(page.get_by_text("picks [3, 1]")).to_be_visible()
    phone = visit(**PHONE)
    phone.get_by_role("button", name="Open layer 4, 4 to 5").tap()
    expect(phone.get_by_text("picks [4]")).to_be_visible()
    screen, button = phone.locator(".screen").bounding_box(), phone.locator(".play").bounding_box()
    assert screen["width"] == pytest.approx(1.5 * screen["height"], abs=1)
    assert button["height"] >= 40
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_another_film_keeps_the_layer_and_goes_on(visit):
    page = visit()
    page.locator(".next").click()
    page.get_by_text("other five").click()
    expect(page.locator(".name")).to_have_text("layer 1")
    settle(page)
    expect_frame(page, 1, "other five")
    page.get_by_text("one", exact=True).click()
    expect(page.locator(".strip button")).to_have_count(1)
    expect_frame(page, 0, "one")
    expect(page.locator(".play")).to_be_disabled()
