"""NVIDIA's RADIO among timm's plain ViTs: positions for one size, and how its files become those.

RADIO resamples a grid of 128 × 128 positions by a rule of its own. timm's plain ViT keeps what that
gives for one size, which no resampling of these few could give for another; its NaFlex twin keeps
the whole grid and follows the rule at every size.
"""

from __future__ import annotations

from functools import partial

from timm.models.vision_transformer import checkpoint_filter_fn

from attnviz.errors import BadOption
from models.fitting import Rename
from models.sizes import Size

ALIGNED = ("vit_base_patch16_radio_v3", "vit_huge_patch16_radio_v3")
"""Those whose own code resamples with aligned corners, by timm's table."""


def is_radio(architecture: str) -> bool:
    """Whether it is one of RADIO's in the form of a plain ViT."""
    return architecture.startswith("vit_") and "_radio_" in architecture


def renaming(architecture: str) -> Rename:
    """timm's filter, told how RADIO resamples: bilinearly, without antialiasing."""
    return partial(
        checkpoint_filter_fn,
        interpolation="bilinear",
        antialias=False,
        align_corners=architecture in ALIGNED,
    )


def require_its_size(architecture: str, size: Size, own: Size) -> None:
    """Raises BadOption for another size than its own, and names the twin that takes any."""
    if size != own:
        raise BadOption(
            f"{architecture} has positions for {own[0]} × {own[1]} pixels alone, but"
            f" {size[0]} × {size[1]} were asked for: load naflex{architecture}, which has those of"
            " every size."
        )
