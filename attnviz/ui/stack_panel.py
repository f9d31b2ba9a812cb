"""All heads of all layers as a stack that can be turned; picking a sheet opens its head."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.methods import METHODS
from attnviz.mosaic import tiles_there
from attnviz.scale import Scale
from attnviz.ui.asked import Ground
from attnviz.ui.bar import show_bar, show_own_bars
from attnviz.ui.go_to import go_to_head
from attnviz.ui.look_panel import Look, offer_cut
from attnviz.ui.map_panel import reveal_map
from attnviz.ui.observation import Observation
from attnviz.ui.stack import Sheets, pick_sheet, picked_head


def show_stack(
    seen: Observation,
    tiles: Float[np.ndarray, "layer head row col"],
    look: Look,
    shared: Scale | None,
    chosen: tuple[int, int] | None,
    ground: Ground,
) -> None:
    """Every head's map for the query; `chosen` is the (layer, head) that is shown by itself."""
    asker, there = ground.layout.query_label(ground.query), tiles_there(tiles)
    layers, count = len(there), int(there.sum())
    st.subheader("Stack of all heads", anchor=False)
    if not count:
        st.caption(f"The **{asker}** asks in no layer, so no head has a map of it.")
        return
    st.caption(
        f"Each sheet is one head's map: what it makes the **{asker}** attend to. Each level is a "
        f"layer: L0, the first, lies above the picture, L{layers - 1} on top. **Click a sheet**, "
        "or tap it twice, to see that head by itself."
    )
    sheets = _sheets(seen, tiles, look, shared)
    pick_sheet(
        sheets,
        chosen=chosen if chosen and there[chosen] else None,
        query=_place(ground),
        key="stack",
        alt=f"A stack of {layers} layers with {count} attention maps, above the picture",
        on_pick=_open_picked,
    )
    unit = METHODS["attention"].unit
    if shared:
        show_bar(shared, look.colormap, unit=unit, values=tiles[there])
    else:
        show_own_bars(sheets.atlas.scales, look.colormap, unit=unit)
    offer_cut(tiles[there], shared, look, "sheets")
    if (by := sheets.atlas.pooled) > 1:
        st.caption(
            "All sheets together have more patches than a browser takes as one picture, so "
            f"{by} × {by} patches are one square here, by their mean. Open a "
            "head to see every patch."
        )


@dataclass(frozen=True, eq=False)
class _Kept:
    """The sheets of last time, with what they were made of."""

    tiles: weakref.ref[np.ndarray]
    look: tuple[object, ...]
    sheets: Sheets


def _sheets(
    seen: Observation,
    tiles: Float[np.ndarray, "layer head row col"],
    look: Look,
    shared: Scale | None,
) -> Sheets:
    """Made anew only for other maps or another look: equal ones are not sent again either."""
    clip = None if shared else look.clip
    drawn = (shared, clip, look.colormap)
    kept: _Kept | None = st.session_state.get("stack_kept")
    if kept is None or kept.tiles() is not tiles or kept.look != drawn:
        left, top, right, bottom = map(round, seen.shown_box)
        made = Sheets.of(
            tiles,
            seen.shown.crop((left, top, right, bottom)),
            scale=shared,
            clip=clip,
            colormap=look.colormap,
            unit=METHODS["attention"].unit,
        )
        kept = st.session_state.stack_kept = _Kept(weakref.ref(tiles), drawn, made)
    return kept.sheets


def _place(ground: Ground) -> tuple[float, float, float, float] | None:
    """Where the patch that asks lies in the picture, if one does."""
    if isinstance(ground.query, str):
        return None
    (row, col), (rows, cols) = ground.query, ground.layout.grid
    return row / rows, col / cols, (row + 1) / rows, (col + 1) / cols


def _open_picked() -> None:
    if (head := picked_head("stack")) is not None:
        layer, number = head
        go_to_head(layer, number)
        reveal_map()
