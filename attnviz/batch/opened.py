"""A picture's file, read once: what it is known by, and what the model will be fed with."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from attnviz.contract import Fit, LoadedViT, View
from attnviz.errors import AttnVizError
from attnviz.images import open_image
from attnviz.images.limits import MAX_FILE

Stamp = tuple[int, int, int]
"""(bytes, time of the last change to them, time of the last change to anything), in ns: a file with
the same stamp is taken for unchanged, one with another is read again."""

Fed = tuple[Image.Image, View]
"""The picture, upright, and as the model is fed with it."""


@dataclass(frozen=True)
class Opened:
    """A picture that could be opened, or why it could not."""

    name: str
    stamp: Stamp = (0, 0, 0)
    sha256: str = ""
    """Of the file."""
    fed: Fed | None = None
    failed: str = ""


def open_picture(name: str, vit: LoadedViT, fit: Fit) -> Opened:
    """Read, decode and fit one picture; what is wrong with it is part of the answer."""
    try:
        content, stamp = _read(name)
        if content is None:
            image, sha256 = open_image(name), ""  # which says what is wrong with it
        else:
            sha256 = hashlib.sha256(content).hexdigest()
            image = open_image(_Named(content, name))
        return Opened(name, stamp, sha256, (image, vit.view(image, fit)))
    except AttnVizError as error:
        return Opened(name, failed=str(error))


def stamp_of(name: str) -> Stamp | None:
    """The stamp of a file; None where there is none."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def sha256_of(name: str) -> str:
    """The SHA-256 of an ordinary file that is small enough to be opened; else the empty string."""
    content, _ = _read(name)
    return "" if content is None else hashlib.sha256(content).hexdigest()


class _Named(BytesIO):
    """A file in memory that errors can call by its name."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def _read(name: str) -> tuple[bytes | None, Stamp]:
    """The bytes of an ordinary file that is small enough to be opened, and its stamp."""
    try:
        found = os.stat(name)
        if stat.S_ISREG(found.st_mode) and found.st_size <= MAX_FILE:
            with open(name, "rb") as file:
                found = os.fstat(file.fileno())
                stamp = found.st_size, found.st_mtime_ns, found.st_ctime_ns
                return file.read(MAX_FILE + 1), stamp
    except (OSError, ValueError):
        pass
    return None, (0, 0, 0)
