"""LeGrad: how each layer's own score would change with its attention."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import BadOption
from attnviz.methods import span
from attnviz.methods.method import Method
from attnviz.record import AttentionRecord, LayerAttention, Maps


def legrad(
    record: AttentionRecord, query: range, *, first_layer: int, last_layer: int
) -> Float[Tensor, " token"]:
    """Mean over layers of `E_l = mean_h mean_q relu(∂s_l/∂A_l)`, a value a key.

    s_l is the target's score that the model's own last norm and head give the mean over all of
    layer l's tokens; in models that pool by attention, what their pooler makes of them, and A_l is
    the pooler's map. A itself is not multiplied in. The map is of the target, not of a query.

    Raises BadOption where a layer has no score of its own.
    Source: Bousselham et al. 2024, equations 5 to 9.
    """
    layers = span.layers_between(record, first_layer, last_layer)
    return torch.stack([_positive_mean(layer) for layer in layers]).mean(0)


def _positive_mean(layer: LayerAttention) -> Float[Tensor, " key"]:
    gradient = layer.own_gradient
    if gradient is None:
        raise _no_score(layer)
    if isinstance(gradient, Maps):
        return gradient.map.relu().mean((0, 1))
    total = sum(gradient.block(start, stop).relu_().sum((0, 1)) for start, stop in layer.spans())
    heads, queries, _ = layer.source.shape
    return torch.as_tensor(total) / (heads * queries)


def require_scores(record: AttentionRecord) -> None:
    """Raises BadOption where the model's head cannot score the tokens of a layer."""
    if not record.scored:
        raise _no_score(record.layers[-1])


def _no_score(layer: LayerAttention) -> BadOption:
    return BadOption(
        f"Layer {layer.name} has no score of its own: LeGrad needs a target and layers that hand"
        " on all tokens. Choose another method."
    )


METHOD = Method(
    label="LeGrad",
    unit="mean positive gradient",
    summary="Where more attention, in any layer, would raise the target's score of that layer.",
    formula="mean over layers, heads and queries of relu(∂s/∂A), s a layer's own score",
    source="Bousselham et al., LeGrad, 2024",
    compute=legrad,
    requires=require_scores,
    options=span.OPTIONS,
    needs_gradient=True,
    asks=False,
)
