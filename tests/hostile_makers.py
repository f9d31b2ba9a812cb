"""Makers of files that mean harm, byte by byte: what they promise is not what they hold."""

from __future__ import annotations

import struct

import picture_files as odd
from picture_files import BLACK, RED, chunk, plain, png, saved
from PIL import Image


def many_frames(form: str, count: int) -> bytes:
    """A red frame of 8 × 6 pixels, then others."""
    rest = [plain("RGB", (8, 6), (0, number % 256, number // 256)) for number in range(count - 1)]
    options = {"lossless": True} if form == "WEBP" else {}
    return saved(plain("RGB", (8, 6), RED), form, save_all=True, append_images=rest, **options)


def pages_in_a_circle() -> bytes:
    """A TIFF of 1 × 1 pixel whose first page says that the next one is the first."""
    data = odd.tiff(odd.tiff_tags((1, 1), [8] * 3, photometric=2), [bytes(RED)])
    return data[:-4] + data[4:8]


def apng(promised: int) -> bytes:
    return red_png(chunk(b"acTL", struct.pack(">LL", promised, 0)))


def red_png(*chunks: bytes) -> bytes:
    """One pixel, and these chunks before it."""
    return png((1, 1), 8, 2, [bytes(RED)], b"".join(chunks))


def crumbled_png(count: int) -> bytes:
    """The same, with as many pieces of pixels that hold none."""
    whole = red_png()
    place = whole.index(b"IDAT") - 4
    return whole[:place] + chunk(b"IDAT", b"") * count + whole[place:]


def deflated(kind: bytes, head: bytes, length: int) -> bytes:
    """A chunk with that many zero bytes, compressed."""
    return chunk(kind, head + odd.zeros(length))


def red_gif(screen: tuple[int, int], frame: tuple[int, int], more: bytes = b"") -> bytes:
    """A GIF whose one frame has a single pixel, whatever it says (GIF 89a, 18 to 22)."""
    head = b"GIF89a" + struct.pack("<HH", *screen) + b"\x80\0\0" + bytes([*RED, *BLACK])
    # LZW in codes of 3 bits: clear (4), entry 0, end (5).
    pixel = bytes([4 | 0 << 3 | (5 & 3) << 6, 5 >> 2])
    return head + more + b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\2\2" + pixel + b"\0;"


def segment(marker: int, data: bytes) -> bytes:
    """A part of a JPEG."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def red_jpeg(*segments: bytes) -> bytes:
    """8 × 8 pixels, and these segments in front."""
    data = saved(plain("RGB", (8, 8), RED), "JPEG", quality=95, subsampling=0)
    return data[:2] + b"".join(segments) + data[2:]


def exif_jpeg(*entries: tuple[int, int, int, int], more: bytes = b"") -> bytes:
    """The same with EXIF of these (tag, kind, count, value)."""
    return red_jpeg(segment(0xE1, b"Exif\0\0" + odd.exif(1, *entries) + more))


def larger_jpeg(size: tuple[int, int]) -> bytes:
    """A small JPEG that says it is larger."""
    data = saved(plain("L", (8, 8), 0), "JPEG")
    place = data.index(b"\xff\xc0") + 5
    return data[:place] + struct.pack(">HH", size[1], size[0]) + data[place + 4 :]


def red_webp(*parts: tuple[bytes, bytes]) -> bytes:
    """5 × 3 pixels, and more parts (kind, data) at its end."""
    data = saved(plain("RGB", (5, 3), RED), "WEBP", lossless=True, exif=odd.exif(1))
    data += b"".join(
        kind + struct.pack("<L", len(more)) + more + bytes(len(more) % 2) for kind, more in parts
    )
    return data[:4] + struct.pack("<L", len(data) - 8) + data[8:]


def wide_webp() -> bytes:
    """A WebP with a canvas of 16 384 × 16 384 pixels and 4 × 4 of them in it."""
    side = struct.pack("<L", 16_383)[:3]
    canvas = b"VP8X" + struct.pack("<L", 10) + bytes(4) + side + side
    frame = saved(plain("RGB", (4, 4), RED), "WEBP", lossless=True)[12:]
    return b"RIFF" + struct.pack("<L", 4 + len(canvas + frame)) + b"WEBP" + canvas + frame


def bare_bmp(size: tuple[int, int], *, header: int = 40, pixels: int = 54) -> bytes:
    """A BMP without its pixels, which lie where it says."""
    info = struct.pack("<LllHHLLllLL", header, *size, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<LHHL", 54, 0, 0, pixels) + info


def bare_tiff(size: tuple[int, int]) -> bytes:
    """A TIFF without its pixels."""
    return odd.tiff(odd.tiff_tags(size, [8] * 3, photometric=2), [b""])


def described_tiff(length: int) -> bytes:
    """One red pixel, and a description of so many letters."""
    data = bytearray(odd.tiff(odd.tiff_tags((1, 1), [8] * 3, photometric=2), [bytes(RED)]))
    place, letters = struct.unpack("<L", data[4:8])[0], len(data)
    (count,) = struct.unpack_from("<H", data, place)
    entries = [bytes(data[place + 2 + 12 * n :][:12]) for n in range(count)]
    entries.append(struct.pack("<HHLL", 270, 2, length, letters))
    table = struct.pack("<H", len(entries)) + b"".join(sorted(entries)) + bytes(4)
    data[4:8] = struct.pack("<L", letters + length)
    return bytes(data) + b"x" * length + table


def crowded_tiff(entries: int) -> bytes:
    """A BigTIFF whose table has so many entries, of a byte each."""
    entry = struct.pack("<HHQQ", 60_000, 1, 1, 0)
    return b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, entries) + entry * entries


def with_profile(form: str, length: int) -> bytes:
    """A red picture of 8 × 8 pixels with a colour profile of so many bytes that are none."""
    options = {"lossless": True} if form == "WEBP" else {}
    image = Image.new("RGB", (8, 8), RED)
    return saved(image, form, icc_profile=b"profile " * (length // 8), **options)
