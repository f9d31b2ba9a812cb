"""What memory there is, by the system and by the container, and what has room in it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from mmap import PAGESIZE
from pathlib import Path
from typing import NamedTuple

from attnviz.errors import BadOption
from attnviz.ui.settings import settings

BYTES = 4
"""Of a parameter."""

COPIES = 2
"""A checkpoint and the model that it fills are there at once for a moment."""

ROOT = Path("/")
"""Where the system's own files are."""

SHARE = 0.8
"""Of the limit, that the process is to stay under."""

BASE = 800 * 2**20
"""Bytes that the process takes with its libraries, before any model or picture."""

NO_LIMIT = 2**60
"""Older kernels write a number beyond all memory for no limit."""


class Budget(NamedTuple):
    """Bytes, of the process and of what is kept of passes in it."""

    whole: int
    records: int


@cache
def budget() -> Budget:
    """By the host's setting, or by the limit of the container or the machine."""
    given = settings().memory_mb
    return shared_out(int(SHARE * limit_bytes()) if given is None else given * 2**20)


def shared_out(whole: int) -> Budget:
    """So much memory, shared out."""
    left = max(whole - BASE, 64 * 2**20)
    return Budget(whole, left // 4)


def limit_bytes() -> int:
    """The smallest of the machine's memory and the container's limits."""
    return min([_machine("MemTotal"), *(most for most, _ in _groups())])


def used_bytes() -> int:
    """What this process holds in memory."""
    with suppress(OSError, ValueError, IndexError):
        pages = int((ROOT / "proc/self/statm").read_text("ascii").split()[1])
        return pages * PAGESIZE
    return 0


def free_bytes() -> int:
    """What can still be had: of the machine, of the container, and of the budget."""
    left = [most - used for most, used in _groups()]
    return min([_machine("MemAvailable"), budget().whole - used_bytes(), *left])


def _machine(name: str) -> int:
    """A line of Linux' own account; without one, as much as anybody could want."""
    with suppress(OSError, ValueError, StopIteration):
        lines = (ROOT / "proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    return NO_LIMIT


def _groups() -> Iterator[tuple[int, int]]:
    """(limit, used) in bytes, of each control group of this process's that has a limit."""
    for folder, most, now, idle in _folders():
        with suppress(OSError, ValueError):  # "max" where there is no limit
            limit, used = (int((folder / name).read_text("ascii")) for name in (most, now))
            if limit < NO_LIMIT:
                yield limit, used - _reclaimable(folder, idle)


def _folders() -> Iterator[tuple[Path, str, str, str]]:
    """A container often sees its own group as the root, whatever the group is called outside."""
    own = ["/"]
    with suppress(OSError):
        lines = (ROOT / "proc/self/cgroup").read_text("utf-8").splitlines()
        parts = (line.split(":", 2) for line in lines if line.count(":") >= 2)
        own += [path for number, kinds, path in parts if number == "0" or "memory" in kinds]
    for at in dict.fromkeys(up for path in own for up in (path, *map(str, Path(path).parents))):
        inside = at.lstrip("/")
        group = ROOT / "sys/fs/cgroup"
        yield group / inside, "memory.max", "memory.current", "inactive_file"
        yield (
            group / "memory" / inside,
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        )


def _reclaimable(folder: Path, name: str) -> int:
    """Files that are held in memory only as long as nobody needs it."""
    with suppress(OSError, ValueError, StopIteration):
        lines = (folder / "memory.stat").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name} "))
    return 0


def give_back() -> None:
    """Hand freed memory back to the system, where its C library can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def to_load(parameters: int) -> int:
    """Bytes that it takes for a moment to load so many parameters."""
    return parameters * BYTES * COPIES


def could_fit(needed: int) -> bool:
    """Whether so many bytes would be had in this process, were nothing kept in it."""
    return needed <= budget().whole - BASE


def in_words(number: int) -> str:
    """So many bytes, with the unit in which there is something before the point."""
    return f"{number / 1e9:.1f} GB" if number >= 10**8 else f"{max(number, 0) / 1e6:.0f} MB"


def require_room(name: str, parameters: int) -> None:
    """Refuse a model that does not fit; raises BadOption with the numbers."""
    free, needed = free_bytes(), to_load(parameters)
    if needed > free:
        raise BadOption(
            f"{name} has {parameters / 1e6:,.0f} million parameters: to load it takes about"
            f" {in_words(needed)}, and {in_words(free)} are free here. Choose a smaller model."
        )
