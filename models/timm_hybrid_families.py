"""timm's families that are convolutional for the rest: their finest grid and their layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timm.layers.bottleneck_attn import BottleneckAttn
from timm.layers.halo_attn import HaloAttn
from timm.models.byobnet import ByobNet
from timm.models.efficientformer import EfficientFormer
from timm.models.efficientformer_v2 import Attention2dDownsample, EfficientFormerV2
from timm.models.efficientvit_msra import EfficientVitMsra
from timm.models.fastvit import FastVit
from timm.models.iformer import IFormer
from timm.models.levit import Levit, LevitDistilled
from timm.models.metaformer import MetaFormer
from timm.models.mobilenetv3 import MobileNetV3
from timm.models.mobilenetv5 import MobileNetV5, MobileNetV5Encoder
from timm.models.nextvit import NextViT
from timm.models.shvit import SHViT
from torch import nn

from models.sizes import Size
from models.timm_family import Family, Place, said_size
from models.timm_hybrids import (
    cascaded,
    finest,
    haloed,
    mixed_stage,
    modulated,
    pure_stage,
    reduction,
    runs,
    unfolded,
)


def _levit(module: Any) -> Size:
    """Its biases are for one grid."""
    rows, cols = module.stages[0].blocks[0].attn.resolution
    return rows * module.stem.stride, cols * module.stem.stride


def _seven(_: nn.Module) -> Size:
    """EfficientFormer's biases are for 7 × 7 cells of 32 pixels, whatever it is made for."""
    return 7 * 32, 7 * 32


def _shrinks(module: Any) -> Size:
    """EfficientFormer V2's layer that shrinks the grid knows it."""
    name, part = next(
        pair for pair in module.named_modules() if type(pair[1]) is Attention2dDownsample
    )
    side = reduction(module, name) // 2
    return part.resolution[0] * side, part.resolution[1] * side


def _own_blocks(module: Any) -> Size:
    """The size that its bottleneck attention knows, else that of its weights."""
    for name, part in module.named_modules():
        if type(part) is BottleneckAttn:
            halved = isinstance(part.pool, nn.AvgPool2d)
            side = reduction(module, name) // (2 if halved else 1)
            return part.pos_embed.height * side, part.pos_embed.width * side
    return said_size(module)


def _any_size(_: nn.Module) -> bool:
    return True


def _free(place: Callable[[Any, str], Place], *, step: int | None = None) -> Family:
    """A family that takes any multiple of its finest cell, or of so many pixels."""

    def steps(module: Any) -> Size:
        return finest(module) if step is None else (step, step)

    return Family(
        patch=finest,
        native=lambda module: said_size(module, steps(module)),
        any_size=_any_size,
        step=None if step is None else steps,
        places={"": place},
    )


LEVIT = Family(finest, _levit, places={"": pure_stage})
MOBILENET = _free(mixed_stage)

HYBRID_FAMILIES: Mapping[type[nn.Module], Family] = {
    Levit: LEVIT,
    LevitDistilled: LEVIT,
    MobileNetV3: MOBILENET,
    MobileNetV5: MOBILENET,
    MobileNetV5Encoder: MOBILENET,
    FastVit: _free(mixed_stage),
    MetaFormer: _free(pure_stage),
    EfficientFormer: Family(finest, _seven, places={"": pure_stage}),
    EfficientFormerV2: Family(finest, _shrinks, places={"": mixed_stage}),
    NextViT: _free(runs, step=32),
    EfficientVitMsra: _free(cascaded),
    SHViT: _free(mixed_stage),
    IFormer: _free(modulated),
    ByobNet: Family(
        finest,
        _own_blocks,
        any_size=lambda module: (
            not any(type(part) in (BottleneckAttn, HaloAttn) for part in module.modules())
        ),
        places={r".*transformer": unfolded, "": haloed},
    ),
}
"""Exact class → family."""
