"""Sound small pictures, damaged in every way that chance finds; each opens or is refused."""

from __future__ import annotations

import picture_files as odd
from heavy_pictures import TURNED
from hypothesis import strategies as st
from picture_files import chunk, png, saved
from PIL import Image

from attnviz.errors import BadImage
from attnviz.images import open_image

SMALL = Image.effect_noise((20, 14), 90).convert("RGB")
SOUND = [
    *(saved(SMALL, form) for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF")),
    saved(SMALL, "JPEG", progressive=True, exif=TURNED),
    saved(SMALL, "TIFF", compression="tiff_lzw", exif=TURNED),
    saved(SMALL, "TIFF", compression="tiff_adobe_deflate", big_tiff=True),
    saved(SMALL.convert("RGBA"), "WEBP", lossless=True, exif=TURNED),
    saved(SMALL.convert("P"), "PNG", transparency=bytes(range(200)), exif=TURNED),
    saved(SMALL.convert("P"), "BMP"),
    saved(SMALL.convert("CMYK"), "TIFF", compression="packbits"),
    png((6, 4), 16, 0, [bytes(12)] * 4, chunk(b"tRNS", bytes(2)), chunk(b"iTXt", b"k\0\0\0\0\0v")),
    b"P3 2 2 9 " + b"1 2 3 " * 4,
    b"P5 4 3 1023\n" + bytes(24),
    b"Pf 2 2 -1.0\n" + bytes(16),
    odd.frames("GIF"),
    odd.frames("PNG"),
    odd.frames("MPO"),
]
HEADS = 400
"""Bytes among which headers are, mostly."""


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file with bits flipped, bytes put in, its end gone, or another's after it."""
    data = bytearray(draw(st.sampled_from(SOUND)))
    flips = st.tuples(st.integers(0, 1 << 20), st.integers(1, 255), st.booleans())
    for place, mask, anywhere in draw(st.lists(flips, max_size=6)):
        data[place % (len(data) if anywhere else min(len(data), HEADS))] ^= mask
    if more := draw(st.none() | st.binary(min_size=1, max_size=9)):
        place = draw(st.integers(0, min(len(data), HEADS)))
        data[place : place + draw(st.sampled_from((0, len(more))))] = more
    if draw(st.booleans()):
        data = data[: draw(st.integers(0, 1 << 20)) % len(data)]
    return bytes(data) + draw(st.sampled_from([b"", b"", b"", *SOUND]))


def opens_or_is_refused(data: bytes) -> None:
    """Raises whatever `open_image` ought not to."""
    try:
        image = open_image(data)
    except BadImage as error:
        message = str(error)
    else:
        message = ""
        assert (type(image), image.mode) == (Image.Image, "RGB")
    assert "0x" not in message
