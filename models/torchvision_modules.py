"""torchvision's Vision Transformers and Swin Transformers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torchvision.models.swin_transformer import (
    ShiftedWindowAttention,
    ShiftedWindowAttentionV2,
    SwinTransformer,
)
from torchvision.models.vision_transformer import VisionTransformer

from attnviz.contract import AttentionSite, Readout
from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout
from models.cells import coarser, placed, windows
from models.labels import class_names
from models.preprocess import Recipe
from models.sizes import Size
from models.torch_plan import IMAGENET, Asked, Plan

WINDOWED = {ShiftedWindowAttention, ShiftedWindowAttentionV2}


def plan_of(module: nn.Module, name: str, asked: Asked) -> Plan | None:
    """The plan of exactly these classes; None for any other."""
    if type(module) is VisionTransformer:
        return _vit(module)
    if type(module) is SwinTransformer and _attentions(module):
        return _swin(module)
    return None


def _vit(module: Any) -> Plan:
    """All tokens attend to all, in torch's own multi-head attention; positions are for one size."""
    sites = [
        AttentionSite(
            name=f"encoder.layers.{name}.self_attention",
            module=block.self_attention,
            heads=block.num_heads,
            after_mix=block.self_attention.out_proj,
            block=block,
            projection=block.self_attention.out_proj,
            axes="window_head",
        )
        for name, block in module.encoder.layers.named_children()
    ]
    side, patch = module.image_size, module.patch_size
    return Plan(
        native=(side, side),
        patch=(patch, patch),
        prefix=("cls",),
        any_size=False,
        sites=tuple(sites),
        readout=Readout(norm=module.encoder.ln, head=module.heads, classify=module.heads),
        run=module,
        # Pictures are resized to 256 pixels, of which 224 are kept.
        recipe=_cropping(224 / 256, "bilinear"),
        classes=class_names(module.num_classes),
    )


def _attentions(module: nn.Module) -> list[tuple[str, Any]]:
    found = [(name, part) for name, part in module.named_modules() if name.endswith(".attn")]
    return found if all(type(part) in WINDOWED for _, part in found) else []


def _swin(module: Any) -> Plan:
    """Windows; any multiple of the patch will do, since the grid is padded to whole windows.

    The size that it was made for is not kept: the one at which the last stage is a single window,
    224 pixels for windows of 7 and 256 for windows of 8, is torchvision's own.
    """
    attentions = _attentions(module)
    high, wide = module.features[0][0].stride
    stages = 1 + max(_stage(name) for name, _ in attentions)
    window = attentions[0][1].window_size
    native = (high * window[0] * 2 ** (stages - 1), wide * window[1] * 2 ** (stages - 1))
    sites = [
        AttentionSite(
            name=name,
            module=part,
            heads=part.num_heads,
            after_mix=part.proj,
            block=module.get_submodule(name.removesuffix(".attn")),
            projection=part.proj,
            geometry=partial(_windows, part, _stage(name)),
        )
        for name, part in attentions
    ]
    # The second version is told by its attention; 260 pixels there, 232 in the first.
    second = type(attentions[0][1]) is ShiftedWindowAttentionV2
    return Plan(
        native=native,
        patch=(high, wide),
        prefix=(),
        any_size=True,
        sites=tuple(sites),
        readout=Readout(norm=module.norm, head=module.head, classify=module.head),
        run=module,
        recipe=_cropping(256 / 260 if second else 224 / 232, "bicubic"),
        classes=class_names(module.num_classes),
    )


def _stage(name: str) -> int:
    """`features.3.0.attn` is of stage 1: patches are cut, or merged, before each stage."""
    return (int(name.split(".")[1]) - 1) // 2


def _windows(part: Any, stage: int, layout: TokenLayout) -> Geometry:
    """The grid is padded first, then moved, and not at all where one window spans it."""
    size: Size = (part.window_size[0], part.window_size[1])
    scale = 2**stage
    rows, cols = coarser(layout.grid, scale)
    down, across = (
        0 if step >= side else moved
        for step, side, moved in zip(size, (rows, cols), part.shift_size, strict=True)
    )
    words = f", moved by {down} × {across}" if down or across else ""
    return placed(
        layout,
        scale,
        f"windows of {size[0]} × {size[1]}{words}",
        lambda cells: windows(cells, size, shift=(down, across), padded_first=True),
        _apart((rows, cols), size, (down, across)) if down or across else None,
    )


def _apart(grid: Size, size: Size, shift: Size) -> Bool[Tensor, "window query key"]:
    """The pairs of a moved window that its mask keeps apart: they lie at opposite edges."""
    down, across = map(_bands, grid, size, shift)
    bands = 3 * rearrange(down, "row -> row 1") + across
    pattern = "(row high) (col wide) -> (row col) (high wide)"
    split = rearrange(bands, pattern, high=size[0], wide=size[1])
    return rearrange(split, "window query -> window query 1") != rearrange(
        split, "window key -> window 1 key"
    )


def _bands(side: int, size: int, shift: int) -> Int[Tensor, " place"]:
    """0 for all but the last window of a side; in that, 1 for its own cells, 2 for those around."""
    bands = torch.zeros(-(-side // size) * size, dtype=torch.long)
    if shift:
        bands[-size:-shift], bands[-shift:] = 1, 2
    return bands


def _cropping(share: float, interpolation: str) -> Recipe:
    return replace(IMAGENET, interpolation=interpolation, crop_pct=share)
