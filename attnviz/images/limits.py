"""How large a picture may be, judged before it is decoded, so that none takes 200 MB to open."""

from __future__ import annotations

from PIL import Image, JpegImagePlugin, TiffImagePlugin

from attnviz.errors import BadImage
from attnviz.images.headers import File, first_scan, scans

MEMORY = 170_000_000
"""Bytes that opening one picture may take at its peak, by the costs below."""
MAX_FILE = 64 * 2**20
"""Bytes of the largest file that is looked at; the page's server takes no larger upload either."""
MAX_SIDE = 30_000
"""Pixels of the longest side."""
MAX_PIXELS = 89_000_000
"""Pixels of the largest picture of any kind; only JPEGs get so far. Beyond, Pillow warns."""
MAX_SCANS = 1000
"""Passes over a progressive JPEG; no camera makes as many as a hundred."""
MAX_SCANNED = 5_000_000_000
"""Pixels times passes of one: some seconds of decoding, however few its bytes."""

COPY = 8
"""Bytes a pixel that any picture takes: 4 decoded, and 4 for the copy that is RGB, or upright."""
DECODING = {
    "PNG": 4,
    "JPEG": 4,
    "GIF": 4,
    "BMP": 4,
    "TIFF": 4,
    "PPM": 12,  # three copies in Python, where numbers are text or have a maximum of their own
    "WEBP": 17,  # the decoder keeps two canvases and hands over a third
    "AVIF": 28,  # planes of up to 16 bits with alpha, put together from tiles, then as WebP
}
"""Bytes a pixel while decoding, measured with Pillow 13: so 21 megapixels of PNG, 10 of WebP."""

_PLAIN_TIFF = ("raw", "packbits", "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "tiff_ccitt")


def reduction(image: Image.Image, form: str, file: File, held: float, *, name: str) -> int:
    """The n of the 1/n at which to decode a picture: 1 for all but large JPEGs (1, 2, 4 or 8).

    A JPEG can be decoded at a fraction of its size without ever being whole in memory: one above 21
    megapixels comes out at half its width and height, or less. `held` is its baggage in bytes.
    Errors: `BadImage` for a picture that would take more than `MEMORY` at any n.
    """
    check_size(image, name=name)
    pixels, each, fixed = image.width * image.height, float(DECODING[form]), 0.0
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        each, fixed = _tiff_costs(image)
    elif isinstance(image, JpegImagePlugin.JpegImageFile):
        fixed = _jpeg_coefficients(image, file, name)
    scales = (1, 2, 4, 8) if form == "JPEG" else (1,)
    for scale in scales:
        small = pixels / scale**2
        if held + max(COPY * small, fixed + each * small) <= MEMORY:
            return scale
    most = MEMORY / (fixed / pixels + each / 64 if form == "JPEG" else max(COPY, each))
    raise _too_many(image.size, form, most, name) if pixels > most else too_heavy(name)


def check_size(image: Image.Image, *, name: str) -> None:
    """Refuse a picture without pixels, with too long a side or with more than `MAX_PIXELS`."""
    width, height = image.size
    if not min(width, height):
        raise BadImage(f"{name} has no pixels: it is {width} × {height}.")
    if max(width, height) > MAX_SIDE:
        raise BadImage(
            f"{name} is {width} × {height} pixels; a side may have at most {MAX_SIDE}: crop it, or"
            " make it smaller first."
        )
    if width * height > MAX_PIXELS:
        raise BadImage(
            f"{name} has {_mega(width * height)} megapixels ({width} × {height}), more than the"
            f" {_mega(MAX_PIXELS)} that can be opened here: make it smaller first."
        )


def too_long(name: str, most: int = MAX_FILE) -> BadImage:
    """The error for a file of more than that many bytes."""
    return BadImage(
        f"{name} is larger than the {most // 2**20} MB that can be opened here: make the"
        " picture smaller, or save it as JPEG."
    )


def too_heavy(name: str) -> BadImage:
    """The error for a file whose metadata or tables, with its pixels or alone, take too much."""
    return BadImage(
        f"{name} would take too much memory or time with its pixels and all that it carries besides"
        " (text, profiles, tables, parts): make it smaller, or save it again as a plain JPEG."
    )


def _too_many(size: tuple[int, int], form: str, most: float, name: str) -> BadImage:
    width, height = size
    return BadImage(
        f"{name} has {_mega(width * height)} megapixels ({width} × {height}), and of this kind of"
        f" {form} at most {_mega(most)} can be opened: make it smaller, or save it as plain JPEG."
    )


def _mega(pixels: int | float) -> str:
    return f"{pixels / 1e6:.{0 if pixels >= 3e7 else 1}f}"


def _jpeg_coefficients(image: JpegImagePlugin.JpegImageFile, file: File, name: str) -> float:
    """Bytes that libjpeg keeps of a JPEG whose first scan isn't all of it: 2 for each sample."""
    place, progressive = file.tell(), image.info.get("progressive")
    whole = first_scan(file) == image.layers
    passes = scans(file) if progressive else 1
    file.seek(place)  # where Pillow left it
    if passes > MAX_SCANS or passes * image.width * image.height > MAX_SCANNED:
        raise BadImage(
            f"{name} is a JPEG of {passes} passes, which would take long to decode: save it again"
            " as an ordinary JPEG."
        )
    if whole and not progressive:
        return 0.0
    _, across, down, _ = zip(*image.layer, strict=True)  # how densely each component is sampled
    samples = sum(a * d for a, d in zip(across, down, strict=True))
    samples /= max(across) * max(down)
    return 2 * samples * image.width * image.height


def _tiff_costs(image: TiffImagePlugin.TiffImageFile) -> tuple[float, float]:
    """(bytes a pixel, bytes of one tile): a strip, or a tile, is unpacked as a whole."""
    tags = image.tag_v2
    depth = sum(tags.get(258, (1,))) / 8
    strange = 0 if image.info.get("compression") in _PLAIN_TIFF else 8  # decoders with stores
    return 4 + depth + strange, tags.get(322, 0) * tags.get(323, 0) * depth
