"""Hugging Face's vision encoders, known by their classes' names: transformers is not imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from attnviz.contract import AttentionSite, Readout
from attnviz.errors import UnsupportedModel
from attnviz.tokens import TokenLayout, prefix_names
from models.locks import lock_of
from models.preprocess import Recipe, noise
from models.sizes import pair
from models.torch_plan import CLIP, IMAGENET, Asked, Plan, named, probe_size, sites_in, watch

PACKAGE = "transformers.models."
SQUASHED = Recipe(crop_mode="squash")  # 0.5 for each colour
EAGER, FUSED = "eager", "sdpa"


def _first_token(output: Any) -> Tensor:
    token: Tensor = output.last_hidden_state[:, 0]
    return token


def _pooled(output: Any) -> Tensor | None:
    pooled: Tensor | None = output.pooler_output
    return pooled


@dataclass(frozen=True)
class Encoder:
    """How one class of encoders arranges its tokens, and how it ends."""

    norm: str
    """Its last norm."""
    recipe: Recipe
    """How its published weights want their pictures."""
    prefix: Callable[[Any], tuple[str, ...]] = lambda config: ("cls",)
    asked: bool = False
    """Whether it resamples positions only where `interpolate_pos_encoding=True` asks it to."""
    rotary: bool = False
    """Whether its positions need no resampling at all."""
    feature: Callable[[Any], Tensor | None] = _pooled
    """The picture's one feature in its output, where it makes one."""


def _registers(config: Any) -> tuple[str, ...]:
    return prefix_names(cls=True, registers=config.num_register_tokens)


CROPPED = replace(IMAGENET, interpolation="bicubic", crop_pct=0.875)

ENCODERS: Mapping[str, Encoder] = {
    # Its pooler is often one that was never trained: the class token is its feature.
    "vit.modeling_vit.ViTModel": Encoder(
        "layernorm", replace(SQUASHED, interpolation="bilinear"), asked=True, feature=_first_token
    ),
    "deit.modeling_deit.DeiTModel": Encoder(
        "layernorm",
        CROPPED,
        lambda config: ("cls", "dist"),
        asked=True,
        feature=_first_token,
    ),
    "beit.modeling_beit.BeitModel": Encoder("layernorm", SQUASHED),
    "dinov2.modeling_dinov2.Dinov2Model": Encoder("layernorm", CROPPED),
    "dinov2_with_registers.modeling_dinov2_with_registers.Dinov2WithRegistersModel": Encoder(
        "layernorm", CROPPED, _registers
    ),
    "dinov3_vit.modeling_dinov3_vit.DINOv3ViTModel": Encoder(
        "norm", replace(IMAGENET, crop_mode="squash"), _registers, rotary=True
    ),
    "siglip.modeling_siglip.SiglipVisionModel": Encoder(
        "post_layernorm", SQUASHED, lambda config: (), asked=True
    ),
    "clip.modeling_clip.CLIPVisionModel": Encoder("post_layernorm", CLIP, asked=True),
}
"""Class, by its path in transformers 5.24 → what it is."""


@dataclass(frozen=True)
class Head:
    """How a class that ends an encoder makes its output."""

    layer: str = "classifier"
    """The layer that is fed with the feature."""
    output: str = "logits"
    second: str = ""
    """A layer of the distillation token's own, whose output is averaged with the first's."""
    normed: bool = True
    """Whether the feature is of tokens after the encoder's last norm."""
    of_tokens: bool = True
    """Whether the feature is as wide as a token."""


HEADS: Mapping[str, Head] = {
    "vit.modeling_vit.ViTForImageClassification": Head(),
    "deit.modeling_deit.DeiTForImageClassification": Head(),
    "deit.modeling_deit.DeiTForImageClassificationWithTeacher": Head(
        "cls_classifier", second="distillation_classifier"
    ),
    "beit.modeling_beit.BeitForImageClassification": Head(),
    # The class token and the mean of the patches, side by side.
    "dinov2.modeling_dinov2.Dinov2ForImageClassification": Head(of_tokens=False),
    "dinov2_with_registers.modeling_dinov2_with_registers."
    "Dinov2WithRegistersForImageClassification": Head(of_tokens=False),
    "siglip.modeling_siglip.SiglipForImageClassification": Head(),
    "clip.modeling_clip.CLIPForImageClassification": Head(normed=False),
    "clip.modeling_clip.CLIPVisionModelWithProjection": Head("visual_projection", "image_embeds"),
}


def plan_of(module: nn.Module, name: str, asked: Asked) -> Plan | None:
    """The plan of an encoder of `ENCODERS`, or of a class of `HEADS` that holds one.

    Raises:
        UnsupportedModel: the version of transformers builds it otherwise.
    """
    head = HEADS.get(_path(module))
    if head is None and _path(module) not in ENCODERS:
        return None
    try:
        base = next(part for part in module.modules() if _path(part) in ENCODERS)
        return _plan(module, name, base, head)
    except (AttributeError, StopIteration) as error:
        raise UnsupportedModel(
            f"{name} is not built as transformers 5.24 builds it ({error}): update transformers, or"
            " give it inside a class of your own, with its layout."
        ) from error


def _path(module: nn.Module) -> str:
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix(PACKAGE)


def _plan(module: nn.Module, name: str, base: Any, head: Head | None) -> Plan:
    kind, config = ENCODERS[_path(base)], base.config
    made_for, patch = pair(config.image_size), pair(config.patch_size)
    grid = (made_for[0] // patch[0], made_for[1] // patch[1])
    native = (grid[0] * patch[0], grid[1] * patch[1])
    # Positions are resampled from a square grid whatever theirs is, and not at all to another grid
    # of as many patches in a square picture.
    any_size = kind.rotary or (grid[0] == grid[1] and patch[0] == patch[1])
    end = nn.Identity()  # what is fed with the feature of an encoder without a head

    def run(pictures: Tensor) -> Tensor:
        resampled = kind.asked and pictures.shape[-2:] != made_for
        options = {"interpolate_pos_encoding": True} if resampled else {}
        output = module(pixel_values=pictures, return_dict=True, **options)
        if head is not None:
            read: Tensor = getattr(output, head.output)
            return read
        feature = kind.feature(output)
        return output.last_hidden_state if feature is None else end(feature)

    size = probe_size(native, patch, any_size)
    layout = TokenLayout(kind.prefix(config), (size[0] // patch[0], size[1] // patch[1]))
    with lock_of(module), _fused(config):
        found = watch(name, module, run, noise(3, *size))
    sites, _ = sites_in(name, found, layout)
    return Plan(
        native=native,
        patch=patch,
        prefix=layout.prefix,
        any_size=any_size,
        sites=tuple(_described(module, site) for site in sites),
        readout=_readout(module, base, head, end),
        run=run,
        recipe=kind.recipe,
        recipe_remark=(
            "Pictures are normalised as those of its published weights: give mean= and std= where"
            " its preprocessor_config.json says otherwise."
        ),
        classes=_classes(module, head),
    )


@contextmanager
def _fused(config: Any) -> Iterator[None]:
    """Within, its layers call the fused kernel; afterwards what they called before."""
    before = config._attn_implementation
    config._attn_implementation = FUSED
    try:
        yield
    finally:
        config._attn_implementation = before


def _described(module: nn.Module, site: AttentionSite) -> AttentionSite:
    """With its block, and the switch between its two implementations."""
    block = re.match(r"(.*\.|)layers?\.\d+", site.name)
    return replace(
        site,
        block=module.get_submodule(block[0]) if block else None,
        fused_switch="_attn_implementation",
        switch_of=site.module.config,
        settings=(EAGER, FUSED),
        replays=True,
    )


def _readout(module: nn.Module, base: Any, head: Head | None, end: nn.Module) -> Readout:
    norm = base.get_submodule(ENCODERS[_path(base)].norm)
    pooler = getattr(base, "pooler", None)
    if isinstance(norm, nn.Identity) and pooler is not None:  # BEiT's, of the patches' mean
        norm = pooler.layernorm
    if head is None:
        pool = getattr(base, "head", None)
        attention = None if pool is None else pool.attention
        return Readout(
            norm=norm,
            head=end,
            classify=end,
            pooler=None if attention is None else _pooling(attention),
            pool=pool,
        )
    first = module.get_submodule(head.layer)
    second = module.get_submodule(head.second) if head.second else first
    return Readout(
        norm=norm if head.normed else nn.Identity(),
        head=first,
        classify=lambda feature: (first(feature) + second(feature)) / 2,
        of_tokens=head.of_tokens,
    )


def _pooling(attention: nn.MultiheadAttention) -> AttentionSite:
    return AttentionSite(
        name="head.attention",
        module=attention,
        heads=attention.num_heads,
        after_mix=attention.out_proj,
        axes="window_head",
    )


def _classes(module: Any, head: Head | None) -> tuple[str, ...]:
    """The configuration's labels, or numbers where it only has placeholders."""
    if head is None or head.output != "logits":
        return ()
    labels = [str(module.config.id2label[number]) for number in range(module.num_labels)]
    placeholders = all(re.fullmatch(r"LABEL_\d+", label) for label in labels)
    return named(len(labels)) if placeholders else tuple(labels)
