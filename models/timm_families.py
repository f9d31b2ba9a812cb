"""timm's families of models: their tokens, their grid, and what each layer's map stands for."""

from __future__ import annotations

from collections.abc import Mapping
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

from models.sizes import Size
from models.timm_convolved import CONVOLVED
from models.timm_encoders import ENCODERS
from models.timm_family import Family, said_size
from models.timm_hiera import HIERA
from models.timm_hybrid_families import HYBRID_FAMILIES
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
from models.timm_pooled import POOLED
from models.timm_windows import (
    alone,
    block_windows,
    coat_or_max,
    first_stage,
    in_stage,
    nest_blocks,
    pvt,
    twins,
)


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
    """The size that its learned positions are for, or 224 pixels where it has none.

    RADIO's positions are for the largest it takes; its own size is its weights'.
    """
    embeds = module.embeds
    if embeds.pos_embed_ar_preserving:
        return said_size(module)
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
    return said_size(module) if said is None else (said[0], said[1])


def _volo_native(module: Any) -> Size:
    """VOLO keeps only its positions: one for each patch of the last stages."""
    _, rows, cols, _ = module.pos_embed.shape
    return rows * 16, cols * 16


VIT = Family(
    patch=_of_patch_embed,
    native=_native,
    any_size=lambda module: bool(module.dynamic_img_size),
    places={r"blocks\.\d+\.attns\.": side_by_side},
    resizes=True,
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
    DaVit: Family(_of_stages, _image_size, places={"": alone(block_windows)}),
    MaxxVit: Family(_of_stages, _image_size, places={"": coat_or_max}),
    Nest: Family(_of_patch_embed, _image_size, places={"": nest_blocks}),
    PyramidVisionTransformerV2: Family(_four, _image_size, places={"": alone(pvt)}),
    Visformer: Family(_of_stages, _image_size, places={"": in_stage}),
    TinyVit: Family(_of_stages, _image_size, places={"": alone(block_windows)}),
    CrossVit: Family(
        patch=lambda module: module.patch_embed[finest(module)].patch_size,
        native=lambda module: module.img_size,
        grid=lambda module, _: branch_grid(module, finest(module)),
        prefix=("cls",),
        places={"": crossvit},
    ),
    Twins: Family(_four, _image_size, places={"": alone(twins)}),
    **POOLED,
    **HIERA,
    **CONVOLVED,
    **ENCODERS,
    **HYBRID_FAMILIES,
}
"""Exact class → family: what `load` and `wrap` take, beside this project's own."""
