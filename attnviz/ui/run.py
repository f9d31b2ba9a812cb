"""A model on a picture: its passes, and where the page says how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from streamlit.delta_generator import DeltaGenerator

import models
from attnviz.contract import Fit
from attnviz.target import Target, similarity_to
from attnviz.ui import cache
from attnviz.ui.model_choice import Choice
from attnviz.ui.observation import Observation
from attnviz.ui.state import Picture, sample_picture, visitor
from attnviz.ui.tally import counted_refusals
from attnviz.ui.target_panel import Wish
from attnviz.ui.turns import Place, Turn


@contextmanager
def heavy(status: DeltaGenerator) -> Iterator[Turn]:
    """Have one's turn at what takes the whole machine, with one's place in the line said meanwhile.

    Raises Busy where too many wait already, or it took too long.
    """

    def waiting(place: Place) -> None:
        status.progress(0.0, place.words)

    with ExitStack() as ending:
        with counted_refusals():
            turn = ending.enter_context(cache.observations().line.turn(visitor(), waiting))
        yield turn


@dataclass(frozen=True)
class Run:
    """What the model is run on, and where it is said how far it is."""

    vit: models.AnyViT
    choice: Choice
    """What made it."""
    picture: Picture
    fit: Fit
    status: DeltaGenerator
    ahead: Callable[[], None] = lambda: None
    """Called before a pass, which takes a while."""

    def observe(self, wish: Wish | None = None) -> tuple[cache.Request, Observation]:
        """Run the model, with a bar that grows layer by layer; a move of any widget stops it."""
        target = None if wish is None else self._target(*wish)
        return self._observe(self.picture, wish, target)

    def _target(self, kind: str, what: Any) -> Target:
        match kind:
            case "class":
                return int(what)
            case "token":
                return similarity_to(what)
            case "sample":
                sample = sample_picture(what)
                _, other = self._observe(sample)
                return similarity_to(other.record, name=f"the sample {sample.name}")
        raise ValueError(kind)

    def _observe(
        self, picture: Picture, wish: Wish | None = None, target: Target | None = None
    ) -> tuple[cache.Request, Observation]:
        name = self.vit.name

        def progress(done: int, total: int) -> None:
            if not done:  # nothing is kept of it: a pass begins
                self.ahead()
            layers = len(self.vit.sites)
            back = f"gradient of layer {done - layers}" if done > layers else f"layer {done}"
            words = f"Running {name} on {picture.name}: {back} of {layers}"
            self.status.progress(done / total, words)

        def waiting(place: Place) -> None:
            self.status.progress(0.0, place.words)

        try:
            return cache.observation(
                self.vit,
                picture,
                self.fit,
                progress,
                waiting,
                choice=self.choice,
                wish=wish,
                target=target,
            )
        finally:
            self.status.empty()
