"""One map over the picture, with its colour bar in real numbers."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz import export, figures
from attnviz.explain import Explanation
from attnviz.legend import legend
from attnviz.scale import Scale
from attnviz.ui.asked import Ground
from attnviz.ui.bar import show_bar
from attnviz.ui.figure_files import FORMATS, offer_file
from attnviz.ui.look_panel import Look, cut_scale, looks_dark, show_alone
from attnviz.ui.picker import pick_cell, picked_cell
from attnviz.used import used_in

SAID_ELSEWHERE = frozenset(
    {
        *("picture", "method", "direction", "query", "here", "target"),
        *("weights", "input", "fit", "grid", "model"),
    }
)
"""Facts that the page says beside the map's sentence, or at its beginning."""


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
    drawing = drawing_options(look, scale)
    on_map = ground.on(heat.grid, heat.box)
    pick_cell(
        shown.overlay(**drawing),
        grid=shown.grid,
        box=shown.box,
        chosen=heat.query_cell,
        key="map",
        alt=f"{subject(heat)}, as colours over the picture",
        values=heat.values,
        show_grid=False,
        reveal=st.session_state.pop("reveal", 0),
        follows="patches",
        scene=scene,
        on_pick=lambda: on_map.ask(picked_cell("map")),
    )
    below = st.container()
    if scale is None:
        st.caption(_mixture(heat, look))
    else:
        show_bar(scale, look.colormap, unit=heat.unit, values=heat.drawn)
    if 0 < look.alpha < 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"Opacity {look.alpha:g}: the map's colours are mixed with the picture's.",
                width="content",
            )
            st.button("Show the colours alone", key="alone", on_click=show_alone)
    for note in heat.notes:
        st.caption(f":material/warning: {note}")
    st.caption(sentence(heat, ground))
    if scale is not None and look.clip is None and looks_dark(heat.drawn, scale):
        st.caption("A few patches hold so much that all others look alike.")
        st.button("Cut the scale", key="cut_map", on_click=cut_scale)
    _show_downloads(heat, drawing)
    return below


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
            figures.heat_figure(heat, **drawing_options(look, scale)),
            theme=None,
            config=figures.camera(export.file_stem(heat)),
            alt=f"{subject(heat)}, as a chart",
        )


def show_small(shown: Explanation, look: Look) -> None:
    """A map that is not picked on, with its numbers."""
    scale = None if shown.in_colour else look.scale_of(shown)
    st.image(shown.overlay(**drawing_options(look, scale)), width="stretch", alt=shown.summary)
    if scale is None:
        st.caption(_mixture(shown, look))
    else:
        show_bar(scale, look.colormap, unit=shown.unit, values=shown.drawn)


def drawing_options(look: Look, scale: Scale | None) -> dict[str, Any]:
    """The options that the map, the chart and the figure have in common."""
    drawing: dict[str, Any] = {"alpha": look.alpha, "interpolation": look.interpolation}
    return drawing if scale is None else drawing | {"colormap": look.colormap, "scale": scale}


def _mixture(heat: Explanation, look: Look) -> str:
    """What the colours are, in words and numbers, and which widgets have no say in them."""
    _, label = legend(heat, interpolation=look.interpolation)
    return (
        f"{label[0].upper()}{label[1:]}. *Colours*, *Colour scale* and *Cut the scale* in the"
        " sidebar are for one component alone."
    )


def sentence(heat: Explanation, ground: Ground) -> str:
    """What was chosen, in words, and how much of the whole is seen."""
    chosen = ", ".join(
        value if value.startswith(name) else f"{name} {value}"
        for name, value in heat.facts
        if name not in SAID_ELSEWHERE
    )
    said = f"{subject(heat, '**')}{': ' if chosen else ''}{chosen}."
    placeless = [ground.layout.query_label(name) for name in ground.layout.prefix]
    if not placeless or not heat.share_of_all:
        return said
    share, padding = float(heat.drawn.sum()), float(heat.values.sum() - heat.drawn.sum())
    held = f"{share:.1%}" if share < 0.9995 else "over 99.9%"
    if padding:
        placeless.append(f"the padding around the picture ({padding:.1%})")
    return said + (
        f" The patches of the picture hold {held} of the whole. The rest is with what has no place "
        f"in it: {', '.join(placeless)}."
    )


def subject(heat: Explanation, mark: str = "") -> str:
    """The method, whose map it is, and what it explains."""
    query, target = heat.fact("query"), heat.fact("target")
    whose = "to" if heat.fact("direction") == "to" else "of"
    of = f" {whose} the {mark}{query}{mark}" if query else ""
    if here := heat.fact("here"):  # on a later stage's grid
        of += f", here {here}"
    aim = f"{',' if here else ''} for the {mark}{target}{mark}" if target else ""
    return f"{mark}{heat.title}{mark}{of}{aim}"


@st.fragment
def _show_downloads(heat: Explanation, drawing: dict[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("Figure for a paper", FORMATS, key="format", width=150)
        words = st.toggle("Caption in the file", value=True, key="words")
    with st.container(horizontal=True, vertical_alignment="center"):
        suffix, mime = FORMATS[kind]
        offer_file(
            f"Download as {kind}",
            lambda: export.render(heat, suffix, **used_in(suffix, {**drawing, "caption": words})),
            f"{export.file_stem(heat)}{suffix}",
            mime,
        )
