"""The kinds of file that a figure is downloaded as, and the button that hands one over."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

FORMATS = {
    "PNG": (".png", "image/png"),
    "PDF": (".pdf", "application/pdf"),
    "SVG": (".svg", "image/svg+xml"),
    "NPZ": (".npz", "application/octet-stream"),
}
"""Name → suffix and type, of every suffix in `export.RENDERERS`; NPZ holds the numbers."""

FILM_FORMATS = {"GIF": (".gif", "image/gif"), "WebP": (".webp", "image/webp"), **FORMATS}
"""The same of suffixes in `film_export.FILM_KINDS`: animations, printed strips, numbers as NPZ."""


def offer_file(label: str, make: Callable[[], bytes], name: str, mime: str) -> None:
    """A button for a file that is made once it is asked for; the page does not run anew for it."""
    st.download_button(
        label,
        data=make,
        file_name=name,
        mime=mime,
        on_click="ignore",
        icon=":material/download:",
    )
