"""Odd picture files: what each shows once it's opened, or the sentence that refuses it."""

from __future__ import annotations

import struct

import numpy as np
import picture_files as odd
from picture_files import BLACK, BLUE, GREEN, RED, WHITE, chunk, plain, png, saved

HALF = (128,) * 3  # 32768 · 255 / 65535 = 127.502
TINY = odd.tiff_tags((2, 1), [16])

# name -> (file, size, {(column, row): colour}, tolerance). Colours are worked out by hand.
OPENED = {
    "grey 16 PNG": (
        lambda: png((5, 1), 16, 0, [struct.pack(">5H", 0, 257, 32768, 65280, 65535)]),
        (5, 1),
        {(0, 0): BLACK, (1, 0): (1, 1, 1), (2, 0): HALF, (3, 0): (254,) * 3, (4, 0): WHITE},
        0,
    ),
    "grey 16 PNG, one value clear": (
        lambda: png(
            (2, 1), 16, 0, [struct.pack(">2H", 999, 1000)], chunk(b"tRNS", b"\x03\xe7")
        ),
        (2, 1),
        {(0, 0): WHITE, (1, 0): (4, 4, 4)},  # 1000 / 257 = 3.89
        0,
    ),
    "grey 4 PNG, one value clear": (
        lambda: png((2, 1), 4, 0, [b"\x5a"], chunk(b"tRNS", b"\0\5")),
        (2, 1),
        {(0, 0): WHITE, (1, 0): (170,) * 3},  # 10 · 255 / 15
        0,
    ),
    "grey 2 PNG, one value clear": (
        lambda: png((2, 1), 2, 0, [b"\x60"], chunk(b"tRNS", b"\0\1")),
        (2, 1),
        {(0, 0): WHITE, (1, 0): (170,) * 3},  # 2 · 255 / 3
        0,
    ),
    "grey 1 PNG, black clear": (
        lambda: png((2, 1), 1, 0, [b"\x40"], chunk(b"tRNS", b"\0\0")),
        (2, 1),
        {(0, 0): WHITE, (1, 0): WHITE},
        0,
    ),
    "RGB PNG, one colour clear": (
        lambda: png((2, 1), 8, 2, [bytes([*RED, *BLUE])], chunk(b"tRNS", b"\0\xff\0\0\0\0")),
        (2, 1),
        {(0, 0): WHITE, (1, 0): BLUE},
        0,
    ),
    "RGB 16 PNG, one colour clear": (
        lambda: png(
            (2, 1),
            16,
            2,
            [struct.pack(">6H", 1000, 2000, 3000, 65535, 32768, 0)],
            chunk(b"tRNS", struct.pack(">3H", 1000, 2000, 3000)),
        ),
        (2, 1),
        {(0, 0): WHITE, (1, 0): (255, 128, 0)},
        1,
    ),
    "RGBA 16 PNG": (
        lambda: png((2, 1), 16, 6, [struct.pack(">8H", 65535, 0, 0, 65535, 0, 0, 0, 0)]),
        (2, 1),
        {(0, 0): RED, (1, 0): WHITE},
        0,
    ),
    "palette with alphas": (
        lambda: saved(odd.palette_with_holes(), "PNG", transparency=bytes([0, 255, 128])),
        (3, 1),
        {(0, 0): WHITE, (1, 0): RED, (2, 0): (127,) * 3},  # 255 · (1 − 128/255)
        1,
    ),
    "palette, one entry clear": (
        lambda: saved(odd.palette_with_holes(), "GIF", transparency=0),
        (3, 1),
        {(0, 0): WHITE, (1, 0): RED, (2, 0): BLACK},
        0,
    ),
    "RGBA, hidden red": (
        lambda: saved(odd.with_alpha("RGBA", 0, RED), "PNG"), (5, 4), {(0, 0): WHITE}, 0
    ),
    "RGBA, a fifth of red": (
        lambda: saved(odd.with_alpha("RGBA", 51, RED), "PNG"),
        (5, 4),
        {(4, 3): (255, 204, 204)},
        0,
    ),
    "LA, hidden black": (
        lambda: saved(odd.with_alpha("LA", 0, (0,)), "PNG"), (5, 4), {(2, 2): WHITE}, 0
    ),
    "LA, solid": (
        lambda: saved(odd.with_alpha("LA", 255, (90,)), "PNG"), (5, 4), {(2, 2): (90,) * 3}, 0
    ),
    "RGBA WebP": (
        lambda: saved(odd.with_alpha("RGBA", 0, RED), "WEBP", lossless=True),
        (5, 4),
        {(0, 0): WHITE},
        0,
    ),
    "black and white": (
        lambda: saved(plain("1", (9, 3), 1), "PNG"), (9, 3), {(8, 2): WHITE}, 0
    ),
    "grey 16 TIFF": (
        lambda: saved(odd.halves(32768, 65535, "<u2"), "TIFF"),
        (2, 1),
        {(0, 0): HALF, (1, 0): WHITE},
        0,
    ),
    "grey 16 TIFF, the other byte order": (
        lambda: saved(odd.halves(32768, 256, ">u2"), "TIFF"),
        (2, 1),
        {(0, 0): HALF, (1, 0): (1, 1, 1)},
        0,
    ),
    "grey 16 TIFF, LZW": (
        lambda: saved(odd.halves(32768, 256, "<u2"), "TIFF", compression="tiff_lzw"),
        (2, 1),
        {(0, 0): HALF, (1, 0): (1, 1, 1)},
        0,
    ),
    "grey 16 TIFF, white is zero": (
        lambda: odd.tiff(
            odd.tiff_tags((2, 1), [16], photometric=0), [struct.pack("<2H", 0, 65535)]
        ),
        (2, 1),
        {(0, 0): WHITE, (1, 0): BLACK},
        0,
    ),
    "grey 12 TIFF": (
        lambda: odd.tiff(odd.tiff_tags((2, 1), [12]), [b"\x80\x0f\xff"]),  # 2048, 4095
        (2, 1),
        {(0, 0): HALF, (1, 0): WHITE},
        0,
    ),
    "float TIFF": (
        lambda: saved(odd.halves(0, 1, "<f4"), "TIFF"), (2, 1), {(0, 0): BLACK, (1, 0): WHITE}, 0
    ),
    "RGB 16 TIFF": (
        lambda: odd.tiff(
            odd.tiff_tags((1, 1), [16] * 3, photometric=2), [struct.pack("<3H", 65535, 32768, 0)]
        ),
        (1, 1),
        {(0, 0): (255, 128, 0)},
        0,
    ),
    "big TIFF": (
        lambda: saved(plain("RGB", (7, 5), RED), "TIFF", big_tiff=True), (7, 5), {(6, 4): RED}, 0
    ),
    "LAB TIFF": (
        lambda: saved(plain("LAB", (3, 2), (255, 128, 128)), "TIFF"), (3, 2), {(0, 0): WHITE}, 3
    ),
    "CMYK TIFF, cyan": (
        lambda: saved(plain("CMYK", (3, 2), (255, 0, 0, 0)), "TIFF"),
        (3, 2),
        {(0, 0): (0, 255, 255)},
        0,
    ),
    "CMYK JPEG, white": (
        lambda: saved(plain("CMYK", (8, 8), (0, 0, 0, 0)), "JPEG"), (8, 8), {(4, 4): WHITE}, 1
    ),
    "CMYK JPEG, black": (
        lambda: saved(plain("CMYK", (8, 8), (0, 0, 0, 255)), "JPEG"), (8, 8), {(4, 4): BLACK}, 1
    ),
    "grey PGM of 16 bits": (
        lambda: b"P5 2 1 65535\n\x80\x00\xff\xff", (2, 1), {(0, 0): HALF, (1, 0): WHITE}, 0
    ),
    "grey PGM of 10 bits": (
        lambda: b"P5 2 1 1023\n\x02\x00\x03\xff", (2, 1), {(0, 0): HALF, (1, 0): WHITE}, 0
    ),
    "PPM in letters": (
        lambda: b"P3\n# a comment\n2 1\n100\n100 0 0  0 0 50\n",
        (2, 1),
        {(0, 0): RED, (1, 0): (0, 0, 128)},
        1,
    ),
    "BMP": (lambda: saved(plain("RGB", (5, 3), GREEN), "BMP"), (5, 3), {(4, 2): GREEN}, 0),
    "animated GIF": (lambda: odd.frames("GIF"), (8, 6), {(0, 0): RED, (7, 5): RED}, 0),
    "animated PNG": (lambda: odd.frames("PNG"), (8, 6), {(0, 0): RED, (7, 5): RED}, 0),
    "animated WebP": (
        lambda: odd.frames("WEBP", lossless=True), (8, 6), {(0, 0): RED, (7, 5): RED}, 0
    ),
    "TIFF of two pages": (lambda: odd.frames("TIFF"), (8, 6), {(0, 0): RED, (7, 5): RED}, 0),
    "MPO, as phones write": (
        lambda: odd.frames("MPO", quality=95), (8, 6), {(0, 0): RED, (7, 5): RED}, 3
    ),
    "one pixel": (lambda: saved(plain("RGB", (1, 1), BLUE), "PNG"), (1, 1), {(0, 0): BLUE}, 0),
    "a ribbon": (
        lambda: saved(plain("L", (10_000, 20), 7), "PNG"), (10_000, 20), {(9999, 19): (7,) * 3}, 0
    ),
    "a pole": (
        lambda: saved(plain("RGB", (20, 30_000), RED), "PNG"), (20, 30_000), {(19, 29_999): RED}, 0
    ),
    "unreadable EXIF": (
        lambda: png((1, 1), 8, 2, [bytes(RED)], chunk(b"eXIf", b"no such thing")),
        (1, 1),
        {(0, 0): RED},
        0,
    ),
    "four scans apart": (
        lambda: odd.multi_scan_jpeg((40, 24)), (40, 24), {(39, 23): (128,) * 3}, 0
    ),
}  # fmt: skip


GREY_PNG = png((6, 6), 8, 0, [bytes(6)] * 6)
SCRIPT = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"

# name -> (file, what its sentence says)
REFUSED = {
    "empty": (lambda: b"", r"is empty \(0 bytes\)"),
    "text": (lambda: b"not a picture at all", "looks like text"),
    "one byte": (lambda: b"\0", "is in no format that .*: choose a file in PNG, JPEG"),
    "noise": (lambda: bytes(range(256)) * 9, "is in no format that .*: choose a file in PNG, JPEG"),
    "SVG": (lambda: SCRIPT.encode(), "an SVG drawing.*: export it as PNG"),
    "SVG with a prologue": (
        lambda: f"\ufeff<?xml version='1.0'?>\n<!-- {'x' * 300} -->\n{SCRIPT}".encode(),
        "an SVG drawing",
    ),
    "web page": (lambda: b"\n<!DOCTYPE html><html><svg/></html>", "a web page"),
    "PDF": (lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "a PDF document"),
    "EPS": (lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n", "a PostScript drawing"),
    "HEIC": (lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC photo.*: export or share it"),
    "HEIC by its container": (lambda: b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "HEIC photo"),
    "video": (lambda: b"\0\0\0\x18ftypmp42\0\0\0\0isommp42" + bytes(99), "a video"),
    "AVI": (lambda: b"RIFF\0\0\0\0AVI LIST" + bytes(99), "a video or a sound"),
    "ZIP": (lambda: b"PK\3\4" + bytes(99), "a ZIP archive"),
    "gzip": (lambda: b"\x1f\x8b\x08" + bytes(99), "a gzip archive"),
    "Photoshop": (lambda: b"8BPS\0\1" + bytes(99), "a Photoshop document"),
    "icon": (lambda: saved(plain("RGB", (16, 16), RED), "ICO"), "an icon"),
    "JPEG 2000": (lambda: saved(plain("RGB", (16, 16), RED), "JPEG2000"), "a JPEG 2000 picture"),
    "JPEG XL": (lambda: b"\xff\x0a" + bytes(99), "a JPEG XL picture"),
    "DICOM": (lambda: bytes(128) + b"DICM" + bytes(99), "a DICOM file"),
    "NumPy": (lambda: b"\x93NUMPY\1\0", "a NumPy array"),
    "a pointer": (lambda: b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "PNG, nothing but its mark": (lambda: GREY_PNG[:8], "damaged or of a rare kind"),
    "PNG without pixels": (lambda: odd.png_header((6, 6)), "damaged or cut short"),
    "PNG of no width": (lambda: odd.png_header((0, 6)), "damaged or of a rare kind"),
    "JPEG, nothing but its mark": (lambda: b"\xff\xd8\xff\xe0", "damaged or of a rare kind"),
    "TIFF, cut before its table": (lambda: b"II*\0\x08\0\0\0", "damaged or of a rare kind"),
    "TIFF of five channels": (
        lambda: odd.tiff(odd.tiff_tags((1, 1), [8] * 5, photometric=1), [bytes(5)]),
        "TIFF format, but is damaged or of a rare kind",
    ),
    "TIFF of signed 16 bits": (
        lambda: odd.tiff({**TINY, 339: (3, [2])}, [bytes(4)]),
        "nothing says which of them is white",
    ),
    "TIFF of 32-bit numbers": (
        lambda: saved(odd.halves(0, 70_000, "<i4"), "TIFF"),
        "whole numbers of 32 bits",
    ),
    "float TIFF above 1": (
        lambda: saved(odd.halves(0, 255, "<f4"), "TIFF"),
        r"outside 0 to 1 \(0 to 255\)",
    ),
    "float TIFF below 0": (lambda: saved(odd.halves(-0.5, 1, "<f4"), "TIFF"), r"\(-0.5 to 1\)"),
    "float TIFF, not a number": (lambda: saved(odd.halves(np.nan, 1, "<f4"), "TIFF"), "nan"),
    "raw, DNG": (
        lambda: odd.tiff({**TINY, 50706: (4, [1])}, [bytes(4)]),
        "a raw file from a camera.*: develop it",
    ),
    "raw, NEF": (lambda: odd.tiff({**TINY, 254: (4, [1])}, [bytes(4)]), "a raw file"),
    "too wide": (lambda: odd.png_header((30_001, 1)), "30001 × 1 pixels.*at most 30000"),
    "pixel bomb": (odd.pixel_bomb, "has 100 megapixels"),
    "pixel bomb, gigantic": (lambda: odd.png_header((2**31 - 1, 2**31 - 1)), "megapixels"),
    "22 megapixels of PNG": (
        lambda: odd.png_header((5500, 4000)),
        r"22.0 megapixels \(5500 × 4000\), and of this kind of PNG at most 21.2",
    ),
    "88 megapixels of JPEG in three scans": (
        lambda: odd.multi_scan_jpeg((9400, 9400)),
        "88 megapixels.*kind of JPEG at most 28.0",  # 170 MB / (3 · 2 + 4/64 bytes a pixel)
    ),
    "20 megapixels of TIFF, 16 bits in one strip": (
        lambda: odd.tiff(odd.tiff_tags((5000, 4000), [16] * 3, 2, compression=8), [b""]),
        "kind of TIFF at most 17.0",  # 170 MB / (4 + 6 bytes a pixel)
    ),
    "20 megapixels of TIFF, with a JPEG inside": (
        lambda: odd.tiff(odd.tiff_tags((5000, 4000), [8] * 3, 2, compression=7), [b""]),
        "kind of TIFF at most 11.3",  # 170 MB / (4 + 3 bytes a pixel, and 8 for its decoder)
    ),
    "11 megapixels of WebP": (
        lambda: saved(plain("RGB", (3667, 3000), RED), "WEBP", lossless=True, method=0),
        "11.0 megapixels.*kind of WEBP at most 10.0",
    ),
    "text bomb": (odd.text_bomb, "all that it carries besides"),
    "offset bomb": (odd.offset_bomb, "all that it carries besides"),
    "tile bomb": (lambda: odd.tile_bomb(9000), "all that it carries besides"),
    "scan bomb": (
        lambda: saved(plain("L", (8, 8), 0), "JPEG", progressive=True) + b"\xff\xda" * 1000,
        "a JPEG of 1006 passes",
    ),
}
