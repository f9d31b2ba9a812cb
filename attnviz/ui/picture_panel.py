"""Which picture: a sample, or one of the visitor's own."""

from __future__ import annotations

import streamlit as st

from attnviz.samples import SAMPLES
from attnviz.ui import uploader
from attnviz.ui.recall import ran_for_recall, recall
from attnviz.ui.state import (
    Picture,
    fresh_key,
    is_live,
    key_number,
    note_shown,
    number_key,
    picture,
    show_complaint,
    show_sample,
)


def choose_picture() -> Picture:
    """The widgets; gives the picture to explain, always one that opened."""
    new_session = picture() is None
    first = st.session_state.get("first_sample", next(iter(SAMPLES)))  # as a link says
    shown = picture() or show_sample(first)
    st.subheader("Picture", anchor=False)
    alone = _recall_keys(shown, new_session=new_session)
    key = fresh_key("sample", shown.sample)
    with st.container(key="sample"):
        chosen = st.selectbox(
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
    uploader.show_uploader()
    if new_session and chosen is not None and chosen != shown.sample:
        # The server was started again under an open page, which still shows another sample.
        note_shown("sample", chosen)
        shown = show_sample(chosen)
    if new_session:
        uploader.find_upload(alone=alone)
    uploader.catch_up()
    show_complaint(again=ran_for_recall())
    width, height = shown.image.size
    st.caption(f"**{shown.name}**, {width} × {height} pixels. {shown.credit}")
    return shown


def _recall_keys(shown: Picture, *, new_session: bool) -> bool:
    """Keep the keys' numbers in the browser, and in a new session take those that it kept.

    Gives whether the page showed a picture that no widget listed.
    """
    if new_session:
        number, sample, alone = recall(None)
        uploader.number_uploader(number)
        number_key("sample", sample, shown.sample)
        st.session_state.sample_number = sample
        return bool(alone)
    fresh_key("sample", shown.sample)
    if shown.sample is not None:
        st.session_state.sample_number = key_number("sample")
    # Of a picture of their own the box of samples has nothing to say: no run for its number.
    alone = int(shown.sample is None and not uploader.lists_file())
    recall((uploader.number(), st.session_state.sample_number, alone))
    return False


def _show_chosen(key: str) -> None:
    if not is_live("sample", key):
        return
    name = st.session_state[key]
    note_shown("sample", name)
    if name is not None:  # an emptied box shows again what it did
        uploader.empty_uploader()
        show_sample(name)
