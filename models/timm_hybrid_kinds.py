"""The attention modules of timm's networks that are convolutional for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timm.layers.attention2d import MultiQueryAttention2d
from timm.layers.bottleneck_attn import BottleneckAttn
from timm.layers.halo_attn import HaloAttn
from timm.models import (
    efficientformer,
    efficientformer_v2,
    efficientvit_msra,
    fastvit,
    iformer,
    levit,
    metaformer,
    nextvit,
    shvit,
)
from torch import Tensor, nn

from models.timm_kind import UNFUSED, Kind

_TALKING = "heads are mixed after the softmax"


def _less_local(_: nn.Module, joined: Tensor, beside: Tensor) -> Tensor:
    """EfficientFormer V2 adds a convolution of its values."""
    return joined - beside


def _ungated(_: nn.Module, joined: Tensor, beside: Tensor) -> Tensor:
    """iFormer multiplies by a gate: the second half of what its sigmoid gives."""
    return joined / beside.chunk(2, dim=-1)[1]


def _first_channels(module: Any, joined: Tensor, _: Tensor) -> Tensor:
    """SHViT attends with its first channels; the others pass."""
    return joined[:, : module.pdim]


def _levit(module: Any) -> Kind:
    """LeViT's, which may work on (channel, row, col) rather than on tokens."""
    convolved = bool(module.use_conv)
    return Kind(fused_switch=None, channels_first=convolved, values_left=convolved)


HYBRID_KINDS: Mapping[type[nn.Module], Kind | Callable[[Any], Kind]] = {
    levit.Attention: _levit,
    levit.AttentionDownsample: _levit,
    MultiQueryAttention2d: Kind(after_mix="output", projection="output", channels_first=True),
    fastvit.Attention: Kind(),
    metaformer.Attention: Kind(),
    efficientformer.Attention: UNFUSED,
    efficientformer_v2.Attention2d: Kind(
        after_mix="upsample act",
        fused_switch=None,
        is_operand=True,
        mixed=_TALKING,
        channels_first=True,
        beside="v_local",
        alone=_less_local,
    ),
    efficientformer_v2.Attention2dDownsample: Kind(
        after_mix="act",
        fused_switch=None,
        channels_first=True,
        beside="v_local",
        alone=_less_local,
    ),
    nextvit.EfficientAttention: Kind(),
    efficientvit_msra.CascadedGroupAttention: Kind(
        fused_switch=None, channels_first=True, values_left=True, in_turn=True
    ),
    shvit.SHSA: Kind(
        heads="",
        fused_switch=None,
        channels_first=True,
        axes="window_head",
        values_left=True,
        alone=_first_channels,
    ),
    iformer.SHMA: Kind(
        heads="",
        channels_first=True,
        axes="window_head",
        values_left=True,
        beside="gate_act",
        alone=_ungated,
    ),
    BottleneckAttn: Kind(
        after_mix="pool",
        projection="pool",
        fused_switch=None,
        channels_first=True,
        axes="window_head",
    ),
    HaloAttn: Kind(
        after_mix="pool",
        projection="pool",
        fused_switch=None,
        channels_first=True,
        axes="head window",
        on_grid=True,
    ),
}
"""Exact class → kind, or what tells it."""
