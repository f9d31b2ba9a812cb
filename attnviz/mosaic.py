"""Many heads' maps as one picture: a tile a head, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from einops import repeat
from jaxtyping import Bool, Float
from PIL import Image

from attnviz.colour import bounded, colourise
from attnviz.errors import BadOption, CaptureFailed, unknown
from attnviz.scale import Scale, choose_scale

TILE_SCALES = ("own", "shared")
"""Each tile's own scale, or one for all; any other is given ready."""


@dataclass(frozen=True, eq=False)
class Mosaic:
    """Every head of every layer in one picture: layers downwards, heads across, equal cells."""

    image: Image.Image
    layers: int
    heads: int
    scale: Scale | None
    """The scale that all tiles share, or None where each has its own."""
    columns: int
    """Tiles in a line; `heads`, unless the tiles are too long for that."""

    @property
    def lines(self) -> int:
        """Lines of tiles."""
        return self.layers * self.heads // self.columns

    @property
    def cell(self) -> tuple[int, int]:
        """(height, width) of one cell in pixels, the gap included."""
        return self.image.height // self.lines, self.image.width // self.columns

    def centre(self, layer: int, head: int) -> tuple[float, float]:
        """The middle of a cell as (x, y) in pixels."""
        height, width = self.cell
        line, column = divmod(layer * self.heads + head, self.columns)
        return (column + 0.5) * width, (line + 0.5) * height

    def at(self, x: float, y: float) -> tuple[int, int]:
        """The (layer, head) of the cell under a point in pixels."""
        if not (0 <= x < self.image.width and 0 <= y < self.image.height):
            raise BadOption(
                f"The point ({x}, {y}) is outside the mosaic of {self.image.width} ×"
                f" {self.image.height} pixels."
            )
        height, width = self.cell
        return divmod(int(y // height) * self.columns + int(x // width), self.heads)


def tiles_there(
    tiles: Float[np.ndarray, "layer head row col"],
) -> Bool[np.ndarray, "layer head"]:
    """Which tiles are of a head: layers may have fewer, and then the rest is NaN throughout."""
    return ~np.asarray(np.isnan(tiles).all((2, 3)))


def scale_of_all(
    there: Float[np.ndarray, "tile row col"], scale: str | Scale, *, clip: float | None
) -> Scale | None:
    """The one scale of all tiles; None where each has its own. UnknownName for any other name."""
    if isinstance(scale, Scale):
        return choose_scale(there, scale, clip=clip)
    if scale not in TILE_SCALES:
        raise unknown("scale of a grid of heads", scale, TILE_SCALES)
    return choose_scale(there, clip=clip) if scale == "shared" else None


def mosaic(
    tiles: Float[np.ndarray, "layer head row col"],
    *,
    scale: str | Scale = "own",
    colormap: str = "inferno",
    clip: float | None = None,
    max_side: int = 1100,
    gap: int = 2,
    columns: int | None = None,
) -> Mosaic:
    """Draw every tile as whole pixels a patch, with `gap` white pixels between tiles.

    `scale` is `"own"` (each tile has its own range), `"shared"` (one range for all) or a `Scale`.
    A tile of NaN alone stands for a head that is not there: its place stays white, as the gaps are.
    The longer side stays within `max_side` unless a patch would be less than one pixel. `columns`
    tiles make a line, a layer's heads if None. Tiles longer than `LONGEST` : 1 are stretched
    towards it, as far as there is room.
    """
    layers, heads, rows, cols = tiles.shape
    there = tiles_there(tiles)
    if not np.isfinite(tiles[there]).all():
        raise CaptureFailed("Some heads have values that are not finite; check the weights.")
    shared = scale_of_all(tiles[there], scale, clip=clip)
    columns = heads if columns is None else columns
    if columns < 1 or layers * heads % columns:
        raise BadOption(f"{layers} × {heads} tiles can't be laid out in full lines of {columns}.")
    lines = layers * heads // columns
    room_down, room_across = (max_side // lines - gap) // rows, (max_side // columns - gap) // cols
    patch = max(1, min(room_down, room_across))
    tile_wide, tile_high = bounded((cols * patch, rows * patch))
    down = max(patch, min(room_down, -(-tile_high // rows)))
    across = max(patch, min(room_across, -(-tile_wide // cols)))
    high, wide = rows * down + gap, cols * across + gap
    canvas = np.full((lines * high, columns * wide, 3), 255, np.uint8)
    for index, (layer, head) in enumerate(np.ndindex(layers, heads)):
        tile = tiles[layer, head]
        if not there[layer, head]:
            continue
        colours = colourise(tile, shared or choose_scale(tile, clip=clip), colormap)
        line, column = divmod(index, columns)
        top, left = line * high + gap // 2, column * wide + gap // 2
        canvas[top : top + rows * down, left : left + cols * across] = repeat(
            colours, "row col rgb -> (row down) (col across) rgb", down=down, across=across
        )
    return Mosaic(Image.fromarray(canvas), layers, heads, shared, columns)
