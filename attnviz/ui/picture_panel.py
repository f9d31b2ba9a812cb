"""Which picture: a sample, or one of the visitor's own.

What comes and goes has a box of its own. Streamlit draws over what stood at the same place in the
run before, and what is not drawn over yet stays to be seen: a row more would move all below it.
"""

from __future__ import annotations

import streamlit as st

from attnviz.samples import SAMPLES
from attnviz.ui import uploader
from attnviz.ui.camera import show_camera
from attnviz.ui.recall import recall
from attnviz.ui.state import (
    Picture,
    fresh_key,
    is_live,
    key_number,
    note_shown,
    number_key,
    picture,
    show_messages,
    show_sample,
)
from attnviz.ui.tray import show_tray


def choose_picture() -> Picture:
    """The widgets; gives the picture to explain, always one that opened."""
    new_session = picture() is None
    first = st.session_state.get("first_sample", next(iter(SAMPLES)))  # as a link says
    before = picture() or show_sample(first)
    st.subheader("Picture", anchor=False)
    memory, box = st.container(), st.container(key="sample")
    ways_in, said, kept_pictures = st.container(), st.container(), st.container()
    odd = False
    if new_session:
        with memory:
            number, kept = recall(None)
        odd = bool(kept)
        number_key("sample", number, before.sample)
        st.session_state.sample_number = number
    with ways_in:
        uploader.show_uploader()
        show_camera()
    if new_session:
        uploader.find_forgotten(odd=odd)
    shown = picture() or before  # what the uploader took is on the page from now on
    with box:
        chosen = _choose_sample(shown)
    if new_session and shown is before and chosen is not None and chosen != shown.sample:
        # The server was started again under an open page, which still shows another sample.
        note_shown("sample", chosen)
        shown = show_sample(chosen)
    if not new_session:
        with memory:
            _remember(shown)
    with said:
        show_messages()
    with kept_pictures:
        show_tray()
    width, height = shown.image.size
    st.caption(f"**{shown.name}**, {width} × {height} pixels. {shown.credit}")
    return shown


def _choose_sample(shown: Picture) -> str | None:
    key = fresh_key("sample", shown.sample)
    return st.selectbox(
        "Sample",
        SAMPLES,
        index=None if shown.sample is None else list(SAMPLES).index(shown.sample),
        format_func=lambda name: SAMPLES[name].label,
        key=key,
        placeholder="your own picture",
        on_change=_show_chosen,
        args=(key,),
        help="Pictures that come with attnviz.",
    )


def _remember(shown: Picture) -> None:
    """Have the browser keep what a server that is started again needs to know."""
    # Of a picture of their own the box of samples has nothing to say: no run for its number.
    if shown.sample is not None:
        st.session_state.sample_number = key_number("sample")
    recall((st.session_state.sample_number, int(uploader.is_odd())))


def _show_chosen(key: str) -> None:
    if not is_live("sample", key):
        return
    name = st.session_state[key]
    note_shown("sample", name)
    if name is not None:  # an emptied box shows again what it did
        show_sample(name)
