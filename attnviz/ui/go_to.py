"""What a pick in one view has another view show; called before the page runs."""

from __future__ import annotations

import streamlit as st

from attnviz.record import AttentionRecord


def chosen_head(record: AttentionRecord) -> tuple[int, int] | None:
    """(layer, head) where the last map asked for is what the query looks at by one head."""
    state = st.session_state
    if state.get("direction", "from") != "from":
        return None
    layer, head = state.get("layer"), state.get("head")
    if state.get("method", "attention") != "attention" or type(head) is not int:
        return None
    last = len(record.layers) - 1
    layer = last if layer is None or layer > last else layer
    return (layer, head) if head < record.layers[layer].heads else None


def go_to_method(method: str) -> None:
    """Show one method's map, in its own view."""
    st.session_state.view, st.session_state.method = "map", method


def go_to_head(layer: int, head: int) -> None:
    """Show what the query looks at by one head, in its own view: that is what was picked."""
    st.session_state.head, st.session_state.direction = head, "from"
    go_to_layer(layer)


def go_to_layer(layer: int) -> None:
    """Show one layer's attention, in its own view."""
    st.session_state.view, st.session_state.method = "map", "attention"
    st.session_state.layer = layer
