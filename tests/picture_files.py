"""Makers of picture files, byte by byte where Pillow can't write them (or shouldn't be asked to)."""

from __future__ import annotations

import io
import struct
import zlib
from functools import cache

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE, BLACK = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255,) * 3, (0,) * 3


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    """A file as Pillow writes it."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def plain(mode: str, size: tuple[int, int], colour: object) -> Image.Image:
    return Image.new(mode, size, colour)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data))


def png(
    size: tuple[int, int],
    depth: int,
    colour_type: int,
    rows: list[bytes],
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A PNG from packed rows (PNG specification, 11.2): grey 0, RGB 2, palette 3, LA 4, RGBA 6."""
    head = struct.pack(">LLBBBBB", *size, depth, colour_type, 0, 0, 0)
    packer, body = zlib.compressobj(6), b""
    for row in rows:
        body += packer.compress(b"\0" + row)
    body += packer.flush()
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + before
        + chunk(b"IDAT", body)
        + after
        + chunk(b"IEND", b"")
    )


def png_header(size: tuple[int, int]) -> bytes:
    """A PNG that promises RGB pixels of that size and holds none."""
    return png(size, 8, 2, [])


def exif(orientation: int, *more: tuple[int, int, int, int]) -> bytes:
    """A big-endian EXIF block with tag 0x0112 and (tag, kind, count, value) of others."""
    entries = sorted([(0x0112, 3, 1, orientation << 16), *more])
    table = b"".join(struct.pack(">HHLL", *entry) for entry in entries)
    return b"MM\0*\0\0\0\x08" + struct.pack(">H", len(entries)) + table + bytes(4)


def tiff(tags: dict[int, tuple[int, list[int]]], blocks: list[bytes], tiled: bool = False) -> bytes:
    """A little-endian TIFF from tags (kind 3: 16-bit, 4: 32-bit) and its strips or tiles."""
    out, offsets = bytearray(b"II*\0\0\0\0\0"), []
    for block in blocks:
        offsets.append(len(out))
        out += block
    lengths = [len(block) for block in blocks]
    tags = {324 if tiled else 273: (4, offsets), 325 if tiled else 279: (4, lengths), **tags}
    table = struct.pack("<H", len(tags))
    for tag, (kind, values) in sorted(tags.items()):
        data = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'L'}", *values)
        if len(data) > 4:
            place = struct.pack("<L", len(out))
            out += data
            data = place
        table += struct.pack("<HHL4s", tag, kind, len(values), data.ljust(4, b"\0"))
    out[4:8] = struct.pack("<L", len(out))
    return bytes(out + table + bytes(4))


def tiff_tags(
    size: tuple[int, int],
    bits: list[int],
    photometric: int = 1,
    compression: int = 1,
    rows: int | None = None,
) -> dict[int, tuple[int, list[int]]]:
    """The baseline tags of a TIFF (TIFF 6.0, section 3); white is zero 0, black is zero 1, RGB 2."""
    return {
        256: (4, [size[0]]),
        257: (4, [size[1]]),
        258: (3, bits),
        259: (3, [compression]),
        262: (3, [photometric]),
        277: (3, [len(bits)]),
        278: (4, [size[1] if rows is None else rows]),
    }


def zeros(count: int) -> bytes:
    """That many zero bytes, deflated; never all in memory."""
    packer, block = zlib.compressobj(6), bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(count >> 20)]
    return b"".join(parts) + packer.compress(bytes(count & 0xFFFFF)) + packer.flush()


def corners(size: tuple[int, int] = (48, 32)) -> Image.Image:
    """White, with a red top left corner and a green top right one, 16 × 16 pixels each."""
    image = Image.new("RGB", size, "white")
    image.paste(RED, (0, 0, 16, 16))
    image.paste(GREEN, (size[0] - 16, 0, size[0], 16))
    return image


def frames(form: str, **options: object) -> bytes:
    """An animation: a red frame, then a blue one."""
    first, second = Image.new("RGB", (8, 6), RED), Image.new("RGB", (8, 6), BLUE)
    return saved(first, form, save_all=True, append_images=[second], duration=100, **options)


def with_alpha(mode: str, alpha: int, colour: tuple[int, ...]) -> Image.Image:
    return Image.new(mode, (5, 4), (*colour, alpha))


def palette_with_holes() -> Image.Image:
    """Entry 0 is blue and clear, 1 red and solid, 2 black and half clear, from left to right."""
    image = Image.new("P", (3, 1))
    image.putpalette([*BLUE, *RED, *BLACK])
    image.putdata([0, 1, 2])
    return image


def halves(low: int, high: int, kind: str) -> Image.Image:
    """A deep grey picture of two pixels."""
    return Image.fromarray(np.array([[low, high]], kind))


def multi_scan_jpeg(size: tuple[int, int]) -> bytes:
    """A baseline JPEG whose components each have a scan of their own, so that all must be kept.

    Every block is one DC difference of category 0 and an end of block, each coded in one bit: 00.
    """
    width, height = size
    blocks = -(-width // 8) * -(-height // 8)
    scan = bytes(blocks // 4) + (b"" if blocks % 4 == 0 else bytes([0xFF >> 2 * (blocks % 4)]))

    def segment(marker: int, data: bytes) -> bytes:
        return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data

    table = bytes([1]) + bytes(15) + b"\0"  # one code of one bit, for symbol 0
    components = b"".join(bytes([c, 0x11, 0]) for c in (1, 2, 3))
    return (
        b"\xff\xd8"
        + segment(0xDB, b"\0" + bytes([1] * 64))
        + segment(0xC0, struct.pack(">BHHB", 8, height, width, 3) + components)
        + segment(0xC4, b"\x00" + table)
        + segment(0xC4, b"\x10" + table)
        + b"".join(segment(0xDA, bytes([1, c, 0, 0, 63, 0])) + scan for c in (1, 2, 3))
        + b"\xff\xd9"
    )


@cache
def text_bomb() -> bytes:
    """63 texts of a million letters, 4 bytes each because of the last: 67 kB, 270 MB in Python."""
    text = zlib.compress(("a" * 1_048_572 + "😀").encode(), 9)
    texts = [chunk(b"iTXt", b"key%d\0\1\0\0\0" % i + text) for i in range(63)]
    return png((1, 1), 8, 0, [b"\0"], b"".join(texts))


@cache
def offset_bomb() -> bytes:
    """A strip for each of 400 000 rows that aren't there: 110 MB in Python, and 3 s to parse."""
    table = tiff_tags((10, 10), [8], rows=1)
    return tiff({**table, 273: (4, [8] * 600_000)}, [bytes(10)])


@cache
def tile_bomb(side: int) -> bytes:
    """One tile that is far larger than the 64 × 64 pixels it's cut to."""
    table = tiff_tags((64, 64), [8] * 3, photometric=2, compression=8)
    del table[278]
    tile = {322: (4, [side]), 323: (4, [side])}
    return tiff({**table, **tile}, [zeros(3 * side * side)], tiled=True)


@cache
def pixel_bomb() -> bytes:
    """300 kB that unpack to 100 megapixels."""
    return png((10_000, 10_000), 8, 2, [bytes(30_000)] * 10_000)
