"""One line that says how far a batch is, where somebody is watching."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

EVERY = 0.2
"""Seconds between two looks of the line."""

WIDTH = 24
"""Letters of the bar."""


@dataclass
class Bar:
    """Pictures done of all that are left to do; writes nothing but to a terminal."""

    total: int
    out: TextIO = field(default_factory=lambda: sys.stderr)
    done: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self._watched = self.total > 0 and self.out.isatty()
        self._start, self._shown, self._long = time.monotonic(), 0.0, 0

    def step(self, *, failed: bool = False) -> None:
        """One more picture is done, or could not be."""
        self.done += 1
        self.failed += failed
        now = time.monotonic()
        if self._watched and (now - self._shown > EVERY or self.done == self.total):
            self._shown = now
            self._write(self.text(now - self._start))

    def close(self) -> None:
        """Leave the line as it is."""
        if self._watched and self._long:
            self.out.write("\n")

    def text(self, seconds: float) -> str:
        """What the line says after so many seconds."""
        rate = self.done / max(seconds, 1e-9)
        full = WIDTH * self.done // self.total
        bad = f", {self.failed} bad" if self.failed else ""
        left = duration((self.total - self.done) / rate) if self.done else "?"
        return (
            f"[{'#' * full}{'.' * (WIDTH - full)}] {self.done} of {self.total}{bad},"
            f" {rate:.3g} a second, {left} left"
        )

    def _write(self, text: str) -> None:
        self.out.write("\r" + text.ljust(self._long))
        self.out.flush()
        self._long = len(text)


def duration(seconds: float) -> str:
    """A time as people say it: `45 s`, `12 min`, `3 h 20 min`, `2 d 5 h`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
