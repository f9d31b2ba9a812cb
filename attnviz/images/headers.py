"""What a file carries besides its pixels, summed up from its headers before Pillow reads them.

Pillow reads metadata eagerly and keeps it as Python objects: 67 kB of compressed text become
270 MB, a 7 MB table of offsets 110 MB. It also takes a microsecond or more for each part of a file,
be it empty, and 64 MB hold 30 million. The factors below were measured with Pillow 13 and rounded
up.
"""

from __future__ import annotations

import io
import math
import re
import struct
from collections.abc import Iterable, Iterator

File = io.BytesIO | io.BufferedReader
"""A binary file that can be wound back."""

_OBJECT = 300
"""Bytes that a number of a table, or a short chunk, takes once it's a Python object."""
_UNPACKED = 4_200_000
"""What compressed text may grow to: a million letters of 4 bytes, where Pillow stops."""
_EXIF = 20
"""Bytes for each byte of EXIF: a table of 2-byte numbers, as Python's own."""
_WIDTHS = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
"""TIFF's kinds of numbers -> bytes of each; of the other kinds Pillow keeps the bytes."""
_PARTS = 100_000
"""Chunks, segments, blocks or entries of one file; also stray bytes between them."""
_PLAIN, _COMMENTS = 16_000_000, 1000
"""Bytes of a PPM whose numbers are written out, and comments in it: some seconds to read."""
_SUB_DIRECTORIES = (0x8769, 0x8825, 0xA005)
"""EXIF, GPS and interoperability, which Pillow parses with the picture."""


def baggage(form: str, file: File, size: int) -> float:
    """Bytes of memory that a file of `size` bytes takes besides its pixels.

    Infinite for one in more parts than any program writes. Leaves the file's position anywhere.
    """
    match form:
        case "PNG":
            return _sum(_png_chunks(file, size))
        case "JPEG":
            return _sum(cost for cost, _ in _jpeg_segments(file))
        case "TIFF":
            return _sum(_tiff_entries(file, size))
        case "GIF":
            return 2 * size + _sum(_gif_blocks(file))  # read as a whole, and copied once
        case "WEBP":
            return 2 * size + _sum(_webp_chunks(file))
        case "AVIF":
            return _EXIF * size  # nothing says how much of it is EXIF, which Pillow parses at once
        case "PPM":
            return math.inf if _is_endless_ppm(file, size) else 0
        case _:
            return 0


def _sum(costs: Iterable[int]) -> float:
    """Of no more parts than `_PARTS`."""
    total = 0
    for number, cost in enumerate(costs):
        if number == _PARTS:
            return math.inf
        total += cost
    return total


def first_scan(file: File) -> int:
    """How many of a JPEG's components its first scan holds; 0 where there is none."""
    start = [head for _, head in _jpeg_segments(file)][-1:]
    return start[0][1] if start and start[0][:1] == b"\xda" and len(start[0]) > 1 else 0


def scans(file: File) -> int:
    """How many scans a JPEG has at most: what follows it may hold the marker by chance."""
    file.seek(0)
    found, last = 0, b""
    while block := file.read(1 << 20):
        found += (last + block).count(b"\xff\xda")
        last = block[-1:]
    return found


def _png_chunks(file: File, size: int) -> Iterator[int]:
    """The cost of each chunk; those that hold pixels take nothing besides."""
    file.seek(8)
    while len(start := file.read(8)) == 8:
        length, kind = struct.unpack(">L4s", start)
        length = min(length, size)  # a promise, maybe a lie
        if kind in (b"IDAT", b"fdAT"):
            yield 0
        else:
            each = {b"iTXt": 11, b"tEXt": 5, b"eXIf": _EXIF}.get(kind, 2)
            yield _OBJECT + each * length + _UNPACKED * (kind in (b"iTXt", b"zTXt", b"iCCP"))
        file.seek(length + 4, 1)  # over the checksum too


def _jpeg_segments(file: File) -> Iterator[tuple[int, bytes]]:
    """(cost, marker and first bytes) of each segment, up to and with the first scan's header.

    And of each byte that belongs to none: it costs nothing, but it is read.
    """
    file.seek(2)
    last = b""
    while byte := file.read(1):
        marked, last = last == b"\xff", byte
        if not marked or byte in b"\xff\0\1" or b"\xd0" <= byte <= b"\xd9":
            yield 0, b""  # no marker, or one that stands alone
            continue
        length = max(int.from_bytes(file.read(2), "big") - 2, 0)
        start = file.read(min(length, 6))
        yield 2 * _OBJECT + length * (_EXIF if start == b"Exif\0\0" else 3), byte + start
        if byte == b"\xda":
            return
        file.seek(length - len(start), 1)


def _gif_blocks(file: File) -> Iterator[int]:
    """0 for each block, and each part of one, before the first frame (GIF 89a, 15 to 26)."""
    file.seek(10)
    flags = (file.read(1) or b"\0")[0]
    file.seek(13 + (3 << (flags & 7) + 1 if flags & 128 else 0))
    while (kind := file.read(1)) not in (b"", b",", b";"):
        yield 0
        if kind == b"!":
            file.seek(1, 1)
            while length := (file.read(1) or b"\0")[0]:
                yield 0
                file.seek(length, 1)


def _webp_chunks(file: File) -> Iterator[int]:
    file.seek(12)
    while len(start := file.read(8)) == 8:
        yield _OBJECT
        length = int.from_bytes(start[4:], "little")
        file.seek(length + length % 2, 1)


def _is_endless_ppm(file: File, size: int) -> bool:
    """Whether its header, which Pillow reads byte by byte, or its written numbers go on and on."""
    file.seek(0)
    head = re.sub(rb"#[^\r\n]*", b"", file.read(_PARTS)).split(None, 3)
    if size > _PARTS and len(head) < (3 if head[0] in (b"P1", b"P4") else 4):
        return True
    if head[0] not in (b"P1", b"P2", b"P3"):
        return False
    file.seek(0)
    return size > _PLAIN or file.read().count(b"#") > _COMMENTS


def _tiff_entries(file: File, size: int) -> Iterator[int]:
    """The cost of each entry in a TIFF's first directory and in those under it."""
    file.seek(0)
    head = file.read(4)
    order = "<" if head[:1] == b"I" else ">"
    count, entry, offset = ("Q", "HHQQ", "4xQ") if 43 in head[2:4] else ("H", "HHLL", "L")
    seen, waiting = set(), [*_unpack(file, order + offset)]
    for place in waiting:  # which grows while it's walked
        file.seek(min(place, size))
        for _ in range(*_unpack(file, order + count) or (0,)):
            if not (found := _unpack(file, order + entry)):
                break
            tag, kind, values, where = found
            if values * _WIDTHS.get(kind, 1) <= size:  # else Pillow skips it
                yield _OBJECT + values * (_OBJECT if kind in _WIDTHS else 3)
            if tag in _SUB_DIRECTORIES and tag not in seen:
                seen.add(tag)
                waiting.append(where)


def _unpack(file: File, form: str) -> tuple[int, ...]:
    data = file.read(struct.calcsize(form))
    return struct.unpack(form, data) if len(data) == struct.calcsize(form) else ()
