"""How one class of timm models arranges its tokens: what a row of the table of families says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout, prefix_names
from models.sizes import Size, require_multiples

Place = Callable[[TokenLayout], Geometry]


@dataclass(frozen=True)
class Family:
    """How one class of timm models arranges its tokens; the module is the first argument."""

    patch: Callable[[Any], Size]
    """(rows, cols) in pixels from one patch to the next."""
    native: Callable[[Any], Size]
    """The size of picture that it was made for."""
    any_size: Callable[[Any], bool] = lambda module: False
    """Whether any multiple of the step will do."""
    step: Callable[[Any], Size] | None = None
    """(rows, cols) in pixels that sizes are multiples of, where that is not the patch."""
    grid: Callable[[Any, Size], Size] | None = None
    """(rows, cols) of patches for a size, where it is not size / patch."""
    places: Mapping[str, Callable[[Any, str], Place | None]] | None = None
    """What maps stand for, by the first pattern that a layer's name begins with; else all tokens.

    Layers are listed in the order of the patterns, if there are any.
    """
    prefix: tuple[str, ...] | None = None
    """The tokens before the patches, where the module does not say."""
    resizes: bool = False
    """Whether it takes any size if it is made with dynamic_img_size=True."""
    reads_tokens: Callable[[Any], bool] = lambda module: True
    """Whether its head reads the last layer's tokens as they are, not merged or projected."""

    def step_of(self, module: Any) -> Size:
        """(rows, cols) in pixels that sizes are multiples of."""
        rows, cols = (self.step or self.patch)(module)
        return rows, cols

    def require(self, size: Size, module: Any) -> None:
        """Raises BadOption for a size that is no multiple of the step."""
        merged = self.step_of(module) != tuple(self.patch(module))
        what = "what the model makes one of several patches" if merged else "the patch"
        require_multiples(size, self.step_of(module), what)


def prefix_of(module: Any) -> tuple[str, ...]:
    """The tokens before the patches: class, distillation and register tokens."""
    holders = (module, getattr(module, "embeds", module))
    found = [getattr(each, "cls_token", None) for each in holders]
    tokens = [token for token in found if token is not None]
    count = getattr(module, "num_prefix_tokens", None)
    if count is None:  # PiT's class and distillation tokens are one parameter, VOLO's is alone
        count = tokens[0].shape[1] if tokens else 0
        return prefix_names(cls=count > 0, dist=count > 1)
    dist = hasattr(module, "dist_token")
    registers = count - (1 if tokens else 0) - dist
    return prefix_names(cls=bool(tokens), dist=dist, registers=registers)


def place_of(family: Family, module: nn.Module, name: str) -> tuple[int, Place | None]:
    """The place of a layer in the order of the family's patterns, and what its map stands for."""
    for number, (pattern, place) in enumerate((family.places or {}).items()):
        if re.match(pattern, name):
            return number, place(module, name)
    return len(family.places or {}), None


def said_size(module: Any, step: Size = (1, 1)) -> Size:
    """The size that its pretrained weights expect, for a network that takes any, in whole steps."""
    said = getattr(module, "pretrained_cfg", {}).get("input_size", (3, 224, 224))[1:]
    rows, cols = (max(1, side // each) * each for side, each in zip(said, step, strict=True))
    return rows, cols
