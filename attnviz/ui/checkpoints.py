"""Files of weights that the page's host offers, from one folder and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from attnviz.ui.settings import settings

MOST = 500
"""Files that are offered, at most."""


@dataclass(frozen=True)
class Checkpoint:
    """A file as it was when it was listed: one that has changed since is another."""

    path: str
    name: str
    """Its path within the folder: all that a visitor sees of it."""
    size: int
    modified: int
    """In nanoseconds."""


def checkpoint_folder() -> Path | None:
    """The host's folder, if there is one and it is still there."""
    folder = settings().checkpoints
    return folder if folder and folder.is_dir() else None


def checkpoints(folder: Path) -> list[Checkpoint]:
    """The safetensors files in it, by name; none that a link leads out of the folder for.

    What cannot be read, or has a name that cannot be shown, is left out.
    """
    root, found = folder.resolve(), []
    for parent, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if (
                path.suffix == ".safetensors"
                and _can_be_shown(path.relative_to(root).as_posix())
                and path.resolve().is_relative_to(root)
                and (entry := _as_file(path, root)) is not None
            ):
                found.append(entry)
        if len(found) >= MOST:
            break
    return sorted(found, key=lambda file: file.name)[:MOST]


def _can_be_shown(name: str) -> bool:
    try:
        return name.encode().decode().isprintable()
    except UnicodeEncodeError:
        return False


def _as_file(path: Path, root: Path) -> Checkpoint | None:
    try:
        stat = path.stat()
    except OSError:  # gone since, or not for this process to look at
        return None
    if not S_ISREG(stat.st_mode) or not os.access(path, os.R_OK):
        return None
    return Checkpoint(str(path), path.relative_to(root).as_posix(), stat.st_size, stat.st_mtime_ns)
