"""Whether there is memory for a model, before it is loaded."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from attnviz.errors import BadOption

BYTES = 4
"""Of a parameter."""

COPIES = 2
"""A checkpoint and the model that it fills are there at once for a moment."""

GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells what a container may use."""


def free_bytes() -> int | None:
    """What can be had, by the system and by the container; None where nobody tells."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        found.append(next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line))
    with suppress(OSError, ValueError):  # "max" where there is no limit
        most, used = (int((GROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        found.append(most - used)
    return min(found, default=None)


def require_room(name: str, parameters: int) -> None:
    """Refuse a model that does not fit; raises BadOption with the numbers."""
    free, needed = free_bytes(), parameters * BYTES * COPIES
    if free is not None and needed > free:
        raise BadOption(
            f"{name} has {parameters / 1e6:,.0f} million parameters: to load it takes about"
            f" {needed / 1e9:.1f} GB, and {max(free, 0) / 1e9:.1f} GB are free here. Choose a"
            " smaller model."
        )
