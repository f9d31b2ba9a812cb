"""`open_image`: from a file, bytes or a picture that nobody vouches for to upright RGB."""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from PIL import ExifTags, Image, TiffImagePlugin

from attnviz.errors import BadImage
from attnviz.images.headers import File, baggage
from attnviz.images.kinds import HEAD, format_of, lookalike
from attnviz.images.limits import MAX_FILE, MEMORY, check_size, reduction, too_heavy, too_long
from attnviz.images.rgb import to_rgb


@runtime_checkable
class Readable(Protocol):
    """A binary file, or what passes for one."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to that many bytes, or all."""
        ...


Source = str | os.PathLike[str] | bytes | Readable | Image.Image

TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF orientation -> what makes a picture upright (Exif 2.32, tag 0x0112)."""

_CLEAR_SCALE = {"L;2": 85.0, "L;4": 17.0, "RGB;16B": 1 / 256}
"""PNG pixels that Pillow scales to 8 bits while it leaves their transparent value as it stands."""


def open_image(source: Source) -> Image.Image:
    """An upright RGB picture, its first frame, with transparency laid on white.

    `source` is a path, the bytes of a file, a binary file (read from its start) or a PIL image,
    which is left as it is. A JPEG of more than 21 megapixels is opened at 1/2, 1/4 or 1/8 of its
    width and height; what else goes beyond `attnviz.images.limits` is refused. Colour profiles
    aren't applied: models are trained on values as they stand in files. Errors: `BadImage`, with
    the reason.
    """
    if isinstance(source, Image.Image):
        name = "The picture"
        check_size(source, name=name)
        rgb, turn = _decode(source, name, source.format or "in memory")
    else:
        name = _name(source)
        with _file(source, name) as (file, held):
            try:
                rgb, turn = _decode_file(file, held, name)
            except OSError as error:  # of the file itself: what decoders raise is caught there
                raise BadImage(
                    f"{name} can't be read ({error.strerror or error}): copy the picture elsewhere."
                ) from error
    return rgb if turn is None else rgb.transpose(turn)


def _decode_file(file: File, held: float, name: str) -> tuple[Image.Image, Image.Transpose | None]:
    size = file.seek(0, io.SEEK_END)
    if not size:
        raise BadImage(f"{name} is empty (0 bytes): save or download it again.")
    if size > MAX_FILE:
        raise too_long(name)
    file.seek(0)
    head = file.read(HEAD)
    form = format_of(head)
    if form is None:
        raise BadImage(f"{name} {lookalike(head)}")
    held += baggage(form, file, size)
    if held > MEMORY:
        raise too_heavy(name)
    file.seek(0)
    try:
        image = Image.open(file, formats=[form])
        scale = reduction(image, form, file, held, name=name)
        if scale > 1:
            image.draft("RGB", (image.width // scale, image.height // scale))
        _check_preview(image, name)
        _mend_transparency(image)
    except BadImage:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        pixels = re.search(r"\d+", str(error))
        many = f"{int(pixels[0]) / 1e6:.0f}" if pixels else "too many"
        raise BadImage(f"{name} has {many} megapixels: make it smaller first.") from error
    except Exception as error:  # of any type: the decoders are fed what nobody vouches for
        raise BadImage(
            f"{name} starts as a file in {form} format, but is damaged or of a rare kind: save it"
            " again as PNG or JPEG."
        ) from error
    return _decode(image, name, form)


def _decode(image: Image.Image, name: str, form: str) -> tuple[Image.Image, Image.Transpose | None]:
    """(RGB, how to turn it upright): to be turned when `image` is no longer in memory."""
    try:
        image.load()
    except Exception as error:
        raise BadImage(
            f"{name} ({form}) is damaged or cut short: save or download it again."
        ) from error
    return to_rgb(image, name=name), _turn(image)


def _turn(image: Image.Image) -> Image.Transpose | None:
    try:
        return TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # unreadable metadata says nothing about the picture
        return None


def _check_preview(image: Image.Image, name: str) -> None:
    """Refuse a camera's raw file: DNGVersion is set, or NewSubfileType says thumbnail."""
    if isinstance(image, TiffImagePlugin.TiffImageFile) and (
        50706 in image.tag_v2 or image.tag_v2.get(254, 0) == 1
    ):
        raise BadImage(
            f"{name} looks like a raw file from a camera, with only a preview to open: develop it"
            " and save it as JPEG."
        )


def _mend_transparency(image: Image.Image) -> None:
    """Bring a PNG's transparent value to the scale that its pixels will have."""
    clear = image.info.get("transparency")
    tiles = getattr(image, "tile", None)
    scale = _CLEAR_SCALE.get(str(tiles[0].args)) if tiles else None
    if scale is not None and isinstance(clear, (int, tuple)):
        image.info["transparency"] = (
            int(clear * scale)
            if isinstance(clear, int)
            else tuple(int(value * scale) for value in clear)
        )


def _name(source: object) -> str:
    """What to call a source in a sentence."""
    given = source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", None)
    return Path(given).name or "This file" if isinstance(given, (str, os.PathLike)) else "This file"


@contextmanager
def _file(source: object, name: str) -> Iterator[tuple[File, int]]:
    """(a file that can be wound back, bytes that had to be copied for it)."""
    if isinstance(source, (str, os.PathLike)):
        with _open(source) as file:
            yield file, 0
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield io.BytesIO(source), 0
    elif isinstance(source, io.BytesIO):
        yield source, 0
    elif isinstance(source, Readable):
        data = _read(source, name)
        yield io.BytesIO(data), len(data)
    else:
        raise BadImage(
            f"A picture is given as a path, as bytes, as a binary file or as a PIL image;"
            f" {type(source).__name__} came."
        )


def _open(path: str | os.PathLike[str]) -> File:
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise BadImage(f"{path} is a folder: name one picture in it.")
        if not stat.S_ISREG(kind):  # a pipe or a device may never end
            raise BadImage(f"{path} is no ordinary file: save the picture to one first.")
        return open(path, "rb")
    except FileNotFoundError:
        if re.match(r"[a-z]+://", str(path), re.IGNORECASE):
            raise BadImage(f"{path} is a web address: download the picture first.") from None
        raise BadImage(f"There is no file {path}: check its name and folder.") from None
    except PermissionError:
        raise BadImage(f"{path} may not be read: check its permissions.") from None
    except (OSError, ValueError) as error:  # too long a name, a zero byte, a failing disk
        reason = getattr(error, "strerror", None) or error
        raise BadImage(f"{str(path)[:80]!r} can't be opened ({reason}): check the path.") from error


def _read(file: Readable, name: str) -> bytes:
    """All of a file object, which may be one that can't be wound back."""
    try:
        if isinstance(file, io.IOBase) and file.seekable():
            file.seek(0)
        data: object = file.read(MAX_FILE + 1)
    except Exception as error:  # whatever a stranger's file object raises
        raise BadImage(f"{name} can't be read ({error}): open it again.") from error
    if not isinstance(data, bytes):
        raise BadImage(f"{name} was opened as text: open it as binary, with mode 'rb'.")
    if len(data) > MAX_FILE:
        raise too_long(name)
    return data
