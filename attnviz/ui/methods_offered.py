"""Which methods are offered of a model, and why the others are not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from attnviz.methods import METHODS
from attnviz.record import AttentionRecord
from attnviz.ui.state import plain


def offered_methods(
    record: AttentionRecord, among: Collection[str] = METHODS.keys()
) -> tuple[str, ...]:
    """Those of `among` that can be asked of the record's model, in their own order."""
    return tuple(name for name in among if METHODS[name].refusal(record) is None)


def say_not_offered(record: AttentionRecord, among: Collection[str] = METHODS.keys()) -> None:
    """The others, with the sentence that would refuse them."""
    names: dict[str, list[str]] = {}
    for name in among:
        if (why := METHODS[name].refusal(record)) is not None:
            names.setdefault(why, []).append(METHODS[name].label)
    for why, labels in names.items():
        st.caption(f":material/block: **Not of this model:** {', '.join(labels)}. {plain(why)}")


def keep_offered(key: str, names: Sequence[str]) -> None:
    """Before a widget for several is drawn: what it cannot show now goes until it can."""
    state = st.session_state
    chosen: Sequence[str] = state.get(key) or ()
    away: Sequence[str] = state.get(away_of(key), ())
    back = [name for name in away if name in names and name not in chosen]
    gone = [name for name in chosen if name not in names]
    if back or gone:
        state[key] = [*(name for name in chosen if name in names), *back]
        state[away_of(key)] = [*(name for name in away if name not in names), *gone]


def away_of(key: str) -> str:
    """Under which the session keeps what was chosen and cannot be shown now."""
    return f"{key}/away"
