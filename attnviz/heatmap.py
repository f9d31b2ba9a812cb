"""One value a patch, or three as a colour, and which pixels of the picture each patch gets.

Floats only: the one file that turns them into colours is `colour`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int
from PIL import Image

from attnviz.contract import Box
from attnviz.errors import BadOption, CaptureFailed, unknown
from attnviz.facts import Facts, said, with_notes, with_picture
from attnviz.mass import MassMask
from attnviz.scale import Scale, choose_scale


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A method's values on the patch grid, with the picture they belong to.

    Raises `CaptureFailed` for values that aren't finite, `BadOption` for what has no place in the
    picture.
    """

    values: Float32[np.ndarray, "row col"] | Float32[np.ndarray, "row col 3"]
    """One value a patch in the method's own unit, or three components of it; read-only."""
    unit: str
    title: str
    """The method in words."""
    facts: Facts
    """(name, value) in words and in order: all that was chosen to get these values."""
    image: Image.Image
    """The original picture, RGB."""
    box: Box
    """Where the grid lies in the picture; may reach past its edges."""
    notes: tuple[str, ...] = ()
    """Warnings that belong on the figure."""
    query_cell: tuple[int, int] | None = None
    """The (row, col) of the patch that was asked about, outlined on figures."""
    itself: tuple[tuple[int, int], ...] = ()
    """The (row, col) of what the query keeps by itself, its own cell first: no sink is there."""
    share_of_all: bool = False
    """Whether the values of all tokens, those without a place included, sum to 1."""
    blank: Bool[np.ndarray, "row col"] | None = None
    """The cells that hold no value, as those outside the query's window: nothing is drawn there."""
    request: Mapping[str, Any] | None = None
    """What it takes to compute it again, in plain values; None where that takes more than names."""
    method: str | None = None
    """Its name in `methods.METHODS`, where it is one of those."""

    def __post_init__(self) -> None:
        """Take private copies and check that everything fits together."""
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, refused below
            values = np.array(self.values, dtype=np.float32)
        values.setflags(write=False)
        for name, value in {
            "values": values,
            "facts": tuple((str(name), str(value)) for name, value in self.facts),
            "box": tuple(float(edge) for edge in self.box),
            "notes": tuple(map(str, self.notes)),
        }.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        known = self.values.ndim == 2 or self.values.shape[2:] == (3,)
        if not known or not self.values.size:
            raise BadOption(
                f"A heatmap is rows × columns with at least one patch; values of shape"
                f" {self.values.shape} came. Give one value a patch, or three to draw as a colour."
            )
        broken = int((~np.isfinite(self.values)).sum())
        if broken:
            raise CaptureFailed(
                f"{self.title}: {broken} of {self.values.size} values are not finite float32"
                " numbers, so there is nothing truthful to draw. Check the weights and the input"
                " for NaN and infinity."
            )
        if self.blank is not None and (self.blank.shape != self.grid or self.blank.all()):
            raise BadOption("Blank cells are marked on the map's own grid, and leave at least one.")
        if self.image.mode != "RGB":
            raise BadOption(
                f"A picture in mode RGB is expected, {self.image.mode} came."
                " Open it with attnviz.open_image."
            )
        left, top, right, bottom = self.box
        width, height = self.image.size
        area = all(map(isfinite, self.box)) and left < right and top < bottom
        if not (area and meets(self.box, self.image.size)):
            raise BadOption(
                f"The box (left, top, right, bottom) = {self.box} must have an area and meet the"
                f" picture, which is {width} × {height} pixels."
            )
        if self.query_cell is not None:
            row, col = self.query_cell
            rows, cols = self.grid
            if not (0 <= row < rows and 0 <= col < cols):
                raise BadOption(f"Patch {self.query_cell} is not in the {rows} × {cols} grid.")

    @property
    def grid(self) -> tuple[int, int]:
        """(rows, cols)."""
        rows, cols, *_ = self.values.shape
        return rows, cols

    @property
    def in_colour(self) -> bool:
        """Whether a patch has three values, to be drawn as red, green and blue."""
        return self.values.ndim == 3

    @property
    def drawn(self) -> Float32[np.ndarray, "patch *three"]:
        """The values of the patches that are neither blank nor wholly in the padding.

        Scales are chosen from these alone, and a colour bar is of these.
        """
        left, top, right, bottom = self.box
        width, height = self.image.size
        rows = _meeting(self.grid[0], top, bottom, height)
        cols = _meeting(self.grid[1], left, right, width)
        held = self.values[rows, cols][self.filled[rows, cols]]
        # All that is not blank may lie in the padding: then a scale is chosen from that.
        return held if len(held) else self.values[self.filled]

    @property
    def filled(self) -> Bool[np.ndarray, "row col"]:
        """The patches that hold a value."""
        return np.ones(self.grid, dtype=bool) if self.blank is None else ~self.blank

    def fact(self, name: str) -> str | None:
        """The value of one fact, or None where it wasn't given."""
        return dict(self.facts).get(name)

    @property
    def summary(self) -> str:
        """The method and its facts in one line, for captions; the provenance is in the metadata."""
        return "; ".join(said(self.title, self.facts))

    def named(self, picture: str) -> Self:
        """The same with the picture's name, 255 letters at most, among its facts."""
        return replace(self, facts=with_picture(self.facts, picture))

    def caption(
        self, alpha: float, mask: MassMask | None = None, *, facts: Facts | None = None
    ) -> list[str]:
        """What a figure says below its bar; `facts` stand for its own that cannot be printed."""
        told = said(self.title, self.facts if facts is None else facts)
        told += [f"opacity {alpha:g}", *([mask.summary] if mask else [])]
        return with_notes(told, self.notes)

    def cell_box(self, row: int, col: int) -> Box:
        """Where one patch lies in the picture: (left, top, right, bottom)."""
        left, top, right, bottom = self.box
        rows, cols = self.grid
        high, wide = (bottom - top) / rows, (right - left) / cols
        return left + col * wide, top + row * high, left + (col + 1) * wide, top + (row + 1) * high

    def outline(self, mask: MassMask) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """The mask's borders in the picture: segments from (x, y) to (x, y)."""
        return [
            (self.cell_box(row, col)[:2], self.cell_box(end_row, end_col)[:2])
            for row, col, end_row, end_col in mask.outline
        ]


def meets(box: Box, size: tuple[int, int]) -> bool:
    """Whether a part of the box lies in a picture of that (width, height)."""
    left, top, right, bottom = box
    return left < size[0] and right > 0 and top < size[1] and bottom > 0


def _meeting(count: int, start: float, end: float, length: int) -> slice:
    """The cells of a grid from `start` to `end` of which a part lies between 0 and `length`."""
    side = (end - start) / count
    # A little inside, so that an edge that rounding moved does not count as a meeting.
    first, last = (0 - start) / side + 1e-6, (length - start) / side - 1e-6
    return slice(max(0, floor(first)), min(count, ceil(last)))


@dataclass(frozen=True, eq=False)
class Placement:
    """The rectangle of a picture's pixels that a grid covers, each pixel centre in grid units."""

    top: int
    left: int
    down: Float64[np.ndarray, " height"]
    """Grid rows from the grid's upper edge, for each covered row of pixels; 0.5 is mid-patch."""
    across: Float64[np.ndarray, " width"]

    @property
    def cells(self) -> tuple[Int[np.ndarray, " height"], Int[np.ndarray, " width"]]:
        """The patch row of each covered pixel row, and the patch column of each pixel column."""
        return np.floor(self.down).astype(np.intp), np.floor(self.across).astype(np.intp)


def place(grid: tuple[int, int], box: Box, size: tuple[int, int]) -> Placement:
    """Where a grid that fills `box` falls on a picture of `size` (height, width)."""
    left, top, right, bottom = box
    first_row, down = _along(grid[0], top, bottom, size[0])
    first_col, across = _along(grid[1], left, right, size[1])
    return Placement(first_row, first_col, down, across)


def _along(
    count: int, start: float, end: float, length: int
) -> tuple[int, Float64[np.ndarray, " pixel"]]:
    pixels = np.arange(length)
    centres = pixels + 0.5
    covered = pixels[(start <= centres) & (centres < end)]
    at = (covered + 0.5 - start) * (count / (end - start))
    # Rounding must not push the last pixel out of the last patch.
    return int(covered[0]) if covered.size else 0, at.clip(0.0, np.nextafter(count, 0))


def nearest(
    values: Float[np.ndarray, "row col *rest"], placement: Placement
) -> Float[np.ndarray, "height width *rest"]:
    """Each pixel gets the value of the patch that it lies in."""
    rows, cols = placement.cells
    return values.take(rows, 0).take(cols, 1)


def bilinear(
    values: Float[np.ndarray, "row col *rest"], placement: Placement
) -> Float[np.ndarray, "height width *rest"]:
    """Straight lines between the patch centres, level from the outer centres to the edges."""
    return _lines(_lines(values.astype(np.float64), placement.down, 0), placement.across, 1)


def _lines(
    values: Float64[np.ndarray, "down across *rest"], at: Float64[np.ndarray, " pixel"], axis: int
) -> Float64[np.ndarray, "down2 across2 *rest"]:
    last = values.shape[axis] - 1
    centred = (at - 0.5).clip(0, last)
    before = np.floor(centred).astype(np.intp)
    others = [other for other in range(values.ndim) if other != axis]
    share = np.expand_dims(centred - before, others)
    after = np.minimum(before + 1, last)
    lower, upper = values.take(before, axis), values.take(after, axis)
    # In this form a level stretch stays level to the last bit.
    mixed: Float64[np.ndarray, "down2 across2 *rest"] = lower + (upper - lower) * share
    return mixed


INTERPOLATIONS: Mapping[
    str,
    Callable[
        [Float[np.ndarray, "row col *rest"], Placement], Float[np.ndarray, "height width *rest"]
    ],
] = {"nearest": nearest, "bilinear": bilinear}


def resample(
    values: Float[np.ndarray, "row col"],
    box: Box,
    size: tuple[int, int],
    interpolation: str = "nearest",
) -> tuple[Float32[np.ndarray, "height width"], Bool[np.ndarray, "height width"]]:
    """The values on a picture's pixels, and which pixels the box covers; the others are NaN.

    `box` is in pixels of that picture and `size` is its (height, width). A pixel is covered when
    its centre, half a pixel from its corner, lies in the box.
    """
    if interpolation not in INTERPOLATIONS:
        raise unknown("interpolation", interpolation, INTERPOLATIONS)
    rows, cols = values.shape
    placement = place((rows, cols), box, size)
    covered = np.s_[
        placement.top : placement.top + placement.down.size,
        placement.left : placement.left + placement.across.size,
    ]
    pixels = np.full(size, np.nan, dtype=np.float32)
    pixels[covered] = INTERPOLATIONS[interpolation](values, placement)
    inside = np.zeros(size, dtype=bool)
    inside[covered] = True
    return pixels, inside


def shared_scale(
    heats: Iterable[Heatmap], scale: str = "own", *, clip: float | None = None
) -> Scale:
    """One scale for several maps of the same unit, so that equal colours mean equal values."""
    every = list(heats)
    units = sorted({heat.unit for heat in every})
    if len(units) != 1:
        raise BadOption(
            f"Maps that share a scale need one unit; {', '.join(units) or 'no map'} came."
        )
    if any(heat.in_colour for heat in every):
        raise BadOption("Maps that share a scale have one value a patch; three came.")
    pooled = np.concatenate([heat.drawn for heat in every])
    chosen = choose_scale(pooled, scale, clip=clip)
    return Scale(chosen.low, chosen.high, f"{chosen.name}, shared by {len(every)} maps")
