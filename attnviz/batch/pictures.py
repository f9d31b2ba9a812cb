"""Which pictures are meant by the names of files, folders, patterns and lists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path

from attnviz.errors import BadOption

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".avif"}
    | {".ppm", ".pgm", ".pbm", ".pnm"}
)
"""What is taken for a picture in a folder; a file that is named is tried whatever its suffix."""

LIST = ".txt"
"""The suffix of a list: one name a line, as it would be given by itself."""


def pictures_in(names: Iterable[str], *, without: Path) -> list[str]:
    """The files that are meant, sorted, each once.

    A folder stands for the pictures in it and in all folders below, a pattern (`*`, `?`, `[…]`, and
    `**` for folders) for the files that match, a list for the names in it. Names stay as they are
    given, relative to where the command runs. What lies in `without`, the output, is left out, and
    in folders what is hidden.

    Raises BadOption where a folder, a pattern or a list holds no picture, for an empty name, and
    for one without a suffix, as folders have, that nothing has.
    """
    found: set[str] = set()
    for name in names:
        if not name:
            raise BadOption("An empty name came: give a picture, a folder, a pattern or a list.")
        if not Path(name).suffix and not has_magic(name) and not os.path.lexists(name):
            raise BadOption(f"There is no picture or folder {name}: check its name and folder.")
        meant = set(_meant_by(name))
        if not meant:
            raise BadOption(f"{_what(name)} {name} holds no picture: check its name.")
        found |= meant
    away = os.path.abspath(without) + os.sep
    kept = sorted(name for name in found if not os.path.abspath(name).startswith(away))
    if not kept:
        raise BadOption(f"All of these pictures lie in the output {without}: give it another name.")
    return kept


def _meant_by(name: str) -> Iterator[str]:
    if os.path.isdir(name):
        yield from _in_folder(name)
    elif name.lower().endswith(LIST):
        for line in _lines(name):
            yield from _meant_by(line) if not line.lower().endswith(LIST) else [line]
    elif has_magic(name) and not os.path.lexists(name):
        for each in glob(name, recursive=True):
            if os.path.isfile(each) and Path(each).suffix.lower() in SUFFIXES:
                yield os.path.normpath(each)
    else:
        yield os.path.normpath(name)


def _in_folder(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise BadOption(f"{error.filename} can't be read: {error.strerror}.") from error

    for place, below, files in os.walk(folder, onerror=fail):
        below[:] = [each for each in below if not each.startswith(".")]
        for file in files:
            if not file.startswith(".") and Path(file).suffix.lower() in SUFFIXES:
                yield os.path.normpath(os.path.join(place, file))


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text("utf-8-sig")
    except FileNotFoundError:
        raise BadOption(f"There is no list {path}: check its name and folder.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise BadOption(f"The list {path} can't be read: {reason}.") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def _what(name: str) -> str:
    if os.path.isdir(name):
        return "The folder"
    return "The list" if name.lower().endswith(LIST) else "The pattern"
