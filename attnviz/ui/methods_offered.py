"""Which methods are offered of a model, and why the others are not."""

from __future__ import annotations

from collections.abc import Collection

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
