"""Pictures beside and below each other on paper, with names above and colour bars below.

Files of vectors hold each map as an image of its cells, one pixel a cell, over the photograph;
a PNG holds the pixels of `colour.overlay`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from attnviz.colour import cells, colour_bar, overlay, ticks
from attnviz.heatmap import Heatmap
from attnviz.light import budget_of, light
from attnviz.mass import MassMask
from attnviz.scale import Scale
from attnviz.sheet import BAR, GAP, LINE, Sheet, fit
from attnviz.typeset import text_width, wrap
from attnviz.venue import COLUMN

SHARES = {"png": 0.9, "svg": 0.75, "pdf": 1.0}
"""Of the bytes for photographs, by kind: an SVG writes them as letters, a PNG every dot's row."""

LEAST_MM = 20.0
"""Of a panel's width, unless a number of columns is asked for."""

LETTER = 9.0
"""Points that a panel's letter takes before its name."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A colour bar with its numbers, and the words below it."""

    said: str = ""
    scale: Scale | None = None
    """None where three components are mixed: the words stand alone."""
    values: Float[np.ndarray, "*shape"] | None = None
    """What it is of: an end that some lie beyond is marked ≤ or ≥."""
    ends: tuple[str, str] | None = None
    """What stands at both ends, instead of numbers."""

    def marks(self, room: float) -> list[tuple[float, str]]:
        """Where along the bar (0 to 1) which text stands, in `room` points."""
        if self.scale is None:
            return []
        if self.ends is not None:
            return [(0.0, self.ends[0]), (1.0, self.ends[1])]
        return _numbers(self.scale, self.values, room)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture: a photograph alone, or with a map over it."""

    image: Image.Image
    heat: Heatmap | None = None
    scale: str | Scale = "own"
    clip: float | None = None
    mask: MassMask | None = None
    above: tuple[str, ...] = ()
    """Its name and what else stands above it, each on a line of its own."""
    bar: Bar | None = None
    """Of its own; `Board` has one of all."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """All panels of a figure, `columns` in a line, and what is below them."""

    panels: tuple[Panel, ...]
    columns: int = 1
    bar: Bar | None = None
    caption: tuple[str, ...] = ()
    letters: bool = False
    width_mm: float
    dpi: int
    tallest_mm: float
    """All lines of pictures together are made narrower rather than higher: they fit on a page."""
    alpha: float
    colormap: str
    interpolation: str

    def drawn(self, kind: str) -> Figure:
        """The figure, on whole pixels, for a file of that kind, its text wrapped to fit."""
        return _Layout(self).drawn(kind)


class _Layout:
    """Where things go: all lengths are pixels, but `points` a pixel's share of a point."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.scale = board.dpi / 72
        self.gap, self.step, self.high_bar = (round(part * self.scale) for part in (GAP, LINE, BAR))
        self.letter = round(LETTER * self.scale) if board.letters else 0
        self.width = round(board.width_mm / 25.4 * board.dpi)
        self.room = self.width - 2 * self.gap
        self.slot = max(1, (self.room - (board.columns - 1) * self.gap) // board.columns)
        self.lines = [
            board.panels[at : at + board.columns]
            for at in range(0, len(board.panels), board.columns)
        ]
        tallest = round(board.tallest_mm / 25.4 * board.dpi) // len(self.lines)
        self.sizes = [fit(panel.image.size, self.slot, tallest) for panel in board.panels]
        room = max(1, self.slot - self.letter) / self.scale
        self.names = [
            [line for text in panel.above for line in wrap(text, room)] for panel in board.panels
        ]
        self.words = [
            wrap(panel.bar.said, self.slot / self.scale) if panel.bar else []
            for panel in board.panels
        ]
        self.said = wrap(board.bar.said, self.room / self.scale) if board.bar else []
        self.caption = [
            line for text in board.caption for line in wrap(text, self.room / self.scale)
        ]

    def drawn(self, kind: str) -> Figure:
        """Line by line of panels; then the common bar, its words, and the caption."""
        board, gap = self.board, self.gap
        tops, top = [], gap
        for number, _ in enumerate(self.lines):
            tops.append(top)
            top += self._above(number) + self._high(number) + gap + self._below(number)
        bar_top = top
        bare = board.bar is None or board.bar.scale is None
        said_top = bar_top + (0 if bare else self.high_bar + self.step)
        caption_top = said_top + self.step * len(self.said)
        caption_top += gap if self.caption and self.said else 0
        height = caption_top + self.step * len(self.caption) + gap
        sheet = Sheet(Figure(), self.width, height, board.dpi)
        for at in range(len(board.panels)):
            line, column = divmod(at, board.columns)
            left = gap + column * (self.slot + gap)
            self._panel(sheet, at, left, tops[line], line, kind)
        if board.bar is not None:
            self._bar(sheet, board.bar, gap, bar_top, self.room)
        for number, text in enumerate(self.said):
            sheet.text(self.width // 2, said_top + self.step * number, text, "center")
        for number, text in enumerate(self.caption):
            sheet.text(gap, caption_top + self.step * number, text, "left")
        return sheet.figure

    def _of_line(self, number: int) -> range:
        first = number * self.board.columns
        return range(first, first + len(self.lines[number]))

    def _above(self, number: int) -> int:
        most = max(len(self.names[at]) for at in self._of_line(number))
        return self.step * max(most, 1 if self.board.letters else 0)

    def _high(self, number: int) -> int:
        return max(self.sizes[at][1] for at in self._of_line(number))

    def _below(self, number: int) -> int:
        """Of a line's own bars with their words, and the gap below them."""
        tall = 0
        for at in self._of_line(number):
            bar = self.board.panels[at].bar
            if bar is not None:
                head = 0 if bar.scale is None else self.high_bar + self.step
                tall = max(tall, head + self.step * len(self.words[at]) + self.gap)
        return tall

    def _panel(self, sheet: Sheet, at: int, left: int, top: int, line: int, kind: str) -> None:
        panel, (wide, high) = self.board.panels[at], self.sizes[at]
        if self.letter:
            sheet.text(left, top, letter_of(at), "left", bold=True)
        x, align = (
            (left + self.letter, "left") if self.letter else (left + self.slot // 2, "center")
        )
        for number, text in enumerate(self.names[at]):
            sheet.text(x, top + self.step * number, text, align)
        beside = 0 if self.letter else (self.slot - wide) // 2
        place = (left + beside, top + self._above(line), wide, high)
        axes = self._picture(sheet, panel, place, kind)
        if panel.heat is not None:
            outline(axes, panel.heat, panel.mask)
        if panel.bar is not None:
            bar_top = top + self._above(line) + self._high(line) + self.gap
            self._bar(sheet, panel.bar, left, bar_top, self.slot)
            if panel.bar.scale is not None:
                bar_top += self.high_bar + self.step
            for number, text in enumerate(self.words[at]):
                sheet.text(left + self.slot // 2, bar_top + self.step * number, text, "center")

    def _picture(
        self, sheet: Sheet, panel: Panel, place: tuple[int, int, int, int], kind: str
    ) -> Axes:
        """The photograph, no finer than the file has room for, and the map over it."""
        board, size = self.board, place[2:]
        colours: dict[str, Any] = {"alpha": board.alpha}
        if panel.heat is not None and not panel.heat.in_colour:
            of_one = {"colormap": board.colormap, "scale": panel.scale, "clip": panel.clip}
            colours |= of_one
        dots, heat, picture = kind == "png", panel.heat, panel.image
        if heat is not None and board.interpolation != "nearest":  # no finer than the photograph
            picture = overlay(heat, size=size, interpolation=board.interpolation, **colours)
            heat = None
        budget = SHARES[kind] * budget_of(len(board.panels), board.width_mm / COLUMN)
        under = light(picture, size, budget=budget, spread=dots)
        if heat is not None and dots:
            under = overlay(_over(heat, under), **colours)
        axes = sheet.image(under, *place, extent=panel.image.size)
        if heat is not None and not dots:
            left, top, right, bottom = heat.box
            axes.imshow(
                cells(heat, **colours),
                aspect="auto",
                interpolation="none",
                extent=(left, right, bottom, top),
            )
            axes.set(xlim=(0, panel.image.width), ylim=(panel.image.height, 0))
        return axes

    def _bar(self, sheet: Sheet, bar: Bar, left: int, top: int, room: int) -> None:
        draw_bar(sheet, bar, self.board.colormap, (left, top, room, self.high_bar))


def draw_bar(sheet: Sheet, bar: Bar, colormap: str, place: tuple[int, int, int, int]) -> None:
    """A colour bar at (left, top, width, height) in pixels, and the line of its marks below.

    Nothing where it has no scale.
    """
    if bar.scale is None:
        return
    left, top, wide, high = place
    sheet.image(colour_bar(bar.scale, colormap), *place)
    for along, text in bar.marks(wide / (sheet.dpi / 72)):
        align = {0.0: "left", 1.0: "right"}.get(along, "center")
        sheet.text(left + round(wide * along), top + high, text, align)


def columns_for(count: int, width_mm: float, columns: int | None = None) -> int:
    """Maps in a line: as wanted, else as many as are `LEAST_MM` wide, all lines alike."""
    if columns is not None:
        return min(count, columns)
    most = max(1, int(width_mm // LEAST_MM))
    return -(-count // -(-count // most))


def letter_of(number: int) -> str:
    """The letter of a panel: a to z, then aa, ab and so on."""
    more, last = divmod(number, 26)
    return (letter_of(more - 1) if more else "") + chr(ord("a") + last)


def _over(heat: Heatmap, picture: Image.Image) -> Heatmap:
    """The same map over the same picture in another size."""
    across, down = picture.width / heat.image.width, picture.height / heat.image.height
    left, top, right, bottom = heat.box
    box = (left * across, top * down, right * across, bottom * down)
    return replace(heat, image=picture, box=box)


def _numbers(
    scale: Scale, values: Float[np.ndarray, "*shape"] | None, room: float
) -> list[tuple[float, str]]:
    """Where along the bar (0 to 1) which number stands; without the middle one if it collides."""
    texts = [text for _, text in ticks(scale, values)]
    if len(texts) == 1:
        return [(0.5, texts[0])]
    low, middle, high = texts
    gap = text_width(" ")
    beside = room / 2 - text_width(middle) / 2 - 2 * gap
    fits = max(text_width(low), text_width(high)) <= beside
    return [(0.0, low), *([(0.5, middle)] if fits else []), (1.0, high)]


def outline(axes: Axes, heat: Heatmap, mask: MassMask | None) -> None:
    """Frames around the mask and the patch that was asked about, visible on any colour."""
    segments = heat.outline(mask) if mask else []
    for colour, points in (("black", 1.2), ("white", 0.6)):
        lines = LineCollection(segments, colors=colour, linewidths=points)
        lines.set_capstyle("projecting")  # so that corners are closed
        axes.add_collection(lines, autolim=False)
    if heat.query_cell is None:
        return
    left, top, right, bottom = heat.cell_box(*heat.query_cell)
    for colour, points in (("black", 1.4), ("white", 0.7)):
        frame = Rectangle((left, top), right - left, bottom - top, fill=False)
        frame.set(edgecolor=colour, linewidth=points)
        axes.add_patch(frame)
