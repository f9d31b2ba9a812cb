"""Two of one kind side by side: pictures, models, resolutions or queries, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.errors import AttnVizError
from attnviz.explain import Explanation
from attnviz.methods import Method
from attnviz.scale import Scale
from attnviz.ui.alike_panel import show_alike
from attnviz.ui.asked import ASKED, OTHERS
from attnviz.ui.code_panel import drawing_of, recipe_on, show_code
from attnviz.ui.drawn_map import draw_map, sentence, show_colours, show_notes, subject
from attnviz.ui.one_map import MapAsked
from attnviz.ui.other_side import KINDS, choose_kind, choose_other
from attnviz.ui.pair import ask_for_pair, say_differences
from attnviz.ui.picker import picked_cell
from attnviz.ui.query_panel import choose_name
from attnviz.ui.sinks_panel import say_hidden
from attnviz.ui.stage import Stage, say_wrong, show_provenance

SHOWN = {"maps": "The same map of both", "alike": "Which patches are alike"}
"""What is shown of two pictures."""


@dataclass(frozen=True)
class Side:
    """One map of the two, and where it is drawn."""

    wanted: MapAsked
    heat: Explanation
    key: str
    place: Place

    @property
    def own_scale(self) -> Scale | None:
        """That of this map by itself, if it has one."""
        return self.wanted.stage.look.own_scale(self.heat)


def show_compare(stage: Stage) -> None:
    """The widgets, then both maps; what fails on one side is said there, and the other stands."""
    kind = choose_kind()
    other = choose_other(stage, kind)
    if kind == "picture" and _choose_shown() == "alike":
        show_alike(stage, other)
        return
    pair = ask_for_pair(stage, kind, other)
    method, own_query = pair.first.method, pair.own_query
    st.subheader(f"{method.label}: {KINDS[kind].lower()} beside it", anchor=False)
    st.caption(_what_to_do(method, own_query=own_query))
    if method.asks and not own_query:
        choose_name(stage.ground)
    left, right = st.columns(2, gap="medium")
    for place, words, key in ((left, other.here, ASKED), (right, other.there, OTHERS[0])):
        with place:
            st.markdown(words)
            if own_query:
                choose_name(replace(stage, asks=key).ground)
    here = _side(lambda: pair.first, "compare-here", left, again="first")
    if here is not None and not pair.one_scale:
        _show(here, here.own_scale)
    there = _side(pair.second, "compare-there", right, again="other")
    shared = None
    if here is not None and there is not None:
        with right:
            shared = pair.scale_of([here.heat, there.heat])
    for side in (here, there) if pair.one_scale else (there,):
        if side is not None:
            _show(side, shared or side.own_scale)
    if here is not None and there is not None:
        say_differences((here.wanted, there.wanted), (here.heat, there.heat))


def _what_to_do(method: Method, *, own_query: bool) -> str:
    if not method.asks:
        return "This map is of the whole picture: it has no query."
    if own_query:
        return "**Pick a patch** on either side: each has a query of its own."
    return "**Pick a patch** on either side: the patch at the same place asks on both."


def _side(ask: Callable[[], MapAsked], key: str, column: Place, *, again: str) -> Side | None:
    """The map of one side, which is not drawn yet; or why there is none, said there."""
    place = column.container()
    with column:
        try:
            wanted = ask()
            return Side(wanted, wanted.compute(), key, place)
        except AttnVizError as error:
            say_wrong(error, again=again)
    return None


def _show(side: Side, scale: Scale | None) -> None:
    """The map with its bar, what it shows in words, what saw it, and the code that makes it."""
    stage, heat, key = side.wanted.stage, side.heat, side.key
    shown, look, ground = stage.seen.on_screen(heat), stage.look, stage.ground_of(heat)
    with side.place:
        draw_map(
            heat,
            shown,
            look,
            scale,
            key=key,
            alt=f"{subject(heat)}, as colours over {stage.picture_name}",
            on_pick=lambda: ground.ask(picked_cell(key)),
        )
        show_colours(heat, look, scale)
        say_hidden(heat, scale)
        show_notes(heat)
        st.caption(sentence(heat, stage.ground))
        show_provenance(stage.record)
        asked = side.wanted.asked
        show_code(
            recipe_on(
                stage,
                "map",
                asked.method,
                request=side.wanted.request,
                options=asked.options,
                drawing=drawing_of(heat, look, scale),
                name=stage.picture_name,
                output=f"{key.removeprefix('compare-')}.png",
            )
        )


def _choose_shown() -> str:
    st.session_state.setdefault("compare_shown", "maps")
    return (
        st.segmented_control(
            "Shown",
            SHOWN,
            key="compare_shown",
            format_func=SHOWN.__getitem__,
            required=True,
            wrap=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        or "maps"
    )
