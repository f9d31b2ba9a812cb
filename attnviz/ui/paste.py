"""Ctrl+V: a pasted picture goes into the uploader, as if it had been dropped there."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_component = st.components.v2.component(
    "attnviz_paste",
    js=Path(__file__).with_name("paste.js").read_text("utf-8"),
    html="<span></span>",
)


def paste_into_uploader() -> None:
    """Listen for pasted pictures; they take the uploader's own way, with its limits."""
    _component(key="paste")
