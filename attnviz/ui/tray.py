"""The visitor's own pictures: those of this visit, as many as fit, of which one may be shown."""

from __future__ import annotations

import hashlib
import html
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st
from PIL import Image

from attnviz.images import open_image
from attnviz.ui.data_uri import data_uri
from attnviz.ui.state import Picture, picture, plain, remark, show_picture, show_sample

MOST = 12
"""Pictures that are kept."""

BUDGET = 128 * 2**20
"""Bytes that their files may have together; the newest stays even where it alone has more."""

THUMB = 96
"""Pixels of a thumbnail's longer side: twice what it takes on a page, for fine screens."""

MARK = 8
"""Letters that tell a picture from all others of a visitor."""

LONGEST_NAME = 18
"""Letters of a name that stand on a button."""


@dataclass(frozen=True)
class Held:
    """One picture of the tray: its file as it came, so that a dozen do not fill the memory."""

    name: str
    """As it stands on the page, in Markdown."""
    data: bytes = field(repr=False)
    digest: str
    thumbnail: str = field(repr=False)
    """A small JPEG, as a data URI."""

    def open(self) -> Picture:
        """The picture itself."""
        return Picture(self.name, open_image(self.data), self.digest)


def tray() -> tuple[Held, ...]:
    """What is kept, the oldest first."""
    kept: tuple[Held, ...] = st.session_state.get("tray", ())
    return kept


def hold(name: str, data: bytes) -> None:
    """Keep a picture as the newest, and show it; what the tray has no room for goes.

    Raises:
        BadImage: it is no picture that can be opened. Nothing has changed then.
    """
    image = open_image(data)
    digest = hashlib.sha256(data).hexdigest()
    new = Held(name, data, digest, _thumbnail(image))
    kept = [*(held for held in tray() if held.digest != digest), new]
    gone = list(_too_many(kept))
    st.session_state.tray = tuple(held for held in kept if held not in gone)
    show_picture(Picture(name, image, digest))
    for held in gone:
        remark(
            f"{held.name} was let go: the tray keeps the newest {MOST} pictures, of at most"
            f" {BUDGET // 2**20} MB together."
        )


def _too_many(kept: list[Held]) -> Iterator[Held]:
    """The oldest, as long as what comes after them does not fit; never the newest."""
    held = sum(len(each.data) for each in kept)
    for number, each in enumerate(kept[:-1]):
        if len(kept) - number <= MOST and held <= BUDGET:
            return
        held -= len(each.data)
        yield each


def mark_of(digest: str) -> str:
    """What a picture of the visitor's is called in the address, for as long as the visit lasts.

    Without the visit's secret nobody learns from it which picture it is.
    """
    secret: str = st.session_state.setdefault("own_secret", secrets.token_hex(16))
    return hashlib.sha256((secret + digest).encode("ascii")).hexdigest()[:MARK]


def digest_of(mark: str) -> str | None:
    """The picture of that name, where the tray still has it."""
    return next((held.digest for held in tray() if mark_of(held.digest) == mark), None)


def show_held(digest: str) -> None:
    """Put a picture of the tray on the page, if it is not there already."""
    shown = picture()
    for held in tray():
        if held.digest == digest and (shown is None or shown.digest != digest):
            show_picture(held.open())


def let_go(digest: str) -> None:
    """Keep a picture no longer; where it was shown, the newest other one is, or the last sample."""
    st.session_state.tray = left = tuple(held for held in tray() if held.digest != digest)
    shown = picture()
    if shown is None or shown.sample is not None or shown.digest != digest:
        return
    if left:
        show_picture(left[-1].open())
    else:
        show_sample(st.session_state.last_sample)


def show_tray() -> None:
    """A row for each picture, the newest first: what it looks like, its name, and a way out."""
    if not (kept := tray()):
        return
    shown = picture()
    st.caption(
        f"Your pictures ({len(kept)} of at most {MOST}). They are gone when the page is closed or"
        " loaded again."
    )
    with st.container(key="tray"):
        for held in reversed(kept):
            here = shown is not None and shown.sample is None and shown.digest == held.digest
            _show_row(held, here=here)


def _show_row(held: Held, *, here: bool) -> None:
    name, short = held.name.strip("`"), held.digest[:16]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        st.html(f'<img alt="" src="{held.thumbnail}" title="{html.escape(name)}">', width=48)
        st.button(
            plain(_shortened(name)),
            key=f"show-{short}",
            on_click=show_held,
            args=(held.digest,),
            icon=":material/check:" if here else None,
            help=f"{held.name} is shown." if here else f"Show {held.name}",
            width="stretch",
        )
        st.button(
            f"Remove {held.name}",
            key=f"remove-{short}",
            on_click=let_go,
            args=(held.digest,),
            icon=":material/close:",
            type="tertiary",
            width="content",
        )


def _shortened(name: str) -> str:
    """A long name without its middle."""
    if len(name) <= LONGEST_NAME:
        return name
    half = LONGEST_NAME // 2
    return f"{name[: half - 1]}…{name[-half:]}"


def _thumbnail(image: Image.Image) -> str:
    small = image.copy() if max(image.size) <= THUMB else None
    if small is None:
        small = image.reduce(max(1, max(image.size) // (4 * THUMB)))
        small.thumbnail((THUMB, THUMB), Image.Resampling.LANCZOS)
    return data_uri(small, quality=85)
