"""A module that somebody else made, ready to be observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from attnviz.errors import BadOption, UnsupportedModel
from attnviz.tokens import TokenLayout
from models.own_adapter import OwnViT
from models.sizes import as_size
from models.timm_adapter import TimmViT, native_size, recipe_of
from models.timm_names import require_drawable
from models.torch_adapter import TorchViT, plan_of
from models.torch_plan import Asked, named
from models.vit import ViT

AnyViT = TimmViT | OwnViT | TorchViT
"""A loaded model, of any kind."""

WEIGHTS = "Your own module, with the weights that it came with."


def wrap(
    module: nn.Module,
    *,
    layout: TokenLayout | None = None,
    image_size: int | tuple[int, int] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    classes: Sequence[str] | int | None = None,
) -> AnyViT:
    """Make a module of your own ready to be observed.

    Of timm's models, of torchvision's, Hugging Face's, open_clip's and vit-pytorch's that
    docs/own_models.md lists, and of `models.vit.ViT`, the layout is known; give one only to have it
    checked. Of any other module it has to be given; its attention is found by watching a pass.

    Args:
        module: it is not changed.
        layout: the tokens before the patches by their names, then the grid of patches.
        image_size: what pictures are fitted to, a number or (rows, cols) in pixels.
        mean: of the three colours, from 0 to 1, which is taken from pictures.
        std: of the three colours, by which what is left is divided.
        classes: of a module of another kind, what its outputs stand for, or how many classes they
            are; without, they are not taken to be classes.

    Raises:
        UnsupportedModel: it has no attention that could be drawn truthfully, or is refused by name.
        BadOption: `layout` or `image_size` is missing, or is not the module's.
        CaptureFailed: a layer of a module that is watched holds values that are not finite.
    """
    if not isinstance(module, nn.Module):
        raise BadOption(f"A torch module is wrapped; {type(module).__name__} came.")
    name = type(module).__name__
    size = None if image_size is None else as_size(image_size)
    names = classes if isinstance(classes, int) or classes is None else tuple(classes)
    said = None not in (mean, std)
    wrapped = _adapted(module, name, Asked(layout, size, names), recipe_said=said)
    if size is not None:
        wrapped = wrapped.at(size)
    own = wrapped.layout(*wrapped.image_size)
    if layout not in (None, own):
        raise BadOption(f"The layout {layout} came, but the module's is {own}: leave it out.")
    recipe = wrapped.recipe
    if mean is not None:
        recipe = replace(recipe, mean=_colour("mean", mean))
    if std is not None:
        recipe = replace(recipe, std=_colour("std", std, above=0.0))
    return replace(wrapped, recipe=recipe)


def _adapted(module: nn.Module, name: str, asked: Asked, *, recipe_said: bool) -> AnyViT:
    if isinstance(module, ViT):
        return OwnViT(module=module, name=name, weights=WEIGHTS, labels=named(asked.classes))
    if type(module).__module__.startswith("timm."):
        if asked.classes is not None:
            raise BadOption(f"The classes of {name} are known: leave classes= out.")
        return _of_timm(require_drawable(module, name), name)
    plan = plan_of(module, name, asked)
    remark = "" if recipe_said else plan.recipe_remark
    return TorchViT(
        module=module,
        name=name,
        weights=" ".join(filter(None, [WEIGHTS, remark, *plan.remarks])),
        image_size=plan.native,
        recipe=plan.recipe,
        plan=plan,
    )


def _of_timm(known: Any, name: str) -> TimmViT:
    config: Any = getattr(known, "pretrained_cfg", {})
    size = getattr(getattr(known, "patch_embed", None), "img_size", None)
    native = native_size(known)
    wrapped = TimmViT(known, name, WEIGHTS, False, native, recipe_of(config))
    if not wrapped.any_size and size is not None and tuple(size) != native:
        raise UnsupportedModel(
            f"{name} insists on {size} pixels, which its patches do not tile: make it with"
            " dynamic_img_size=True, or for another size."
        )
    return wrapped


def _colour(
    word: str, values: Sequence[float], above: float = -math.inf
) -> tuple[float, float, float]:
    try:
        red, green, blue = (float(value) for value in values)
        if min(red, green, blue) > above:
            return red, green, blue
    except (TypeError, ValueError):
        pass
    raise BadOption(
        f"{word} is three numbers, for red, green and blue, on a scale from 0 to 1;"
        f" {values!r} came."
    )
