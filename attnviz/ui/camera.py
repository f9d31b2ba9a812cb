"""A photo by the visitor's own camera; the browser asks for leave only when it is wanted."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st

from attnviz.ui.uploader import take

HERE = ("localhost", "127.0.0.1", "::1")
"""Hosts that browsers trust without https."""


def show_camera() -> None:
    """A switch, and behind it the camera; it goes off as soon as a photo is taken."""
    if not lends_camera(st.context.url):
        st.caption(
            "No photos here: a browser lends its camera only to pages whose address begins with"
            " https."
        )
        return
    state = st.session_state
    number = state.setdefault("photos", 1)
    # After each photo the switch is another one, which is off: what a browser still says of the
    # last one, in a run that cuts this one off, does not switch it on again.
    on = st.toggle(
        "Take a photo",
        key=f"camera-on-{number}",
        help="Your browser will ask whether this page may use your camera. The photo is kept for "
        "this visit only.",
    )
    place = st.empty()  # takes the camera off the page at once where it is not wanted any more
    if not on:
        return
    box = place.container()
    photo = box.camera_input(
        "Photo", key=f"camera-{number}", resolution="720p", label_visibility="collapsed"
    )
    if photo is None:
        box.caption(
            "Nothing to be seen? Then there is no camera, or the browser does not lend it: ask it"
            " by the sign beside the page's address, or drop a picture instead."
        )
        return

    def count() -> None:
        state.photos = number + 1

    take([(photo, f"photo {number}")], count)
    st.rerun()


def lends_camera(address: str | None) -> bool:
    """Whether a browser lends its camera to a page with that address, as far as is known."""
    if address is None:
        return True
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in HERE
