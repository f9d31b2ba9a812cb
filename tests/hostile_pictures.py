"""Files that a page on the open internet is sent: what each is, and what has to come of it."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import hostile_makers as bad
import numpy as np
import picture_files as odd
from heavy_pictures import HEAVY, texted
from hostile_makers import exif_jpeg, red_gif, red_jpeg, red_png, red_webp, segment
from odd_pictures import OPENED, REFUSED
from picture_files import BLACK, RED, WHITE, chunk, plain, saved
from PIL import Image

Colour = tuple[int, ...]
Make = Callable[[], bytes]
MB = 2**20
DAMAGED = "damaged or"


@dataclass(frozen=True)
class Case:
    """One file, and what is expected of it."""

    group: str
    make: Make
    opens: bool | None = None
    """None: it opens, or is refused in a sentence."""
    size: tuple[int, int] | None = None
    """Width and height of what it opens as."""
    pixels: Mapping[tuple[int, int], Colour] | None = None
    """(column, row) → colour in it, worked out by hand."""
    tolerance: int = 0
    words: str = ""
    """A pattern in the sentence that refuses it."""
    name: str = ""
    """Of the file, where it is opened by its path; else it is opened as bytes, as the page does."""


def table(group: str, cases: Mapping[str, tuple[Make, object]]) -> dict[str, Case]:
    """Name → case: words that refuse the file, a size at which it opens and is red, or None."""
    made = {}
    for name, (make, outcome) in cases.items():
        made[name] = case = Case(group, make)
        if isinstance(outcome, str):
            made[name] = replace(case, opens=False, words=outcome)
        elif outcome is not None:
            width, height = outcome
            ends = {(0, 0): RED, (width - 1, height - 1): RED}
            made[name] = replace(case, opens=True, size=outcome, pixels=ends, tolerance=4)
    return made


# --- damaged ----------------------------------------------------------------------------------

ALL = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF")


WAYS = {  # other ways to write some of them: each has a decoder of its own
    "TIFF, LZW": {"compression": "tiff_lzw"},
    "TIFF, deflated": {"compression": "tiff_adobe_deflate"},
    "TIFF, packed": {"compression": "packbits"},
    "TIFF, JPEG inside": {"compression": "jpeg"},
    "JPEG, progressive": {"progressive": True},
    "WEBP, lossless": {"lossless": True},
}


def whole(way: str) -> bytes:
    """A sound picture with enough in it to be damaged: noise, always the same."""
    values = np.random.default_rng(7).integers(0, 256, (48, 64, 3), np.uint8)
    return saved(Image.fromarray(values), way.partition(",")[0], **WAYS.get(way, {}))


def cut(form: str, share: float) -> bytes:
    data = whole(form)
    return data[: max(12, int(len(data) * share))]


def turned_over(form: str, seed: int) -> bytes:
    """1 to 6 bits of a sound file, every other one where headers are."""
    chance, data = random.Random(f"{form} {seed}"), bytearray(whole(form))
    for number in range(1 + seed):
        place = chance.randrange(len(data) if number % 2 else 120)
        data[place] ^= 1 << chance.randrange(8)
    return bytes(data)


CUT = {
    f"{form}, {share:.0%} of it": (partial(cut, form, share), DAMAGED)
    for form in ALL
    for share in (0.002, 0.1, 0.3, 0.6, 0.9)
}
CUT_LAST = {f"{form} but for its last byte": (partial(cut, form, 0.99999), None) for form in ALL}
TURNED = {
    f"{form}, bits turned over, seed {seed}": (partial(turned_over, form, seed), None)
    for form in (*ALL, *WAYS)
    for seed in range(6 if form in ALL else 4)
}

# --- shapes, modes, names ---------------------------------------------------------------------

LONG = {form: 16_383 if form == "WEBP" else 20_000 for form in ALL}


def red(form: str, size: tuple[int, int]) -> bytes:
    return saved(plain("RGB", size, RED), form, **({"lossless": True} if form == "WEBP" else {}))


SHAPES = {
    f"{form}, {width} × {height}": (partial(red, form, (width, height)), (width, height))
    for form, long in LONG.items()
    for width, height in ((1, 1), (long, 1), (1, long))
}

# mode -> (its colour, what that is in RGB or the words that refuse it, tolerance)
MODES: dict[str, tuple[object, Colour | str, int]] = {
    "1": (1, WHITE, 0),
    "L": (90, (90,) * 3, 0),
    "LA": ((90, 0), WHITE, 0),
    "P": (1, BLACK, 0),  # of an empty palette
    "RGB": (RED, RED, 0),
    "RGBA": ((*RED, 51), (255, 204, 204), 0),  # 255 · (1 − 51/255) of the white shines through
    "RGBX": ((*RED, 9), RED, 0),
    "CMYK": ((0, 255, 255, 0), RED, 0),
    "YCbCr": ((76, 85, 255), RED, 2),  # ITU-R BT.601: Y = 0.299 · 255
    "LAB": ((0, 128, 128), BLACK, 3),
    "I": (7, "whole numbers of 32 bits", 0),
    "I;16": (257, (1, 1, 1), 0),
    "I;16B": (257, (1, 1, 1), 0),
    "F": (0.5, (128,) * 3, 0),
}


def in_mode(mode: str, colour: object) -> bytes:
    return saved(plain(mode, (5, 3), colour), "TIFF")


def in_modes() -> dict[str, Case]:
    made = {}
    for mode, (colour, shown, tolerance) in MODES.items():
        case = Case("each of Pillow's modes", partial(in_mode, mode, colour), tolerance=tolerance)
        if isinstance(shown, str):
            made[f"TIFF in mode {mode}"] = replace(case, opens=False, words=shown)
        else:
            pixels = {(0, 0): shown, (4, 2): shown}
            made[f"TIFF in mode {mode}"] = replace(case, opens=True, size=(5, 3), pixels=pixels)
    return made


def misnamed() -> dict[str, Case]:
    """Each format with the next one's ending; a name that is markup, and one that is none."""
    names = [f"photo.{form.lower()}" for form in ALL[1:] + ALL[:1]]
    cases = table(
        "names that say nothing",
        {
            f"{form} named {name}": (partial(red, form, (9, 5)), (9, 5))
            for form, name in zip(ALL, names, strict=True)
        }
        | {"text named photo.png": (lambda: b"hello", "^photo.png looks like text")},
    )
    return {said: replace(case, name=said.partition("named ")[2]) for said, case in cases.items()}


# --- bombs ------------------------------------------------------------------------------------

PIXELS = {
    "GIF, a frame beyond its screen": (lambda: red_gif((1, 1), (65_535, 65_535)), "megapixels"),
    "GIF, a frame a bit beyond": (lambda: red_gif((1, 1), (10_000, 10_000)), "megapixels"),
    "GIF, a screen of 400 megapixels": (
        lambda: red_gif((20_000, 20_000), (1, 1)),
        "400 megapixels",
    ),
    "GIF, a screen of 100 megapixels": (
        lambda: red_gif((10_000, 10_000), (1, 1)),
        "100 megapixels",
    ),
    "BMP of 3600 megapixels": (lambda: bad.bare_bmp((60_000, 60_000)), "3600 megapixels"),
    "BMP of 90 megapixels": (lambda: bad.bare_bmp((29_999, 3_000)), "90 megapixels"),
    "BMP of 30 megapixels": (lambda: bad.bare_bmp((10_000, 3_000)), "BMP at most 21.2"),
    "BMP, upside down": (lambda: bad.bare_bmp((9, -(2**31))), "pixels|damaged or"),
    "PPM of 900 megapixels": (lambda: b"P6 30000 30000 255\n", "900 megapixels"),
    "PPM of 25 megapixels": (lambda: b"P6 5000 5000 255\n", "PPM at most 14.2"),
    "TIFF of 2^62 pixels": (lambda: bad.bare_tiff((2**31, 2**31)), "megapixels"),
    "TIFF of 87 megapixels": (lambda: bad.bare_tiff((30_000, 2_900)), "TIFF at most"),
    "JPEG of 4290 megapixels": (lambda: bad.larger_jpeg((65_500, 65_500)), "4290 megapixels"),
    "JPEG, too wide": (lambda: bad.larger_jpeg((31_000, 9)), "at most 30000"),
    "JPEG that holds less than it says": (lambda: bad.larger_jpeg((3_000, 3_000)), None),
    "WebP, a canvas of 268 megapixels": (bad.wide_webp, "268 megapixels|damaged or"),
}
FRAMES = {
    **{
        f"{form} of {count} frames": (partial(bad.many_frames, form, count), (8, 6))
        for form, count in (("GIF", 2000), ("PNG", 1500), ("WEBP", 300), ("TIFF", 300))
    },
    "TIFF, pages in a circle": (bad.pages_in_a_circle, (1, 1)),
    "APNG that promises 2^31 - 1 frames": (lambda: bad.apng(2**31 - 1), None),
    "APNG that promises none": (lambda: bad.apng(0), (1, 1)),
}
METADATA = {
    "PNG, a profile of 100 MB": (
        lambda: red_png(bad.deflated(b"iCCP", b"x\0\0", 100 * MB)),
        None,
    ),
    "PNG, a text of 100 MB": (lambda: red_png(bad.deflated(b"zTXt", b"x\0\0", 100 * MB)), None),
    "PNG, 50 000 empty chunks": (lambda: red_png(chunk(b"prVt", b"") * 50_000), (1, 1)),
    "PNG, 50 000 texts": (lambda: red_png(chunk(b"tEXt", b"k\0v") * 50_000), (1, 1)),
    "PNG, a text that promises 2 GB": (
        lambda: red_png(struct.pack(">L4s", 2**31 - 1, b"tEXt")),
        DAMAGED,
    ),
    "PNG, EXIF of 3 MB": (lambda: red_png(chunk(b"eXIf", odd.exif(1) + bytes(3 * MB))), (1, 1)),
    "PNG, a text of 20 million letters": (
        lambda: texted(20_000_000),
        "all that it carries besides",
    ),
    "PNG, EXIF of 20 MB": (
        lambda: red_png(chunk(b"eXIf", odd.exif(1) + bytes(20 * MB))),
        "all that it carries besides",
    ),
    "JPEG, 20 000 empty segments": (lambda: red_jpeg(segment(0xE5, b"") * 20_000), (8, 8)),
    "JPEG, comments of 26 MB": (lambda: red_jpeg(segment(0xFE, b"x" * 65_533) * 400), (8, 8)),
    "JPEG, comments of 59 MB": (
        lambda: red_jpeg(segment(0xFE, b"x" * 65_533) * 900),
        "all that it carries besides",
    ),
    "GIF, a comment of 20 MB": (
        lambda: red_gif((1, 1), (1, 1), b"!\xfe" + (b"\xff" + b"x" * 255) * 80_000 + b"\0"),
        (1, 1),
    ),
    "GIF, 20 000 comments": (lambda: red_gif((1, 1), (1, 1), b"!\xfe\1x\0" * 20_000), (1, 1)),
    "PPM, a comment of 90 kB": (
        lambda: b"P6\n#" + b"x" * 90_000 + b"\n1 1 255\n" + bytes(RED),
        (1, 1),
    ),
    "TIFF, a description of 20 MB": (lambda: bad.described_tiff(20 * MB), (1, 1)),
    "WebP, XMP of 20 MB": (lambda: red_webp((b"XMP ", b"x" * 20 * MB)), (5, 3)),
    "WebP, 50 000 unknown parts": (lambda: red_webp(*[(b"what", b"")] * 50_000), (5, 3)),
}
ENDLESS = "all that it carries besides"
PARTS = {
    "PNG, 700 000 empty chunks": (lambda: red_png(chunk(b"prVt", b"") * 700_000), ENDLESS),
    "PNG, 700 000 pieces of pixels": (lambda: bad.crumbled_png(700_000), ENDLESS),
    "JPEG, 2 million empty segments": (lambda: red_jpeg(segment(0xE5, b"") * 2 * MB), ENDLESS),
    "JPEG, 8 million bytes of filling": (lambda: red_jpeg(b"\xff" * 8 * MB), ENDLESS),
    "JPEG, 4 million lone marks": (lambda: red_jpeg(b"\xff\xd0" * 4 * MB), ENDLESS),
    "GIF, a comment in 4 million pieces": (
        lambda: red_gif((1, 1), (1, 1), b"!\xfe" + b"\1x" * 4 * MB + b"\0"),
        ENDLESS,
    ),
    "GIF, a million comments": (lambda: red_gif((1, 1), (1, 1), b"!\xfe\1x\0" * MB), ENDLESS),
    "GIF, a million pauses": (
        lambda: red_gif((1, 1), (1, 1), b"!\xf9\4\0\0\0\0\0" * MB),
        ENDLESS,
    ),
    "GIF, 8 million stray bytes": (lambda: red_gif((1, 1), (1, 1), bytes(8 * MB)), ENDLESS),
    "WebP, a million unknown parts": (lambda: red_webp(*[(b"what", b"")] * MB), ENDLESS),
    "TIFF, 400 000 entries": (lambda: bad.crowded_tiff(400_000), ENDLESS),
    "PPM, a comment of 8 MB": (
        lambda: b"P6\n#" + b"x" * 8 * MB + b"\n1 1 255\n" + bytes(RED),
        ENDLESS,
    ),
    "PPM, 8 million blanks": (
        lambda: b"P6" + b" " * 8 * MB + b"1 1 255\n" + bytes(RED),
        ENDLESS,
    ),
    "PPM, 2 million comments among numbers": (
        lambda: b"P3 1 1 255\n" + b"#x\n" * 2 * MB + b"255 0 0",
        ENDLESS,
    ),
    "PPM, 5 million numbers": (lambda: b"P3 1500 1100 255\n" + b"255 " * 5_000_000, ENDLESS),
}
EXIF = {
    "JPEG, EXIF that is none": (lambda: red_jpeg(segment(0xE1, b"Exif\0\0nothing")), (8, 8)),
    "JPEG, EXIF beyond its end": (lambda: exif_jpeg((0x8769, 4, 1, 2**32 - 1)), (8, 8)),
    "JPEG, EXIF that holds itself": (lambda: exif_jpeg((0x8769, 4, 1, 8)), (8, 8)),
    "JPEG, GPS that holds itself": (lambda: exif_jpeg((0x8825, 4, 1, 8)), (8, 8)),
    "JPEG, EXIF of 4 billion numbers": (lambda: exif_jpeg((0x9000, 3, 2**32 - 1, 8)), (8, 8)),
    "JPEG, EXIF of an unknown kind": (lambda: exif_jpeg((0x9000, 99, 5, 8)), (8, 8)),
    "JPEG, EXIF, a part of which is none": (lambda: exif_jpeg((0x011A, 5, 1, 0)), (8, 8)),
    "JPEG, EXIF of 30 000 numbers": (
        lambda: exif_jpeg((0x9000, 3, 30_000, 38), more=bytes(60_000)),
        (8, 8),
    ),
    "JPEG, EXIF 40 times": (
        lambda: red_jpeg(segment(0xE1, b"Exif\0\0" + odd.exif(1)) * 40),
        (8, 8),
    ),
    "PNG, EXIF in two byte orders": (
        lambda: red_png(chunk(b"eXIf", b"II" + odd.exif(6)[2:])),
        (1, 1),
    ),
    "WebP, EXIF of letters": (lambda: red_webp((b"EXIF", b"A" * 5000)), (5, 3)),
    "TIFF, turned by a circle": (
        lambda: odd.tiff(
            {**odd.tiff_tags((1, 1), [8] * 3, 2), 0x8769: (4, [8]), 0x0112: (3, [99])}, [bytes(RED)]
        ),
        (1, 1),
    ),
}
PROFILES = {
    "PNG, a profile of nothing": (lambda: red_png(chunk(b"iCCP", b"")), None),
    "PNG, a profile not compressed": (lambda: red_png(chunk(b"iCCP", b"x\0\0plain")), None),
    "PNG, a profile in an unknown way": (
        lambda: red_png(chunk(b"iCCP", b"x\0\7" + zlib.compress(b"x"))),
        None,
    ),
    "PNG, a gamma of 0": (lambda: red_png(chunk(b"gAMA", bytes(4))), (1, 1)),
    **{
        f"{form}, a profile of {length // 1000} kB that is none": (
            partial(bad.with_profile, form, length),
            (8, 8) if form != "AVIF" else None,
        )
        for form, length in (
            ("PNG", 900_000),
            ("JPEG", 3_000_000),
            ("TIFF", 3_000_000),
            ("WEBP", 3_000_000),
            ("AVIF", 300_000),
        )
    },
    "JPEG, the 9th part of a profile": (
        lambda: red_jpeg(segment(0xE2, b"ICC_PROFILE\0\x09\xffhalf")),
        (8, 8),
    ),
    "JPEG, an Adobe mark that lies": (
        lambda: red_jpeg(segment(0xEE, b"Adobe\0\x64\0\0\0\0\x07")),
        None,
    ),
}
SCRIPT = b"<script>alert(1)</script>"
BOTH = {
    "PNG, then a ZIP": (lambda: red_png() + b"PK\3\4" + bytes(99), (1, 1)),
    "PNG, then a web page": (lambda: red_png() + SCRIPT, (1, 1)),
    "PNG with PHP in a text": (lambda: red_png(chunk(b"tEXt", b"k\0<?php exit ?>")), (1, 1)),
    "JPEG, then a PDF": (lambda: red_jpeg() + b"%PDF-1.7\n", (8, 8)),
    "JPEG with a script in a comment": (lambda: red_jpeg(segment(0xFE, SCRIPT)), (8, 8)),
    "JPEG, then another": (lambda: red_jpeg() * 2, (8, 8)),
    "JPEG, then a bomb": (lambda: red_jpeg() + odd.png_header((30_000, 30_000)), (8, 8)),
    "GIF, then a ZIP": (lambda: red_gif((1, 1), (1, 1)) + b"PK\3\4" + bytes(99), (1, 1)),
    "GIF that is a script": (lambda: b"GIF89a/*" + bytes(99) + b"*/=1;alert(1)", DAMAGED),
    "WebP, then a script": (lambda: red_webp() + SCRIPT, (5, 3)),
    "PDF, then a JPEG": (lambda: b"%PDF-1.7\n" + red_jpeg(), "a PDF document"),
    "web page, then a PNG": (lambda: b"<!doctype html>" + red_png(), "a web page"),
    "ZIP, then a PNG": (lambda: b"PK\3\4" + red_png(), "a ZIP archive"),
    "a letter about a BMW": (lambda: b"BMW is a maker of cars", DAMAGED),
    "a postcode": (lambda: b"P6 is a postcode", DAMAGED),
    "PPM with an endless number": (lambda: b"P6 " + b"9" * 5000 + b" 1 255\n", DAMAGED),
    "PPM of less than nothing": (lambda: b"P6 -5 -5 255\n", DAMAGED),
    "PPM whose white is 0": (lambda: b"P5 1 1 0\n\0", DAMAGED),
    "PPM whose white is 65536": (lambda: b"P5 1 1 65536\n\0\0", DAMAGED),
    "PFM whose scale is no number": (lambda: b"Pf 1 1 nan\n" + bytes(4), None),
    "BMP whose pixels lie 4 GB on": (lambda: bad.bare_bmp((2, 2), pixels=2**32 - 1), DAMAGED),
    "BMP with a header of 4 GB": (lambda: bad.bare_bmp((2, 2), header=2**32 - 1), DAMAGED),
    "TIFF whose table lies 2^63 on": (
        lambda: b"II+\0\x08\0\0\0" + struct.pack("<Q", 2**63),
        DAMAGED,
    ),
    "TIFF of 65 535 tags": (lambda: b"II*\0\x08\0\0\0\xff\xff" + bytes(1200), DAMAGED),
    "TIFF whose strip is itself": (
        lambda: odd.tiff({**odd.tiff_tags((64, 1), [8]), 273: (4, [0])}, [bytes(64)]),
        None,
    ),
    "AVIF without a picture": (lambda: b"\0\0\0\x18ftypavif\0\0\0\0mif1miaf" + bytes(99), DAMAGED),
    "WebP of nothing": (lambda: b"RIFF\x04\0\0\0WEBP", DAMAGED),
}

CASES: dict[str, Case] = {
    **{
        name: Case("odd but sound", make, True, size, pixels, tolerance)
        for name, (make, size, pixels, tolerance) in OPENED.items()
    },
    **{
        name: Case("no picture, or not of a kind that is opened", make, False, words=words)
        for name, (make, words) in REFUSED.items()
    },
    **table("cut short", CUT | CUT_LAST),
    **table("bits turned over", TURNED),
    **table("of one pixel, and of one row or column", SHAPES),
    **in_modes(),
    **misnamed(),
    **table("bombs of pixels", PIXELS),
    **table("bombs of frames and pages", FRAMES),
    **table("bombs of metadata", METADATA),
    **table("more parts than any program writes", PARTS),
    **table("absurd EXIF", EXIF),
    **table("absurd profiles", PROFILES),
    **table("two things at once, and lies", BOTH),
    **{
        f"large {name}": Case("as large as can be opened", make, True)
        for name, make in HEAVY.items()
    },
}
