"""Can I trust this map? The score as patches go, or come back, in the order of the map."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz import figures, plot_export
from attnviz.contract import LoadedViT
from attnviz.curve_figure import curve_figure
from attnviz.curves import MODES, Mode
from attnviz.errors import BadOption, Busy
from attnviz.explain import Explanation
from attnviz.faithfulness import Faithfulness, faithfulness, require_testable
from attnviz.record import AttentionRecord
from attnviz.ui.figure_files import FORMATS, offer_file
from attnviz.ui.run import heavy
from attnviz.ui.stage import say_wrong

STEPS, ORDERS = 8, 3
"""Of the page's test: few, because somebody waits for it; the command line takes any number."""

KEPT = 12
"""Results that a visitor can come back to."""

MODE_WORDS: dict[Mode, str] = {
    "deletion": "Deletion: the highest patches go first",
    "insertion": "Insertion: the highest patches come first",
}


def show_trust(
    vit: LoadedViT | None,
    record: AttentionRecord,
    heat: Explanation,
    status: Place,
    *,
    request: object,
) -> dict[str, Any] | None:
    """A button that runs the test, and what it found; a move of any widget stops it.

    `request` is what the record is kept by: what was found is of that picture and no other. Gives
    the options of the test, or None where the map cannot be tested.
    """
    if vit is None:
        raise BadOption("This test runs the model again: mend what failed above first.")
    st.caption(
        "If a map points at what the model uses, its answer changes soon when the highest patches "
        "are taken from the picture, sooner than when patches go in random order. A lower "
        "resolution is quicker; any other choice stops the test."
    )
    try:
        require_testable(vit, record, [heat])
    except BadOption as error:
        st.info(str(error), icon=":material/block:")
        return None
    mode: Mode = st.radio(
        "Test",
        MODES,
        format_func=MODE_WORDS.__getitem__,
        key="trust_mode",
        horizontal=True,
        persist_state="session",
    )
    asked = (request, mode, heat.facts)
    kept: dict[object, Faithfulness] = st.session_state.setdefault("trust", {})
    passes = (1 + ORDERS) * (STEPS - 1)
    label = f"Run the model on about {passes} altered pictures"
    with st.container(horizontal=True):
        pressed = st.button(label, icon=":material/science:", disabled=asked in kept)
        beside = st.empty()
    if pressed:
        # Any press has the page run anew, without this one's: that is what stops it.
        beside.button("Stop", key="trust_stop", icon=":material/stop_circle:")
        try:
            with heavy(status) as turn:

                def progress(done: int, total: int) -> None:
                    turn.let_others()
                    status.progress(done / total, f"Testing the map: picture {done} of {total}")

                progress(0, passes)
                kept[asked] = faithfulness(
                    vit, record, heat, mode=mode, steps=STEPS, orders=ORDERS, progress=progress
                )
        except Busy as error:
            say_wrong(error, again=None)  # the button above is what asks again
        finally:
            status.empty()
            beside.empty()
        while len(kept) > KEPT:
            del kept[next(iter(kept))]
    if (found := kept.get(asked)) is not None:
        _show(found)
    return {"mode": mode, "steps": STEPS, "orders": ORDERS}


def _show(found: Faithfulness) -> None:
    stem = plot_export.curves_stem(found)
    st.plotly_chart(
        curve_figure(found, caption=False),
        theme=None,
        config=figures.camera(stem),
        alt=f"{found.score} against the share of patches, for the map and for random orders",
    )
    st.markdown(f"**{found.title}**: {found.verdict}. Watched: {found.score}.")
    for note in found.notes:
        st.caption(f":material/warning: {note}")
    suffix, mime = FORMATS["PDF"]
    offer_file(
        "Download as PDF",
        lambda: plot_export.render_curves(found, suffix),
        f"{stem}{suffix}",
        mime,
    )
