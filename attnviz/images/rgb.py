"""Any loaded picture, in whatever mode, as 8-bit RGB with its transparency laid on white."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Shaped, UInt8
from PIL import Image

from attnviz.errors import BadImage

WHITE_16 = 65535
_BAND = 1_000_000
"""Pixels converted at a time: what a conversion needs in between stays a few megabytes."""


def to_rgb(image: Image.Image, *, name: str) -> Image.Image:
    """A new RGB picture of the same size; needs 4 bytes a pixel besides the one given.

    Deep grey (`I;16`, or `I` from a format whose white is 65535) is scaled by its white, never
    clipped; `F` is taken as 0 to 1. Errors: `BadImage` where the file doesn't say what is white, or
    the mode has no way to RGB.
    """
    white, inverted = _white(image, name), _white_is_zero(image)
    rgb = Image.new("RGB", image.size, "white")
    for box in _bands(image.size):
        part = image.crop(box)
        if white is not None:
            part = _grey(part, white, name)
            part = part if not inverted else part.point(lambda value: 255 - value)
        rgb.paste(_on_white(part, name), box)
    return rgb


def _bands(size: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    width, height = size
    rows = max(1, _BAND // width)
    for top in range(0, height, rows):
        yield 0, top, width, min(top + rows, height)


def _on_white(part: Image.Image, name: str) -> Image.Image:
    if part.mode == "La":  # premultiplied grey has one way out
        part = part.convert("LA")
    try:
        if not part.has_transparency_data:
            return part.convert("RGB")
        clear = part.convert("RGBA")
    except Exception as error:
        raise BadImage(
            f"{name} has the colour mode {part.mode}, which has no way to RGB:"
            " save it as an RGB picture."
        ) from error
    white = Image.new("RGB", part.size, "white")
    white.paste(clear, mask=clear)
    return white


def _white(image: Image.Image, name: str) -> int | None:
    """The value that is white in a picture deeper than 8 bits; None where Pillow knows it."""
    if image.mode.startswith("I;16"):
        bits = _tiff_tag(image, 258)
        return 4095 if bits == (12,) else WHITE_16
    if image.mode == "I":
        if image.format in ("PNG", "PPM"):  # 16 bits, in the older way or scaled to it
            return WHITE_16
        raise BadImage(
            f"{name} has whole numbers of 32 bits (or signed ones), and nothing says which of them"
            " is white: save it with 8 or 16 bits."
        )
    return 1 if image.mode == "F" else None


def _white_is_zero(image: Image.Image) -> bool:
    """Whether a deep TIFF counts from white to black, which Pillow undoes for 8 bits only."""
    return _tiff_tag(image, 262) == 0


def _tiff_tag(image: Image.Image, tag: int) -> object:
    tags = getattr(image, "tag_v2", None)
    return None if tags is None else tags.get(tag)


def _grey(part: Image.Image, white: int, name: str) -> Image.Image:
    """8-bit grey of a deep band: value · 255 / white, to the nearest."""
    values = np.asarray(part)
    clear = _transparent(part, values)
    if part.mode == "F" and not (values.min() >= 0 and values.max() <= 1):  # a NaN fails as well
        raise BadImage(
            f"{name} has floating-point values outside 0 to 1 ({values.min():.4g} to"
            f" {values.max():.4g}), and nothing says which of them is white: scale it to 0 to 1, or"
            " save it with 8 or 16 bits."
        )
    grey: UInt8[np.ndarray, "row col"] = (
        np.rint(values.astype(np.float32) * np.float32(255 / white)).clip(0, 255).astype(np.uint8)
    )
    grey[clear] = 255
    return Image.fromarray(grey)


def _transparent(
    part: Image.Image, values: Shaped[np.ndarray, "row col"]
) -> Bool[np.ndarray, "row col"]:
    """Where a deep grey PNG's one transparent value stands."""
    return np.equal(values, part.info.get("transparency", np.nan))
