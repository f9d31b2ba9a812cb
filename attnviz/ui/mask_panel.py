"""The fewest patches that hold most of a map, and of each head's, outlined on the picture."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from attnviz import colour, export
from attnviz.errors import BadOption
from attnviz.explain import Explanation
from attnviz.mass import MASS, mass_mask
from attnviz.ui.figure_files import FORMATS, offer_file

WIDTH = 600
"""Pixels of the map's own picture, on a wide screen."""

ACROSS = 4
"""Pictures beside each other on a wide screen."""


def show_masks(
    heat: Explanation, on_screen: Callable[[Explanation], Explanation], heads: list[Explanation]
) -> None:
    """A threshold, the outline on the map above, its file; then the heads of one layer."""
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    mass: float = left.slider(
        "Share of the map to hold",
        0.05,
        0.95,
        MASS,
        0.05,
        key="mass",
        persist_state="session",
        help="The smallest set of patches, largest value first, that holds this share of the map. "
        f"DINO's figures use {MASS}.",
    )
    try:
        with st.container(width=WIDTH):
            _show_outline(on_screen(heat), mass, heat.title)
    except BadOption as error:
        st.info(str(error), icon=":material/info:")
    else:
        suffix, mime = FORMATS["PNG"]
        with right:
            offer_file(
                "Download the mask as PNG",
                lambda: export.render_mask(heat, mass),
                f"{export.file_stem(heat)}_mask{suffix}",
                mime,
            )
    st.caption(f"Each head of layer {heads[0].fact('layer')}, by its attention:")
    for start in range(0, len(heads), ACROSS):
        for number, place in enumerate(st.columns(ACROSS), start):
            if number < len(heads):
                with place:
                    _show_outline(on_screen(heads[number]), mass, f"Head {number}")


def _show_outline(heat: Explanation, mass: float, title: str) -> None:
    mask = mass_mask(heat.values, mass)
    alt = f"{title}: the patches that hold {mask.mass:.1%} of the map, outlined on the picture"
    st.image(colour.outlined(heat, mask), width="stretch", alt=alt)
    count = int(mask.kept.sum())
    noun = "patch" if count == 1 else "patches"
    st.caption(f"**{title}**: {count} {noun}, {mask.area:.1%} of the area, hold {mask.mass:.1%}.")
