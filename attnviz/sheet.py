"""The sheet that a figure is drawn on, measured in whole pixels, and the file it becomes.

Matplotlib's objects only, never pyplot, and one figure at a time: its settings belong to the whole
process. The same request gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from threading import Lock
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from attnviz.colour import bounded
from attnviz.errors import BadOption
from attnviz.facts import Facts
from attnviz.fonts import FONT, families
from attnviz.typeset import TYPE, clean

LINE = 8.0
"""Of text, in points like the next two."""
GAP = 4.0
BAR = 6.0
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
    "image.composite_image": False,  # pictures stay as fine or coarse as they are
}

_one_at_a_time = Lock()


def printed(
    make: Callable[[], Figure],
    kind: str,
    dpi: int,
    title: str,
    manifest: str,
    *,
    fonts: Sequence[str] = (FONT,),
) -> bytes:
    """What `make` draws, with this file's settings, as a file with title and manifest inside.

    `kind` is `"png"`, `"svg"` or `"pdf"`.
    """
    title, facts = clean(title), clean(manifest)
    file = BytesIO()
    settings = SETTINGS | {"font.sans-serif": list(fonts)}
    with _one_at_a_time, matplotlib.style.context(["default", settings]):
        figure = make()
        if kind == "png":
            _pixels(figure).save(file, "PNG", dpi=(dpi, dpi), pnginfo=png_words(title, facts))
        else:
            metadata: dict[str, dict[str, str | None]] = {
                "svg": {"Title": title, "Description": facts, "Date": None},
                "pdf": {"Title": title, "Subject": facts, "CreationDate": None},
            }
            figure.savefig(file, format=kind, dpi=dpi, metadata=metadata[kind])
    return file.getvalue()


def _pixels(figure: Figure) -> Image.Image:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def png_words(title: str, manifest: str) -> PngInfo:
    """What a PNG says of itself."""
    words = PngInfo()
    for name, text in {"Title": title, "Description": manifest, "Software": "attnviz"}.items():
        words.add_itxt(name, text)
    return words


def printable_facts(facts: Facts) -> tuple[Facts, list[str]]:
    """The facts that some font here can print, and the fonts that it takes."""
    left, fonts = [], [FONT]
    for name, value in facts:
        found = families(value)
        left += [(name, value)] if found else []
        fonts += [font for font in found if font not in fonts]
    return tuple(left), fonts


def fit(size: tuple[int, int], wide: int, high: int) -> tuple[int, int]:
    """A picture's (width, height) in whole pixels, as large as that room allows."""
    size = bounded(size)
    share = min(wide / size[0], high / size[1])
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))


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
            interpolation="none",  # a file of vectors keeps its very pixels
            extent=(0, extent[0], extent[1], 0),
        )
        return axes

    def text(self, x: int, top: int, text: str, align: str, *, bold: bool = False) -> None:
        """One line of text in the upper part of a line's height."""
        baseline = 1 - (top + TYPE / 72 * self.dpi) / self.height
        weight = "bold" if bold else "normal"
        place = (x / self.width, baseline)
        self.figure.text(*place, text, ha=align, va="baseline", fontweight=weight)
