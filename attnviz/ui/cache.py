"""What all sessions share: models, and observations up to a budget in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np
import streamlit as st
import torch
from jaxtyping import Float
from PIL import Image

import models
from attnviz.colour import bounded, fit_within
from attnviz.contract import Box, Fit, LoadedViT, Progress
from attnviz.errors import BadOption, BadWeights, UnknownName
from attnviz.explain import Explanation, explain, observe
from attnviz.failures import is_out_of_memory
from attnviz.film import Film, film
from attnviz.metrics import HeadMetrics, head_metrics
from attnviz.record import AttentionRecord, LayerAttention
from attnviz.target import Target
from attnviz.tokens import Query
from attnviz.ui import live_map
from attnviz.ui.checkpoints import Checkpoint
from attnviz.ui.live_map import LiveMap
from attnviz.ui.room import require_room
from attnviz.ui.state import Picture
from models.search import Found, describe

RECORD_BUDGET = 1024 * 2**20
"""Bytes of attention kept for all sessions together; the least recently used goes first."""

Request = tuple[str, object, tuple[int, int], Fit, object]
"""What makes a record: picture digest, model with its weights, size, fit, and target."""


@st.cache_resource(max_entries=3, show_spinner=False)
def model(name: str, random: bool, checkpoint: Checkpoint | None = None) -> models.AnyViT:
    """A loaded model, shared by all sessions; its lock lets one pass run at a time.

    Raises:
        AttnVizError: it cannot be loaded, or there is too little memory for it.
    """
    card = models.MODELS.get(name)
    if card is None or card.is_fetched:
        require_room(name, described(name).parameters)
    try:
        if checkpoint is None:
            return models.load(name, pretrained=not random)
        vit = models.load(name, checkpoint=checkpoint.path)
        return replace(vit, weights=f"Weights of the host's file {checkpoint.name}.")
    except BadWeights as error:  # where a file lies is the host's own business
        if checkpoint is None:
            raise
        raise BadWeights(error.reason.replace(checkpoint.path, checkpoint.name)) from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadOption(f"There is too little memory for {name}: choose a smaller one.") from error


@st.cache_data(max_entries=2000, show_spinner=False)
def described(name: str) -> Found:
    """What a model of timm's offers."""
    return describe(name)


SHOWN_SIDE = 1000
"""Pixels of a picture's longer side on screen, at most."""

LEAST_SIDE = 600
"""And at least: smaller ones are enlarged by a whole number."""


@dataclass(frozen=True, eq=False)
class Observation:
    """A record, with what was last asked of it: widgets that only draw compute nothing anew."""

    record: AttentionRecord
    shown: Image.Image
    """The picture as large as the screen needs it: a camera's would take a second at each run, and
    a thumbnail has fewer pixels than patches."""
    explain: Callable[..., Explanation]
    """(method, query=…, progress=…, **options), as `attnviz.explain`."""
    tiles: Callable[[Query], Float[np.ndarray, "layer head row col"]]
    """Each head's map for one query; read-only."""
    metrics: Callable[[], HeadMetrics]
    """What each head does, in numbers."""
    film: Callable[..., Film]
    """(query=…, **options), as `attnviz.film`."""
    live: Callable[..., LiveMap]
    """(called between pieces of work, **options of `attention`) → every patch's map."""
    mark: str = field(default_factory=lambda: uuid4().hex)
    """What tells this observation from others on a page."""
    computing: Lock = field(default_factory=Lock)
    """Held by whoever computes a map: a run that was cut off must not go on beside the next."""

    @classmethod
    def of(cls, record: AttentionRecord) -> Observation:
        """With nothing asked yet."""
        return cls(
            record,
            _for_screen(record.image),
            _remembering(record),
            lru_cache(32)(partial(_tiles, record)),
            lru_cache(1)(partial(head_metrics, record)),
            lru_cache(8)(partial(film, record)),
            live_map.remembering(record),
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
        """Bytes of attention and pictures that are held."""
        record = self.record
        pixels = sum(image.width * image.height for image in (record.image, self.shown))
        return record.nbytes + record.view.tensor.nbytes + 3 * pixels


def _remembering(record: AttentionRecord, count: int = 32) -> Callable[..., Explanation]:
    """`explain` that keeps its last answers, whatever was watching their progress."""
    kept: OrderedDict[object, Explanation] = OrderedDict()

    def answer(method: str, *, progress: Progress | None = None, **asked: Any) -> Explanation:
        key = (method, *sorted(asked.items()))
        if key not in kept:
            kept[key] = explain(record, method, progress=progress, **asked)
        kept.move_to_end(key)
        while len(kept) > count:
            kept.popitem(last=False)
        return kept[key]

    return answer


def _for_screen(image: Image.Image) -> Image.Image:
    if (side := max(image.size)) < LEAST_SIDE:
        factor = -(-LEAST_SIDE // side)
        size = bounded((image.width * factor, image.height * factor))
        return image.resize(size, Image.Resampling.BICUBIC)
    size = bounded(fit_within(image.size, SHOWN_SIDE))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _tiles(record: AttentionRecord, query: Query) -> Float[np.ndarray, "layer head row col"]:
    """Every head's row, on the record's grid; NaN where a layer has no such head or query."""
    each = [_tile(record, layer, query) for layer in record.layers]
    heads = max(layer.heads for layer in record.layers)
    values = np.full((len(each), heads, *record.layout.grid), np.nan, np.float32)
    for number, tile in enumerate(each):
        values[number, : len(tile)] = tile
    values.setflags(write=False)
    return values


def _tile(
    record: AttentionRecord, layer: LayerAttention, query: Query
) -> Float[np.ndarray, "head row col"]:
    geometry = record.geometry(layer)
    try:
        rows = layer.rows(geometry.queries.query_tokens(geometry.asked(query, record.layout)))
    except (BadOption, UnknownName):  # the token does not ask here
        return np.full((layer.heads, *record.layout.grid), np.nan, np.float32)
    grid = geometry.keys.to_grid(rows).float().cpu().numpy()
    down, across = (
        np.arange(ours) * theirs // ours
        for ours, theirs in zip(record.layout.grid, geometry.keys.grid, strict=True)
    )
    tile: Float[np.ndarray, "head row col"] = grid.take(down, 1).take(across, 2)
    return tile


@contextmanager
def _turn(lock: Lock, waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the lock; while somebody else does, call `waiting` twice a second."""
    while not lock.acquire(timeout=0.5):
        waiting()
    try:
        yield
    finally:
        lock.release()


class Observations:
    """The least recently used go first, bounded in bytes. One pass at a time, whoever asks."""

    def __init__(self, budget: int = RECORD_BUDGET) -> None:
        self._budget = budget
        self._kept: OrderedDict[Request, Observation] = OrderedDict()
        self._passing, self._touching = Lock(), Lock()

    def find(self, request: Request | None) -> Observation | None:
        """An observation that is kept, or None."""
        with self._touching:
            if request is None or request not in self._kept:
                return None
            self._kept.move_to_end(request)
            return self._kept[request]

    def get(
        self,
        request: Request,
        make: Callable[[], AttentionRecord],
        waiting: Callable[[], object] = lambda: None,
    ) -> Observation:
        """The observation of a request, made if it is not kept.

        `waiting` is called now and then while another visitor's pass runs; it may raise, to stop.
        """
        if (found := self.find(request)) is not None:
            return found
        with _turn(self._passing, waiting):
            if (found := self.find(request)) is not None:
                return found
            made = Observation.of(make())
            with self._touching:
                self._kept[request] = made
                # The newest stays even where it alone is over the budget: it is on a screen.
                while len(self._kept) > 1 and self.nbytes > self._budget:
                    self._kept.popitem(last=False)
            return made

    @property
    def nbytes(self) -> int:
        """Bytes of all that are kept."""
        return sum(kept.nbytes for kept in self._kept.values())


@st.cache_resource(show_spinner=False)
def observations() -> Observations:
    """The one store of observations."""
    return Observations()


def observation(
    vit: LoadedViT,
    picture: Picture,
    fit: Fit,
    progress: Progress,
    waiting: Callable[[], object],
    *,
    choice: object,
    wish: object = None,
    target: Target | None = None,
) -> tuple[Request, Observation]:
    """Observe a picture, or find that it has been observed.

    `choice` names the model and its weights, `wish` the target, so that it can be told whether a
    record that is kept has the same.

    Raises:
        AttnVizError: the model does not take the picture, or there is too little memory.
    """
    request: Request = (picture.digest, choice, vit.image_size, fit, wish)

    def make() -> AttentionRecord:
        try:
            return observe(vit, picture.image, fit=fit, target=target, progress=progress)
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise BadOption(
                f"{vit.name} ran out of memory at this resolution: choose a lower one."
            ) from error

    if observations().find(request) is None:
        progress(0, 1)
    return request, observations().get(request, make, waiting)
