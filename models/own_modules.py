"""A user's own module: its layers found by watching a pass, its layout as the user says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.contract import Readout
from attnviz.errors import BadOption, UnsupportedModel
from attnviz.scout import Found
from attnviz.tokens import TokenLayout
from models.layout_trial import try_layout
from models.preprocess import noise
from models.sizes import Size
from models.torch_plan import (
    IMAGENET,
    UNKNOWN_RECIPE,
    Asked,
    Plan,
    attends,
    left_out,
    named,
    sites_in,
    tensor_in,
    watch,
)

TOWERS = ("visual", "vision_model", "vision_tower")
"""Where models of more than images have the one for images."""
WRAPPED = ("module", "_orig_mod")
"""Where torch's wrappers, for several devices or compiled, have what they wrap."""


def plan_of(module: nn.Module, name: str, asked: Asked) -> Plan:
    """What one pass of the module shows, with the layout that was given.

    Raises:
        BadOption: the layout or the size is missing, or is not the module's.
        UnsupportedModel: there is no attention, or none that could be proved.
    """
    inner = [part for part in WRAPPED if isinstance(getattr(module, part, None), nn.Module)]
    if inner and type(module).__module__.startswith("torch."):
        raise UnsupportedModel(f"{name} wraps another module: wrap its .{inner[0]} instead.")
    if asked.layout is None:
        raise _ask_for_layout(module, name, asked)
    size = asked.image_size or size_for(module, name, asked.layout)
    return described(module, name, asked.layout, size, asked)


def described(module: nn.Module, name: str, layout: TokenLayout, size: Size, asked: Asked) -> Plan:
    """The plan of a module that takes one size, whose layout is said; it is tried."""
    rows, cols = layout.grid
    if rows < 1 or cols < 1 or size[0] % rows or size[1] % cols:
        raise BadOption(
            f"A grid of {rows} × {cols} patches does not tile {size[0]} × {size[1]} pixels: give"
            " the layout's grid as (rows, cols), and an image_size that is a multiple of it."
        )

    def run(pictures: Tensor) -> Tensor:
        return tensor_in(module(pictures))

    found = watch(name, module, run, noise(3, *size))
    sites, rest = sites_in(name, found, layout)
    tried = try_layout(name, module, run, layout, size, [site.name for site in sites])
    return Plan(
        native=size,
        patch=(size[0] // rows, size[1] // cols),
        prefix=layout.prefix,
        any_size=False,
        sites=sites,
        readout=readout_of(found),
        run=run,
        recipe=IMAGENET,
        recipe_remark=UNKNOWN_RECIPE,
        classes=classes_of(name, found, asked),
        remarks=(*tried, *left_out(rest)),
    )


def readout_of(found: Found) -> Readout:
    """The linear layer that made the output, where there is one; nothing is known of a norm."""
    head = found.head or nn.Identity()
    return Readout(norm=lambda tokens: tokens, head=head, classify=head, of_tokens=False)


def classes_of(name: str, found: Found, asked: Asked) -> tuple[str, ...]:
    """The classes that the user named, if the outputs are as many; BadOption if not."""
    classes, shape = named(asked.classes), tuple(found.output.shape)
    if classes and shape != (1, len(classes)):
        raise BadOption(
            f"{len(classes)} classes came, but {name} gives an output of shape {shape} for one"
            " picture: give as many as there are outputs, or leave them out."
        )
    return classes


def size_for(module: nn.Module, name: str, layout: TokenLayout) -> Size:
    """The size of picture whose patches are the layout's grid, by the layer that cuts them.

    Raises:
        BadOption: it cannot be told.
    """
    rows, cols = layout.grid
    for part in module.modules():
        if isinstance(part, nn.Conv2d) and part.in_channels == 3:
            high, wide = part.kernel_size
            if part.stride == part.kernel_size and high > 1:
                return rows * high, cols * wide
            break
    stated: Any = getattr(module, "image_size", getattr(module, "img_size", None))
    if isinstance(stated, int):
        return stated, stated
    if isinstance(stated, tuple | list) and len(stated) == 2:
        return int(stated[0]), int(stated[1])
    raise BadOption(
        f"The size of picture that {name} takes cannot be told from it: give"
        " image_size=(rows, cols), in pixels."
    )


def _ask_for_layout(module: nn.Module, name: str, asked: Asked) -> BadOption:
    """What to say to somebody who gave no layout: what was seen, if a pass could be made.

    Raises:
        UnsupportedModel: it is not an image model alone, or has no attention.
    """
    towers = [tower for tower in TOWERS if isinstance(getattr(module, tower, None), nn.Module)]
    if towers:
        raise UnsupportedModel(
            f"{name} is more than an image model: wrap its .{towers[0]} instead."
        )
    ask = (
        f"Which tokens {name} has is not known: give layout=attnviz.TokenLayout(prefix, (rows,"
        ' cols)), with the names of the tokens before the patches, such as ("cls",) or ().'
    )
    for size in _sizes(asked):
        try:
            found = watch(name, module, lambda x: tensor_in(module(x)), torch.zeros(1, 3, *size))
        except UnsupportedModel as error:
            if error.__cause__ is None:
                raise
            continue
        seen = dict.fromkeys(attends(each) for each in found.sightings)
        return BadOption(
            f"{ask} On {size[0]} × {size[1]} pixels its attention goes {'; '.join(seen)}."
        )
    return BadOption(ask)


def _sizes(asked: Asked) -> Iterator[Size]:
    """Sizes worth a try."""
    yield from [asked.image_size] if asked.image_size else [(224, 224), (32, 32)]
