"""Attention rollout: how attention adds up over the layers."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from attnviz.methods import span
from attnviz.methods.fusion import HEAD_FUSIONS, HeadFusion, fuse
from attnviz.methods.gradients import query_row
from attnviz.methods.method import Method
from attnviz.methods.options import Option
from attnviz.record import AttentionRecord, LayerAttention

Discard = Literal["row", "global"]

OPTIONS = {
    "head_fusion": Option("mean", "choice", "how the heads become one map", HEAD_FUSIONS),
    "residual": Option(0.5, "fraction", "weight of the residual connection"),
    "discard_ratio": Option(
        0.0,
        "fraction",
        "share of the weakest patch weights set to 0",
        below_one=True,
        idle=lambda settled: not settled["discard_ratio"],
    ),
    "discard": Option(
        "row",
        "choice",
        "weakest of each row, or of the whole map",
        get_args(Discard),
        idle=lambda settled: not settled["discard_ratio"],
        vain="without a --discard-ratio above 0",
    ),
    **span.OPTIONS,
}


def rollout(
    record: AttentionRecord,
    query: range,
    *,
    head_fusion: HeadFusion,
    residual: float,
    discard_ratio: float,
    discard: Discard,
    first_layer: int,
    last_layer: int,
) -> Float[Tensor, " token"]:
    """Row `query` of `R = Â_last ⋯ Â_first`, with `Â_l = ρ I + (1 − ρ) fuse_h A_l`; ρ is ½.

    Of R only that row is formed: `r ← ρ r + (1 − ρ) r A_l`, from the last layer down to the first.
    The row sums to 1 over all tokens (prefix included).

    Source: Abnar & Zuidema 2020, section 3. Fusion by max or min and discarding are later
    inventions: the ⌊ratio · n⌋ weakest of n patch weights (of equals the first) become 0, prefix
    columns never, from the fused map as it is (over several query tokens each row on its own);
    then rows are brought back to the sum 1, and the residual is added. A row left empty by them
    (heads that share no key, fused by min) stands for the residual alone.
    """
    layers = span.layers_between(record, first_layer, last_layer)
    row = query_row(layers[-1], query)
    prefix = len(record.geometry(layers[-1]).keys.prefix)
    for layer in reversed(layers):
        if head_fusion == "mean" and discard_ratio == 0:
            # A token that does not ask in this layer passes it as it is.
            mixed = layer.pull(row).mean(0) + row * ~layer.asks
        else:
            mixed = row @ _fused(layer, head_fusion, discard_ratio, discard, prefix)
        row = residual * row + (1 - residual) * mixed
    return row


def _fused(
    layer: LayerAttention, head_fusion: HeadFusion, ratio: float, discard: Discard, prefix: int
) -> Float[Tensor, "query key"]:
    """The layer as one map of rows that sum to 1, its weakest patch weights discarded."""
    fused = torch.cat([fuse(rows, head_fusion) for rows in layer.blocks()])
    patches = fused[:, prefix:]
    values = rearrange(patches, "query key -> 1 (query key)") if discard == "global" else patches
    # A little over, so that 0.29 of 100 is 29 in floating point too.
    count = int(ratio * values.shape[-1] + 1e-9)
    kept = _without_weakest(values, count)
    patches.copy_(rearrange(kept, "... (query key) -> (... query) key", key=patches.shape[1]))
    # By its largest value first: the sum of a row may be as small as float32 can hold.
    top = fused.amax(-1, keepdim=True)
    scaled = fused / torch.where(top > 0, top, 1.0)
    identity = torch.eye(len(fused), device=fused.device)
    return torch.where(top > 0, scaled / scaled.sum(-1, keepdim=True).clamp_min(1.0), identity)


def _without_weakest(values: Float[Tensor, "row value"], count: int) -> Float[Tensor, "row value"]:
    """Each row with its `count` smallest values set to 0; of equals the first are."""
    if not count:
        return values
    bound = values.kthvalue(count, dim=-1, keepdim=True).values
    equal = values == bound
    left = count - (values < bound).sum(-1, keepdim=True)
    return values.masked_fill((values < bound) | (equal & (equal.cumsum(-1) <= left)), 0.0)


METHOD = Method(
    label="Attention rollout",
    unit="share of rollout",
    summary="How attention adds up over the layers, each of which also passes each token on as it "
    "was: the residual connection.",
    formula="R = Â_L ⋯ Â_1 with Â = ρ I + (1 − ρ) · heads of A fused, ρ = ½; the query's row",
    source="Abnar & Zuidema, Quantifying attention flow in transformers, 2020",
    compute=rollout,
    options=OPTIONS,
    is_share=lambda settled: True,
    keeps_itself=lambda settled: bool(settled["residual"]),
)
