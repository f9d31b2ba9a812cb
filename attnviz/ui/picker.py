"""A picture with a grid of cells on it, one of which is picked by mouse, touch or keyboard."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st
from einops import rearrange
from jaxtyping import Bool, Float
from PIL import Image

from attnviz.contract import Box
from attnviz.errors import BadOption
from attnviz.ui.data_uri import SHARP, data_uri

Cell = tuple[int, int]
"""(row, column), counted from 0 at the top left."""

LONGEST_SIDE = 1000
"""Pixels a picture is sent with at most; more would not be seen."""

LONGEST_CRISP = 8192
"""Of a picture whose pixels are values: it is sent as it is, and a larger one is refused."""

_SLIVER = 1e-6
"""Cells of which less than this many pixels can be seen come from rounding."""

_MARK = '<g class="{}"><rect class="under"></rect><rect class="over"></rect></g>'
_HTML = f"""
<div class="picker">
  <div class="col-names" aria-hidden="true"></div>
  <div class="row-names" aria-hidden="true"></div>
  <div class="surface" tabindex="0" role="application">
    <img decoding="sync" draggable="false">
    <svg preserveAspectRatio="none" aria-hidden="true">
      <path class="under"></path><path class="over"></path>
      {_MARK.format("chosen")}{_MARK.format("hover")}{_MARK.format("cursor")}
    </svg>
  </div>
  <p class="readout" aria-live="polite"></p>
  <p class="hint"></p>
</div>
"""

_component = st.components.v2.component(
    "attnviz_picker",
    html=_HTML,
    css=Path(__file__).with_name("picker.css").read_text("utf-8"),
    js="\n".join(
        Path(__file__).with_name(name).read_text("utf-8") for name in ("picker.js", "scrub.js")
    ),
)


@dataclass(frozen=True)
class CellGrid:
    """Where a grid of cells lies on a picture: edges cut off at the picture's own."""

    ys: tuple[float, ...]
    """The rows + 1 edges from the top, in pixels."""
    xs: tuple[float, ...]
    """The columns + 1 edges from the left, in pixels."""

    @classmethod
    def on(cls, size: tuple[int, int], grid: tuple[int, int], box: Box | None) -> CellGrid:
        """Lay (rows, columns) cells over a box on a picture of (width, height) pixels.

        Raises:
            BadOption: There are no cells, the box is empty, or it lies beside the picture.
        """
        width, height = size
        left, top, right, bottom = box or (0.0, 0.0, float(width), float(height))
        cells = cls(_edges(top, bottom, grid[0], height), _edges(left, right, grid[1], width))
        if not (cells.rows and cells.cols):
            raise BadOption(
                f"A grid of {grid[0]} × {grid[1]} cells in the box {box} has no cell on a picture "
                f"of {width} × {height} pixels. Give at least 1 × 1 cells, and a box (left, top, "
                "right, bottom) that lies at least partly on the picture."
            )
        return cells

    @property
    def rows(self) -> range:
        """The rows that can be seen."""
        return _seen(self.ys)

    @property
    def cols(self) -> range:
        """The columns that can be seen."""
        return _seen(self.xs)

    def checked(
        self, value: object, empty: Bool[np.ndarray, "row col"] | None = None
    ) -> Cell | None:
        """The value as a cell that can be picked, else None: a browser may send anything."""
        match value:
            case [row, col] if type(row) is int and type(col) is int:
                seen = row in self.rows and col in self.cols
                return (row, col) if seen and (empty is None or not empty[row, col]) else None
        return None


def _edges(low: float, high: float, cells: int, length: int) -> tuple[float, ...]:
    if cells < 1 or not math.isfinite(low) or not math.isfinite(high):
        return ()
    edges = (low + (high - low) * i / cells for i in range(cells + 1))
    return tuple(min(max(edge, 0.0), float(length)) for edge in edges)


def _seen(edges: tuple[float, ...]) -> range:
    seen = [i for i in range(len(edges) - 1) if edges[i + 1] - edges[i] > _SLIVER]
    return range(seen[0], seen[-1] + 1) if seen else range(0)


def picked_cell(key: str) -> Cell | None:
    """The cell last picked in the picker with that key; what `on_pick` reads."""
    cell: Cell | None = st.session_state.get(f"{key}/picked")
    return cell


def pick_cell(
    image: Image.Image,
    *,
    grid: tuple[int, int],
    box: Box | None,
    chosen: Cell | None,
    key: str,
    alt: str,
    values: Float[np.ndarray, "row col *parts"] | None = None,
    unit: str = "",
    empty: Bool[np.ndarray, "row col"] | None = None,
    show_grid: bool = True,
    row_names: Sequence[str] | None = None,
    col_names: Sequence[str] | None = None,
    cell_names: Sequence[Sequence[str]] | None = None,
    cell_word: str = "patch",
    crisp: bool = False,
    least: tuple[int, int] | None = None,
    hint: str = "",
    reveal: int = 0,
    follows: str = "",
    scene: str = "",
    picks: bool = True,
    on_pick: Callable[[], None] | None = None,
) -> Cell | None:
    """Show a picture with cells on it; give the cell on the run in which it was picked, else None.

    Nothing is kept here: hand the cell back as `chosen`. In `on_pick`, which runs before the page
    does, `picked_cell(key)` is the cell; every pick arrives there, also one whose run was cut off.

    Args:
        image: The picture.
        grid: (rows, columns) of cells.
        box: Where the grid lies, in pixels of the picture; None: all over it. May reach past the
            picture's edges: what lies outside is cut off and cannot be picked.
        chosen: The cell with the outline.
        key: Its name on the page, unique.
        alt: What the picture shows, for those who cannot see it; without a full stop.
        values: What the line under the picture says of each cell: one number or several.
        unit: Follows the numbers.
        empty: Cells that hold nothing, where others of the grid do: they cannot be picked.
        show_grid: Whether the cells' edges are drawn.
        row_names: A label for each row, written beside the picture.
        col_names: A label for each column, written above the picture.
        cell_names: What the line under the picture calls each cell, instead of row and column.
        cell_word: What a cell is called.
        crisp: For pictures whose pixels are values: sent lossless, and small ones enlarged without
            smoothing. Others are sent as JPEG.
        least: (width, height) in pixels of the screen that the picture needs.
        hint: Said where the screen has fewer than these.
        reveal: A number above 0 has the page scrolled to the picture, once for each number.
        follows: The key of a picker: a pick there brings this one into view, if it changes and
            nothing of it is on the screen.
        scene: Names what is drawn, where a live map follows the pointer: the cell under it is told
            to `live_panel` then, by the picker's key.
        picks: Whether a cell can be picked; else its value is read alone.
        on_pick: Called after a pick, before the page runs.

    Raises:
        BadOption: `box` leaves no cell, or another option does not fit the grid.
    """
    cells = CellGrid.on(image.size, grid, box)
    _check_fit(grid, chosen, values, empty, row_names, col_names)

    def relay() -> None:
        cell = cells.checked(st.session_state[key].get("picked"), empty)
        if cell is not None:
            st.session_state[f"{key}/picked"] = cell
            if on_pick is not None:
                on_pick()

    data = {
        "picture": _sent(image, crisp),
        "size": image.size,
        "least": least,
        "hint": hint,
        "reveal": reveal,
        "follows": follows,
        "scene": scene,
        "name": key,
        "picks": picks,
        "ys": cells.ys,
        "xs": cells.xs,
        "rows": (cells.rows[0], cells.rows[-1]),
        "cols": (cells.cols[0], cells.cols[-1]),
        "chosen": chosen and (int(chosen[0]), int(chosen[1])),
        "empty": None if empty is None or not empty.any() else empty.tolist(),
        "lines": show_grid,
        "alt": alt,
        "word": cell_word,
        "rowNames": row_names and list(row_names),
        "colNames": col_names and list(col_names),
        "cellNames": cell_names and [list(names) for names in cell_names],
        "values": None if values is None else _texts(values, unit),
    }
    return cells.checked(_component(key=key, data=data, on_picked_change=relay).picked, empty)


def _check_fit(
    grid: tuple[int, int],
    chosen: Cell | None,
    values: Float[np.ndarray, "row col *parts"] | None,
    empty: Bool[np.ndarray, "row col"] | None,
    row_names: Sequence[str] | None,
    col_names: Sequence[str] | None,
) -> None:
    rows, cols = grid
    if chosen is not None and not (0 <= chosen[0] < rows and 0 <= chosen[1] < cols):
        raise BadOption(f"The chosen cell {chosen} is not in the grid of {rows} × {cols} cells.")
    for cells in (values, empty):
        if cells is not None and cells.shape[:2] != grid:
            raise BadOption(f"Got values of shape {cells.shape}; the grid's is {grid}.")
    for what, names, count in (("row", row_names, rows), ("column", col_names, cols)):
        if names is not None and len(names) != count:
            raise BadOption(f"Got {len(names)} {what} names for {count} {what}s; give one each.")


def _texts(values: Float[np.ndarray, "row col *parts"], unit: str) -> list[list[str]]:
    """Each cell's numbers with three significant digits, and their unit."""
    cells = rearrange(values, "row col ... -> row col (...)").tolist()
    return [
        [f"{', '.join(f'{number:.3g}' for number in cell)} {unit}".strip() for cell in row]
        for row in cells
    ]


def _sent(image: Image.Image, crisp: bool) -> str:
    """The picture as text, its longest side at most `LONGEST_SIDE` pixels unless it is crisp.

    Raises:
        BadOption: a crisp picture is longer than `LONGEST_CRISP`.
    """
    if crisp and max(image.size) > LONGEST_CRISP:
        raise BadOption(
            f"A picture of values is {image.width} × {image.height} pixels; at most"
            f" {LONGEST_CRISP} a side are sent. Lay its tiles out otherwise."
        )
    scale = LONGEST_SIDE / max(image.size)
    image = image.convert("RGB")
    if scale < 1 and not crisp:
        width, height = (max(1, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
    elif scale > 1 and crisp:  # by a whole number, so that every pixel becomes an equal square
        width, height = (side * int(scale) for side in image.size)
        image = image.resize((width, height), Image.Resampling.NEAREST)
    return data_uri(image, "PNG", compress_level=3) if crisp else data_uri(image, **SHARP)
