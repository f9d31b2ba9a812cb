"""A patch that asks goes on asking when another picture is shown: by its row and column."""

from __future__ import annotations

import streamlit as st

from attnviz.ui.asked import ASKED, OTHERS, Ground

_SAID = "same_cell/said"
"""Under which the session keeps (what asks on the page, words of how it came to that)."""


def leave_picture() -> None:
    """Another picture is shown from now on: a place in this one asks no more, its cell will.

    A token with a name goes on asking. The other picture of two that are compared has a cell of its
    own, and begins anew.
    """
    state = st.session_state
    for key in (ASKED, *OTHERS):
        if isinstance(place := state.get(key), tuple):
            ground: Ground | None = state.get(_ground(key))
            if ground is not None:
                state[_waiting(key)] = ground.cell_at(place)
            state[key] = None


def is_waiting(key: str) -> bool:
    """Whether a cell of the last picture will ask as soon as the new one has been seen.

    `key` is one of `ASKED` and `OTHERS`.
    """
    return st.session_state.get(_waiting(key)) is not None


def arrive(ground: Ground) -> None:
    """The new picture has been seen: let the cell ask that did, where it has such a one.

    Unless something else was made to ask while that was waited for.
    """
    for each in (ground, ground.of_other(OTHERS[0])):
        cell = st.session_state.pop(_waiting(each.key), None)
        if cell is not None and st.session_state.get(each.key) is None:
            _ask(each, cell)
        st.session_state[_ground(each.key)] = each


def _ask(ground: Ground, cell: tuple[int, int]) -> None:
    (row, col), (rows, cols) = cell, ground.layout.grid
    there = row < rows and col < cols
    if there:
        ground.ask(cell)
    if ground.key != ASKED:
        return
    if there:
        words = f"The patch in row {row}, column {col} goes on asking, as on the last picture."
    else:
        words = (
            f"On the last picture, the patch in row {row}, column {col} asked. This one has"
            f" {rows} × {cols} patches and none there, so the"
            f" {ground.layout.query_label(ground.query)} asks."
        )
    st.session_state[_SAID] = st.session_state.get(ASKED), words


def say_what_stayed() -> None:
    """What became of the query on another picture, until something else asks."""
    asked, words = st.session_state.get(_SAID, (None, ""))
    if words and asked == st.session_state.get(ASKED):
        st.caption(f":material/my_location: {words}")


def _waiting(key: str) -> str:
    return f"{key}/waiting"


def _ground(key: str) -> str:
    return f"{key}/ground"
