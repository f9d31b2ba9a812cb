"""What maps stand for in timm's networks that are convolutional for the rest, stage by stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from einops import rearrange
from timm.layers import Attention
from timm.layers.attention2d import MultiQueryAttention2d
from timm.layers.bottleneck_attn import BottleneckAttn
from timm.layers.halo_attn import HaloAttn
from timm.models import efficientformer_v2, levit
from torch import nn
from torch.nn import functional as F

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout
from models.cells import coarser, share_of, windows
from models.sizes import Size
from models.timm_family import Place
from models.timm_hybrid_kinds import HYBRID_KINDS

Scale = tuple[float, float]
"""How many cells of a stage, in a row, one query and one key are wide."""


def _shrinking(_: nn.Module) -> Scale:
    """The stage's cells ask those of the stage before."""
    return 1, 0.5


def _multi_query(attn: Any) -> Scale:
    return attn.query_strides[0], attn.kv_stride


def _strided(attn: Any) -> Scale:
    """EfficientFormer V2 attends on a coarser grid where it has a stride, and enlarges after."""
    scale = 1 if attn.upsample is None else attn.upsample.scale_factor
    return scale, scale


def _pooled_after(attn: Any) -> Scale:
    """Of a block that halves the grid: keys are the finer grid's, and queries, if pooled later."""
    pooled = isinstance(attn.pool, nn.AvgPool2d)
    if pooled:
        return 0.5, 0.5
    return 1, 1 / getattr(attn, "block_stride", 1)


SCALES: Mapping[type[nn.Module], Callable[[Any], Scale]] = {
    levit.AttentionDownsample: _shrinking,
    efficientformer_v2.Attention2dDownsample: _shrinking,
    efficientformer_v2.Attention2d: _strided,
    MultiQueryAttention2d: _multi_query,
    BottleneckAttn: _pooled_after,
    HaloAttn: _pooled_after,
}
"""Exact class → its scale; for all others queries and keys are the stage's cells."""


def reduction(module: Any, name: str) -> int:
    """How many pixels wide a cell of that layer's stage is, as the model itself says."""
    stage = _stage(name)
    ends = [(_stage(each["module"], 99), int(each["reduction"])) for each in module.feature_info]
    return next(pixels for number, pixels in ends if number >= stage)


def _stage(name: str, other: int = -1) -> int:
    found = re.match(r"(?:stages|blocks)\.(\d+)", name)
    if found is None:
        return other if name.startswith("final") else -1
    return int(found[1])


def _scale(attn: nn.Module) -> Scale:
    scale = SCALES.get(type(attn))
    return (1, 1) if scale is None else scale(attn)


def finest(module: nn.Module) -> Size:
    """(rows, cols) in pixels of the smallest cell that asks or answers."""
    side = min(
        int(reduction(module, name) * min(_scale(part)))
        for name, part in module.named_modules()
        if type(part) in HYBRID_KINDS or type(part) is Attention
    )
    return side, side


def pure_stage(module: Any, name: str) -> Place:
    """The cells of a stage in which each is worked on by itself between layers."""
    return _place(module, name, f"stage {_stage(name)}")


def mixed_stage(module: Any, name: str) -> Place:
    """The cells of a stage in a network whose convolutions move what they hold between layers."""
    return _place(module, name, name)


def unfolded(module: Any, name: str) -> Place:
    """MobileViT's windows: the cells at the same place of each patch, spread over the grid."""
    block = name.partition(".transformer")[0]
    high, wide = module.get_submodule(block).patch_size

    def arranged(whole: Geometry) -> Geometry:
        # A grid that the patches do not tile is resampled to one that they do.
        rows, cols = (-(-n // side) for n, side in zip(whole.keys.grid, (high, wide), strict=True))
        tokens = TokenLayout((), (rows * high, cols * wide))
        cells = windows(tokens.grid, (rows, cols), strided=True)
        kind = f"{rows} × {cols} cells at the same place of each {high} × {wide}"
        return replace(
            whole,
            queries=tokens,
            keys=tokens,
            kind=kind,
            rows=cells,
            cols=cells,
            widths=whole.widths if tokens == whole.keys else None,
        )

    return _place(module, name, block, arranged)


def cascaded(module: Any, name: str) -> Place:
    """EfficientViT's windows, unless one is the whole grid."""
    side = module.get_submodule(name).resolution
    return _place(module, name, name, lambda whole: _in_windows(whole, side))


def modulated(module: Any, name: str) -> Place:
    """iFormer's windows, where it is made with any."""
    side = module.get_submodule(name).window_size
    if not side:
        return mixed_stage(module, name)
    return _place(module, name, name, lambda whole: _in_windows(whole, side))


def runs(module: Any, name: str) -> Place:
    """Next-ViT's keys: each is the mean of cells that follow each other in reading order."""
    run = module.get_submodule(name).N_ratio
    if run == 1:
        return mixed_stage(module, name)

    def arranged(whole: Geometry) -> Geometry:
        cells = torch.arange(whole.keys.tokens)[None]
        kind = f"{whole.kind}; each {run} keys, one after the other along the rows, as one"
        return replace(whole, kind=kind, cols=cells, run=run)

    return _place(module, name, name, arranged)


def haloed(module: Any, name: str) -> Place:
    """Bottleneck attention is among all cells; halo attention's blocks ask beyond their edges."""
    attn = module.get_submodule(name)
    if not isinstance(attn, HaloAttn):
        return mixed_stage(module, name)
    side, halo, asked = attn.block_size, attn.halo_size, attn.block_size_ds

    def arranged(whole: Geometry) -> Geometry:
        rows, cols = whole.keys.grid
        cells = torch.arange(rows * cols).unflatten(0, (rows, cols))
        wide = F.pad(cells, (halo,) * 4, value=-1)
        seen = wide.unfold(0, attn.win_size, side).unfold(1, attn.win_size, side)
        return replace(
            whole,
            kind=f"windows of {side} × {side} with {halo} more around",
            rows=windows(whole.queries.grid, (asked, asked)),
            cols=rearrange(seen, "row col high wide -> (row col) (high wide)"),
            every=attn.block_stride if attn.block_stride > 1 else None,
        )

    return _place(module, name, name, arranged)


def _in_windows(whole: Geometry, side: int) -> Geometry:
    if whole.keys.grid == (side, side):
        return whole
    cells = windows(whole.keys.grid, (side, side))
    return replace(whole, kind=f"windows of {side} × {side}", rows=cells, cols=cells)


def _said(whole: Geometry) -> Geometry:
    """All to all; where the grids differ, how."""
    asks, answers = whole.queries.grid, whole.keys.grid
    if asks == answers:
        return whole
    if asks[0] * asks[1] < answers[0] * answers[1]:
        kind = (
            f"{asks[0]} × {asks[1]} tokens, for the next stage, ask all {answers[0]} × {answers[1]}"
        )
        return replace(whole, kind=kind, every=2)
    return replace(whole, kind=f"{whole.kind}, to keys shrunk to {answers[0]} × {answers[1]}")


def _place(
    module: Any,
    name: str,
    branch: str,
    arranged: Callable[[Geometry], Geometry] = _said,
) -> Place:
    stage, unit = _stage(name), finest(module)[0]
    pixels = reduction(module, name)
    asks, answers = (int(pixels * scale / unit) for scale in _scale(module.get_submodule(name)))

    def place(layout: TokenLayout) -> Geometry:
        queries, keys = coarser(layout.grid, asks), coarser(layout.grid, answers)
        whole = Geometry(
            TokenLayout((), queries),
            TokenLayout((), keys),
            f"all tokens of stage {stage}",
            branch=branch,
            widths=(asks, answers),
            asks_at=share_of(queries, (asks, asks), layout),
            place=share_of(keys, (answers, answers), layout),
        )
        return arranged(whole)

    return place
