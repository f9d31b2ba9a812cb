"""The one map that is asked for: its method and query, its values, and the scale of its colours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import streamlit as st

from attnviz.colour import stretched
from attnviz.contract import Progress
from attnviz.explain import Explanation, estimate
from attnviz.methods import METHODS, Method
from attnviz.methods.values import in_words
from attnviz.record import AttentionRecord
from attnviz.scale import Scale
from attnviz.ui.cache import Request
from attnviz.ui.live_panel import Live, live_of
from attnviz.ui.method_panel import Ask, choose_method
from attnviz.ui.observation import Observation
from attnviz.ui.run import heavy
from attnviz.ui.sinks_panel import leave_out_sinks
from attnviz.ui.stage import Stage
from attnviz.ui.target_panel import choose_target

TILES_UNIT = METHODS["attention"].unit
"""What the tiles of all heads show."""


@dataclass(frozen=True)
class MapAsked:
    """A map that was asked for and is not computed yet."""

    stage: Stage
    asked: Ask
    aimed: Observation
    """The observation that it is read from: with its target, if it has one."""
    request: Request
    """What that is kept by."""

    @property
    def method(self) -> Method:
        """How it is made."""
        return METHODS[self.asked.method]

    @property
    def live(self) -> Live | None:
        """What other patches' maps are drawn from while the pointer moves, where that can be."""
        return live_of(self.stage.seen, self.asked.method, self.asked.options)

    def compute(self, **changed: int) -> Explanation:
        """The map; with some options changed, if any are given."""
        options = {**self.asked.options, **changed}
        query = self.stage.query
        method = self.asked.method
        there = self.aimed.explain.has(method, query=query, **options)
        with self._busy(there=there) as progress:
            heat = self.aimed.explain(method, query=query, progress=progress, **options)
        # What others call the same picture is not kept with it.
        return heat.named(self.stage.picture_name)

    def scale(self, heat: Explanation) -> Scale | None:
        """What its colours stand for, with a word on sinks; None where three components are mixed.

        Only maps in the same unit can share one.
        """
        if heat.in_colour:
            return None
        look, shared = self.stage.look, None
        if look.scale == "shared" and heat.unit == TILES_UNIT:
            shared = look.shared_scale(self.stage.tiles())
        left_out = leave_out_sinks(
            heat,
            shared or look.scale_of(heat),
            self.asked,
            lambda layer: self.compute(first_layer=layer),
            shared=shared is not None,
        )
        return shared or look.scale_of(heat, left_out)

    @contextmanager
    def _busy(self, *, there: bool) -> Iterator[Progress | None]:
        """A spinner while a map is computed; for a long method a bar, which any move stops.

        A long one that is not `there` has a turn of its own, and lets others' passes in between.
        """
        needed = estimate(self.aimed.record, self.asked.method, **self.asked.options)
        if needed is None or there:
            with self.stage.computing("Computing the map …"):
                yield None
            return
        label, start = self.method.label, monotonic()

        def progress(done: int, total: int) -> None:
            nonlocal start
            before = monotonic()
            turn.let_others()
            start += monotonic() - before
            if done < 2:  # what comes before the second is done once for all
                start, left = monotonic(), str(needed)
            else:
                left = in_words((monotonic() - start) / (done - 1) * (total - done))
            words = f"{label}: {done} of {total} tokens, {left} to go"
            self.stage.status.progress(done / total, words)

        try:
            with heavy(self.stage.status) as turn:
                yield progress
        finally:
            self.stage.status.empty()


def ask_for_map(stage: Stage) -> MapAsked:
    """The widgets, and a heading that says what the map will be.

    A target that was not asked for before takes another pass through the model.
    """
    asked = choose_method(stage.record)
    request, aimed = stage.request, stage.seen
    if METHODS[asked.method].needs_gradient:
        request, aimed = aim(stage)
    turned = asked.options.get("direction") == "to"
    _say_what_is_shown(METHODS[asked.method], aimed.record, stage.asker, turned=turned)
    return MapAsked(stage, asked, aimed, request)


def aim(stage: Stage) -> tuple[Request, Observation]:
    """The widgets for a target, and what the model says with it: another pass, if it is new."""
    run = stage.model_run
    wish = choose_target(run.vit, stage.record, stage.query, run.picture.sample)
    return run.observe(wish)


def _say_what_is_shown(
    method: Method, record: AttentionRecord, asker: str, *, turned: bool
) -> None:
    """One heading, and what a patch that is picked will do."""
    rows, cols = record.layout.grid
    grid = f"The model sees {_count(rows, 'row')} × {_count(cols, 'column')} of patches."
    pick = "**Pick a patch** to see what it attends to."
    if method.needs_gradient:
        words = f"What speaks for the {record.target}"
        pick = f"The query is the {asker}; pick a patch to make it the query."
    elif not method.asks:
        words = f"{method.label} of the whole picture"
    elif method is METHODS["similarity"]:
        words, pick = f"What is like the {asker}", "**Pick a patch** to see what is like it."
    elif turned:
        words, pick = f"Who looks at the {asker}", "**Pick a patch** to see who looks at it."
    elif method is METHODS["attention"]:
        words = f"What the {asker} attends to"
    else:
        words, pick = f"{method.label} of the {asker}", "**Pick a patch** to see its map."
    if not method.asks:
        pick = "This map is of the whole picture: it has no query."
    with st.container(key="pinned_heading"):
        st.subheader(words, anchor=False)
    st.caption(f"{grid} {pick}")
    if note := stretched(record.image.size):
        st.warning(f"A very long picture, {note}.", icon=":material/straighten:")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
