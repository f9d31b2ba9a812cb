"""Widgets whose default is the model's own: what a visitor chose by hand outlives another model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.record import AttentionRecord


@dataclass(frozen=True)
class _Shown:
    """What a widget was given, and for which model."""

    value: object
    owner: object


def settle(
    key: str,
    default: Any,
    fits: Callable[[Any], bool],
    owner: object,
    *,
    strict: bool = False,
) -> Any | None:
    """Before a widget is drawn, give it what was chosen by hand where that fits, else the default.

    What differs from what the page gave the widget last is a choice by hand, whoever made it; the
    default, chosen again, is none. `owner` is the model: what was chosen with this one stays, for
    the page then says what is wrong with it; with `strict` only what fits does. Gives the choice
    that did not fit, or None.
    """
    state = st.session_state
    shown: _Shown | None = state.get(f"{key}/given")
    value = state.get(key)
    if value is not None and (shown is None or value != shown.value):
        state[f"{key}/hand"] = _Shown(value, owner if shown is None else shown.owner)
        if value == default and (shown is None or shown.owner == owner):
            state[f"{key}/hand"] = None
    hand: _Shown | None = state.get(f"{key}/hand")
    kept = hand is not None and ((hand.owner == owner and not strict) or fits(hand.value))
    wanted = hand.value if hand is not None and kept else default
    # What is so already is not sent anew; but a slider of another length is another widget, which
    # would begin with what it held when it was last shown.
    if key not in state or value != wanted or shown is None or shown.owner != owner:
        state[key] = wanted
    state[f"{key}/given"] = _Shown(wanted, owner)
    return None if hand is None or kept else hand.value


def choose(key: str, value: object) -> None:
    """As if a visitor had chosen it with another model: it stays where it fits."""
    st.session_state[key] = value
    st.session_state[f"{key}/given"] = _Shown(None, None)
    st.session_state[f"{key}/hand"] = _Shown(value, None)


def forget(key: str) -> None:
    """Let the default be shown next, unless something is chosen until then, be it the same."""
    if key in st.session_state:
        del st.session_state[key]
    st.session_state[f"{key}/given"] = _Shown(None, None)
    st.session_state[f"{key}/hand"] = None


def is_settled(key: str) -> bool:
    """Whether a widget of that key was given its value here."""
    return f"{key}/given" in st.session_state


def is_by_hand(key: str) -> bool:
    """Whether a visitor chose what the widget shows."""
    return st.session_state.get(f"{key}/hand") is not None


def owner_of(record: AttentionRecord) -> object:
    """Which model's layers a choice is of."""
    return record.model, len(record.layers)
