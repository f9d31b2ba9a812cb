"""A line at the foot of the page, for its host."""

from __future__ import annotations

import streamlit as st

from attnviz.ui import cache, counters, room
from attnviz.ui.tally import tally


def show_status() -> None:
    """Who waits and what is kept, as of this moment."""
    so_far, kept, budget = tally(), cache.observations(), room.budget()
    done, ended = so_far.passes["done"], sum(so_far.passes.values())
    mean = f", {so_far.seconds / ended:.2f} s each" if ended else ""
    st.caption(
        f"For the host: {counters.visits()} pages open, {kept.line.waiting} waiting;"
        f" {done} passes{mean}, {so_far.refused['busy'] + so_far.refused['memory']} refused;"
        f" {room.used_bytes() / 1e9:.1f} of {budget.whole / 1e9:.1f} GB,"
        f" {kept.nbytes / 1e9:.1f} of {budget.records / 1e9:.1f} GB kept of passes."
    )
