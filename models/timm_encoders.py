"""Vision encoders of language models, as timm has them: DeepSeek's, Qwen3's and Gemma 4's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timm.models.deepseek_vit import DeepseekVitClassifier, DeepseekVitEncoder
from timm.models.gemma4_vit import Gemma4VitClassifier, Gemma4VitEncoder
from timm.models.qwen3_vit import Qwen3VitClassifier, Qwen3VitEncoder
from torch import nn

from models.sizes import Size
from models.timm_family import Family, said_size


def encoder_of(module: Any) -> Any:
    """The encoder itself, out of its classifier where it is in one."""
    return getattr(module, "encoder", module)


def _patch(module: nn.Module) -> Size:
    rows, cols = encoder_of(module).patch_embed.patch_size
    return rows, cols


def _step(module: nn.Module) -> Size:
    """The patches that Qwen3's merger and Gemma's pooling make one; DeepSeek's pads instead."""
    encoder, (rows, cols) = encoder_of(module), _patch(module)
    many = 1
    if getattr(encoder, "merger", None) is not None:
        many = encoder.merge_size
    if encoder.global_pool == "soft":
        many = encoder.pooling_kernel_size
    return rows * many, cols * many


def _reads_tokens(module: nn.Module) -> bool:
    """Whether nothing merges or projects the tokens before they are averaged."""
    return encoder_of(module).global_pool in ("", "none", "avg")


ENCODER = Family(
    patch=_patch,
    native=lambda module: said_size(module, _step(module)),
    any_size=lambda module: True,
    step=_step,
    prefix=(),
    reads_tokens=_reads_tokens,
)

ENCODERS: Mapping[type[nn.Module], Family] = {
    DeepseekVitClassifier: ENCODER,
    DeepseekVitEncoder: ENCODER,
    Gemma4VitClassifier: ENCODER,
    Gemma4VitEncoder: ENCODER,
    Qwen3VitClassifier: ENCODER,
    Qwen3VitEncoder: ENCODER,
}
"""Exact class → family."""
