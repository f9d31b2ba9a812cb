"""At which sizes a model is offered."""

from __future__ import annotations

import models

PATCHES_A_SIDE = (8, 16, 24, 37, 56)
"""Sizes offered beside the model's own, in patches along a square's side."""


def sides_of(vit: models.AnyViT) -> list[int]:
    """Sides of a square in pixels that are offered for a model that takes any size."""
    step = max(vit.step_size)
    return sorted({vit.image_size[0], *(step * count for count in PATCHES_A_SIDE)})
