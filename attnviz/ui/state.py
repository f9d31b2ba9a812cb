"""What one session remembers beside its widgets: its picture."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import cast

import streamlit as st
from PIL import Image

from attnviz.ui import asked


@dataclass(frozen=True)
class Picture:
    """A picture that opened rightly."""

    name: str
    """As it stands on the page, in Markdown."""
    image: Image.Image
    digest: str
    credit: str = ""
    sample: str | None = None
    """Its name among the samples, if it is one."""

    @classmethod
    def of_bytes(
        cls,
        name: str,
        data: bytes,
        image: Image.Image,
        *,
        credit: str = "",
        sample: str | None = None,
    ) -> Picture:
        """Named by its content, so that the same file is never run twice."""
        return cls(name, image, hashlib.sha256(data).hexdigest(), credit, sample)


def picture() -> Picture | None:
    """The picture on the page."""
    return cast("Picture | None", st.session_state.get("picture"))


def show_picture(new: Picture) -> Picture:
    """Put another picture on the page; a patch of the former one asks no more."""
    st.session_state.picture, st.session_state.sample = new, new.sample
    asked.forget_place()
    return new


def verbatim(text: str) -> str:
    """A stranger's text, a file's name say, so that none of it is read as Markdown."""
    return f"`{text.replace('`', chr(39))}`"
