"""What to do about a map of which a few patches hold nearly all that is seen."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from attnviz.heatmap import Heatmap
from attnviz.legend import swallowed
from attnviz.methods import METHODS
from attnviz.scale import Scale
from attnviz.sinks import in_words, swallowed_by
from attnviz.ui.method_panel import Ask

Cell = tuple[int, int]


def leave_out_sinks(
    heat: Heatmap, scale: Scale, asked: Ask, begin_at: Callable[[int], Heatmap], *, shared: bool
) -> tuple[Cell, ...]:
    """Say that the map is swallowed, and the ways out; gives the patches to leave out of its scale.

    Nothing is shown, and nothing left out, of a map that is not, as it is drawn by the scale. A
    query that keeps a part of its own is no sink. `begin_at` gives the same map begun at another
    layer. A scale that is `shared` with other maps stays as it is.
    """
    itself, values = heat.itself, heat.values.clip(max=scale.high)
    left_out: list[Cell] = []
    if set(itself) & set(swallowed_by(values, heat.filled)):
        left_out += _leave_out_itself(itself, shared)
    # Where the query alone swallowed it, sinks may swallow what is left.
    sinks = swallowed_by(values, heat.filled, itself=itself)
    if sinks:
        left_out += _leave_out(sinks, _later(asked, begin_at), shared)
    return tuple(left_out)


def say_hidden(heat: Heatmap, scale: Scale | None) -> None:
    """Of one map among others: that a few patches leave nothing else to see, if they do."""
    if scale is None:  # three components, mixed
        return
    (who,), done = swallowed([heat], lambda clip: [scale], None, ready=True)
    if who:
        st.caption(
            f":material/warning: {who[0].upper()}{who[1:]} {done}; *One map* can leave that out of "
            "its colours."
        )


OWN_SCALE = "give each map its own colour scale, and leave"
"""What comes before leaving patches out, where all heads have one scale."""


def _leave_out_itself(itself: tuple[Cell, ...], shared: bool) -> list[Cell]:
    (row, col), *others = itself
    pooled = f" (and the {len(others)} pooled with it)" if others else ""
    st.caption(
        f":material/info: The bright patch in row {row}, column {col}{pooled}: this is the query "
        "itself, which keeps its own 1, as this method passes each token on beside what it attends "
        f"to. Nothing else is seen beside that; {OWN_SCALE if shared else 'leave'} it out of the "
        "colours to see the rest."
    )
    out = not shared and st.toggle(
        "Leave the query itself out of the colours",
        key="without_itself",
        persist_state="session",
        help="The colours run from the lowest to the highest value of the other patches; the "
        "query's own gets the last one. The values stay as they are, and the colour bar says it.",
    )
    return [*itself] if out else []


def _leave_out(sinks: tuple[Cell, ...], later: int | None, shared: bool) -> list[Cell]:
    begin = "" if later is None else f" Or let it begin at layer {later}: then it has none."
    st.caption(
        f":material/warning: {in_words(sinks)} so much that nothing else "
        "is seen. Pick another query: where the same patches stand out again, they are a *sink*, "
        "which collects attention whatever the picture shows there; where others do, the head "
        f"looks at little else. {(OWN_SCALE if shared else 'leave').capitalize()} them out of the "
        f"colours, or ask by another method.{begin} "
        "Models with registers have fewer sinks."
    )
    out = not shared and st.toggle(
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
