"""Pictures of which some patches are taken away: what the model is fed instead of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attnviz.errors import BadOption, unknown

Size = tuple[int, int]
"""(rows, cols) of pixels in a patch."""

Picture = Float[Tensor, "1 channel height width"]


@dataclass(frozen=True)
class Baseline:
    """What takes the place of the patches: a picture of the same size, and what it is in words."""

    picture: Picture
    words: str


def mean_colour(picture: Picture, patch: Size) -> Picture:
    """Each channel's mean over the picture."""
    return picture.float().mean((2, 3), keepdim=True).expand_as(picture)


def zero(picture: Picture, patch: Size) -> Picture:
    """0 after normalisation: what the model's normalisation takes for the mean colour."""
    return torch.zeros_like(picture)


def blurred(picture: Picture, patch: Size) -> Picture:
    """A Gaussian blur whose σ is one patch, down and across; edge pixels go on for ever."""
    down, across = (_bell(side).to(picture.device) for side in patch)
    high, wide = len(down) // 2, len(across) // 2
    planes = rearrange(picture.float(), "1 channel row col -> channel 1 row col")
    planes = F.pad(planes, (wide, wide, high, high), mode="replicate")
    planes = F.conv2d(planes, rearrange(down, "tap -> 1 1 tap 1"))
    planes = F.conv2d(planes, rearrange(across, "tap -> 1 1 1 tap"))
    return rearrange(planes, "channel 1 row col -> 1 channel row col")


def _bell(sigma: int) -> Float[Tensor, " tap"]:
    """exp(−x² / 2σ²) out to 3 σ, to the sum 1."""
    at = torch.arange(-3 * sigma, 3 * sigma + 1, dtype=torch.float64)
    weights = torch.exp(-(at**2) / (2 * sigma**2))
    return (weights / weights.sum()).float()


BASELINES: Mapping[str, tuple[str, Callable[[Picture, Size], Picture]]] = {
    "mean": ("the picture's mean colour", mean_colour),
    "zero": ("the colour that is 0 after normalisation", zero),
    "blur": ("the picture blurred, σ of one patch", blurred),
}
"""Name → (in words, how it is made)."""

BASELINE = "mean"
"""Unless another is named."""


def baseline_of(picture: Picture, baseline: str | Tensor, patch: Size) -> Baseline:
    """The baseline of that name, or one's own: a finite tensor of the picture's shape.

    Raises:
        UnknownName: there is no baseline of that name.
        BadOption: the tensor has another shape, or values that are not finite.
    """
    if isinstance(baseline, Tensor):
        if baseline.shape != picture.shape or not bool(torch.isfinite(baseline).all()):
            raise BadOption(
                f"A baseline is a finite tensor of the input's shape {tuple(picture.shape)};"
                f" one of shape {tuple(baseline.shape)} came. Or give a name: {_NAMES}."
            )
        return Baseline(baseline.detach().to(picture), "a baseline of your own")
    if baseline not in BASELINES:
        raise unknown("baseline", baseline, BASELINES)
    words, make = BASELINES[baseline]
    return Baseline(make(picture, patch).to(picture), words)


_NAMES = ", ".join(BASELINES)


def altered(
    picture: Picture, baseline: Picture, kept: Bool[Tensor, "altered row col"], patch: Size
) -> Float[Tensor, "altered channel height width"]:
    """One picture for each mask: its pixels where a patch is kept, the baseline's elsewhere."""
    pixels = repeat(kept, "n row col -> n 1 (row y) (col x)", y=patch[0], x=patch[1])
    return torch.where(pixels, picture, baseline)
