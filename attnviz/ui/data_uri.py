"""Pictures within the page itself: nothing has to be fetched that may be gone by then."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

import streamlit as st
from PIL import Image

SHARP: dict[str, Any] = {"quality": 90, "subsampling": 0}
"""Of a JPEG with patches on it: subsampled colour would bleed over their edges."""


def data_uri(image: Image.Image, kind: str = "JPEG", **options: Any) -> str:
    """The picture as text; `options` are of its kind of file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return as_text(file.getvalue(), kind)


def as_text(data: bytes, kind: str) -> str:
    """A file of a picture as text."""
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode('ascii')}"


def show_picture(uri: str, *, alt: str, width: int | None = None) -> None:
    """A picture as text, so many pixels wide, or as wide as there is room.

    Streamlit's own `st.image` would ask the server for a file that may be gone by then, and keep
    the text of a hundred pictures for the whole process.
    """
    wide = "100%" if width is None else f"{width}px"
    st.html(
        f'<img class="picture" src="{uri}" alt="{escape(alt)}"'
        f' style="display:block;width:{wide};max-width:100%">'
    )
