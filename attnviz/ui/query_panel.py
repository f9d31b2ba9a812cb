"""Which token asks: patches by picking them on the picture, named ones as chips."""

from __future__ import annotations

import streamlit as st

from attnviz.ui.asked import Ground
from attnviz.ui.cache import Observation
from attnviz.ui.picker import pick_cell, picked_cell


def choose_query(seen: Observation, ground: Ground) -> None:
    """The picture in patches, and widgets that say the same in words and numbers."""
    query, (rows, cols) = ground.query, ground.layout.grid
    pick_cell(
        seen.shown,
        grid=(rows, cols),
        box=seen.shown_box,
        chosen=query if isinstance(query, tuple) else None,
        key="patches",
        alt=f"The picture, cut into {rows} rows and {cols} columns of patches",
        on_pick=lambda: ground.ask(picked_cell("patches")),
    )
    _choose_name(ground)
    _choose_numbers(ground)


def _choose_name(ground: Ground) -> None:
    st.session_state.chip = ground.query if isinstance(ground.query, str) else None
    st.pills(
        "Who asks",
        ground.layout.query_names,
        format_func=ground.layout.query_label,
        key="chip",
        on_change=lambda: ground.ask(st.session_state.chip),
        help="The **class token** gathers what the model says of the whole picture. A **register** "
        "is an extra token without a place.",
    )


def _choose_numbers(ground: Ground) -> None:
    """Row and column of the patch, empty while a named token asks."""
    query, (rows, cols) = ground.query, ground.layout.grid
    st.session_state.row, st.session_state.col = query if isinstance(query, tuple) else (None, None)

    def ask() -> None:
        """One number is enough: the other starts at 0, and an emptied one stays as it was."""
        typed = st.session_state.row, st.session_state.col
        last = query if isinstance(query, tuple) else (0, 0)
        row, col = (old if new is None else new for new, old in zip(typed, last, strict=True))
        ground.ask((row, col))

    with st.container(horizontal=True):
        st.number_input(
            "Row", 0, rows - 1, value=None, key="row", on_change=ask, placeholder=f"0 to {rows - 1}"
        )
        st.number_input(
            "Column",
            0,
            cols - 1,
            value=None,
            key="col",
            on_change=ask,
            placeholder=f"0 to {cols - 1}",
        )
