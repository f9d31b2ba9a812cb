"""The fewest patches that hold most of a map, and of each head's, outlined on the picture."""

from __future__ import annotations

import streamlit as st

from attnviz import colour, export
from attnviz.errors import AttnVizError, BadOption
from attnviz.explain import Explanation
from attnviz.mass import MASS, MassMask, mass_mask
from attnviz.ui.data_uri import SHARP, data_uri, show_picture
from attnviz.ui.figure_files import FORMATS, offer_file
from attnviz.ui.stage import Stage

WIDTH = 600
"""Pixels of the map's own picture, on a wide screen."""

ACROSS = 4
"""Pictures beside each other on a wide screen."""


def show_masks(stage: Stage, heat: Explanation, layer: int) -> float | None:
    """A threshold, the outline on the map above, its file; then the heads of one layer.

    Gives the threshold, or None where the map has no outline.
    """
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
            _show_outline(stage.seen.on_screen(heat), mass_mask(heat.values, mass), heat.title)
    except BadOption as error:
        st.info(str(error), icon=":material/info:")
        held = None
    else:
        held = mass
        suffix, mime = FORMATS["PNG"]
        with right:
            offer_file(
                "Download the mask as PNG",
                lambda: export.render_mask(heat, mass),
                f"{export.file_stem(heat)}_mask{suffix}",
                mime,
            )
    _show_heads(stage, layer, mass)
    return held


def _show_heads(stage: Stage, layer: int, mass: float) -> None:
    """Those that have an outline, and why the others have none."""
    outlined: list[tuple[str, Explanation, MassMask]] = []
    lacking: dict[str, list[int]] = {}
    with stage.computing("Computing the heads' maps …"):
        for head in range(stage.record.layers[layer].heads):
            try:
                heat = stage.seen.explain("attention", query=stage.query, layer=layer, head=head)
                outlined.append((f"Head {head}", heat, mass_mask(heat.values, mass)))
            except AttnVizError as error:
                lacking.setdefault(str(error), []).append(head)
    total = len(stage.record.layers)
    st.caption(f"Each head of layer {layer} (of {total}, counted from 0), by its attention:")
    for start in range(0, len(outlined), ACROSS):
        row = outlined[start : start + ACROSS]
        for (title, heat, mask), place in zip(row, st.columns(ACROSS), strict=False):
            with place:
                _show_outline(stage.seen.on_screen(heat), mask, title)
    for why, heads in lacking.items():
        named = f"{'Head' if len(heads) == 1 else 'Heads'} {', '.join(map(str, heads))}"
        st.info(f"{named if outlined else 'Every head'}: {why}", icon=":material/info:")


def _show_outline(heat: Explanation, mask: MassMask, title: str) -> None:
    alt = f"{title}: the patches that hold {mask.mass:.1%} of the map, outlined on the picture"
    show_picture(data_uri(colour.outlined(heat, mask).convert("RGB"), **SHARP), alt=alt)
    count = int(mask.kept.sum())
    noun = "patch" if count == 1 else "patches"
    st.caption(f"**{title}**: {count} {noun}, {mask.area:.1%} of the area, hold {mask.mass:.1%}.")
