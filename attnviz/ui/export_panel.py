"""The figure as it will be printed, before it is downloaded."""

from __future__ import annotations

from typing import Any

import streamlit as st

from attnviz import export
from attnviz.ui.figure_files import FORMATS, offer_file
from attnviz.ui.map_panel import drawing_options
from attnviz.ui.one_map import MapAsked
from attnviz.ui.stage import Stage


def show_export(stage: Stage, wanted: MapAsked) -> dict[str, Any]:
    """Its widgets, a preview of the very file, and the button; gives the options of the figure."""
    heat = wanted.compute()
    scale = wanted.scale(heat)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("File", FORMATS, key="export_format", width=120)
        width = st.number_input(
            "Width in mm",
            40,
            400,
            89,
            key="export_width",
            persist_state="session",
            help="One column of a journal is 89 mm wide, two are 183 mm. Letters keep their size.",
        )
        dpi = st.select_slider(
            "Dots per inch", (150, 300, 450, 600), 450, key="export_dpi", persist_state="session"
        )
        words = st.toggle("Caption in the file", True, key="export_words", persist_state="session")
    options = {
        **drawing_options(stage.look, scale),
        "width_mm": width,
        "dpi": dpi,
        "caption": words,
    }
    with stage.computing("Drawing the figure …"):
        preview = export.render(heat, ".png", **options)
    st.image(preview, width=min(760, round(width * 5)), alt=heat.summary)
    st.caption("This is the PNG itself; the other files show the same, with letters as vectors.")
    suffix, mime = FORMATS[kind]
    offer_file(
        f"Download as {kind}",
        lambda: preview if suffix == ".png" else export.render(heat, suffix, **options),
        f"{export.file_stem(heat)}{suffix}",
        mime,
    )
    return options
