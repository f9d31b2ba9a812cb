"""The film as an animation: one frame a layer, with its number, colour bar and words.

A frame is drawn as a figure on paper is, so that its map has the very pixels of `colour.overlay`.
WebP keeps them without loss; GIF has 256 colours a frame, the nearest of which stand for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

from matplotlib.figure import Figure
from PIL import Image

from attnviz.board import Bar, draw_bar, outline
from attnviz.colour import overlay, paletted
from attnviz.errors import BadOption
from attnviz.frames import Frames
from attnviz.legend import legend
from attnviz.scale import Scale
from attnviz.sheet import BAR, GAP, LINE, Sheet, fit, printed
from attnviz.strip import FilmPaper, caption_of, fonts_of
from attnviz.typeset import clean, wrap

DPI = 144
"""Text of 6 points is then 12 pixels high."""
GAP_PX, LINE_PX, BAR_PX = (round(length * DPI / 72) for length in (GAP, LINE, BAR))
TALLEST_PX = 720
"""A map is made narrower rather than higher than this."""
MOST_PIXELS = 100_000_000
"""Of all frames together."""


def draw_animation(frames: Frames, paper: FilmPaper, *, kind: str, manifest: str) -> bytes:
    """All frames in a loop, as `"gif"` or `"webp"`, with the manifest inside.

    The same request gives the same bytes. Raises BadOption for one that takes too much memory.
    """
    first, *rest = pictures(frames, paper)
    film: dict[str, Any] = {
        "save_all": True,
        "append_images": rest,
        "duration": round(paper.seconds * 100) * 10,  # in ms; a GIF counts hundredths of a second
        "loop": 0,  # for ever
    }
    file = BytesIO()
    if kind == "gif":
        first, *film["append_images"] = map(paletted, [first, *rest])
        first.save(file, "GIF", **film, optimize=False, comment=clean(manifest).encode())
    else:
        first.save(file, "WEBP", **film, lossless=True, xmp=_xmp(clean(manifest)))
    return file.getvalue()


def pictures(frames: Frames, paper: FilmPaper) -> list[Image.Image]:
    """Every layer's frame, all of one size, in order."""
    plan = _Plan.of(frames, paper)
    if plan.width * plan.height * len(frames.maps) > MOST_PIXELS:
        raise BadOption(
            f"{len(frames.maps)} frames of {plan.width} × {plan.height} pixels are too large for"
            " an animation; give a smaller width_px."
        )
    fonts = fonts_of(frames)
    drawn = []
    for layer in frames.maps:
        file = printed(partial(plan.figure, layer), "png", DPI, frames.title, "", fonts=fonts)
        with Image.open(BytesIO(file)) as picture:
            drawn.append(picture.convert("RGB"))
    return drawn


@dataclass(frozen=True)
class _Plan:
    """What all frames have in common, so that nothing moves but the map: lengths are pixels."""

    frames: Frames
    paper: FilmPaper
    scales: dict[int, Scale]
    labels: dict[int, list[str]]
    """Below each layer's colour bar."""
    caption: list[str]
    size: tuple[int, int]
    """(width, height) of a map."""

    @classmethod
    def of(cls, frames: Frames, paper: FilmPaper) -> _Plan:
        scales = dict(zip(frames.maps, frames.scales(paper.scale, clip=paper.clip), strict=True))
        room = paper.width_px - 2 * GAP_PX
        points = room * 72 / DPI
        labels = {}
        for layer, heat in frames.maps.items():
            how: dict[str, Any] = {"scale": scales[layer], "interpolation": paper.interpolation}
            labels[layer] = wrap(legend(heat, colormap=paper.colormap, **how)[1], points)
        return cls(
            frames,
            paper,
            scales,
            labels,
            caption_of(frames, paper, points),
            fit(frames.image.size, room, TALLEST_PX),
        )

    @property
    def width(self) -> int:
        return self.paper.width_px

    @property
    def bar_top(self) -> int:
        return GAP_PX + LINE_PX + self.size[1] + GAP_PX

    @property
    def caption_top(self) -> int:
        most = max(map(len, self.labels.values()))
        return self.bar_top + BAR_PX + LINE_PX * (1 + most) + (GAP_PX if self.caption else 0)

    @property
    def height(self) -> int:
        return self.caption_top + LINE_PX * len(self.caption) + GAP_PX

    def figure(self, layer: int) -> Figure:
        """The layer's number above its map; below it bar, numbers and text."""
        heat, scale, paper = self.frames.maps[layer], self.scales[layer], self.paper
        wide, high = self.size
        room = self.width - 2 * GAP_PX
        sheet = Sheet(Figure(), self.width, self.height, DPI)
        number = f"{self.frames.label(layer)} of {self.frames.layers}, counted from 0"
        sheet.text(GAP_PX, GAP_PX // 2, number, "left")
        picture = overlay(
            heat,
            alpha=paper.alpha,
            colormap=paper.colormap,
            scale=scale,
            interpolation=paper.interpolation,
            size=self.size,
        )
        left, top = (self.width - wide) // 2, GAP_PX + LINE_PX
        outline(sheet.image(picture, left, top, wide, high, extent=heat.image.size), heat, None)
        bar = Bar(scale=scale, values=heat.drawn)
        draw_bar(sheet, bar, paper.colormap, (GAP_PX, self.bar_top, room, BAR_PX))
        below = self.bar_top + BAR_PX + LINE_PX
        for line, text in enumerate(self.labels[layer]):
            sheet.text(self.width // 2, below + LINE_PX * line, text, "center")
        for line, text in enumerate(self.caption):
            sheet.text(GAP_PX, self.caption_top + LINE_PX * line, text, "left")
        return sheet.figure


def _xmp(manifest: str) -> bytes:
    """The manifest as the description of an XMP packet, which is where WebP has one."""
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:description><rdf:Alt>'
        f'<rdf:li xml:lang="x-default">{escape(manifest)}</rdf:li>'
        "</rdf:Alt></dc:description></rdf:Description></rdf:RDF></x:xmpmeta>"
    ).encode()
