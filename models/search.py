"""timm's names by a part of them, and what each one offers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from timm.models import list_models

from attnviz.errors import AttnVizError
from models.sizes import Size
from models.timm_adapter import TimmViT, native_size, recipe_of
from models.timm_names import may_be_drawn, resolve


@dataclass(frozen=True)
class Found:
    """One of timm's models, as far as it can be told without weights."""

    name: str
    parameters: int = 0
    size: Size = (0, 0)
    """(rows, cols) in pixels that it was made for."""
    grid: Size | None = None
    """(rows, cols) of its finest patches; None where it cannot be drawn."""
    layers: int = 0
    why_not: str = ""


def search(word: str) -> list[str]:
    """The names that hold the word: those that can be drawn first, then the shortest.

    A name with the tag of its weights is among them where it is the tag that holds the word: of
    DINO's and MAE's models nothing else says whose they are.
    """
    word = word.lower()
    names = [name for name in list_models() if word in name]
    names += [
        name
        for name in list_models(pretrained=True)
        if word in name and word not in name.partition(".")[0]
    ]
    return sorted(names, key=lambda name: (not may_be_drawn(name), len(name), name))


def describe(name: str) -> Found:
    """What a model of that name offers: it is built, without weights."""
    try:
        found = resolve(name)
        module = found.blank()
        vit = TimmViT(module, name, "", True, native_size(module), recipe_of(found.config))
        grid = vit.layout(*vit.image_size).grid
        count = sum(parameter.numel() for parameter in module.parameters())
        return Found(name, count, vit.image_size, grid, len(vit.sites))
    except AttnVizError as error:
        return Found(name, why_not=re.split(r"\. (?:For now|docs/)", str(error))[0])
