"""What the browser keeps for a server that is started again under an open page.

Such a server begins a new session, but is sent what the page's widgets hold, by their keys. The
box of samples has a key that ends in a number: only with the same number it sees what that holds.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from attnviz.ui.state import keep_saying

Numbers = tuple[int, int]
"""Of the box of samples, and 1 where the uploader alone, or the tray alone, holds pictures."""

MOST = 10**6

_component = st.components.v2.component(
    "attnviz_recall",
    js=Path(__file__).with_name("recall.js").read_text("utf-8"),
    html="<span></span>",
)


def recall(numbers: Numbers | None) -> Numbers:
    """Have the browser keep these, unless None; gives what it has kept, at first (0, 0).

    Where that changes, the page is run once more.
    """
    kept = _component(key="recall", data=numbers, on_numbers_change=keep_saying).numbers
    match kept:
        case [int(sample), int(odd)] if sample < MOST:
            return max(0, sample), odd
    return 0, 0
