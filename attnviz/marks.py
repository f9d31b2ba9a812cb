"""Numbered outlines on a picture: pairs of places that belong together."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from attnviz.contract import Box

Cell = tuple[int, int]

SHARE = 0.03
"""Height of a number, of the picture's longer side."""

LEAST = 11
"""And its pixels at least."""


def cell_boxes(grid: Cell, box: Box, cells: Sequence[Cell]) -> list[Box]:
    """Where cells (row, col) of a grid lie that fills a box."""
    left, top, right, bottom = box
    high, wide = (bottom - top) / grid[0], (right - left) / grid[1]
    return [
        (left + col * wide, top + row * high, left + (col + 1) * wide, top + (row + 1) * high)
        for row, col in cells
    ]


def numbered(image: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    """The picture with each box outlined and numbered from 1, white on black: seen on any colour.

    `boxes` are (left, top, right, bottom) in pixels of the picture; a number stands above its box,
    or in it where there is no room.
    """
    drawn = image.copy()
    pen = ImageDraw.Draw(drawn)
    size = max(LEAST, round(SHARE * max(image.size)))
    font = ImageFont.load_default(size)
    line = max(1, size // 8)
    for number, (left, top, right, bottom) in enumerate(boxes, 1):
        for colour, width in (("black", 3 * line), ("white", line)):
            pen.rectangle((left, top, right, bottom), outline=colour, width=width)
        words, height = str(number), size + 2 * line
        wide = pen.textlength(words, font) + 4 * line
        x = min(max(left, 0), image.width - wide)
        y = top - height if top >= height else max(top, 0)
        pen.rectangle((x, y, x + wide, y + height), fill="black")
        pen.text((x + wide / 2, y + height / 2), words, fill="white", font=font, anchor="mm")
    return drawn
