"""Which picture: a sample, or one of the visitor's own."""

from __future__ import annotations

import streamlit as st

from attnviz.errors import BadImage
from attnviz.images import open_image
from attnviz.samples import SAMPLES, sample_path
from attnviz.ui.paste import paste_into_uploader
from attnviz.ui.state import (
    Picture,
    fresh_key,
    is_live,
    note_shown,
    picture,
    show_picture,
    verbatim,
)


def choose_picture() -> Picture:
    """The widgets; gives the picture to explain, always one that opened."""
    state = st.session_state
    state.setdefault("uploader", 0)
    # A new file in place of another comes as a removal in one run and the file in the next.
    state.replaced = state.pop("removed", None)
    new_session = picture() is None
    shown = picture() or _show_sample(next(iter(SAMPLES)))
    st.subheader("Picture", anchor=False)
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
            help="Photographs that come with attnviz.",
        )
    # Any kind of file: `open_image` says what is wrong with one, the uploader would not.
    st.file_uploader(
        "Or your own",
        key=(key := f"upload-{state.uploader}"),
        on_change=_show_upload,
        args=(key,),
        help="Drop a file here, browse for one, or press Ctrl+V anywhere on the page. "
        "It is kept for this visit only.",
    )
    paste_into_uploader()
    if new_session and chosen is not None and chosen != shown.sample:
        # The server was started again under an open page, which still shows another sample.
        note_shown("sample", chosen)
        shown = _show_sample(chosen)
    if error := state.get("picture_error"):
        st.error(error, icon=":material/broken_image:")
    width, height = shown.image.size
    st.caption(f"**{shown.name}**, {width} × {height} pixels. {shown.credit}")
    return shown


def _show_chosen(key: str) -> None:
    if not is_live("sample", key):
        return
    name = st.session_state[key]
    note_shown("sample", name)
    if name is not None:  # an emptied box shows again what it did
        st.session_state.uploader += 1  # a new key makes a new uploader, which holds nothing
        _show_sample(name)


def sample_picture(name: str) -> Picture:
    """One of the samples."""
    sample, data = SAMPLES[name], sample_path(name).read_bytes()
    credit = f"{sample.credit}, {sample.licence}."
    return Picture.of_bytes(sample.label, data, open_image(data), credit=credit, sample=name)


def _show_sample(name: str) -> Picture:
    st.session_state.last_sample, st.session_state.picture_error = name, None
    return show_picture(sample_picture(name))


def _show_upload(key: str) -> None:
    state = st.session_state
    if state[key] is None and state.get("picture_error"):
        state.picture_error = None  # what is taken away was never shown
        return
    if state[key] is None:
        state.removed = picture()
        _show_sample(state.last_sample)
        return
    data, name = state[key].getvalue(), verbatim(state[key].name)
    try:
        image = open_image(data)
    except BadImage as error:
        if kept := state.get("removed") or state.get("replaced"):
            show_picture(kept)
        state.picture_error = f"{name}: {error}"
        # Whoever pasted it may have the sidebar closed.
        st.toast(state.picture_error, icon=":material/broken_image:")
        return
    state.picture_error = None
    show_picture(Picture.of_bytes(name, data, image))
