"""What the heads of each layer do, in numbers: one plot of depth against a metric, and sinks."""

from __future__ import annotations

import streamlit as st

from attnviz import figures, plot_export
from attnviz.metrics import METRICS, HeadMetrics
from attnviz.sinks import FAR, find_sinks
from attnviz.ui.figure_files import FORMATS, offer_file

IN_WORDS = (
    "Here A[q, k] is the attention that the query q gives the token k: each row sums to 1. *Prefix "
    "tokens* are the class token and, where a model has them, registers, each an extra token "
    "without a place in the picture. Every number is the mean over all patches as queries."
)

PLAIN = {
    "distance": "How far a head looks: a small number is near the patch that asks, a large one"
    " across the picture. What it gives to tokens without a place counts as no distance.",
    "distance_renormalised": "How far a head looks, by what it gives to patches alone: a small"
    " number is near the patch that asks, a large one across the picture.",
    "entropy": "How widely a head spreads its attention: 0 is all on one token, a large number is"
    " evenly on many.",
    "relative_entropy": "How widely a head spreads its attention: 0 is all on one token, 1 is"
    " evenly on all that there are.",
    "to_prefix": "The share of its attention that a head gives to tokens without a place in the"
    " picture, such as the class token.",
    "agreement": "How alike a layer's heads are: 1 where a head looks where the others do, 0 where"
    " it looks only where no other does.",
}
"""What each metric tells, for who does not read formulas."""

OF_ONE = (
    "The share of its attention that a head gives to this token, which has no place in the picture."
)

SINKS = 12
"""So many sinks are listed."""


def show_heads(metrics: HeadMetrics) -> None:
    """The plot that a paper would print, its file, and the table behind it."""
    if st.session_state.get("metric") not in metrics.about:  # of a token that this model has not
        st.session_state.metric = next(iter(metrics.about))
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    about = metrics.about  # alone: the session keeps what a widget's functions hold
    name: str = left.selectbox(
        "Metric",
        about,
        format_func=lambda name: about[name].label,
        key="metric",
        persist_state="session",
    )
    st.caption(
        f"{_in_plain_words(name)} Each dot is one head.",
        help=f"{metrics.describe(name).description} {IN_WORDS}",
    )
    st.plotly_chart(
        figures.depth_figure(metrics, name, caption=False),
        theme=None,
        config=figures.camera(plot_export.depth_stem(metrics, name)),
        alt=f"{metrics.describe(name).label} of every head against the layer",
    )
    with right.container(horizontal=True, vertical_alignment="bottom"):
        kinds = [kind for kind, (suffix, _) in FORMATS.items() if suffix in plot_export.DEPTH_KINDS]
        kind = st.selectbox(
            "Figure for a paper", kinds, key="depth_format", width=150, persist_state="session"
        )
        suffix, mime = FORMATS[kind]
        offer_file(
            f"Download as {kind}",
            lambda: plot_export.render_depth(metrics, name, suffix),
            f"{plot_export.depth_stem(metrics, name)}{suffix}",
            mime,
        )
    _show_table(metrics)
    _show_sinks(metrics)


def _in_plain_words(name: str) -> str:
    """What a metric tells; those that a model has for itself are of one prefix token."""
    return PLAIN[name] if name in METRICS else OF_ONE


def _show_table(metrics: HeadMetrics) -> None:
    with st.expander("All numbers"):
        st.dataframe(metrics.table(), hide_index=True)
        offer_file(
            "Download as CSV",
            lambda: plot_export.render_table(metrics),
            f"{plot_export.table_stem(metrics)}.csv",
            "text/csv",
        )


def _show_sinks(metrics: HeadMetrics) -> None:
    """Tokens that collect attention, by name, the greediest first."""
    sinks = find_sinks(metrics)
    if not sinks:
        st.caption("No token collects far more attention than the others: there is no sink.")
        return
    st.caption(
        f"**Sinks**: {len(sinks)} of {metrics.layout.tokens} tokens collect at least {FAR:g} times "
        "what an even spread would give them, from all patches and over all heads of a layer."
    )
    rows = [
        {
            "token": sink.name,
            "in layer": sink.layer,
            "collects there": f"{sink.share:.1%}",
            "in layers": ", ".join(map(str, sink.layers)),
        }
        for sink in sinks[:SINKS]
    ]
    st.dataframe(rows, hide_index=True)
