"""What a pick in one view has another view show; called before the page runs."""

from __future__ import annotations

import streamlit as st

from attnviz.methods import METHODS
from attnviz.record import AttentionRecord
from attnviz.ui import by_hand
from attnviz.ui.head_choice import ADDED


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
        if name in ("layer", "pool"):
            by_hand.forget(name)
        elif name in ("first_layer", "last_layer"):
            by_hand.forget("span")
        elif name in _USUAL:
            key, usual = _USUAL[name]
            state[key] = usual
        elif name != "head_fusion":
            state[name] = option.default
    if method == "attention":
        state.head = METHODS[method].options["head_fusion"].default
    state.view, state.method = "map", method


_USUAL = {
    "head": ("one_head", ADDED),
    "head_fusion": ("fusion", METHODS["rollout"].options["head_fusion"].default),
    "component": ("component", "all"),
}
"""Option → its widget's key and what that shows at first, where they are called otherwise."""


def go_to_head(layer: int, head: int) -> None:
    """Show what the query looks at by one head, in its own view: that is what was picked."""
    st.session_state.head, st.session_state.direction = head, "from"
    go_to_layer(layer)


def go_to_layer(layer: int) -> None:
    """Show one layer's attention, in its own view."""
    st.session_state.view, st.session_state.method = "map", "attention"
    st.session_state.layer = layer
