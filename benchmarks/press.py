"""One press on the page, and when its answer is on screen, by the browser's own clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, expect

PATIENCE = 300_000
"""Milliseconds after which the page is given up."""

QUIET = 500
"""Milliseconds in which nothing changes, after which the last change was the last; not counted."""

_WATCH = Path(__file__).with_name("watch.js").read_text("utf-8")
_FORGET = """() => Object.assign(window.watch,
  { pressed: null, ran: false, changed: 0, painted: 0, pictures: {} })"""
_DONE = """() => {
  const { pressed, ran, changed, painted } = window.watch;
  const state = document.querySelector("[data-testid=stApp]").dataset.testScriptState;
  return pressed !== null && ran && state === "notRunning" && painted > changed
    && performance.now() - changed > QUIET;
}""".replace("QUIET", str(QUIET))


@dataclass(frozen=True)
class Answer:
    """How long a press took, in seconds."""

    picture: float | None
    """Until the picture that was asked for had been painted; None if none came."""
    page: float
    """Until nothing on the page changed any more, and nothing ran."""


def settle(page: Page) -> None:
    """Wait until the page has nothing left to do."""
    running = page.get_by_test_id("stApp")
    expect(running).to_have_attribute("data-test-script-state", "notRunning", timeout=PATIENCE)


def answer(page: Page, act: Callable[[], object], key: str = "map") -> Answer:
    """Time `act`, which presses something that has the page run; `key` is the picture's."""
    page.evaluate(_WATCH)
    page.evaluate(_FORGET)
    act()
    page.wait_for_function(_DONE, polling=50)
    watch = page.evaluate("window.watch")
    start, drawn = watch["pressed"], watch["pictures"].get(key)
    return Answer(
        None if drawn is None else (drawn - start) / 1000, (watch["painted"] - start) / 1000
    )
