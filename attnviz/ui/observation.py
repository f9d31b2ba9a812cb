"""A record, with all that was asked of it: what the page keeps of a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from uuid import uuid4

import numpy as np
from jaxtyping import Float
from PIL import Image

from attnviz.colour import bounded, fit_within
from attnviz.contract import Box
from attnviz.explain import Explanation, explain
from attnviz.film import Film, film
from attnviz.head_maps import tiles_of
from attnviz.metrics import HeadMetrics, head_metrics
from attnviz.record import AttentionRecord
from attnviz.ui.live_map import LiveMap, live_map
from attnviz.ui.memo import Memo

SHOWN_SIDE = 1000
"""Pixels of a picture's longer side on screen, at most."""

LEAST_SIDE = 600
"""And at least: smaller ones are enlarged by a whole number."""


MAPS_KEPT, TILES_KEPT, FILMS_KEPT, LIVE_KEPT = (count * 2**20 for count in (8, 16, 8, 16))
"""Bytes of answers of each kind that are kept with an observation."""


@dataclass(frozen=True, eq=False)
class Observation:
    """A record, with what was last asked of it: widgets that only draw compute nothing anew."""

    record: AttentionRecord
    shown: Image.Image
    """The picture as large as the screen needs it: a camera's would take a second at each run, and
    a thumbnail has fewer pixels than patches."""
    explain: Memo[Explanation]
    """(method, query=…, progress=…, **options), as `attnviz.explain`."""
    tiles: Memo[Float[np.ndarray, "layer head row col"]]
    """Each head's map for one query; read-only."""
    metrics: Memo[HeadMetrics]
    """What each head does, in numbers."""
    film: Memo[Film]
    """(query=…, **options), as `attnviz.film`."""
    live: Memo[LiveMap]
    """(going_on=…, called between pieces of work, **options of `attention`) → every patch's map."""
    mark: str = field(default_factory=lambda: uuid4().hex)
    """What tells this observation from others on a page."""
    computing: Lock = field(default_factory=Lock)
    """Held by whoever computes a map: a run that was cut off must not go on beside the next."""

    @classmethod
    def of(cls, record: AttentionRecord) -> Observation:
        """With nothing asked yet."""
        return cls(
            record,
            for_screen(record.image),
            Memo(partial(explain, record), MAPS_KEPT, aside="progress"),
            Memo(partial(tiles_of, record), TILES_KEPT),
            Memo(partial(head_metrics, record), TILES_KEPT),
            Memo(partial(film, record), FILMS_KEPT),
            Memo(partial(live_map, record), LIVE_KEPT, aside="going_on"),
        )

    def turn(self, waiting: Callable[[], object]) -> AbstractContextManager[None]:
        """One computation at a time; `waiting` may raise, to give it up."""
        return _turn(self.computing, waiting)

    @property
    def shown_box(self) -> Box:
        """Where the grid lies in `shown`."""
        return self._on_screen(self.record.view.box)

    def _on_screen(self, box: Box) -> Box:
        across = self.shown.width / self.record.image.width
        down = self.shown.height / self.record.image.height
        left, top, right, bottom = box
        return left * across, top * down, right * across, bottom * down

    def on_screen(self, heat: Explanation) -> Explanation:
        """The same map over `shown`."""
        return replace(heat, image=self.shown, box=self._on_screen(heat.box))

    @property
    def nbytes(self) -> int:
        """Bytes of attention, of pictures, and of all answers that are held."""
        record = self.record
        pixels = sum(image.width * image.height for image in (record.image, self.shown))
        answers = (self.explain, self.tiles, self.metrics, self.film, self.live)
        held = sum(each.nbytes for each in answers)
        return record.nbytes + record.view.tensor.nbytes + 3 * pixels + held


def for_screen(image: Image.Image) -> Image.Image:
    """A picture as large as it is shown."""
    if (side := max(image.size)) < LEAST_SIDE:
        factor = -(-LEAST_SIDE // side)
        size = bounded((image.width * factor, image.height * factor))
        return image.resize(size, Image.Resampling.BICUBIC)
    size = bounded(fit_within(image.size, SHOWN_SIDE))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


@contextmanager
def _turn(lock: Lock, waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the lock; while somebody else does, call `waiting` twice a second."""
    while not lock.acquire(timeout=0.5):
        waiting()
    try:
        yield
    finally:
        lock.release()
