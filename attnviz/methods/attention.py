"""Raw attention: one layer's softmax map, as the model computed it."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from attnviz.methods.fusion import HEAD_FUSIONS, HeadFusion, fuse
from attnviz.methods.method import Method
from attnviz.methods.options import LAYER, Option
from attnviz.record import AttentionRecord

OPTIONS = {
    "layer": LAYER,
    "head": Option(None, "head", "which head, counted from 0; all of them, fused, if left out"),
    "head_fusion": Option(
        "mean",
        "choice",
        "how the heads become one map",
        HEAD_FUSIONS,
        idle=lambda settled: settled["head"] is not None,
    ),
}


def attention(
    record: AttentionRecord,
    query: range,
    *,
    layer: int,
    head: int | None,
    head_fusion: HeadFusion,
) -> Float[Tensor, " token"]:
    """What the query attends to in one layer: `A[head, query, :]`, or heads fused.

    Over several query tokens the rows are averaged first. One head, or the mean of all, sums to 1
    over all tokens (prefix included). Source: Vaswani et al. 2017, equation 1.
    """
    rows = record.layers[layer].rows(query)
    return fuse(rows, head_fusion) if head is None else rows[head]


METHOD = Method(
    label="Attention",
    unit="attention weight",
    summary="What the query attends to in one layer, by one head or all of them together.",
    formula="A[head, query, key] = softmax over keys of q·k / √d",
    source="Vaswani et al., Attention is all you need, 2017, equation 1",
    compute=attention,
    options=OPTIONS,
    # The weights of a maximum or minimum over heads do not sum to 1.
    is_share=lambda settled: settled["head"] is not None or settled["head_fusion"] == "mean",
)
