"""What every view is given: an observation, what was run for it, and how maps are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.errors import AttnVizError, BadOption, Busy
from attnviz.heatmap import Heatmap
from attnviz.record import AttentionRecord
from attnviz.tokens import Query
from attnviz.ui.asked import ASKED, Ground
from attnviz.ui.cache import Request
from attnviz.ui.look_panel import Look
from attnviz.ui.observation import Observation
from attnviz.ui.query_panel import choose_query
from attnviz.ui.run import Run
from attnviz.ui.state import plain

PANORAMA = 2.2
"""Width over height from which two pictures are shown below each other."""


@dataclass(frozen=True)
class Stage:
    """One picture seen by one model."""

    run: Run | None
    """How to run the model again; None where it failed and the last result still stands."""
    seen: Observation
    request: Request
    """What the observation is kept by."""
    look: Look
    status: Place
    """Where it is said what is going on."""
    name: str = ""
    """What its picture is called; empty: as the page's is."""
    asks: str = ASKED
    """Under which the session keeps what asks."""
    per_pixel: tuple[float, float] = (1.0, 1.0)
    """Pixels of the page's own picture, across and down, that a pixel of this one stands for."""

    @property
    def record(self) -> AttentionRecord:
        """What the pass left behind."""
        return self.seen.record

    @property
    def ground(self) -> Ground:
        """Where a picked patch becomes the query."""
        return Ground.of(self.record, self.asks).stretched(*self.per_pixel)

    def ground_of(self, heat: Heatmap) -> Ground:
        """The same on a map, whose grid may be a later stage's."""
        on_map = Ground.of(self.record, self.asks).on(heat.grid, heat.box)
        return on_map.stretched(*self.per_pixel)

    @property
    def picture_name(self) -> str:
        """What the picture is called, by whoever has it on this page."""
        return self.name or str(st.session_state.seen_name)

    @property
    def query(self) -> Query:
        """Which token asks."""
        return self.ground.query

    @property
    def asker(self) -> str:
        """Its name in words."""
        return self.record.layout.query_label(self.query)

    @property
    def model_run(self) -> Run:
        """What runs the model again; raises BadOption where that is not possible now."""
        if self.run is None:
            raise BadOption("This runs the model again: mend what failed above first.")
        return self.run

    @contextmanager
    def computing(self, words: str) -> Iterator[None]:
        """One computation on an observation at a time, with a word of what it is.

        The word stands while it waits, too: mostly for the same, in a run that was cut off.
        """
        place = st.empty()
        with self.status, st.spinner(words, show_time=True), self.seen.turn(place.empty):
            # A run that was cut off while it waited ends at the first thing that it draws.
            place.empty()
            yield

    def tiles(self) -> Float[np.ndarray, "layer head row col"]:
        """What the query looks at by every head of every layer; NaN where it looks at nothing."""
        with self.computing("Computing the heads' maps …"):
            return self.seen.tiles(self.query)

    def beside_picture(
        self,
        share: float = 0.5,
        *,
        named: bool = True,
        scene: str = "",
        other: Ground | None = None,
    ) -> Place:
        """Draw the picture with the query on it; gives the place beside it, or below a panorama.

        Args:
            share: of the width, for the picture.
            named: whether a query is asked for at all.
            scene: with one, a live map follows the pointer over the picture.
            other: where a second query is picked, on a picture of its own below.
        """
        if self.seen.shown.width > PANORAMA * self.seen.shown.height:
            left, right = st.container(), st.container()
        else:
            left, right = st.columns([share, 1 - share], gap="medium")
        with left:
            choose_query(self.seen, self.ground, named=named, scene=scene)
            if other is not None:
                st.caption("**Pick a patch** here for the second map:")
                choose_query(self.seen, other)
            show_provenance(self.record)
        return right


def show_provenance(record: AttentionRecord) -> None:
    """What the weights are, where they ran, and what the model says of the picture."""
    named = ", ".join(f"**{label}** {share:.0%}" for label, _, share in record.predictions)
    says = f" It says: {named}." if named else ""
    seen = f" Seen as {record.input_words} (width × height)."
    st.caption(f"**{record.model}** on {record.device}. {plain(record.weights)}{seen}{says}")


def say_wrong(error: AttnVizError, again: str | None = "view") -> None:
    """What could not be done, where it would have stood; the rest of the page stands.

    What was busy has a button that runs the page anew, one for each place, which is named; with
    None there is no such button, as it would not do again what failed.
    """
    st.error(str(error), icon=":material/error:")
    if again and isinstance(error, Busy):
        st.button("Try again", key=f"again-{again}", icon=":material/refresh:")
