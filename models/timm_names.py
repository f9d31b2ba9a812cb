"""Which of timm's names can be loaded, and what each one stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import timm
from timm.layers import DiffAttention
from timm.models import (
    get_arch_pretrained_cfgs,
    get_deprecated_models,
    is_model,
    list_models,
    model_entrypoint,
)
from timm.models.vision_transformer import DiffParallelScalingBlock
from torch import nn

from attnviz.errors import BadOption, UnknownName, UnsupportedModel, unknown
from models import dinov2_small, own_weights
from models.fitting import Rename
from models.sizes import Size
from models.timm_attention import ATTENTION
from models.timm_drawn import DRAWN, RESIZED
from models.timm_families import FAMILIES
from models.timm_radio import is_radio, renaming, require_its_size
from models.timm_without import PARTS, WITHIN, WITHOUT, why_without

ATTENDING = r"attn(_in|_out|_downsample)?|self_attn|e_mhsa|token_mixer"
"""What parts are called that attend, or stand where others do."""

DIFFERENTIAL = {DiffAttention, DiffParallelScalingBlock}
"""Blocks that subtract one softmax from another and normalise: no map multiplies the values."""

INSTEAD = "docs/models.md lists the models that have maps."

FOR_NOW = "For now only these families of timm can be drawn: " + ", ".join(DRAWN) + "."


@dataclass(frozen=True)
class TimmName:
    """An architecture, and which of its pretrained weights."""

    architecture: str
    tag: str
    """Empty for the default weights."""
    config: dict[str, Any]
    """timm's description of those weights and of the pictures that they expect."""
    made_for: Size | None = None
    """The size of picture that it is made for, where it takes one only and that is not timm's."""

    def __str__(self) -> str:
        return f"{self.architecture}.{self.tag}" if self.tag else self.architecture

    @property
    def family(self) -> str:
        """timm's module that it comes from."""
        return model_entrypoint(self.architecture).__module__.rpartition(".")[2]

    @property
    def is_plain(self) -> bool:
        """Whether it is of the families whose weights are renamed, and made without any first."""
        return self.family in ("vision_transformer", "deit") and not self._is_radio

    @property
    def _is_radio(self) -> bool:
        return is_radio(self.architecture)

    @property
    def renaming(self) -> Rename | None:
        """What puts a file's tensors under timm's names, where the family's own filter does not."""
        return renaming(self.architecture) if self._is_radio else None

    def build(self, **options: Any) -> nn.Module:
        """The module with timm's own initial weights.

        Where the family can, it takes any multiple of the patch as input: positions are resampled
        at each pass from the learned ones, by timm's own antialiased bicubic routine.

        Raises:
            UnsupportedModel: a part of it cannot be drawn after all.
        """
        if self.made_for is not None:
            options["img_size"] = self.made_for
        if self.family in RESIZED and not self._is_radio:
            options = {"dynamic_img_size": True, **options}
        module = timm.create_model(str(self), pretrained=False, **options)
        return require_drawable(module, self.architecture)

    def sized(self, size: Size) -> TimmName:
        """The same for pictures of that size; raises BadOption where it cannot be made for it."""
        blank = self.blank()
        family = FAMILIES[type(blank)]
        if self._is_radio:
            require_its_size(self.architecture, size, family.native(blank))
        if family.any_size(blank):
            family.require(size, blank)
        elif size != tuple(family.native(blank)):
            made = replace(self, made_for=size)
            try:
                fits = tuple(family.native(made.blank())) == size
            except (AssertionError, RuntimeError, TypeError, ValueError):
                fits = False
            if not fits:
                family.require(size, blank)
                raise BadOption(
                    f"{self} cannot be made for {size[0]} × {size[1]} pixels. Leave image_size out:"
                    f" its own is {' × '.join(map(str, family.native(blank)))}."
                )
            return made
        return self

    def native(self) -> TimmName:
        """The same for pictures of its own size."""
        return replace(self, made_for=None)

    def blank(self, **options: Any) -> Any:
        """The module without any weights: shapes only, no memory; raises as `build`."""
        skip = {"weight_init": "skip"} if self.is_plain else {}
        return self.build(device="meta", **skip, **options)


def resolve(name: str) -> TimmName:
    """Look a timm name up, with or without the tag of its weights; builds nothing.

    Raises:
        UnknownName: timm has no such architecture, or no such weights for it.
        UnsupportedModel: it exists but is of a family that is not drawn.
    """
    current = get_deprecated_models().get(name, name)  # None where timm dropped a model
    architecture, _, tag = (current or "").partition(".")
    if not is_model(architecture):
        raise _no_such_model(name)
    # Judged by the module that an architecture comes from, so that nothing foreign is even built.
    family = model_entrypoint(architecture).__module__.rpartition(".")[2]
    without = why_without(architecture, family)
    if without:
        raise UnsupportedModel(f"{name} belongs to timm's family {family!r}: {without}. {INSTEAD}")
    if family not in DRAWN:
        raise UnsupportedModel(f"{name} belongs to timm's family {family!r}. {FOR_NOW}")
    configs = get_arch_pretrained_cfgs(architecture)
    tags = [known.partition(".")[2] for known in configs]
    if tag and tag not in tags:
        raise unknown(f"set of weights for {architecture} called", tag, tags)
    tag = tag or next(iter(tags), "")
    config = configs.get(f"{architecture}.{tag}" if tag else architecture)
    return TimmName(architecture, tag, config.to_dict() if config else {})


def may_be_drawn(name: str) -> bool:
    """Whether a name that timm has is of a family that is drawn; builds nothing."""
    family = model_entrypoint(name.partition(".")[0]).__module__.rpartition(".")[2]
    return family in DRAWN and not why_no_map(name)


def why_no_map(name: str) -> str:
    """Why a model of timm's has no map; empty where that is unknown, or there is no such model."""
    architecture = name.partition(".")[0]
    if not is_model(architecture):
        return ""
    return why_without(architecture, model_entrypoint(architecture).__module__.rpartition(".")[2])


def require_drawable(module: nn.Module, name: str) -> nn.Module:
    """The module as it is, if each of its layers is known to be drawn truthfully.

    Exact types: a subclass may do anything in its forward pass.

    Raises:
        UnsupportedModel: some part of it is of another kind; the message says which.
    """
    parts: Any = module  # torch's types do not know a module's children
    if type(module) not in FAMILIES:
        home, _, family = type(module).__module__.rpartition(".")
        why = WITHOUT.get(family) if home == "timm.models" else None
        said = f". {FOR_NOW}" if why is None else f": {why}. {INSTEAD}"
        raise UnsupportedModel(f"{name} is a {type(module).__name__}{said}")
    channels = getattr(parts, "in_chans", 3)
    if channels != 3:
        raise UnsupportedModel(f"{name} takes {channels} channels, but a picture has 3.")
    differing = [type(part).__name__ for part in module.modules() if type(part) in DIFFERENTIAL]
    if differing:
        raise UnsupportedModel(
            f"{name} is built with {differing[0]}, which subtracts one softmax from another and"
            f" normalises the result, so that no map multiplies the values. {INSTEAD}"
        )
    odd = _odd_parts(parts)
    if odd:
        raise UnsupportedModel(f"{name} is built with {odd[0]}. {FOR_NOW}")
    if not any(type(part) in ATTENTION for part in module.modules()):
        raise UnsupportedModel(f"{name} has no layer in which tokens attend to tokens. {INSTEAD}")
    return module


def _odd_parts(module: nn.Module) -> list[str]:
    """The classes of parts that are not known to be drawn truthfully."""
    foreign = {
        type(part).__name__
        for part in module.modules()
        if not type(part).__module__.startswith(("timm.", "torch.nn."))
    }
    attentions = {
        type(child)
        for part in module.modules()
        for name, child in part.named_children()
        if type(child) not in WITHIN.get(type(part), ())
        and re.fullmatch(ATTENDING, name)
        and type(part) not in {*ATTENTION, *PARTS}
    }
    unknown = {kind.__name__ for kind in attentions - {*ATTENTION, *PARTS}}
    return sorted(foreign | unknown)


def _no_such_model(name: str) -> UnknownName:
    """Names the nearest plain models; all of timm's names would fill the screen."""
    architectures = [arch for family in DRAWN for arch in list_models(module=family)]
    tagged = [full for arch in architectures for full in get_arch_pretrained_cfgs(arch)]
    ours = [dinov2_small.NAME, *own_weights.TRAINED]
    near = get_close_matches(name, [*ours, *architectures, *tagged], n=3)
    rest = (
        f"and by their timm names {len(architectures)} models of timm, such as those of"
        " timm.list_models(module='vision_transformer')"
    )
    return unknown("model", name, near or [*ours, rest])
