"""Small models with random weights, a picture for one, and the record of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

import attnviz


def random_module(make: Callable[[], nn.Module], std: float) -> nn.Module:
    """One whose weights are spread so widely that its maps are far from uniform."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = make().eval()
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=std)
    return module


def picture(vit, seed: int = 0) -> torch.Tensor:
    """A normalised input of the model's own size."""
    return torch.randn(1, 3, *vit.image_size, generator=torch.Generator().manual_seed(seed))


def seen_by(vit, **options):
    """It, a picture, and the record of that."""
    x = picture(vit)
    return vit, x, attnviz.observe(vit, x, **options)
