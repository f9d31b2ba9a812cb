"""What the page has done so far: a line of JSON a pass, and counters. Never a name or a picture."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from threading import Lock
from time import monotonic
from typing import Literal

from attnviz.errors import Busy

LOG = logging.getLogger("attnviz.passes")
"""Silent, unless whoever serves the page gives it a handler."""

Outcome = Literal["done", "stopped", "failed"]
"""Stopped: by the visitor, who moved a widget or went away."""


@dataclass(frozen=True)
class Pass:
    """One pass of a model, as far as anybody but its visitor may know of it."""

    model: str
    size: tuple[int, int]
    """(rows, cols) in pixels that pictures are fitted to."""
    gradient: bool
    outcome: Outcome
    ms: int
    """Of the pass itself."""
    waited_ms: int
    waiting: int
    """Who waits now."""
    memory_mb: int
    """Of the process."""
    kept_mb: int
    """Of it, what is kept of passes."""

    @property
    def line(self) -> str:
        """As JSON."""
        return json.dumps({"event": "pass", **asdict(self)})


class Tally:
    """Numbers since the start."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.passes: Counter[Outcome] = Counter()
        self.refused: Counter[str] = Counter()
        self.seconds = self.waited = 0.0

    def note(self, one: Pass) -> None:
        """A pass ended."""
        with self._lock:
            self.passes[one.outcome] += 1
            self.seconds += one.ms / 1000
            self.waited += one.waited_ms / 1000
        LOG.info(one.line)

    def refuse(self, why: str) -> None:
        """A pass was not even begun."""
        with self._lock:
            self.refused[why] += 1
        LOG.info(json.dumps({"event": "refused", "why": why}))


@cache
def tally() -> Tally:
    """This process's."""
    return Tally()


@contextmanager
def timed(describe: Callable[[Outcome, int], Pass]) -> Iterator[None]:
    """A pass, from its first layer to its last; `describe` is told how it went, and its ms."""
    start = monotonic()
    outcome: Outcome = "stopped"
    try:
        yield
        outcome = "done"
    except Exception:  # Streamlit ends a run by what is no Exception
        outcome = "failed"
        raise
    finally:
        tally().note(describe(outcome, round(1000 * (monotonic() - start))))


@contextmanager
def counted_refusals() -> Iterator[None]:
    """Notes who is turned away because of others."""
    try:
        yield
    except Busy:
        tally().refuse("busy")
        raise
