"""What all sessions share: models, and observations up to a budget in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import NamedTuple

import streamlit as st
import torch

import models
from attnviz.contract import Fit, Progress
from attnviz.errors import BadOption, BadWeights
from attnviz.explain import observe
from attnviz.failures import is_out_of_memory
from attnviz.record import AttentionRecord
from attnviz.target import Target
from attnviz.ui.checkpoints import Checkpoint
from attnviz.ui.observation import Observation
from attnviz.ui.offered import require_offered
from attnviz.ui.pass_cost import cost, require_room_for_pass
from attnviz.ui.resolutions import sides_of
from attnviz.ui.room import (
    budget,
    could_fit,
    free_bytes,
    give_back,
    require_room,
    to_load,
    used_bytes,
)
from attnviz.ui.settings import settings
from attnviz.ui.state import Picture, visitor
from attnviz.ui.sweep import keep_out_of_sweeps
from attnviz.ui.tally import Outcome, Pass, counted_refusals, timed
from attnviz.ui.turns import Turns, Waiting
from models.search import Found, describe


class Request(NamedTuple):
    """What makes a record."""

    picture: str
    """Its digest."""
    choice: object
    """The model with its weights."""
    size: tuple[int, int]
    fit: Fit
    wish: object
    """The target."""


@st.cache_resource(max_entries=3, show_spinner=False)
def model(name: str, random: bool, checkpoint: Checkpoint | None = None) -> models.AnyViT:
    """A loaded model, shared by all sessions; its lock lets one pass run at a time.

    Raises:
        AttnVizError: it cannot be loaded, or there is too little memory for it.
    """
    require_offered(name)
    card = models.MODELS.get(name)
    if card is None or card.is_fetched:
        _have_room_to_load(name, described(name).parameters)
    try:
        vit = _load(name, random, checkpoint)
    except BadWeights as error:  # where a file lies is the host's own business
        if checkpoint is None:
            raise
        raise BadWeights(error.reason.replace(checkpoint.path, checkpoint.name)) from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadOption(f"There is too little memory for {name}: choose a smaller one.") from error
    keep_out_of_sweeps()
    return vit


def _have_room_to_load(name: str, parameters: int) -> None:
    """Let go of records, then of the other models, as far as one needs it; BadOption if in vain."""
    needed = to_load(parameters)
    if could_fit(needed):  # else nobody is to lose anything by it
        _let_go(observations(), needed)
        if needed > free_bytes():
            model.clear()
            keep_out_of_sweeps()  # which also sweeps what was kept out until now
            give_back()
    require_room(name, parameters)


def _load(name: str, random: bool, checkpoint: Checkpoint | None) -> models.AnyViT:
    if checkpoint is None:
        return models.load(name, pretrained=not random)
    vit = models.load(name, checkpoint=checkpoint.path)
    return replace(vit, weights=f"Weights of the host's file {checkpoint.name}.")


@st.cache_data(max_entries=2000, show_spinner=False)
def described(name: str) -> Found:
    """What a model of timm's offers."""
    return describe(name)


class Observations:
    """The least recently used go first, bounded in bytes. One pass at a time, whoever asks."""

    def __init__(self, budget: int, line: Turns | None = None) -> None:
        """With at most `budget` bytes kept."""
        self._budget = budget
        self._kept: OrderedDict[Request, Observation] = OrderedDict()
        self.line = line or Turns()
        self._touching = Lock()

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
        waiting: Waiting = lambda place: None,
        visitor: Hashable = None,
    ) -> Observation:
        """The observation of a request, made if it is not kept.

        `waiting` is told of the visitor's place while others' passes run; it may raise, to stop.

        Raises:
            Busy: too many wait already, or it took too long.
        """
        if (found := self.find(request)) is not None:
            return found
        with self.line.turn(visitor, waiting):
            if (found := self.find(request)) is not None:
                return found
            made = Observation.of(make())
            with self._touching:
                self._kept[request] = made
                # The newest stays even where it alone is over the budget: it is on a screen.
                while len(self._kept) > 1 and self._bytes() > self._budget:
                    self._kept.popitem(last=False)
            return made

    def forget_oldest(self) -> bool:
        """Whether there was one to let go, beside the newest."""
        with self._touching:
            if len(self._kept) < 2:
                return False
            self._kept.popitem(last=False)
            return True

    @property
    def nbytes(self) -> int:
        """Bytes of all that are kept."""
        with self._touching:
            return self._bytes()

    def _bytes(self) -> int:
        return sum(kept.nbytes for kept in self._kept.values())


@st.cache_resource(show_spinner=False)
def observations() -> Observations:
    """The one store of observations."""
    host = settings()
    return Observations(budget().records, Turns(host.queue, host.queue_seconds))


def observation(
    vit: models.AnyViT,
    picture: Picture,
    fit: Fit,
    progress: Progress,
    waiting: Waiting,
    *,
    choice: object,
    wish: object = None,
    target: Target | None = None,
) -> tuple[Request, Observation]:
    """Observe a picture, or find that it has been observed.

    `choice` names the model and its weights, `wish` the target, so that it can be told whether a
    record that is kept has the same.

    Raises:
        AttnVizError: the model does not take the picture, there is too little memory, or too many
            wait already.
    """
    request = Request(picture.digest, choice, vit.image_size, fit, wish)

    asked = monotonic()

    def make() -> AttentionRecord:
        began = monotonic()

        def going_on(done: int, total: int) -> None:
            progress(done, total)
            if monotonic() - began > (most := settings().pass_seconds):
                raise BadOption(
                    f"{vit.name} took longer than the {most} s that a pass may take here: choose a"
                    " lower resolution, or a smaller model."
                )

        def said(outcome: Outcome, ms: int) -> Pass:
            return Pass(
                model=vit.name,
                size=vit.image_size,
                gradient=target is not None,
                outcome=outcome,
                ms=ms,
                waited_ms=round(1000 * (began - asked)),
                waiting=store.line.waiting,
                memory_mb=used_bytes() // 2**20,
                kept_mb=store.nbytes // 2**20,
            )

        _have_room(store, vit, gradient=target is not None)
        try:
            with timed(said):
                return observe(vit, picture.image, fit=fit, target=target, progress=going_on)
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise BadOption(
                f"{vit.name} ran out of memory at this resolution: choose a lower one."
            ) from error

    store = observations()
    if store.find(request) is None:
        progress(0, 1)
    with counted_refusals():
        return request, store.get(request, make, waiting, visitor())


def _have_room(store: Observations, vit: models.AnyViT, *, gradient: bool) -> None:
    """Let go of what is kept as far as a pass needs it; raises BadOption where that is no help."""
    _let_go(store, cost(vit, vit.image_size, gradient=gradient).peak)
    smaller = [(side, side) for side in sides_of(vit)] if vit.any_size else []
    require_room_for_pass(vit, vit.image_size, free_bytes(), gradient=gradient, smaller=smaller)


def _let_go(store: Observations, needed: int) -> None:
    """Of the records, the oldest first, until so many bytes are free."""
    while needed > free_bytes() and store.forget_oldest():
        give_back()
