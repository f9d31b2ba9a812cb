"""What maps stand for in timm's families that attend in windows, or to pooled keys, in stages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from timm.models.maxxvit import ParallelPartitionAttention

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout
from models.cells import placed, windows
from models.sizes import pair
from models.timm_family import Place


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _stage_scale(module: Any, name: str) -> int:
    """How many times as wide as the finest stage's a cell of this stage is."""
    return 2 ** (_numbers(name)[0] - first_stage(module))


def first_stage(module: Any) -> int:
    """The first stage that attends."""
    names = (name for name, _ in module.named_modules() if re.search(r"\.attn\w*$", name))
    return _numbers(next(names))[0]


def in_stage(module: Any, name: str) -> Place:
    """All tokens of a stage attend to all."""
    scale = _stage_scale(module, name)
    return lambda layout: placed(layout, scale, f"all tokens of stage {_numbers(name)[0]}")


def block_windows(module: Any, name: str) -> Place | None:
    """Windows as the block that holds the attention says: Swin's, SAM's, GCViT's and DaViT's.

    Swin's mask is 0 for pairs that lie side by side in the picture, and −100 for the others.
    """
    block = module.get_submodule(name.rpartition(".")[0])
    size = pair(block.window_size)
    shift = pair(getattr(block, "shift_size", 0))
    scale = 1 if name.startswith("blocks.") else _stage_scale(module, name)
    if size == (0, 0):  # SAM's word for all tokens
        return None
    moved = f", moved by {shift[0]} × {shift[1]}" if any(shift) else ""
    kind = f"windows of {size[0]} × {size[1]}{moved}"
    mask = getattr(block, "attn_mask", None)

    def place(layout: TokenLayout) -> Geometry:
        # Read only here: a module without weights, on no device, has no mask to look at.
        apart = None if mask is None else mask.detach().cpu() < 0
        return placed(layout, scale, kind, lambda grid: windows(grid, size, shift=shift), apart)

    return place


def partition(module: Any, name: str) -> Place:
    """MaxViT's windows, and its windows of cells that are spread over the whole grid."""
    part = module.get_submodule(name.rpartition(".")[0])
    size, scale = pair(part.partition_size), _stage_scale(module, name)
    parallel = type(part) is ParallelPartitionAttention
    strided = name.endswith(".attn_grid") if parallel else not part.partition_block
    kind = f"windows of {size[0]} × {size[1]}" + (" cells, spread over the grid" * strided)
    # The two of a block add up, unless both read the same tokens and each makes half of the
    # channels; convolutions come before the next block's.
    branch = name if parallel else name.partition(".attn_")[0]
    return lambda layout: replace(
        placed(layout, scale, kind, lambda grid: windows(grid, size, strided=strided)),
        branch=branch,
    )


def alone(places: Callable[[Any, str], Place | None]) -> Callable[[Any, str], Place | None]:
    """The same for a family whose convolutions move what tokens hold from layer to layer.

    Each layer is a branch of its own: none adds up with another.
    """

    def lonely(module: Any, name: str) -> Place | None:
        found = places(module, name)
        return found and (lambda layout: replace(found(layout), branch=name))

    return lonely


def coat_or_max(module: Any, name: str) -> Place:
    """MaxViT attends in windows, CoAtNet among all tokens of a stage."""
    return partition(module, name) if ".attn_" in name else in_stage(module, name)


def nest_blocks(module: Any, name: str) -> Place:
    """NesT's blocks are windows of a level's grid."""
    level = module.get_submodule(name.partition(".transformer_encoder")[0])
    size, scale = pair(level.block_size), _stage_scale(module, name)
    kind = f"windows of {size[0]} × {size[1]}"
    return lambda layout: placed(layout, scale, kind, lambda grid: windows(grid, size))


def pooled_keys(module: Any, name: str, ratio: int, fixed: int | None = None) -> Place:
    """All tokens of a stage ask; those of a coarser grid answer."""
    scale = _stage_scale(module, name)

    def place(layout: TokenLayout) -> Geometry:
        whole = placed(layout, scale, f"all tokens of stage {_numbers(name)[0]}")
        if ratio == 1 and fixed is None:
            return whole
        rows, cols = whole.queries.grid
        keys = (fixed, fixed) if fixed else (rows // ratio, cols // ratio)
        used = (rows, cols) if fixed else (keys[0] * ratio, keys[1] * ratio)
        *_, right, bottom = whole.place
        return Geometry(
            whole.queries,
            TokenLayout((), keys),
            f"all tokens of stage {_numbers(name)[0]}, to keys pooled to {keys[0]} × {keys[1]}",
            asks_at=whole.place,
            place=(0.0, 0.0, right * used[1] / cols, bottom * used[0] / rows),
        )

    return place


def pvt(module: Any, name: str) -> Place:
    """PVT v2 shrinks its keys by a convolution, or pools them to 7 × 7."""
    attn = module.get_submodule(name)
    if attn.pool is not None:
        return pooled_keys(module, name, 1, fixed=int(attn.pool.output_size))
    return pooled_keys(module, name, 1 if attn.sr is None else attn.sr.stride[0])


def twins(module: Any, name: str) -> Place:
    """Twins' windows, and its layers that attend to pooled keys."""
    attn = module.get_submodule(name)
    ws = getattr(attn, "ws", None)
    if ws is None:
        return pooled_keys(module, name, 1 if attn.sr is None else attn.sr.stride[0])
    scale, kind = _stage_scale(module, name), f"windows of {ws} × {ws}"
    return lambda layout: placed(layout, scale, kind, lambda grid: windows(grid, (ws, ws)))
