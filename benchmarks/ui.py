"""`python -m benchmarks.ui`: how soon the page answers, from the press to the picture on screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    Position,
    ViewportSize,
    expect,
    sync_playwright,
)

from attnviz.samples import SAMPLES
from benchmarks.faithfulness import written
from benchmarks.press import PATIENCE, Answer, answer, settle
from benchmarks.subject import Subject, Watch, machine, seconds
from scripts.page_server import open_browser, serving

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN = "<!-- what follows is written by `make bench-ui ARGS=--write` -->"
END = "<!-- end of what is written by `make bench-ui ARGS=--write` -->"

WINDOW: ViewportSize = {"width": 1280, "height": 900}
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

START_HOVER_CLOCK = """canvas => {
  const clock = window.clock = { start: null, end: null };
  const options = { capture: true, once: true };
  document.addEventListener("pointermove", (event) => (clock.start = event.timeStamp), options);
  const drawn = new MutationObserver(() => {
    drawn.disconnect();
    // A task after the next frame began: by then the one with the map in it has been painted.
    requestAnimationFrame(() => (clock.end = performance.now()));
  });
  drawn.observe(canvas, { attributes: true, attributeFilter: ["data-at"] });
}"""

LOOK_FOR_MAP = """() => {
  const look = () => {
    for (const each of document.querySelectorAll(".st-key-map *")) {
      const image = each.shadowRoot?.querySelector(".surface img");
      if (image?.complete && image.naturalWidth)
        // A task after the next frame began, as above.
        return requestAnimationFrame(() => setTimeout(() => (window.arrived = performance.now())));
    }
    requestAnimationFrame(look);
  };
  if (window === top) look();
}"""


def visit(browser: Browser, address: str) -> tuple[Page, float]:
    """A new visitor's page, and the seconds from when it was asked for until its first map."""
    page = browser.new_context(viewport=WINDOW).new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(f"({LOOK_FOR_MAP})()")
    page.goto(address)
    page.wait_for_function("window.arrived")
    settle(page)
    return page, page.evaluate("window.arrived") / 1000


def picture(page: Page, key: str) -> Locator:
    """What is drawn in the picker with that key."""
    return page.locator(f".st-key-{key} .surface img")


def press_slider(page: Page, key: str, repeats: int) -> list[Answer]:
    """One step at a time, five down and five up."""
    thumb = page.locator(f".st-key-{key}").get_by_role("slider")
    thumb.focus()
    keys = ["ArrowLeft" if i % 10 < 5 else "ArrowRight" for i in range(repeats)]
    return [answer(page, partial(thumb.press, key)) for key in keys]


def pick_patches(page: Page, repeats: int, key: str = "map") -> list[Answer]:
    """A click on one patch after the other, all over the picture."""
    surface = page.locator(".st-key-patches .surface")
    surface.scroll_into_view_if_needed()
    box = surface.bounding_box()
    assert box is not None
    answers = []
    for i in range(1, repeats + 1):
        at: Position = {"x": box["width"] * (0.618 * i % 1), "y": box["height"] * (0.414 * i % 1)}
        surface.hover(position=at)
        page.evaluate(TWO_FRAMES)
        answers.append(answer(page, partial(surface.click, position=at), key))
    return answers


def open_views(page: Page, repeats: int) -> list[Answer]:
    """All heads from One map, each time."""
    tabs = page.locator(".st-key-view")
    answers = []
    for _ in range(repeats):
        press = tabs.get_by_text("All heads", exact=True).click
        answers.append(answer(page, press, "mosaic"))
        if len(answers) < repeats:
            answer(page, tabs.get_by_text("One map", exact=True).click)
    return answers


def hover_patches(page: Page, repeats: int) -> list[float]:
    """The pointer over one patch after the other: no click, and nothing from the server."""
    surface, line = page.locator(".st-key-patches .surface"), page.locator(".st-key-live p")
    canvas = page.locator(".st-key-map canvas")
    surface.scroll_into_view_if_needed()
    box = surface.bounding_box()
    assert box is not None
    times = []
    for i in range(repeats + 1):
        x, y = (
            box[side] * (share * (i + 1) % 1)
            for side, share in (("width", 0.618), ("height", 0.414))
        )
        if i:  # the first shows that the map is there
            canvas.evaluate(START_HOVER_CLOCK)
        page.mouse.move(box["x"] + x, box["y"] + y)
        if i:
            page.wait_for_function("() => window.clock.end !== null")
            times.append(page.evaluate("() => window.clock.end - window.clock.start") / 1000)
        else:
            expect(canvas).to_be_visible(timeout=PATIENCE)
            expect(line).to_contain_text("looks at")
    page.mouse.move(1, 1)
    return times


def choose_samples(page: Page) -> list[Answer]:
    """Each sample that has not been seen: the time includes its pass through the model."""
    answers = []
    picker = page.locator(".st-key-sample").get_by_role("combobox")
    for sample in list(SAMPLES.values())[1:]:
        picker.scroll_into_view_if_needed()
        page.evaluate(TWO_FRAMES)  # a list that opens while the page scrolls is closed again
        picker.click()
        option = page.get_by_role("option", name=sample.label, exact=True)
        option.wait_for()
        answers.append(answer(page, option.click))
    return answers


@dataclass(frozen=True)
class Line:
    """What was measured, and the seconds that its median may take, if there is a limit."""

    what: str
    took: Sequence[float]
    limit: float | None = None

    @property
    def missed(self) -> bool:
        return self.limit is not None and median(self.took) > self.limit

    def row(self, forward: float) -> str:
        """As a row of the table; `forward` is the model's own pass, in seconds."""
        middle, limit = median(self.took), "" if self.limit is None else f"{self.limit:g} s"
        verdict = " **missed**" if self.missed else ""
        return (
            f"| {self.what} | {limit} | {middle:.3f} s{verdict} | {max(self.took):.3f} s |"
            f" {middle / forward:.2f} | {len(self.took)} |"
        )


def measured(repeats: int) -> Iterator[Line]:
    """All of it, in one browser, on one server."""
    with serving() as address, sync_playwright() as playwright:
        browser = open_browser(playwright)
        yield Line(
            "a fresh server's first visit, to the first picture: imports, weights, a pass",
            [visit(browser, address)[1]],
        )
        visits = [visit(browser, address) for _ in range(8)]
        page = visits[-1][0]
        yield Line("a later visit, to the first picture", [took for _, took in visits], 3)
        yield Line("the pointer moves, to the live map", hover_patches(page, 4 * repeats), 0.032)
        yield from _both("a patch is picked", pick_patches(page, repeats), panels=0.4)
        yield from _both("a step of the layer", press_slider(page, "layer", repeats), picture=0.6)
        yield from _both("a step of opacity", press_slider(page, "alpha", repeats), picture=0.6)
        yield from _both("72 heads are opened", open_views(page, max(2, repeats // 3)), panels=0.8)
        picks = pick_patches(page, repeats, "mosaic")
        yield from _both("a patch is picked beside 72 heads", picks, panels=0.8)
        answer(page, page.locator(".st-key-view").get_by_text("One map", exact=True).click)
        yield from _both("another sample, a pass", choose_samples(page))
        browser.close()


def _both(
    what: str,
    answers: Sequence[Answer],
    *,
    picture: float | None = None,
    panels: float | None = None,
) -> Iterator[Line]:
    drawn = [each.picture for each in answers if each.picture is not None]
    if drawn:
        yield Line(f"{what}, to its picture", drawn, picture)
    yield Line(f"{what}, to all panels", [each.page for each in answers], panels)


def main() -> int:
    """Measure, print, and say whether a limit was missed if `--check` asks for it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ui", description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="presses of each kind (15)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a limit is missed")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    subject = Subject.load()
    subject.forward()
    before, passes = Watch(), [seconds(subject.forward) for _ in range(3)]
    others = before.others()
    lines = list(measured(options.repeats))
    after = Watch()
    passes += [seconds(subject.forward) for _ in range(3)]
    others, forward = max(others, after.others()), median(passes)
    text = "\n".join(
        [
            f"The page in Chromium, DINOv2 ViT-S/14. {machine()}.",
            f"The model's own fused forward pass at 518 × 518 px took {forward:.2f} s (median of"
            f" three before and three after; others took at most {others:.0%} of the processors).",
            "",
            "| from … to … | at most | median | slowest | median / forward pass | times |",
            "| --- | --- | --- | --- | --- | --- |",
            *(line.row(forward) for line in lines),
        ]
    )
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), text, BEGIN, END), "utf-8")
    print(text)
    return int(options.check and any(line.missed for line in lines))


if __name__ == "__main__":
    sys.exit(main())
