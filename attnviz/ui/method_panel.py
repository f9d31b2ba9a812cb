"""Which method, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.methods import METHODS
from attnviz.methods.fusion import HEAD_FUSIONS
from attnviz.record import AttentionRecord


@dataclass(frozen=True)
class Ask:
    """A method and its options."""

    method: str
    options: dict[str, Any]

    @property
    def head(self) -> tuple[int, int] | None:
        """(layer, head) where one head is asked for."""
        layer, head = self.options.get("layer"), self.options.get("head")
        return None if layer is None or head is None else (layer, head)


def choose_method(record: AttentionRecord) -> Ask:
    """The widgets, in a row; gives what to compute."""
    first, second, third = st.columns([4, 4, 3], gap="medium")
    with first:
        st.session_state.setdefault("method", "attention")
        method: str = (
            st.segmented_control(
                "Method",
                METHODS,
                format_func=lambda name: METHODS[name].label,
                key="method",
                required=True,
                wrap=True,
            )
            or "attention"
        )
        chosen = METHODS[method]
        st.caption(chosen.summary, help=f"{chosen.formula}. Source: {chosen.source}.")
    return Ask(method, _WIDGETS[method](record, second, third))


def go_to_head(layer: int, head: int) -> None:
    """Show one head's attention; called before the page runs."""
    st.session_state.method = "attention"
    st.session_state.layer, st.session_state.head = layer, head


def _attention(record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    last, heads = len(record.layers) - 1, min(layer.heads for layer in record.layers)
    choices = [*HEAD_FUSIONS, *range(heads)]
    _within("layer", range(last + 1), last)
    _within("head", choices, "mean")
    layer = 0
    if last:  # a slider needs two places
        layer = left.slider(
            f"Layer (0 is the first, {last} the last)",
            0,
            last,
            key="layer",
            persist_state="session",
        )
    head = right.selectbox(
        "Head",
        choices,
        key="head",
        persist_state="session",
        format_func=lambda head: f"all heads, {head}" if head in HEAD_FUSIONS else f"head {head}",
    )
    if head in HEAD_FUSIONS:
        return {"layer": layer, "head": None, "head_fusion": head}
    return {"layer": layer, "head": head}


def _rollout(record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    last = len(record.layers) - 1
    help_of = {name: option.help for name, option in METHODS["rollout"].options.items()}
    span = st.session_state.get("span")
    if not span or not 0 <= span[0] <= span[1] <= last:
        st.session_state.span = (0, last)
    first_layer, last_layer = 0, last
    if last:
        first_layer, last_layer = cast(
            "tuple[int, int]",  # as its remembered value is
            left.slider("From layer, to layer", 0, last, key="span", persist_state="session"),
        )
    fusion = right.selectbox(
        "Heads become one map by their", HEAD_FUSIONS, key="fusion", persist_state="session"
    )
    with right.popover("More options"):
        return {
            "head_fusion": fusion,
            "first_layer": first_layer,
            "last_layer": last_layer,
            "residual": st.slider(
                "Residual",
                0.0,
                1.0,
                0.5,
                0.05,
                key="residual",
                persist_state="session",
                help=help_of["residual"],
            ),
            "discard_ratio": st.slider(
                "Discard",
                0.0,
                0.95,
                0.0,
                0.05,
                key="discard_ratio",
                persist_state="session",
                help=help_of["discard_ratio"],
            ),
            "discard": st.radio(
                "Discard the weakest",
                ["row", "global"],
                key="discard",
                persist_state="session",
                format_func={"row": "of each row", "global": "of the whole map"}.__getitem__,
            ),
        }


_WIDGETS: dict[str, Callable[[AttentionRecord, Place, Place], dict[str, Any]]] = {
    "attention": _attention,
    "rollout": _rollout,
}
"""Each method's widgets, in two places of the row; a test asks for all of METHODS."""


def _within(key: str, choices: range | list[Any], default: Any) -> None:
    """A widget's remembered value, brought back inside where the model has fewer choices."""
    if st.session_state.get(key) not in choices:
        st.session_state[key] = default
