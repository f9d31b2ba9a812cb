"""The ways into the uploader: Ctrl+V as if it had been dropped there, and none for huge files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from attnviz.images.limits import MAX_FILE

_component = st.components.v2.component(
    "attnviz_paste",
    js=Path(__file__).with_name("paste.js").read_text("utf-8"),
    html="<span></span>",
)


def watch_uploader(refuse: Callable[[str], None]) -> None:
    """Hand pasted pictures to the uploader; `refuse` is told the name of a file over `MAX_FILE`."""

    def relay() -> None:
        refuse(str(st.session_state["paste"].get("refused")))

    _component(key="paste", data={"most": MAX_FILE}, on_refused_change=relay)
