"""The figure as it will be printed, before it is downloaded."""

from __future__ import annotations

from typing import Any

import streamlit as st

from attnviz.bundle import bundle
from attnviz.figure import Figure, kinds_of, latex, options_of, references, render, stem
from attnviz.recipe import Recipe
from attnviz.ui.code_panel import drawing_of, written_as
from attnviz.ui.data_uri import as_text, show_picture
from attnviz.ui.figure_files import FORMATS, offer_file
from attnviz.ui.one_map import MapAsked
from attnviz.ui.set_panel import keep, offer_place
from attnviz.ui.stage import Stage
from attnviz.used import used_in
from attnviz.venue import VENUES

FREE = "free"

DPI, USUAL_DPI = (150, 300, 450, 600), 450

NARROWEST, WIDEST, USUAL_WIDTH = 50, 400, 89
"""In millimetres."""

VENUE_WORDS = {
    FREE: "Any width",
    "column": "One column",
    "page": "Two columns",
    "neurips": "NeurIPS",
    "iclr": "ICLR",
    "cvpr": "CVPR, one column",
    "cvpr-wide": "CVPR, two columns",
}
"""Where it is printed, in words; of every one in `venue.VENUES`."""


def show_export(stage: Stage, wanted: MapAsked) -> dict[str, Any]:
    """One map's widgets, preview and buttons; gives the options of the figure."""
    heat = wanted.compute()
    return show_figure(stage, heat, dict(drawing_of(heat, stage.look, wanted.scale(heat))))


def show_figure(stage: Stage, figure: Figure, drawing: dict[str, Any]) -> dict[str, Any]:
    """A preview of the very file, and the buttons; gives the options of the figure."""
    can = [kind for kind, (suffix, _) in FORMATS.items() if suffix in kinds_of(figure)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.session_state.get("export_format") not in can:
            st.session_state.export_format = can[0]
        kind = st.selectbox("File", can, key="export_format", width=120, persist_state="session")
        width = _choose_width()
        dpi = st.select_slider(
            "Dots per inch", DPI, USUAL_DPI, key="export_dpi", persist_state="session"
        )
        words = st.toggle("Caption in the file", True, key="export_words", persist_state="session")
        options = {**drawing, "width_mm": width, "dpi": dpi, "caption": words}
        if "letters" in options_of(type(figure)):
            options["letters"] = st.toggle(
                "Letters",
                key="export_letters",
                persist_state="session",
                help="a, b, … at the parts of the figure, for the text to refer to.",
            )
        if "original" in options_of(type(figure)):
            options["original"] = st.toggle(
                "The picture beside it", key="export_original", persist_state="session"
            )
    with stage.computing("Drawing the figure …"):
        preview = render(figure, ".png", **options)
    wide = min(760, round(width * 5))
    show_picture(as_text(preview, "PNG"), width=wide, alt=figure.summary)
    numbers = ", NPZ holds its numbers" if "NPZ" in can else ""
    st.caption(f"This is the PNG itself. PDF and SVG show the same, letters as vectors{numbers}.")
    _offer(stage, figure, kind, preview, options)
    return options


def _choose_width() -> float:
    """By where it is printed, or freely."""
    venue = st.selectbox(
        "Printed in",
        VENUE_WORDS,
        format_func=VENUE_WORDS.__getitem__,
        key="export_venue",
        width=170,
        persist_state="session",
    )
    free = st.number_input(
        "Width in mm",
        NARROWEST,
        WIDEST,
        USUAL_WIDTH,
        key="export_width",
        persist_state="session",
        disabled=venue != FREE,
        help="One column of a journal is 89 mm wide, two are 183 mm. Letters keep their size.",
    )
    return float(free) if venue == FREE else VENUES[venue]


def _offer(
    stage: Stage, figure: Figure, kind: str, preview: bytes, options: dict[str, Any]
) -> None:
    suffix, mime = FORMATS[kind]
    name = stem(figure)
    with st.container(horizontal=True):
        offer_file(
            f"Download as {kind}",
            lambda: (
                preview if suffix == ".png" else render(figure, suffix, **used_in(suffix, options))
            ),
            f"{name}{suffix}",
            mime,
        )
        offer_file(
            "All kinds, with what makes it again",
            lambda: bundle([(figure, options)]),
            f"{name}.zip",
            "application/zip",
        )
        pressed = offer_place()
    st.caption(
        "`python -m attnviz replay ZIP PICTURE -o again.zip` makes that zip again, from the picture"
        " (or all of them) that you gave here; with its `.manifest.json` for `ZIP`, and"
        " `again.pdf`, the PDF."
    )
    if pressed:
        keep(stage, figure, options)
    with st.expander("LaTeX", icon=":material/functions:"):
        if options["caption"]:
            st.caption(
                "The file prints this caption too: switch off *Caption in the file* above, and it"
                " stands in your paper once."
            )
        st.code(latex(figure, f"{name}.pdf", **options), language="latex", wrap_lines=True)
        if entries := references(figure).strip():
            st.code(entries, language="latex", wrap_lines=True)


def options_for(figure: Figure, drawing: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that change something in such a figure."""
    known = options_of(type(figure))
    return {name: value for name, value in drawing.items() if name in known}


def as_chosen(recipe: Recipe) -> Recipe:
    """What writes the kind of file that is chosen, with the options that change such a file."""
    suffix, _ = FORMATS[st.session_state.export_format]
    return written_as(suffix, recipe)
