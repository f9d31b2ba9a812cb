"""A film in the browser, which plays, pauses and steps without the server; and a strip of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil, sqrt
from pathlib import Path

import streamlit as st
from PIL import Image

from attnviz.errors import BadOption
from attnviz.ui.data_uri import SHARP, data_uri

MOST_PIXELS = 2_500_000
"""Of all frames together, so that a film of many layers is sent in smaller pictures."""

WIDEST = 640
"""Pixels of a frame; more would not be seen."""

BLOCK = 8
"""A JPEG's blocks are this wide: frames of whole blocks do not run into each other."""

_HTML = """
<div class="film" role="group">
  <canvas class="screen" role="img"></canvas>
  <div class="below">
    <img class="bar" alt="" draggable="false">
    <div class="numbers"></div>
    <div class="words"></div>
    <p class="name" aria-live="polite"></p>
    <div class="controls">
      <button class="play" type="button"></button>
      <button class="back" type="button">Back</button>
      <button class="next" type="button">Next</button>
      <label class="slide">
        <span>Layer</span><input class="at" type="range" min="0" step="1">
      </label>
      <label><span>Speed</span><select class="speed"></select></label>
      <button class="open" type="button"></button>
    </div>
  </div>
  <div class="strip" role="list"></div>
</div>
"""

_component = st.components.v2.component(
    "attnviz_player",
    html=_HTML,
    css=Path(__file__).with_name("player.css").read_text("utf-8"),
    js=Path(__file__).with_name("player.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Caption:
    """What is said of one frame."""

    name: str
    """Which layer it is, as a button says it."""
    numbers: tuple[str, ...]
    """Of its colour bar, from left to right."""
    words: str
    """Below them: unit and scale."""
    short: str = ""
    """Below its name in the strip."""


def frame_size(size: tuple[int, int], count: int) -> tuple[int, int]:
    """(width, height) of one of `count` frames of a picture: whole blocks, near its shape.

    The browser shows them in the picture's own shape.
    """
    share = min(WIDEST / size[0], sqrt(MOST_PIXELS / count / (size[0] * size[1])))
    width, height = (max(BLOCK, round(side * share / BLOCK) * BLOCK) for side in size)
    return width, height


def atlas(pictures: Sequence[Image.Image]) -> tuple[Image.Image, int]:
    """All frames, which are of one size, in one picture line by line; and how many make a line."""
    if not pictures or len({picture.size for picture in pictures}) > 1:
        raise BadOption("A film is made of pictures of one size, and of at least one.")
    (width, height), columns = pictures[0].size, ceil(sqrt(len(pictures)))
    sheet = Image.new("RGB", (columns * width, ceil(len(pictures) / columns) * height))
    for number, picture in enumerate(pictures):
        line, column = divmod(number, columns)
        sheet.paste(picture, (column * width, line * height))
    return sheet, columns


def picked_frame(key: str) -> int | None:
    """The number of the frame last opened in the player with that key; what `on_pick` reads."""
    number: int | None = st.session_state.get(f"{key}/picked")
    return number


def play(
    pictures: Sequence[Image.Image],
    captions: Sequence[Caption],
    *,
    bar: Image.Image,
    ratio: float,
    alt: str,
    key: str,
    on_pick: Callable[[], None],
) -> None:
    """Show the frames one after the other, paused at first, and all of them as a strip below.

    Args:
        pictures: The frames, of one size.
        captions: What is said of each.
        bar: The colours of the colour bar, low to high.
        ratio: Width over height that frames are shown in.
        alt: What the film shows, for those who cannot see it; without a full stop.
        key: Its name on the page, unique.
        on_pick: Called before the page runs when a frame is to be opened.

    Raises:
        BadOption: there are no frames, they differ in size, or captions are not as many.
    """
    if len(captions) != len(pictures):
        raise BadOption(f"{len(captions)} captions came for {len(pictures)} pictures.")
    sheet, columns = atlas(pictures)
    count = len(pictures)  # all that the session keeps of them

    def relay() -> None:
        number = st.session_state[key].get("picked")
        if type(number) is int and 0 <= number < count:  # a browser may send anything
            st.session_state[f"{key}/picked"] = number
            on_pick()

    _component(
        key=key,
        data={
            "atlas": data_uri(sheet, **SHARP),
            "columns": columns,
            "size": pictures[0].size,
            "ratio": ratio,
            "bar": data_uri(bar, "PNG"),
            "frames": [asdict(caption) for caption in captions],
            "alt": alt,
        },
        on_picked_change=relay,
    )
