"""Which of timm's names can be loaded, and what each one stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import timm
from timm.layers import Attention, PatchEmbed
from timm.models import (
    get_arch_pretrained_cfgs,
    get_deprecated_models,
    is_model,
    list_models,
    model_entrypoint,
)
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import Block, ResPostBlock, VisionTransformer
from torch import nn

from attnviz.errors import UnknownName, UnsupportedModel, unknown
from models import dinov2_small, own_weights

PLAIN_FAMILIES = ("vision_transformer", "deit")
"""timm's modules that hold ViT, DeiT, DINO, DINOv2, SigLIP and CLIP."""

FOR_NOW = (
    "For now only plain Vision Transformers can be drawn: timm's ViT, DeiT, DINO, DINOv2, CLIP"
    " and SigLIP."
)


@dataclass(frozen=True)
class TimmName:
    """An architecture, and which of its pretrained weights."""

    architecture: str
    tag: str
    """Empty for the default weights."""
    config: dict[str, Any]
    """timm's description of those weights and of the pictures that they expect."""

    def __str__(self) -> str:
        return f"{self.architecture}.{self.tag}" if self.tag else self.architecture

    def build(self, **options: Any) -> VisionTransformer:
        """The module with timm's own initial weights; takes any multiple of the patch as input.

        Positions are resampled at each pass from the learned ones, by timm's own antialiased
        bicubic routine.

        Raises:
            UnsupportedModel: it is not a plain Vision Transformer after all.
        """
        module = timm.create_model(str(self), pretrained=False, dynamic_img_size=True, **options)
        return require_plain(module, self.architecture)

    def blank(self, **options: Any) -> VisionTransformer:
        """The module without any weights: shapes only, no memory; raises as `build`."""
        return self.build(device="meta", weight_init="skip", **options)


def resolve(name: str) -> TimmName:
    """Look a timm name up, with or without the tag of its weights; builds nothing.

    Raises:
        UnknownName: timm has no such architecture, or no such weights for it.
        UnsupportedModel: it exists but is no Vision Transformer of the plain families.
    """
    current = get_deprecated_models().get(name, name)  # None where timm dropped a model
    architecture, _, tag = (current or "").partition(".")
    if not is_model(architecture):
        raise _no_such_model(name)
    # Judged by the module that an architecture comes from, so that nothing foreign is even built.
    family = model_entrypoint(architecture).__module__.rpartition(".")[2]
    if family not in PLAIN_FAMILIES:
        raise UnsupportedModel(f"{name} belongs to timm's family {family!r}. {FOR_NOW}")
    if "radio" in architecture:
        raise UnsupportedModel(f"{name} resamples its positions in a way of its own. {FOR_NOW}")
    configs = get_arch_pretrained_cfgs(architecture)
    tags = [known.partition(".")[2] for known in configs]
    if tag and tag not in tags:
        raise unknown(f"set of weights for {architecture} called", tag, tags)
    tag = tag or next(iter(tags), "")
    config = configs.get(f"{architecture}.{tag}" if tag else architecture)
    return TimmName(architecture, tag, config.to_dict() if config else {})


def require_plain(module: nn.Module, name: str) -> VisionTransformer:
    """The module as it is, if each of its layers is known to be drawn truthfully.

    Exact types: a subclass may do anything in its forward pass.

    Raises:
        UnsupportedModel: some part of it is of another kind; the message says which.
    """
    if type(module) not in (VisionTransformer, VisionTransformerDistilled):
        raise UnsupportedModel(f"{name} is a {type(module).__name__}. {FOR_NOW}")
    plain: Any = module
    if plain.in_chans != 3:
        raise UnsupportedModel(f"{name} takes {plain.in_chans} channels, but a picture has 3.")
    attentions = [block.attn for block in plain.blocks if hasattr(block, "attn")]
    odd = [
        *_of_other_kind([plain.patch_embed], PatchEmbed),
        *_of_other_kind(plain.blocks, Block, ResPostBlock),
        *_of_other_kind(attentions, Attention),
    ]
    if odd:
        raise UnsupportedModel(f"{name} is built with {odd[0]}. {FOR_NOW}")
    return plain


def _of_other_kind(parts: Any, *kinds: Callable[..., nn.Module]) -> list[str]:
    return sorted({type(part).__name__ for part in parts if type(part) not in kinds})


def _no_such_model(name: str) -> UnknownName:
    """Names the nearest plain models; all of timm's names would fill the screen."""
    architectures = [arch for family in PLAIN_FAMILIES for arch in list_models(module=family)]
    tagged = [full for arch in architectures for full in get_arch_pretrained_cfgs(arch)]
    ours = [dinov2_small.NAME, *own_weights.TRAINED]
    near = get_close_matches(name, [*ours, *architectures, *tagged], n=3)
    rest = (
        "and by their timm names the plain Vision Transformers among the"
        f" {len(architectures)} of timm.list_models(module='vision_transformer') and"
        " timm.list_models(module='deit')"
    )
    return unknown("model", name, near or [*ours, rest])
