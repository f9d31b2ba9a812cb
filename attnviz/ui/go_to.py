"""What a pick in one view has another view show; called before the page runs."""

from __future__ import annotations

import streamlit as st

from attnviz.methods import METHODS
from attnviz.record import AttentionRecord
from attnviz.ui import by_hand


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
    """Show one method's map with its usual options, in its own view: that is what was picked."""
    state = st.session_state
    for name, option in METHODS[method].options.items():
        key = _own_key(method, name)
        if by_hand.is_settled(key):
            by_hand.forget(key)
        elif key in state:
            state[key] = "all" if key == "component" else option.default
    state.view, state.method = "map", method


def _own_key(method: str, option: str) -> str:
    """Under which the session keeps what an option's widget shows, where that is another word."""
    if option in ("first_layer", "last_layer"):
        return "span"
    if method == "attention":  # one widget for one head and for all
        return "head" if option == "head_fusion" else option
    return {"head_fusion": "fusion", "head": "one_head"}.get(option, option)


def go_to_head(layer: int, head: int) -> None:
    """Show what the query looks at by one head, in its own view: that is what was picked."""
    st.session_state.head, st.session_state.direction = head, "from"
    go_to_layer(layer)


def go_to_layer(layer: int) -> None:
    """Show one layer's attention, in its own view."""
    st.session_state.view, st.session_state.method = "map", "attention"
    st.session_state.layer = layer
