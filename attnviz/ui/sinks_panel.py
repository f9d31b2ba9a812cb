"""What to do about a map of which a few patches hold nearly all that is seen."""

from __future__ import annotations

import streamlit as st

from attnviz.heatmap import Heatmap
from attnviz.methods import METHODS
from attnviz.sinks import swallowed_by

NAMED = 3
"""So many patches are named; more are counted."""


def leave_out_sinks(heat: Heatmap, method: str) -> tuple[tuple[int, int], ...]:
    """Say that the map is swallowed, and the ways out; gives the patches to leave out of its scale.

    Nothing is shown, and nothing left out, of a map that is not.
    """
    sinks = swallowed_by(heat.values, heat.filled)
    if not sinks:
        return ()
    named = "; ".join(f"row {row}, column {col}" for row, col in sinks[:NAMED])
    more = f"; and {len(sinks) - NAMED} more" if len(sinks) > NAMED else ""
    noun, verb = ("patch", "holds") if len(sinks) == 1 else ("patches", "hold")
    spans = "first_layer" in METHODS[method].options
    begin = " Or let it begin at layer 1." if spans else ""
    st.caption(
        f":material/warning: {len(sinks)} {noun} ({named}{more}) {verb} so much that nothing else "
        "is seen: a *sink*, which collects attention whatever the picture shows there. Leave it "
        f"out of the colours, or ask by another method.{begin} Models with registers have fewer "
        "sinks."
    )
    out = st.toggle(
        "Leave the sinks out of the colours",
        key="without_sinks",
        persist_state="session",
        help="The colours run from the lowest to the highest value of the other patches; the sinks "
        "get the last one. The values stay as they are, and the colour bar says it.",
    )
    return sinks if out else ()
