"""timm's families whose queries are pooled between stages: MViT v2, and SAM 2's Hiera."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import Any

from timm.models.hieradet_sam2 import HieraDet
from timm.models.mvitv2 import MultiScaleVit
from torch import nn

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout
from models.cells import share_of, windows
from models.sizes import Size, pair
from models.timm_family import Family, Place, said_size


def pooled(grid: Size, pool: Any) -> Size:
    """The grid that a pooling, or a convolution in its place, makes of another; itself for None."""
    if pool is None:
        return grid
    kernel, stride, padding = map(pair, (pool.kernel_size, pool.stride, pool.padding))
    rows, cols = (
        (side + 2 * around - wide) // step + 1
        for side, wide, step, around in zip(grid, kernel, stride, padding, strict=True)
    )
    return rows, cols


def _stride(pool: Any) -> Size:
    return (1, 1) if pool is None else pair(pool.stride)


def mvit(module: Any, name: str) -> Place:
    """Queries and keys are each pooled, in 3 × 3 cells; cells are equal parts of the picture.

    The class token, where there is one, is not pooled: it asks and answers in every layer.
    """
    attn: Any = module.get_submodule(name)
    every = [block.attn for stage in module.stages for block in stage.blocks]
    before = [each.pool_q for each in every[: every.index(attn)]]

    def place(layout: TokenLayout) -> Geometry:
        grid, scale = layout.grid, (1, 1)
        for pool in before:
            grid, scale = pooled(grid, pool), _times(scale, _stride(pool))
        asking, answering = pooled(grid, attn.pool_q), pooled(grid, attn.pool_k)
        stage = name.split(".")[1]
        words = f"all tokens of stage {stage}"
        if asking != answering:
            words += f", to keys pooled to {answering[0]} × {answering[1]}"
        return Geometry(
            TokenLayout(layout.prefix, asking),
            TokenLayout(layout.prefix, answering),
            words,
            branch=f"stage {stage}",
            asks_at=share_of(asking, _times(scale, _stride(attn.pool_q)), layout),
            place=share_of(answering, _times(scale, _stride(attn.pool_k)), layout),
        )

    return place


def _times(one: Size, other: Size) -> Size:
    return one[0] * other[0], one[1] * other[1]


def _mvit_native(module: Any) -> Size:
    """The size that its relative positions were made for: the first stage's grid, unpooled."""
    stage, (high, wide) = module.stages[0], module.patch_embed.proj.stride
    down = _stride(stage.blocks[0].attn.pool_q)
    rows, cols = _times(stage.feat_size, down)
    return rows * high, cols * wide


def hieradet(module: Any, name: str) -> Place:
    """Windows, in which the first layer of a stage pools its queries; in some layers no windows."""
    number = int(name.split(".")[1])
    block = module.blocks[number]
    down = [each.q_stride or (1, 1) for each in module.blocks]
    before, size = (1, 1), pair(block.window_size)
    for each in down[:number]:
        before = _times(before, each)
    high, wide = down[number]

    def place(layout: TokenLayout) -> Geometry:
        rows, cols = layout.grid[0] // before[0], layout.grid[1] // before[1]
        keys = TokenLayout((), (rows, cols))
        queries = TokenLayout((), (rows // high, cols // wide))
        stage = sum(end < number for end in module.stage_ends)
        kind = f"windows of {size[0]} × {size[1]}" if any(size) else f"all tokens of stage {stage}"
        if high * wide > 1:
            kind += f", queries pooled to {queries.grid[0]} × {queries.grid[1]}"
        asking = answering = None
        if any(size):
            answering = windows(keys.grid, size)
            asking = windows(queries.grid, (size[0] // high, size[1] // wide))
        return Geometry(queries, keys, kind, asking, answering)

    return place


def _hieradet_patch(module: Any) -> Size:
    return pair(module.patch_embed.proj.stride)


def _hieradet_step(module: Any) -> Size:
    """What its first windows and all of its poolings tile."""
    high, wide = _hieradet_patch(module)
    rows, cols = (1, 1)
    for block in module.blocks:
        rows, cols = _times((rows, cols), block.q_stride or (1, 1))
    window = module.window_spec[0]
    return high * lcm(window, rows), wide * lcm(window, cols)


POOLED: Mapping[type[nn.Module], Family] = {
    MultiScaleVit: Family(
        patch=lambda module: module.patch_embed.proj.stride,
        native=_mvit_native,
        places={"": mvit},
    ),
    HieraDet: Family(
        patch=_hieradet_patch,
        native=lambda module: said_size(module, _hieradet_step(module)),
        any_size=lambda module: True,
        step=_hieradet_step,
        places={"": hieradet},
        prefix=(),
    ),
}
"""Exact class → family."""
