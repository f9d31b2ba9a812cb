"""The stack of layers × heads in three dimensions, one sheet of which is picked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from einops import rearrange
from jaxtyping import Bool, Float
from PIL import Image

from attnviz.colour import bounded, colour_bar, fit_within
from attnviz.errors import BadOption
from attnviz.mosaic import mosaic, tiles_there
from attnviz.scale import Scale, choose_scale
from attnviz.ui.data_uri import data_uri

Head = tuple[int, int]
"""(layer, head)"""

MOST_SIDE = 2048
"""Pixels of a picture's side that every browser with WebGL 2 takes."""

PICTURE_SIDE = 512
"""Pixels of the picture's longer side: it lies small below the stack."""

_HTML = """
<div class="stack">
  <div class="tools" role="group" aria-label="How the stack is seen">
    <div class="views">
      <span aria-hidden="true">From</span>
      <button type="button" data-view="front" aria-label="From the front">the front</button>
      <button type="button" data-view="side" aria-label="From the side">the side</button>
      <button type="button" data-view="above" aria-label="From above">above</button>
      <button type="button" data-view="reset">Reset</button>
    </div>
    <label>Spacing <input class="spacing" type="range" min="0.15" max="1.6" step="0.01"></label>
    <label><input class="see-through" type="checkbox"> See through low values</label>
  </div>
  <div class="scene" tabindex="0" role="application" aria-describedby="stack-heads">
    <canvas aria-hidden="true"></canvas>
    <div class="labels" aria-hidden="true"></div>
    <p class="lost" role="status" hidden>
      The browser took the graphics memory away. The stack comes back as soon as it gives it again.
    </p>
  </div>
  <p class="none">
    This browser has no WebGL 2, which the stack is drawn with. The view All heads shows the same
    maps side by side.
  </p>
  <div class="said">
    <p class="readout" aria-live="polite"></p>
    <button class="open" type="button" hidden></button>
  </div>
  <p class="help mixed" hidden>
    The lower a value on its scale, the more one sees through it: its colour is mixed with what lies
    behind. The small map in the corner has the colours of the bar alone.
  </p>
  <p class="help mouse">
    Drag to turn. Click a sheet to open that head. Ctrl and wheel zooms, after a click on the stack
    the wheel alone; Shift and drag moves it.
  </p>
  <p class="help fingers">
    Drag sideways to turn, two fingers zoom and move. Tap a sheet to see which it is, and once more
    to open that head.
  </p>
  <p class="help keys mouse">
    Keys: arrows go from sheet to sheet, with Shift they turn the stack; + and − zoom, 0 resets,
    Enter opens.
  </p>
  <table class="unseen" id="stack-heads">
    <caption></caption>
    <thead><tr><th>Head</th><th>Highest value</th></tr></thead>
    <tbody></tbody>
  </table>
</div>
"""

_HERE = Path(__file__).parent

SCRIPTS = ("stack_scene.js", "stack_paint.js", "stack_labels.js", "stack_hands.js", "stack.js")
"""Joined to one module: inline components know no imports."""

_component = st.components.v2.component(
    "attnviz_stack",
    html=_HTML,
    css=(_HERE / "stack.css").read_text("utf-8"),
    js="\n".join((_HERE / name).read_text("utf-8") for name in SCRIPTS),
)


@dataclass(frozen=True, eq=False)
class Atlas:
    """All tiles as one grey picture, 0 to 255 along the scale, small enough for any browser."""

    image: Image.Image
    columns: int
    """Tiles in a line."""
    tile: tuple[int, int]
    """(rows, columns) of pixels of one tile."""
    pooled: int
    """So many patches a side were made one pixel, by their mean; 1 as a rule."""
    scales: tuple[Scale, ...]
    """Of each tile that is there, or the one that all share."""

    @classmethod
    def of(
        cls,
        tiles: Float[np.ndarray, "layer head row col"],
        *,
        scale: Scale | None,
        clip: float | None = None,
        most: int = MOST_SIDE,
    ) -> Atlas:
        """Draw them on one scale, or each on its own where that is None."""
        layers, heads, *tile = tiles.shape
        count = layers * heads
        lines_of = {columns: count // columns for columns in divisors(count)}

        def side(columns: int, pooled: int) -> int:
            rows, cols = (-(-length // pooled) for length in tile)
            return max(columns * cols, lines_of[columns] * rows)

        best = min(lines_of, key=lambda columns: side(columns, 1))
        pooled = next((by for by in range(1, max(tile) + 1) if side(best, by) <= most), max(tile))
        shown = _pooled(tiles, pooled)
        drawn = mosaic(
            shown,
            scale=scale or "own",
            clip=clip,
            colormap="gray",
            max_side=1,  # one pixel a patch
            gap=0,
            columns=best,
        )
        height, width = drawn.cell
        own = (choose_scale(tile, clip=clip) for tile in shown[tiles_there(shown)])
        scales = (scale,) if scale else tuple(own)
        return cls(drawn.image.getchannel(0), best, (height, width), pooled, scales)


def divisors(number: int) -> list[int]:
    """All whole numbers that divide it."""
    return [by for by in range(1, number + 1) if number % by == 0]


def _pooled(
    tiles: Float[np.ndarray, "layer head row col"], by: int
) -> Float[np.ndarray, "layer head down across"]:
    """The mean of `by` × `by` patches each, of fewer at the lower and the right edge."""
    if by == 1:
        return tiles
    sums = tiles.astype(np.float64)
    for axis in (2, 3):
        starts = np.arange(0, tiles.shape[axis], by)
        counts = np.diff([*starts, tiles.shape[axis]])
        sums = np.add.reduceat(sums, starts, axis=axis)
        sums = sums / (counts if axis == 3 else rearrange(counts, "down -> down 1"))
    return sums.astype(tiles.dtype)


@dataclass(frozen=True, eq=False)
class Sheets:
    """What the browser is given of one query's maps; made once for each look."""

    there: Bool[np.ndarray, "layer head"]
    atlas: Atlas
    data: dict[str, Any]

    @classmethod
    def of(
        cls,
        tiles: Float[np.ndarray, "layer head row col"],
        picture: Image.Image,
        *,
        scale: Scale | None,
        clip: float | None,
        colormap: str,
        unit: str,
    ) -> Sheets:
        """Of all heads' maps, and the part of the picture that they are of."""
        there, atlas = tiles_there(tiles), Atlas.of(tiles, scale=scale, clip=clip)
        wide, high = bounded(picture.size)
        small = picture.resize(fit_within((wide, high), PICTURE_SIDE), Image.Resampling.LANCZOS)
        values = value_texts(tiles, unit)
        highest = np.where(there, np.nan_to_num(tiles, nan=-np.inf).max((2, 3)), -np.inf)
        ranked = np.argsort(-highest, axis=None, kind="stable")[: int(there.sum())]
        places = [divmod(int(at), there.shape[1]) for at in ranked]
        data = {
            "layers": there.shape[0],
            "heads": there.shape[1],
            "there": None if there.all() else there.tolist(),
            "aspect": wide / high,
            "atlas": data_uri(atlas.image, "PNG", compress_level=9),
            "columns": atlas.columns,
            "tile": atlas.tile,
            "palette": data_uri(colour_bar(Scale(0.0, 1.0, ""), colormap, size=(256, 1)), "PNG"),
            "picture": data_uri(small.convert("RGB"), quality=88),
            "values": values,
            "table": [
                [f"Layer {at[0]}, head {at[1]}", values[at[0]][at[1]]] for at in places[:TOLD]
            ],
            "word": f"The {min(TOLD, len(places))} heads with the highest values",
        }
        return cls(there, atlas, data)

    def checked(self, value: object) -> Head | None:
        """The value as a head that is there, else None: a browser may send anything."""
        return _checked(value, self.there)


def _checked(value: object, there: Bool[np.ndarray, "layer head"]) -> Head | None:
    match value:
        case [layer, head] if type(layer) is int and type(head) is int:
            layers, heads = there.shape
            inside = 0 <= layer < layers and 0 <= head < heads
            return (layer, head) if inside and there[layer, head] else None
    return None


TOLD = 12
"""Heads in the table for those who do not see the scene."""


def value_texts(tiles: Float[np.ndarray, "layer head row col"], unit: str) -> list[list[str]]:
    """Each head's highest value with its unit and place; empty where there is no head."""
    layers, heads, _, cols = tiles.shape
    flat = rearrange(np.nan_to_num(tiles, nan=-np.inf), "l h row col -> l h (row col)")
    at, most = flat.argmax(-1), flat.max(-1)
    return [
        [
            f"highest {unit} {most[layer, head]:.3g}, in row {at[layer, head] // cols}, "
            f"column {at[layer, head] % cols}"
            if np.isfinite(most[layer, head])
            else ""
            for head in range(heads)
        ]
        for layer in range(layers)
    ]


def picked_head(key: str) -> Head | None:
    """The head last picked in the stack with that key; what `on_pick` reads."""
    head: Head | None = st.session_state.get(f"{key}/picked")
    return head


def sees_through(key: str) -> bool:
    """Whether one sees through low values in the stack with that key."""
    return bool(st.session_state.get(f"{key}/see_through"))


def pick_sheet(
    sheets: Sheets,
    *,
    chosen: Head | None,
    query: tuple[float, float, float, float] | None,
    key: str,
    alt: str,
    on_pick: Callable[[], None],
) -> None:
    """Show the stack; in `on_pick`, which runs before the page does, ask `picked_head(key)`.

    Args:
        sheets: What is shown.
        chosen: The head with the outline.
        query: (top, left, bottom, right) of the patch that asks, as parts of the picture.
        key: Its name on the page, unique.
        alt: What the stack shows, for those who cannot see it; without a full stop.
        on_pick: Called after a pick.

    Raises:
        BadOption: the chosen head is not there.
    """
    if chosen is not None and sheets.checked([*chosen]) is None:
        raise BadOption(f"The head {chosen} is in no layer; give (layer, head) of one that is.")

    there = sheets.there  # alone: the session keeps what a callback holds

    def relay() -> None:
        head = _checked(st.session_state[key].get("opened"), there)
        if head is not None:
            st.session_state[f"{key}/picked"] = head
            on_pick()

    def look_through() -> None:
        match st.session_state[key].get("seen"):
            case [bool(on)]:
                st.session_state[f"{key}/see_through"] = on

    data = sheets.data | {"alt": alt, "chosen": chosen and [*chosen], "query": query and [*query]}
    data |= {"seeThrough": sees_through(key)}
    _component(key=key, data=data, on_opened_change=relay, on_seen_change=look_through)
