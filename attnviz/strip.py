"""The printed film strip: one small map a layer, in order, with a colour bar."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

import numpy as np
from matplotlib.figure import Figure

from attnviz.colour import colour_bar, overlay, stretched
from attnviz.errors import BadOption
from attnviz.frames import Frames
from attnviz.paper import (
    BAR,
    GAP,
    LINE,
    Sheet,
    bar_numbers,
    check_size,
    fit,
    outline,
    printable_facts,
    printed,
)
from attnviz.scale import Scale, numbers, within
from attnviz.typeset import wrap

LEAST_MM = 20.0
"""Of a map's width, unless `columns` says otherwise."""
TALLEST_MM = 220.0
"""All maps together are made narrower rather than higher than this: they have to fit on a page."""


@dataclass(frozen=True, kw_only=True)
class FilmPaper:
    """How a film is drawn; the options of `Film.save`.

    The first five are those of `colour.overlay`, but `scale` can be `"shared"` as well, one for all
    layers; `"own"` and `"zero"` are each layer's own. `width_mm`, `dpi` and `columns` are of the
    printed strip (.pdf .svg .png), `width_px` and `seconds` (for which a layer stands) of the
    animation (.gif .webp). `caption` prints method, facts and notes below.
    """

    alpha: float = 0.5
    colormap: str = "inferno"
    scale: str | Scale = "own"
    clip: float | None = None
    interpolation: str = "nearest"
    width_mm: float = 183.0
    dpi: int = 450
    columns: int | None = None
    width_px: int = 480
    seconds: float = 0.6
    caption: bool = True

    def __post_init__(self) -> None:
        """Check the sizes, and how long a layer stands."""
        check_size(self.width_mm, self.dpi)
        if self.columns is not None:
            _whole("columns", self.columns, 1, 100)
        _whole("width_px", self.width_px, 160, 1600)
        if not within(self.seconds, 0.1, 10.0):
            raise BadOption(f"seconds is from 0.1 to 10 for each layer; {self.seconds!r} came.")

    def own_scales(self) -> bool:
        """Whether each layer has a scale of its own."""
        return isinstance(self.scale, str) and self.scale != "shared"


def _whole(name: str, value: object, low: int, high: int) -> None:
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise BadOption(f"{name} is a whole number from {low} to {high}; {value!r} came.")


def draw_strip(frames: Frames, paper: FilmPaper, *, kind: str, manifest: str) -> bytes:
    """The strip as a file of that kind: `"png"`, `"svg"` or `"pdf"`, with the manifest inside."""
    return printed(
        lambda: _figure(frames, paper),
        kind,
        paper.dpi,
        frames.summary,
        manifest,
        fonts=fonts_of(frames),
    )


def fonts_of(frames: Frames) -> list[str]:
    """The fonts that print the film's facts."""
    return printable_facts(frames.facts)[1]


def caption_of(frames: Frames, paper: FilmPaper, room: float) -> list[str]:
    """The lines below the maps, at most `room` points wide; nothing if they are not wanted.

    A fact that no font here can print is left to the metadata.
    """
    if not paper.caption:
        return []
    said = frames.caption(paper.alpha, printable_facts(frames.facts)[0])
    note = stretched(frames.image.size)
    return [
        line for text in [*said, *([f"Note: {note}."] if note else [])] for line in wrap(text, room)
    ]


def columns_for(count: int, width_mm: float, columns: int | None = None) -> int:
    """Maps in a line: as wanted, else as many as are `LEAST_MM` wide, all lines alike."""
    if columns is not None:
        return min(count, columns)
    most = max(1, int(width_mm // LEAST_MM))
    return -(-count // -(-count // most))


def _figure(frames: Frames, paper: FilmPaper) -> Figure:
    """Labels above maps, line by line; then bar, numbers and text, on whole pixels."""
    scales = frames.scales(paper.scale, clip=paper.clip)
    points = paper.dpi / 72
    gap, step, bar = (round(length * points) for length in (GAP, LINE, BAR))
    width = round(paper.width_mm / 25.4 * paper.dpi)
    room = width - 2 * gap
    columns = columns_for(len(frames.maps), paper.width_mm, paper.columns)
    lines = -(-len(frames.maps) // columns)
    slot = (room - (columns - 1) * gap) // columns
    tallest = round(TALLEST_MM / 25.4 * paper.dpi) // lines
    wide, high = fit(frames.image.size, max(1, slot), tallest)
    labels = [
        [line for text in texts for line in wrap(text, slot / points)]
        for texts in _labels(frames, scales, own=paper.own_scales())
    ]
    above = step * max(map(len, labels))
    down = above + high + gap
    said = wrap(_said(frames, scales, paper), room / points)
    caption = caption_of(frames, paper, room / points)
    bar_top = gap + lines * down
    said_top = bar_top + bar + step
    caption_top = said_top + step * len(said) + (gap if caption else 0)
    sheet = Sheet(Figure(), width, caption_top + step * len(caption) + gap, paper.dpi)
    for at, (heat, scale, label) in enumerate(
        zip(frames.maps.values(), scales, labels, strict=True)
    ):
        line, column = divmod(at, columns)
        left, top = gap + column * (slot + gap), gap + line * down
        for number, text in enumerate(label):
            sheet.text(left + slot // 2, top + step * number, text, "center")
        picture = overlay(
            heat,
            alpha=paper.alpha,
            colormap=paper.colormap,
            scale=scale,
            interpolation=paper.interpolation,
            size=(wide, high),
        )
        at_left = left + (slot - wide) // 2
        axes = sheet.image(picture, at_left, top + above, wide, high, extent=heat.image.size)
        outline(axes, heat, None)
    sheet.image(colour_bar(_bar_scale(scales), paper.colormap), gap, bar_top, room, bar)
    for place, text in _ends(frames, scales, paper, room / points):
        align = {0.0: "left", 1.0: "right"}.get(place, "center")
        sheet.text(gap + round(room * place), bar_top + bar, text, align)
    for number, text in enumerate(said):
        sheet.text(width // 2, said_top + step * number, text, "center")
    for number, text in enumerate(caption):
        sheet.text(gap, caption_top + step * number, text, "left")
    return sheet.figure


def _labels(frames: Frames, scales: list[Scale], *, own: bool) -> list[list[str]]:
    """What stands above each map: its layer, and its scale's two ends where they are its own."""
    names = [[frames.label(layer)] for layer in frames.maps]
    return (
        [[*name, reach(scale)] for name, scale in zip(names, scales, strict=True)] if own else names
    )


def reach(scale: Scale) -> str:
    """A scale's two ends in words, or the one value of a flat one."""
    low, high = numbers(np.array([scale.low, scale.high]), scale.high - scale.low)
    return f"{low} throughout" if scale.flat else f"{low} to {high}"


def _bar_scale(scales: list[Scale]) -> Scale:
    """A scale that has colours to show: one of a level map alone is flat."""
    return next((scale for scale in scales if not scale.flat), scales[0])


def _said(frames: Frames, scales: list[Scale], paper: FilmPaper) -> str:
    """The bar's words: unit, scale, and smoothing if there is any."""
    names = list(dict.fromkeys(scale.name for scale in scales))
    each = (
        "each layer on a scale of its own, whose ends stand above it: "
        if paper.own_scales()
        else ""
    )
    smoothed = "" if paper.interpolation == "nearest" else f"; smoothed ({paper.interpolation})"
    return f"{frames.unit}, {each}{' / '.join(names)}{smoothed}"


def _ends(
    frames: Frames, scales: list[Scale], paper: FilmPaper, room: float
) -> list[tuple[float, str]]:
    if paper.own_scales():
        return [(0.0, "each layer's lower end"), (1.0, "its upper end")]
    every = np.concatenate([heat.drawn for heat in frames.maps.values()])
    return bar_numbers(scales[0], every, room)
