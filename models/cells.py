"""Cells of a grid, whoever made it: numbered in windows, and where a coarser grid of them lies."""

from __future__ import annotations

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from attnviz.geometry import Geometry, Share
from attnviz.tokens import TokenLayout
from models.sizes import Size


def windows(
    grid: Size,
    size: Size,
    *,
    shift: Size = (0, 0),
    strided: bool = False,
    padded_first: bool = False,
) -> Int[Tensor, "window place"]:
    """The number of the cell at each place of each window; -1 for padding below and to the right.

    A shift rolls the grid up and to the left first, or after the padding. Strided windows take
    every so-manieth cell: `size` of them in each direction, spread over the whole grid.
    """
    cells = rearrange(torch.arange(grid[0] * grid[1]), "(row col) -> row col", row=grid[0])
    moved = (-shift[0], -shift[1])
    below, right = -grid[0] % size[0], -grid[1] % size[1]
    cells = cells if padded_first else cells.roll(moved, (0, 1))
    cells = F.pad(cells, (0, right, 0, below), value=-1)
    cells = cells.roll(moved, (0, 1)) if padded_first else cells
    axes = "(high row) (wide col)" if strided else "(row high) (col wide)"
    pattern = f"{axes} -> (row col) (high wide)"
    return rearrange(cells, pattern, high=size[0], wide=size[1])


def coarser(grid: Size, scale: int) -> Size:
    """(rows, cols) of cells `scale` times as wide as the grid's; a rest of the grid counts."""
    rows, cols = (-(-side // scale) for side in grid)
    return rows, cols


def share_of(grid: Size, cell: Size, layout: TokenLayout) -> Share:
    """What of the input a grid covers that begins at its upper left corner.

    Each of its cells is as high and as wide as `cell` (rows, cols) of the layout's.
    """
    (rows, cols), (all_rows, all_cols) = grid, layout.grid
    return 0.0, 0.0, cols * cell[1] / all_cols, rows * cell[0] / all_rows


def placed(
    layout: TokenLayout,
    scale: int,
    kind: str,
    cells: Callable[[Size], Int[Tensor, "window place"]] | None = None,
    apart: Bool[Tensor, "window query key"] | None = None,
) -> Geometry:
    """What a layer stands for whose cells are `scale` times as wide as the layout's.

    All tokens attend to all, or those of a window of `cells`, which are told for its grid.
    """
    tokens = TokenLayout((), coarser(layout.grid, scale))
    at = None if cells is None else cells(tokens.grid)
    place = share_of(tokens.grid, (scale, scale), layout)
    return Geometry(tokens, tokens, kind, at, at, place=place, apart=apart)
