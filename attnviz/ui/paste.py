"""The ways into the uploader: Ctrl+V as if it had been dropped there, and none for huge files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from attnviz.ui.settings import settings

_component = st.components.v2.component(
    "attnviz_paste",
    js=Path(__file__).with_name("paste.js").read_text("utf-8"),
    html="<span></span>",
)


def largest() -> int:
    """Bytes of the largest file that the host takes."""
    return settings().upload_mb * 2**20


def watch_uploader(refuse: Callable[[Sequence[str], int, int], None], *, most: int) -> None:
    """Hand pasted pictures to the uploader, and let at most `most` files in at once.

    `refuse` is told the names of files over `largest()`, how many others were too many, and
    how many of those that came with them are on their way.
    """

    def relay() -> None:
        match st.session_state["paste"].get("refused"):
            case [list(names), int(left_out), int(coming)]:
                refuse([str(name) for name in names[:most]], max(0, left_out), coming)

    _component(key="paste", data={"size": largest(), "count": most}, on_refused_change=relay)
