"""The printed grid of layers × heads: whole dots a patch, layers downwards, heads across."""

from __future__ import annotations

import numpy as np
from einops import rearrange
from matplotlib.figure import Figure

from attnviz.board import Bar, draw_bar
from attnviz.errors import BadOption
from attnviz.facts import with_colours
from attnviz.head_maps import HeadMaps
from attnviz.mosaic import mosaic, scale_of_all, tiles_there
from attnviz.paper import Paper, as_notes
from attnviz.scale import Scale
from attnviz.sheet import BAR, GAP, LINE, Sheet, printable_facts, printed
from attnviz.sinks import swallowed_by
from attnviz.typeset import text_width, wrap
from attnviz.venue import TALLEST

VAIN = frozenset({"interpolation", "mass", "original", "alpha", "letters"})
"""Options of maps over pictures: the grid is one panel, and no picture is below it."""

EVERY = 9.0
"""Points that the numbers of two neighbours are apart, at least."""


def draw_heads(maps: HeadMaps, paper: Paper, *, kind: str, manifest: str) -> bytes:
    """The grid as a file of that kind: `"png"`, `"svg"` or `"pdf"`, with the manifest inside.

    `scale` is `"own"`, each head its own, `"shared"` or a ready one. Raises BadOption for options
    that are of a map over a picture.
    """
    usual = Paper()
    for name in sorted(VAIN):
        if getattr(paper, name) != getattr(usual, name):
            raise BadOption(f"The grid of heads has no {name}: leave it out.")
    fonts = printable_facts(maps.facts)[1]
    return printed(
        lambda: _figure(maps, paper), kind, paper.dpi, maps.summary, manifest, fonts=fonts
    )


def _figure(maps: HeadMaps, paper: Paper) -> Figure:
    points = paper.dpi / 72
    gap, step, bar = (round(length * points) for length in (GAP, LINE, BAR))
    layers, heads, rows, cols = maps.values.shape
    width = round(paper.width_mm / 25.4 * paper.dpi)
    beside = round((text_width(str(layers - 1)) + text_width("layer ")) * points) + gap
    room = width - 2 * gap - beside
    between = max(1, round(points))
    tallest = round(TALLEST / 25.4 * paper.dpi)
    patch = min((room // heads - between) // cols, (tallest // layers - between) // rows)
    side = max(heads * (cols * max(1, patch) + between), layers * (rows * max(1, patch) + between))
    laid = mosaic(
        maps.values,
        scale=paper.scale,
        colormap=paper.colormap,
        clip=paper.clip,
        max_side=side,
        gap=between,
    )
    wide, high = laid.image.size
    if wide > room:
        raise BadOption(
            f"{heads} heads of {cols} patches do not fit into {paper.width_mm:g} mm at"
            f" {paper.dpi} dpi. Give a larger width_mm or dpi."
        )
    if high > tallest:
        raise BadOption(
            f"{layers} layers of {rows} patches do not fit into {TALLEST:g} mm, as high as a page"
            f" has room for, at {paper.dpi} dpi. Give a larger dpi."
        )
    caption: list[str] = []
    if paper.caption:
        facts = printable_facts(maps.facts)[0]
        caption = [*maps.caption(facts=facts), *as_notes(remarks_on(maps, paper))]
    lines = [line for text in caption for line in wrap(text, (width - 2 * gap) / points)]
    said = wrap(_said(maps, laid.scale, paper.clip), (width - 2 * gap) / points)
    bar_top = gap + step + high + gap
    said_top = bar_top + (0 if laid.scale is None else bar + step)
    caption_top = said_top + step * len(said) + (gap if lines else 0)
    sheet = Sheet(Figure(), width, caption_top + step * len(lines) + gap, paper.dpi)
    left, top = gap + beside + (room - wide) // 2, gap + step
    sheet.image(laid.image, left, top, wide, high)
    cell_high, cell_wide = laid.cell
    for head in _marked(heads, cell_wide / points):
        name = f"head {head}" if head == 0 and cell_wide / points > 24 else str(head)
        sheet.text(left + head * cell_wide + cell_wide // 2, gap, name, "center")
    for layer in _marked(layers, cell_high / points):
        name = f"layer {layer}" if layer == 0 else str(layer)
        middle = top + layer * cell_high + (cell_high - step) // 2
        sheet.text(left - gap // 2, middle, name, "right")
    of_all = Bar(scale=laid.scale, values=maps.values[tiles_there(maps.values)])
    draw_bar(sheet, of_all, paper.colormap, (gap, bar_top, width - 2 * gap, bar))
    for number, text in enumerate(said):
        sheet.text(width // 2, said_top + step * number, text, "center")
    for number, text in enumerate(lines):
        sheet.text(gap, caption_top + step * number, text, "left")
    return sheet.figure


def words_of(maps: HeadMaps, paper: Paper) -> list[str]:
    """All words of the figure, those of its colour bar too."""
    caption = [*maps.caption(), *as_notes(remarks_on(maps, paper))]
    return with_colours(caption, _said(maps, _scale_of(maps, paper), paper.clip))


def _scale_of(maps: HeadMaps, paper: Paper) -> Scale | None:
    tiles = maps.values[tiles_there(maps.values)]
    return scale_of_all(tiles, paper.scale, clip=paper.clip)


def _marked(count: int, apart: float) -> range:
    """Which of `count` neighbours, `apart` points each, have their number written."""
    return range(0, count, max(1, int(np.ceil(EVERY / apart))))


def remarks_on(maps: HeadMaps, paper: Paper) -> list[str]:
    """Which head's few patches leave next to nothing to see of a scale that all share, if any."""
    there = tiles_there(maps.values)
    tiles = rearrange(maps.values[there], "head row col -> head (row col)")
    scale = _scale_of(maps, paper)
    if scale is None or isinstance(paper.scale, Scale) or scale.high < tiles.max():
        return []
    way_out = "a clip, such as 99," if paper.clip is None else "a lower clip"
    return [
        f"layer {layer}, head {head} sets the scale's upper end; beside it nearly all else is"
        f" dark: {way_out} or each head's own scale shows the others"
        for layer, head in (np.argwhere(there)[tile] for tile, _ in swallowed_by(tiles)[:1])
    ]


def _said(maps: HeadMaps, scale: Scale | None, clip: float | None) -> str:
    if scale is not None:
        return f"{maps.unit}, {scale.name}, one scale for all heads"
    low, high = "lowest value", "highest"
    if clip is not None:
        low, high = f"percentile {100 - clip:g}", f"percentile {clip:g}"
    return f"{maps.unit}, each head from its {low} (dark) to its {high} (bright)"
