"""Files written whole or not at all, and never over something else unasked."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from attnviz.errors import BadOption

OF_ONE_MAP = LEVELS, MASK = ".16-bit.png", ".mask.png"
"""Suffixes that say what a picture holds; no other figure's picture is called so."""


def kind_of(path: str | os.PathLike[str], kinds: Iterable[str]) -> str:
    """The suffix of `kinds` that a file's name ends in, the longest; "" if it is none of them."""
    name = Path(path).name.lower()
    return max(
        (kind for kind in kinds if name.endswith(kind) and name != kind), key=len, default=""
    )


def checked_target(
    path: str | os.PathLike[str], kinds: Iterable[str], overwrite: bool, what: str = "A figure"
) -> Path:
    """The path, where a file of one of these suffixes can be written; BadOption otherwise."""
    if not isinstance(overwrite, bool | np.bool_):
        raise BadOption(f"overwrite is True or False; {overwrite!r} came.")
    try:
        target = Path(path)
    except TypeError:
        raise BadOption(
            f"{what} is saved at a path, as text or a Path; {type(path).__name__} came."
        ) from None
    kinds = tuple(kinds)
    bare = kind_of(target, OF_ONE_MAP)
    if not kind_of(target, kinds) or bare not in ("", *kinds):
        ends = f"{bare}, as only one map can" if bare else target.suffix.lower() or "none of them"
        raise BadOption(
            f"{what} can be saved as {', '.join(kinds)};"
            f" {target.name!r} ends in {ends}. Choose one of these suffixes."
        )
    if "\0" in str(target):
        raise BadOption(f"{str(target)!r} can't be written: no file's name has a zero byte in it.")
    place = Path(os.path.realpath(target))
    _mode_of(place, target)  # no directory, no device
    if not overwrite:
        require_free(target)
    if not place.parent.is_dir():
        raise BadOption(
            f"{str(target)!r} can't be written: there is no such folder. Make it first."
        )
    return target


def require_free(target: Path) -> None:
    """BadOption where something has that name already; a link that leads nowhere may be filled."""
    with suppress(OSError, ValueError):  # what can't even be looked at is said when it is written
        if target.exists():
            raise _taken(target)


def require_apart(target: Path, sources: Iterable[str | os.PathLike[str]]) -> None:
    """BadOption where the file that is to be written is one of those that are read."""
    for source in sources:
        try:
            read = target.exists() and os.path.exists(source) and target.samefile(source)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise BadOption(f"{target} can't be written: {why}.") from error
        if read:
            raise BadOption(
                f"The output {target} would replace {source}, which is read. Give another name."
            )


def write_whole(
    target: Path, content: bytes, *, overwrite: bool = True, advice: str = "Choose another place."
) -> Path:
    """Write a file whole or not at all; BadOption, with `advice`, where it can't be written.

    Without `overwrite` a file that is there stays, also one that came a moment ago.
    """
    place = Path(os.path.realpath(target))  # a symbolic link stays one, and leads to the new file
    mode = _mode_of(place, target) if overwrite else None
    # Beside the target, so that taking its name is one step: no reader sees half a file.
    part = place.with_name(f".attnviz-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
        if mode is not None:  # what was private stays so
            part.chmod(mode)
        _take_name(part, place, overwrite)
    except OSError as error:
        reason = error.strerror or error
        raise BadOption(f"{target} can't be written: {reason}. {advice}") from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)  # it is still there only if something failed
    return target


def _take_name(part: Path, place: Path, overwrite: bool) -> None:
    if overwrite:
        part.replace(place)
        return
    try:
        os.link(part, place)  # in one step, and refused where the name is taken
    except FileExistsError:
        raise _taken(place) from None
    except OSError:  # a file system without hard links
        require_free(place)
        part.replace(place)


def _taken(target: Path) -> BadOption:
    return BadOption(
        f"{target} exists. Choose another name, or say that it may be replaced: overwrite=True,"
        " and --overwrite on the command line."
    )


def _mode_of(place: Path, target: Path) -> int | None:
    """The permissions of the file that is there, None if none is; BadOption for what is no file."""
    try:
        found = place.stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise BadOption(
            f"{target} can't be written: a directory or a device has that name. Choose another."
        )
    return stat.S_IMODE(found.st_mode)
