"""A map over its picture, as every view draws it: patches to pick, colours in numbers, words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from PIL import Image

from attnviz.explain import Explanation
from attnviz.legend import legend
from attnviz.methods import METHODS
from attnviz.scale import Scale
from attnviz.ui.asked import Ground
from attnviz.ui.bar import show_bar
from attnviz.ui.look_panel import Look
from attnviz.ui.picker import Cell, pick_cell

SAID_ELSEWHERE = frozenset(
    {
        *("picture", "method", "direction", "query", "here", "target"),
        *("weights", "input", "fit", "grid", "model"),
    }
)
"""Facts that the page says beside the map's sentence, or at its beginning."""


def draw_map(
    heat: Explanation,
    shown: Explanation,
    look: Look,
    scale: Scale | None,
    *,
    key: str,
    alt: str,
    on_pick: Callable[[], None] | None,
    chosen: Cell | None = None,
    marked: Callable[[Image.Image], Image.Image] = lambda image: image,
    **picker: Any,
) -> None:
    """The map on its picture, each patch with its value, one of which can be picked.

    Args:
        heat: The map; what is said of a patch is its value.
        shown: The same over a picture that is no larger than the screen.
        look: How maps are drawn.
        scale: Of the colours; None where three components are mixed.
        key: Of the picker.
        alt: What is seen, for those who cannot see it.
        on_pick: Called before the page runs, when `picked_cell(key)` is the patch; None where none
            is picked.
        chosen: The patch with the outline; None: the query's own.
        marked: What else is drawn on it.
        picker: More options of `pick_cell`.
    """
    method = METHODS.get(heat.method or "")
    pick_cell(
        marked(shown.overlay(**look.drawing(scale))),
        grid=shown.grid,
        box=shown.box,
        chosen=chosen or heat.query_cell,
        key=key,
        alt=alt,
        values=heat.values,
        show_grid=False,
        picks=on_pick is not None and (method is None or method.asks),
        on_pick=on_pick,
        **picker,
    )


def show_colours(heat: Explanation, look: Look, scale: Scale | None) -> None:
    """What the colours stand for: a bar in numbers with its unit, or how components are mixed."""
    if scale is not None:
        show_bar(scale, look.colormap, unit=heat.unit, values=heat.drawn)
        return
    _, label = legend(heat, interpolation=look.interpolation)
    st.caption(
        f"{label[0].upper()}{label[1:]}. *Colours*, *Colour scale* and *Cut the scale* in the"
        " sidebar are for one component alone."
    )


def show_notes(heat: Explanation) -> None:
    """What has to be known to read the map rightly."""
    for note in heat.notes:
        st.caption(f":material/warning: {note}")


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
