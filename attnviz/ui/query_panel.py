"""Which token asks: patches by picking them on the picture, named ones as chips."""

from __future__ import annotations

import streamlit as st

from attnviz.ui.asked import ASKED, Ground
from attnviz.ui.observation import Observation
from attnviz.ui.picker import pick_cell, picked_cell
from attnviz.ui.state import fresh_key, is_live, note_shown


def choose_query(seen: Observation, ground: Ground, *, named: bool = True, scene: str = "") -> None:
    """The picture in patches, and with `named` widgets that say the same in words and numbers.

    `scene` as `pick_cell` has it: with one, a live map follows the pointer.
    """
    query, (rows, cols) = ground.query, ground.layout.grid
    key = _slot("patches", ground)
    pick_cell(
        seen.shown,
        grid=(rows, cols),
        box=seen.shown_box,
        chosen=query if named and isinstance(query, tuple) else None,
        key=key,
        alt=f"The picture, cut into {rows} rows and {cols} columns of patches",
        scene=scene,
        picks=named,
        on_pick=lambda: ground.ask(picked_cell(key)),
    )
    if named:
        choose_name(ground)
        _choose_numbers(ground)


def _slot(name: str, ground: Ground) -> str:
    """What a widget's key begins with: a second query has widgets of its own."""
    return name if ground.key == ASKED else f"{name}/{ground.key}"


def choose_name(ground: Ground) -> None:
    """The tokens that have names, as chips."""
    name = ground.query if isinstance(ground.query, str) else None
    slot = _slot("name", ground)
    key = fresh_key(slot, name)

    def ask() -> None:
        if is_live(slot, key):
            note_shown(slot, st.session_state[key])
            ground.ask(st.session_state[key])

    st.pills(
        "Who asks",
        ground.layout.query_names,
        default=name,
        format_func=ground.layout.query_label,
        key=key,
        on_change=ask,
        help="The **class token** gathers what the model says of the whole picture. A **register** "
        "is an extra token without a place. The **mean of all patches** is the average of what "
        "each patch attends to.",
    )


def _choose_numbers(ground: Ground) -> None:
    """Row and column of the patch, empty while a named token asks."""
    cell = ground.query if isinstance(ground.query, tuple) else None
    slot = _slot("cell", ground)
    key = fresh_key(slot, cell)
    keys = f"{key}-row", f"{key}-col"

    def ask() -> None:
        """One number is enough: the other stays what it was, or starts at 0."""
        if not is_live(slot, key):
            return
        typed = (st.session_state[key] for key in keys)
        row, col = (
            old if new is None else new for new, old in zip(typed, cell or (0, 0), strict=True)
        )
        if cell is None:  # the other field shows its 0; it is not made anew: someone may type there
            st.session_state[keys[0]], st.session_state[keys[1]] = row, col
        note_shown(slot, (row, col))  # a field that was emptied stays so
        ground.ask((row, col))

    with st.container(horizontal=True):
        for label, each, count, value in zip(
            ("Row", "Column"), keys, ground.layout.grid, cell or (None, None), strict=True
        ):
            st.number_input(
                f"{label} (0 to {count - 1})",
                0,
                count - 1,
                value,
                key=each,
                on_change=ask,
                placeholder=f"0 to {count - 1}",
            )
