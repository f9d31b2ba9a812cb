"""Pictures within the page itself: nothing has to be fetched that may be gone by then."""

from __future__ import annotations

import base64
import io
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


def show_drawn(image: Image.Image, *, alt: str) -> None:
    """A picture with colours or lines on it, as wide as there is room."""
    st.image(data_uri(image.convert("RGB"), **SHARP), width="stretch", alt=alt)
