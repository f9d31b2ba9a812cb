"""What the browser keeps for a server that is started again under an open page.

Such a server begins a new session, but is sent what the page's widgets hold, by their keys. The
picture's widgets have keys that end in numbers: only with the same numbers it sees what they hold.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

Numbers = tuple[int, int, int]
"""Of the uploader, of the box of samples, and 1 for a picture that no widget lists."""

MOST = 10**6

_component = st.components.v2.component(
    "attnviz_recall",
    js=Path(__file__).with_name("recall.js").read_text("utf-8"),
    html="<span></span>",
)


def recall(numbers: Numbers | None) -> Numbers:
    """Have the browser keep these, unless None; gives what it has kept, at first (0, 0, 0).

    Where that changes, the page is run once more.
    """
    kept = _component(key="recall", data=numbers, on_numbers_change=_mark).numbers
    match kept:
        case [int(uploader), int(sample), int(alone)] if max(uploader, sample) < MOST:
            return max(0, uploader), max(0, sample), alone
    return 0, 0, 0


def _mark() -> None:
    st.session_state.ran_for_recall = True


def ran_for_recall() -> bool:
    """Whether this run is only that once more, so that what was said still stands; ask once."""
    return bool(st.session_state.pop("ran_for_recall", False))
