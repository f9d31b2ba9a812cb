"""One layer's whole map in 16 bits: what the browser draws from while a pointer moves."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float, Float32, Float64, UInt16
from torch import Tensor
from torch.nn import functional as F

from attnviz.errors import BadOption
from attnviz.geometry import Geometry
from attnviz.methods.fusion import fuse
from attnviz.record import AttentionRecord
from attnviz.tokens import TokenLayout

LIMIT = 4 * 2**20
"""Bytes of a map, 2 a pair of patches, above which patches are pooled in blocks."""

STEPS = 65534
"""Steps from a map's lowest value (0) to its highest; the number after it marks a blank cell."""

BLANK = STEPS + 1

KNEE = 49152
"""Of these steps, those up to the row's 99th percentile: what is left of it when the scale is cut.

Where one patch holds nearly all, equal steps to the highest value would be too few for all others.
"""

AT_ONCE = 64
"""Rows put in steps together: with all, what lies between would not fit a processor's cache."""

PIECE = 2**18
"""Bytes compressed at a time, so that a run that is not wanted any more ends soon."""


@dataclass(frozen=True)
class LiveMap:
    """Every patch's map in one layer, compressed, and named by what it holds."""

    name: str
    askers: tuple[int, ...]
    """For each patch of the picture, row by row, its row of the map; -1 where it does not ask."""
    packed: bytes
    """`name`, 16 letters; then, compressed by zlib, what `live.js` unpacks.

    That is (asker, cell) as two int32; each asker's lowest value, 99th percentile and highest value
    as float32; and of each pair the lower bytes of its 16 bits, then the upper ones, which compress
    far better apart.
    """


@dataclass(frozen=True)
class Ends:
    """Who asks and who answers on a live map, each in blocks of patches."""

    geometry: Geometry
    """Of the layer, turned where the map is of who looks at the query."""
    pool: int
    """Rows and columns of patches in a block; 1: each patch is itself."""

    @property
    def askers(self) -> tuple[int, int]:
        """(rows, cols) of those who ask."""
        return pooled(self.geometry.queries.grid, self.pool)

    @property
    def cells(self) -> tuple[int, int]:
        """(rows, cols) of what a map shows."""
        return pooled(self.geometry.keys.grid, self.pool)


def pooled(grid: tuple[int, int], pool: int) -> tuple[int, int]:
    """(rows, cols) of blocks; a last one may hold fewer patches."""
    rows, cols = (-(-count // pool) for count in grid)
    return rows, cols


def ends_of(record: AttentionRecord, options: dict[str, Any]) -> Ends | None:
    """Who asks and answers on the live map; None where windows are too fine for it.

    Blocks would reach over the edges of windows, and show what no patch sees.
    """
    return ends_within(record.geometry_of(options))


def ends_within(geometry: Geometry) -> Ends | None:
    """The same of a layer's geometry."""
    pool = 1
    while _bytes(ends := Ends(geometry, pool)) > LIMIT:
        if geometry.in_windows:
            return None
        pool += 1
    return ends


def _bytes(ends: Ends) -> int:
    (rows, cols), (down, across) = ends.askers, ends.cells
    return 2 * rows * cols * down * across


def live_map(
    record: AttentionRecord, *, going_on: Callable[[], object] = lambda: None, **options: Any
) -> LiveMap:
    """The map of each patch, by the options of the method `attention`; it must have `ends_of` it.

    `going_on` is called between pieces of work, and may raise to end it.
    """
    ends = ends_of(record, options)
    if ends is None:
        raise ValueError("windows too fine")
    values, reached = _whole(record, ends, options, going_on)
    corners, steps = quantised(values, reached)
    raw = steps.astype("<u2").tobytes()
    head = np.array(values.shape, "<i4").tobytes()
    ranges = corners.astype("<f4").tobytes()
    packed = _deflated(head + ranges + raw[0::2] + raw[1::2], going_on)
    name = hashlib.blake2b(packed, digest_size=8).hexdigest()
    asks = ends.geometry.asks.tolist()
    patches = cells_of(record.layout.grid)
    askers = tuple(_asker(ends, asks, patch, record.layout) for patch in patches)
    return LiveMap(name, askers, name.encode("ascii") + packed)


def cells_of(grid: tuple[int, int]) -> list[tuple[int, int]]:
    """Each (row, col) of a grid, row by row."""
    rows, cols = grid
    return [*product(range(rows), range(cols))]


def _asker(ends: Ends, asks: list[bool], patch: tuple[int, int], layout: TokenLayout) -> int:
    geometry = ends.geometry
    try:
        asked = geometry.asked(patch, layout)
    except BadOption:  # beyond the layer's cells
        return -1
    tokens = geometry.queries.query_tokens(asked)
    if not asks[tokens.start]:
        return -1
    row, col = (place // ends.pool for place in geometry.queries.cell(tokens.start))
    return row * ends.askers[1] + col


def quantised(
    values: Float32[np.ndarray, "asker cell"], reached: Bool[np.ndarray, "asker cell"]
) -> tuple[Float32[np.ndarray, "3 asker"], UInt16[np.ndarray, "asker cell"]]:
    """Each row's lowest value, 99th percentile and highest value, and its values in steps.

    Step 0 is the lowest value, `KNEE` the percentile and `STEPS` the highest; between two of them
    steps are equal, and a value comes back at most half a step off. Cells that are not reached are
    `BLANK`.
    """
    held = np.where(reached, values, np.float32(np.nan))  # sorted behind all numbers
    # The percentile is one of the values, not below what lies between two of them.
    at = np.maximum(-(-99 * (reached.sum(1, keepdims=True) - 1) // 100), 0)
    knee = np.take_along_axis(np.partition(held, np.unique(at), axis=1), at, axis=1)
    low, high = (each.reduce(held, axis=1, keepdims=True) for each in (np.fmin, np.fmax))
    corners = np.nan_to_num(np.concatenate([low, knee, high], axis=1).T)
    low, knee, high = (each.astype(np.float64) for each in (low, knee, high))  # as browsers have it
    small, large = _per_unit(KNEE, low, knee), _per_unit(STEPS - KNEE, knee, high)
    steps = np.empty(values.shape, np.uint16)
    for start in range(0, len(values), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        above = KNEE + (held[rows] - knee[rows]) * large[rows]
        below = (held[rows] - low[rows]) * small[rows]
        found = np.rint(np.where(held[rows] > knee[rows], above, below))
        steps[rows] = np.where(reached[rows], found, BLANK)
    return corners, steps


def _per_unit(
    steps: int, low: Float64[np.ndarray, "asker 1"], high: Float64[np.ndarray, "asker 1"]
) -> Float64[np.ndarray, "asker 1"]:
    """So many steps over a range; 0 where it is empty."""
    return np.divide(steps, high - low, out=np.zeros_like(low), where=high > low)


def _whole(
    record: AttentionRecord, ends: Ends, options: dict[str, Any], going_on: Callable[[], object]
) -> tuple[Float32[np.ndarray, "asker cell"], Bool[np.ndarray, "asker cell"]]:
    """Who gives what to whom, (asker, cell), and which pairs can meet at all."""
    layer, turned = record.layers[options["layer"]], options["direction"] == "to"
    geometry = record.geometry(layer)  # as the layer's rows are read: queries, then keys
    reached = _reached(geometry)
    rows: list[Float[Tensor, "row cell"]] = []
    for start, stop in layer.spans():
        going_on()
        block = layer.source.block(start, stop)
        head = options.get("head")
        one = fuse(block, options.get("head_fusion", "mean")) if head is None else block[head]
        rows.append(geometry.keys.to_grid(one[max(0, len(geometry.queries.prefix) - start) :]))
    values = rearrange(torch.cat(rows).float().cpu(), "asker row col -> asker (row col)")
    if turned:
        values, reached = values.mT, reached.mT
    asking, answering = ends.geometry.queries, ends.geometry.keys
    if ends.pool > 1:
        values = _in_blocks(values, asking, answering, ends.pool)
        reached = _in_blocks(reached.float(), asking, answering, ends.pool) > 0
    return values.contiguous().numpy(), reached.contiguous().numpy()


def _reached(geometry: Geometry) -> Bool[Tensor, "query key"]:
    """Which patches could give to which, as `Geometry.reach` has it of each."""
    asks = geometry.queries.to_grid(geometry.asks)
    answers = geometry.keys.to_grid(geometry.answers)
    meet = rearrange(asks, "r c -> (r c) 1") & rearrange(answers, "r c -> 1 (r c)")
    if geometry.rows is None or geometry.cols is None:
        return meet
    found = torch.zeros(geometry.queries.tokens, geometry.keys.tokens, dtype=torch.bool)
    for window, (asked, answering) in enumerate(zip(geometry.rows, geometry.cols, strict=True)):
        pairs = torch.ones(len(asked), len(answering), dtype=torch.bool)
        if geometry.apart is not None:
            pairs = ~geometry.apart[window]
        row, col = (pairs & (asked >= 0)[:, None] & (answering >= 0)).nonzero(as_tuple=True)
        found[asked[row], answering[col]] = True
    return found[len(geometry.queries.prefix) :, len(geometry.keys.prefix) :]


def _in_blocks(
    values: Float[Tensor, "asker cell"], asking: TokenLayout, answering: TokenLayout, pool: int
) -> Float[Tensor, "block part"]:
    """The mean over the patches of each block, of those who ask and of those who answer."""
    by_cell = rearrange(values, "asker (row col) -> asker 1 row col", row=answering.grid[0])
    values = rearrange(_mean(by_cell, pool), "asker 1 row col -> asker (row col)")
    by_asker = rearrange(values, "(row col) cell -> cell 1 row col", row=asking.grid[0])
    return rearrange(_mean(by_asker, pool), "cell 1 row col -> (row col) cell")


def _mean(grids: Float[Tensor, "n 1 row col"], pool: int) -> Float[Tensor, "n 1 row2 col2"]:
    return F.avg_pool2d(grids, pool, ceil_mode=True)


def _deflated(data: bytes, going_on: Callable[[], object]) -> bytes:
    """By zlib, piece by piece, looking for runs alone: half of a map's bytes are noise to it."""
    worker = zlib.compressobj(1, strategy=zlib.Z_RLE)
    parts = []
    for start in range(0, len(data), PIECE):
        going_on()
        parts.append(worker.compress(data[start : start + PIECE]))
    return b"".join([*parts, worker.flush()])
