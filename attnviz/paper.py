"""The printed figure: picture, colour bar with its numbers, caption; as PNG, SVG or PDF.

Matplotlib's objects only, never pyplot, and one figure at a time: its settings belong to the whole
process. The same request gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from threading import Lock
from typing import Any

import matplotlib.style
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from attnviz.colour import bounded, colour_bar, overlay, stretched, ticks
from attnviz.errors import BadOption
from attnviz.facts import Facts
from attnviz.fonts import FONT, families
from attnviz.heatmap import Heatmap
from attnviz.legend import legend
from attnviz.mass import MassMask, mass_mask
from attnviz.scale import Scale, within
from attnviz.typeset import TYPE, clean, text_width, wrap

LINE = 8.0
"""Of text, in points like the next two."""
GAP = 4.0
BAR = 6.0
TALLEST_MM = 150.0
"""The picture is narrowed rather than made higher than this: it has to fit on a page."""
MOST_PIXELS = 100_000_000
SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",  # what an SVG names where this font is missing
    "font.sans-serif": [FONT],
    "font.size": TYPE,
    "text.parse_math": False,  # a $ in a fact is a $
    "text.hinting": "none",  # as wide as measured
    "pdf.fonttype": 42,  # TrueType: text stays text
    "svg.fonttype": "none",  # the same in SVG
    "svg.hashsalt": "attnviz",  # else its ids are random
}

_one_at_a_time = Lock()


@dataclass(frozen=True, kw_only=True)
class Paper:
    """How a figure is drawn and how large it is printed; the options of `save`.

    The first five are those of `colour.overlay`; `mass` outlines the fewest patches that hold that
    share of the map. `caption` prints method, facts and notes below; the colour bar, or the words
    that stand for it, is always there, with its numbers, unit, scale and smoothing.
    """

    alpha: float = 0.5
    colormap: str = "inferno"
    scale: str | Scale = "own"
    clip: float | None = None
    interpolation: str = "nearest"
    mass: float | None = None
    width_mm: float = 89.0
    dpi: int = 450
    caption: bool = True

    def __post_init__(self) -> None:
        """Check what `colour.overlay` and `mass_mask` don't."""
        check_size(self.width_mm, self.dpi)

    def pixels(self, points: float) -> int:
        """A length in points as whole pixels."""
        return round(points / 72 * self.dpi)

    def mask(self, heat: Heatmap) -> MassMask | None:
        """What is outlined, if anything is."""
        return None if self.mass is None else mass_mask(heat.values, self.mass)


@dataclass(frozen=True, kw_only=True)
class PlotPaper:
    """How large a plot is printed; the options of `save_depth` and `save_curves`.

    `caption` prints what is drawn, the facts and the notes below.
    """

    width_mm: float = 89.0
    dpi: int = 450
    caption: bool = True

    def __post_init__(self) -> None:
        """Check the size."""
        check_size(self.width_mm, self.dpi)


def check_size(width_mm: float, dpi: float) -> None:
    """Refuse a figure of a width or with dots that nobody prints."""
    for name, value, low, high in (("width_mm", width_mm, 50, 400), ("dpi", dpi, 72, 1200)):
        if not within(value, low, high):
            raise BadOption(f"{name} is from {low} to {high}; {value!r} came.")


def draw(heat: Heatmap, paper: Paper, *, kind: str, manifest: str) -> bytes:
    """The figure as a file of that kind: `"png"`, `"svg"` or `"pdf"`, with the manifest inside."""
    shown, fonts = printable(heat)
    return printed(
        lambda: _figure(shown, paper), kind, paper.dpi, heat.summary, manifest, fonts=fonts
    )


def printed(
    make: Callable[[], Figure],
    kind: str,
    dpi: int,
    title: str,
    manifest: str,
    *,
    fonts: Sequence[str] = (FONT,),
) -> bytes:
    """What `make` draws, with this file's settings, as a file with title and manifest inside."""
    title, facts = clean(title), clean(manifest)
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Title": title, "Description": facts, "Software": "attnviz"},
        "svg": {"Title": title, "Description": facts, "Date": None},
        "pdf": {"Title": title, "Subject": facts, "CreationDate": None},
    }
    file = BytesIO()
    settings = SETTINGS | {"font.sans-serif": list(fonts)}
    with _one_at_a_time, matplotlib.style.context(["default", settings]):
        make().savefig(file, format=kind, dpi=dpi, metadata=metadata[kind])
    return file.getvalue()


def printable(heat: Heatmap) -> tuple[Heatmap, list[str]]:
    """The same without facts that no font here can print, and the fonts for those that are left."""
    left, fonts = printable_facts(heat.facts)
    return replace(heat, facts=left), fonts


def printable_facts(facts: Facts) -> tuple[Facts, list[str]]:
    """The facts that some font here can print, and the fonts that it takes."""
    left, fonts = [], [FONT]
    for name, value in facts:
        found = families(value)
        left += [(name, value)] if found else []
        fonts += [font for font in found if font not in fonts]
    return tuple(left), fonts


def _figure(heat: Heatmap, paper: Paper) -> Figure:
    """Picture, colour bar and text below each other, on whole pixels, the text wrapped to fit."""
    colours: dict[str, Any] = {
        "colormap": paper.colormap,
        "scale": paper.scale,
        "clip": paper.clip,
        "interpolation": paper.interpolation,
    }
    scale, said = legend(heat, **colours)
    gap, step, bar = map(paper.pixels, (GAP, LINE, BAR))
    width = round(paper.width_mm / 25.4 * paper.dpi)
    room = width - 2 * gap
    room_points = room * 72 / paper.dpi
    wide, high = fit(heat.image.size, room, round(TALLEST_MM / 25.4 * paper.dpi))
    label = wrap(said, room_points)
    mask = paper.mask(heat)
    texts = heat.caption(paper.alpha, mask) if paper.caption else []
    if texts and (note := stretched(heat.image.size)):
        texts = [*texts, f"Note: {note}."]
    caption = [line for text in texts for line in wrap(text, room_points)]
    bar_top = gap + high + gap
    label_top = bar_top + (0 if scale is None else bar + step)
    caption_top = label_top + step * len(label) + (gap if caption else 0)
    height = caption_top + step * len(caption) + gap
    sheet = Sheet(Figure(), width, height, paper.dpi)
    picture = overlay(
        heat,
        alpha=paper.alpha,
        size=(wide, high),  # as many pixels as are printed: nothing resamples them again
        **colours,
    )
    axes = sheet.image(picture, (width - wide) // 2, gap, wide, high, extent=heat.image.size)
    outline(axes, heat, mask)
    if scale is not None:
        sheet.image(colour_bar(scale, paper.colormap), gap, bar_top, room, bar)
        for place, text in bar_numbers(scale, heat.drawn, room_points):
            align = {0.0: "left", 1.0: "right"}.get(place, "center")
            sheet.text(gap + round(room * place), bar_top + bar, text, align)
    for index, text in enumerate(label):
        sheet.text(width // 2, label_top + step * index, text, "center")
    for index, text in enumerate(caption):
        sheet.text(gap, caption_top + step * index, text, "left")
    return sheet.figure


def fit(size: tuple[int, int], wide: int, high: int) -> tuple[int, int]:
    """A picture's (width, height) in whole pixels, as large as that room allows."""
    size = bounded(size)
    share = min(wide / size[0], high / size[1])
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))


def bar_numbers(
    scale: Scale, values: Float[np.ndarray, "*shape"], room: float
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


@dataclass(frozen=True)
class Sheet:
    """A figure measured in whole pixels from its upper left corner."""

    figure: Figure
    width: int
    height: int
    dpi: int

    def __post_init__(self) -> None:
        """Give the figure its size, if it is one that can be kept in memory."""
        if self.width * self.height > MOST_PIXELS:
            raise BadOption(
                f"A figure of {self.width} × {self.height} pixels is too large; give a smaller"
                " width_mm or dpi."
            )
        self.figure.set_dpi(self.dpi)
        # A hair more, since Matplotlib would cut a length of 1576.9999 pixels down to 1576.
        self.figure.set_size_inches((self.width + 1e-3) / self.dpi, (self.height + 1e-3) / self.dpi)

    def image(
        self,
        picture: Image.Image,
        left: int,
        top: int,
        wide: int,
        high: int,
        extent: tuple[int, int] = (1, 1),
    ) -> Axes:
        """A picture over a rectangle of pixels, as axes that count `extent` units."""
        bottom = self.height - top - high
        axes = self.figure.add_axes(
            (left / self.width, bottom / self.height, wide / self.width, high / self.height)
        )
        axes.set_axis_off()
        axes.imshow(
            picture,
            aspect="auto",
            interpolation="nearest",
            extent=(0, extent[0], extent[1], 0),
        )
        return axes

    def text(self, x: int, top: int, text: str, align: str) -> None:
        """One line of text in the upper part of a line's height."""
        baseline = 1 - (top + TYPE / 72 * self.dpi) / self.height
        self.figure.text(x / self.width, baseline, text, ha=align, va="baseline")
