"""What each of timm's attention modules is: where its map arises, and where its effect is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from timm.layers import Attention, AttentionRope
from timm.models import (
    beit,
    cait,
    convit,
    cpubone,
    crossvit,
    davit,
    gcvit,
    gemma4_vit,
    hiera,
    hieradet_sam2,
    lowformer,
    maxxvit,
    mvitv2,
    nest,
    pvt_v2,
    swin_transformer,
    swin_transformer_v2,
    swin_transformer_v2_cr,
    tiny_vit,
    tnt,
    twins,
    visformer,
    vision_transformer_sam,
    volo,
)
from timm.models.eva import EvaAttention
from timm.models.vision_transformer import ParallelScalingBlock
from timm.models.vision_transformer_relpos import RelPosAttention
from torch import nn

from attnviz.contract import AttentionSite
from models.timm_families import FAMILIES
from models.timm_family import Place, place_of
from models.timm_hybrid_kinds import HYBRID_KINDS
from models.timm_kind import UNFUSED, Kind


def _mask_units(module: Any) -> Kind:
    """Hiera's: places before windows, where it has windows; its own name for the heads."""
    if not module.use_mask_unit_attn:
        return Kind(heads="heads")
    return Kind(heads="heads", axes="1 head window", order="(query window)")


def _pooled(module: Any) -> Kind:
    """MViT v2's, which adds its queries to the result: the paper's residual pooling."""
    return Kind(fused_switch=None, adds_queries=module.residual_pooling)


CELL_WISE = Kind(after_mix="o_proj", projection="o_proj", channels_first=True)
NORMED = Kind(after_mix="norm")

ATTENTION: Mapping[type[nn.Module], Kind | Callable[[Any], Kind]] = {
    # A norm of the mixed heads, mostly the identity, or a gate may stand before the projection.
    Attention: NORMED,
    AttentionRope: NORMED,
    EvaAttention: NORMED,
    ParallelScalingBlock: Kind(after_mix="attn_out_proj", projection="attn_out_proj"),
    RelPosAttention: Kind(),
    beit.Attention: Kind(),
    davit.WindowAttention: Kind(),
    gcvit.WindowAttentionGlobal: UNFUSED,
    maxxvit.Attention2d: Kind(channels_first=True, values_left=True),
    maxxvit.AttentionCl: Kind(),
    nest.Attention: Kind(axes="1 head window", join="(ch head)"),
    pvt_v2.Attention: Kind(),
    swin_transformer.WindowAttention: Kind(),
    swin_transformer_v2.WindowAttention: UNFUSED,
    swin_transformer_v2_cr.WindowMultiHeadAttention: UNFUSED,
    twins.GlobalSubSampleAttn: Kind(),
    twins.LocallyGroupedAttn: Kind(axes="1 window head", on_grid=True),
    vision_transformer_sam.Attention: Kind(axes="window_head"),
    cait.ClassAttn: Kind(),
    crossvit.CrossAttention: UNFUSED,
    tiny_vit.Attention: Kind(),
    cait.TalkingHeadAttn: Kind(
        fused_switch=None, is_operand=True, mixed="heads are mixed after the softmax"
    ),
    convit.GPSA: Kind(fused_switch=None, is_operand=True),
    convit.MHSA: UNFUSED,
    cpubone.ConvAttention: CELL_WISE,
    lowformer.ConvAttention: CELL_WISE,
    gemma4_vit.Gemma4Attention: Kind(after_mix="o_proj", projection="o_proj.linear"),
    hiera.MaskUnitAttention: _mask_units,
    hieradet_sam2.MultiScaleAttention: Kind(),
    mvitv2.MultiScaleAttention: _pooled,
    tnt.Attention: UNFUSED,
    visformer.Attention: Kind(channels_first=True),
    volo.Attention: Kind(),
    volo.ClassAttention: UNFUSED,
    **HYBRID_KINDS,
}
"""Exact class → kind, or what tells it: a subclass may do anything in its forward pass."""


def kind_of(module: nn.Module) -> Kind:
    """What an attention module of one of these classes is."""
    kind = ATTENTION[type(module)]
    return kind if isinstance(kind, Kind) else kind(module)


def sites_of(module: nn.Module) -> tuple[AttentionSite, ...]:
    """All attention modules of a model, layer by layer, in the order of its family's patterns."""
    family, parts = FAMILIES[type(module)], dict(module.named_modules())
    found = []
    for name, part in parts.items():
        if type(part) in ATTENTION:
            order, place = place_of(family, module, name)
            whole = re.match(r"(.*?blocks|post_network)\.\d+", name)
            block = parts[whole[0]] if whole and family.reads_tokens(module) else None
            found.append((order, site_of(name, part, block, place)))
    return tuple(site for _, site in sorted(found, key=lambda pair: pair[0]))


def site_of(
    name: str,
    module: Any,
    block: nn.Module | None,
    geometry: Place | None,
) -> AttentionSite:
    """One attention module of `ATTENTION`, as the capture asks for it."""
    kind = kind_of(module)
    return AttentionSite(
        name=name,
        module=module,
        heads=getattr(module, kind.heads) if kind.heads else 1,
        after_mix=_first(module, kind.after_mix),
        fused_switch=kind.fused_switch,
        block=block,
        projection=_plain_projection(module, kind),
        geometry=geometry,
        axes=kind.axes,
        is_operand=kind.is_operand,
        mixed=kind.mixed,
        channels_first=kind.channels_first,
        join=kind.join,
        on_grid=kind.on_grid,
        values_left=kind.values_left,
        order=kind.order,
        adds_queries=kind.adds_queries,
        in_turn=kind.in_turn,
        beside=None if kind.beside is None else module.get_submodule(kind.beside),
        alone=None if kind.alone is None else partial(kind.alone, module),
    )


def _first(module: Any, names: str) -> nn.Module:
    found: nn.Module = next(
        part for name in names.split() if (part := getattr(module, name)) is not None
    )
    return found


def _plain_projection(module: Any, kind: Kind) -> nn.Linear | None:
    """What map × values go through, if it is one matrix and nothing else."""
    norm = getattr(module, "norm", None) if kind is NORMED else None
    plain = isinstance(norm, nn.Identity | None) and getattr(module, "gate", None) is None
    projection = module.get_submodule(kind.projection)
    return projection if plain and isinstance(projection, nn.Linear) else None
