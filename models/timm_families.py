"""timm's families of models: their tokens, their grid, and what each layer's map stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from timm.models.beit import Beit
from timm.models.cait import Cait
from timm.models.convit import ConVit
from timm.models.crossvit import CrossVit
from timm.models.davit import DaVit
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.gcvit import GlobalContextVit
from timm.models.maxxvit import MaxxVit
from timm.models.naflexvit import NaFlexVit
from timm.models.nest import Nest
from timm.models.pit import PoolingVisionTransformer
from timm.models.pvt_v2 import PyramidVisionTransformerV2
from timm.models.swin_transformer import SwinTransformer
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.swin_transformer_v2_cr import SwinTransformerV2Cr
from timm.models.tiny_vit import TinyVit
from timm.models.tnt import TNT
from timm.models.twins import Twins
from timm.models.visformer import Visformer
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_relpos import VisionTransformerRelPos
from timm.models.vision_transformer_sam import VisionTransformerSAM
from timm.models.volo import VOLO
from timm.models.xcit import Xcit
from torch import nn

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout, prefix_names
from models.sizes import Size
from models.timm_places import (
    branch_grid,
    class_attention,
    convit,
    crossvit,
    finest,
    patches,
    pit_grid,
    pit_stage,
    side_by_side,
    tnt_pixels,
    whole,
)
from models.timm_windows import (
    block_windows,
    coat_or_max,
    first_stage,
    in_stage,
    nest_blocks,
    pvt,
    twins,
)

Place = Callable[[TokenLayout], Geometry]


@dataclass(frozen=True)
class Family:
    """How one class of timm models arranges its tokens; the module is the first argument."""

    patch: Callable[[Any], Size]
    """(rows, cols) in pixels from one patch to the next."""
    native: Callable[[Any], Size]
    """The size of picture that it was made for."""
    any_size: Callable[[Any], bool] = lambda module: False
    """Whether any multiple of the patch will do."""
    grid: Callable[[Any, Size], Size] | None = None
    """(rows, cols) of patches for a size, where it is not size / patch."""
    places: Mapping[str, Callable[[Any, str], Place | None]] | None = None
    """What maps stand for, by the first pattern that a layer's name begins with; else all tokens.

    Layers are listed in the order of the patterns, if there are any.
    """
    prefix: tuple[str, ...] | None = None
    """The tokens before the patches, where the module does not say."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What it is made with."""


def prefix_of(module: Any) -> tuple[str, ...]:
    """The tokens before the patches: class, distillation and register tokens."""
    holders = (module, getattr(module, "embeds", module))
    found = [getattr(each, "cls_token", None) for each in holders]
    tokens = [token for token in found if token is not None]
    count = getattr(module, "num_prefix_tokens", None)
    if count is None:  # PiT's class and distillation tokens are one parameter, VOLO's is alone
        count = tokens[0].shape[1] if tokens else 0
        return prefix_names(cls=count > 0, dist=count > 1)
    dist = hasattr(module, "dist_token")
    registers = count - (1 if tokens else 0) - dist
    return prefix_names(cls=bool(tokens), dist=dist, registers=registers)


def family_of(module: nn.Module) -> Family | None:
    """The family of exactly that class of module."""
    return FAMILIES.get(type(module))


def place_of(family: Family, module: nn.Module, name: str) -> tuple[int, Place | None]:
    """The place of a layer in the order of the family's patterns, and what its map stands for."""
    for number, (pattern, place) in enumerate((family.places or {}).items()):
        if re.match(pattern, name):
            return number, place(module, name)
    return len(family.places or {}), None


def _of_patch_embed(module: Any) -> Size:
    embed = module.patch_embed
    rows, cols = embed.feat_ratio(as_scalar=False)
    return rows, cols


def _native(module: Any) -> Size:
    """The size that its patches tile.

    Not quite the size of the training where that was no multiple of the patch: a convolution drops
    the rest, so 384 pixels in patches of 14 are 378.
    """
    (rows, cols), (high, wide) = module.patch_embed.grid_size, _of_patch_embed(module)
    return rows * high, cols * wide


def _naflex_native(module: Any) -> Size:
    """The size that its learned positions are for, or 224 pixels where it has none."""
    embeds = module.embeds
    grid = embeds.pos_embed_grid_size or tuple(224 // side for side in embeds.patch_size)
    return grid[0] * embeds.patch_size[0], grid[1] * embeds.patch_size[1]


def _four(_: nn.Module) -> Size:
    return 4, 4


def _of_stages(module: Any) -> Size:
    """Pixels of a cell of the first stage that attends: 4 in the first stage, doubled in each."""
    side = 4 * 2 ** first_stage(module)
    return side, side


def _image_size(module: Any) -> Size:
    """What it was made for, if it says so, or what its pretrained weights were."""
    embeds = [getattr(module, "patch_embed", None), *getattr(module, "patch_embeds", ())]
    embed = next((each for each in embeds if each is not None), None)
    said = getattr(embed, "img_size", getattr(module, "img_size", None))
    if said is None:
        said = getattr(module, "pretrained_cfg", {}).get("input_size", (3, 224, 224))[1:]
    return said[0], said[1]


def _volo_native(module: Any) -> Size:
    """VOLO keeps only its positions: one for each patch of the last stages."""
    _, rows, cols, _ = module.pos_embed.shape
    return rows * 16, cols * 16


VIT = Family(
    patch=_of_patch_embed,
    native=_native,
    any_size=lambda module: bool(module.dynamic_img_size),
    places={r"blocks\.\d+\.attns\.": side_by_side},
    options={"dynamic_img_size": True},
)
FIXED = Family(patch=_of_patch_embed, native=_native)

FAMILIES: Mapping[type[nn.Module], Family] = {
    VisionTransformer: VIT,
    VisionTransformerDistilled: VIT,
    VisionTransformerRelPos: FIXED,
    Eva: VIT,
    Beit: FIXED,
    NaFlexVit: Family(
        patch=lambda module: module.embeds.patch_size,
        native=_naflex_native,
        any_size=lambda module: True,
        places={r"blocks\.\d+\.attns\.": side_by_side},
    ),
    Cait: Family(
        patch=_of_patch_embed,
        native=_native,
        places={r"blocks\.": patches, r"blocks_token_only\.": class_attention},
    ),
    ConVit: Family(patch=_of_patch_embed, native=_native, places={r"blocks\.": convit}),
    Xcit: Family(
        patch=lambda module: (module.patch_embed.patch_size,) * 2,
        native=lambda module: module.patch_embed.img_size,
        any_size=lambda module: True,
        places={"": class_attention},
    ),
    VOLO: Family(
        patch=lambda module: (16, 16),
        native=_volo_native,
        places={r"network\.": patches, r"post_network\.": class_attention},
    ),
    TNT: Family(
        patch=lambda module: module.pixel_embed.patch_size,
        native=lambda module: module.pixel_embed.img_size,
        places={r"blocks\.\d+\.attn_in": tnt_pixels, r"blocks\.\d+\.attn_out": whole},
    ),
    PoolingVisionTransformer: Family(
        patch=lambda module: module.patch_embed.conv.stride,
        native=lambda module: module.patch_embed.img_size,
        grid=pit_grid,
        places={r"transformers\.": pit_stage},
    ),
    VisionTransformerSAM: Family(_of_patch_embed, _native, places={"": block_windows}),
    SwinTransformer: Family(_of_patch_embed, _image_size, places={"": block_windows}),
    SwinTransformerV2: Family(_of_patch_embed, _image_size, places={"": block_windows}),
    SwinTransformerV2Cr: Family(_four, _image_size, places={"": block_windows}),
    GlobalContextVit: Family(_of_stages, _image_size, places={"": block_windows}),
    DaVit: Family(_of_stages, _image_size, places={"": block_windows}),
    MaxxVit: Family(_of_stages, _image_size, places={"": coat_or_max}),
    Nest: Family(_of_patch_embed, _image_size, places={"": nest_blocks}),
    PyramidVisionTransformerV2: Family(_four, _image_size, places={"": pvt}),
    Visformer: Family(_of_stages, _image_size, places={"": in_stage}),
    TinyVit: Family(_of_stages, _image_size, places={"": block_windows}),
    CrossVit: Family(
        patch=lambda module: module.patch_embed[finest(module)].patch_size,
        native=lambda module: module.img_size,
        grid=lambda module, _: branch_grid(module, finest(module)),
        prefix=("cls",),
        places={"": crossvit},
    ),
    Twins: Family(_four, _image_size, places={"": twins}),
}
"""Exact class → family: what `load` and `wrap` take, beside this project's own."""
