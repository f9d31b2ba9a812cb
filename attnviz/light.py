"""A photograph as fine as print needs and a file has room for."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

BUDGET = 200_000
"""Bytes that one panel's photograph may take in a column: the file stays under 300 kB."""

STEPS = ((1, 8), (1, 6), (2, 8), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6), (8, 6), (12, 6))
"""(printed dots a pixel, bits a colour), finest first; at 450 dpi, 2 are 225 pixels an inch."""

FEWER = 0.5
"""Six bits take at least this share of the bytes of eight: what can't fit is not tried."""

BAND, EVERY = 16, 128
"""Rows that are weighed, of how many."""


def budget_of(panels: int, columns: float = 1.0) -> float:
    """Bytes for each photograph of so many: beside others half of `BUDGET`, at most 3 in all.

    One alone that is wider than a column has as many more as its area is larger.
    """
    if panels == 1:
        return BUDGET * max(1.0, columns) ** 2
    return min(BUDGET / 2, 3 * BUDGET / panels)


def light(
    picture: Image.Image, size: tuple[int, int], *, budget: float = BUDGET, spread: bool
) -> Image.Image:
    """The picture for a place of `size` = (width, height) printed dots, in at most `budget` bytes.

    It is exact if that fits, else coarser in the least of `STEPS`. With `spread` it has a pixel for
    each dot, as a PNG must; else a viewer spreads it, and one with fewer pixels keeps its own.
    """
    finest = _shrunk(picture, size)
    made, seen = finest, (1, 0.0)
    for dots, bits in STEPS:
        least = seen[1] * (seen[0] / dots) ** 2 * (1 if bits == 8 else FEWER)
        if least > budget and (dots, bits) != STEPS[-1]:
            continue
        made = _in_bits(_shrunk(finest, (max(1, size[0] // dots), max(1, size[1] // dots))), bits)
        across = (size[0], made.height) if spread else made.size
        seen = dots, _weight(made.resize(across, Image.Resampling.NEAREST))
        if seen[1] <= budget:
            break
    return made.resize(size, Image.Resampling.NEAREST) if spread else made


def _shrunk(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Enlarging invents no pixels, so that is left to others; shrinking averages them."""
    fewer = size[0] < picture.width and size[1] < picture.height
    return picture.resize(size, Image.Resampling.LANCZOS) if fewer else picture


def _in_bits(picture: Image.Image, bits: int) -> Image.Image:
    if bits == 8:
        return picture
    most = (1 << bits) - 1  # black stays black, white white
    return picture.point(
        [round(round(level / 255 * most) / most * 255) for level in range(256)] * 3
    )


def _weight(picture: Image.Image) -> float:
    """About how many bytes a PNG takes, by some of its rows."""
    tops = range(0, picture.height, EVERY if picture.height > 2 * EVERY else BAND)
    total, rows = 0, 0
    for top in tops:
        band = picture.crop((0, top, picture.width, min(top + BAND, picture.height)))
        file = BytesIO()
        band.save(file, "PNG")
        total, rows = total + len(file.getvalue()), rows + band.height
    return total * picture.height / rows
