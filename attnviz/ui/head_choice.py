"""Which head is shown, or all of them; one that is not there is said to be missing."""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.methods.fusion import HEAD_FUSIONS
from attnviz.ui.by_hand import settle

ADDED = "added"
"""All heads, where one can be chosen: a word, for None would be no choice by hand."""


def choose_head(heads: int, place: Place, below: Place) -> int | str:
    """One of so many heads by its number, or a fusion of all by its name.

    Where the one that was chosen is not among them, `below` says so.
    """
    choices = [*HEAD_FUSIONS, *range(heads)]
    lacks = settle("head", "mean", choices.__contains__, heads, strict=True)
    chosen: int | str = place.selectbox(
        "Head",
        choices,
        key="head",
        help="Each layer has several heads, each with weights of its own. *All heads* are made one "
        "map, patch by patch (head fusion): by the mean of their weights, the highest or the "
        "lowest.",
        persist_state="session",
        format_func=lambda head: f"all heads, {head}" if head in HEAD_FUSIONS else f"head {head}",
    )
    if lacks is not None:
        below.caption(
            f"You chose head {lacks}; there {_heads(heads)} here, so all heads' mean is shown."
        )
    return chosen


def choose_one_head(heads: int, place: Place) -> int | None:
    """One of so many heads by its number, or None: all of them, added."""
    choices = [ADDED, *range(heads)]
    lacks = settle("one_head", ADDED, choices.__contains__, heads, strict=True)
    chosen: int | str = place.selectbox(
        "Head",
        choices,
        key="one_head",
        persist_state="session",
        format_func=lambda head: f"all heads, {head}" if head == ADDED else f"head {head}",
    )
    if lacks is not None:
        place.caption(f"You chose head {lacks}; there {_heads(heads)} here, so all are added.")
    return None if isinstance(chosen, str) else chosen


def _heads(count: int) -> str:
    return "is only head 0" if count == 1 else f"are only heads 0 to {count - 1}"
