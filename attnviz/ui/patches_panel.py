"""How the picture becomes tokens: cut to the model's size, into patches, in order."""

from __future__ import annotations

import streamlit as st
from PIL import Image

from attnviz.contract import Fit
from attnviz.record import AttentionRecord
from attnviz.tokens import Query
from attnviz.ui.code_panel import recipe_on, show_code
from attnviz.ui.data_uri import data_uri, show_picture
from attnviz.ui.picker import pick_cell, picked_cell
from attnviz.ui.stage import Stage

FIT_SAYS: dict[Fit, str] = {
    "aspect": "made as large as the model wants it, its shape kept to a whole number of patches",
    "crop": "its middle, as the model was evaluated: what is beside it is never seen",
    "pad": "made to fit, with borders in a plain colour around it",
    "squash": "squashed to the model's shape",
}

ENLARGED = 220
"""Pixels on screen of one patch's longer side, about."""


def show_patches(stage: Stage) -> None:
    """Four steps, each with a picture or a table; a patch can be picked on both pictures."""
    record = stage.record
    with stage.beside_picture():
        _show_seen(stage)
        st.markdown("**1. The picture is brought to the model's size**")
        if record.view.fit is not None:
            st.caption(f"{record.input_words} (width × height): {FIT_SAYS[record.view.fit]}.")
    left, right = st.columns(2, gap="medium")
    with left:
        _show_patch(record, stage.query)
    with right:
        _show_tokens(record, stage.query)
    _show_layers(record)
    show_code(recipe_on(stage, "patches"))


def _show_seen(stage: Stage) -> None:
    """The pixels that the input was made of, cut into patches."""
    rows, cols = stage.record.layout.grid
    query, ground = stage.query, stage.ground
    pick_cell(
        Image.fromarray(stage.record.view.pixels),
        grid=(rows, cols),
        box=None,
        chosen=query if isinstance(query, tuple) else None,
        key="seen-patches",
        alt=f"What the model sees, cut into {rows} rows and {cols} columns of patches",
        on_pick=lambda: ground.ask(picked_cell("seen-patches")),
    )


def _show_patch(record: AttentionRecord, query: Query) -> None:
    st.markdown("**2. Each patch becomes a token**")
    rows, cols = record.layout.grid
    height, width = record.view.pixels.shape[:2]
    high, wide = height // rows, width // cols
    if not isinstance(query, tuple):
        st.caption(
            f"A patch is {wide} × {high} pixels (width × height). **Pick one** on a picture to see "
            "it here as the model does."
        )
        return
    row, col = query
    top, left = row * height // rows, col * width // cols
    cut = Image.fromarray(record.view.pixels[top : top + high, left : left + wide])
    times = max(1, ENLARGED // max(cut.size))
    large = cut.resize((cut.width * times, cut.height * times), Image.Resampling.NEAREST)
    alt = f"The patch in row {row}, column {col}, enlarged"
    show_picture(data_uri(large, "PNG"), width=large.width, alt=alt)
    made = "one vector, the token"
    if record.features is not None:
        made = f"one vector of {record.features.shape[-1]:,} numbers, the token"
    st.caption(
        f"The patch in row {row}, column {col}: {wide} × {high} pixels of 3 colours each, "
        f"{3 * wide * high:,} numbers, become {made}. To it the model adds, or later turns in, "
        "where the patch lies (its *position*): the patches' order alone would say nothing to it."
    )


def _show_tokens(record: AttentionRecord, query: Query) -> None:
    st.markdown("**3. The tokens stand in a row**")
    layout = record.layout
    first = len(layout.prefix)
    lines = [
        {"token": str(number), "what it is": layout.token_label(number)} for number in range(first)
    ]
    lines.append(
        {
            "token": f"{first} to {layout.tokens - 1}",
            "what it is": f"{layout.patches} patches, row by row from the top left",
        }
    )
    if isinstance(query, tuple):
        lines.append(
            {"token": str(layout.token(*query)), "what it is": f"the {layout.query_label(query)}"}
        )
    st.dataframe(lines, hide_index=True)
    if first:
        st.caption(
            "Tokens without a place in the picture come first. Maps have no place for what a patch "
            "gives them, so it is said in numbers; pick one of them as what asks, and *Who looks "
            "at it*, in *One map*, draws which patches give it how much."
        )


def _show_layers(record: AttentionRecord) -> None:
    st.markdown("**4. The layers pass them on**")
    lines = []
    for number, layer in enumerate(record.layers):
        geometry = record.geometry(layer)
        asks, answers = ("{} × {}".format(*part.grid) for part in (geometry.queries, geometry.keys))
        lines.append(
            {
                "layer": number,
                "module": layer.name,
                "attends to": geometry.kind,
                "branch": geometry.branch,
                "heads": layer.heads,
                "grid that asks": asks,
                "grid that answers": answers,
            }
        )
    if not any(line["branch"] for line in lines):
        for line in lines:
            del line["branch"]
    st.dataframe(lines, hide_index=True)
    st.caption(
        "In each layer, every token that asks gathers from those that answer. Grids are rows × "
        "columns; where they shrink, a later cell stands for several patches."
    )
