"""Maps beside their gradients, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import BadOption
from attnviz.record import LayerAttention, Product
from attnviz.windows import Windows


def gradient_of(layer: LayerAttention) -> Product | Windows:
    """∂y/∂A of the layer; BadOption where the record was made without a target."""
    if layer.gradient is None:
        raise BadOption(
            'This record has no gradients: observe the picture with a target, such as "predicted"'
            " or attnviz.similarity_to(…)."
        )
    return layer.gradient


def attention_and_gradient(
    layer: LayerAttention, weights: Float[Tensor, " query"]
) -> Iterator[tuple[slice, Float[Tensor, "head query key"], Float[Tensor, "head query key"]]]:
    """(queries, A, ∂y/∂A) piece by piece; queries whose weights are all 0 are passed over.

    The gradient's pieces are the caller's own, to write on; those of A may be the record's.
    """
    gradient = gradient_of(layer)
    used = weights.nonzero().flatten().tolist()
    spans = [(used[0], used[0] + 1)] if len(used) == 1 else layer.spans()
    for start, stop in spans:
        if weights[start:stop].any():
            yield (
                slice(start, stop),
                layer.source.block(start, stop),
                gradient.block(start, stop),
            )


def query_row(layer: LayerAttention, query: range) -> Float[Tensor, " token"]:
    """The query as weights on the layer's tokens: 1 in all, in equal parts."""
    row = torch.zeros(layer.tokens, device=layer.device)
    row[query.start : query.stop] = 1 / len(query)
    return row
