"""A choice of several, of which some cannot be had now: they come back when they can."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st


def keep_offered(key: str, names: Sequence[str]) -> None:
    """Before a widget for several is drawn: what it cannot show now goes until it can."""
    state = st.session_state
    chosen: Sequence[str] = state.get(key) or ()
    away: Sequence[str] = state.get(away_of(key), ())
    back = [name for name in away if name in names]
    gone = [name for name in chosen if name not in names]
    if back or gone:
        # What is away first: a run that is cut off in between loses nothing.
        state[away_of(key)] = [*dict.fromkeys([*away, *gone])]
        state[key] = [*dict.fromkeys([*(name for name in chosen if name in names), *back])]
        state[away_of(key)] = [name for name in state[away_of(key)] if name not in names]


def away_of(key: str) -> str:
    """Under which the session keeps what was chosen and cannot be shown now."""
    return f"{key}/away"
