"""What to do about a map of which a few patches hold nearly all that is seen."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from attnviz.heatmap import Heatmap
from attnviz.methods import METHODS
from attnviz.sinks import in_words, swallowed_by
from attnviz.ui.method_panel import Ask

Cell = tuple[int, int]


def leave_out_sinks(
    heat: Heatmap, asked: Ask, begin_at: Callable[[int], Heatmap]
) -> tuple[Cell, ...]:
    """Say that the map is swallowed, and the ways out; gives the patches to leave out of its scale.

    Nothing is shown, and nothing left out, of a map that is not. A query that keeps a part of its
    own is no sink. `begin_at` gives the same map begun at another layer.
    """
    itself = heat.itself
    left_out: list[Cell] = []
    if set(itself) & set(swallowed_by(heat.values, heat.filled)):
        left_out += _leave_out_itself(itself)
    # Where the query alone swallowed it, sinks may swallow what is left.
    sinks = swallowed_by(heat.values, heat.filled, itself=itself)
    if sinks:
        left_out += _leave_out(sinks, _later(asked, begin_at))
    return tuple(left_out)


def _leave_out_itself(itself: tuple[Cell, ...]) -> list[Cell]:
    (row, col), *others = itself
    pooled = f" (and the {len(others)} pooled with it)" if others else ""
    st.caption(
        f":material/info: The bright patch in row {row}, column {col}{pooled}: this is the query "
        "itself, which keeps its own 1, as this method passes each token on beside what it attends "
        "to. Nothing else is seen beside that; leave it out of the colours to see the rest."
    )
    out = st.toggle(
        "Leave the query itself out of the colours",
        key="without_itself",
        persist_state="session",
        help="The colours run from the lowest to the highest value of the other patches; the "
        "query's own gets the last one. The values stay as they are, and the colour bar says it.",
    )
    return [*itself] if out else []


def _leave_out(sinks: tuple[Cell, ...], later: int | None) -> list[Cell]:
    begin = "" if later is None else f" Or let it begin at layer {later}: then it has none."
    st.caption(
        f":material/warning: {in_words(sinks)} so much that nothing else "
        "is seen. Pick another query: where the same patches stand out again, they are a *sink*, "
        "which collects attention whatever the picture shows there; where others do, the head "
        f"looks at little else. Leave them out of the colours, or ask by another method.{begin} "
        "Models with registers have fewer sinks."
    )
    out = st.toggle(
        "Leave these patches out of the colours",
        key="without_sinks",
        persist_state="session",
        help="The colours run from the lowest to the highest value of the other patches; these "
        "get the last one. The values stay as they are, and the colour bar says it.",
    )
    return [*sinks] if out else []


def _later(asked: Ask, begin_at: Callable[[int], Heatmap]) -> int | None:
    """The next layer, where the method can begin there and its map is swallowed no more."""
    first, last = (asked.options.get(f"{end}_layer") for end in ("first", "last"))
    # What takes long is not computed for a piece of advice.
    if first is None or first == last or METHODS[asked.method].estimate is not None:
        return None
    begun: int = first + 1
    heat = begin_at(begun)
    return None if swallowed_by(heat.values, heat.filled, itself=heat.itself) else begun
