"""A token that a link names: it asks as soon as it is known which tokens there are."""

from __future__ import annotations

import streamlit as st

from attnviz.tokens import Query
from attnviz.ui.asked import Ground
from attnviz.ui.state import note, verbatim


def wish(key: str, query: Query | None) -> None:
    """Keep what a link names, until `ask_as_linked`: "default" is the model's own, None nothing."""
    st.session_state[f"link/{key}"] = query


def ask_as_linked(ground: Ground) -> None:
    """Let that token ask; one that is not there is noted."""
    rows, cols = ground.layout.grid
    match st.session_state.pop(f"link/{ground.key}", None):
        case None:
            return
        case "default":
            ground.ask(None)
        case (row, col) if row < rows and col < cols:
            ground.ask((row, col))
        case str(name) if name in ground.layout.query_names:
            ground.ask(name)
        case (row, col):
            note(f"there is no patch in row {row}, column {col} of {rows} × {cols}")
        case name:
            note(f"this model has no token {verbatim(str(name))}")
