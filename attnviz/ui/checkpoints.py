"""Files of weights that the page's host offers, from one folder and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

SETTING = "ATTNVIZ_CHECKPOINTS"
"""The environment variable with the folder; unset, nothing is offered."""

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
    """The host's folder, if there is one."""
    folder = os.environ.get(SETTING, "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def checkpoints(folder: Path) -> list[Checkpoint]:
    """The safetensors files in it, by name; none that a link leads out of the folder for."""
    root = folder.resolve()
    found = []
    for path in islice(sorted(root.rglob("*.safetensors")), MOST):
        if path.is_file() and path.resolve().is_relative_to(root):
            stat = path.stat()
            name = path.relative_to(root).as_posix()
            found.append(Checkpoint(str(path), name, stat.st_size, stat.st_mtime_ns))
    return found
