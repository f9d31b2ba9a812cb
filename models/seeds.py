"""Random numbers from a seed, as if nobody had drawn any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_DRAWING = Lock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Start torch's global random numbers (the CPU's) at `seed`; afterwards they go on as before.

    One caller at a time: others wait, since the numbers are global.
    """
    with _DRAWING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
