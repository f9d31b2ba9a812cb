"""What a link names of a model's own, a token or a layer: done once it is known what there is."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from attnviz.metrics import METRICS
from attnviz.record import AttentionRecord
from attnviz.tokens import Query
from attnviz.ui import by_hand
from attnviz.ui.asked import Ground
from attnviz.ui.head_choice import ADDED
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


def drop_what_lacks(record: AttentionRecord) -> None:
    """Note what a link named that no layer of this model has; it is as on a first visit."""
    state = st.session_state
    if not state.pop("link/arrived", False):
        return
    last, heads = len(record.layers) - 1, max(layer.heads for layer in record.layers)
    for key in filter(by_hand.is_by_hand, ("layer", "span")):
        layer = max(state[key]) if key == "span" else state[key]
        if layer > last:
            note(f"there is no layer {layer}: this model has {_numbered('layer', last)}")
            by_hand.forget(key)
    for name in _asked_metrics():
        token = name.removeprefix("to_")
        if name not in METRICS and token not in record.layout.prefix:
            note(f"this model has no token {verbatim(token)}, of which a metric was named")
    for key, usual in (("head", "mean"), ("one_head", ADDED)):
        if isinstance(head := state.get(key), int) and head >= heads:
            note(f"there is no head {head}: this model has {_numbered('head', heads - 1)}")
            state[key] = usual


def _asked_metrics() -> list[str]:
    """Those that the plot or a figure of metrics was asked for."""
    state = st.session_state
    several: Sequence[str] = state.get("export_metrics") or ()
    return list(dict.fromkeys([*filter(None, [state.get("metric")]), *several]))


def _numbered(noun: str, last: int) -> str:
    return f"{noun}s 0 to {last}" if last else f"{noun} 0 alone"
