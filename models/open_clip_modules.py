"""open_clip's image towers, known by their classes' names: open_clip is not imported."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from attnviz.contract import Readout
from attnviz.tokens import TokenLayout
from models.preprocess import RESAMPLING, Recipe, noise
from models.timm_adapter import TimmViT, native_size, recipe_of
from models.timm_names import require_drawable
from models.torch_plan import CLIP, Asked, Plan, sites_in, tensor_in, watch

TOWER = "open_clip.transformer.VisionTransformer"
OF_TIMM = "open_clip.timm_model.TimmModel"
UNKNOWN = (
    "Pictures are normalised as OpenAI's CLIP wants them unless mean= and std= are given: this"
    " tower does not say how it was trained."
)


def plan_of(module: nn.Module, name: str, asked: Asked) -> Plan | None:
    """The plan of exactly these classes; None for any other."""
    path = f"{type(module).__module__}.{type(module).__qualname__}"
    if path == TOWER:
        return _tower(module, name)
    return _of_timm(module, name) if path == OF_TIMM else None


def _tower(module: Any, name: str) -> Plan:
    """All tokens attend to all; positions are for one size, and the output is an embedding."""
    (high, wide), (rows, cols) = module.patch_size, module.grid_size
    native = (rows * high, cols * wide)
    layout = TokenLayout(("cls",), (rows, cols))
    end = nn.Identity()  # what is fed with the embedding, which is the picture's one feature

    def run(pictures: Tensor) -> Tensor:
        return end(tensor_in(module(pictures)))

    sites, _ = sites_in(name, watch(name, module, run, noise(3, *native)), layout)
    pooled = module.attn_pool is not None

    def norm(tokens: Tensor) -> Tensor:
        """Each token as the tower would embed it, if it is not pooled by attention."""
        if pooled:
            return tokens
        normed: Tensor = module.ln_post(tokens)
        return normed if module.proj is None else normed @ module.proj

    recipe, remark = _recipe(module)
    return Plan(
        native=native,
        patch=(high, wide),
        prefix=layout.prefix,
        any_size=False,
        sites=tuple(
            replace(
                site, block=module.get_submodule(re.sub(r"(resblocks\.\d+)\..*", r"\1", site.name))
            )
            for site in sites
        ),
        readout=Readout(norm=norm, head=end, classify=end, of_tokens=not pooled),
        run=run,
        recipe=recipe,
        recipe_remark=remark,
    )


def _of_timm(module: Any, name: str) -> Plan:
    """A model of timm's, and what follows it."""
    trunk = require_drawable(module.trunk, type(module.trunk).__name__)
    config: dict[str, Any] = getattr(trunk, "pretrained_cfg", {})
    vit = TimmViT(trunk, name, "", False, native_size(trunk), recipe_of(config))
    layout = vit.layout(*vit.image_size)
    recipe, remark = _recipe(module)
    return Plan(
        native=vit.image_size,
        patch=vit.patch_size,
        prefix=layout.prefix,
        any_size=False,
        sites=tuple(replace(site, name=f"trunk.{site.name}") for site in vit.sites),
        readout=replace(vit.readout, head=module.head, classify=module.head),
        run=module,
        recipe=recipe,
        recipe_remark=remark,
    )


def _recipe(module: Any) -> tuple[Recipe, str]:
    """How the tower says that it wants its pictures, and what to say where it does not."""
    said = getattr(module, "preprocess_cfg", None) or {}
    mean = said.get("mean", getattr(module, "image_mean", None))
    std = said.get("std", getattr(module, "image_std", None))
    if mean is None or std is None:
        return CLIP, UNKNOWN
    interpolation = said.get("interpolation", "bicubic")
    known = interpolation in RESAMPLING
    return Recipe(
        mean=tuple(mean),
        std=tuple(std),
        interpolation=interpolation if known else "bicubic",
        crop_mode="squash" if said.get("resize_mode") == "squash" else "center",
    ), ""
