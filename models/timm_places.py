"""What maps stand for in families with layouts of their own: class attention, parts, branches."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from attnviz.geometry import WHOLE, Geometry, one_window
from attnviz.tokens import TokenLayout
from models.cells import coarser
from models.sizes import Size
from models.timm_family import Place


def whole(_: nn.Module, __: str) -> None:
    """All tokens attend to all."""


def side_by_side(_: nn.Module, name: str) -> Place:
    """Layers of one block that read the same tokens and whose results are added."""
    number = name.split(".")[3]
    return lambda layout: Geometry(
        layout, layout, f"all tokens, number {number} of its block", branch=number
    )


def patches(_: nn.Module, __: str) -> Place:
    """Patches attend to patches; tokens before them take no part."""

    def place(layout: TokenLayout) -> Geometry:
        patches = range(len(layout.prefix), layout.tokens)
        return one_window(layout, patches, patches, "all patches")

    return place


def convit(module: Any, name: str) -> Place | None:
    """Gated layers attend among the patches; the class token joins after them."""
    joins = module.local_up_to_layer
    return patches(module, name) if int(name.split(".")[1]) < joins else None


def class_attention(_: nn.Module, __: str) -> Place:
    """The class token alone asks, and all tokens answer."""
    return lambda layout: one_window(
        layout, range(1), range(layout.tokens), "class attention: only the class token asks"
    )


def tnt_pixels(module: Any, _: str) -> Place:
    """The pixel tokens of each patch attend to each other; they lie in a finer grid."""
    high, wide = module.pixel_embed.new_patch_size

    def place(layout: TokenLayout) -> Geometry:
        rows, cols = layout.grid
        inner = TokenLayout((), (rows * high, cols * wide))
        row, col = torch.meshgrid(
            torch.arange(rows * high), torch.arange(cols * wide), indexing="ij"
        )
        patch = (row // high) * cols + col // wide
        order = patch.flatten().argsort(stable=True)
        windows = order.unflatten(0, (rows * cols, high * wide))
        return Geometry(
            inner,
            inner,
            f"windows of {high} × {wide}: the parts of one patch",
            windows,
            windows,
            branch="parts of patches",
        )

    return place


def pit_stage(module: Any, name: str) -> Place:
    """PiT's patches overlap, and each stage halves the grid: both move where cells lie."""
    embed, stage = module.patch_embed, int(name.split(".")[1])
    (patch, _), stride = embed.patch_size, embed.conv.stride[0]
    cell = stride * 2**stage

    def place(layout: TokenLayout) -> Geometry:
        rows, cols = coarser(layout.grid, 2**stage)
        tokens = TokenLayout(layout.prefix, (rows, cols))
        start = (patch - cell) / 2
        height, width = embed.img_size
        return Geometry(
            tokens,
            tokens,
            f"all tokens of stage {stage}",
            branch=f"stage {stage}",
            place=(
                start / width,
                start / height,
                (start + cols * cell) / width,
                (start + rows * cell) / height,
            ),
        )

    return place


def branch_grid(module: Any, branch: int) -> Size:
    """(rows, cols) of the patches of one of CrossViT's branches."""
    (rows, cols), patch = module.img_size_scaled[branch], module.patch_embed[branch].patch_size
    return rows // patch[0], cols // patch[1]


def finest(module: Any) -> int:
    """CrossViT's branch with most patches."""
    return max((0, 1), key=lambda branch: branch_grid(module, branch)[0])


def crossvit(module: Any, name: str) -> Place:
    """In a branch all tokens attend to all; then its class token asks the other's patches."""
    part, number = name.split(".")[2:4]
    branch = int(number)
    seen = branch if part == "blocks" else 1 - branch
    tokens = TokenLayout(("cls",), branch_grid(module, seen))
    place = WHOLE
    if module.crop_scale:  # else the other size is made by resampling the whole picture
        kept = [s / w for s, w in zip(module.img_size_scaled[seen], module.img_size, strict=True)]
        top, left = ((1 - share) / 2 for share in kept)
        place = (left, top, 1 - left, 1 - top)

    def plain(_: TokenLayout) -> Geometry:
        return Geometry(tokens, tokens, f"all tokens of branch {branch}", None, None, number, place)

    def fusion(_: TokenLayout) -> Geometry:
        all_ = torch.arange(tokens.tokens)[None]
        kind = f"class attention: the class token of branch {branch} asks branch {seen}"
        return Geometry(tokens, tokens, kind, all_[:, :1], all_, f"fusion {branch}", place)

    return plain if part == "blocks" else fusion


def pit_grid(module: Any, size: Size) -> Size:
    """(rows, cols) of PiT's first stage, whose patches overlap."""
    embed = module.patch_embed
    rows, cols = (
        (side - patch) // stride + 1
        for side, patch, stride in zip(size, embed.patch_size, embed.conv.stride, strict=True)
    )
    return rows, cols
