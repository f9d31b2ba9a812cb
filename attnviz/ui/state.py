"""What one session remembers beside its widgets: its picture, and what widgets ought to show."""

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
    st.session_state.picture = new
    asked.forget_place()
    return new


def fresh_key(name: str, value: object) -> str:
    """A widget's key: a new one, hence a new widget, when it is to show another value than it does.

    Setting the value of a widget that lives on would not do: what a visitor does in the same moment
    still brings the old value along, as if they had put it back.
    """
    number, shown = st.session_state.get(f"{name}/shown", (0, value))
    st.session_state[f"{name}/shown"] = number + (shown != value), value
    return f"{name}-{st.session_state[f'{name}/shown'][0]}"


def is_live(name: str, key: str) -> bool:
    """Whether the key is the newest one: what a removed widget said may arrive late."""
    return bool(key == f"{name}-{st.session_state[f'{name}/shown'][0]}")


def note_shown(name: str, value: object) -> None:
    """The visitor themselves brought the widget to this value: it keeps its key."""
    number, _ = st.session_state[f"{name}/shown"]
    st.session_state[f"{name}/shown"] = number, value


def verbatim(text: str) -> str:
    """A stranger's text, a file's name say, so that none of it is read as Markdown."""
    return f"`{text.replace('`', chr(39))}`"
