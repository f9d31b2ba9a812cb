"""timm's Hiera: windows and pooling in an order of tokens of its own."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Int
from timm.models.hiera import Hiera
from torch import Tensor, nn

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout
from models.sizes import Size
from models.timm_family import Family, Place


def unrolled(grid: Size, strides: list[Size]) -> Int[Tensor, " token"]:
    """The cell of the grid at each place of Hiera's sequence.

    Cells that one pooling makes one lie a quarter of the sequence apart: the place in the finest
    2 × 2 comes first, then the place among those, and so on, and last the row and column of the
    coarsest cell (Ryali et al. 2023, arXiv:2306.00989).
    """
    cells = rearrange(torch.arange(prod(grid)), "(row col) -> 1 row col", row=grid[0])
    for high, wide in strides:
        pattern = "part (row high) (col wide) -> (part high wide) row col"
        cells = rearrange(cells, pattern, high=high, wide=wide)
    return rearrange(cells, "part row col -> (part row col)")


def _pooled_before(module: Any, number: int) -> int:
    """How many poolings of queries the layers before this one make."""
    return sum(block.attn.q_stride > 1 for block in module.blocks[:number])


def _strides(module: Any, done: int) -> list[Size]:
    return [module.q_stride] * (len(module.stage_ends) - 1 - done)


def hiera(module: Any, name: str) -> Place:
    """Mask units are windows; the first layer of a stage takes the largest query of each 2 × 2."""
    number = int(name.split(".")[1])
    done, attn = _pooled_before(module, number), module.blocks[number].attn
    then = done + (attn.q_stride > 1)

    def place(layout: TokenLayout) -> Geometry:
        grids, orders = [], []
        for steps in (done, then):
            high, wide = (side**steps for side in module.q_stride)
            grid = (layout.grid[0] // high, layout.grid[1] // wide)
            grids.append(TokenLayout((), grid))
            orders.append(unrolled(grid, _strides(module, steps)))
        keys, queries = grids
        count = 1
        stage = sum(end < number for end in module.stage_ends)
        kind = f"all tokens of stage {stage}"
        if attn.use_mask_unit_attn:
            count = keys.patches // (attn.q_stride * attn.window_size)
            high, wide = (side // at**done for side, at in _units(module))
            kind = f"windows of {high} × {wide}"
        if then > done:
            kind += f", queries pooled to {queries.grid[0]} × {queries.grid[1]}"
        answering, asking = (
            rearrange(order, "(place window) -> window place", window=count) for order in orders
        )
        return Geometry(queries, keys, kind, asking, answering)

    return place


def _units(module: Any) -> list[tuple[int, int]]:
    """(cells, stride) of a mask unit in each direction."""
    return list(zip(module.mask_unit_size, module.q_stride, strict=True))


def in_order(module: Any) -> bool:
    """Whether the last layer hands its tokens on row by row: all poolings are made by then."""
    return not _strides(module, _pooled_before(module, len(module.blocks)))


HIERA: Mapping[type[nn.Module], Family] = {
    Hiera: Family(
        patch=lambda module: module.patch_stride,
        native=lambda module: (
            module.tokens_spatial_shape[0] * module.patch_stride[0],
            module.tokens_spatial_shape[1] * module.patch_stride[1],
        ),
        places={"": hiera},
        prefix=(),
        reads_tokens=in_order,
    )
}
"""Exact class → family."""
