"""All heads of all layers at once; picking one opens it."""

from __future__ import annotations

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.colour import mosaic
from attnviz.scale import Scale
from attnviz.ui.look_panel import Look
from attnviz.ui.method_panel import go_to_head
from attnviz.ui.picker import pick_cell, picked_cell

WIDTH = 860
"""Pixels on a wide screen: the tiles of one layer are seen at a glance."""


def show_mosaic(
    tiles: Float[np.ndarray, "layer head row col"],
    look: Look,
    shared: Scale | None,
    chosen: tuple[int, int] | None,
    asker: str,
) -> None:
    """One tile a head: layers downwards, heads across."""
    layers, heads, *_ = tiles.shape
    st.subheader("All heads", anchor=False)
    st.caption(
        f"What each of the {layers} × {heads} heads makes the **{asker}** attend to, first layer "
        "on top. "
        + (
            f"One scale for all: {shared.low:.3g} to {shared.high:.3g}. "
            if shared
            else "Each tile has its own scale. "
        )
        + "**Pick a tile** to open it above, by the method Attention."
    )
    drawn = mosaic(
        tiles,
        scale=shared or "own",
        clip=None if shared else look.clip,
        colormap=look.colormap,
    )
    with st.container(width=WIDTH):
        pick_cell(
            drawn.image,
            grid=(layers, heads),
            box=None,
            chosen=chosen,
            key="mosaic",
            alt=f"The attention maps of {layers} layers with {heads} heads each",
            values=tiles.max((2, 3)),
            unit="at most",
            show_grid=False,
            row_names=[f"L{i}" for i in range(layers)],
            col_names=[f"H{i}" for i in range(heads)],
            cell_word="head",
            crisp=True,
            on_pick=_open_picked,
        )


def _open_picked() -> None:
    if (cell := picked_cell("mosaic")) is not None:
        go_to_head(*cell)
        st.toast("Layer {}, head {} is shown above.".format(*cell), icon=":material/arrow_upward:")
