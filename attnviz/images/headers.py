"""What a file carries besides its pixels, summed up from its headers before Pillow reads them.

Pillow reads metadata eagerly and keeps it as Python objects: 67 kB of compressed text become
270 MB, a 7 MB table of offsets 110 MB. The factors below were measured with Pillow 13 and rounded
up.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

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
_SUB_DIRECTORIES = (0x8769, 0x8825, 0xA005)
"""EXIF, GPS and interoperability, which Pillow parses with the picture."""


def baggage(form: str, file: File, size: int) -> int:
    """Bytes of memory that a file of `size` bytes takes besides its pixels.

    Leaves the file's position anywhere.
    """
    match form:
        case "PNG":
            return sum(_png_chunks(file, size))
        case "JPEG":
            return sum(cost for cost, _ in _jpeg_segments(file))
        case "TIFF":
            return _tiff_tables(file, size)
        case "GIF" | "WEBP":
            return 2 * size  # read as a whole, and copied once
        case "AVIF":
            return _EXIF * size  # nothing says how much of it is EXIF, which Pillow parses at once
        case _:
            return 0


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
    """The cost of each chunk that holds no pixels."""
    file.seek(8)
    while len(start := file.read(8)) == 8:
        length, kind = struct.unpack(">L4s", start)
        length = min(length, size)  # a promise, maybe a lie
        if kind not in (b"IDAT", b"fdAT"):
            each = {b"iTXt": 11, b"tEXt": 5, b"eXIf": _EXIF}.get(kind, 2)
            yield _OBJECT + each * length + _UNPACKED * (kind in (b"iTXt", b"zTXt", b"iCCP"))
        file.seek(length + 4, 1)  # over the checksum too


def _jpeg_segments(file: File) -> Iterator[tuple[int, bytes]]:
    """(cost, marker and first bytes) of each segment, up to and with the first scan's header."""
    file.seek(2)
    while byte := file.read(1):
        if byte != b"\xff":
            continue
        while (marker := file.read(1)) == b"\xff":
            pass
        if marker in (b"", b"\0", b"\1") or b"\xd0" <= marker <= b"\xd9":
            continue  # these stand alone
        length = max(int.from_bytes(file.read(2), "big") - 2, 0)
        start = file.read(min(length, 6))
        yield 2 * _OBJECT + length * (_EXIF if start == b"Exif\0\0" else 3), marker + start
        if marker == b"\xda":
            return
        file.seek(length - len(start), 1)


def _tiff_tables(file: File, size: int) -> int:
    """The cost of the tables in a TIFF's first directory and in those under it."""
    file.seek(0)
    head = file.read(4)
    order = "<" if head[:1] == b"I" else ">"
    count, entry, offset = ("Q", "HHQQ", "4xQ") if 43 in head[2:4] else ("H", "HHLL", "L")
    total, seen, waiting = 0, set(), [*_unpack(file, order + offset)]
    for place in waiting:  # which grows while it's walked
        file.seek(min(place, size))
        for _ in range(*_unpack(file, order + count) or (0,)):
            if not (found := _unpack(file, order + entry)):
                break
            tag, kind, values, where = found
            if values * _WIDTHS.get(kind, 1) <= size:  # else Pillow skips it
                total += _OBJECT + values * (_OBJECT if kind in _WIDTHS else 1)
            if tag in _SUB_DIRECTORIES and tag not in seen:
                seen.add(tag)
                waiting.append(where)
    return total


def _unpack(file: File, form: str) -> tuple[int, ...]:
    data = file.read(struct.calcsize(form))
    return struct.unpack(form, data) if len(data) == struct.calcsize(form) else ()
