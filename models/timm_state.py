"""A timm `VisionTransformer`'s state dict, put under the names of `vit.ViT`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from einops import rearrange
from torch import Tensor
from torch.nn import functional as F

from attnviz.errors import BadWeights
from attnviz.tokens import TokenLayout

RENAMED = {
    "separate": {"patch_embed.proj.": "patch_embed.", ".attn.proj.": ".attn.dense."},
    "fused": {
        "patch_embed.proj.": "patch_embed.",
        ".attn.qkv.": ".attn.to_qkv.",
        ".attn.proj.": ".attn.to_out.0.",
    },
}
"""Block → part of timm's name → ours; what `_entries` changes in shape as well is not here."""


def from_timm(
    state: Mapping[str, Tensor],
    *,
    own: Mapping[str, Tensor],
    layout: TokenLayout,
    patch_size: int,
) -> dict[str, Tensor]:
    """The weights of `state` under the names, and in the shapes, of `own`.

    What a state dict cannot tell is taken to be timm's default: the norms' epsilon, GELU, the
    grid's rows and columns, and pooling by class token, or by the mean of patches without one.

    Raises:
        BadWeights: something is missing, left over or of another shape; the final norm is on the
            other side of the pooling; or the block lacks a bias or projection that timm's has.
    """
    block = "fused" if "blocks.0.attn.to_qkv.weight" in own else "separate"
    biased = any(name.endswith(".attn.qkv.bias") for name in state)
    if biased and block == "fused":
        raise BadWeights(
            "The weights have a bias for queries, keys and values (attn.qkv.bias), and the block"
            ' "fused" has none: make the ViT with block="separate".'
        )
    if block == "fused" and "blocks.0.attn.to_out.0.weight" not in own:
        raise BadWeights(
            'The weights have a projection after attention (attn.proj), and the block "fused" with'
            ' one head has none: make the ViT with block="separate".'
        )
    norm = "norm.weight" if "cls" in layout.prefix else "fc_norm.weight"
    found = state.keys() & {"norm.weight", "fc_norm.weight"}
    if found != {norm}:
        raise BadWeights(
            f"The weights have {' and '.join(sorted(found)) or 'no final norm'}; expected {norm}:"
            " norm.* with a class token, fc_norm.*, after the mean over patches, without one. Make"
            " the ViT with the class token and the pooling of the timm model."
        )
    given: dict[str, Tensor] = {}
    if block == "separate" and not biased:  # qkv_bias=False says the same as a bias of zero
        biases = (".attn.Q.bias", ".attn.K.bias", ".attn.V.bias")
        given = {name: torch.zeros_like(own[name]) for name in own if name.endswith(biases)}
    for name, value in state.items():
        given.update(_entries(name, value, block=block, layout=layout, patch_size=patch_size))
    wrong = [
        f"{name} is {_shape(given, name)}, expected {_shape(own, name)}"
        for name in sorted(own.keys() | given.keys())
        if _shape(given, name) != _shape(own, name)
    ]
    if wrong:
        raise BadWeights(
            f"The weights do not fit this ViT in {len(wrong)} places: {'; '.join(wrong[:4])}."
            " Make the ViT with the sizes, tokens and classes of the timm model."
        )
    return given


def _entries(
    name: str, value: Tensor, *, block: str, layout: TokenLayout, patch_size: int
) -> Iterator[tuple[str, Tensor]]:
    """One entry of timm's under our names; what is of another shape is left as it came."""
    if name == "patch_embed.proj.weight" and value.shape[2:] == (patch_size, patch_size):
        value = rearrange(value, "hidden chan y x -> hidden (chan y x)")
    elif name == "pos_embed" and value.shape[1] == layout.patches:
        # no_embed_class=True: timm adds nothing to prefix tokens, which is to add zero.
        value = F.pad(value, (0, 0, len(layout.prefix), 0))
    if ".attn.qkv." in name and block == "separate":
        for part, rows in zip("QKV", value.chunk(3), strict=False):
            yield name.replace(".attn.qkv.", f".attn.{part}."), rows
        return
    if name.startswith("fc_norm."):
        name = name.removeprefix("fc_")
    for theirs, ours in RENAMED[block].items():
        name = name.replace(theirs, ours)
    yield name, value


def _shape(tensors: Mapping[str, Tensor], name: str) -> str:
    return str(tuple(tensors[name].shape)) if name in tensors else "absent"
