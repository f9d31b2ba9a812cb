"""Raw attention: one layer's softmax map, as the model computed it, from either end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import BadOption
from attnviz.methods.fusion import HEAD_FUSIONS, HeadFusion, fuse
from attnviz.methods.method import Method
from attnviz.methods.options import LAYER, Option
from attnviz.record import AttentionRecord

Direction = Literal["from", "to"]

OPTIONS = {
    "layer": LAYER,
    "head": Option(None, "head", "which head, counted from 0; all of them, fused, if left out"),
    "head_fusion": Option(
        "mean",
        "choice",
        "how the heads become one map",
        HEAD_FUSIONS,
        idle=lambda settled: settled["head"] is not None,
        vain="beside --head, which is one alone",
    ),
    "direction": Option(
        "from",
        "choice",
        "what the query looks at (from it), or who looks at the query (to it)",
        get_args(Direction),
        idle=lambda settled: settled["direction"] == "from",
    ),
}


def attention(
    record: AttentionRecord,
    query: range,
    *,
    layer: int,
    head: int | None,
    head_fusion: HeadFusion,
    direction: Direction,
) -> Float[Tensor, " token"]:
    """What the query attends to in one layer: `A[head, query, :]`, or heads fused.

    With direction `"to"` who attends to the query: `A[head, :, query]`, the weight that each token
    gives it; there `query` are tokens among the keys. Over several query tokens rows, or columns,
    are averaged first. Of a row, one head or the mean of all sums to 1 over all tokens (prefix
    included); a column has no sum of its own. Source: Vaswani et al. 2017, equation 1.

    Raises BadOption where the query, or every patch, has no part in the layer.
    """
    if direction == "to":
        values = received(record, query, layer)
    else:
        values = record.layers[layer].rows(query)
    return fuse(values, head_fusion) if head is None else values[head]


def received(record: AttentionRecord, keys: range, layer: int) -> Float[Tensor, "head query"]:
    """The weight that each token gives to a key, or on average to each of several.

    Read in blocks of rows: a key's column needs each row's own softmax.
    """
    chosen = record.layers[layer]
    geometry = record.geometry(chosen)
    if not geometry.queries.to_grid(geometry.asks).any():
        raise BadOption(
            f"No patch looks at anything in layer {chosen.name}: it is a layer of {geometry.kind}."
            " Choose another layer, or the direction from the query."
        )
    answers = geometry.answers[keys.start : keys.stop]
    if not answers.any():
        raise BadOption(
            f"Nothing looks at that token in layer {chosen.name}: it is a layer of {geometry.kind}."
            " Choose another query or another layer."
        )
    weights = (answers / answers.sum()).to(chosen.device)
    given = [rows[..., keys.start : keys.stop] @ weights for rows in chosen.blocks()]
    return torch.cat(given, dim=-1)


def _looks_on(settled: Mapping[str, Any]) -> bool:
    return bool(settled["direction"] == "from")


METHOD = Method(
    label="Attention",
    unit="attention weight",
    summary="What the query attends to in one layer, or who attends to it, by one head or all.",
    formula="A[head, query, key] = softmax over keys of q·k / √d; the query's row, or its column",
    source="Vaswani et al., Attention is all you need, 2017, equation 1",
    compute=attention,
    options=OPTIONS,
    # The weights of a maximum or minimum over heads do not sum to 1, and those of a column neither.
    is_share=lambda settled: (
        _looks_on(settled) and (settled["head"] is not None or settled["head_fusion"] == "mean")
    ),
    other_unit=lambda settled: (
        None if _looks_on(settled) else "attention weight given to the query"
    ),
)
