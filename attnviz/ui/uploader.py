"""The visitor's own picture: dropped, browsed for or pasted. Opened, or refused in one sentence."""

from __future__ import annotations

import streamlit as st

from attnviz.errors import BadImage
from attnviz.images import open_image
from attnviz.images.limits import too_long
from attnviz.ui.paste import watch_uploader
from attnviz.ui.state import Picture, complain, picture, show_picture, show_sample, verbatim

REPLACED_WITHIN = 2
"""Runs of the page within which a file that follows a removal stands in its place."""

FORGOTTEN = "The server was started again and has your picture no longer: drop your picture again."


def show_uploader() -> None:
    """The widget. Any kind of file: `open_image` says what is wrong with one, it would not."""
    state = st.session_state
    # A new file in place of another comes as a removal in one run and the file in one of the next.
    if kept := state.pop("removed", None):
        before, runs = kept
        if runs < REPLACED_WITHIN:
            state.removed = before, runs + 1
    st.file_uploader(
        "Or your own",
        key=_key(),
        on_change=_show_upload,
        args=(_key(),),
        help="Drop a file here, browse for one, or press Ctrl+V anywhere on the page. "
        "It is kept for this visit only.",
    )
    watch_uploader(lambda name: complain(str(too_long(verbatim(name)))))


def catch_up() -> None:
    """Handle what the widget lists, or lists no more, if that was not done.

    Among quick events one can be lost, and a run that another one follows is cut off in the middle.
    """
    listed = st.session_state.get(_key())
    if listed is not None and not hasattr(listed, "getvalue"):
        return  # a name without a file, of a server before this
    if getattr(listed, "file_id", None) != st.session_state.get("handled"):
        _show_upload(_key())
        st.rerun()


def number() -> int:
    """How many uploaders there were before this one: a new key makes one that holds nothing."""
    return int(st.session_state.setdefault("uploader", 0))


def number_uploader(number: int) -> None:
    """Go on from an uploader with that number."""
    st.session_state.uploader = number


def lists_file() -> bool:
    """Whether the widget lists one, be it still there or not."""
    return st.session_state.get(_key()) is not None


def empty_uploader() -> None:
    """Let the widget list nothing."""
    st.session_state.uploader = number() + lists_file()
    st.session_state.handled = None


def find_upload(*, alone: bool) -> None:
    """In a session's first run, look for a file that was sent just now, or to a server before this.

    `alone`: the page showed a picture of the visitor's that was not listed.
    """
    listed = st.session_state.get(_key())
    if hasattr(listed, "getvalue"):
        _show_upload(_key())
    elif alone or listed is not None:  # what Streamlit calls deleted: a name without a file
        empty_uploader()
        complain(FORGOTTEN)
    else:
        return
    st.rerun()


def _key() -> str:
    return f"upload-{number()}"


def _show_upload(key: str) -> None:
    state = st.session_state
    if key != _key():  # of an uploader that was emptied
        return
    if (listed := state[key]) is None:
        if (shown := picture()) is not None and shown.sample is None:
            state.removed = shown, 0
        show_sample(state.last_sample)
    else:
        data, name = listed.getvalue(), verbatim(listed.name)
        try:
            image = open_image(data)
        except BadImage as error:
            if kept := state.get("removed"):
                show_picture(kept[0])
            empty_uploader()
            complain(str(error).replace("This file", name, 1))
            return
        show_picture(Picture.of_bytes(name, data, image))
    # Last of all: where this is cut off, as by a run that follows, `catch_up` does it again.
    state.handled = getattr(listed, "file_id", None)
