"""One map over the picture, with its colour bar in real numbers."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz import export, figures
from attnviz.explain import Explanation
from attnviz.scale import Scale
from attnviz.ui.asked import Ground
from attnviz.ui.drawn_map import (
    draw_map,
    sentence,
    show_colours,
    show_notes,
    subject,
)
from attnviz.ui.figure_files import FORMATS, offer_file
from attnviz.ui.look_panel import Look, cut_scale, looks_dark, show_alone
from attnviz.ui.picker import picked_cell
from attnviz.used import used_in


def show_map(
    heat: Explanation,
    shown: Explanation,
    look: Look,
    scale: Scale | None,
    ground: Ground,
    *,
    scene: str = "",
) -> Place:
    """The map, what it shows in words, and its download; a patch picked on it asks next.

    Gives a place below the picture. With a `scene`, a live map follows the pointer.

    `shown` is the same map over a picture that is no larger than the screen. There is no `scale`
    where three components are mixed as colours.
    """
    drawing = look.drawing(scale)
    on_map = ground.on(heat.grid, heat.box)
    draw_map(
        heat,
        shown,
        look,
        scale,
        key="map",
        alt=f"{subject(heat)}, as colours over the picture",
        reveal=st.session_state.pop("reveal", 0),
        follows="patches",
        scene=scene,
        on_pick=lambda: on_map.ask(picked_cell("map")),
    )
    below = st.container()
    with st.container(key="pinned"):  # dimmed while a live map is shown above it
        _say_of(heat, look, scale, ground)
    _show_downloads(heat, drawing)
    return below


def _say_of(heat: Explanation, look: Look, scale: Scale | None, ground: Ground) -> None:
    """The colours in numbers, notes, what was chosen, and ways out of a scale that hides most."""
    show_colours(heat, look, scale)
    if 0 < look.alpha < 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"Opacity {look.alpha:g}: the map's colours are mixed with the picture's.",
                width="content",
            )
            st.button("Show the colours alone", key="alone", on_click=show_alone)
    show_notes(heat)
    st.caption(sentence(heat, ground))
    if scale is not None and look.clip is None and looks_dark(heat.drawn, scale):
        st.caption("A few patches hold so much that all others look alike.")
        st.button("Cut the scale", key="cut_map", on_click=cut_scale)


def reveal_map() -> None:
    """Take the visitor to the map; called before the page runs."""
    number = st.session_state.get("revealed", 0) + 1
    st.session_state.reveal = st.session_state.revealed = number


@st.fragment
def show_chart(heat: Explanation, look: Look, scale: Scale | None) -> None:
    """The map once more where it was asked for: with the value under the pointer, and as SVG."""
    st.toggle(
        "Chart with values",
        key="chart",
        help="The same map once more, with each patch's value under the pointer. Its camera button "
        "saves it as SVG.",
    )
    if st.session_state.get("chart"):
        st.plotly_chart(
            figures.heat_figure(heat, **look.drawing(scale)),
            theme=None,
            config=figures.camera(export.file_stem(heat)),
            alt=f"{subject(heat)}, as a chart",
        )


def show_small(heat: Explanation, shown: Explanation, look: Look, key: str) -> None:
    """A map that is not picked on, with its numbers; `shown` as in `show_map`."""
    scale = look.own_scale(heat)
    draw_map(heat, shown, look, scale, key=key, alt=heat.summary.removesuffix("."), on_pick=None)
    show_colours(heat, look, scale)


@st.fragment
def _show_downloads(heat: Explanation, drawing: dict[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox(
            "Figure for a paper", FORMATS, key="format", width=150, persist_state="session"
        )
        words = st.toggle("Caption in the file", value=True, key="words", persist_state="session")
    with st.container(horizontal=True, vertical_alignment="center"):
        suffix, mime = FORMATS[kind]
        offer_file(
            f"Download as {kind}",
            lambda: export.render(heat, suffix, **used_in(suffix, {**drawing, "caption": words})),
            f"{export.file_stem(heat)}{suffix}",
            mime,
        )
