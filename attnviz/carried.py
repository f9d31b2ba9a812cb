"""The manifest that a figure's file carries, wherever files of its kind have a place for words."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from xml.sax.saxutils import unescape

import numpy as np
from PIL import Image

MOST = 64 * 2**20
"""Bytes of a figure that is looked at, and that the numbers in one may unpack to."""


def carried(content: bytes) -> bytes:
    """The manifest in a figure's bytes; of bytes that are no figure, these bytes.

    Empty where a figure has none. It may be anything: whoever reads it has to be suspicious.
    """
    for start, look in PLACES.items():
        if content.startswith(start):
            try:
                return look(content) or b""
            except Exception:  # of any type: the decoders are fed what nobody vouches for
                return b""
    return content


def _picture(content: bytes) -> bytes | None:
    """Of a PNG, a GIF or a WebP; its pixels are not decoded."""
    with Image.open(BytesIO(content), formats=("PNG", "GIF", "WEBP")) as image:
        known = image.info
    if "xmp" in known:
        return _between(known["xmp"], b'<rdf:li xml:lang="x-default">', b"</rdf:li>")
    text = known.get("Description", known.get("comment", b""))
    return text.encode(errors="surrogatepass") if isinstance(text, str) else bytes(text)


def _svg(content: bytes) -> bytes | None:
    return _between(content, b"<dc:description>", b"</dc:description>")


def _between(content: bytes, start: bytes, end: bytes) -> bytes | None:
    _, found, rest = content.partition(start)
    text, closed, _ = rest.partition(end)
    return unescape(text.decode()).encode() if found and closed else None


def _pdf(content: bytes) -> bytes | None:
    found = re.search(rb"/Subject \(((?:[^\\()]|\\.)*+)\)", content, re.DOTALL)
    if found is None:
        return None
    plain = re.sub(rb"\\(.)", lambda sign: _SIGNS.get(sign[1], sign[1]), found[1], flags=re.DOTALL)
    return plain.decode("utf-16").encode() if plain.startswith(b"\xfe\xff") else plain


_SIGNS = {b"n": b"\n", b"r": b"\r"}
"""What a letter after a backslash is in a PDF; the others are themselves."""


def _numbers(content: bytes) -> bytes | None:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if archive.getinfo("manifest.npy").file_size > MOST:
            return None
        held = np.lib.format.read_array(archive.open("manifest.npy"), allow_pickle=False)
    return str(held).encode()


PLACES: dict[bytes, Callable[[bytes], bytes | None]] = {
    b"\x89PNG": _picture,
    b"GIF8": _picture,
    b"RIFF": _picture,
    b"<?xml": _svg,
    b"%PDF": _pdf,
    b"PK": _numbers,
}
"""What a file begins with → where such a figure has its manifest."""
