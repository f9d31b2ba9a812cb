"""The picture as it is, where it will stand, until the model has looked for the first time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from attnviz.ui.data_uri import data_uri, show_picture
from attnviz.ui.observation import for_screen
from attnviz.ui.state import Picture


@contextmanager
def show_ahead(shown: Picture, share: float, *, below_widgets: bool) -> Iterator[None]:
    """At a visit's first run, show the picture meanwhile, on that share of the width.

    With `below_widgets`, there is room above it for those that say which map is
    wanted. Later, what was seen last stands until there is something new.
    """
    place = st.empty()
    if "seen" not in st.session_state:
        with place.container(key="ahead"):
            if below_widgets:
                st.container(key="ahead_widgets").skeleton()
            left, _ = st.columns([share, 1 - share], gap="medium")
            with left:
                show_picture(data_uri(for_screen(shown.image), quality=90), alt="")
    yield
    place.empty()  # a run that is cut off leaves it to the next one
