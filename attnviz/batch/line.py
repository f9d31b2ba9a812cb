"""On this machine: one model, and threads that open the next pictures while it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from attnviz.batch.opened import Opened
from attnviz.batch.worker import Result, Worker

READERS = 2
"""Threads that open pictures."""

AHEAD = 2
"""Parts that are opened before the model has come to them."""


@dataclass(frozen=True)
class Part:
    """Pictures that pass together: what is asked of a worker at a time."""

    names: tuple[str, ...]
    wanted: frozenset[str]
    """Those that are not done yet. The others pass along, so that rounding is what it was."""


def parts_of(names: Iterable[str], size: int, done: frozenset[str] | set[str]) -> Iterator[Part]:
    """Stretches of that many names, without those of which all are done."""
    left = iter(names)
    while part := tuple(islice(left, size)):
        wanted = frozenset(part) - done
        if wanted:
            yield Part(part, wanted)


def results_here(worker: Worker, parts: Iterable[Part]) -> Iterator[Result]:
    """Every part's results, in the order of the parts."""
    coming: deque[tuple[Part, list[Future[Opened]]]] = deque()
    readers = ThreadPoolExecutor(READERS, thread_name_prefix="open")
    try:
        for part in parts:
            coming.append((part, [readers.submit(worker.open, name) for name in part.names]))
            if len(coming) > AHEAD:
                yield from _of(worker, *coming.popleft())
        while coming:
            yield from _of(worker, *coming.popleft())
    finally:
        readers.shutdown(cancel_futures=True)


def _of(worker: Worker, part: Part, opening: list[Future[Opened]]) -> Iterator[Result]:
    return worker.results([each.result() for each in opening], part.wanted)
